package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/onceward/onceward"
)

// testErrors wants every method of a closed store to say that it is unavailable.
func testErrors(t *testing.T, h Harness) {
	w := newWorld(t, h)
	w.tell("e1", "j1", "text")
	s := w.store
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	ctx := context.Background()
	for name, err := range map[string]func() error{
		"Commit":   func() error { return s.Commit(ctx, w.batch(w.arrival("e2", told("j1", "text")))) },
		"Register": func() error { _, _, err := s.Register(ctx, w.source, "hash", nil, began); return err },
		"Node":     func() error { _, err := s.Node(ctx); return err },
		"Quarantine": func() error {
			return s.Quarantine(ctx, []onceward.Rejection{w.rejection("x", 1)}, onceward.QuarantineLimits{Count: 1, Bytes: 10})
		},
		"Ping":       func() error { return s.Ping(ctx) },
		"Event":      func() error { _, err := s.Event(ctx, 1); return err },
		"Events":     func() error { _, err := s.Events(ctx, onceward.EventQuery{}); return err },
		"Entity":     func() error { _, err := s.Entity(ctx, w.ref("job", "j1")); return err },
		"Entities":   func() error { _, err := s.Entities(ctx, onceward.EntityQuery{}); return err },
		"History":    func() error { _, err := s.History(ctx, w.ref("job", "j1")); return err },
		"EventFacts": func() error { _, err := s.EventFacts(ctx, 1); return err },
		"HeldEvents": func() error { _, err := s.HeldEvents(ctx, w.source, 1, 0, 1); return err },
		"Rejections": func() error { _, err := s.Rejections(ctx, "", 1); return err },
		"Stats":      func() error { _, err := s.Stats(ctx); return err },
		"Claim":      func() error { _, err := s.Claim(ctx, []string{"job"}, 1, began, time.Minute); return err },
		"Settle":     func() error { return s.Settle(ctx, []onceward.Settlement{{Handler: "job"}}, began) },
		"Jobs":       func() error { _, err := s.Jobs(ctx, 1); return err },
	} {
		if err := err(); !errors.Is(err, onceward.ErrUnavailable) || errors.Is(err, onceward.ErrNotFound) {
			t.Errorf("%s of a closed store: %v, want ErrUnavailable", name, err)
		}
	}
}

// testUnknownCommit commits again what was, or was not, kept.
func testUnknownCommit(t *testing.T, h Harness) {
	for _, applied := range []bool{true, false} {
		t.Run(fmt.Sprintf("kept %v", applied), func(t *testing.T) {
			w := newWorld(t, h)
			w.handle("job", "event:*")
			f := Faulty(w.store, Fault{Method: "Commit", Call: 1, Applied: applied, Err: onceward.ErrUnknownOutcome})
			arrivals := []*onceward.Arrival{w.arrival("e1", told("j1", "text")), w.arrival("e2", told("j1", "partial"))}
			if err := f.Commit(context.Background(), w.batch(arrivals...)); !errors.Is(err, onceward.ErrUnknownOutcome) || f.Struck() != 1 {
				t.Fatalf("commit: %v, want ErrUnknownOutcome", err)
			}
			equal(t, "the outcomes meanwhile", []string{"undecided", "undecided"}, outcomes(arrivals...))
			if err := f.Commit(context.Background(), w.batch(arrivals...)); err != nil {
				t.Fatal(err)
			}
			want, repeats := onceward.New, int64(0)
			if applied {
				want, repeats = onceward.Duplicate, 2
			}
			for _, a := range arrivals {
				if a.Outcome != want || a.StoredID != a.Event.ID {
					t.Errorf("%s: %v of event %d, want %v of %d", a.Event.Key, a.Outcome, a.StoredID, want, a.Event.ID)
				}
			}
			if s := w.stats(); s.Events != 2 || s.Repeats != repeats || len(w.jobs()) != 4 {
				t.Errorf("%d events, %d repeats, %d jobs; want 2, %d, 4", s.Events, s.Repeats, len(w.jobs()), repeats)
			}
			if n := w.checkHistory("job", "j1"); n != 2 {
				t.Errorf("%d facts, want 2", n)
			}
		})
	}
}

// testCancelled ends contexts while commits are under way: what was reported
// kept is, what was reported failed is not, and only an unknown outcome may be
// either.
func testCancelled(t *testing.T, h Harness) {
	t.Run("while it folds", testSlowFolding(h))
	w := newWorld(t, h)
	arrivals := make([]*onceward.Arrival, 300)
	errs := make([]error, len(arrivals))
	for i := range arrivals {
		arrivals[i] = w.arrival(fmt.Sprintf("e%d", i), told("j1", "text"))
		ctx, cancel := context.WithCancel(context.Background())
		if i == 0 { // one is certain to be refused, and the last to be kept
			cancel()
		}
		atOnce(t, 2, func(side int) error {
			if side == 0 {
				errs[i] = w.store.Commit(ctx, w.batch(arrivals[i]))
				return nil
			}
			for range i * 3 { // a little later each time, to end it at another place
				runtime.Gosched()
			}
			if i < len(arrivals)-1 {
				cancel()
			}
			return nil
		})
		cancel()
	}
	kept := map[bool]int{}
	for i, a := range arrivals {
		_, err := w.store.Event(context.Background(), a.Event.ID)
		stored := err == nil
		if err != nil && !errors.Is(err, onceward.ErrNotFound) {
			t.Fatal(err)
		}
		kept[stored]++
		if errs[i] != nil {
			w.wantUndecided(a)
		}
		if errs[i] == nil && !stored || errs[i] != nil && stored && !errors.Is(errs[i], onceward.ErrUnknownOutcome) {
			t.Errorf("commit %d: %v, and stored: %v", i, errs[i], stored)
		}
	}
	if n := w.checkHistory("job", "j1"); n != kept[true] {
		t.Errorf("%d facts of %d events", n, kept[true])
	}
	if kept[true] == 0 || kept[false] == 0 {
		t.Errorf("%d commits were kept and %d were not; the race was none", kept[true], kept[false])
	}
}

