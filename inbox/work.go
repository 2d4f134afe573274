package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox/internal/panics"
)

const (
	// leaseMargin is what a lease outlasts the attempt's own time limit by, for
	// settling it.
	leaseMargin = 15 * time.Second
	// settleMargin is what must be left of a lease, beyond the time limit, for an
	// attempt to begin: else the job is given back instead.
	settleMargin = 5 * time.Second
	// lastSettle bounds a settlement when Run's grace is over.
	lastSettle = time.Second
	// quiet is the least pause between two looks for jobs that found none.
	quiet = 20 * time.Millisecond
	// longestRetryAfter clamps what a handler may ask for.
	longestRetryAfter = 24 * time.Hour
	// shortestPause keeps a job from being due again at the moment it failed; a
	// store may round times down to it.
	shortestPause = time.Millisecond
	// settleTries bounds how often a settlement is tried while the store is down.
	settleTries = 5
)

// errStopped is the cause of the end of work that outlived Run's grace.
var errStopped = errors.New("the worker is shutting down")

// Run does the jobs of the registered handlers until ctx ends: those that this
// process makes, at once, and those that others left. Then it takes no more, waits
// for the work under way for up to JobConfig.Grace, cancels what is left, waits for
// it to return, settles what is done, which takes a second or two at most if the
// store is down, and returns nil. Jobs that were claimed and not begun are given
// back, which counts as an attempt of theirs. Without Run jobs wait in the store. Several
// processes, and several calls, share the work.
func (in *Inbox) Run(ctx context.Context) error {
	graceOver, endGrace := context.WithCancel(context.Background())
	defer endGrace()
	w := &workers{
		in: in, graceOver: graceOver, free: make(chan struct{}, in.cfg.Jobs.Workers),
		done: make(chan ended, in.cfg.Jobs.Workers), // so that no worker waits for the store
	}
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var settling sync.WaitGroup
	settling.Go(w.settleAll)
	w.claimUntil(ctx, work)
	grace := time.AfterFunc(in.cfg.Jobs.Grace, func() {
		stop(errStopped)
		endGrace()
	})
	defer grace.Stop()
	w.running.Wait()
	close(w.done)
	settling.Wait()
	return nil
}

// Work does the jobs that are due now, one after the other on the caller's
// goroutine, and those that fall due meanwhile, until none is. It returns how many
// attempts were made. It is for tests, and for programs that have a clock of their
// own in place of Run.
func (in *Inbox) Work(ctx context.Context) (attempts int, err error) {
	for {
		jobs, err := in.claim(ctx, 1)
		if err != nil || len(jobs) == 0 {
			return attempts, err
		}
		attempts++
		if err := in.store.Settle(ctx, []onceward.Settlement{in.attempt(ctx, jobs[0])}, in.cfg.Now()); err != nil {
			return attempts, fmt.Errorf("settle a job of %s: %w", jobs[0].Handler, err)
		}
	}
}

// workers is one Run.
type workers struct {
	in      *Inbox
	free    chan struct{} // holds one token for each worker that is busy
	running sync.WaitGroup
	done    chan ended

	graceOver context.Context // ends when Run has to
}

// ended is a try that is to be settled.
type ended struct {
	onceward.Settlement
	late bool // it went on for longer than its lease
}

// claimUntil claims jobs as workers become free, until ctx ends. Handlers get
// the context work.
func (w *workers) claimUntil(ctx, work context.Context) {
	poll := time.NewTicker(w.in.cfg.Jobs.Poll)
	defer poll.Stop()
	for {
		n := w.acquire(ctx)
		if n == 0 {
			return
		}
		jobs, err := w.in.claim(ctx, n)
		if err != nil && ctx.Err() == nil {
			w.in.log.Error("jobs cannot be claimed; trying again", "error", err)
		}
		lanes := byLane(jobs)
		for range n - len(lanes) {
			<-w.free
		}
		for _, lane := range lanes {
			w.running.Go(func() {
				defer func() { <-w.free }()
				w.runLane(ctx, work, lane)
			})
		}
		if len(jobs) == 0 && !w.wait(ctx, poll.C) {
			return
		}
	}
}

// acquire waits until a worker is free and takes all that are; 0 means that ctx
// has ended.
func (w *workers) acquire(ctx context.Context) int {
	select {
	case w.free <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	for n := 1; ; n++ {
		select {
		case w.free <- struct{}{}:
		default:
			return n
		}
	}
}

// wait returns when there may be jobs; false means that ctx has ended.
func (w *workers) wait(ctx context.Context, poll <-chan time.Time) bool {
	pause := time.NewTimer(quiet)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return false
	}
	select {
	case <-w.in.wake:
	case <-poll:
	case <-ctx.Done():
		return false
	}
	return true
}

// byLane puts jobs of one handler and entity together, in the order of their
// versions, so that one process does not do them at the same time.
func byLane(jobs []onceward.Job) [][]onceward.Job {
	var lanes [][]onceward.Job
	for _, j := range jobs {
		i := slices.IndexFunc(lanes, func(l []onceward.Job) bool { return l[0].Handler == j.Handler && l[0].Lane == j.Lane })
		if i < 0 {
			lanes = append(lanes, nil)
			i = len(lanes) - 1
		}
		lanes[i] = append(lanes[i], j)
	}
	for _, l := range lanes {
		slices.SortFunc(l, func(a, b onceward.Job) int { return cmp.Compare(a.Version, b.Version) })
	}
	return lanes
}

