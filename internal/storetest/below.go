package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward"
)

// Breaker makes what a store stands on fail: the statements of a driver, the
// messages of a connection, the writes to a file.
type Breaker interface {
	// Arm makes the n-th step from now on fail, counted from 1.
	Arm(n int)
	// Disarm lets every further step succeed, and reports whether one was made to
	// fail.
	Disarm() (struck bool)
}

// Brittle is a database whose store can be made to fail from below.
type Brittle struct {
	// Broken is the store whose steps fail.
	Broken  onceward.Store
	Breaker Breaker
	// Sound is another handle on the database. It is used while nothing is to fail.
	Sound onceward.Store
	// Err is what an error wraps when a step has failed, unless the outcome is
	// unknown.
	Err error
	// Writing says that reading has no steps that could fail.
	Writing bool
	// Stride is how many steps lie between two that are made to fail; 0 and 1 mean
	// that every one is.
	Stride int
}

// Least is how much a run of [FailBelow] has to have seen: so many steps of a
// commit that failed, and so many operations whose outcome was unknown, though they
// were kept. A run that injects nothing proves nothing.
type Least struct{ CommitSteps, Kept int }

// FailBelow runs every operation of a store once for each step on its way, with
// that step failing, until no step is left. What is wanted is the contract: an
// error, unless the operation was not touched by the fault; then nothing of it is
// kept, unless the outcome is unknown; then all of it or nothing; and in each case
// the operation run again ends as if nothing had failed.
func FailBelow(t *testing.T, b Brittle, least Least) {
	rounds, steps, kept := 0, 0, 0
	all := writeOperations()
	if !b.Writing {
		all = append(readOperations(), all...)
	}
	for _, op := range all {
		t.Run(op.name, func(t *testing.T) {
			n, k := failBelow(t, b, op, &rounds)
			t.Logf("%d steps failed; after %d of them the work was kept, with an outcome that was unknown", n, k)
			if n == 0 {
				t.Error("no step was made to fail")
			}
			if kept += k; op.name == "commit" {
				steps = n
			}
		})
	}
	if steps < least.CommitSteps || kept < least.Kept {
		t.Errorf("%d steps of a commit failed and %d operations were kept though reported unknown; want %d and %d or more",
			steps, kept, least.CommitSteps, least.Kept)
	}
}

// operation is a method of a store with what it needs.
type operation struct {
	name string
	// changes says that what it does can be seen.
	changes bool
	// prepare stores what the operation meets, if it needs anything.
	prepare func(w *round)
	// do runs it and returns what it gives, as text.
	do func(w *round, s onceward.Store) (string, error)
}

// round is a world of its own in a database that others use too: it has a source
// and handlers to itself.
type round struct {
	*world
	number int64
	tries  int
	// claimed are the jobs that the operation settles.
	claimed []onceward.Job
}

// newRound returns a round and counts it.
func newRound(t testing.TB, b Brittle, rounds *int) *round {
	t.Helper()
	*rounds++
	source := fmt.Sprintf("acme%d", *rounds)
	w := &round{world: &world{t: t, store: b.Sound, source: source, mapping: newMapping(t, source, 1)}, number: int64(*rounds)}
	w.ids.Store(w.base())
	w.handle(w.handler())
	return w
}

func (w *round) handler() string { return fmt.Sprintf("job#%d", w.number) }

// base is the number below the ids of the round's events.
func (w *round) base() int64 { return (w.number + 1) << 20 }

// mostSteps is more than any operation has.
const mostSteps = 1000

