package committer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox/internal/panics"
)

// mostFailures bounds the commits that halving one batch may waste: enough to
// single out a handful of rows, and few where the store refuses everything.
const mostFailures = 64

// growAfter is how many batches must be in time before the next may be larger.
const growAfter = 16

// lane commits one batch after the other until the committer is closed and
// everything is settled.
func (c *Committer) lane() {
	for {
		batch := c.next()
		if batch == nil {
			return
		}
		failures := mostFailures
		_ = c.commit(batch, &failures) // each entry has been told its own
	}
}

// next waits for a batch; nil means that none will come.
func (c *Committer) next() []*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch none := len(c.queue)+len(c.resolved) == 0; {
		case none && c.closed && c.events == 0:
			return nil
		case none:
		case c.closed || c.gate == open:
			return c.take()
		case c.gate == half && !c.probing:
			c.probing = true
			return c.take()
		}
		c.work.Wait()
	}
}

// take removes the next batch from what waits, which is not nothing: first what has
// been resolved, then the queue; mu is held.
func (c *Committer) take() []*entry {
	var batch []*entry
	bytes := int64(0)
	for _, list := range []*[]*entry{&c.resolved, &c.queue} {
		n := 0
		for n < len(*list) {
			have := len(batch) + n
			first := (*list)[n]
			if have > 0 && (have+first.group > c.most || bytes+first.weight > c.cfg.BatchBytes) {
				break
			}
			if first.group > c.most { // alone in its batch, and divided all the same
				rest := (*list)[n+c.most]
				rest.group, rest.weight = first.group-c.most, first.weight // each part holds the delivery
				first.group = c.most
			}
			n, bytes = n+first.group, bytes+first.weight
		}
		batch = append(batch, (*list)[:n]...)
		clear((*list)[:n]) // the array lives on
		if *list = (*list)[n:]; len(*list) > 0 {
			break
		}
		*list = nil
	}
	for _, e := range batch {
		if c.waiting[e.id] == e {
			delete(c.waiting, e.id)
		}
	}
	if len(c.queue)+len(c.resolved) > 0 {
		c.work.Signal() // another lane may take the rest
	}
	return batch
}

// tookTooLong makes the next batches half as large as one that was not committed
// in time: else what the store cannot do in time would come back for ever.
func (c *Committer) tookTooLong(events int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most, c.inTime = max(1, min(c.most, events/2)), 0
}

// tookNotTooLong lets batches grow again, by a quarter after every growAfter that
// were as large as they may be and in time; mu is held. Growing sooner would let the
// batch that begins a large delivery fail each time that its sender tries again.
func (c *Committer) tookNotTooLong(events int) {
	if c.most >= c.cfg.BatchEvents || events < c.most {
		return
	}
	if c.inTime++; c.inTime >= growAfter {
		c.most, c.inTime = min(c.cfg.BatchEvents, c.most+max(1, c.most/4)), 0
	}
}

// commit stores a batch, in halves where the store refuses one of its rows, and
// settles all of it. It reports whether the store takes work.
func (c *Committer) commit(batch []*entry, failures *int) error {
	err := c.tryStore(batch)
	switch {
	case err == nil:
		c.stored(batch)
		return nil
	case isDown(err):
	case len(batch) == 1:
		c.opened() // the store answers; it is this row that it does not take
		c.settle(batch, &RefusedError{err})
		return nil
	case *failures <= 0:
		err = fmt.Errorf("%w: it refuses one event after the other, the last with: %w", onceward.ErrUnavailable, err)
	default:
		*failures--
		middle := len(batch) / 2
		if err := c.commit(batch[:middle], failures); err != nil {
			c.failed(batch[middle:], err)
			return err
		}
		return c.commit(batch[middle:], failures)
	}
	c.failed(batch, err)
	return err
}

// isDown tells an error that concerns every batch from one of a row.
func isDown(err error) bool {
	return errors.Is(err, onceward.ErrUnavailable) || errors.Is(err, onceward.ErrUnknownOutcome) ||
		errors.Is(err, onceward.ErrSchemaNewer)
}

// tryStore hands one batch to the store and tells of it.
func (c *Committer) tryStore(batch []*entry) error {
	start := c.cfg.Now()
	err := c.callStore(batch, start)
	func() {
		defer func() { _ = recover() }() // whoever is told of a commit cannot undo it, and must not end the process
		c.cfg.Committed(len(batch), c.cfg.Now().Sub(start), err)
	}()
	return err
}

