package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/onceward/onceward"
)

// recorder keeps a history. Its clock only counts, which is all that an order of
// calls and returns needs.
type recorder struct {
	clock   atomic.Int64
	mu      sync.Mutex
	history []porcupine.Operation // guarded by mu
}

func (r *recorder) do(client int, in input, f func() (output, error)) (output, error) {
	op := porcupine.Operation{ClientId: client, Input: in, Call: r.clock.Add(1)}
	out, err := f()
	if err != nil {
		return out, err
	}
	op.Output, op.Return = out, r.clock.Add(1)
	if out.fate == unknown {
		op.Return = 1 << 62 // it may take effect at any time after its call
	}
	r.mu.Lock()
	r.history = append(r.history, split(op)...)
	r.mu.Unlock()
	return out, nil
}

// testLinearizable wants concurrent commits and reads through separate handles,
// some of whose outcomes are unknown and tried again, to be explained by one order
// of them all; and what a store says that lies to have no such explanation.
func testLinearizable(t *testing.T, h Harness) {
	w := newWorld(t, h)
	kind, err := stepKind()
	if err != nil {
		t.Fatal(err)
	}
	w.mapping.Kinds["step"] = kind
	t.Run("histories", func(t *testing.T) {
		stores := w.handleSet(3)
		count := tally{}
		rounds := raceRounds(t) / 15
		for n := 0; n < rounds || count.lacks() && n < 20*rounds; n++ { // chance may leave one kind out of a few
			history := w.record(n, stores, clients, turns)
			count.add(history)
			if !explained(t, history) {
				t.Fatalf("history %d has no explanation", n)
			}
		}
		t.Logf("%+v", count)
		if count.lacks() {
			t.Errorf("the histories lack something: %+v", count)
		}
	})
	scratch := newWorld(t, h)
	for i, liar := range []struct {
		name string
		want porcupine.CheckResult
		lie  lying
	}{
		{"tells the truth", porcupine.Ok, lying{}},
		{"looks at the past", porcupine.Illegal, lying{past: map[onceward.Ref]*onceward.Entity{}}},
		{"keeps what it refuses", porcupine.Illegal, lying{refuses: 3}},
		{"loses a part of what it takes", porcupine.Illegal, lying{elsewhere: scratch.store, every: 4}},
		{"is two that know nothing of each other", porcupine.Illegal, lying{elsewhere: scratch.store, every: 2}},
		{"calls new what it has", porcupine.Illegal, lying{fresh: true}},
		{"takes a duplicate for another event", porcupine.Illegal, lying{nameless: true}},
	} {
		t.Run("a store that "+liar.name, func(t *testing.T) {
			liar.lie.Store = w.store
			history := w.record(1_000_000+i, []onceward.Store{&liar.lie}, 1, 4*turns)
			if result := porcupine.CheckOperationsTimeout(linearModel(), history, time.Minute); result != liar.want {
				t.Errorf("the history of a store that %s is %v, want %v", liar.name, result, liar.want)
			}
		})
	}
}

// lacks reports whether one kind of what can happen did not.
func (c tally) lacks() bool {
	return c.unknown == 0 || c.refused == 0 || c.looks == 0 || c.both == 0 || c.differs == 0 || c.again == 0
}

// stepKind is the kind of the rows: one status a rank, and no clock.
func stepKind() (*onceward.Kind, error) {
	states := make([][]string, ranks)
	for i := range states {
		states[i] = []string{stepStatus(i)}
	}
	return onceward.NewKind(onceward.Kind{Name: "step", States: states, Order: []onceward.Component{onceward.Rank}})
}

func stepStatus(rank int) string { return fmt.Sprintf("s%02d", rank) }

// explained reports whether one order of its operations explains a history, and
// logs the history if not.
func explained(t *testing.T, history []porcupine.Operation) bool {
	t.Helper()
	result := porcupine.CheckOperationsTimeout(linearModel(), history, time.Minute)
	if result == porcupine.Ok {
		return true
	}
	t.Logf("the checker says %v", result)
	for _, op := range history {
		t.Logf("%d..%d client %d: %s", op.Call, op.Return, op.ClientId, describe(op.Input.(input), op.Output.(output)))
	}
	return false
}

// tally counts what histories hold, so that none of it is missing unnoticed.
type tally struct{ operations, unknown, refused, looks, both, differs, again int }