// failBelow returns how many steps failed, and after how many of them the work was
// kept though its outcome was reported unknown.
func failBelow(t *testing.T, b Brittle, op operation, rounds *int) (steps, kept int) {
	want := observe(newRound(t, b, rounds), op, b.Sound)
	if want.err != nil || (want.before != want.after) != op.changes {
		t.Fatalf("without a fault: %v, and there is\n%+v\nafter\n%+v", want.err, want.after, want.before)
	}
	for step := 1; ; step += max(1, b.Stride) {
		w := newRound(t, b, rounds)
		b.Breaker.Disarm()
		got := observe(w, op, armed{b.Broken, b.Breaker, step})
		where := fmt.Sprintf("%s, step %d", op.name, step)
		if !got.struck && got.err != nil {
			t.Fatalf("%s: %v, and nothing was made to fail", where, got.err)
		}
		isKept := got.check(t, where, want, b.Err)
		if !got.struck {
			return steps, kept
		}
		if steps++; steps > mostSteps {
			t.Fatalf("%s: there is always one step more", op.name)
		}
		if isKept {
			kept++
		}
		w.tries++
		result, err := op.do(w, b.Broken)
		if err != nil || result != want.result && !isKept {
			t.Errorf("%s: run again it gives %q, %v; want %q", where, result, err, want.result)
		}
		if end := w.look(); end.state != want.after.state {
			t.Errorf("%s: in the end there is\n%s\nwant\n%s", where, end.state, want.after.state)
		}
		if t.Failed() {
			return steps, kept
		}
	}
}

// armed is a store at which the next operation meets a fault.
type armed struct {
	onceward.Store
	breaker Breaker
	step    int
}

// observed is what an operation gave, and what there was before and after it.
type observed struct {
	before, after view
	result        string
	err           error
	struck        bool
}

func observe(w *round, op operation, s onceward.Store) (o observed) {
	w.t.Helper()
	if op.prepare != nil {
		op.prepare(w)
	}
	o.before = w.look()
	w.tries++
	a, isArmed := s.(armed)
	if isArmed {
		s = a.Store
		a.breaker.Arm(a.step)
	}
	o.result, o.err = op.do(w, s)
	if isArmed {
		o.struck = a.breaker.Disarm()
	}
	o.after = w.look()
	return o
}

// check wants what the contract says of an operation in which a step may have
// failed. It reports whether its outcome was unknown and it was kept.
func (o observed) check(t *testing.T, where string, want observed, fault error) (kept bool) {
	t.Helper()
	unknown := errors.Is(o.err, onceward.ErrUnknownOutcome)
	switch {
	case o.before != want.before:
		t.Errorf("%s: before it there is\n%+v\nwant\n%+v", where, o.before, want.before)
	case o.err == nil:
		if o.result != want.result || o.after != want.after {
			t.Errorf("%s: reported done with %q, and there is\n%+v\nwant %q and\n%+v", where, o.result, o.after, want.result, want.after)
		}
	case errors.Is(o.err, onceward.ErrNotFound), unknown && errors.Is(o.err, onceward.ErrUnavailable), !unknown && !errors.Is(o.err, fault):
		t.Errorf("%s: the error is %v", where, o.err)
	case unknown && o.after == want.after:
		return want.before != want.after
	case o.after != want.before:
		t.Errorf("%s: %v, and there is\n%+v\nbefore it there was\n%+v", where, o.err, o.after, want.before)
	}
	return false
}

// view is all there is of a round, as text. A retry may leave other marks; the
// state may not differ.
type view struct{ state, marks string }

func (w *round) look() view {
	w.t.Helper()
	ctx := context.Background()
	var state, marks strings.Builder
	events, err := w.store.Events(ctx, onceward.EventQuery{Source: w.source, Limit: 1000})
	w.must(err)
	for _, e := range events {
		fmt.Fprintln(&state, "event", e.ID-w.base(), e.Key, e.Outcome, max(0, e.Of-w.base()), e.BodySize, e.Facts, e.Held)
		fmt.Fprintln(&marks, "event", e.ID-w.base(), "repeats", e.Repeats)
	}
	entities, err := w.store.Entities(ctx, onceward.EntityQuery{Source: w.source, Limit: 1000})
	w.must(err)
	for _, e := range entities {
		fmt.Fprintln(&state, "row", e.Kind, e.Key, e.Status, e.Version, e.Facts, e.Tie, string(e.Data))
		facts, err := w.store.History(ctx, e.Ref)
		w.must(err)
		for _, f := range facts {
			fmt.Fprintln(&state, "fact", f.Key, f.Seq, f.EventID-w.base(), f.Verdict, f.Version)
		}
	}
	jobs, err := w.store.Jobs(ctx, 1<<20)
	w.must(err)
	slices.SortFunc(jobs, byKey)
	for _, j := range jobs {
		if j.Handler != w.handler() {
			continue
		}
		fmt.Fprintln(&state, "job", j.Change.Key, j.Version, j.Dead, j.LastError)
		fmt.Fprintln(&marks, "job", j.Change.Key, j.Version, j.Attempts, j.Token, j.Due.Sub(began))
	}
	rejections, err := w.store.Rejections(ctx, w.source, 1000)
	w.must(err)
	for _, r := range rejections {
		fmt.Fprintln(&state, "rejection", r.Reason)
	}
	return view{state.String(), marks.String()}
}

