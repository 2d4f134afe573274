package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
)

const (
	// drawnOrders is how many orders of more than five deliveries are played.
	drawnOrders = 120
	// racedTimes is how often deliveries that start at once are played, unless the
	// case says how often.
	racedTimes = 200
	// shortLanes bounds both in a short run.
	shortLanes = 12
	// laneWorkers is how many lanes are played at the same time.
	laneWorkers = 8
)

// anyOrder are the ops that leave the end of a play to the deliveries, in whatever
// order these come. They stay where they are.
var anyOrder = []string{
	"local_write", "local_tx_begin", "advance_clock", "pause_workers", "resume_workers", "restart_all",
	"rebuild", "reprocess", "snapshot_tables", "compare_tables",
}

// fixed says why the deliveries of a case cannot be played in other orders, "" if
// they can.
func (c *fieldCase) fixed() string {
	for i := range c.Steps {
		if op := c.Steps[i].Op; op != "" && !slices.Contains(anyOrder, op) {
			return "what follows depends on when " + op + " is done"
		}
	}
	for _, want := range c.Expect.HTTP {
		for word := range strings.SplitSeq(want, "|") {
			if word == "conn_reset" || strings.HasPrefix(word, "5") {
				return "the answer " + want + " depends on the moment"
			}
		}
	}
	return ""
}

// lanes are plays of one case side by side, each with sources of its own, behind
// one server without workers.
type lanes struct {
	c      *fieldCase
	p      *play
	host   *engine
	all    [][]int // for each lane the steps to do, in order; a delivery may stand twice
	strict bool    // rows are compared although a conflict may decide them
	raced  bool    // members of a group start at once, and nothing is sent twice
	prefix string
}

// orders returns the orders of the deliveries: all of up to five, else as many as
// drawn ones as there may be. Equal deliveries make no order of their own.
func orders(c *fieldCase, short bool, chance *rand.Rand) [][]int {
	var told []int
	names := map[int]string{}
	for i, raw := range c.Told {
		if c.Steps[i].Op != "" {
			continue
		}
		told = append(told, i)
		names[i] = alike(raw)
	}
	var all [][]int
	if len(told) <= 5 {
		all = permutations(told, func(i int) string { return names[i] })
	} else {
		for range drawnOrders {
			order := slices.Clone(told)
			chance.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			all = append(all, order)
		}
	}
	if short && len(all) > shortLanes {
		chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:shortLanes]
	}
	return all
}

// alike is the same for deliveries that differ in their moment only.
func alike(raw json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return string(raw)
	}
	delete(members, "at_ms")
	delete(members, "parallel_group")
	text, err := json.Marshal(members)
	if err != nil {
		return string(raw)
	}
	return string(text)
}

// permutations lists the orders of items, those that differ in equal items only
// once. The first is the one given.
func permutations(items []int, name func(int) string) [][]int {
	if len(items) == 0 {
		return [][]int{nil}
	}
	var all [][]int
	seen := map[string]bool{}
	for i, item := range items {
		if seen[name(item)] {
			continue
		}
		seen[name(item)] = true
		for _, rest := range permutations(slices.Delete(slices.Clone(items), i, i+1), name) {
			all = append(all, append([]int{item}, rest...))
		}
	}
	return all
}

// twice adds a second copy of each delivery, somewhere behind the first.
func twice(order []int, chance *rand.Rand) []int {
	out := slices.Clone(order)
	for _, step := range order {
		first := slices.Index(out, step)
		at := first + 1 + chance.IntN(len(out)-first)
		out = slices.Insert(out, at, step)
	}
	return out
}

// among puts the deliveries of an order into the places where deliveries stand in
// the case, and what stands twice behind the place of the first.
func among(c *fieldCase, order []int) []int {
	var out []int
	per := float64(len(order)) / float64(max(1, len(c.Expect.HTTP)))
	told, done := 0, 0
	for i := range c.Steps {
		if c.Steps[i].Op != "" {
			out = append(out, i)
			continue
		}
		told++
		for float64(done) < per*float64(told) && done < len(order) {
			out = append(out, order[done])
			done++
		}
	}
	return append(out, order[done:]...)
}

