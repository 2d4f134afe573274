// Package committer turns single arrivals into batches: group commit without a
// timer.
//
// While one batch commits, arrivals gather in a bounded queue; the next batch
// takes what is there. An arrival whose claim and digest already wait in the
// queue joins the one that is there, as a repeat of it, and takes no room: of many
// repeats the first mostRepeats are noted. Whoever
// submits waits until the batch that holds its arrivals has been committed, and
// is told of success only then. A submitter that stops waiting cancels nothing.
//
// A batch that the store refuses because of one of its rows is halved until that
// row stands alone. One that is not committed in time makes the next ones smaller,
// until they are; then they grow again. When the store is down, submissions are refused at once for a
// moment; then one batch probes, and all goes on when it succeeds.
package committer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/onceward/onceward"
)

// Why a submission is refused. All of them mean: not now, later perhaps.
var (
	// ErrFull says that the queue has no room.
	ErrFull = errors.New("the queue is full")
	// ErrRefusing says that the last batch failed, a moment ago.
	ErrRefusing = errors.New("the store failed a moment ago")
	// ErrClosed says that the committer takes nothing any more.
	ErrClosed = errors.New("the inbox is shutting down")
)

// RefusedError says that the store refused one arrival that stood alone in its
// batch, for a reason that trying again will not mend. Its sender is answered 500
// and nothing of it is kept, so an operator sees it in three places: in the log, as
// a commit of one event that failed and a delivery that was answered 500, both with
// the store's error; in the metrics, as an event whose outcome is undecided; and at
// the sender, which lists the deliveries that it gave up.
type RefusedError struct{ Err error }

// Error implements error.
func (e *RefusedError) Error() string { return "the store refused the event: " + e.Err.Error() }

// Unwrap returns the store's error.
func (e *RefusedError) Unwrap() error { return e.Err }

// Store is what the committer needs of a store.
type Store interface {
	// Commit is that of onceward.Inbox.
	Commit(ctx context.Context, b *onceward.Batch) error
	// Lanes is how many Commits at once the store makes good use of.
	Lanes() int
}

// Config says how to commit. All fields must be set unless they say otherwise.
type Config struct {
	Store Store
	// QueueEvents and QueueBytes bound what has been submitted and not been
	// settled yet. One submission may exceed them if half of the queue is free.
	QueueEvents int
	QueueBytes  int64
	// BatchEvents and BatchBytes bound a batch. The arrivals of one submission
	// stay together where they fit in a batch.
	BatchEvents int
	BatchBytes  int64
	// CommitTimeout bounds one commit; one that takes longer counts as unknown.
	CommitTimeout time.Duration
	// RefuseFor is how long submissions are refused after a failed batch.
	RefuseFor time.Duration
	// Now is the clock of the rows' times.
	Now func() time.Time
	// Handlers returns the handlers that jobs are made for.
	Handlers func() []onceward.Handler
	// Resolve compares arrivals of one delivery whose outcome is Differs with the
	// stored events, and returns one Comparison for each.
	Resolve func(ctx context.Context, arrivals []*onceward.Arrival) []Comparison
	// Committed is told of each commit: the events it held, how long it took and
	// how it failed, if it did. What it panics with is dropped.
	Committed func(events int, took time.Duration, err error)
}

// Comparison is what became of comparing one arrival with the stored event: a
// Resolution, or why there is none.
type Comparison struct {
	Resolution onceward.Resolution
	Err        error
}

// mostRepeats bounds how many repeats of an arrival that waits are noted with it.
// Those beyond are answered like any other and leave no trace of their own: a fast
// replay must not grow memory.
const mostRepeats = 64

