package committer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/onceward/onceward"
)

// mostFailures bounds the commits that halving one batch may waste: enough to
// single out a handful of rows, and few where the store refuses everything.
const mostFailures = 64

// lane commits one batch after the other until the committer is closed and
// everything is settled.
func (c *Committer) lane() {
	for {
		batch := c.next()
		if batch == nil {
			return
		}
		failures := mostFailures
		c.commit(batch, &failures)
	}
}

// next waits for a batch; nil means that none will come.
func (c *Committer) next() []*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case len(c.queue) == 0 && c.closed && c.events == 0:
			return nil
		case len(c.queue) == 0:
		case c.closed || c.gate == open:
			return c.take()
		case c.gate == half && !c.probing:
			c.probing = true
			return c.take()
		}
		c.work.Wait()
	}
}

// take removes the next batch from the queue, which is not empty; mu is held.
func (c *Committer) take() []*entry {
	n, bytes := 0, int64(0)
	for n < len(c.queue) {
		group := c.queue[n].group
		size := c.queue[n].size
		if n > 0 && (n+group > c.cfg.BatchEvents || bytes+size > c.cfg.BatchBytes) {
			break
		}
		if group > c.cfg.BatchEvents { // alone in its batch, and divided all the same
			c.queue[c.cfg.BatchEvents].group = group - c.cfg.BatchEvents
			group = c.cfg.BatchEvents
		}
		n, bytes = n+group, bytes+size
	}
	batch := slices.Clone(c.queue[:n])
	for i, e := range batch {
		c.queue[i] = nil // the array lives on
		if c.waiting[e.id] == e {
			delete(c.waiting, e.id)
		}
	}
	if c.queue = c.queue[n:]; len(c.queue) == 0 {
		c.queue = nil
	} else {
		c.work.Signal() // another lane may take the rest
	}
	return batch
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

// tryStore hands one batch to the store.
func (c *Committer) tryStore(batch []*entry) (err error) {
	b := &onceward.Batch{Arrivals: make([]*onceward.Arrival, len(batch)), Handlers: c.cfg.Handlers(), Now: c.cfg.Now()}
	for i, e := range batch {
		b.Arrivals[i] = e.arrival
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.CommitTimeout)
	defer cancel()
	start := b.Now
	defer func() {
		if p := recover(); p != nil { // a derivation in Go runs in here; one row must not end the process
			err = fmt.Errorf("commit a batch: panic: %v\n%s", p, debug.Stack())
		}
		c.cfg.Committed(len(batch), c.cfg.Now().Sub(start), err)
	}()
	err = c.cfg.Store.Commit(ctx, b)
	if err != nil && ctx.Err() != nil && !isDown(err) {
		return fmt.Errorf("commit a batch of %d: %w: %w", len(batch), onceward.ErrUnknownOutcome, err)
	}
	return err
}

// stored settles what a commit has decided; what differs goes to a resolver.
func (c *Committer) stored(batch []*entry) {
	c.opened()
	c.mu.Lock()
	defer c.mu.Unlock()
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

// resolver compares arrivals that differ from the stored event with it and puts
// them back at the head of the queue with the answer.
func (c *Committer) resolver() {
	for {
		e := c.nextDiffering()
		if e == nil {
			return
		}
		resolution, err := c.resolve(e.arrival)
		if err != nil {
			c.settle([]*entry{e}, fmt.Errorf("compare with stored event %d: %w", e.arrival.StoredID, err))
			continue
		}
		e.arrival.Resolution = resolution
		e.group = 1
		c.mu.Lock()
		c.queue = slices.Insert(c.queue, 0, e)
		c.work.Signal()
		c.mu.Unlock()
	}
}

func (c *Committer) resolve(a *onceward.Arrival) (r onceward.Resolution, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.CommitTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil { // a mapping in Go runs in here
			err = &RefusedError{fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
		}
	}()
	return c.cfg.Resolve(ctx, a)
}

func (c *Committer) nextDiffering() *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.differing) == 0 {
		if c.closed && c.events == 0 {
			return nil
		}
		c.pending.Wait()
	}
	e := c.differing[0]
	c.differing = slices.Delete(c.differing, 0, 1)
	return e
}
