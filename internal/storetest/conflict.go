package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/onceward/onceward"
)

// resolved is an arrival of a key with other bytes, after the caller compared
// the facts of both.
func (w *world) resolved(r onceward.Resolution, key, body string, facts ...onceward.Fact) *onceward.Arrival {
	a := w.arrivalOf(key, body, facts...)
	a.Resolution = r
	return a
}

func (w *world) wantArrival(a *onceward.Arrival, o onceward.Outcome, stored int64) {
	w.t.Helper()
	if a.Outcome != o || a.StoredID != stored || len(a.Results) > 0 {
		w.t.Errorf("%v of event %d with %d results, want %v of %d without", a.Outcome, a.StoredID, len(a.Results), o, stored)
	}
}

// wantEvents wants so many events of each outcome and further deliveries.
func (w *world) wantEvents(fresh, duplicates, conflicts, repeats int64) {
	w.t.Helper()
	events, err := w.store.Events(context.Background(), onceward.EventQuery{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	count := map[onceward.Outcome]int64{}
	all := int64(0)
	for _, e := range events {
		count[e.Outcome]++
		all += e.Repeats
	}
	equal(w.t, "the events", map[onceward.Outcome]int64{onceward.New: fresh, onceward.Duplicate: duplicates, onceward.Conflict: conflicts}, nonZero(count))
	if s := w.stats(); s.Events != fresh || s.Conflicts != conflicts || s.Repeats != repeats || all != repeats {
		w.t.Errorf("stats count %d new, %d conflicts, %d repeats, the events %d repeats; want %d, %d, %d", s.Events, s.Conflicts, s.Repeats, all, fresh, conflicts, repeats)
	}
}

func nonZero(count map[onceward.Outcome]int64) map[onceward.Outcome]int64 {
	for _, o := range []onceward.Outcome{onceward.New, onceward.Duplicate, onceward.Conflict} {
		count[o] += 0
	}
	return count
}

// testDiffers lets other bytes arrive under a known key.
func testDiffers(t *testing.T, h Harness) {
	t.Run("nothing is kept before it is resolved", func(t *testing.T) {
		w := newWorld(t, h)
		first := w.arrivalOf("e1", "one", told("j1", "text"))
		w.commit(first)
		other := w.arrivalOf("e1", "two", told("j2", "text"))
		w.commit(other)
		w.wantArrival(other, onceward.Differs, first.Event.ID)
		w.wantEvents(1, 0, 0, 0)
		w.noEntity("job", "j2")
	})
	t.Run("the same facts", func(t *testing.T) {
		w := newWorld(t, h)
		first := w.arrivalOf("e1", "one", told("j1", "text"))
		w.commit(first)
		other := w.resolved(onceward.ResolvedDuplicate, "e1", "two", told("j1", "text"))
		again, third := w.arrivalOf("e1", "two", told("j1", "text")), w.arrivalOf("e1", "three", told("j1", "text"))
		w.commit(other)
		w.commit(again, third)
		w.wantArrival(other, onceward.Duplicate, first.Event.ID)
		w.wantArrival(again, onceward.Duplicate, first.Event.ID)
		w.wantArrival(third, onceward.Differs, first.Event.ID)
		w.wantEvents(1, 0, 0, 2)
	})
	t.Run("no facts in either", func(t *testing.T) {
		w := newWorld(t, h)
		first := w.arrivalOf("e1", "one")
		w.commit(first)
		other := w.resolved(onceward.ResolvedDuplicate, "e1", "two")
		again := w.resolved(onceward.ResolvedDuplicate, "e1", "two")
		w.commit(other)
		w.commit(again, w.arrivalOf("e1", "two"))
		w.wantArrival(other, onceward.Duplicate, first.Event.ID)
		w.wantEvents(1, 1, 0, 3)
		kept := w.event(other.Event.ID)
		if kept.Outcome != onceward.Duplicate || kept.Of != first.Event.ID || string(kept.Delivery.Body) != "two" {
			t.Errorf("the other body: %v of %d, %q; want it kept as a duplicate of %d", kept.Outcome, kept.Of, kept.Delivery.Body, first.Event.ID)
		}
	})
	t.Run("other facts", func(t *testing.T) {
		w := newWorld(t, h)
		w.handle("job", "event:*")
		first := w.arrivalOf("e1", "one", told("j1", "text"))
		w.commit(first)
		other := w.resolved(onceward.ResolvedConflict, "e1", "two", told("j2", "text"), told("j1", "partial"))
		w.commit(other)
		again, third := w.resolved(onceward.ResolvedConflict, "e1", "two", told("j2", "text")), w.resolved(onceward.ResolvedConflict, "e1", "three")
		w.commit(again, third, w.arrivalOf("e1", "two", told("j2", "text")))
		w.wantArrival(other, onceward.Conflict, other.Event.ID)
		w.wantArrival(again, onceward.Conflict, other.Event.ID)
		w.wantArrival(third, onceward.Conflict, third.Event.ID)
		w.wantEvents(1, 0, 2, 2)
		kept := w.event(other.Event.ID)
		if kept.Of != first.Event.ID || string(kept.Delivery.Body) != "two" || kept.Facts != 0 {
			t.Errorf("the conflict: of %d, %q, %d facts; want its body kept, of %d, and nothing applied", kept.Of, kept.Delivery.Body, kept.Facts, first.Event.ID)
		}
		w.noEntity("job", "j2")
		if e := w.entity("job", "j1"); e.Status != "text" || len(w.jobs()) != 2 {
			t.Errorf("the row is %s with %d jobs, want text with 2", e.Status, len(w.jobs()))
		}
	})
	t.Run("two bodies in one batch", func(t *testing.T) {
		w := newWorld(t, h)
		first, other := w.arrivalOf("e1", "one", told("j1", "text")), w.arrivalOf("e1", "two", told("j2", "text"))
		w.commit(first, other)
		w.wantArrival(other, onceward.Differs, first.Event.ID)
		again, twice := w.resolved(onceward.ResolvedConflict, "e1", "two", told("j2", "text")), w.resolved(onceward.ResolvedConflict, "e1", "two", told("j2", "text"))
		w.commit(again, twice)
		w.wantArrival(again, onceward.Conflict, again.Event.ID)
		w.wantArrival(twice, onceward.Conflict, again.Event.ID)
		w.wantEvents(1, 0, 1, 1)
		w.noEntity("job", "j2")
	})
	t.Run("resolved at once", testDiffersAtOnce(h))
}

// testDiffersAtOnce races a key's bodies: one is new, each other is kept once.
func testDiffersAtOnce(h Harness) func(t *testing.T) {
	return func(t *testing.T) {
		w := newWorld(t, h)
		stores := w.handleSet(4)
		const rounds, workers, bodies = 20, 8, 3
		for r := range rounds {
			key := fmt.Sprintf("e%d", r)
			arrivals := make([]*onceward.Arrival, workers)
			atOnce(t, workers, func(i int) error {
				body := i % bodies
				fact := told(fmt.Sprintf("%s-j%d", key, body), "text")
				arrivals[i] = w.arrivalOf(key, fmt.Sprint(body), fact)
				s := stores[i%len(stores)]
				if err := s.Commit(context.Background(), w.batch(arrivals[i])); err != nil || arrivals[i].Outcome != onceward.Differs {
					return err
				}
				arrivals[i].Resolution = onceward.ResolvedConflict
				return s.Commit(context.Background(), w.batch(arrivals[i]))
			})
			w.wantOneOfEachBody(key, arrivals)
		}
		w.wantEvents(rounds, 0, rounds*(bodies-1), rounds*(workers-bodies))
	}
}

// wantOneOfEachBody wants each body of a key to be stored once, and all its
// arrivals to be told so.
func (w *world) wantOneOfEachBody(key string, arrivals []*onceward.Arrival) {
	w.t.Helper()
	stored := map[onceward.Digest]int64{}
	fresh := map[int64]bool{}
	for _, a := range arrivals {
		if id, known := stored[a.Event.Digest]; known && id != a.StoredID {
			w.t.Fatalf("%s: one body is stored as %d and as %d", key, id, a.StoredID)
		}
		stored[a.Event.Digest] = a.StoredID
		if a.Outcome == onceward.New {
			fresh[a.StoredID] = true
		}
		if got := w.event(a.StoredID); got.Digest != a.Event.Digest {
			w.t.Fatalf("%s: an arrival is said to be an event with other bytes", key)
		}
	}
	if len(fresh) != 1 {
		w.t.Fatalf("%s: %d arrivals are new, want 1", key, len(fresh))
	}
	entities, err := w.store.Entities(context.Background(), onceward.EntityQuery{})
	if err != nil {
		w.t.Fatal(err)
	}
	rows := 0
	for _, e := range entities {
		if len(e.Key) > len(key) && e.Key[:len(key)+1] == key+"-" {
			rows++
		}
	}
	if rows != 1 {
		w.t.Fatalf("%s: %d rows, want 1: the losers of a conflict leave none", key, rows)
	}
}

// testPlaceholders wants rows that hold nothing to be shown nowhere.
func testPlaceholders(t *testing.T, h Harness) {
	w := newWorld(t, h)
	held := told("held", "")
	held.Held = "no status"
	w.commit(w.arrivalOf("e1", "one", held, told("shown", "text")))
	w.commit(w.arrivalOf("e1", "two", told("differs", "text")))
	w.commit(w.resolved(onceward.ResolvedConflict, "e1", "two", told("conflict", "text")))
	w.commit(w.arrival("e2", told("untold", "not a status")))
	for _, key := range []string{"held", "differs", "conflict", "untold"} {
		w.noEntity("job", key)
	}
	entities, err := w.store.Entities(context.Background(), onceward.EntityQuery{})
	if err != nil || len(entities) != 1 || entities[0].Key != "shown" {
		t.Errorf("entities: %v, %v; want shown alone", entities, err)
	}
	equal(t, "the view", "shown", w.db.Query(t, "select key from "+h.View))
	if n := w.stats().Entities; n != 1 {
		t.Errorf("stats count %d rows, want 1", n)
	}
	if facts := w.history("job", "held"); len(facts) != 1 || facts[0].Verdict != onceward.Held || facts[0].Held != "no status" {
		t.Errorf("the history of a row with held facts only: %+v; want the held fact", facts)
	}
	w.tell("e3", "held", "partial")
	e := w.entity("job", "held")
	if e.Version != 1 || e.Facts != 2 || !e.Created.Equal(began) {
		t.Errorf("the row that is born then: version %d, %d facts, created %v", e.Version, e.Facts, e.Created)
	}
}
