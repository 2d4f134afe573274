package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/onceward/onceward"
)

// testArrivalOrder folds facts in the order of the batch, although locks are
// taken in the order of ids.
func testArrivalOrder(t *testing.T, h Harness) {
	w := newWorld(t, h)
	for round := range 30 {
		payment := fmt.Sprintf("p%d", round)
		var arrivals []*onceward.Arrival
		for i := range 6 {
			arrivals = append(arrivals, w.arrival(fmt.Sprintf("e%d-%d", round, i), paid(payment, "paid", 1, field("amount", onceward.Int(int64(i))))))
		}
		w.commit(arrivals...)
		for i, f := range w.history("payment", payment) {
			if f.EventID != arrivals[i].Event.ID {
				t.Fatalf("fact %d is event %d's, want %d's: arrival is not the order of facts", i, f.EventID, arrivals[i].Event.ID)
			}
		}
		e := w.entity("payment", payment)
		equal(t, "the row", []any{`{"amount":5}`, []string{"amount"}}, []any{string(e.Data), e.Tie})
	}
}

// draw picks a number below n: rapid's or a seeded generator's.
type draw func(n int) int

// randomFact is dense in what is hard: ticks of few seconds, hints, facts
// without a clock, nulls, former values, epochs, terminal statuses, all modes. A
// former value is often the one that comes before in a chain of values, so that
// the facts of a tick have a newest one, which nothing but the former values tells.
// Most are of one second and have no status, so that ticks are large.
func randomFact(d draw, entity string) onceward.Fact {
	if d(3) == 0 {
		f := told(entity, []string{"queued", "text", "partial", "succeeded", "failed"}[d(5)])
		f.Hint = d(4) == 0
		if f.Status == "failed" && d(3) == 0 {
			f.Was = []onceward.Part{field(onceward.StatusPart, onceward.String("succeeded"))}
		}
		if d(4) == 0 {
			f.Fields = []onceward.Part{field("url", onceward.Int(int64(d(2))))}
		}
		return f
	}
	f := paid(entity, []string{"", "", "", "", "", "", "created", "failed", "paid", "refunded"}[d(10)], int64(min(d(3), 1)))
	f.Hint = d(8) == 0
	if d(6) == 0 {
		f.Time = onceward.Opt{}
	}
	if d(6) == 0 {
		f.Epoch = onceward.Some(int64(d(3)))
	}
	for _, name := range []string{"amount", "peak", "refunds", "notes"} {
		if d(3) == 0 {
			continue
		}
		value, former := chained(d)
		p := onceward.Part{Field: name, Value: value}
		if name == "refunds" || name == "notes" {
			p.By = []string{"a", "b"}[d(2)]
		}
		f.Fields = append(f.Fields, p)
		if name != "peak" && !former.IsZero() {
			f.Was = append(f.Was, onceward.Part{Field: name, By: p.By, Value: former})
		}
	}
	if d(6) == 0 {
		value, _ := chained(d)
		f.Local = []onceward.Part{field("note", value)}
	}
	return f
}

// chained returns a value, and, where one is told, the one that it replaced.
func chained(d draw) (value, former onceward.Value) {
	chain := []onceward.Value{onceward.Null, onceward.Int(1), onceward.Int(2), onceward.Int(3)}
	n := d(len(chain))
	switch d(4) {
	case 0:
		former = chain[d(len(chain))]
	case 1:
		former = chain[(n+len(chain)-1)%len(chain)]
	}
	return chain[n], former
}

