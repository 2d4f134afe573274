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

const (
	// raceOrder is how many rounds the processes are told to race at a time.
	raceOrder = 20
	// raceCopies is how many clients each process has. All of them deliver the
	// event of a round that is equal everywhere.
	raceCopies = 3
	// raceEvents are the events of a round, raceRows the rows that they are about.
	raceEvents, raceRows = 5, 2
)

// raceMapping has the job of buildMapping, whose callbacks carry no clock, and a
// sale that waits for its payment.
func raceMapping(source string) (*onceward.Mapping, error) {
	m, err := buildMapping(source, 1)
	if err != nil {
		return nil, err
	}
	m.Kinds["sale"], err = onceward.NewKind(onceward.Kind{
		Name: "sale", States: [][]string{{"pending"}, {"failed"}, {"paid"}, {"refunded"}},
		Order: []onceward.Component{onceward.Time, onceward.Rank},
	})
	return m, err
}

// raceHandlers are those that work of a race is made for.
func raceHandlers() []string {
	return []string{"job", "job.text", "job.partial", "job.succeeded", "sale", "sale.pending", "sale.paid", "event:*"}
}

func raceJob(round int) string  { return fmt.Sprintf("j%d", round) }
func raceSale(round int) string { return fmt.Sprintf("s%d", round) }

// raceOwn are what one side alone says in a round: complete and paid, or first
// and pending. Paid and pending are of one second in every third round, so that
// rank has to decide, and else pending is the older.
func raceOwn(w *world, side, round int) []*onceward.Arrival {
	word, state, second, amount := "succeeded", "paid", int64(1000), int64(100)
	if side == 1 {
		word, state, second, amount = "partial", "pending", 1000-int64(round%3), 90
	}
	sale := onceward.Fact{
		Rule: "charge", Kind: "sale", Key: raceSale(round), Status: state, Time: onceward.Some(second * 1e9),
		Fields: []onceward.Part{field("amount", onceward.Int(amount))},
	}
	return []*onceward.Arrival{
		w.arrival(fmt.Sprintf("%s of %s", word, raceJob(round)), told(raceJob(round), word)),
		w.arrival(fmt.Sprintf("%s of %s", state, raceSale(round)), sale),
	}
}

// raceClient commits what one client of one side says in the rounds of an order:
// the event that is equal everywhere and, in its share of them, the side's own. Half
// of the time the own ones are a commit to themselves: what has an event in common
// waits at its claim, and never meets at the rows.
func (w *world) raceClient(s onceward.Store, o order, client int) (report, error) {
	var got report
	for from := o.First; from < o.First+o.Rounds; from += o.Size {
		own, shared := w.batch(), w.batch()
		for r := from; r < min(from+o.Size, o.First+o.Rounds); r++ {
			shared.Arrivals = append(shared.Arrivals, w.arrival("text of "+raceJob(r), told(raceJob(r), "text")))
			if r%raceCopies == client {
				own.Arrivals = append(own.Arrivals, raceOwn(w, o.Side, r)...)
			}
		}
		equal := shared.Arrivals
		batches := []*onceward.Batch{own, shared}
		if from/o.Size%2 == 0 {
			shared.Arrivals = slices.Concat(own.Arrivals, equal)
			batches = batches[1:]
		}
		for _, b := range batches {
			if err := got.commit(s, b); err != nil {
				return got, err
			}
		}
		for _, a := range equal {
			got.Shared = append(got.Shared, a.StoredID)
		}
	}
	return got, nil
}

// commit commits a batch and counts what became of it.
func (r *report) commit(s onceward.Store, b *onceward.Batch) error {
	if len(b.Arrivals) == 0 {
		return nil
	}
	if err := s.Commit(context.Background(), b); err != nil {
		return err
	}
	for _, a := range b.Arrivals {
		switch a.Outcome {
		case onceward.New:
			r.New++
		case onceward.Duplicate:
			r.Duplicate++
		default:
			return fmt.Errorf("event %s is %v", a.Event.Key, a.Outcome)
		}
	}
	return nil
}

