package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/onceward/onceward"
)

// input is one operation on one entity: an event told, or, with event -1, a look.
type input struct {
	entity, event, rank int
}

// output is what it gave. Unknown says that the commit may or may not be kept.
type output struct {
	unknown bool
	outcome onceward.Outcome
	verdict onceward.Verdict
	version int64
	rank    int // -1: there is no row
}

// register is what the model knows of an entity: the events taken, the version
// and the status.
type register struct {
	taken   uint64
	version int64
	rank    int
}

const (
	lookOnly = -1
	ranks    = 12 // statuses of the entities
)

// after is the sequential truth: what one operation does and gives.
func (s register) after(in input) (register, output) {
	switch {
	case in.event == lookOnly:
		return s, output{version: s.version, rank: s.rank}
	case s.taken&(1<<in.event) != 0:
		return s, output{outcome: onceward.Duplicate}
	}
	s.taken |= 1 << in.event
	verdict := onceward.Stale
	switch {
	case in.rank > s.rank:
		verdict = onceward.Applied
		s.version++
		s.rank = in.rank
	case in.rank == s.rank:
		verdict = onceward.Same
	}
	return s, output{outcome: onceward.New, verdict: verdict, version: s.version, rank: s.rank}
}

func linearModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := map[int][]porcupine.Operation{}
			for _, op := range history {
				entity := op.Input.(input).entity
				parts[entity] = append(parts[entity], op)
			}
			var list [][]porcupine.Operation
			for _, part := range parts {
				list = append(list, part)
			}
			return list
		},
		Init: func() []any { return []any{register{rank: -1}} },
		Step: func(state, in, out any) []any {
			s := state.(register)
			next, want := s.after(in.(input))
			switch got := out.(output); {
			case got.unknown:
				return []any{s, next}
			case got == want:
				return []any{next}
			}
			return nil
		},
		Equal: func(a, b any) bool { return a == b },
		DescribeOperation: func(in, out any) string {
			return fmt.Sprintf("%+v -> %+v", in, out)
		},
	}
	return model.ToModel()
}

// recorder keeps a history. Its clock only counts, which is all that an order of
// calls and returns needs.
type recorder struct {
	clock   atomic.Int64
	mu      sync.Mutex
	history []porcupine.Operation // guarded by mu
}

func (r *recorder) do(client int, in input, f func() (output, error)) error {
	op := porcupine.Operation{ClientId: client, Input: in, Call: r.clock.Add(1)}
	out, err := f()
	if err != nil {
		return err
	}
	op.Output, op.Return = out, r.clock.Add(1)
	if out.unknown {
		op.Return = 1 << 62 // it may take effect at any time after its call
	}
	r.mu.Lock()
	r.history = append(r.history, op)
	r.mu.Unlock()
	return nil
}

// testLinearizable wants concurrent commits and reads through separate handles,
// some of whose outcomes are unknown, to be explained by one order of them all.
func testLinearizable(t *testing.T, h Harness) {
	histories := 30
	if testing.Short() {
		histories = 8
	}
	w := newWorld(t, h)
	states := make([][]string, ranks)
	for i := range states {
		states[i] = []string{fmt.Sprintf("s%02d", i)}
	}
	step, err := onceward.NewKind(onceward.Kind{Name: "step", States: states, Order: []onceward.Component{onceward.Rank}})
	if err != nil {
		t.Fatal(err)
	}
	w.mapping.Kinds["step"] = step
	stores := w.handleSet(2)
	unknown, looks := 0, 0
	for n := range histories {
		history := w.record(n, stores)
		for _, op := range history {
			if op.Output.(output).unknown {
				unknown++
			}
			if op.Input.(input).event == lookOnly {
				looks++
			}
		}
		result := porcupine.CheckOperationsTimeout(linearModel(), history, time.Minute)
		if result != porcupine.Ok {
			t.Errorf("history %d: %v, want it to be linearizable", n, result)
			for _, op := range history {
				t.Logf("%d..%d client %d: %s", op.Call, op.Return, op.ClientId, linearModel().DescribeOperation(op.Input, op.Output))
			}
			return
		}
	}
	if unknown == 0 || looks == 0 {
		t.Errorf("%d unknown outcomes and %d looks; the histories show nothing of them", unknown, looks)
	}
}

// record lets clients tell events of few entities and look at them, at once.
func (w *world) record(n int, stores []onceward.Store) []porcupine.Operation {
	w.t.Helper()
	const clients, each, entities, events = 6, 20, 2, 16
	r := &recorder{}
	atOnce(w.t, clients, func(client int) error {
		random := rand.New(rand.NewPCG(uint64(n), uint64(client)))
		s := Faulty(stores[client%len(stores)],
			Fault{Method: "Commit", Call: 3 + random.IntN(5), Applied: true},
			Fault{Method: "Commit", Call: 9 + random.IntN(5), Err: onceward.ErrUnknownOutcome})
		for range each {
			in := input{entity: random.IntN(entities), event: random.IntN(events)}
			in.rank = in.event * 5 % ranks // one event says the same whoever delivers it
			if random.IntN(3) == 0 {
				in.event = lookOnly
			}
			err := r.do(client, in, func() (output, error) { return w.step(s, n, in) })
			if err != nil {
				return err
			}
		}
		return nil
	})
	return r.history
}

// step does one operation through the store.
func (w *world) step(s onceward.Store, n int, in input) (output, error) {
	ctx := context.Background()
	key := fmt.Sprintf("h%d-x%d", n, in.entity)
	if in.event == lookOnly {
		e, err := s.Entity(ctx, w.ref("step", key))
		if errors.Is(err, onceward.ErrNotFound) {
			return output{rank: -1}, nil
		}
		if err != nil {
			return output{}, err
		}
		return output{version: e.Version, rank: w.rankOf(e.Status)}, nil
	}
	fact := onceward.Fact{Rule: "step", Kind: "step", Key: key, Status: fmt.Sprintf("s%02d", in.rank)}
	a := w.arrival(fmt.Sprintf("%s-e%d", key, in.event), fact)
	err := s.Commit(ctx, w.batch(a))
	if errors.Is(err, onceward.ErrUnknownOutcome) {
		return output{unknown: true}, nil
	}
	if err != nil {
		return output{}, err
	}
	out := output{outcome: a.Outcome}
	for _, r := range a.Results {
		out.verdict, out.version, out.rank = r.Verdict, r.Version, w.rankOf(r.Status)
	}
	return out, nil
}

func (w *world) rankOf(status string) int {
	rank, _ := w.mapping.Kinds["step"].Rank(status)
	return rank
}
