package cases

import (
	"context"
	"sync"
	"time"
)

// baseTime is when every case begins.
const baseTime = 1_790_000_000

// clock is the time of one play: it moves when the play moves it, and whoever
// sleeps by it wakes then.
type clock struct {
	mu      sync.Mutex
	changed sync.Cond
	now     time.Time
	skew    time.Duration // what advance_clock has added
	wake    map[int]time.Time
	next    int
}

func newClock() *clock {
	c := &clock{now: time.Unix(baseTime, 0).UTC(), wake: map[int]time.Time{}}
	c.changed.L = &c.mu
	return c
}

// Now is the clock of the inbox.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// told is what another clock needs to go on.
func (c *clock) told() (now time.Time, skew time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now, c.skew
}

// at moves the clock to the moment of a step; it never goes back.
func (c *clock) at(ms int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.toLocked(time.Unix(baseTime, 0).UTC().Add(time.Duration(ms)*time.Millisecond + c.skew))
}

// advance moves the clock, and with it all later steps.
func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew += d
	c.toLocked(c.now.Add(d))
}

// to moves the clock forward to a moment.
func (c *clock) to(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.toLocked(t)
}

func (c *clock) toLocked(t time.Time) {
	if t.After(c.now) {
		c.now = t
		c.changed.Broadcast()
	}
}

// sleep returns when the clock has gone on by d, or ctx has ended.
func (c *clock) sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changed.Broadcast()
	})
	defer stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	id, until := c.next, c.now.Add(d)
	c.wake[id] = until
	defer delete(c.wake, id)
	for c.now.Before(until) && ctx.Err() == nil {
		c.changed.Wait()
	}
}

// sleepers returns how many sleep, and when the first of them wakes.
func (c *clock) sleepers() (n int, first time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, until := range c.wake {
		if n++; first.IsZero() || until.Before(first) {
			first = until
		}
	}
	return n, first
}
