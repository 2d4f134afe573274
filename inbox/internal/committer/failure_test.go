package committer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
)

func TestAStoreThatIsDownIsLeftAloneAndTriedAgain(t *testing.T) {
	for _, down := range []error{onceward.ErrUnavailable, onceward.ErrUnknownOutcome, onceward.ErrSchemaNewer} {
		synctest.Test(t, func(t *testing.T) {
			s := newTableStore(2)
			failing := true
			s.before = func(int, *onceward.Batch) error {
				if failing {
					return fmt.Errorf("commit: %w", down)
				}
				return nil
			}
			c := start(t, s, nil)
			try := func() error {
				r, err := c.Submit(ctx, []*onceward.Arrival{arrival("k", "b")}, 1)
				if err != nil {
					return err
				}
				return r[0].Err
			}
			for range 3 { // fails, is refused for half a second, probes, fails again
				if err := try(); !errors.Is(err, down) {
					t.Fatalf("told %v, want %v", err, down)
				}
				for range 5 {
					if err := try(); !errors.Is(err, ErrRefusing) {
						t.Fatalf("right after a failure: told %v, want %v", err, ErrRefusing)
					}
				}
				time.Sleep(499 * time.Millisecond)
				if err := try(); !errors.Is(err, ErrRefusing) {
					t.Fatalf("after 499 ms: told %v, want %v", err, ErrRefusing)
				}
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
			failing = false
			if err := try(); err != nil {
				t.Errorf("the store is back: told %v", err)
			}
			if n := len(s.batchSizes()); n != 4 {
				t.Errorf("%d commits were tried, want 4", n)
			}
			if c.Refusing() {
				t.Error("still refusing")
			}
			mustClose(t, c)
		})
	}
}

func TestOneBatchProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(4)
		probe := make(chan error)
		s.before = func(n int, _ *onceward.Batch) error {
			switch n {
			case 1:
				return onceward.ErrUnavailable
			case 2:
				return <-probe
			}
			return nil
		}
		c := start(t, s, func(cfg *Config) { cfg.BatchEvents = 1 })
		outcomes(t, []<-chan answer{submit(ctx, c, arrival("a", "b"))})
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		var told []<-chan answer
		for i := range 5 {
			told = append(told, submit(ctx, c, arrival(fmt.Sprint(i), "b")))
		}
		synctest.Wait()
		if n := len(s.batchSizes()); n != 2 {
			t.Errorf("%d commits, want the failed one and one probe", n)
		}
		probe <- nil
		if got := outcomes(t, told); got["new"] != 5 {
			t.Errorf("outcomes %v, want 5 new", got)
		}
		mustClose(t, c)
	})
}

func TestAnUnknownCommitIsNotAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		s.after = func(n int, _ *onceward.Batch) error {
			if n == 1 {
				return fmt.Errorf("connection lost: %w", onceward.ErrUnknownOutcome)
			}
			return nil
		}
		c := start(t, s, nil)
		r, err := c.Submit(ctx, []*onceward.Arrival{arrival("k", "b")}, 1)
		if err != nil || !errors.Is(r[0].Err, onceward.ErrUnknownOutcome) {
			t.Errorf("told %v %v, want that it is unknown", r, err)
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		r, err = c.Submit(ctx, []*onceward.Arrival{arrival("k", "b")}, 1)
		if err != nil || r[0].Err != nil || r[0].Outcome != onceward.Duplicate {
			t.Errorf("the sender's retry is told %v %v, want a duplicate", r, err)
		}
		mustClose(t, c)
	})
}

func TestACommitThatHangsIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		c := start(t, s, nil)
		s.before = func(int, *onceward.Batch) error {
			time.Sleep(c.cfg.CommitTimeout + time.Second)
			return nil
		}
		r, err := c.Submit(ctx, []*onceward.Arrival{arrival("k", "b")}, 1)
		if err != nil || !errors.Is(r[0].Err, onceward.ErrUnknownOutcome) {
			t.Errorf("told %v %v, want that it is unknown", r, err)
		}
		mustClose(t, c)
	})
}

func TestARowThatTheStoreRefusesStandsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		poison := errors.New("value too large for its column")
		hold := make(chan struct{})
		s.before = func(n int, b *onceward.Batch) error {
			if n == 1 {
				<-hold
				return nil
			}
			if slices.ContainsFunc(b.Arrivals, func(a *onceward.Arrival) bool { return strings.HasPrefix(a.Event.Key, "bad") }) {
				return poison
			}
			return nil
		}
		c := start(t, s, func(cfg *Config) { cfg.QueueEvents, cfg.BatchEvents = 100, 64 })
		told := []<-chan answer{submit(ctx, c, arrival("first", "b"))}
		synctest.Wait()
		for i := range 62 {
			told = append(told, submit(ctx, c, arrival(fmt.Sprint("good", i), "b")))
		}
		bad := []<-chan answer{submit(ctx, c, arrival("bad1", "b")), submit(ctx, c, arrival("bad2", "b"))}
		synctest.Wait()
		close(hold)
		if got := outcomes(t, told); got["new"] != 63 {
			t.Errorf("outcomes %v, want all but the two stored", got)
		}
		for _, ch := range bad {
			var refused *RefusedError
			if a := <-ch; a.err != nil || !errors.As(a.results[0].Err, &refused) || !errors.Is(refused, poison) {
				t.Errorf("a bad one is told %v", a)
			}
		}
		if c.Refusing() {
			t.Error("a bad row makes the committer refuse others")
		}
		mustClose(t, c)
	})
}

func TestAStoreThatRefusesEverythingCountsAsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		hold := make(chan struct{})
		s.before = func(n int, _ *onceward.Batch) error {
			if n == 1 {
				<-hold
			}
			return errors.New("no such table")
		}
		c := start(t, s, func(cfg *Config) {
			cfg.QueueEvents, cfg.BatchEvents = 1000, 512
			cfg.QueueBytes = 1 << 20
			cfg.BatchBytes = 1 << 20
		})
		told := []<-chan answer{submit(ctx, c, arrival("first", "b"))}
		synctest.Wait()
		for i := range 500 {
			told = append(told, submit(ctx, c, arrival(fmt.Sprint(i), "b")))
		}
		synctest.Wait()
		close(hold)
		down := 0
		for _, ch := range told {
			a := <-ch
			if a.err != nil || a.results[0].Err == nil {
				t.Fatalf("told %v, want an error of the store", a)
			}
			if errors.Is(a.results[0].Err, onceward.ErrUnavailable) {
				down++
			}
		}
		if n := len(s.batchSizes()); n > 2*mostFailures+2 {
			t.Errorf("%d commits were tried", n)
		}
		if down < 400 {
			t.Errorf("%d were told that the store is down, want nearly all", down)
		}
		mustClose(t, c)
	})
}

func TestAPanicInACommitIsThatRowsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		s.before = func(_ int, b *onceward.Batch) error {
			if b.Arrivals[0].Event.Key == "bad" {
				panic("a derivation in Go divides by zero")
			}
			return nil
		}
		c := start(t, s, nil)
		var refused *RefusedError
		if a := <-submit(ctx, c, arrival("bad", "b")); !errors.As(a.results[0].Err, &refused) {
			t.Errorf("told %v", a)
		}
		if got := outcomes(t, []<-chan answer{submit(ctx, c, arrival("good", "b"))}); got["new"] != 1 {
			t.Errorf("the next one: %v", got)
		}
		mustClose(t, c)
	})
}

func TestCloseWhileTheStoreIsDownAnswersAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		hold := make(chan struct{})
		s.before = func(n int, _ *onceward.Batch) error {
			if n == 1 {
				<-hold
			}
			return onceward.ErrUnavailable
		}
		c := start(t, s, func(cfg *Config) { cfg.BatchEvents = 2 })
		var told []<-chan answer
		for i := range 10 {
			told = append(told, submit(ctx, c, arrival(fmt.Sprint(i), "b")))
			synctest.Wait()
		}
		close(hold)
		mustClose(t, c)
		for _, ch := range told {
			if a := <-ch; a.err != nil || !errors.Is(a.results[0].Err, onceward.ErrUnavailable) {
				t.Errorf("told %v, want %v", a, onceward.ErrUnavailable)
			}
		}
	})
}

func TestTheQueueOutlivesAFailedBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		hold := make(chan struct{})
		s.before = func(n int, _ *onceward.Batch) error {
			if n == 1 {
				<-hold
				return onceward.ErrUnavailable
			}
			return nil
		}
		c := start(t, s, nil)
		first := submit(ctx, c, arrival("a", "b"))
		synctest.Wait()
		second := submit(ctx, c, arrival("b", "b"))
		synctest.Wait()
		begin := time.Now()
		close(hold)
		<-first
		if a := <-second; a.err != nil || a.results[0].Outcome != onceward.New {
			t.Errorf("the one that waited is told %v, want new", a)
		}
		if took := time.Since(begin); took != 500*time.Millisecond {
			t.Errorf("it was the probe after %v, want 500ms", took)
		}
		mustClose(t, c)
	})
}