// testSlowFolding lets a deadline pass while a large batch is folded: the rest
// is not folded, and nothing is kept.
func testSlowFolding(h Harness) func(t *testing.T) {
	return func(t *testing.T) {
		w := newWorld(t, h)
		const facts = 3000
		folded, err := 0, error(nil)
		for patience := 200 * time.Millisecond; folded == 0; patience *= 2 { // long enough to come to the folding
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			kind, kindErr := onceward.NewKind(onceward.Kind{
				Name: "job", States: [][]string{{"text"}}, Order: []onceward.Component{onceward.Rank},
				Derive: func(onceward.Folded) onceward.Derived {
					folded++
					<-ctx.Done()
					return onceward.Derived{}
				},
			})
			if kindErr != nil {
				t.Fatal(kindErr)
			}
			w.mapping.Kinds["job"] = kind
			a := w.arrival("e1")
			for i := range facts {
				a.Facts = append(a.Facts, told(fmt.Sprintf("j%d", i), "text"))
			}
			err = w.store.Commit(ctx, w.batch(a))
			cancel()
			w.wantUndecided(a)
		}
		if !errors.Is(err, onceward.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, onceward.ErrUnknownOutcome) {
			t.Errorf("commit: %v, want ErrUnavailable for the deadline", err)
		}
		if folded >= facts {
			t.Errorf("all %d facts were folded after the deadline", folded)
		}
		equal(t, "the counts", onceward.Stats{}, w.stats())
	}
}

// testClosing closes a handle while commits are in flight.
func testClosing(t *testing.T, h Harness) {
	w := newWorld(t, h)
	s := w.second()
	const workers, each = 8, 200
	errs := make([][]error, workers)
	arrivals := make([][]*onceward.Arrival, workers)
	first := make(chan struct{}, workers*each)
	atOnce(t, workers+1, func(i int) error {
		if i == workers {
			for range 20 { // commits have been made, and more are under way
				<-first
			}
			return s.Close()
		}
		for n := range each {
			a := w.arrival(fmt.Sprintf("e%d-%d", i, n), told("j1", "text"))
			err := s.Commit(context.Background(), w.batch(a))
			arrivals[i], errs[i] = append(arrivals[i], a), append(errs[i], err)
			if err != nil {
				if !errors.Is(err, onceward.ErrUnavailable) && !errors.Is(err, onceward.ErrUnknownOutcome) {
					return err
				}
				break
			}
			first <- struct{}{}
		}
		return nil
	})
	stored, refused := 0, 0
	for i := range errs {
		for n, err := range errs[i] {
			_, readErr := w.store.Event(context.Background(), arrivals[i][n].Event.ID)
			switch {
			case err == nil && readErr != nil, errors.Is(err, onceward.ErrUnavailable) && !errors.Is(err, onceward.ErrUnknownOutcome) && readErr == nil:
				t.Errorf("commit: %v, read: %v", err, readErr)
			case readErr == nil:
				stored++
			}
			if err != nil {
				refused++
			}
		}
	}
	if n := w.checkHistory("job", "j1"); n != stored || refused == 0 {
		t.Errorf("%d facts of %d events, %d commits refused; want one each, and some refused", n, stored, refused)
	}
}

// testUserTables wants an application's tables to be left alone, and the view
// to be as documented.
func testUserTables(t *testing.T, h Harness) {
	w := &world{t: t, harness: h, db: h.Fresh(t), source: "acme"}
	tables := []string{"events", "facts", "rows", "jobs", "claims", "entities", "meta", "schema_migrations"}
	for _, name := range tables {
		w.db.Exec(t, "create table "+name+" (id integer primary key, mine text)")
		w.db.Exec(t, "insert into "+name+" (id, mine) values (1, 'kept')")
	}
	w.store = w.open()
	w.mapping = newMapping(t, w.source, 1)
	a := w.arrival("e1", paid("p1", "paid", 1, field("amount", onceward.Int(1))), paid("p1", "paid", 1, field("amount", onceward.Int(2))))
	a.Event.Scope = onceward.Scope{Account: "acct", Mode: "live"}
	w.commit(a)
	for _, name := range tables {
		equal(t, "the user's "+name, "1|kept", w.db.Query(t, "select id, mine from "+name))
		w.db.Exec(t, "insert into "+name+" (id, mine) values (2, 'more')")
	}
	equal(t, "the view", "acme|acct|live|payment|p1|paid|paid|2|amount",
		w.db.Query(t, "select source, account, mode, kind, key, status, told, version, tie from "+h.View))
	equal(t, "a field by SQL", "2", w.db.Query(t, "select data->>'amount' from "+h.View+" where created = updated"))
}
