package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward"
)

// BenchmarkCommit measures a commit of batches of events with bodies of 1.5 kB,
// one fact of four fields each and one job, about ten thousand entities.
func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "app.db"))
			defer s.Close()
			mapping, err := newMapping()
			if err != nil {
				b.Fatal(err)
			}
			handler, err := onceward.ParseHandler("payment")
			if err != nil {
				b.Fatal(err)
			}
			body := []byte(strings.Repeat(`{"a":"0123456789"}`, 83))
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			n := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				batch := &onceward.Batch{Handlers: []onceward.Handler{handler}, Now: now}
				for range size {
					n++
					batch.Arrivals = append(batch.Arrivals, arrival(mapping, n, body, now))
				}
				if err := s.Commit(context.Background(), batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

func newMapping() (*onceward.Mapping, error) {
	kind, err := onceward.NewKind(onceward.Kind{Name: "payment", States: [][]string{{"created"}, {"paid"}}, Order: []onceward.Component{onceward.Time, onceward.Rank}})
	return &onceward.Mapping{Source: "acme", Revision: 1, Kinds: map[string]*onceward.Kind{"payment": kind}}, err
}

// commitOne stores one event with this id.
func commitOne(s onceward.Store, id int64) error {
	mapping, err := newMapping()
	if err != nil {
		return err
	}
	return s.Commit(context.Background(), &onceward.Batch{Arrivals: []*onceward.Arrival{arrival(mapping, id, []byte("body"), noon)}, Now: noon})
}

// arrival is event n, which says something about one of ten thousand payments.
func arrival(mapping *onceward.Mapping, n int64, body []byte, now time.Time) *onceward.Arrival {
	key := fmt.Sprintf("evt_%d", n)
	return &onceward.Arrival{
		Event: &onceward.Event{ID: n, Source: "acme", Key: key, Type: "charge.succeeded", Digest: onceward.DigestOf([]byte(key)), Delivery: &onceward.Delivery{
			At: now, Method: "POST", Target: "/in/acme", Remote: "203.0.113.7", Body: body,
			Header: map[string][]string{"Content-Type": {"application/json"}, "User-Agent": {"Sender/1.0"}, "X-Signature": {strings.Repeat("ab", 32)}},
		}},
		Facts: []onceward.Fact{{
			Rule: "charge", Kind: "payment", Key: paymentKey(n), Status: "paid", Time: onceward.Some(n),
			Fields: []onceward.Part{
				{Field: "amount", Value: onceward.Int(n)}, {Field: "currency", Value: onceward.String("BRL")},
				{Field: "order", Value: onceward.String("A-1")}, {Field: "captured", Value: onceward.Int(n)},
			},
		}},
		Mapping: mapping,
	}
}

// paymentKey is the key of the payment that event n is about.
func paymentKey(n int64) string { return fmt.Sprintf("pay_%d", n*7919%10000) }