// playOrders plays a case in other orders, and its groups over and over, on one
// store, and adds what differs to the play's verdict.
func (p *play) playOrders(reference []string) {
	chance := rand.New(rand.NewPCG(uint64(len(p.c.Told)), 4))
	var all [][]int
	for _, order := range orders(p.c, testing.Short(), chance) {
		all = append(all, among(p.c, twice(order, chance)))
	}
	p.note(p.playLanes(&lanes{c: p.c, p: p, all: all, prefix: p.prefix + "o"}, reference))

	n := p.c.Expect.Repeat
	if n == 0 && slices.ContainsFunc(p.c.Steps, func(s step) bool { return s.Op == "" && s.group() != "" }) {
		n = racedTimes
	}
	if testing.Short() {
		n = min(n, shortLanes)
	}
	var inOrder []int
	for i := range p.c.Steps {
		inOrder = append(inOrder, i)
	}
	p.note(p.playLanes(&lanes{c: p.c, p: p, all: slices.Repeat([][]int{inOrder}, n), raced: true, prefix: p.prefix + "r"}, reference))
}

// playLanes plays all lanes and compares each with the reference.
func (p *play) playLanes(l *lanes, reference []string) error {
	if len(l.all) == 0 {
		return nil
	}
	store, err := p.shelf.opens()
	if err != nil {
		return err
	}
	if err := l.start(store); err != nil {
		return errors.Join(err, store.Close())
	}
	var mu sync.Mutex
	var workers sync.WaitGroup
	next := make(chan int)
	for range laneWorkers {
		workers.Go(func() {
			w := &wire{address: l.host.public}
			defer w.close()
			for i := range next {
				wrong := l.play(i, w)
				if wrong == nil {
					wrong = l.compare(i, store, reference)
				}
				if wrong != nil {
					mu.Lock()
					if len(p.wrong) < 5 {
						p.fail("%s: %v", l.told(i), wrong)
					}
					mu.Unlock()
				}
			}
		})
	}
	for i := range l.all {
		next <- i
	}
	close(next)
	workers.Wait()
	return errors.Join(l.host.close(), store.Close())
}

// told describes a lane.
func (l *lanes) told(i int) string {
	if l.raced {
		return fmt.Sprintf("raced the %d. time", i+1)
	}
	var steps []string
	for _, s := range l.all[i] {
		steps = append(steps, fmt.Sprint(s+1))
	}
	return "steps in the order " + strings.Join(steps, " ")
}

func (l *lanes) lane(i int) string { return fmt.Sprintf("/%s%d", l.prefix, i) }

// start starts one server that has the sources of all lanes.
func (l *lanes) start(store onceward.Store) error {
	sources := map[string]inbox.Source{}
	for i := range l.all {
		for _, s := range l.p.conf.Sources {
			sources[l.source(i, s.Name)] = inbox.Source{Compiled: s.Provider, MaxBody: s.MaxBody, Path: l.lane(i) + s.Path}
		}
	}
	clock := newClock()
	app, err := newApplication(clock, &setup{})
	if err != nil {
		return err
	}
	l.host, err = startEngine(engineConfig{
		store: watch(store), sources: sources, publicURL: l.p.conf.PublicURL, clock: clock, app: app, paused: true,
	})
	return err
}

func (l *lanes) source(i int, name string) string { return fmt.Sprintf("%s%d-%s", l.prefix, i, name) }

