package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/onceward/onceward"
)

// testPaging finds the few that a filter wants among more rows than any store
// looks at in one go.
func testPaging(t *testing.T, h Harness) {
	w := newWorld(t, h)
	ctx := context.Background()
	const many = 2500
	other := newMapping(t, "other", 1)
	var batch []*onceward.Arrival
	var rare, held []int64
	for i := range many {
		a := w.arrival(fmt.Sprintf("e%d", i), told(fmt.Sprintf("j%04d", i), "text"))
		a.Facts[0].Held = "not yet"
		a.Event.Source, a.Mapping = "other", other
		if i%1200 == 1 {
			a.Facts[0].Held, a.Facts[0].Status, a.Event.Type = "", "partial", "rare"
			rare = append(rare, a.Event.ID)
		} else if i%500 != 2 {
			a.Facts = append(a.Facts, told(fmt.Sprintf("k%04d", i), "text"))
		}
		if i%2 == 0 {
			a.Facts = append(a.Facts, told("all", "text"))
		}
		if i%1100 == 5 {
			a.Event.Source, a.Mapping = w.source, w.mapping
			held = append(held, a.Event.ID)
		}
		batch = append(batch, a)
		if len(batch) == 250 {
			w.commit(batch...)
			batch = nil
		}
	}
	events, err := w.store.Events(ctx, onceward.EventQuery{Type: "rare", Limit: 2})
	if err != nil || len(events) != 2 || events[0].ID != rare[2] || events[1].ID != rare[1] {
		t.Errorf("the newest two events of a type: %v, %v; want %v", events, err, rare[1:])
	}
	all, err := w.store.Events(ctx, onceward.EventQuery{Limit: 3 * many})
	if err != nil || len(all) != many {
		t.Errorf("all events: %d, %v; want %d", len(all), err, many)
	}
	entities, err := w.store.Entities(ctx, onceward.EntityQuery{Status: "partial"})
	if err != nil || len(entities) != len(rare) || entities[2].Key != "j2401" {
		t.Errorf("the rows of a status: %d, %v; want %d", len(entities), err, len(rare))
	}
	entities, err = w.store.Entities(ctx, onceward.EntityQuery{Source: "other", Kind: "job", Limit: 3 * many})
	if err != nil || len(entities) < 2400 || entities[len(entities)-1].Key < "k2490" {
		t.Errorf("all rows of a source: %d, %v", len(entities), err)
	}
	history, err := w.store.History(ctx, onceward.Ref{Source: "other", Kind: "job", Key: "all"})
	if err != nil || len(history) != many/2 {
		t.Errorf("a history: %d facts, %v; want %d", len(history), err, many/2)
	}
	for i, f := range history {
		if f.Seq != int64(i+1) {
			t.Fatalf("fact %d of a history is number %d", i+1, f.Seq)
		}
	}
	long := w.arrival("long")
	for i := range 2100 {
		long.Facts = append(long.Facts, told(fmt.Sprintf("l%04d", 2099-i), "text"))
	}
	w.commit(long)
	facts, err := w.store.EventFacts(ctx, long.Event.ID)
	if err != nil || len(facts) != len(long.Facts) {
		t.Fatalf("the facts of an event: %d, %v; want %d", len(facts), err, len(long.Facts))
	}
	for i, f := range facts {
		if f.Fact.Key != long.Facts[i].Key {
			t.Fatalf("fact %d of the event is about %s, want %s", i, f.Fact.Key, long.Facts[i].Key)
		}
	}
	ids, err := w.store.HeldEvents(ctx, w.source, 2, 0, 10)
	equal(t, "the events with held facts", held, ids)
	if err != nil {
		t.Error(err)
	}
}