// testConverges tells random facts through several handles at once; each row
// must end as Fold of its facts in the order in which they arrived. A row about
// which much is known forgives what went wrong on the way to it, so each round has
// rows of its own, about which few facts are told, beside one that all are about.
func testConverges(t *testing.T, h Harness) {
	w := newWorld(t, h)
	w.handle("payment", "job.succeeded")
	stores := w.handleSet(2)
	rounds := 100
	if testing.Short() {
		rounds = 50
	}
	const workers, fresh = 6, 2
	told := map[string]int{}
	for round := range rounds {
		var batches [workers]*onceward.Batch
		for i := range batches {
			r := rand.New(rand.NewPCG(uint64(i), uint64(round)))
			batches[i] = w.batch()
			for n := range 1 + r.IntN(3) {
				var facts []onceward.Fact
				for range 1 + r.IntN(2) {
					key := "always"
					if r.IntN(8) > 0 {
						key = fmt.Sprintf("x%d-%d", round, r.IntN(fresh))
					}
					facts = append(facts, randomFact(r.IntN, key))
					told[key]++
				}
				batches[i].Arrivals = append(batches[i].Arrivals, w.arrival(fmt.Sprintf("e%d-%d-%d", i, round, n), facts...))
			}
		}
		atOnce(t, workers, func(i int) error { return stores[i%len(stores)].Commit(context.Background(), batches[i]) })
	}
	entities, err := w.store.Entities(context.Background(), onceward.EntityQuery{Source: w.source, Limit: 2 * len(told)})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entities {
		w.checkHistory(e.Kind, e.Key)
	}
	for key, n := range told {
		if stored := len(w.history("job", key)) + len(w.history("payment", key)); stored != n {
			t.Errorf("%d facts about %s are stored, and %d were told", stored, key, n)
		}
	}
	if least := rounds * fresh; len(entities) < least {
		t.Errorf("%d rows, want %d and more", len(entities), least)
	}
	w.checkView()
}

// checkView wants the documented view to show what is read row by row.
func (w *world) checkView() {
	w.t.Helper()
	entities, err := w.store.Entities(context.Background(), onceward.EntityQuery{Limit: 1_000_000})
	if err != nil {
		w.t.Fatal(err)
	}
	var want []string
	for _, e := range entities {
		want = append(want, strings.Join([]string{
			e.Source, e.Scope.Account, e.Scope.Mode, e.Kind, e.Key, e.Status, e.Told, strconv.FormatInt(e.Version, 10), strings.Join(e.Tie, ","),
		}, "|"))
	}
	got := strings.Split(w.db.Query(w.t, "select source, account, mode, kind, key, status, told, version, tie from "+w.harness.View), "\n")
	slices.Sort(want)
	slices.Sort(got)
	equal(w.t, "the view", want, got)
}

// testBatching cuts a sequence of arrivals into batches at random; whatever the
// cut, everything must be as if they had come one by one (FOLD law 10).
func testBatching(t *testing.T, h Harness) {
	w := newWorld(t, h)
	w.handle("payment", "payment.paid", "job.succeeded", "event:thing.*")
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		d := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "n") }
		type plan struct {
			key, body string
			facts     []onceward.Fact
		}
		var plans []plan
		for range 1 + d(12) {
			p := plan{key: fmt.Sprintf("e%d", d(12)), body: fmt.Sprint(d(8) / 7)}
			for range d(4) {
				p.facts = append(p.facts, randomFact(d, fmt.Sprintf("x%d", d(3))))
			}
			plans = append(plans, p)
		}
		cut := make([]bool, len(plans))
		for i := range cut {
			cut[i] = d(3) == 0
		}
		run++
		play := func(name string, cutAt func(i int) bool) story {
			w.source = fmt.Sprintf("%s-%d", name, run)
			w.mapping = newMapping(t, w.source, 1)
			var all, batch []*onceward.Arrival
			for i, p := range plans {
				facts := slices.Clone(p.facts)
				batch = append(batch, w.arrivalOf(p.key, p.body, facts...))
				if cutAt(i) || i == len(plans)-1 {
					w.commit(batch...)
					all, batch = append(all, batch...), nil
				}
			}
			return w.story(all)
		}
		one := play("one", func(int) bool { return true })
		cutUp := play("cut", func(i int) bool { return cut[i] })
		equal(rt, "the story of a cut", one, cutUp)
	})
	w.checkView()
}

// story is what a source's arrivals came to, without the names and numbers in
// which two runs differ.
type story struct {
	Arrivals []string
	Entities []onceward.Entity
	Facts    []onceward.StoredFact
	Jobs     []string
}