// play plays one lane.
func (l *lanes) play(i int, w *wire) error {
	s := &signer{secrets: l.p.secrets(), now: time.Unix(baseTime, 0), prefix: l.lane(i)}
	wanted := map[int]string{}
	n := 0
	for at := range l.c.Steps {
		if l.c.Steps[at].Op == "" && n < len(l.c.Expect.HTTP) {
			wanted[at] = l.c.Expect.HTTP[n]
			n++
		}
	}
	grouped := map[string]bool{}
	for _, at := range l.all[i] {
		st := &l.c.Steps[at]
		var err error
		switch {
		case st.Op == "local_write" || st.Op == "local_tx_begin":
			err = l.write(i, st)
		case st.Op != "":
		case l.raced && st.group() != "":
			if !grouped[st.group()] {
				grouped[st.group()] = true
				err = l.race(s, st.group(), wanted)
			}
		default:
			err = l.deliver(at, s, w, wanted[at])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lanes) deliver(at int, s *signer, w *wire, want string) error {
	r, err := prepare(&l.c.Steps[at].delivery, s)
	if err != nil {
		return err
	}
	a, err := w.send(r)
	if err != nil {
		return err
	}
	fits, err := statusFits(a, want)
	if err != nil || fits {
		return err
	}
	if (&play{c: l.c, verdict: verdict{excepted: map[int]bool{}}}).isException(fmt.Sprintf("http[%d]", l.c.deliveryAt(at)), a.String(), r.Method) {
		return nil
	}
	return fmt.Errorf("step %d was answered %s, want %s", at+1, a, want)
}

// deliveryAt is which delivery a step is.
func (c *fieldCase) deliveryAt(at int) int {
	n := 0
	for i := range at {
		if c.Steps[i].Op == "" {
			n++
		}
	}
	return n
}

// race sends the members of a group at once.
func (l *lanes) race(s *signer, group string, wanted map[int]string) error {
	var all sync.WaitGroup
	var errs []error
	var mu sync.Mutex
	for at := range l.c.Steps {
		if st := &l.c.Steps[at]; st.Op == "" && st.group() == group {
			all.Go(func() {
				w := &wire{address: l.host.public}
				defer w.close()
				if err := l.deliver(at, s, w, wanted[at]); err != nil {
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, err)
				}
			})
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

func (l *lanes) write(i int, st *step) error {
	ref, fields, err := l.p.ownRow(st)
	if err != nil {
		return err
	}
	ref.Source = l.source(i, strings.TrimPrefix(ref.Source, l.p.prefix))
	return l.host.put(ref, fields)
}

// compare compares the rows of a lane with those of the play that was judged, and
// the number of its events with what the case wants.
func (l *lanes) compare(i int, store onceward.Store, reference []string) error {
	names := map[string]map[string]*onceward.Kind{}
	for _, s := range l.p.conf.Sources {
		names[l.source(i, s.Name)] = nil
	}
	v, err := look(context.Background(), store, nil, names, "")
	if err != nil {
		return err
	}
	if got, want := v.conflicts(), l.p.conflicts; got != want {
		return fmt.Errorf("%d events are conflicts, and %d in the order of the case", got, want)
	}
	kept := int64(0)
	for _, e := range v.events {
		if e.Origin == onceward.Sent && e.Outcome != onceward.Duplicate {
			kept++
		}
	}
	if want, err := readCount(l.c.Expect.Stored); err == nil && !l.p.spoilt && !want.has(kept) {
		return fmt.Errorf("%d events are stored, want %s", kept, want)
	}
	if v.conflicts() > 0 && !l.strict {
		return nil // which body came first is one of the two things that arrival may decide
	}
	got := v.state()
	for n := range got {
		got[n] = strings.ReplaceAll(got[n], fmt.Sprintf("in %s%d-", l.prefix, i), "in "+l.p.prefix)
	}
	if !slices.Equal(got, reference) {
		return fmt.Errorf("the rows are\n    %s\nand are, in the order of the case,\n    %s", strings.Join(got, "\n    "), strings.Join(reference, "\n    "))
	}
	return nil
}

// conflicts counts the events whose key another one has with other facts.
func (v *view) conflicts() (n int) {
	for _, e := range v.events {
		if e.Outcome == onceward.Conflict {
			n++
		}
	}
	return n
}
