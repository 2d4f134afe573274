package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/pgtest"
	"github.com/onceward/onceward/postgres"
)

// BenchmarkCommit is what a durable event costs a store alone, by the size of its
// batch: 1 KiB of body, the headers of a sender, one fact about one of 20,000
// entities, which changes it and makes a job. The server syncs. Beside the time it
// reports the processor time of this process and of all of the server's, and the
// bytes of log that the server wrote.
//
//	go test ./postgres -run '^$' -bench Commit -benchtime 3s
func BenchmarkCommit(b *testing.B) {
	if !readsProcesses() {
		b.Fatal("the processor time of other processes is read from /proc, which is not here: run this on Linux")
	}
	server := pgtest.New(b, pgtest.Options{Fsync: true, Settings: map[string]string{
		"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "30min",
	}})
	for _, lanes := range []int{1, 2} {
		for _, size := range []int{1, 8, 16, 64, 256} {
			b.Run(fmt.Sprintf("lanes=%d/events=%d", lanes, size), func(b *testing.B) {
				benchmarkCommit(b, server.Database(b), lanes, size)
			})
		}
	}
}

func benchmarkCommit(b *testing.B, dsn string, lanes, size int) {
	ctx := context.Background()
	s := open(b, dsn, postgres.Config{Lanes: lanes})
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(ctx)
	w := newPayments(b)
	for first := 0; first < payments; first += 500 { // entities that exist: an insert is the exception
		commitAll(b, s, 1, []*onceward.Batch{w.batch(500, func(i int) int { return first + i })})
	}
	batches := make([]*onceward.Batch, b.N)
	for i := range batches {
		batches[i] = w.batch(size, func(int) int { return w.rand.IntN(payments) })
	}
	runtime.GC()

	before := takeReading(b, conn)
	b.ReportAllocs()
	b.ResetTimer()
	commitAll(b, s, lanes, batches)
	b.StopTimer()
	takeReading(b, conn).report(b, before, float64(b.N*size))
	for _, batch := range batches {
		for _, a := range batch.Arrivals {
			// Lanes overtake each other, and then a fact may be stale.
			if v := a.Results[0].Verdict; a.Outcome != onceward.New || v != onceward.Applied && lanes == 1 {
				b.Fatalf("an event is %s, its fact %s", a.Outcome, v)
			}
		}
	}
}