// runLane does the jobs of one lane. They share one lease: those for which too
// little of it is left, and those that are not begun when ctx ends, are given back.
func (w *workers) runLane(ctx, work context.Context, lane []onceward.Job) {
	in := w.in
	for _, j := range lane {
		now := in.cfg.Now()
		if ctx.Err() != nil || now.Add(in.cfg.Jobs.Timeout+settleMargin).After(j.Due) {
			back := onceward.Settlement{Handler: j.Handler, Lane: j.Lane, Version: j.Version, Token: j.Token, Due: now, Error: j.LastError}
			w.done <- ended{Settlement: back}
			continue
		}
		s := in.attempt(work, j)
		w.done <- ended{s, in.cfg.Now().After(j.Due)}
	}
}

// settleAll settles what is done, as many at once as there are, until the channel
// is closed.
func (w *workers) settleAll() {
	for e := range w.done {
		batch, late := []onceward.Settlement{e.Settlement}, e.late
		for more := true; more; {
			select {
			case e, ok := <-w.done:
				if more = ok; ok {
					batch, late = append(batch, e.Settlement), late || e.late
				}
			default:
				more = false
			}
		}
		w.settle(batch, late)
	}
}

// settle writes settlements, and tries again while the store is down. If that
// fails for good, the leases expire and the jobs are tried again: work is done at
// least once. late says that one of them outlived its lease.
func (w *workers) settle(batch []onceward.Settlement, late bool) {
	in := w.in
	unknown := false // an earlier try may have settled them
	for try := 1; ; try++ {
		err := w.trySettle(batch)
		switch {
		case err == nil:
			in.wakeWorkers() // a settled head lets the next of its lane go
			return
		case errors.Is(err, onceward.ErrStaleToken):
			in.wakeWorkers()
			switch {
			case unknown:
			case late:
				in.log.Warn("an attempt outlived its time limit and its lease, and may have been made twice; let the handler end with its context, or raise JobConfig.Timeout", "error", err)
			default:
				in.log.Warn("an attempt was settled after its lease and may have been made twice", "error", err)
			}
			return
		case try == settleTries || w.graceOver.Err() != nil:
			in.log.Error("attempts cannot be settled; their jobs will be tried again", "jobs", len(batch), "error", err)
			return
		}
		unknown = unknown || errors.Is(err, onceward.ErrUnknownOutcome)
		pause := time.NewTimer(in.chance.upTo(time.Second << try))
		select {
		case <-pause.C:
		case <-w.graceOver.Done(): // one last try
			pause.Stop()
		}
	}
}

// trySettle asks the store once. When the grace is over that ends soon.
func (w *workers) trySettle(batch []onceward.Settlement) error {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	defer context.AfterFunc(w.graceOver, func() {
		last := time.NewTimer(lastSettle)
		defer last.Stop()
		select {
		case <-last.C:
			cancel()
		case <-ctx.Done():
		}
	})()
	return w.in.store.Settle(ctx, batch, w.in.cfg.Now())
}

// claim leases jobs of the registered handlers.
func (in *Inbox) claim(ctx context.Context, limit int) ([]onceward.Job, error) {
	names := in.handlers.names()
	if len(names) == 0 {
		return nil, nil
	}
	jobs, err := in.store.Claim(ctx, names, limit, in.cfg.Now(), in.cfg.Jobs.Timeout+leaseMargin)
	if err != nil {
		return nil, fmt.Errorf("claim jobs: %w", err)
	}
	return jobs, nil
}

// attempt runs a job once and says how it ends.
func (in *Inbox) attempt(ctx context.Context, j onceward.Job) onceward.Settlement {
	s := onceward.Settlement{Handler: j.Handler, Lane: j.Lane, Version: j.Version, Token: j.Token}
	err := in.call(ctx, j)
	if err == nil {
		s.Done = true
		return s
	}
	s.Error = err.Error()
	log := in.log.With("handler", j.Handler, "source", j.Change.Source, "attempt", j.Attempts)
	if onceward.IsPermanent(err) || j.Attempts >= in.cfg.Jobs.Attempts {
		s.Dead = true
		log.Error("a job is dead", "error", err)
		return s
	}
	pause := in.pause(j.Attempts)
	if after, asked := onceward.RetryDelay(err); asked {
		pause = min(after, longestRetryAfter)
	}
	pause = max(pause, shortestPause)
	s.Due = in.cfg.Now().Add(pause)
	log.Warn("a job failed and will be tried again", "in", pause, "error", err)
	return s
}

// pause returns how long to wait after the given attempt, counted from 1.
func (in *Inbox) pause(attempt int) time.Duration {
	longest := in.cfg.Jobs.BackoffBase
	for i := 1; i < attempt && longest < in.cfg.Jobs.BackoffMax; i++ {
		longest *= 2
	}
	return in.chance.upTo(min(longest, in.cfg.Jobs.BackoffMax))
}

// call runs a handler under its time limit. A panic is an error.
func (in *Inbox) call(ctx context.Context, j onceward.Job) (err error) {
	run := in.handlers.find(j.Handler)
	if run == nil { // claimed by name, so it cannot be
		return fmt.Errorf("no handler %q is registered", j.Handler)
	}
	ctx, cancel := context.WithTimeout(ctx, in.cfg.Jobs.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			thrown := panics.New(p)
			in.log.Error("a handler panicked", "handler", j.Handler, "panic", thrown, "stack", thrown.Stack())
			err = fmt.Errorf("the handler: %w", thrown)
		}
	}()
	return run(ctx, j.Change)
}

// wakeWorkers makes one Run look for jobs.
func (in *Inbox) wakeWorkers() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}
