package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/onceward/onceward"
)

// atOnce runs f n times at the same time and fails the test on any error.
func atOnce(t testing.TB, n int, f func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("worker %d: %v", i, err)
		}
	}
}

// handles returns n handles on the world's database, or n times the only one.
func (w *world) handleSet(n int) []onceward.Store {
	w.t.Helper()
	set := []onceward.Store{w.store}
	for len(set) < n {
		if w.harness.Alone != "" {
			set = append(set, w.store)
			continue
		}
		set = append(set, w.open())
	}
	return set
}

// testConcurrent lets many goroutines write about few entities and read them.
func testConcurrent(t *testing.T, h Harness) {
	w := newWorld(t, h)
	const workers, rounds, jobs = 8, 20, 5
	stores := w.handleSet(2)
	words := []string{"queued", "text", "partial", "succeeded"}
	atOnce(t, workers, func(i int) error {
		s := stores[i%len(stores)]
		for r := range rounds {
			job := fmt.Sprintf("j%d", (i+r)%jobs)
			a := w.arrival(fmt.Sprintf("e%d-%d", i, r), told(job, words[(i*r)%len(words)]), told("other "+job, "queued"))
			if err := s.Commit(context.Background(), w.batch(a)); err != nil {
				return err
			}
			if a.Outcome != onceward.New || len(a.Results) != 2 {
				return fmt.Errorf("event %s: outcome %v, %d results", a.Event.Key, a.Outcome, len(a.Results))
			}
			if _, err := s.Entity(context.Background(), w.ref("job", job)); err != nil {
				return err
			}
			if _, err := s.Entities(context.Background(), onceward.EntityQuery{Source: w.source}); err != nil {
				return err
			}
		}
		return nil
	})
	total := 0
	for i := range jobs {
		key := fmt.Sprintf("j%d", i)
		total += w.checkHistory("job", key) + w.checkHistory("job", "other "+key)
	}
	if want := 2 * workers * rounds; total != want {
		t.Errorf("%d facts are stored, want %d", total, want)
	}
	if s := w.stats(); s.Events != workers*rounds || s.Entities != 2*jobs {
		t.Errorf("stats count %d events and %d entities, want %d and %d", s.Events, s.Entities, workers*rounds, 2*jobs)
	}
}

// checkHistory wants the facts of an entity to be numbered without a gap, its
// version to count the applied ones, each to have become what it becomes when they
// are told again one by one, its row to be their fold, and returns how many facts
// there are.
func (w *world) checkHistory(kind, key string) int {
	w.t.Helper()
	facts := w.history(kind, key)
	version := int64(0)
	for i, f := range facts {
		if f.Verdict == onceward.Applied {
			version++
		}
		if f.Seq != int64(i+1) || f.Version != version {
			w.t.Fatalf("%s %s: fact %d has number %d and version %d, want %d and %d", kind, key, i, f.Seq, f.Version, i+1, version)
		}
	}
	w.checkVerdicts(kind, key, facts)
	w.checkFold(kind, key, facts)
	return len(facts)
}

// verdictOf is what became of one fact.
type verdictOf struct {
	Verdict        onceward.Verdict
	From, To       string
	Order, Against onceward.Order
	Decided        string
}

// checkVerdicts tells stored facts of one mapping to a row again, one by one.
func (w *world) checkVerdicts(kind, key string, stored []onceward.StoredFact) {
	w.t.Helper()
	row := &onceward.Row{}
	var facts []onceward.Fact
	for _, f := range stored {
		step, err := row.Add(w.mapping.Kinds[kind], &f.Fact, false, func() ([]onceward.Fact, error) { return facts, nil })
		if err != nil {
			w.t.Fatal(err)
		}
		equal(w.t, fmt.Sprintf("what became of fact %d of %s %s, told again and stored,", f.Seq, kind, key),
			verdictOf{step.Verdict, step.From, step.To, step.Order, step.Against, step.Decided},
			verdictOf{f.Verdict, f.From, f.To, f.Order, f.Against, f.Decided})
		if f.Verdict != onceward.Held {
			facts = append(facts, f.Fact)
		}
	}
}

// shown is what a row shows of the facts told.
type shown struct {
	Told  string
	Data  string
	Tie   []string
	Epoch onceward.Opt
}