// Committer gathers arrivals into batches. Its methods are safe for concurrent
// use.
type Committer struct {
	cfg     Config
	ctx     context.Context // of the commits; not that of any submitter
	cancel  context.CancelFunc
	stopped chan struct{} // closed when every goroutine of the committer has ended

	mu      sync.Mutex
	work    sync.Cond // lanes wait for the queue, the gate or the end
	pending sync.Cond // resolvers wait for differing, or the end

	// All below is guarded by mu.
	queue     []*entry            // waiting for a batch, in order of arrival
	waiting   map[identity]*entry // those of queue that others may join
	differing []*entry            // waiting for a resolution
	resolved  []*entry            // waiting for a batch with it, before those of queue
	most      int                 // how many events a batch may hold by now
	inTime    int                 // batches of that many since most was changed
	events    int                 // submitted and not settled
	bytes     int64
	closed    bool
	gate      gate
	probing   bool        // one lane tries the store while the gate is half open
	reopen    *time.Timer // opens the gate half; nil unless it is shut
}

type gate uint8

const (
	open gate = iota // the last batch that ended was stored
	shut             // a batch failed; everything is refused
	half             // one batch may probe
)

// identity is what makes two arrivals one.
type identity struct {
	claim  onceward.ID
	digest onceward.Digest
}

// entry is an arrival on its way. The committer owns the arrival until done is
// closed; from then on nobody changes it.
type entry struct {
	arrival *onceward.Arrival
	id      identity
	size    int64
	weight  int64 // what it adds to a batch: size, and the delivery's where a part begins
	group   int   // at the first entry of a part: how many belong together
	err     error
	done    chan struct{}
}

// New starts a committer. It must be closed.
func New(cfg Config) *Committer {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Committer{
		cfg: cfg, ctx: ctx, cancel: cancel, most: cfg.BatchEvents,
		stopped: make(chan struct{}), waiting: make(map[identity]*entry),
	}
	c.work.L, c.pending.L = &c.mu, &c.mu
	var running sync.WaitGroup
	for range max(1, cfg.Store.Lanes()) {
		running.Go(c.lane)
		running.Go(c.resolver)
	}
	go func() {
		running.Wait()
		close(c.stopped)
	}()
	return c
}

// Result is what became of one submitted arrival.
type Result struct {
	// Outcome, StoredID and Facts are the arrival's.
	Outcome  onceward.Outcome
	StoredID int64
	Facts    []onceward.FactResult
	// Err says why nothing is known to be stored: a *RefusedError, or an error of
	// the store or of the committer after which trying again may help.
	Err error
}

// Submit hands over arrivals that came together and waits until each of them is
// settled. size is what they take in memory, in bytes. The arrivals belong to the
// committer from then on. An error means that the outcome is not known: the queue
// is full, the committer refuses or is closed, or ctx has ended. What was taken in
// before ctx ended may still be stored.
func (c *Committer) Submit(ctx context.Context, arrivals []*onceward.Arrival, size int64) ([]Result, error) {
	taken, err := c.enter(arrivals, size)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(taken))
	for i, t := range taken {
		select {
		case <-t.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		results[i] = t.result()
	}
	return results, nil
}

// place is an arrival's entry, or the one it joined.
type place struct {
	*entry
	joined bool
}

func (p place) result() Result {
	if p.err != nil {
		return Result{Err: p.err}
	}
	r := Result{Outcome: p.arrival.Outcome, StoredID: p.arrival.StoredID, Facts: p.arrival.Results}
	if p.joined {
		r.Facts = nil
		if r.Outcome == onceward.New {
			r.Outcome = onceward.Duplicate
		}
	}
	return r
}