func (c *tally) add(history []porcupine.Operation) {
	c.operations += len(history)
	doubtful := map[int64]bool{} // the ids whose commit was unknown
	for _, operation := range history {
		in, out := operation.Input.(input), operation.Output.(output)
		switch {
		case in.op == look:
			c.looks++
		case in.op == lookAll:
			c.both++
		case out.fate == unknown:
			c.unknown++
			for _, s := range in.told {
				doubtful[s.id] = true
			}
		case out.fate == refused:
			c.refused++
		case in.op == resolve:
			c.differs++
		default:
			for _, b := range out.told {
				if b.outcome == onceward.Duplicate && doubtful[b.stored] {
					c.again++ // a retry found that the first try was kept
				}
			}
		}
	}
}

const (
	clients = 6
	turns   = 12 // of each client in a history
)

// client is one that tells and looks.
type client struct {
	w      *world
	store  onceward.Store
	faulty *FaultyStore
	number int
	random *rand.Rand
	record *recorder
}

// record lets clients tell events of one family and look at it, at once, and in
// the end one of them look at everything again.
func (w *world) record(n int, stores []onceward.Store, clients, turns int) []porcupine.Operation {
	w.t.Helper()
	w.source = fmt.Sprintf("family-%d", n)
	mapping := *w.mapping
	mapping.Source = w.source
	w.mapping = &mapping
	for _, s := range stores {
		if l, ok := s.(*lying); ok && l.elsewhere != nil {
			w.commitTo(l.elsewhere, w.births()) // the rows are there on either side
		}
	}
	w.commit(w.births())
	r := &recorder{}
	each := func(i int) *client {
		random := rand.New(rand.NewPCG(uint64(n), uint64(i)))
		faulty := Faulty(stores[i%len(stores)],
			Fault{Method: "Commit", Call: 2 + random.IntN(4), Applied: true},
			Fault{Method: "Commit", Call: 6 + random.IntN(4), Err: onceward.ErrUnknownOutcome},
			Fault{Method: "Commit", Call: 10 + random.IntN(4)})
		return &client{w: w, store: faulty, faulty: faulty, number: i, random: random, record: r}
	}
	atOnce(w.t, clients, func(i int) error {
		c := each(i)
		for range turns {
			if err := c.turn(); err != nil {
				return err
			}
		}
		return nil
	})
	last := each(0)
	last.faulty.Plan()
	if err := last.lookAtEverything(); err != nil {
		w.t.Fatal(err)
	}
	return r.history
}

// births is the event with which a family's rows begin.
func (w *world) births() *onceward.Arrival {
	var facts []onceward.Fact
	for row := range familyRows {
		facts = append(facts, w.step(row, 0))
	}
	return w.arrival("births", facts...)
}

func (w *world) step(row, rank int) onceward.Fact {
	return onceward.Fact{Rule: "step", Kind: "step", Key: fmt.Sprintf("x%d", row), Status: stepStatus(rank)}
}

// turn does one thing, and what follows from it.
func (c *client) turn() error {
	switch c.random.IntN(6) {
	case 0:
		return c.do(input{op: look, row: c.random.IntN(familyRows)})
	case 1:
		return c.do(input{op: lookAll})
	}
	in := input{op: tell}
	for range 1 + c.random.IntN(3)/2 {
		in.told = append(in.told, said{key: c.random.IntN(familyKeys), body: c.random.IntN(4) / 3, id: c.w.ids.Add(1)})
	}
	return c.do(in)
}

// lookAtEverything tells each key with each body and looks at all rows, so that
// what an unknown commit has come to is known in the end.
func (c *client) lookAtEverything() error {
	for key := range familyKeys {
		for body := range 2 {
			if err := c.do(input{op: tell, told: []said{{key, body, c.w.ids.Add(1)}}}); err != nil {
				return err
			}
		}
	}
	for row := range familyRows {
		if err := c.do(input{op: look, row: row}); err != nil {
			return err
		}
	}
	return c.do(input{op: lookAll})
}

// do does one operation and what a careful caller does then: it tries again what
// is unknown or refused, as the same arrival or as another delivery of the event,
// and resolves what differs.
func (c *client) do(in input) error {
	for try := 1; ; try++ {
		out, err := c.record.do(c.number, in, func() (output, error) { return c.once(in) })
		if err != nil {
			return err
		}
		if out.fate == settled || try == 3 {
			return c.resolve(in, out)
		}
		if c.random.IntN(2) == 0 {
			again := input{op: in.op}
			for _, s := range in.told {
				s.id = c.w.ids.Add(1)
				again.told = append(again.told, s)
			}
			in = again
		}
	}
}

func (c *client) resolve(in input, out output) error {
	for i, b := range out.told {
		if b.outcome != onceward.Differs {
			continue
		}
		s := in.told[i]
		if c.random.IntN(2) == 0 { // another delivery with these bytes
			s.id = c.w.ids.Add(1)
		}
		if err := c.do(input{op: resolve, told: []said{s}}); err != nil {
			return err
		}
	}
	return nil
}