func (w *round) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("with nothing failing: %v", err)
	}
}

// story is a batch that makes a commit do all that it can, given what tellBefore
// has stored: new events with changes, of one tick too, a repeat, other bytes, held
// facts, and held facts that are taken up.
func (w *round) story() *onceward.Batch {
	held := told("j9", "")
	held.Held = "no status"
	note := func(n int64) onceward.Part { return field("notes", onceward.Int(n)) }
	other := w.arrivalOf("before", "other bytes", told("j1", "succeeded"))
	other.Resolution = onceward.ResolvedConflict
	newer := *w.mapping
	newer.Revision++
	taken := w.arrival("held", told("j2", "text"))
	taken.Event.ID, taken.Retake, taken.Mapping = w.base()+2, w.base()+2, &newer
	arrivals := []*onceward.Arrival{
		w.arrival("new1", told("j1", "partial"), paid("p1", "paid", 5, note(1))),
		w.arrival("new2", told("j3", "text"), paid("p1", "refunded", 5, note(2)), paid("p1", "failed", 5)),
		w.arrival("before", told("j1", "text")),
		w.arrival("new3", held),
		other, taken,
	}
	return w.batch(arrivals...)
}

// tellBefore stores what story meets.
func tellBefore(w *round) {
	w.t.Helper()
	held := told("j2", "")
	held.Held = "not known yet"
	w.commit(w.arrival("before", told("j1", "text")), w.arrival("held", held))
}

// writeOperations lists the methods that write.
func writeOperations() []operation {
	ctx := context.Background()
	return []operation{
		{"commit", true, tellBefore, func(w *round, s onceward.Store) (string, error) {
			w.ids.Store(w.base() + 10) // the same arrivals each time
			b := w.story()
			if err := s.Commit(ctx, b); err != nil {
				for _, a := range b.Arrivals {
					w.wantUndecided(a)
				}
				return "", err
			}
			return fmt.Sprint(outcomes(b.Arrivals...)), nil
		}},
		{"register", false, nil, func(w *round, s onceward.Store) (string, error) {
			revision, newest, err := s.Register(ctx, w.source, "another hash", []byte("doc"), began)
			return fmt.Sprint(revision, newest), err
		}},
		{"node", false, nil, func(_ *round, s onceward.Store) (string, error) {
			_, err := s.Node(ctx)
			return "", err
		}},
		{"ping", false, nil, func(_ *round, s onceward.Store) (string, error) { return "", s.Ping(ctx) }},
		{"quarantine", true, tellBefore, func(w *round, s onceward.Store) (string, error) {
			var rejections []onceward.Rejection
			for i := range 3 {
				rejections = append(rejections, w.rejection(fmt.Sprint("no", i), 10))
			}
			return "", s.Quarantine(ctx, rejections, onceward.QuarantineLimits{Count: 2, Bytes: 1 << 20})
		}},
		{"claim", true, tellJobs, func(w *round, s onceward.Store) (string, error) {
			now := began.Add(time.Duration(w.tries) * time.Hour) // beyond the lease of the try before
			jobs, err := s.Claim(ctx, []string{w.handler()}, 10, now, time.Minute)
			slices.SortFunc(jobs, byKey)
			var text strings.Builder
			for _, j := range jobs {
				fmt.Fprintln(&text, j.Change.Key, j.Version)
			}
			return text.String(), err
		}},
		{"settle", true, claimJobs, func(w *round, s onceward.Store) (string, error) {
			err := s.Settle(ctx, w.settlements(), began)
			if w.tries > 1 && errors.Is(err, onceward.ErrStaleToken) { // what is done is no more
				err = nil
			}
			return "", err
		}},
	}
}

