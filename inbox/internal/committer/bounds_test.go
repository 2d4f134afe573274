package committer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox/internal/panics"
)

func TestRefusingEndsWithoutTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		s.before = func(int, *onceward.Batch) error { return onceward.ErrUnavailable }
		c := start(t, s, nil)
		<-submit(ctx, c, arrival("k", "b"))
		if !c.Refusing() {
			t.Error("right after a failure it does not refuse")
		}
		time.Sleep(c.cfg.RefuseFor)
		synctest.Wait()
		if c.Refusing() {
			t.Error("it refuses until a delivery comes, which readiness keeps away")
		}
		mustClose(t, c)
	})
}

func TestAReplayGrowsNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		release := s.hold()
		c := start(t, s, nil)
		told := []<-chan answer{submit(ctx, c, arrival("busy", "b"))}
		synctest.Wait()
		for range 10 * mostRepeats {
			told = append(told, submit(ctx, c, arrival("same", "b")))
		}
		synctest.Wait()
		c.mu.Lock()
		noted := len(c.queue[0].arrival.Repeats)
		c.mu.Unlock()
		if noted != mostRepeats {
			t.Errorf("%d repeats wait with their arrival, want %d", noted, mostRepeats)
		}
		release()
		if got := outcomes(t, told); got["new"] != 2 || got["duplicate"] != 10*mostRepeats-1 {
			t.Errorf("outcomes %v: every repeat is answered as a duplicate", got)
		}
		mustClose(t, c)
	})
}

// slowStore needs a second for each event of a batch.
func slowStore() *tableStore {
	s := newTableStore(1)
	s.before = func(n int, b *onceward.Batch) error {
		<-time.After(time.Duration(len(b.Arrivals)) * time.Second) // of synctest's clock
		return nil
	}
	return s
}

func TestABatchThatIsTooSlowGetsSmaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slowStore()
		c := start(t, s, func(cfg *Config) { cfg.CommitTimeout = 3500 * time.Millisecond })
		var many []*onceward.Arrival
		for i := range 8 {
			many = append(many, arrival(fmt.Sprint(i), "b"))
		}
		for try := 1; ; try++ { // as a sender does
			if try > 6 {
				mustClose(t, c)
				t.Fatalf("not stored after %d tries, in batches of %v", try-1, s.batchSizes())
			}
			a := <-submit(ctx, c, many...)
			if a.err == nil && !slices.ContainsFunc(a.results, func(r Result) bool { return r.Err != nil }) {
				break
			}
			time.Sleep(c.cfg.RefuseFor)
			synctest.Wait()
			for i := range many {
				many[i] = arrival(many[i].Event.Key, "b")
			}
		}
		if sizes := s.batchSizes(); sizes[0] != 8 || sizes[1] != 4 || sizes[2] != 2 {
			t.Errorf("batches of %v, want 8, 4, 2", sizes)
		}
		for i := range 6 {
			var next []<-chan answer
			for j := range 8 {
				next = append(next, submit(ctx, c, arrival(fmt.Sprint("next", i, "-", j), "b")))
			}
			if got := outcomes(t, next); got["new"] != 8 {
				t.Errorf("delivery %d after it: outcomes %v; batches grow again too soon", i, got)
			}
		}
		s.before = nil
		for i := range 8 * growAfter {
			var full []*onceward.Arrival
			for j := range 8 {
				full = append(full, arrival(fmt.Sprint("more", i, "-", j), "b"))
			}
			<-submit(ctx, c, full...)
		}
		c.mu.Lock()
		most := c.most
		c.mu.Unlock()
		if most != c.cfg.BatchEvents {
			t.Errorf("after many that succeeded a batch may hold %d, want %d again", most, c.cfg.BatchEvents)
		}
		mustClose(t, c)
	})
}

func TestAStoreThatIsAwayMakesNoBatchSmaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		s.before = func(int, *onceward.Batch) error { return onceward.ErrUnavailable }
		c := start(t, s, nil)
		<-submit(ctx, c, arrival("a", "b"), arrival("b", "b"))
		if c.most != c.cfg.BatchEvents {
			t.Errorf("a batch may hold %d, want %d", c.most, c.cfg.BatchEvents)
		}
		mustClose(t, c)
	})
}

