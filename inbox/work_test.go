package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/storetest"
)

// bubbled is a world whose clock is the bubble's.
func bubbled(t *testing.T, change func(*inbox.Config)) *world {
	t.Helper()
	w := newWorld(t, func(cfg *inbox.Config) {
		cfg.Now = time.Now
		if change != nil {
			change(cfg)
		}
	})
	w.clock.advance(time.Since(w.clock.Now()))
	return w
}

// run starts Run and returns what stops it.
func (w *world) run() (stop func()) {
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	return func() {
		w.t.Helper()
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("run: %v", err)
		}
		if err := w.Close(ctx); err != nil {
			w.t.Error(err)
		}
	}
}

func TestAHandlerIsRunOncePerChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := bubbled(t, nil)
		var mu sync.Mutex
		var got []string
		note := func(name string) inbox.HandlerFunc {
			return func(_ context.Context, c onceward.Change) error {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, fmt.Sprintf("%s: %s %s -> %s, total %d, event %s", name, c.Key, c.From, c.To, c.Int("total"), c.Event.Key))
				return nil
			}
		}
		w.Handle("order.paid", note("paid"))
		w.Handle("order.paid#again", note("again"))
		w.Handle("order", note("any"))
		w.Handle("event:order.p*", note("event"))
		stop := w.run()
		w.ok("shop", order("e1", "o1", "created", "09:00:00"))
		w.ok("shop", order("e2", "o1", "paid", "10:00:00"))
		w.ok("shop", order("e2", "o1", "paid", "10:00:00"))
		w.ok("shop", order("e3", "o1", "created", "08:00:00"))
		w.ok("shop", order("e4", "o1", "paid", "10:00:00"))
		synctest.Wait()
		time.Sleep(2 * time.Second)
		stop()
		slices.Sort(got)
		want := []string{
			"again: o1 created -> paid, total 100, event e2",
			"any: o1  -> created, total 100, event e1",
			"any: o1 created -> paid, total 100, event e2",
			"event:   -> , total 0, event e2",
			"event:   -> , total 0, event e4",
			"paid: o1 created -> paid, total 100, event e2",
		}
		if !slices.Equal(got, want) {
			t.Errorf("handlers saw:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if s := w.stats(); s.JobsPending != 0 || s.JobsDead != 0 {
			t.Errorf("%d jobs wait, %d are dead", s.JobsPending, s.JobsDead)
		}
	})
}

func TestAFailedJobIsTriedAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := bubbled(t, func(cfg *inbox.Config) {
			cfg.Jobs = inbox.JobConfig{BackoffBase: time.Minute, BackoffMax: 10 * time.Minute}
		})
		var tries []time.Time
		w.Handle("order.paid", func(context.Context, onceward.Change) error {
			if tries = append(tries, time.Now()); len(tries) < 8 {
				return errors.New("the mail server is down")
			}
			return nil
		})
		w.ok("shop", order("e1", "o1", "paid", "10:00:00"))
		stop := w.run()
		time.Sleep(2 * time.Hour)
		stop()
		if len(tries) != 8 {
			t.Fatalf("%d attempts, want 8", len(tries))
		}
		for i := 1; i < len(tries); i++ {
			pause, longest := tries[i].Sub(tries[i-1]), min(time.Minute<<(i-1), 10*time.Minute)
			if pause > longest+1500*time.Millisecond {
				t.Errorf("pause %d is %v, at most %v were to be drawn", i, pause, longest)
			}
		}
		if total := tries[7].Sub(tries[0]); total < 5*time.Minute {
			t.Errorf("eight attempts within %v: the pauses do not grow", total)
		}
	})
}

