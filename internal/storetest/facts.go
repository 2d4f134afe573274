package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/onceward/onceward"
)

// testHistory reads facts back as they were told, in order of arrival.
func testHistory(t *testing.T, h Harness) {
	w := newWorld(t, h)
	full := onceward.Fact{
		Rule: "charge", Kind: "payment", Key: "p1", Epoch: onceward.Some(-4), Sequence: onceward.Some(1 << 62), Time: onceward.Some(7e9),
		Hint: true, Status: "paid",
		Fields: []onceward.Part{
			field("amount", onceward.Null), field("text", onceward.String("a\u0000\"<ä>")), {Field: "refunds", By: "r,1", Value: onceward.Int(-5)}, field("list", onceward.TrustedJSON(`[1.50,{"a":null}]`)),
		},
		Was:   []onceward.Part{field("status", onceward.String("created")), field("amount", onceward.Int(3))},
		Local: []onceward.Part{field("order", onceward.String("A-1"))},
		Notes: []string{"field x: no such member"},
	}
	plain := paid("p1", "created", 3)
	plain.Epoch = onceward.Some(-4)
	first, second := w.arrival("e1", full), w.arrival("e2", told("j1", "text"), plain)
	w.commit(first, second)

	kind := w.mapping.Kinds["payment"]
	want := []onceward.StoredFact{
		{Fact: full, Ref: w.ref("payment", "p1"), Seq: 1, EventID: first.Event.ID, EventKey: "e1", EventType: "thing.told", At: began,
			Verdict: onceward.Applied, Version: 1, Revision: 1, To: "paid", Order: kind.StatusOrder(&full), Decided: "first"},
		{Fact: plain, Ref: w.ref("payment", "p1"), Seq: 2, EventID: second.Event.ID, EventKey: "e2", EventType: "thing.told", At: began,
			Verdict: onceward.Applied, Version: 2, Revision: 1, From: "paid", To: "created", Order: kind.StatusOrder(&plain), Against: kind.StatusOrder(&full), Decided: "firm"},
	}
	equal(t, "the history", want, w.history("payment", "p1"))
	facts, err := w.store.EventFacts(context.Background(), second.Event.ID)
	if err != nil {
		t.Fatal(err)
	}
	job := w.history("job", "j1")
	equal(t, "the facts of the event", []onceward.StoredFact{job[0], want[1]}, facts)
	if got := w.history("payment", "nobody"); len(got) != 0 {
		t.Errorf("an entity that does not exist has %d facts", len(got))
	}
	w.checkHistory("payment", "p1")
}

// testStats counts.
func testStats(t *testing.T, h Harness) {
	w := newWorld(t, h)
	equal(t, "the counts of nothing", onceward.Stats{}, w.stats())
	w.handle("job")
	w.tell("e1", "j1", "partial")
	w.tell("e2", "j1", "text")
	w.tell("e3", "j1", "partial")
	w.tell("e3", "j1", "partial")
	held := told("j2", "")
	held.Held = "no status"
	w.commit(w.arrival("e4", held, told("j3", "text")), w.arrival("e5"))
	if err := w.store.Quarantine(context.Background(), []onceward.Rejection{w.rejection("forged", 1)}, onceward.QuarantineLimits{Count: 1, Bytes: 100}); err != nil {
		t.Fatal(err)
	}
	equal(t, "the counts", onceward.Stats{
		Events: 5, Repeats: 1, Entities: 2, JobsPending: 2, Quarantined: 1,
		Facts: map[onceward.Verdict]int64{onceward.Applied: 2, onceward.Stale: 1, onceward.Same: 1, onceward.Held: 1},
	}, w.stats())
}