// once does one operation through the store.
func (c *client) once(in input) (output, error) {
	ctx := context.Background()
	var out output
	switch in.op {
	case look:
		e, err := c.store.Entity(ctx, c.w.ref("step", fmt.Sprintf("x%d", in.row)))
		if err == nil {
			out.rows[in.row] = c.w.rowState(e)
		}
		return out, err
	case lookAll:
		all, err := c.store.Entities(ctx, onceward.EntityQuery{Source: c.w.source})
		if err == nil && len(all) != familyRows {
			err = fmt.Errorf("%d rows, want %d", len(all), familyRows)
		}
		for i := range all {
			if err == nil {
				out.rows[i] = c.w.rowState(&all[i])
			}
		}
		return out, err
	}
	arrivals := make([]*onceward.Arrival, len(in.told))
	for i, s := range in.told {
		arrivals[i] = c.arrival(s)
		if in.op == resolve {
			arrivals[i].Resolution = s.resolution()
		}
	}
	switch err := c.commit(c.w.batch(arrivals...)); {
	case errors.Is(err, onceward.ErrUnknownOutcome):
		return output{fate: unknown}, nil
	case errors.Is(err, onceward.ErrUnavailable), errors.Is(err, context.Canceled):
		return output{fate: refused}, nil
	case err != nil:
		return output{}, err
	}
	for i, a := range arrivals {
		out.told[i] = c.w.became(a)
	}
	return out, nil
}

// commit commits, and now and then ends the context meanwhile: the store itself
// must know then whether the outcome is unknown.
func (c *client) commit(b *onceward.Batch) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if c.random.IntN(6) == 0 {
		pause := c.random.IntN(300)
		var meanwhile sync.WaitGroup
		defer meanwhile.Wait()
		meanwhile.Go(func() {
			for range pause {
				runtime.Gosched()
			}
			cancel()
		})
	}
	return c.store.Commit(ctx, b)
}

func (c *client) arrival(s said) *onceward.Arrival {
	var facts []onceward.Fact
	for _, f := range s.facts() {
		facts = append(facts, c.w.step(f[0], f[1]))
	}
	a := c.w.arrivalOf(fmt.Sprintf("e%d", s.key), fmt.Sprint("body ", s.body), facts...)
	a.Event.ID = s.id
	return a
}

func (w *world) rowState(e *onceward.Entity) rowState {
	return rowState{version: e.Version, facts: e.Facts, rank: w.rankOf(e.Status)}
}

func (w *world) became(a *onceward.Arrival) becomes {
	b := becomes{outcome: a.Outcome, stored: a.StoredID}
	for i, r := range a.Results {
		b.results[i] = result{r.Verdict, r.Version, w.rankOf(r.Status)}
	}
	return b
}

func (w *world) rankOf(status string) int {
	rank, _ := w.mapping.Kinds["step"].Rank(status)
	return rank
}

// lying is a store that does not do what it says.
type lying struct {
	onceward.Store
	// past, if not nil, holds the first reading of each row, which it gives for ever.
	past map[onceward.Ref]*onceward.Entity
	// refuses is how often it makes a commit and says to have refused it: every so
	// many.
	refuses int
	// elsewhere is where every so many commits go.
	elsewhere onceward.Store
	every     int
	// fresh calls duplicates new, nameless gives them ids of their own.
	fresh, nameless bool

	commits int
}

// Commit implements [onceward.Inbox], after a fashion.
func (l *lying) Commit(ctx context.Context, b *onceward.Batch) error {
	l.commits++
	s := l.Store
	if l.elsewhere != nil && l.commits%l.every == 0 {
		s = l.elsewhere
	}
	if err := s.Commit(ctx, b); err != nil {
		return err
	}
	if l.refuses > 0 && l.commits%l.refuses == 0 {
		return onceward.ErrUnavailable
	}
	for _, a := range b.Arrivals {
		if a.Outcome == onceward.Duplicate && l.fresh {
			a.Outcome, a.StoredID = onceward.New, a.Event.ID
		}
		if a.Outcome == onceward.Duplicate && l.nameless {
			a.StoredID = a.Event.ID
		}
	}
	return nil
}

// Entity implements [onceward.Reader], after a fashion.
func (l *lying) Entity(ctx context.Context, ref onceward.Ref) (*onceward.Entity, error) {
	if e := l.past[ref]; e != nil {
		return e, nil
	}
	e, err := l.Store.Entity(ctx, ref)
	if err == nil && l.past != nil {
		l.past[ref] = e
	}
	return e, err
}
