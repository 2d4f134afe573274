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

// testProcesses is the test of law 4: two processes race complete against first,
// ten thousand times, and no job goes back.
func testProcesses(t *testing.T, h Harness) {
	w := newWorld(t, h)
	if h.Alone != "" {
		t.Skipf("needs a second process: %s", h.Alone)
	}
	rounds, each := 10_000, 20
	if testing.Short() {
		rounds = 1_000
	}
	workers := []*process{w.start(), w.start()}
	contended, total := 0, report{}
	for first := 0; first < rounds; first += each {
		for side, p := range workers {
			if err := p.orders.Encode(order{Do: "race", Side: side, First: first, Rounds: each}); err != nil {
				t.Fatal(err)
			}
		}
		most := 0
		for side, p := range workers {
			r, err := p.answer()
			if err != nil {
				t.Fatalf("worker %d failed in the batch from round %d: %v", side, first, err)
			}
			total.New += r.New
			total.Duplicate += r.Duplicate
			most = max(most, r.Contended)
		}
		contended += most
	}
	for _, p := range workers {
		p.stop()
	}
	t.Logf("%d of %d rounds waited for or were refused by the other process", contended, rounds)
	if contended*10 < rounds {
		t.Errorf("only %d of %d rounds met the other process; that is no race", contended, rounds)
	}
	if shared := rounds / 2; total.New != 2*rounds+shared || total.Duplicate != shared {
		t.Errorf("%d new and %d duplicate, want %d and %d", total.New, total.Duplicate, 2*rounds+shared, shared)
	}
	w.checkRace(rounds)
}

// checkRace wants every job to have succeeded, never to have gone back, and to
// have made each of its jobs once.
func (w *world) checkRace(rounds int) {
	w.t.Helper()
	for r := range rounds {
		key := fmt.Sprintf("j%d", r)
		if e := w.entity("job", key); e.Status != "succeeded" {
			w.t.Fatalf("%s ends as %s", key, e.Status)
		}
		done := false
		for _, f := range w.history("job", key) {
			if done && f.To != "succeeded" {
				w.t.Fatalf("%s went back to %s", key, f.To)
			}
			done = done || f.To == "succeeded"
		}
		if r%50 == 0 {
			w.checkHistory("job", key)
		}
	}
	s := w.stats()
	if want := int64(2*rounds + rounds/2); s.Events != want || s.Entities != int64(rounds) ||
		s.Facts[onceward.Applied]+s.Facts[onceward.Stale]+s.Facts[onceward.Same] != want || s.Repeats != int64(rounds/2) {
		w.t.Errorf("stats: %+v; want %d events and facts, %d rows, %d repeats", s, want, rounds, rounds/2)
	}
	succeeded := 0
	for {
		jobs := w.claimJobs(w.store, []string{"job.succeeded"}, 1000, began)
		if len(jobs) == 0 {
			break
		}
		succeeded += len(jobs)
	}
	if succeeded != rounds {
		w.t.Errorf("%d jobs of job.succeeded, want %d", succeeded, rounds)
	}
}

// testKilled kills a process in the middle of its load; every event that it had
// reported durable is there, once, with its facts.
func testKilled(t *testing.T, h Harness) {
	w := newWorld(t, h)
	if h.Alone != "" {
		t.Skipf("needs a second process: %s", h.Alone)
	}
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