func TestTheRestOfADividedDeliveryWeighsAsMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		release := s.hold()
		c := start(t, s, func(cfg *Config) { cfg.QueueEvents, cfg.QueueBytes = 100, 1<<12 })
		told := []<-chan answer{submit(ctx, c, arrival("0", "b"))}
		synctest.Wait()
		send := func(size int64, prefix string, n int) {
			var list []*onceward.Arrival
			for i := range n {
				list = append(list, arrival(fmt.Sprint(prefix, i), "b"))
			}
			ch := make(chan answer, 1)
			go func() {
				r, err := c.Submit(ctx, list, size)
				ch <- answer{r, err}
			}()
			told = append(told, ch)
			synctest.Wait()
		}
		send(400, "large", 9) // 8 and 1: each part holds its 400 bytes
		send(300, "other", 1)
		release()
		if got := outcomes(t, told); got["new"] != 11 {
			t.Errorf("outcomes %v", got)
		}
		if got, want := s.batchSizes(), []int{1, 8, 1, 1}; !slices.Equal(got, want) {
			t.Errorf("batches of %v, want %v: 700 bytes are more than a batch of 512", got, want)
		}
		mustClose(t, c)
	})
}

func TestADeliveryIsComparedAsAWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var groups []int
		s := newTableStore(1)
		c := start(t, s, func(cfg *Config) {
			compare := each(func(a *onceward.Arrival) (onceward.Resolution, error) {
				if a.Event.Key == "2" {
					return 0, onceward.ErrNotFound
				}
				return onceward.ResolvedConflict, nil
			})
			cfg.Resolve = func(ctx context.Context, arrivals []*onceward.Arrival) []Comparison {
				groups = append(groups, len(arrivals))
				return compare(ctx, arrivals)
			}
		})
		delivery := func(body string) []*onceward.Arrival {
			var list []*onceward.Arrival
			for i := range 6 {
				a := arrival(fmt.Sprint(i), body)
				if i > 0 {
					a.Event.Delivery = list[0].Event.Delivery
				}
				list = append(list, a)
			}
			return list
		}
		outcomes(t, []<-chan answer{submit(ctx, c, delivery("one")...)})
		got := outcomes(t, []<-chan answer{submit(ctx, c, delivery("two")...)})
		if got["conflict"] != 5 || got["*fmt.wrapError"] != 1 {
			t.Errorf("outcomes %v, want 5 conflicts and the one that cannot be compared", got)
		}
		if !slices.Equal(groups, []int{6}) {
			t.Errorf("compared in groups of %v, want the delivery at once", groups)
		}
		if sizes := s.batchSizes(); !slices.Equal(sizes, []int{6, 6, 5}) {
			t.Errorf("batches of %v, want 6, 6 and the 5 that are resolved", sizes)
		}
		mustClose(t, c)
	})
}

func TestWhoeverIsToldOfACommitMayPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, newTableStore(1), func(cfg *Config) {
			cfg.Committed = func(int, time.Duration, error) { panic("a bug in the metrics") }
		})
		if got := outcomes(t, []<-chan answer{submit(ctx, c, arrival("k", "b"))}); got["new"] != 1 {
			t.Errorf("outcomes %v, want that it is stored", got)
		}
		mustClose(t, c)
	})
}

func TestAPanicInAComparisonIsThatDeliverysError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, newTableStore(1), func(cfg *Config) {
			cfg.Resolve = func(context.Context, []*onceward.Arrival) []Comparison { panic("a bug\nin the mapping") }
		})
		<-submit(ctx, c, arrival("k", "one"))
		a := <-submit(ctx, c, arrival("k", "two"))
		var thrown *panics.Error
		var refused *RefusedError
		if err := a.results[0].Err; !errors.As(err, &refused) || !errors.As(err, &thrown) || thrown.Error() != "panic: a bug" {
			t.Errorf("told %v, want one line of the panic", err)
		}
		mustClose(t, c)
	})
}