func TestHowAJobEnds(t *testing.T) {
	boom := errors.New("boom")
	for _, test := range []struct {
		about       string
		run         func(attempt int) error
		tries       int
		after       time.Duration // of the first pause, if it is certain
		dead        bool
		lastMention string
	}{
		{"at once", func(int) error { return nil }, 1, 0, false, ""},
		{"for good", func(int) error { return fmt.Errorf("send: %w", onceward.Permanent(boom)) }, 1, 0, true, "boom"},
		{"when it is asked to", func(n int) error {
			if n == 1 {
				return onceward.RetryAfter(90*time.Minute, boom)
			}
			return nil
		}, 2, 90 * time.Minute, false, ""},
		{"when it asks for too much", func(n int) error {
			if n == 1 {
				return onceward.RetryAfter(1000*time.Hour, boom)
			}
			return nil
		}, 2, 24 * time.Hour, false, ""},
		{"when it asks for nothing", func(n int) error {
			if n < 3 {
				return onceward.RetryAfter(0, boom)
			}
			return nil
		}, 3, time.Millisecond, false, ""},
		{"after too many attempts", func(int) error { return boom }, 5, 0, true, "boom"},
		{"after panics", func(n int) error {
			if n < 3 {
				panic("nil map")
			}
			return nil
		}, 3, 0, false, ""},
		{"dead after panics", func(int) error { panic("nil map") }, 5, 0, true, "nil map"},
	} {
		t.Run(test.about, func(t *testing.T) {
			w := newWorld(t, func(cfg *inbox.Config) { cfg.Jobs.Attempts = 5 })
			var tries []time.Time
			w.Handle("order.paid", func(context.Context, onceward.Change) error {
				tries = append(tries, w.clock.Now())
				return test.run(len(tries))
			})
			w.ok("shop", order("e1", "o1", "paid", "10:00:00"))
			for range 100 {
				if _, err := w.Work(ctx); err != nil {
					t.Fatal(err)
				}
				jobs, err := w.store.Jobs(ctx, 10)
				if err != nil {
					t.Fatal(err)
				}
				if len(jobs) == 0 || jobs[0].Dead {
					break
				}
				w.clock.advance(jobs[0].Due.Sub(w.clock.Now()))
			}
			if len(tries) != test.tries {
				t.Fatalf("%d attempts, want %d", len(tries), test.tries)
			}
			if test.after != 0 && tries[1].Sub(tries[0]) != test.after {
				t.Errorf("tried again after %v, want %v", tries[1].Sub(tries[0]), test.after)
			}
			jobs, err := w.store.Jobs(ctx, 10)
			if err != nil {
				t.Fatal(err)
			}
			if dead := len(jobs) == 1 && jobs[0].Dead; dead != test.dead || len(jobs) > 0 && !strings.Contains(jobs[0].LastError, test.lastMention) {
				t.Errorf("in the end: %+v", jobs)
			}
		})
	}
}

func TestJobsOutliveTheProcess(t *testing.T) {
	w := newWorld(t, nil)
	fail := func(context.Context, onceward.Change) error { return errors.New("not yet") }
	w.Handle("order.paid", fail)
	w.ok("shop", order("e1", "o1", "paid", "10:00:00"))
	if n, err := w.Work(ctx); err != nil || n != 1 {
		t.Fatalf("%d attempts, %v", n, err)
	}
	next := worldOn(t, w.below, nil)
	next.clock.advance(time.Hour)
	ran := 0
	next.Handle("order.paid", func(context.Context, onceward.Change) error { ran++; return nil })
	if _, err := next.Work(ctx); err != nil || ran != 1 {
		t.Errorf("the next process ran it %d times, %v", ran, err)
	}
}

func TestALeaseOfADeadProcessExpires(t *testing.T) {
	w := newWorld(t, nil)
	w.Handle("order.paid", func(context.Context, onceward.Change) error { return nil })
	w.ok("shop", order("e1", "o1", "paid", "10:00:00"))
	w.store.Plan(storetest.Fault{Method: "Settle"})
	if _, err := w.Work(ctx); !errors.Is(err, onceward.ErrUnavailable) {
		t.Fatalf("work: %v", err)
	}
	w.store.Plan()
	if n, err := w.Work(ctx); n != 0 || err != nil {
		t.Errorf("while it is leased %d attempts are made, %v", n, err)
	}
	w.clock.advance(time.Minute + 15*time.Second)
	if n, err := w.Work(ctx); n != 1 || err != nil {
		t.Errorf("after the lease %d attempts are made, %v", n, err)
	}
}

func TestAStoreThatIsDownDoesNotEndRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := bubbled(t, nil)
		var ran atomic.Int32
		w.Handle("order.paid", func(context.Context, onceward.Change) error { ran.Add(1); return nil })
		stop := w.run()
		w.store.Plan(storetest.Fault{Method: "Claim"})
		w.ok("shop", order("e1", "o1", "paid", "10:00:00"))
		time.Sleep(10 * time.Second)
		if ran.Load() != 0 {
			t.Error("it ran")
		}
		w.store.Plan(storetest.Fault{Method: "Settle", Call: 1}, storetest.Fault{Method: "Settle", Call: 2})
		time.Sleep(20 * time.Second)
		if ran.Load() != 1 {
			t.Errorf("ran %d times, want once: a settlement is tried again before the work is", ran.Load())
		}
		stop()
		if s := w.stats(); s.JobsPending != 0 {
			t.Errorf("%d jobs wait", s.JobsPending)
		}
	})
}

func TestRunWaitsForTheWorkUnderWay(t *testing.T) {
	for _, test := range []struct {
		about    string
		takes    time.Duration
		finishes bool
	}{
		{"quick work ends", 9 * time.Second, true},
		{"slow work is cancelled", time.Hour, false},
	} {
		t.Run(test.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := bubbled(t, func(cfg *inbox.Config) { cfg.Jobs.Timeout = 2 * time.Hour })
				begun := make(chan struct{})
				finished := false
				w.Handle("order.paid", func(ctx context.Context, _ onceward.Change) error {
					close(begun)
					select {
					case <-time.After(test.takes):
						finished = true
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				})
				w.ok("shop", order("e1", "o1", "paid", "10:00:00"))
				stop := w.run()
				<-begun
				start := time.Now()
				stop()
				took := time.Since(start)
				if finished != test.finishes || took > 11*time.Second {
					t.Errorf("finished %v after %v", finished, took)
				}
				if s := w.stats(); s.JobsPending != map[bool]int64{true: 0, false: 1}[test.finishes] {
					t.Errorf("%d jobs wait", s.JobsPending)
				}
			})
		})
	}
}

func TestTwoInboxesShareTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := bubbled(t, func(cfg *inbox.Config) { cfg.Jobs.Workers = 2 })
		second := worldOn(t, first.below, func(cfg *inbox.Config) { cfg.Now, cfg.Jobs.Workers = time.Now, 2 })
		var mu sync.Mutex
		ran := map[string]int{}
		for _, w := range []*world{first, second} {
			w.Handle("order.paid", func(_ context.Context, c onceward.Change) error {
				time.Sleep(10 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				ran[c.Key]++
				return nil
			})
		}
		for i := range 40 {
			first.ok("shop", order(fmt.Sprint("e", i), fmt.Sprint("o", i), "paid", "10:00:00"))
		}
		stopFirst, stopSecond := first.run(), second.run()
		time.Sleep(30 * time.Second)
		stopFirst()
		stopSecond()
		if len(ran) != 40 {
			t.Errorf("%d of 40 jobs ran", len(ran))
		}
		for key, n := range ran {
			if n != 1 {
				t.Errorf("the job of %s ran %d times", key, n)
			}
		}
	})
}

func TestHandleRefuses(t *testing.T) {
	w := newWorld(t, nil)
	nothing := func(context.Context, onceward.Change) error { return nil }
	w.Handle("order.paid", nothing)
	w.Handle("order.paid#two", nothing)
	for _, test := range []struct {
		pattern string
		fn      inbox.HandlerFunc
		want    string
	}{
		{"order.paid", nothing, "registered twice; write order.paid#name"},
		{"order.paid#two", nothing, "registered twice"},
		{"", nothing, "write payment.paid"},
		{"order.", nothing, "write payment.paid"},
		{"event:", nothing, "names no event type"},
		{"order.shipped", nil, "nil"},
	} {
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, test.want) {
					t.Errorf("Handle(%q) panics with %q, want it to say %q", test.pattern, p, test.want)
				}
			}()
			w.Handle(test.pattern, test.fn)
		}()
	}
}