// checkFold wants the stored row to be Fold of the stored facts (FOLD law 12).
func (w *world) checkFold(kind, key string, stored []onceward.StoredFact) {
	w.t.Helper()
	facts := make([]onceward.Fact, len(stored))
	for i, f := range stored {
		facts[i] = f.Fact
		if f.Verdict == onceward.Held && f.Held == "" {
			w.t.Fatalf("%s %s: held fact %d has no reason", kind, key, f.Seq)
		}
	}
	row := onceward.Fold(w.mapping.Kinds[kind], facts)
	e := w.entity(kind, key)
	equal(w.t, fmt.Sprintf("the row of %s %s, stored and folded anew,", kind, key),
		shown{row.Told, string(row.Data()), row.Tie(), row.Epoch},
		shown{e.Told, string(e.Data), e.Tie, e.Epoch})
}

// testDurable closes the only handle and finds everything through another.
func testDurable(t *testing.T, h Harness) {
	w := newWorld(t, h)
	second := w.second()
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	w.handle("job", "event:*")
	a := w.arrival("e1", told("j1", "text"))
	w.commit(a)
	ctx := context.Background()
	if err := w.store.Quarantine(ctx, []onceward.Rejection{w.rejection("forged", 10)}, onceward.QuarantineLimits{Count: 9, Bytes: 1000}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.store.Register(ctx, w.source, "hash", []byte("doc"), began); err != nil {
		t.Fatal(err)
	}
	event, entity, history, jobs, stats := w.event(a.StoredID), w.entity("job", "j1"), w.history("job", "j1"), w.jobs(), w.stats()
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	w.store = w.open()
	equal(t, "the event", event, w.event(a.StoredID))
	equal(t, "the row", entity, w.entity("job", "j1"))
	equal(t, "the history", history, w.history("job", "j1"))
	equal(t, "the jobs", jobs, w.jobs())
	equal(t, "the counts", stats, w.stats())
	revision, newest, err := w.store.Register(ctx, w.source, "hash", []byte("doc"), began)
	if err != nil || revision != 1 || newest != 1 {
		t.Errorf("register: %d, %d, %v; want revision 1 of 1", revision, newest, err)
	}
	again := w.arrival("e1", told("j1", "text"))
	w.commit(again)
	if again.Outcome != onceward.Duplicate || again.StoredID != a.StoredID {
		t.Errorf("the event again: %v of %d, want a duplicate of %d", again.Outcome, again.StoredID, a.StoredID)
	}
}

// testAtomic makes batches fail in the middle and wants nothing of them.
func testAtomic(t *testing.T, h Harness) {
	t.Run("a clashing event id", func(t *testing.T) {
		w := newWorld(t, h)
		w.handle("job", "event:*")
		first := w.tell("e0", "j0", "text")
		before := w.stats()
		good, bad := w.arrival("e1", told("j0", "partial"), told("j1", "text")), w.arrival("e2", told("j2", "text"))
		bad.Event.ID = first.Event.ID
		if err := w.store.Commit(context.Background(), w.batch(good, bad)); err == nil || errors.Is(err, onceward.ErrUnavailable) {
			t.Fatalf("two events with one id: %v; want an error of the batch, not of the store", err)
		}
		w.wantUndecided(good, bad)
		equal(t, "the counts", before, w.stats())
		w.noEntity("job", "j1")
		w.noEntity("job", "j2")
		if e := w.entity("job", "j0"); e.Status != "text" || e.Version != 1 {
			t.Errorf("the row is %s at version %d, want text at 1", e.Status, e.Version)
		}
		bad.Event.ID = w.ids.Add(1)
		w.commit(good, bad)
		equal(t, "the outcomes", []string{"new", "new"}, outcomes(good, bad))
	})
	t.Run("a context that has ended", func(t *testing.T) {
		w := newWorld(t, h)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		a := w.arrival("e1", told("j1", "text"))
		a.Outcome, a.StoredID, a.Results = onceward.New, 7, []onceward.FactResult{{}} // as from an earlier commit
		if err := w.store.Commit(ctx, w.batch(a)); !errors.Is(err, context.Canceled) {
			t.Errorf("commit: %v, want context.Canceled", err)
		}
		w.wantUndecided(a)
		equal(t, "the counts", onceward.Stats{}, w.stats())
		w.commit(a)
		equal(t, "the outcome", []string{"new"}, outcomes(a))
	})
	t.Run("a handler named twice", func(t *testing.T) {
		w := newWorld(t, h)
		w.handle("job", "job")
		a := w.arrival("e1", told("j1", "text"))
		if err := w.store.Commit(context.Background(), w.batch(a)); err == nil || errors.Is(err, onceward.ErrUnavailable) {
			t.Errorf("two jobs with one identity: %v; want an error of the batch, not of the store", err)
		}
		w.wantUndecided(a)
		equal(t, "the counts", onceward.Stats{}, w.stats())
	})
	t.Run("an empty batch", func(t *testing.T) {
		w := newWorld(t, h)
		w.commit()
		equal(t, "the counts", onceward.Stats{}, w.stats())
	})
}

// wantUndecided wants arrivals of a commit that failed to say nothing.
func (w *world) wantUndecided(arrivals ...*onceward.Arrival) {
	w.t.Helper()
	for _, a := range arrivals {
		if a.Outcome != onceward.Undecided || a.StoredID != 0 || a.Results != nil {
			w.t.Errorf("%s: %v of event %d with %d results after a commit that failed", a.Event.Key, a.Outcome, a.StoredID, len(a.Results))
		}
	}
}

// testClaimOnce lets one event arrive many times.
func testClaimOnce(t *testing.T, h Harness) {
	t.Run("at once", func(t *testing.T) {
		w := newWorld(t, h)
		w.handle("job", "event:thing.*")
		stores := w.handleSet(4)
		const n = 32
		arrivals := make([]*onceward.Arrival, n)
		for i := range n {
			arrivals[i] = w.arrival("e1", told("j1", "text"))
		}
		atOnce(t, n, func(i int) error {
			return stores[i%len(stores)].Commit(context.Background(), w.batch(arrivals[i]))
		})
		w.wantOneCopy(arrivals)
	})
	t.Run("in one batch", func(t *testing.T) {
		w := newWorld(t, h)
		w.handle("job", "event:thing.*")
		var arrivals []*onceward.Arrival
		for range 5 {
			arrivals = append(arrivals, w.arrival("e1", told("j1", "text")))
		}
		w.commit(arrivals...)
		if arrivals[0].Outcome != onceward.New {
			t.Errorf("the first of a batch is %v, want new", arrivals[0].Outcome)
		}
		w.wantOneCopy(arrivals)
	})
	t.Run("joined while it waited", func(t *testing.T) {
		w := newWorld(t, h)
		a := w.arrival("e1", told("j1", "text"))
		a.Repeats = []onceward.Repeat{{At: began, Remote: "198.51.100.1"}, {At: began, Remote: "198.51.100.2"}}
		w.commit(a)
		if e := w.event(a.StoredID); e.Repeats != 2 {
			t.Errorf("%d repeats, want 2", e.Repeats)
		}
	})
	t.Run("only the same source, scope, origin and key", func(t *testing.T) {
		w := newWorld(t, h)
		base := w.arrival("e1")
		others := []*onceward.Arrival{base, w.arrival("e2"), w.arrival("e1"), w.arrival("e1"), w.arrival("e1"), w.arrival("e1")}
		others[2].Event.Source = "other"
		others[3].Event.Scope.Account = "acct"
		others[4].Event.Scope.Mode = "test"
		others[5].Event.Origin = onceward.Registered
		w.commit(others...)
		equal(t, "the outcomes", []string{"new", "new", "new", "new", "new", "new"}, outcomes(others...))
	})
}

func (w *world) wantOneCopy(arrivals []*onceward.Arrival) {
	w.t.Helper()
	var first *onceward.Arrival
	for _, a := range arrivals {
		switch a.Outcome {
		case onceward.New:
			if first != nil {
				w.t.Fatal("two arrivals of one event are new")
			}
			first = a
		case onceward.Duplicate:
			if len(a.Results) != 0 {
				w.t.Error("a duplicate has results")
			}
		default:
			w.t.Fatalf("an arrival is %v", a.Outcome)
		}
	}
	if first == nil {
		w.t.Fatal("no arrival is new")
	}
	for _, a := range arrivals {
		if a.StoredID != first.Event.ID {
			w.t.Errorf("an arrival is said to be event %d, want %d", a.StoredID, first.Event.ID)
		}
	}
	if e := w.event(first.Event.ID); e.Repeats != int64(len(arrivals)-1) {
		w.t.Errorf("%d repeats, want %d", e.Repeats, len(arrivals)-1)
	}
	if n := w.checkHistory("job", "j1"); n != 1 {
		w.t.Errorf("%d facts, want 1", n)
	}
	if n := len(w.jobs()); n != 2 {
		w.t.Errorf("%d jobs, want 2: one of the change and one of the event", n)
	}
	s := w.stats()
	if s.Events != 1 || s.Repeats != int64(len(arrivals)-1) {
		w.t.Errorf("stats count %d events and %d repeats, want 1 and %d", s.Events, s.Repeats, len(arrivals)-1)
	}
}

// testRepeats lets one event come for ever: what is kept of it is bounded.
func testRepeats(t *testing.T, h Harness) {
	w := newWorld(t, h)
	w.commit(w.arrival("e1", told("j1", "text")), w.arrival("e2"))
	const batch = 300
	for range 10 {
		again := w.arrival("e1", told("j1", "text"))
		again.Repeats = slices.Repeat([]onceward.Repeat{{At: began, Remote: "203.0.113.8"}}, batch-1)
		w.commit(again)
		if again.Outcome != onceward.Duplicate {
			t.Fatalf("the event again: %v, want a duplicate", again.Outcome)
		}
	}
	events, err := w.store.Events(context.Background(), onceward.EventQuery{})
	if err != nil || len(events) != 2 {
		t.Fatalf("%d events, %v; want 2", len(events), err)
	}
	kept := events[1].Repeats
	if kept < onceward.MaxRepeats || kept > onceward.MaxRepeats+batch {
		t.Errorf("%d deliveries are kept, want %d and at most a batch more", kept, onceward.MaxRepeats)
	}
	w.commit(w.arrival("e2"))
	if s := w.stats(); s.Repeats != kept+1 {
		t.Errorf("stats count %d repeats, want %d: another event's are kept still", s.Repeats, kept+1)
	}
}

// testGuard races facts of one entity from every handle; a write on top of a
// row that another has moved on would lose a fact or give a version twice.
func testGuard(t *testing.T, h Harness) {
	w := newWorld(t, h)
	w.handle("payment")
	stores := w.handleSet(4)
	const workers, rounds = 8, 25
	atOnce(t, workers, func(i int) error {
		for r := range rounds {
			part := onceward.Part{Field: "refunds", By: fmt.Sprintf("r%d-%d", i, r), Value: onceward.Int(1)}
			a := w.arrival(fmt.Sprintf("e%d-%d", i, r), paid("p1", "paid", int64(r), part))
			if err := stores[i%len(stores)].Commit(context.Background(), w.batch(a)); err != nil {
				return err
			}
		}
		return nil
	})
	w.checkHistory("payment", "p1")
	e := w.entity("payment", "p1")
	if want := int64(workers * rounds); e.Version != want || e.Facts != want {
		t.Errorf("version %d of %d facts, want %d of %d", e.Version, e.Facts, want, want)
	}
	seen := map[int64]bool{}
	for _, j := range w.jobs() {
		if seen[j.Version] {
			t.Errorf("version %d has two jobs", j.Version)
		}
		seen[j.Version] = true
	}
	if len(seen) != workers*rounds {
		t.Errorf("%d jobs, want one for each of %d changes", len(seen), workers*rounds)
	}
}

// testJobsWithChange wants a job for each change and new event that a handler
// asked for, showing the row as of its version.
func testJobsWithChange(t *testing.T, h Harness) {
	w := newWorld(t, h)
	w.handle("job.succeeded", "job", "job#second", "payment", "event:thing.*", "event:nothing.*")
	a := w.arrival("e1", told("j1", "text"), told("j1", "succeeded"), told("j1", "partial"))
	w.commit(a)
	equal(t, "the results", []string{"applied text 1", "applied succeeded 2", "stale succeeded 2"}, verdicts(a))
	w.commit(w.arrival("e1", told("j1", "text")))
	change := func(version int64, from, to string) onceward.Change {
		return onceward.Change{
			Source: w.source, Kind: "job", Key: "j1", Version: version, From: from, To: to, Told: to, Reached: []string{to},
			Event: onceward.EventRef{ID: a.Event.ID, Key: "e1", Type: "thing.told"}, Time: began, Data: []byte("{}"),
		}
	}
	told := onceward.Change{Source: w.source, Event: onceward.EventRef{ID: a.Event.ID, Key: "e1", Type: "thing.told"}, Time: began, Data: []byte("{}")}
	lane := w.ref("job", "j1").ID()
	want := []onceward.Job{
		{Handler: "event:thing.*", Lane: a.Event.ClaimID(), Change: told, Due: began},
		{Handler: "job", Lane: lane, Version: 1, Change: change(1, "", "text"), Due: began},
		{Handler: "job#second", Lane: lane, Version: 1, Change: change(1, "", "text"), Due: began},
		{Handler: "job", Lane: lane, Version: 2, Change: change(2, "text", "succeeded"), Due: began},
		{Handler: "job#second", Lane: lane, Version: 2, Change: change(2, "text", "succeeded"), Due: began},
		{Handler: "job.succeeded", Lane: lane, Version: 2, Change: change(2, "text", "succeeded"), Due: began},
	}
	sortJobs(want)
	equal(t, "the jobs", want, w.jobs())
}