// testHeld keeps facts that cannot be computed and takes them up, once.
func testHeld(t *testing.T, h Harness) {
	ctx := context.Background()
	heldEvents := func(w *world, below, after int64, limit int) []int64 {
		t.Helper()
		ids, err := w.store.HeldEvents(ctx, w.source, below, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	homeless := onceward.Fact{Rule: "callback", Held: "no member body.id"}
	named := onceward.Fact{Rule: "callback", Kind: "job", Key: "j1", Held: "status \"odd\" is not listed"}

	t.Run("kept and taken up", func(t *testing.T) {
		w := newWorld(t, h)
		w.handle("job")
		a, b := w.arrival("e1", homeless, named, told("j2", "text")), w.arrival("e2", homeless)
		w.commit(a, b)
		equal(t, "the verdicts", []string{"held  0", "held  0", "applied text 1"}, verdicts(a))
		w.noEntity("job", "j1")
		if e := w.event(a.Event.ID); e.Facts != 3 || e.Held != 2 {
			t.Errorf("the event counts %d facts, %d held; want 3, 2", e.Facts, e.Held)
		}
		if s := w.stats(); s.Entities != 1 || s.Facts[onceward.Held] != 3 {
			t.Errorf("stats count %d rows, %d held; want 1, 3", s.Entities, s.Facts[onceward.Held])
		}
		equal(t, "held under 1", []int64(nil), heldEvents(w, 1, 0, 10))
		equal(t, "held under 2", []int64{a.Event.ID, b.Event.ID}, heldEvents(w, 2, 0, 10))
		equal(t, "a page", []int64{a.Event.ID}, heldEvents(w, 2, 0, 1))
		equal(t, "the next page", []int64{b.Event.ID}, heldEvents(w, 2, a.Event.ID, 1))

		w.mapping = newMapping(t, w.source, 2)
		again := w.retake(a, told("j1", "text"), told("j1", "partial"))
		w.commit(again)
		equal(t, "the verdicts", []string{"applied text 1", "applied partial 2"}, verdicts(again))
		equal(t, "the outcome", []string{"new"}, outcomes(again))
		if again.StoredID != a.Event.ID {
			t.Errorf("stored id %d, want %d", again.StoredID, a.Event.ID)
		}
		if e := w.event(a.Event.ID); e.Facts != 3 || e.Held != 0 {
			t.Errorf("the event counts %d facts, %d held; want 3, 0", e.Facts, e.Held)
		}
		if e := w.entity("job", "j1"); e.Status != "partial" || e.Facts != 2 || e.Version != 2 {
			t.Errorf("the row is %s, %d facts, version %d; want partial, 2, 2", e.Status, e.Facts, e.Version)
		}
		equal(t, "held under 2", []int64{b.Event.ID}, heldEvents(w, 2, 0, 10))
		if s := w.stats(); s.Facts[onceward.Held] != 1 || s.Facts[onceward.Applied] != 3 || s.Entities != 2 {
			t.Errorf("stats: %+v; want 1 held, 3 applied, 2 rows", s)
		}
		if n := len(w.jobs()); n != 3 {
			t.Errorf("%d jobs, want 3", n)
		}
		third := w.retake(a, told("j1", "succeeded"))
		w.commit(third)
		equal(t, "the outcome of a second taking up", []string{"duplicate"}, outcomes(third))
		if e := w.entity("job", "j1"); e.Status != "partial" {
			t.Errorf("the row is %s, want partial", e.Status)
		}
	})
	t.Run("one is held still", testStillHeld(h))
	t.Run("of several revisions", func(t *testing.T) {
		w := newWorld(t, h)
		var all []int64
		for i := range 12 {
			w.mapping = newMapping(t, w.source, int64(1+i*5%3)) // 1, 3, 2, 1, ...
			a := w.arrival(fmt.Sprintf("e%d", i), homeless, homeless)
			w.commit(a)
			if w.mapping.Revision < 3 {
				all = append(all, a.Event.ID)
			}
		}
		equal(t, "held under 3", all, heldEvents(w, 3, 0, 100))
		equal(t, "the first", all[:5], heldEvents(w, 3, 0, 5))
		equal(t, "the rest", all[5:], heldEvents(w, 3, all[4], 5))
	})
	t.Run("taken up at once", func(t *testing.T) {
		w := newWorld(t, h)
		w.handle("job")
		a := w.arrival("e1", named)
		w.commit(a)
		stores := w.handleSet(4)
		w.mapping = newMapping(t, w.source, 2)
		takers := make([]*onceward.Arrival, 8)
		for i := range takers {
			takers[i] = w.retake(a, told("j1", "text"))
		}
		atOnce(t, len(takers), func(i int) error { return stores[i%4].Commit(ctx, w.batch(takers[i])) })
		count := map[onceward.Outcome]int{}
		for _, a := range takers {
			count[a.Outcome]++
		}
		equal(t, "the outcomes", map[onceward.Outcome]int{onceward.New: 1, onceward.Duplicate: 7}, count)
		if facts := w.history("job", "j1"); len(facts) != 1 || facts[0].Verdict != onceward.Applied {
			t.Errorf("the history: %+v; want one applied fact", facts)
		}
		if n := len(w.jobs()); n != 1 {
			t.Errorf("%d jobs, want 1", n)
		}
	})
}

// testStillHeld lets two processes with one mapping take an event up of whose
// facts one stays held: the others are told once.
func testStillHeld(h Harness) func(t *testing.T) {
	return func(t *testing.T) {
		w := newWorld(t, h)
		w.handle("job")
		homeless := onceward.Fact{Rule: "callback", Held: "no member body.id"}
		named := onceward.Fact{Rule: "callback", Kind: "job", Key: "j1", Held: "no status"}
		stores := w.handleSet(2)
		const rounds = 10
		for r := range rounds {
			w.mapping = newMapping(t, w.source, 1)
			named.Key = fmt.Sprintf("j%d", r)
			a := w.arrival("e"+named.Key, named, homeless)
			w.commit(a)
			w.mapping = newMapping(t, w.source, 2)
			takers := []*onceward.Arrival{w.retake(a, told(named.Key, "text"), homeless), w.retake(a, told(named.Key, "text"), homeless)}
			atOnce(t, len(takers), func(i int) error { return stores[i].Commit(context.Background(), w.batch(takers[i])) })
			late := w.retake(a, told(named.Key, "text"), homeless)
			w.commit(late)
			words := outcomes(takers...)
			slices.Sort(words)
			equal(t, "the outcomes", []string{"duplicate", "new", "duplicate"}, append(words, outcomes(late)...))
			if facts := w.history("job", named.Key); len(facts) != 1 || facts[0].Verdict != onceward.Applied {
				t.Fatalf("the history: %+v; want one applied fact", facts)
			}
			if e := w.event(a.Event.ID); e.Facts != 2 || e.Held != 1 {
				t.Fatalf("the event counts %d facts, %d held; want 2, 1", e.Facts, e.Held)
			}
			ids, err := w.store.HeldEvents(context.Background(), w.source, 3, a.Event.ID-1, 10)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "held under 3", []int64{a.Event.ID}, ids)
		}
		if n := len(w.jobs()); n != rounds {
			t.Errorf("%d jobs, want %d", n, rounds)
		}
	}
}

// retake takes up the held facts of a stored event.
func (w *world) retake(a *onceward.Arrival, facts ...onceward.Fact) *onceward.Arrival {
	event := *a.Event
	return &onceward.Arrival{Event: &event, Facts: facts, Mapping: w.mapping, Retake: event.ID}
}