// commitAll commits batches, as many at once as there are lanes.
func commitAll(b *testing.B, s *postgres.Store, lanes int, batches []*onceward.Batch) {
	b.Helper()
	var next atomic.Int64
	var running sync.WaitGroup
	for range lanes {
		running.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(batches)); i = next.Add(1) - 1 {
				if err := s.Commit(context.Background(), batches[i]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
}

// payments is how many entities the events of a benchmark are about.
const payments = 20_000

// paymentEvents makes events about payments, each newer than those before.
type paymentEvents struct {
	mapping  *onceward.Mapping
	handlers []onceward.Handler
	rand     *rand.Rand
	body     []byte
	id       int64
	now      time.Time
}

func newPayments(b *testing.B) *paymentEvents {
	b.Helper()
	kind, err := onceward.NewKind(onceward.Kind{
		Name: "payment", States: [][]string{{"created"}, {"pending"}, {"paid"}, {"refunded"}},
		Order: []onceward.Component{onceward.Time, onceward.Rank},
	})
	if err != nil {
		b.Fatal(err)
	}
	handler, err := onceward.ParseHandler("payment")
	if err != nil {
		b.Fatal(err)
	}
	w := &paymentEvents{
		mapping:  &onceward.Mapping{Source: "acme", Hash: "one", Revision: 1, Kinds: map[string]*onceward.Kind{"payment": kind}},
		handlers: []onceward.Handler{handler}, rand: rand.New(rand.NewPCG(1, 2)), id: 1 << 40, now: time.Now(),
	}
	w.body = []byte(`{"id": "evt_0000000000000000", "object": "event", "type": "payment.updated", "data": {"object": {"padding": "`)
	for len(w.body) < 1020 {
		w.body = append(w.body, byte('a'+w.rand.IntN(26)))
	}
	w.body = append(w.body, `"}}}`...)
	return w
}

func (w *paymentEvents) batch(n int, entity func(i int) int) *onceward.Batch {
	b := &onceward.Batch{Handlers: w.handlers, Now: w.now}
	for i := range n {
		b.Arrivals = append(b.Arrivals, w.arrival(entity(i)))
	}
	return b
}

func (w *paymentEvents) arrival(payment int) *onceward.Arrival {
	w.id++
	key := fmt.Sprintf("evt_%016x", w.rand.Uint64())
	body := bytes.Clone(w.body)
	copy(body[len(`{"id": "`):], key)
	return &onceward.Arrival{
		Event: &onceward.Event{
			ID: w.id, Source: "acme", Scope: onceward.Scope{Mode: "live"}, Key: key, Type: "payment.updated", Time: onceward.Some(w.now.UnixNano() + w.id),
			Digest: onceward.DigestOf(body),
			Delivery: &onceward.Delivery{At: w.now, Method: "POST", Target: "/in/acme", Remote: "203.0.113.7", Body: body, Header: http.Header{
				"Content-Type": {"application/json; charset=utf-8"}, "User-Agent": {"Acme/1.0 (+https://acme.example/docs/webhooks)"}, "Accept": {"*/*"},
				"Cache-Control": {"no-cache"}, "Content-Length": {strconv.Itoa(len(body))},
				"Acme-Signature": {"t=1772600767,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd"},
			}},
		},
		Facts: []onceward.Fact{{
			Rule: "payment", Kind: "payment", Key: fmt.Sprintf("pi_3MadeUpIntent%06d", payment), Time: onceward.Some(w.now.UnixNano() + w.id),
			Status: []string{"created", "pending", "paid", "refunded"}[w.rand.IntN(4)],
			Fields: []onceward.Part{
				{Field: "amount", Value: onceward.Int(4990)}, {Field: "captured", Value: onceward.Int(w.id)},
				{Field: "currency", Value: onceward.String("BRL")}, {Field: "order", Value: onceward.String(fmt.Sprintf("A-%d", payment))},
			},
		}},
		Mapping: w.mapping,
	}
}

// reading is what has been used up so far: processor time in seconds, and the
// server's log in bytes.
type reading struct {
	client, server float64
	wal            int64
}

// report reports what was used since before, an event.
func (r reading) report(b *testing.B, before reading, events float64) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/events, "ns/event")
	b.ReportMetric((r.client-before.client)*1e6/events, "client-µs/event")
	b.ReportMetric((r.server-before.server)*1e6/events, "server-µs/event")
	b.ReportMetric(float64(r.wal-before.wal)/events, "WAL-B/event")
	b.ReportMetric(events/b.Elapsed().Seconds(), "events/s")
}

func takeReading(b *testing.B, conn *pgx.Conn) reading {
	b.Helper()
	var r reading
	var backend int
	if err := conn.QueryRow(context.Background(), `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, pg_backend_pid()`).Scan(&r.wal, &backend); err != nil {
		b.Fatal(err)
	}
	postmaster, _, err := processTime(backend)
	if err != nil {
		b.Fatal(err)
	}
	if _, r.client, err = processTime(os.Getpid()); err != nil {
		b.Fatal(err)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		parent, used, err := processTime(pid)
		if err == nil && (pid == postmaster || parent == postmaster) { // others end while they are looked at
			r.server += used
		}
	}
	return r
}

// processTime returns a process's parent and the processor time that it and its
// children that have ended used, in seconds.
func processTime(pid int) (parent int, used float64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the state on, which is field 3
	const ticks = 100                                                         // a second, on every Linux
	var numbers [5]int
	for i, at := range []int{1, 11, 12, 13, 14} {
		if numbers[i], err = strconv.Atoi(fields[at]); err != nil {
			return 0, 0, err
		}
	}
	return numbers[0], float64(numbers[1]+numbers[2]+numbers[3]+numbers[4]) / ticks, nil
}

func readsProcesses() bool {
	_, _, err := processTime(os.Getpid())
	return err == nil
}