// story collects it, and settles the jobs so that the next run sees its own.
func (w *world) story(arrivals []*onceward.Arrival) story {
	w.t.Helper()
	ctx := context.Background()
	var s story
	for _, a := range arrivals {
		s.Arrivals = append(s.Arrivals, fmt.Sprint(a.Event.Key, a.Outcome, verdicts(a)))
	}
	entities, err := w.store.Entities(ctx, onceward.EntityQuery{Source: w.source, Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entities {
		for _, f := range w.history(e.Kind, e.Key) {
			f.EventID, f.Ref.Source = 0, ""
			s.Facts = append(s.Facts, f)
		}
		e.Source = ""
		s.Entities = append(s.Entities, e)
	}
	var names []string
	for _, h := range w.handlers {
		names = append(names, h.Name)
	}
	var done []onceward.Settlement
	for _, j := range w.claimJobs(w.store, names, 1000, began) {
		c := j.Change
		s.Jobs = append(s.Jobs, fmt.Sprint(j.Handler, c.Kind, c.Key, c.Version, c.From, c.To, c.Told, c.Reached, c.Epoch, c.Tie, c.Event.Key, c.Time, string(c.Data)))
		done = append(done, settle(j))
	}
	slices.Sort(s.Jobs)
	if err := w.store.Settle(ctx, done, began); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// testRetries commits batches that name the same keys and entities in opposite
// orders; locks taken in the order of arrival would deadlock within a few
// rounds. No caller sees a deadlock or a serialization failure.
func testRetries(t *testing.T, h Harness) {
	w := newWorld(t, h)
	stores := w.handleSet(2)
	rounds := 500
	if testing.Short() {
		rounds = 100
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for r := range rounds {
		both := [2][]*onceward.Arrival{}
		for side := range both {
			for n := range 4 {
				shared := w.arrivalOf(fmt.Sprintf("e%d-%d", r, n), "same", told(fmt.Sprintf("j%d", n), "text"), told(fmt.Sprintf("k%d-%d", r, n), "text"))
				own := w.arrival(fmt.Sprintf("own%d-%d-%d", r, n, side), told(fmt.Sprintf("j%d", n), "partial"))
				both[side] = append(both[side], shared, own)
			}
		}
		slices.Reverse(both[1])
		atOnce(t, 2, func(i int) error { return stores[i].Commit(ctx, w.batch(both[i]...)) })
	}
	for n := range 4 {
		if facts := w.checkHistory("job", fmt.Sprintf("j%d", n)); facts != 3*rounds {
			t.Errorf("j%d has %d facts, want %d", n, facts, 3*rounds)
		}
	}
}

// testRevisions meets facts of several mappings at one row.
func testRevisions(t *testing.T, h Harness) {
	w := newWorld(t, h)
	ctx := context.Background()
	old := w.mapping
	newer := newMapping(t, w.source, 2)
	turned, err := onceward.NewKind(onceward.Kind{
		Name: "job", States: [][]string{{"succeeded", "failed"}, {"partial"}, {"text"}, {"queued"}}, Order: []onceward.Component{onceward.Rank},
	})
	if err != nil {
		t.Fatal(err)
	}
	newer.Kinds["job"] = turned

	w.tell("e1", "j1", "partial")
	w.tell("e2", "j1", "text")
	if e := w.entity("job", "j1"); e.Status != "partial" || e.Revision != 1 {
		t.Fatalf("under the old mapping: %s of revision %d, want partial of 1", e.Status, e.Revision)
	}
	w.mapping = newer
	a := w.tell("e3", "j1", "succeeded")
	equal(t, "the first fact of the newer mapping refolds", []string{"applied text 2"}, verdicts(a))
	if e := w.entity("job", "j1"); e.Revision != 2 || e.Version != 2 {
		t.Errorf("revision %d, version %d; want 2, 2", e.Revision, e.Version)
	}
	w.mapping = old
	b := w.tell("e4", "j1", "queued")
	if b.Outcome != onceward.New || b.Results[0].Verdict != onceward.Held || b.Results[0].Held == "" {
		t.Errorf("a fact of the old mapping: %v, %+v; want it new, and held with the reason", b.Outcome, b.Results)
	}
	if e := w.entity("job", "j1"); e.Status != "text" || e.Version != 2 || e.Facts != 4 {
		t.Errorf("the row is %s at %d with %d facts; want text at 2 with 4", e.Status, e.Version, e.Facts)
	}
	ids, err := w.store.HeldEvents(ctx, w.source, 2, 0, 10)
	equal(t, "the events left behind", []int64{b.Event.ID}, ids)
	if err != nil {
		t.Error(err)
	}
	w.mapping = newer
	c := w.retake(b, told("j1", "queued"))
	w.commit(c)
	equal(t, "taken up", []string{"applied queued 3"}, verdicts(c))
	same := w.tell("e5", "j1", "partial")
	equal(t, "one more", []string{"stale queued 3"}, verdicts(same))
	w.checkFold("job", "j1", w.history("job", "j1"))
	if _, err := w.store.HeldEvents(ctx, "nobody", 2, 0, 10); err != nil && !errors.Is(err, onceward.ErrNotFound) {
		t.Error(err)
	}
}
