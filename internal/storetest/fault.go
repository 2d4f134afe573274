package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/onceward/onceward"
)

// Fault says which call of a store fails, and how.
type Fault struct {
	// Method is the name of the method: "Commit", "Claim", ...
	Method string
	// Call is the number of the call to it that fails, from 1; 0 means every one.
	Call int
	// Applied says that the call does its work and is only then reported failed.
	Applied bool
	// Err is the error given. nil means ErrUnknownOutcome where Applied is set,
	// and else ErrUnavailable.
	Err error
}

func (f Fault) err() error {
	switch {
	case f.Err != nil:
		return f.Err
	case f.Applied:
		return onceward.ErrUnknownOutcome
	}
	return onceward.ErrUnavailable
}

// FaultyStore is a store whose calls fail as planned. It is safe for concurrent
// use if the store below is. Make it with [Faulty].
type FaultyStore struct {
	below onceward.Store
	// Before, if not nil, runs at the start of each call, outside of any lock; it
	// may block, so that a test can hold a call in flight. Set it before use.
	Before func(ctx context.Context, method string, call int)

	mu     sync.Mutex
	faults []Fault        // guarded by mu, as all below
	calls  map[string]int // by method
	struck int
}

// Faulty wraps a store so that the planned calls fail. Lanes and Close never do.
func Faulty(s onceward.Store, plan ...Fault) *FaultyStore {
	return &FaultyStore{below: s, faults: plan, calls: map[string]int{}}
}

// Plan replaces the planned faults and counts calls from the beginning again.
func (f *FaultyStore) Plan(plan ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults, f.calls, f.struck = plan, map[string]int{}, 0
}

// Calls returns how often a method was called.
func (f *FaultyStore) Calls(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

// Struck returns how many calls were made to fail. A test whose faults never
// strike proves nothing.
func (f *FaultyStore) Struck() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.struck
}

// next counts a call and returns the fault planned for it, if there is one.
func (f *FaultyStore) next(ctx context.Context, method string) (Fault, bool) {
	f.mu.Lock()
	f.calls[method]++
	call := f.calls[method]
	var fault Fault
	strikes := false
	for _, planned := range f.faults {
		if planned.Method == method && (planned.Call == 0 || planned.Call == call) {
			fault, strikes = planned, true
			f.struck++
			break
		}
	}
	f.mu.Unlock()
	if f.Before != nil {
		f.Before(ctx, method, call)
	}
	return fault, strikes
}

func call[T any](ctx context.Context, f *FaultyStore, method string, do func() (T, error)) (T, error) {
	var none T
	fault, strikes := f.next(ctx, method)
	switch {
	case !strikes:
		return do()
	case fault.Applied:
		if _, err := do(); err != nil {
			return none, err
		}
	}
	return none, fault.err()
}