func (c *Committer) callStore(batch []*entry, now time.Time) (err error) {
	b := &onceward.Batch{Arrivals: make([]*onceward.Arrival, len(batch)), Handlers: c.cfg.Handlers(), Now: now}
	for i, e := range batch {
		b.Arrivals[i] = e.arrival
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.CommitTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil { // a derivation in Go runs in here; one row must not end the process
			err = fmt.Errorf("commit a batch: %w", panics.New(p))
		}
	}()
	err = c.cfg.Store.Commit(ctx, b)
	if err == nil {
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		c.tookTooLong(len(batch))
	}
	if ctx.Err() != nil && !isDown(err) {
		return fmt.Errorf("commit a batch of %d: %w: %w", len(batch), onceward.ErrUnknownOutcome, err)
	}
	return err
}

// stored settles what a commit has decided; what differs goes to a resolver.
func (c *Committer) stored(batch []*entry) {
	c.opened()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tookNotTooLong(len(batch))
	for _, e := range batch {
		if e.arrival.Outcome == onceward.Differs {
			c.differing = append(c.differing, e)
			c.pending.Signal()
			continue
		}
		c.settleLocked(e, nil)
	}
}

// opened notes that the store takes work.
func (c *Committer) opened() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gate == open {
		return
	}
	c.gate, c.probing = open, false
	if c.reopen != nil {
		c.reopen.Stop()
		c.reopen = nil
	}
	c.work.Broadcast()
}

// failed settles a batch with err and shuts the gate for a moment. When the
// committer is closing there is no later, and all that waits fails with it.
func (c *Committer) failed(batch []*entry, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range batch {
		c.settleLocked(e, err)
	}
	if c.closed {
		c.failWaiting(err)
		return
	}
	if c.gate == shut {
		return
	}
	c.gate, c.probing = shut, false
	c.reopen = time.AfterFunc(c.cfg.RefuseFor, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.gate == shut {
			c.gate, c.reopen = half, nil
			c.work.Broadcast()
		}
	})
}

// resolver compares arrivals that differ from the stored event with it and has
// them committed with the answer, before what waits in the queue.
func (c *Committer) resolver() {
	for {
		entries := c.nextDiffering()
		if entries == nil {
			return
		}
		comparisons := c.resolve(entries)
		c.mu.Lock()
		resolved := entries[:0]
		for i, e := range entries {
			if err := comparisons[i].Err; err != nil {
				c.settleLocked(e, fmt.Errorf("compare with stored event %d: %w", e.arrival.StoredID, err))
				continue
			}
			e.arrival.Resolution, e.group, e.weight = comparisons[i].Resolution, 0, 0
			resolved = append(resolved, e)
		}
		if len(resolved) > 0 {
			resolved[0].group, resolved[0].weight = len(resolved), bodySize(resolved[0])
			c.resolved = append(c.resolved, resolved...)
			c.work.Signal()
		}
		c.mu.Unlock()
	}
}

func bodySize(e *entry) int64 { return int64(len(e.arrival.Event.Delivery.Body)) }

// resolve returns a comparison for each entry.
func (c *Committer) resolve(entries []*entry) (all []Comparison) {
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.CommitTimeout)
	defer cancel()
	arrivals := make([]*onceward.Arrival, len(entries))
	for i, e := range entries {
		arrivals[i] = e.arrival
	}
	defer func() {
		if p := recover(); p != nil { // a mapping in Go runs in here
			err := &RefusedError{panics.New(p)}
			all = slices.Repeat([]Comparison{{Err: err}}, len(entries))
		}
	}()
	return c.cfg.Resolve(ctx, arrivals)
}

// nextDiffering waits for arrivals of one delivery that differ, at most as many as
// a batch holds; nil means that none will come.
func (c *Committer) nextDiffering() []*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.differing) == 0 {
		if c.closed && c.events == 0 {
			return nil
		}
		c.pending.Wait()
	}
	n, delivery := 1, c.differing[0].arrival.Event.Delivery
	for n < min(len(c.differing), c.cfg.BatchEvents) && c.differing[n].arrival.Event.Delivery == delivery {
		n++
	}
	entries := slices.Clone(c.differing[:n])
	clear(c.differing[:n])
	if c.differing = c.differing[n:]; len(c.differing) == 0 {
		c.differing = nil
	}
	return entries
}