// tellJobs stores events that jobs follow from.
func tellJobs(w *round) {
	w.t.Helper()
	w.commit(w.arrival("e1", told("j1", "text")), w.arrival("e2", told("j2", "text")), w.arrival("e3", told("j3", "text")))
}

// claimJobs claims the jobs of tellJobs.
func claimJobs(w *round) {
	w.t.Helper()
	tellJobs(w)
	jobs, err := w.store.Claim(context.Background(), []string{w.handler()}, 10, began, time.Minute)
	w.must(err)
	if slices.SortFunc(jobs, byKey); len(jobs) != 3 {
		w.t.Fatalf("%d jobs are claimed, want 3", len(jobs))
	}
	w.claimed = jobs
}

// byKey orders jobs alike in every round; the lanes' numbers differ.
func byKey(a, b onceward.Job) int {
	return cmp.Or(strings.Compare(a.Change.Key, b.Change.Key), cmp.Compare(a.Version, b.Version))
}

// settlements end the claimed jobs, each in another way.
func (w *round) settlements() []onceward.Settlement {
	var all []onceward.Settlement
	for i, j := range w.claimed {
		all = append(all, onceward.Settlement{
			Handler: j.Handler, Lane: j.Lane, Version: j.Version, Token: j.Token,
			Done: i == 0, Dead: i == 1, Due: began.Add(time.Hour), Error: "it went wrong",
		})
	}
	return all
}

// readOperations lists the methods that only read; each has to give what is there,
// or an error.
func readOperations() []operation {
	ctx := context.Background()
	read := func(name string, count func(w *round, s onceward.Store) (int, error)) operation {
		return operation{"read " + name, false, tellAll, func(w *round, s onceward.Store) (string, error) {
			n, err := count(w, s)
			return fmt.Sprint(n), err
		}}
	}
	return []operation{
		read("event", func(w *round, s onceward.Store) (int, error) {
			e, err := s.Event(ctx, w.base()+1)
			if err != nil {
				return 0, err
			}
			return len(e.Delivery.Body), nil
		}),
		read("events", func(w *round, s onceward.Store) (int, error) {
			list, err := s.Events(ctx, onceward.EventQuery{Source: w.source})
			return len(list), err
		}),
		read("entity", func(w *round, s onceward.Store) (int, error) {
			e, err := s.Entity(ctx, w.ref("job", "j1"))
			if err != nil {
				return 0, err
			}
			return int(e.Version), nil
		}),
		read("entities", func(w *round, s onceward.Store) (int, error) {
			list, err := s.Entities(ctx, onceward.EntityQuery{Source: w.source})
			return len(list), err
		}),
		read("history", func(w *round, s onceward.Store) (int, error) {
			list, err := s.History(ctx, w.ref("job", "j1"))
			return len(list), err
		}),
		read("event facts", func(w *round, s onceward.Store) (int, error) {
			list, err := s.EventFacts(ctx, w.base()+1)
			return len(list), err
		}),
		read("held events", func(w *round, s onceward.Store) (int, error) {
			list, err := s.HeldEvents(ctx, w.source, 2, 0, 10)
			return len(list), err
		}),
		read("rejections", func(w *round, s onceward.Store) (int, error) {
			list, err := s.Rejections(ctx, w.source, 10)
			return len(list), err
		}),
		read("jobs", func(_ *round, s onceward.Store) (int, error) { // those of other rounds are there too
			list, err := s.Jobs(ctx, 1)
			return len(list), err
		}),
		read("stats", func(_ *round, s onceward.Store) (int, error) {
			stats, err := s.Stats(ctx)
			return min(1, int(stats.Events)), err
		}),
	}
}

// tellAll stores something that each read finds.
func tellAll(w *round) {
	w.t.Helper()
	tellBefore(w)
	w.must(w.store.Quarantine(context.Background(), []onceward.Rejection{w.rejection("no", 10)}, onceward.QuarantineLimits{Count: 2, Bytes: 1 << 20}))
}