// enter puts arrivals into the queue, all of them or none.
func (c *Committer) enter(arrivals []*onceward.Arrival, size int64) ([]place, error) {
	places := make([]place, len(arrivals))
	ids := make([]identity, len(arrivals))
	for i, a := range arrivals { // hashes outside the lock
		ids[i] = identity{a.Event.ClaimID(), a.Event.Digest}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, ErrClosed
	case c.gate == shut:
		return nil, ErrRefusing
	}
	if !c.hasRoom(arrivals, ids, size) {
		return nil, ErrFull
	}
	first := len(c.queue)
	for i, a := range arrivals {
		if e := c.waiting[ids[i]]; e != nil && a.Retake == 0 {
			e.noteRepeat(a)
			places[i] = place{e, true}
			continue
		}
		e := &entry{arrival: a, id: ids[i], done: make(chan struct{})}
		if len(c.queue) == first {
			e.size, e.weight = size, size
		}
		c.queue = append(c.queue, e)
		if a.Retake == 0 {
			c.waiting[ids[i]] = e
		}
		places[i] = place{e, false}
	}
	if added := len(c.queue) - first; added > 0 {
		c.queue[first].group = added
		c.events += added
		c.bytes += size
		c.work.Signal()
	}
	return places, nil
}

// noteRepeat notes that an equal arrival has joined.
func (e *entry) noteRepeat(a *onceward.Arrival) {
	d := a.Event.Delivery
	most := max(mostRepeats, len(e.arrival.Repeats))
	e.arrival.Repeats = append(e.arrival.Repeats, onceward.Repeat{At: d.At, Remote: d.Remote})
	e.arrival.Repeats = append(e.arrival.Repeats, a.Repeats...)
	e.arrival.Repeats = e.arrival.Repeats[:min(len(e.arrival.Repeats), most)]
}

// hasRoom reports whether the queue takes the arrivals. Those that will join one
// that is there take no room. A submission that is larger than half the queue fits
// where half the queue is free, so that it is not refused for ever.
func (c *Committer) hasRoom(arrivals []*onceward.Arrival, ids []identity, size int64) bool {
	fresh := 0
	for i, a := range arrivals {
		if a.Retake != 0 || c.waiting[ids[i]] == nil {
			fresh++
		}
	}
	if fresh == 0 {
		return true
	}
	fresh, size = min(fresh, max(1, c.cfg.QueueEvents/2)), min(size, max(1, c.cfg.QueueBytes/2))
	return c.events+fresh <= c.cfg.QueueEvents && c.bytes+size <= c.cfg.QueueBytes
}

// Depth returns how many events, and bytes of them, wait or are being committed.
func (c *Committer) Depth() (events int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events, c.bytes
}

// Refusing reports whether submissions are refused, for a batch failed a moment
// ago. When that moment is over the next submission is taken in, as a probe, so
// that readiness comes back without one.
func (c *Committer) Refusing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gate == shut
}

// Close takes nothing more, commits what has been taken in and answers every
// waiter; if the store fails meanwhile, with its error. When ctx ends first, Close
// cancels the commits under way, answers the rest with an error and returns
// without waiting for the store. Closing twice is harmless.
func (c *Committer) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true // from here on the gate counts for nothing
	if c.reopen != nil {
		c.reopen.Stop()
		c.reopen = nil
	}
	c.wakeAll()
	c.mu.Unlock()
	select {
	case <-c.stopped:
		c.cancel()
		return nil
	case <-ctx.Done():
	}
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failWaiting(ErrClosed)
	return context.Cause(ctx)
}

// wakeAll wakes everything that waits; mu is held.
func (c *Committer) wakeAll() {
	c.work.Broadcast()
	c.pending.Broadcast()
}

// failWaiting settles all that is in no batch yet; mu is held.
func (c *Committer) failWaiting(err error) {
	waiting := slices.Concat(c.queue, c.differing, c.resolved)
	c.queue, c.differing, c.resolved = nil, nil, nil
	clear(c.waiting)
	for _, e := range waiting {
		c.settleLocked(e, err)
	}
}

// settleLocked ends an entry's way; mu is held.
func (c *Committer) settleLocked(e *entry, err error) {
	e.err = err
	c.events--
	c.bytes -= e.size
	close(e.done)
	if c.closed && c.events == 0 {
		c.wakeAll()
	}
}

func (c *Committer) settle(entries []*entry, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range entries {
		c.settleLocked(e, err)
	}
}