// testProcesses is the test of laws 3, 4 and 8: two processes race complete
// against first, paid against pending, and copies of one event, while somebody
// looks on; no row goes back, each event is there once, and each status makes its
// work once. ONCEWARD_RACES is for how many rounds.
func testProcesses(t *testing.T, h Harness) {
	needProcesses(t, h)
	w := newWorld(t, h)
	mapping, err := raceMapping(w.source)
	if err != nil {
		t.Fatal(err)
	}
	w.mapping = mapping
	w.handle(raceHandlers()...)
	rounds := raceRounds(t)
	rounds -= rounds % raceOrder
	workers := []*process{w.start(), w.start()}
	watcher := w.open()
	contended, total, seen := 0, report{}, sightings{}
	sizes := []int{1, 2, 5, raceOrder} // single events, and batches that meet
	for first := 0; first < rounds; first += raceOrder {
		o := order{Do: "race", First: first, Rounds: raceOrder, Size: sizes[first/raceOrder%len(sizes)]}
		got, looked := w.raceRound(workers, watcher, o)
		seen.add(looked)
		total.New += got.New
		total.Duplicate += got.Duplicate
		contended += got.Contended
	}
	for _, p := range workers {
		p.stop()
	}
	t.Logf("%d rounds, of which %d waited for or were refused by another commit; %d readings, %d of them of a row on its way", rounds, contended, seen.all, seen.between)
	if contended*10 < rounds {
		t.Errorf("only %d of %d rounds met another commit; that is no race", contended, rounds)
	}
	if seen.between == 0 {
		t.Errorf("none of %d readings saw a row on its way; nothing was watched", seen.all)
	}
	if duplicates := rounds * (2*raceCopies - 1); total.New != raceEvents*rounds || total.Duplicate != duplicates {
		t.Errorf("%d new and %d duplicate, want %d and %d", total.New, total.Duplicate, raceEvents*rounds, duplicates)
	}
	w.checkRace(rounds)
	if w.db.Check != nil {
		w.db.Check(t)
	}
}

// needProcesses skips the test where a database has no second process.
func needProcesses(t *testing.T, h Harness) {
	t.Helper()
	if h.Alone != "" {
		t.Skipf("needs a second process: %s", h.Alone)
	}
}

// raceRound lets the workers race one order while somebody reads.
func (w *world) raceRound(workers []*process, watcher onceward.Store, o order) (report, sightings) {
	w.t.Helper()
	stop := make(chan struct{})
	var looked sightings
	var failed error
	var watching sync.WaitGroup
	watching.Go(func() { looked, failed = w.watch(watcher, o, stop) })
	var sum report
	var errs []error
	for side, p := range workers {
		theirs := o
		theirs.Side = side
		errs = append(errs, p.orders.Encode(theirs))
	}
	for side, p := range workers {
		r, err := p.answer()
		if err != nil {
			errs = append(errs, fmt.Errorf("worker %d failed in the rounds from %d: %w", side, o.First, err))
			continue
		}
		if sum.Shared == nil {
			sum.Shared = r.Shared
		}
		for i := range r.Shared {
			if r.Shared[i] != sum.Shared[i] {
				w.t.Errorf("round %d: the processes say that one event is stored as %d and as %d", o.First+i, sum.Shared[i], r.Shared[i])
			}
		}
		sum.New += r.New
		sum.Duplicate += r.Duplicate
		sum.Contended = max(sum.Contended, r.Contended)
	}
	close(stop)
	watching.Wait()
	if err := errors.Join(append(errs, failed)...); err != nil {
		w.t.Fatal(err)
	}
	return sum, looked
}

// sightings counts readings: all, and those of a row that had not reached its end.
type sightings struct{ all, between int }

func (s *sightings) add(o sightings) {
	s.all += o.all
	s.between += o.between
}

// watch reads the rows of an order's rounds over and over until stop is closed,
// and once more after that. A row that goes back, in version, status or number of
// facts, or shows two things as one version, is an error.
func (w *world) watch(s onceward.Store, o order, stop <-chan struct{}) (sightings, error) {
	var seen sightings
	last := map[onceward.Ref]*onceward.Entity{}
	for over := false; ; {
		for r := o.First; r < o.First+o.Rounds; r++ {
			for _, ref := range []onceward.Ref{w.ref("job", raceJob(r)), w.ref("sale", raceSale(r))} {
				e, err := s.Entity(context.Background(), ref)
				if errors.Is(err, onceward.ErrNotFound) && last[ref] == nil {
					continue
				}
				if err == nil {
					err = w.wentOn(last[ref], e)
				}
				if err != nil {
					return seen, fmt.Errorf("watching %s: %w", ref, err)
				}
				last[ref] = e
				seen.all++
				if e.Status != "succeeded" && e.Status != "paid" {
					seen.between++
				}
			}
		}
		if over {
			return seen, nil
		}
		select {
		case <-stop:
			over = true
		default:
		}
	}
}

// wentOn returns an error if a row that was read later is not one that can follow.
func (w *world) wentOn(was, is *onceward.Entity) error {
	if was == nil {
		return nil
	}
	kind := w.mapping.Kinds[is.Kind]
	before, _ := kind.Rank(was.Status)
	after, _ := kind.Rank(is.Status)
	same := was.Status == is.Status && string(was.Data) == string(is.Data)
	if is.Version < was.Version || after < before || is.Facts < was.Facts || is.Version == was.Version && !same {
		return fmt.Errorf("it was %s %s at version %d of %d facts, and then %s %s at version %d of %d facts",
			was.Status, was.Data, was.Version, was.Facts, is.Status, is.Data, is.Version, is.Facts)
	}
	return nil
}
