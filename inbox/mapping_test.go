package inbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/storetest"
	"github.com/onceward/onceward/provider"
)

// refined is the shop's definition in a later version, which knows one more status.
var refined = strings.NewReplacer("paid, shipped", "paid, packed, shipped", "total: body.total", "total: body.total, id: body.id").Replace(shop)

func refine(cfg *inbox.Config) {
	cfg.Sources["shop"] = inbox.Source{Definition: []byte(refined), Secrets: []string{secret}}
}

func TestAProcessWithAnOlderMapping(t *testing.T) {
	old := newWorld(t, func(cfg *inbox.Config) { cfg.Development = true })
	old.ok("shop", order("e1", "o1", "created", "09:00:00"))
	next := worldOn(t, old.below, refine)
	next.ok("shop", order("e2", "o1", "packed", "10:00:00"))

	// The old process has not heard of it yet: the row's own revision holds the fact.
	if a := old.ok("shop", order("e3", "o1", "shipped", "11:00:00")); a.Facts[0].Verdict != "held" {
		t.Errorf("before it knows: %+v", a)
	}
	if a := old.ok("shop", order("e4", "o2", "paid", "11:00:00")); a.Facts[0].Verdict != "applied" {
		t.Errorf("a row that the newer one has not seen: %+v", a)
	}
	if err := old.Ready(ctx); err != nil {
		t.Errorf("before it knows: ready: %v", err)
	}
	old.KeepUp(ctx)
	if err := old.Ready(ctx); err == nil || !strings.Contains(err.Error(), "source shop") || !strings.Contains(err.Error(), "mapping 1, the newest is 2") {
		t.Errorf("ready: %v", err)
	}
	if a := old.ok("shop", order("e5", "o3", "paid", "12:00:00")); a.Outcome != "new" || a.Facts[0].Verdict != "held" || !strings.Contains(a.Facts[0].Held, "mapping 1") {
		t.Errorf("once it knows: %+v", a)
	}
	old.KeepUp(ctx) // takes nothing up: it is not the newest
	if s := old.stats(); s.Facts[onceward.Held] != 2 {
		t.Errorf("%d facts are held, want 2", s.Facts[onceward.Held])
	}

	next.KeepUp(ctx)
	if err := next.Ready(ctx); err != nil {
		t.Errorf("the newest: ready: %v", err)
	}
	for key, want := range map[string]string{"o1": "shipped", "o2": "paid", "o3": "paid"} {
		if row := next.row("shop", "order", key); row.Status != want {
			t.Errorf("order %s is %s, want %s", key, row.Status, want)
		}
	}
	if row := next.row("shop", "order", "o1"); row.Revision != 2 || !strings.Contains(string(row.Data), `"id":"e3"`) {
		t.Errorf("order o1 was made by mapping %d: %s", row.Revision, row.Data)
	}
	if s := next.stats(); s.Facts[onceward.Held] != 0 {
		t.Errorf("%d facts are still held", s.Facts[onceward.Held])
	}
	before := next.stats()
	next.KeepUp(ctx)
	if after := next.stats(); after.Events != before.Events || after.Facts[onceward.Same] != before.Facts[onceward.Same] {
		t.Error("taking up a second time does it again")
	}
}

func TestHeldFactsAreTakenUpWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := bubbled(t, nil)
		if a := old.ok("shop", order("e1", "o1", "packed", "09:00:00")); a.Outcome != "new" {
			t.Fatalf("%+v", a)
		}
		if s := old.stats(); s.Facts[onceward.Held] != 1 {
			t.Fatalf("%d facts held, want the one with a word that is not listed", s.Facts[onceward.Held])
		}
		next := worldOn(t, old.below, func(cfg *inbox.Config) { refine(cfg); cfg.Now = time.Now })
		time.Sleep(time.Minute)
		synctest.Wait()
		if row := next.row("shop", "order", "o1"); row.Status != "packed" {
			t.Errorf("after a minute the row is %s", row.Status)
		}
		if err := old.Ready(ctx); err == nil {
			t.Error("after a minute the old process does not know that it is old")
		}
		for _, w := range []*world{old, next} {
			if err := w.Close(ctx); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAnEventThatCannotBeTakenUpStopsNoOther(t *testing.T) {
	old := newWorld(t, nil)
	for i := range 3 {
		old.ok("shop", order(fmt.Sprint("e", i), fmt.Sprint("o", i), "packed", "09:00:00"))
	}
	next := worldOn(t, old.below, refine)
	next.store.Plan(storetest.Fault{Method: "Event", Call: 1, Err: errors.New("its page is damaged")})
	next.KeepUp(ctx)
	if s := next.stats(); s.Facts[onceward.Held] != 1 || s.Entities != 2 {
		t.Errorf("%d facts are held beside %d rows, want 1 and 2", s.Facts[onceward.Held], s.Entities)
	}
	next.store.Plan(storetest.Fault{Method: "Commit"})
	next.KeepUp(ctx) // the store is down: tried again the next time
	if s := next.stats(); s.Facts[onceward.Held] != 1 {
		t.Errorf("%d facts are held, want 1", s.Facts[onceward.Held])
	}
}

func TestWhatWasToldIsNotToldAgain(t *testing.T) {
	both := strings.Replace(shop, "facts:\n", "facts:\n  twin: {types: order.*, kind: order, key: 'body.order + \"-twin\"', status: {of: body.status, created: created}}\n", 1)
	w := newWorld(t, func(cfg *inbox.Config) {
		cfg.Sources["shop"] = inbox.Source{Definition: []byte(both), Secrets: []string{secret}}
	})
	w.ok("shop", order("e1", "o1", "paid", "09:00:00")) // the twin's fact is held, the other applied
	wider := strings.Replace(both, "created: created}", "created: [created, paid]}", 1)
	next := worldOn(t, w.below, func(cfg *inbox.Config) {
		cfg.Sources["shop"] = inbox.Source{Definition: []byte(wider), Secrets: []string{secret}}
	})
	next.KeepUp(ctx)
	if row := next.row("shop", "order", "o1-twin"); row.Status != "created" {
		t.Errorf("the twin is %s", row.Status)
	}
	if row := next.row("shop", "order", "o1"); row.Facts != 1 || row.Version != 1 {
		t.Errorf("the other row has %d facts, version %d; want the one", row.Facts, row.Version)
	}
}

// mapped is a source that reads in Go.
func mapped(t *testing.T) inbox.Source {
	parcel, err := onceward.NewKind(onceward.Kind{
		Name: "parcel", States: [][]string{{"sent"}, {"arrived"}}, Order: []onceward.Component{onceward.Rank},
	})
	if err != nil {
		t.Fatal(err)
	}
	return inbox.Source{
		Definition: []byte("verify: {scheme: hmac, header: X-Signature}\n"), Secrets: []string{secret},
		Kinds: []*onceward.Kind{parcel}, MapVersion: "1",
		Map: func(r *provider.Request) ([]provider.Reading, error) {
			var body struct{ ID, Parcel, Status, Say string }
			if err := json.Unmarshal(r.Body, &body); err != nil {
				return nil, errors.New("not the JSON we know")
			}
			switch body.Say {
			case "panic":
				panic("a bug in the mapping")
			case "nothing":
				return nil, nil
			}
			return []provider.Reading{{
				Event: onceward.Event{Key: body.ID, Type: "parcel." + body.Status},
				Facts: []onceward.Fact{{Rule: "go", Kind: "parcel", Key: body.Parcel, Status: body.Status}},
			}}, nil
		},
	}
}

func TestMappingInGo(t *testing.T) {
	w := newWorld(t, func(cfg *inbox.Config) { cfg.Development = true; cfg.Sources["post"] = mapped(t) })
	for _, test := range []struct{ body, outcome, verdict, held string }{
		{`{"ID":"1","Parcel":"p1","Status":"arrived"}`, "new", "applied", ""},
		{`{"ID":"2","Parcel":"p1","Status":"sent"}`, "new", "stale", ""},
		{`{"ID":"2","Parcel":"p1","Status":"sent"}`, "duplicate", "", ""},
		{`{"ID":"2","Parcel":"p2","Status":"sent"}`, "conflict", "", ""},
		{`{"ID":"3","Parcel":"p1","Status":"lost"}`, "new", "held", "not a state"},
		{`{"ID":"4","Status":"sent"}`, "new", "held", "key"},
		{`not JSON`, "new", "held", "not the JSON we know"},
		{`{"Say":"panic"}`, "new", "held", "panicked"},
		{`{"Say":"nothing"}`, "new", "", ""},
		{`{"Say":"nothing"}`, "duplicate", "", ""},
	} {
		a := w.ok("post", test.body)
		var verdict, held string
		if len(a.Facts) > 0 {
			verdict, held = a.Facts[0].Verdict, a.Facts[0].Held
		}
		if a.Outcome != test.outcome || verdict != test.verdict || !strings.Contains(held, test.held) {
			t.Errorf("%s: %s %s %q; want %s %s %q", test.body, a.Outcome, verdict, held, test.outcome, test.verdict, test.held)
		}
	}
	if row := w.row("post", "parcel", "p1"); row.Status != "arrived" {
		t.Errorf("the parcel has %s", row.Status)
	}
	other := mapped(t)
	other.MapVersion = "2"
	next := worldOn(t, w.below, func(cfg *inbox.Config) { cfg.Sources["post"] = other })
	next.KeepUp(ctx)
	w.KeepUp(ctx)
	if err := w.Ready(ctx); err == nil {
		t.Error("another MapVersion is no newer mapping")
	}
}

func TestADerivationThatPanicsIsOneEventsFault(t *testing.T) {
	kind, err := onceward.NewKind(onceward.Kind{
		Name: "parcel", States: [][]string{{"sent"}}, Order: []onceward.Component{onceward.Rank},
		Derive: func(f onceward.Folded) onceward.Derived {
			if text, _ := f.Field("bad").Bool(); text {
				panic("a bug in the derivation")
			}
			return onceward.Derived{}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := mapped(t)
	s.Kinds = []*onceward.Kind{kind}
	s.Map = func(r *provider.Request) ([]provider.Reading, error) {
		bad := strings.Contains(string(r.Body), "bad")
		return []provider.Reading{{
			Event: onceward.Event{Key: string(r.Body)},
			Facts: []onceward.Fact{{Kind: "parcel", Key: string(r.Body), Status: "sent", Fields: []onceward.Part{{Field: "bad", Value: onceward.Bool(bad)}}}},
		}}, nil
	}
	w := newWorld(t, func(cfg *inbox.Config) { cfg.Sources["post"] = s })
	if rec := w.deliver("post", "bad"); rec.Code != 500 {
		t.Errorf("answered %d", rec.Code)
	}
	for i := range 3 {
		if rec := w.deliver("post", fmt.Sprint("good", i)); rec.Code != 200 {
			t.Errorf("the next one is answered %d %s", rec.Code, rec.Body)
		}
	}
}

// TestAMappingInGoMayNotWriteWhatIsTheRowsOwn holds facts that tell a field of a
// name that the row uses, or fields of the application's.
func TestAMappingInGoMayNotWriteWhatIsTheRowsOwn(t *testing.T) {
	part := func(name string) []onceward.Part { return []onceward.Part{{Field: name, Value: onceward.Int(1)}} }
	facts := map[string]onceward.Fact{
		"fine":   {Fields: part("weight"), Was: part(onceward.StatusPart)},
		"status": {Fields: part("status")}, "told": {Fields: part("told")}, "local": {Fields: part("local")},
		"tie": {Fields: part("tie")}, "version": {Fields: part("version")}, "no name": {Fields: part("")},
		"a former local": {Was: part("local")}, "an own field": {Local: part("user")},
		"held with one": {Held: "not yet", Local: part("user")},
	}
	s := mapped(t)
	s.Map = func(r *provider.Request) ([]provider.Reading, error) {
		f := facts[string(r.Body)]
		f.Rule, f.Kind, f.Key, f.Status = "go", "parcel", "p1", "sent"
		return []provider.Reading{{Event: onceward.Event{Key: string(r.Body)}, Facts: []onceward.Fact{f}}}, nil
	}
	w := newWorld(t, func(cfg *inbox.Config) { cfg.Development = true; cfg.Sources["post"] = s })
	for name, want := range map[string]string{
		"status": `"status", which the row uses`, "told": `"told", which`, "local": `"local", which`, "tie": `"tie", which`,
		"version": `"version", which`, "no name": `"", which`, "a former local": `was: no field can be called "local"`,
		"an own field": "local: ", "held with one": "not yet",
	} {
		a := w.ok("post", name)
		if len(a.Facts) != 1 || a.Facts[0].Verdict != "held" || !strings.Contains(a.Facts[0].Held, want) {
			t.Errorf("%s: %+v, want it held: %s", name, a.Facts, want)
		}
	}
	if a := w.ok("post", "fine"); a.Facts[0].Verdict != "applied" {
		t.Errorf("what is fine: %+v", a.Facts)
	}
	if row := w.row("post", "parcel", "p1"); row.Status != "sent" || string(row.Data) != `{"weight":1}` {
		t.Errorf("the row is %s %s", row.Status, row.Data)
	}
}
