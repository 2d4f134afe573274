package committer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/onceward/onceward"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tableStore keeps everything in maps and decides by the same plan as the real
// stores. Tests make it fail or wait through before and after; the engine's own
// tests run on SQLite.
type tableStore struct {
	lanes  int
	before func(n int, b *onceward.Batch) error // n counts the commits from 1
	after  func(n int, b *onceward.Batch) error // an error here comes after all was kept

	mu       sync.Mutex
	commits  int
	sizes    []int
	claims   map[onceward.ID]onceward.Claim
	variants map[identity]onceward.Claim
	rows     map[onceward.ID]onceward.EntityRow
	facts    map[onceward.ID][]onceward.Fact
	events   map[int64]*onceward.Event
	repeats  int
}

func newTableStore(lanes int) *tableStore {
	return &tableStore{
		lanes:  lanes,
		claims: map[onceward.ID]onceward.Claim{}, variants: map[identity]onceward.Claim{},
		rows: map[onceward.ID]onceward.EntityRow{}, facts: map[onceward.ID][]onceward.Fact{},
		events: map[int64]*onceward.Event{},
	}
}

func (s *tableStore) Lanes() int { return s.lanes }

func (s *tableStore) Commit(ctx context.Context, b *onceward.Batch) error {
	s.mu.Lock()
	s.commits++
	n := s.commits
	s.sizes = append(s.sizes, len(b.Arrivals))
	s.mu.Unlock()
	if s.before != nil {
		if err := s.before(n, b); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.keep(b); err != nil {
		return err
	}
	if s.after != nil {
		return s.after(n, b)
	}
	return nil
}

func (s *tableStore) keep(b *onceward.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	txn := onceward.NewTxn(b)
	v := view{s, map[onceward.ID]bool{}, map[identity]bool{}}
	for _, c := range txn.Claims() {
		if _, there := s.claims[c.ID]; !there {
			s.claims[c.ID] = c
			v.inserted[c.ID] = true
		}
	}
	for _, c := range txn.Variants() {
		id := identity{c.ID, c.Digest}
		if _, there := s.variants[id]; !there {
			s.variants[id] = c
			v.noted[id] = true
		}
	}
	w, err := txn.Plan(v)
	if err != nil {
		return err
	}
	for _, e := range w.Events {
		s.events[e.ID] = e.Event
	}
	for _, r := range w.Rows {
		s.rows[r.ID] = onceward.EntityRow{ID: r.ID, Ref: r.Ref, Row: r.Row, Facts: r.Facts}
	}
	for _, f := range w.Facts {
		s.facts[f.Entity] = append(s.facts[f.Entity], *f.Fact)
	}
	s.repeats += len(w.Repeats)
	return nil
}

type view struct {
	s        *tableStore
	inserted map[onceward.ID]bool
	noted    map[identity]bool
}

func (v view) Claim(id onceward.ID) (onceward.Claim, bool) { return v.s.claims[id], v.inserted[id] }
func (v view) Variant(id onceward.ID, d onceward.Digest) (onceward.Claim, bool, bool, error) {
	c, known := v.s.variants[identity{id, d}]
	return c, v.noted[identity{id, d}], known, nil
}
func (v view) Entity(id onceward.ID) (onceward.EntityRow, error) { return v.s.rows[id], nil }
func (v view) Facts(id onceward.ID) ([]onceward.Fact, error)     { return v.s.facts[id], nil }
func (v view) HeldFacts(int64, int64) (int, error)               { return 0, nil }

// count returns how many events are kept.
func (s *tableStore) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.events)
}

func (s *tableStore) batchSizes() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int(nil), s.sizes...)
}

var mapping = &onceward.Mapping{Source: "shop", Hash: "h", Revision: 1}

var lastID atomic.Int64

// arrival makes an event without facts.
func arrival(key, body string) *onceward.Arrival {
	return &onceward.Arrival{
		Event: &onceward.Event{
			ID: lastID.Add(1), Source: "shop", Key: key, Digest: onceward.DigestOf([]byte(body)),
			Delivery: &onceward.Delivery{At: time.Unix(1000, 0), Body: []byte(body)},
		},
		Mapping: mapping,
	}
}

// start makes a committer on s with small bounds; change may alter them.
func start(t *testing.T, s *tableStore, change func(*Config)) *Committer {
	t.Helper()
	cfg := Config{
		Store: s, QueueEvents: 16, QueueBytes: 1 << 10, BatchEvents: 8, BatchBytes: 512,
		CommitTimeout: 10 * time.Second, RefuseFor: 500 * time.Millisecond,
		Now:      time.Now,
		Handlers: func() []onceward.Handler { return nil },
		Resolve: each(func(*onceward.Arrival) (onceward.Resolution, error) {
			return 0, errors.New("nothing should differ here")
		}),
		Committed: func(int, time.Duration, error) {},
	}
	if change != nil {
		change(&cfg)
	}
	return New(cfg)
}

// each makes a Resolve that compares one after the other.
func each(compare func(*onceward.Arrival) (onceward.Resolution, error)) func(context.Context, []*onceward.Arrival) []Comparison {
	return func(_ context.Context, arrivals []*onceward.Arrival) []Comparison {
		all := make([]Comparison, len(arrivals))
		for i, a := range arrivals {
			all[i].Resolution, all[i].Err = compare(a)
		}
		return all
	}
}

// answer is what one submission was told.
type answer struct {
	results []Result
	err     error
}

// submit sends arrivals as one delivery of 10 bytes, in the background.
func submit(ctx context.Context, c *Committer, arrivals ...*onceward.Arrival) <-chan answer {
	told := make(chan answer, 1)
	go func() {
		r, err := c.Submit(ctx, arrivals, 10)
		told <- answer{r, err}
	}()
	return told
}

// hold makes the first commit wait until the returned function is called.
func (s *tableStore) hold() (release func()) {
	gate := make(chan struct{})
	s.before = func(n int, _ *onceward.Batch) error {
		if n == 1 {
			<-gate
		}
		return nil
	}
	return func() { close(gate) }
}

func mustClose(t *testing.T, c *Committer) {
	t.Helper()
	if err := c.Close(context.Background()); err != nil {
		t.Errorf("close: %v", err)
	}
	if events, bytes := c.Depth(); events != 0 || bytes != 0 {
		t.Errorf("after the end %d events of %d bytes are not settled", events, bytes)
	}
}

func outcomes(t *testing.T, told []<-chan answer) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, ch := range told {
		a := <-ch
		if a.err != nil {
			count[a.err.Error()]++
			continue
		}
		for _, r := range a.results {
			if r.Err != nil {
				count[fmt.Sprintf("%T", r.Err)]++
				continue
			}
			count[r.Outcome.String()]++
		}
	}
	return count
}
