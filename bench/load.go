package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// load sends the requests of a pool, each connection one after the other: it sends
// the next when the one before is answered.
type load struct {
	address string
	conns   int
	pool    *pool
	// again sends the pool over and over; else the load ends with it.
	again bool
	// warm is how long to send before what is measured, length how long that is. If
	// length is 0 the whole pool is measured, and nothing before it.
	warm, length time.Duration
	// mark is called when what is measured begins and when it ends.
	mark func()
}

// loaded is what a load has found.
type loaded struct {
	took    time.Duration   // how long was measured
	delays  []time.Duration // from a request to its answer 200, sorted
	refused int             // answers other than 200
	first   int             // the first of these
	acked   int             // answers 200 in all, also before and after what is measured
}

// rate is how many requests a second were answered 200.
func (l *loaded) rate() float64 { return float64(len(l.delays)) / l.took.Seconds() }

// patience is how long the generator waits for one answer.
const patience = 30 * time.Second

// The phases of a load.
const (
	warming int32 = iota
	measuring
	over
)

// sending is a load under way.
type sending struct {
	load
	next  atomic.Int64
	phase atomic.Int32
	dry   chan struct{} // closed when the pool is empty
	once  sync.Once
}

// run sends, and returns what came of it. A connection that breaks is an error.
func (l load) run(ctx context.Context) (*loaded, error) {
	conns := make([]net.Conn, l.conns)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	for i := range conns {
		c, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", l.address)
		if err != nil {
			return nil, fmt.Errorf("connect to the server under test: %w", err)
		}
		if err := c.SetDeadline(time.Now().Add(l.warm + l.length + 10*patience)); err != nil {
			return nil, fmt.Errorf("set a deadline: %w", err)
		}
		conns[i] = c
	}
	s := &sending{load: l, dry: make(chan struct{})}
	if l.length == 0 {
		s.phase.Store(measuring)
		l.mark()
	}
	begin := time.Now()
	parts, errs := make([]loaded, l.conns), make([]error, l.conns)
	var workers sync.WaitGroup
	for i, c := range conns {
		workers.Go(func() {
			if errs[i] = s.work(c, &parts[i]); errs[i] != nil {
				s.phase.Store(over) // what is left would be another load
				s.end()
			}
		})
	}
	took := s.watch(ctx)
	workers.Wait()
	if l.length == 0 {
		took = time.Since(begin)
		l.mark()
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("the load at %d connections: %w", l.conns, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("the load at %d connections: %w", l.conns, err)
	}
	return join(parts, took), nil
}

func (s *sending) end() { s.once.Do(func() { close(s.dry) }) }

// watch goes through the phases, and returns how long was measured: 0 if that is
// until the last answer.
func (s *sending) watch(ctx context.Context) time.Duration {
	wait := func(d time.Duration) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.dry:
		case <-ctx.Done():
		}
	}
	if s.length == 0 { // until every request of the pool is answered
		select {
		case <-s.dry:
		case <-ctx.Done():
			s.phase.Store(over)
		}
		return 0
	}
	wait(s.warm)
	s.mark()
	begin := time.Now()
	s.phase.Store(measuring)
	wait(s.length)
	s.phase.Store(over)
	took := time.Since(begin)
	s.mark()
	return took
}

// work sends on one connection until the load is over or the pool empty.
func (s *sending) work(conn net.Conn, out *loaded) error {
	buf := make([]byte, 4096)
	out.delays = make([]time.Duration, 0, 1<<12)
	for s.phase.Load() != over {
		i := int(s.next.Add(1) - 1)
		if s.again {
			i %= s.pool.n
		}
		if i >= s.pool.n {
			s.end()
			return nil
		}
		begin := time.Now()
		if _, err := conn.Write(s.pool.request(i)); err != nil {
			return fmt.Errorf("send: %w", err)
		}
		status, err := readAnswer(conn, buf)
		if err != nil {
			return err
		}
		delay := time.Since(begin)
		switch {
		case status != http.StatusOK:
			if out.refused++; out.refused == 1 {
				out.first = status
			}
		default:
			out.acked++
			if s.phase.Load() == measuring {
				out.delays = append(out.delays, delay)
			}
		}
	}
	return nil
}

// join puts together what the connections have found.
func join(parts []loaded, took time.Duration) *loaded {
	all := &loaded{took: took}
	n := 0
	for i := range parts {
		n += len(parts[i].delays)
	}
	all.delays = make([]time.Duration, 0, n)
	for i := range parts {
		p := &parts[i]
		all.delays = append(all.delays, p.delays...)
		all.acked += p.acked
		all.refused += p.refused
		if all.first == 0 {
			all.first = p.first
		}
	}
	slices.Sort(all.delays)
	return all
}
