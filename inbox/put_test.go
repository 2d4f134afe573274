package inbox_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/storetest"
)

func put(source, kind, key, idempotency string, local map[string]any) inbox.Registration {
	return inbox.Registration{Ref: onceward.Ref{Source: source, Kind: kind, Key: key}, Local: local, Key: idempotency}
}

func (w *world) put(reg inbox.Registration) inbox.Registered {
	w.t.Helper()
	r, err := w.Put(ctx, reg)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func TestARegistrationBeforeAndAfterTheCallback(t *testing.T) {
	body := order("e1", "o/1 é", "paid", "10:00:00")
	local := map[string]any{"user": 7, "plan": "gold", "big": onceward.Int(9007199254740993)}
	const data = `{"total":100,"local":{"big":9007199254740993,"plan":"gold","user":7}}`
	for _, first := range []string{"the registration", "the callback"} {
		t.Run(first+" comes first", func(t *testing.T) {
			w := newWorld(t, nil)
			changes := 0
			w.Handle("order", func(context.Context, onceward.Change) error { changes++; return nil })
			register := func() { w.put(put("shop", "order", "o/1 é", "k1", local)) }
			callback := func() { w.ok("shop", body) }
			steps := []func(){register, callback}
			if first == "the callback" {
				steps = []func(){callback, register}
			}
			for _, step := range steps {
				step()
			}
			row := w.row("shop", "order", "o/1 é")
			if row.Status != "paid" || string(row.Data) != data || row.Tie != nil {
				t.Errorf("the row is %s, %s, tie %v; want paid, %s", row.Status, row.Data, row.Tie, data)
			}
			register() // the same again: its answer was lost
			if again := w.row("shop", "order", "o/1 é"); again.Version != row.Version || again.Facts != row.Facts {
				t.Errorf("a repeated registration makes version %d of %d facts, it was %d of %d", again.Version, again.Facts, row.Version, row.Facts)
			}
			if _, err := w.Work(ctx); err != nil {
				t.Fatal(err)
			}
			want := 1 // the callback; and the registration where it made the row
			if first == "the registration" {
				want = 2
			}
			if changes != want {
				t.Errorf("handlers saw %d changes, want %d: local fields are none", changes, want)
			}
		})
	}
}

func TestARegistrationMakesTheRow(t *testing.T) {
	w := newWorld(t, nil)
	r := w.put(put("shop", "order", "o1", "", nil))
	if r.Outcome != onceward.New || r.Fact.Verdict != onceward.Applied || r.Fact.Status != "created" {
		t.Errorf("registered: %+v", r)
	}
	row := w.row("shop", "order", "o1")
	if row.Status != "created" || row.Version != 1 {
		t.Errorf("the row is %s, version %d", row.Status, row.Version)
	}
	e, err := w.Event(ctx, r.Event)
	if err != nil || e.Origin != onceward.Registered || string(e.Delivery.Body) != `{"local":{}}` || e.Delivery.Target != "/v1/entities/shop/order/o1" {
		t.Errorf("its event: %+v %v", e, err)
	}
	if again := w.put(put("shop", "order", "o1", "", nil)); again.Outcome != onceward.New || again.Event == r.Event {
		t.Errorf("without a key a second one is %v", again.Outcome)
	}
	w.put(put("shop", "order", "o1", "", map[string]any{"a": 1, "b": 2}))
	w.put(put("shop", "order", "o1", "", map[string]any{"a": nil, "b": 3}))
	if row := w.row("shop", "order", "o1"); string(row.Data) != `{"local":{"b":3}}` {
		t.Errorf("the fields are %s", row.Data)
	}
}

func TestASenderCannotUseTheKeyOfARegistration(t *testing.T) {
	w := newWorld(t, nil)
	w.put(put("shop", "order", "o1", "e1", nil))
	if a := w.ok("shop", order("e1", "o1", "paid", "10:00:00")); a.Outcome != "new" {
		t.Errorf("the sender's event of the same key is %s", a.Outcome)
	}
}

func TestARegistrationThatCannotBe(t *testing.T) {
	w := newWorld(t, nil)
	for _, test := range []struct {
		reg    inbox.Registration
		status int
		say    string
	}{
		{put("nobody", "order", "o1", "", nil), 404, "there are club, shop"},
		{put("shop", "job", "o1", "", nil), 400, "it has order"},
		{put("shop", "order", "", "", nil), 400, "key of the row is empty"},
		{put("shop", "order", strings.Repeat("k", 1025), "", nil), 400, "1024"},
		{put("shop", "order", "a\x00b", "", nil), 400, "texts"},
		{put("shop", "order", "o1", "", map[string]any{"f": func() {}}), 400, "JSON"},
		{put("shop", "order", "o1", "", map[string]any{"f": strings.Repeat("x", 1<<20)}), 400, "at most 1048576"},
		{put("club", "job", "j1", "", nil), 400, "acct_1/live"},
		{inbox.Registration{Ref: onceward.Ref{Source: "shop", Scope: onceward.Scope{Mode: "live"}, Kind: "order", Key: "o1"}}, 400, "no accounts"},
	} {
		_, err := w.Put(ctx, test.reg)
		var refused *inbox.RegistrationError
		if !errors.As(err, &refused) || refused.Status() != test.status || !strings.Contains(refused.Error(), test.say) {
			t.Errorf("%v: %v, want %d and %q", test.reg.Ref, err, test.status, test.say)
		}
	}
	if s := w.stats(); s.Events != 0 {
		t.Errorf("%d events are stored", s.Events)
	}
}

func TestAKeyThatWasUsedForAnotherRegistration(t *testing.T) {
	w := newWorld(t, nil)
	w.put(put("shop", "order", "o1", "k1", nil))
	for _, reg := range []inbox.Registration{put("shop", "order", "o2", "k1", nil), put("shop", "order", "o1", "k1", map[string]any{"a": 1})} {
		r, err := w.Put(ctx, reg)
		var refused *inbox.RegistrationError
		if !errors.As(err, &refused) || refused.Status() != 409 || r.Outcome != onceward.Conflict {
			t.Errorf("%v: %v, %v; want a conflict", reg.Ref, r.Outcome, err)
		}
	}
	if _, err := w.Find(ctx, "shop", "order", "o2"); !errors.Is(err, onceward.ErrNotFound) {
		t.Errorf("a conflicting registration made a row: %v", err)
	}
}

func TestTheScopeOfARegistration(t *testing.T) {
	w := newWorld(t, nil)
	live, test := onceward.Scope{Account: "a", Mode: "live"}, onceward.Scope{Account: "a", Mode: "test"}
	reg := put("club", "job", "j1", "", nil)
	reg.Ref.Scope, reg.Scoped = live, true
	w.put(reg)
	if r := w.put(put("club", "job", "j1", "", map[string]any{"n": 1})); r.Ref.Scope != live {
		t.Errorf("without a scope it went to %v", r.Ref)
	}
	reg.Ref.Scope = test
	w.put(reg)
	_, err := w.Put(ctx, put("club", "job", "j1", "", nil))
	var several *inbox.AmbiguousError
	if !errors.As(err, &several) || len(several.Refs) != 2 || !errors.Is(err, onceward.ErrAmbiguous) || !strings.Contains(err.Error(), "a/live") {
		t.Errorf("with two scopes: %v", err)
	}
	reg.Ref.Scope = onceward.Scope{Account: "live"} // a mode written as an account would make a row nobody finds
	var refused *inbox.RegistrationError
	if _, err := w.Put(ctx, reg); !errors.As(err, &refused) || refused.Status() != http.StatusBadRequest || !strings.Contains(err.Error(), "/live") {
		t.Errorf("a mode without its slash: %v", err)
	}
	reg.Ref.Scope = onceward.Scope{}
	if r := w.put(reg); r.Ref.Scope != (onceward.Scope{}) {
		t.Errorf("the empty scope, named, went to %v", r.Ref)
	}
}

func TestARegistrationWhileTheStoreIsDown(t *testing.T) {
	w := newWorld(t, nil)
	w.store.Plan(storetest.Fault{Method: "Commit"})
	_, err := w.Put(ctx, put("shop", "order", "o1", "k1", nil))
	var refused *inbox.RegistrationError
	if !errors.Is(err, onceward.ErrUnavailable) || errors.As(err, &refused) {
		t.Errorf("told %v", err)
	}
}
