package onceward_test

import (
	"testing"

	"github.com/onceward/onceward"
)

// BenchmarkAdd is what one event costs a commit, in processor time, beside SQL:
// read the row, fold one newer fact of four fields in, write it.
func BenchmarkAdd(b *testing.B) {
	kind := mustKind(onceward.Kind{
		Name: "payment", States: [][]string{{"created"}, {"pending"}, {"paid"}, {"refunded"}},
		Order: []onceward.Component{onceward.Time, onceward.Rank},
	})
	fact := func(n int64, status string) onceward.Fact {
		return onceward.Fact{Kind: "payment", Key: "pi_1", Time: onceward.Some(n), Status: status, Fields: []onceward.Part{
			{Field: "amount", Value: onceward.Int(4990)}, {Field: "captured", Value: onceward.Int(n)},
			{Field: "currency", Value: onceward.String("BRL")}, {Field: "order", Value: onceward.String("A-1")},
		}}
	}
	row := onceward.Fold(kind, []onceward.Fact{fact(1, "created"), fact(2, "pending")})
	data, state := row.Data(), row.EncodeState()
	b.ReportAllocs()
	for b.Loop() {
		r, err := onceward.DecodeRow("pending", "pending", 2, 1, data, state)
		if err != nil {
			b.Fatal(err)
		}
		f := fact(3, "paid")
		if _, err := r.Add(kind, &f, false, nil); err != nil {
			b.Fatal(err)
		}
		_, _ = r.Data(), r.EncodeState()
	}
}

// BenchmarkPlan is a batch of new events, each about an entity of its own.
func BenchmarkPlan(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		l := newLedger()
		batch := &onceward.Batch{}
		for i := range 64 {
			key := string(rune('A' + i))
			f := song("partial")
			f.Key = key
			batch.Arrivals = append(batch.Arrivals, arrive(key, key, f))
		}
		if err := l.commit(batch); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOneTick is a job without a clock whose callbacks all tell the same
// status and another progress: one tick, which grows. An event must cost the same
// however many came before.
func BenchmarkOneTick(b *testing.B) {
	row, progress := &onceward.Row{}, int64(0)
	b.ReportAllocs()
	for b.Loop() {
		progress++
		f := song("running")
		f.Fields = []onceward.Part{{Field: "progress", Value: onceward.Int(progress)}}
		if _, err := row.Add(songKind, &f, false, nil); err != nil {
			b.Fatal(err)
		}
	}
}
