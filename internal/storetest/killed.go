package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/onceward/onceward"
)

// testKilled kills a process in the middle of its load; every event that it had
// reported durable is there, once, with its facts.
func testKilled(t *testing.T, h Harness) {
	needProcesses(t, h)
	w := newWorld(t, h)
	kills := 5
	if testing.Short() {
		kills = 2
	}
	r := rand.New(rand.NewPCG(9, 9))
	durable := map[int64]bool{}
	for k := range kills {
		p := w.start()
		if err := p.orders.Encode(order{Do: "load", First: k}); err != nil {
			t.Fatal(err)
		}
		for left := 5 + r.IntN(60); ; left-- {
			if left == 0 {
				if err := p.command.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			got, err := p.answer() // what it said before it died counts as well
			if err != nil {
				if left > 0 || !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("kill %d: the worker said: %v", k, err)
				}
				break
			}
			for _, id := range got.Committed {
				durable[id] = true
			}
		}
		if err := p.command.Wait(); err == nil {
			t.Fatal("the killed worker ended well")
		}
	}
	w.checkKilled(durable)
}

func (w *world) checkKilled(durable map[int64]bool) {
	w.t.Helper()
	stored, facts := 0, 0
	q := onceward.EventQuery{Limit: 1000}
	for {
		events, err := w.store.Events(context.Background(), q)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, e := range events {
			q.Before = e.ID
			stored++
			delete(durable, e.ID)
			if e.Facts != 1 {
				w.t.Fatalf("event %d has %d facts", e.ID, e.Facts)
			}
		}
		if len(events) == 0 {
			break
		}
	}
	if len(durable) > 0 {
		w.t.Errorf("%d events that were reported durable are gone", len(durable))
	}
	for i := range 3 {
		facts += w.checkHistory("job", fmt.Sprintf("j%d", i))
	}
	if s := w.stats(); facts != stored || s.Events != int64(stored) || stored == 0 || stored%8 != 0 {
		w.t.Errorf("%d facts, %d events, stats count %d; want as many facts as events, in whole batches of 8", facts, stored, s.Events)
	}
	w.tell("after", "j0", "succeeded")
	if w.db.Check != nil {
		w.db.Check(w.t)
	}
}