func run(ctx context.Context, f *FaultyStore, method string, do func() error) error {
	_, err := call(ctx, f, method, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// Commit implements [onceward.Inbox]. Where a planned fault strikes the outcomes
// are as the contract says; a failure of the store below is passed on as it is.
func (f *FaultyStore) Commit(ctx context.Context, b *onceward.Batch) error {
	fault, strikes := f.next(ctx, "Commit")
	if !strikes || fault.Applied {
		if err := f.below.Commit(ctx, b); err != nil || !strikes {
			return err
		}
	}
	for _, a := range b.Arrivals {
		a.Outcome, a.StoredID, a.Results = onceward.Undecided, 0, nil
	}
	return fault.err()
}

// Register implements [onceward.Inbox].
func (f *FaultyStore) Register(ctx context.Context, source, hash string, doc []byte, now time.Time) (int64, int64, error) {
	numbers, err := call(ctx, f, "Register", func() ([2]int64, error) {
		revision, newest, err := f.below.Register(ctx, source, hash, doc, now)
		return [2]int64{revision, newest}, err
	})
	return numbers[0], numbers[1], err
}

// Node implements [onceward.Inbox].
func (f *FaultyStore) Node(ctx context.Context) (int, error) {
	return call(ctx, f, "Node", func() (int, error) { return f.below.Node(ctx) })
}

// Quarantine implements [onceward.Inbox].
func (f *FaultyStore) Quarantine(ctx context.Context, rejections []onceward.Rejection, limits onceward.QuarantineLimits) error {
	return run(ctx, f, "Quarantine", func() error { return f.below.Quarantine(ctx, rejections, limits) })
}

// Lanes implements [onceward.Inbox].
func (f *FaultyStore) Lanes() int { return f.below.Lanes() }

// Ping implements [onceward.Inbox].
func (f *FaultyStore) Ping(ctx context.Context) error {
	return run(ctx, f, "Ping", func() error { return f.below.Ping(ctx) })
}

// Event implements [onceward.Reader].
func (f *FaultyStore) Event(ctx context.Context, id int64) (*onceward.StoredEvent, error) {
	return call(ctx, f, "Event", func() (*onceward.StoredEvent, error) { return f.below.Event(ctx, id) })
}

// Events implements [onceward.Reader].
func (f *FaultyStore) Events(ctx context.Context, q onceward.EventQuery) ([]onceward.StoredEvent, error) {
	return call(ctx, f, "Events", func() ([]onceward.StoredEvent, error) { return f.below.Events(ctx, q) })
}

// Entity implements [onceward.Reader].
func (f *FaultyStore) Entity(ctx context.Context, ref onceward.Ref) (*onceward.Entity, error) {
	return call(ctx, f, "Entity", func() (*onceward.Entity, error) { return f.below.Entity(ctx, ref) })
}

// Entities implements [onceward.Reader].
func (f *FaultyStore) Entities(ctx context.Context, q onceward.EntityQuery) ([]onceward.Entity, error) {
	return call(ctx, f, "Entities", func() ([]onceward.Entity, error) { return f.below.Entities(ctx, q) })
}

// History implements [onceward.Reader].
func (f *FaultyStore) History(ctx context.Context, ref onceward.Ref) ([]onceward.StoredFact, error) {
	return call(ctx, f, "History", func() ([]onceward.StoredFact, error) { return f.below.History(ctx, ref) })
}

// EventFacts implements [onceward.Reader].
func (f *FaultyStore) EventFacts(ctx context.Context, eventID int64) ([]onceward.StoredFact, error) {
	return call(ctx, f, "EventFacts", func() ([]onceward.StoredFact, error) { return f.below.EventFacts(ctx, eventID) })
}

// HeldEvents implements [onceward.Reader].
func (f *FaultyStore) HeldEvents(ctx context.Context, source string, below, after int64, limit int) ([]int64, error) {
	return call(ctx, f, "HeldEvents", func() ([]int64, error) { return f.below.HeldEvents(ctx, source, below, after, limit) })
}

// Rejections implements [onceward.Reader].
func (f *FaultyStore) Rejections(ctx context.Context, source string, limit int) ([]onceward.Rejection, error) {
	return call(ctx, f, "Rejections", func() ([]onceward.Rejection, error) { return f.below.Rejections(ctx, source, limit) })
}

// Stats implements [onceward.Reader].
func (f *FaultyStore) Stats(ctx context.Context) (onceward.Stats, error) {
	return call(ctx, f, "Stats", func() (onceward.Stats, error) { return f.below.Stats(ctx) })
}

// Claim implements [onceward.Work].
func (f *FaultyStore) Claim(ctx context.Context, handlers []string, limit int, now time.Time, lease time.Duration) ([]onceward.Job, error) {
	return call(ctx, f, "Claim", func() ([]onceward.Job, error) { return f.below.Claim(ctx, handlers, limit, now, lease) })
}

// Settle implements [onceward.Work].
func (f *FaultyStore) Settle(ctx context.Context, settlements []onceward.Settlement, now time.Time) error {
	return run(ctx, f, "Settle", func() error { return f.below.Settle(ctx, settlements, now) })
}

// Jobs implements [onceward.Work].
func (f *FaultyStore) Jobs(ctx context.Context, limit int) ([]onceward.Job, error) {
	return call(ctx, f, "Jobs", func() ([]onceward.Job, error) { return f.below.Jobs(ctx, limit) })
}

// Close implements [onceward.Store].
func (f *FaultyStore) Close() error { return f.below.Close() }

var _ onceward.Store = (*FaultyStore)(nil)
