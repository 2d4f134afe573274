package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/storetest"
)

// logged makes cfg log into what it returns, which is safe for concurrent use.
func logged(cfg *inbox.Config) *logText {
	var text logText
	cfg.Logger = slog.New(slog.NewTextHandler(&text, nil))
	return &text
}

type logText struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// TestNoJobOfALaneBeginsWithoutALease has a lane of jobs that each take nearly as
// long as they may: what began under an expired lease would be done twice.
func TestNoJobOfALaneBeginsWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log *logText
		w := bubbled(t, func(cfg *inbox.Config) { log = logged(cfg); cfg.Jobs.Timeout = time.Minute })
		var mu sync.Mutex
		begun := map[string]int{}
		w.Handle("order", func(_ context.Context, c onceward.Change) error {
			jobs, err := w.below.Jobs(ctx, 10)
			if err != nil {
				return err
			}
			for _, j := range jobs {
				if left := time.Until(j.Due); j.Version == c.Version && left < time.Minute {
					t.Errorf("the job of %s begins with %v left of its lease, less than its time limit", c.Event.Key, left)
				}
			}
			mu.Lock()
			begun[c.Event.Key]++
			mu.Unlock()
			time.Sleep(50 * time.Second)
			return nil
		})
		for i, status := range []string{"created", "paid", "shipped", "delivered"} {
			w.ok("shop", order(fmt.Sprint("e", i), "o1", status, fmt.Sprintf("1%d:00:00", i)))
		}
		stop := w.run()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		stop()
		for i := range 4 {
			if n := begun[fmt.Sprint("e", i)]; n != 1 {
				t.Errorf("job %d was begun %d times, want once", i, n)
			}
		}
		notIn(t, "the log", log.String(), "twice")
	})
}

func TestWhenAnAttemptMayHaveBeenMadeTwice(t *testing.T) {
	for _, test := range []struct {
		about string
		takes time.Duration
		fault []storetest.Fault
		want  string // "" if nothing is to be warned of
	}{
		{"in time", time.Second, nil, ""},
		{"settled, though reported unknown", time.Second, []storetest.Fault{{Method: "Settle", Call: 1, Applied: true}}, ""},
		{"longer than its lease", 2 * time.Minute, nil, "raise JobConfig.Timeout"},
	} {
		t.Run(test.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log *logText
				w := bubbled(t, func(cfg *inbox.Config) { log = logged(cfg) })
				runs := 0
				var mu sync.Mutex
				w.Handle("order.paid", func(context.Context, onceward.Change) error {
					mu.Lock()
					runs++
					first := runs == 1
					mu.Unlock()
					if first {
						time.Sleep(test.takes) // and does not listen to its context
					}
					return nil
				})
				w.ok("shop", order("e1", "o1", "paid", "10:00:00"))
				w.store.Plan(test.fault...)
				stop := w.run()
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if len(test.fault) > 0 && w.store.Struck() == 0 {
					t.Error("no settlement failed")
				}
				stop()
				if got := log.String(); test.want == "" && strings.Contains(got, "twice") || !strings.Contains(got, test.want) {
					t.Errorf("the log, which should say %q:\n%s", test.want, got)
				}
			})
		})
	}
}

// TestRunEndsThoughTheStoreHangs has settlements that do not return before their
// context ends, and one that fails again and again.
func TestRunEndsThoughTheStoreHangs(t *testing.T) {
	for _, hangs := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := bubbled(t, func(cfg *inbox.Config) { cfg.Jobs.Grace = 2 * time.Second; cfg.Jobs.Workers = 2 })
			settling := make(chan struct{}, 1000)
			w.store.Before = func(ctx context.Context, method string, _ int) {
				if method != "Settle" {
					return
				}
				settling <- struct{}{}
				if hangs {
					<-ctx.Done()
				}
			}
			w.store.Plan(storetest.Fault{Method: "Settle"})
			w.Handle("order.paid", func(context.Context, onceward.Change) error { return errors.New("not yet") })
			for i := range 9 {
				w.ok("shop", order(fmt.Sprint("e", i), fmt.Sprint("o", i), "paid", "10:00:00"))
			}
			stop := w.run()
			<-settling
			synctest.Wait() // all workers have what they can hold
			begin := time.Now()
			stop()
			if took := time.Since(begin); took > 6*time.Second {
				t.Errorf("hangs %v: Run takes %v to end, with a grace of 2s", hangs, took)
			}
		})
	}
}

// TestNoWorkerWaitsForTheStore runs more jobs than there are workers while the
// first settlement hangs.
func TestNoWorkerWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := bubbled(t, func(cfg *inbox.Config) { cfg.Jobs.Workers = 2 })
		release := make(chan struct{})
		w.store.Before = func(_ context.Context, method string, call int) {
			if method == "Settle" && call == 1 {
				<-release
			}
		}
		var mu sync.Mutex
		ran := 0
		w.Handle("order.paid", func(context.Context, onceward.Change) error {
			mu.Lock()
			defer mu.Unlock()
			ran++
			return nil
		})
		for i := range 9 {
			w.ok("shop", order(fmt.Sprint("e", i), fmt.Sprint("o", i), "paid", "10:00:00"))
		}
		stop := w.run()
		time.Sleep(10 * time.Second)
		mu.Lock()
		if ran < 4 {
			t.Errorf("%d jobs ran while a settlement hangs, want those of another round", ran)
		}
		mu.Unlock()
		close(release)
		time.Sleep(time.Minute)
		stop()
		if ran != 9 {
			t.Errorf("%d runs of 9 jobs", ran)
		}
	})
}
