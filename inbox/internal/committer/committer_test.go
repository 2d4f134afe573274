package committer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward"
)

var ctx = context.Background()

func TestArrivalsGatherWhileABatchCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		release := s.hold()
		c := start(t, s, nil)
		told := []<-chan answer{submit(ctx, c, arrival("0", "b"))}
		synctest.Wait()
		for i := range 10 {
			told = append(told, submit(ctx, c, arrival(fmt.Sprint("k", i), "b")))
			synctest.Wait()
		}
		release()
		if got := outcomes(t, told); got["new"] != 11 {
			t.Errorf("outcomes %v, want 11 new", got)
		}
		if got, want := s.batchSizes(), []int{1, 8, 2}; !slices.Equal(got, want) {
			t.Errorf("batches of %v, want %v: the bound is 8", got, want)
		}
		mustClose(t, c)
	})
}

func TestEqualArrivalsJoinTheOneThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		release := s.hold()
		c := start(t, s, nil)
		told := []<-chan answer{submit(ctx, c, arrival("busy", "b"))}
		synctest.Wait()
		for range 64 { // four times what the queue holds
			told = append(told, submit(ctx, c, arrival("same", "b")))
		}
		synctest.Wait()
		told = append(told, submit(ctx, c, arrival("same", "other bytes")))
		synctest.Wait()
		if events, _ := c.Depth(); events != 3 {
			t.Errorf("%d events wait, want 3: equal ones take no room", events)
		}
		c.cfg.Resolve = each(func(*onceward.Arrival) (onceward.Resolution, error) { return onceward.ResolvedConflict, nil })
		release()
		want := map[string]int{"new": 2, "duplicate": 63, "conflict": 1}
		if diff := cmp.Diff(want, outcomes(t, told)); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		if s.repeats != 63 {
			t.Errorf("%d repeats noted, want 63", s.repeats)
		}
		mustClose(t, c)
	})
}

func TestOneThatIsBeingCommittedIsNotJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		release := s.hold()
		c := start(t, s, nil)
		first := submit(ctx, c, arrival("k", "b"))
		synctest.Wait()
		second, third := submit(ctx, c, arrival("k", "b")), submit(ctx, c, arrival("k", "b"))
		synctest.Wait()
		release()
		if got := outcomes(t, []<-chan answer{first, second, third}); got["new"] != 1 || got["duplicate"] != 2 {
			t.Errorf("outcomes %v, want one new and two duplicates", got)
		}
		if s.repeats != 2 {
			t.Errorf("%d repeats noted, want 2: each is in a commit before its answer", s.repeats)
		}
		mustClose(t, c)
	})
}

func TestAFullQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		release := s.hold()
		c := start(t, s, nil)
		var told []<-chan answer
		for i := range 16 {
			told = append(told, submit(ctx, c, arrival(fmt.Sprint(i), "b")))
			synctest.Wait() // in this order: the first is being committed
		}
		if _, err := c.Submit(ctx, []*onceward.Arrival{arrival("more", "b")}, 1); !errors.Is(err, ErrFull) {
			t.Errorf("the 17th is told %v, want %v", err, ErrFull)
		}
		told = append(told, submit(ctx, c, arrival("15", "b")))
		synctest.Wait()
		release()
		if got := outcomes(t, told); got["new"] != 16 || got["duplicate"] != 1 {
			t.Errorf("outcomes %v, want 16 new and the one that joined", got)
		}
		mustClose(t, c)
	})
}

func TestBytesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		release := s.hold()
		c := start(t, s, nil)
		large := make(chan error, 1)
		go func() {
			_, err := c.Submit(ctx, []*onceward.Arrival{arrival("large", "b")}, 5000)
			large <- err
		}()
		synctest.Wait()
		if _, err := c.Submit(ctx, []*onceward.Arrival{arrival("small", "b")}, 1); !errors.Is(err, ErrFull) {
			t.Errorf("beside a large one: %v, want %v", err, ErrFull)
		}
		release()
		if err := <-large; err != nil {
			t.Errorf("one that is larger than the queue, and alone: %v", err)
		}
		if _, err := c.Submit(ctx, []*onceward.Arrival{arrival("small", "b")}, 1); err != nil {
			t.Errorf("after it was stored: %v", err)
		}
		mustClose(t, c)
	})
}

func TestALargeDeliveryFitsWhereHalfTheQueueIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		release := s.hold()
		c := start(t, s, nil)
		var told []<-chan answer
		for i := range 9 {
			told = append(told, submit(ctx, c, arrival(fmt.Sprint(i), "b")))
			synctest.Wait()
		}
		large := func() []*onceward.Arrival {
			var list []*onceward.Arrival
			for i := range 40 {
				list = append(list, arrival(fmt.Sprint("large", i), "b"))
			}
			return list
		}
		if _, err := c.Submit(ctx, large(), 10); !errors.Is(err, ErrFull) {
			t.Errorf("with 9 of 16 there: %v, want %v", err, ErrFull)
		}
		release()
		if got := outcomes(t, told); got["new"] != 9 {
			t.Errorf("outcomes %v", got)
		}
		if got := outcomes(t, []<-chan answer{submit(ctx, c, large()...)}); got["new"] != 40 {
			t.Errorf("later: %v, want 40 new", got)
		}
		mustClose(t, c)
	})
}

func TestADeliveryStaysTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		release := s.hold()
		c := start(t, s, func(cfg *Config) { cfg.QueueEvents = 100 })
		many := func(prefix string, n int) []*onceward.Arrival {
			var list []*onceward.Arrival
			for i := range n {
				list = append(list, arrival(fmt.Sprint(prefix, i), "b"))
			}
			return list
		}
		told := []<-chan answer{submit(ctx, c, arrival("0", "b"))}
		synctest.Wait()
		for _, group := range [][]*onceward.Arrival{many("a", 5), many("b", 5), many("c", 3), many("d", 19), many("e", 1)} {
			told = append(told, submit(ctx, c, group...))
			synctest.Wait()
		}
		release()
		if got := outcomes(t, told); got["new"] != 34 {
			t.Errorf("outcomes %v, want 34 new", got)
		}
		want := []int{1, 5, 8, 8, 8, 4} // 5+3; then 19 alone, divided as the bound is 8, its rest with the last
		if got := s.batchSizes(); !slices.Equal(got, want) {
			t.Errorf("batches of %v, want %v", got, want)
		}
		mustClose(t, c)
	})
}

func TestOneDeliveryMayNameAnEventTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		c := start(t, s, nil)
		results, err := c.Submit(ctx, []*onceward.Arrival{arrival("a", "b"), arrival("a", "b"), arrival("c", "b")}, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range results {
			got = append(got, r.Outcome.String())
		}
		if want := []string{"new", "duplicate", "new"}; !slices.Equal(got, want) {
			t.Errorf("outcomes %v, want %v", got, want)
		}
		mustClose(t, c)
	})
}

func TestAClientThatGoesAwayCancelsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		release := s.hold()
		c := start(t, s, nil)
		stays := submit(ctx, c, arrival("a", "b"))
		synctest.Wait()
		leaving, leave := context.WithCancel(ctx)
		gone := submit(leaving, c, arrival("b", "b"))
		synctest.Wait()
		leave()
		if a := <-gone; !errors.Is(a.err, context.Canceled) {
			t.Errorf("the one that left is told %v", a.err)
		}
		release()
		if got := outcomes(t, []<-chan answer{stays}); got["new"] != 1 {
			t.Errorf("the one that stayed: %v", got)
		}
		mustClose(t, c)
		if s.count() != 2 {
			t.Errorf("%d events are kept, want both", s.count())
		}
	})
}

func TestWhatDiffersIsResolvedInASecondCommit(t *testing.T) {
	for _, test := range []struct {
		resolution onceward.Resolution
		err        error
		want       string
		kept       int
	}{
		{onceward.ResolvedDuplicate, nil, "duplicate", 2}, // no facts, so its body is kept
		{onceward.ResolvedConflict, nil, "conflict", 2},
		{0, onceward.ErrUnavailable, "*fmt.wrapError", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newTableStore(1)
			c := start(t, s, func(cfg *Config) {
				cfg.Resolve = each(func(a *onceward.Arrival) (onceward.Resolution, error) {
					if a.StoredID == 0 || a.StoredID == a.Event.ID {
						t.Errorf("the stored event is %d, the new one %d", a.StoredID, a.Event.ID)
					}
					return test.resolution, test.err
				})
			})
			outcomes(t, []<-chan answer{submit(ctx, c, arrival("k", "one"))})
			if got := outcomes(t, []<-chan answer{submit(ctx, c, arrival("k", "two"))}); got[test.want] != 1 {
				t.Errorf("outcomes %v, want one %s", got, test.want)
			}
			mustClose(t, c)
			if s.count() != test.kept {
				t.Errorf("%d bodies kept, want %d", s.count(), test.kept)
			}
		})
	}
}

func TestOneNewWhateverTheConcurrency(t *testing.T) {
	s := newTableStore(4)
	c := start(t, s, func(cfg *Config) { cfg.QueueEvents = 10_000; cfg.QueueBytes = 1 << 20 })
	var wg sync.WaitGroup
	var mu sync.Mutex
	news := map[string]int{}
	for g := range 32 {
		wg.Go(func() {
			for i := range 50 {
				key := fmt.Sprint((g + i) % 40)
				r, err := c.Submit(ctx, []*onceward.Arrival{arrival(key, "b")}, 10)
				if err != nil || r[0].Err != nil {
					t.Errorf("submit: %v %v", err, r)
					return
				}
				if r[0].Outcome == onceward.New {
					mu.Lock()
					news[key]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	mustClose(t, c)
	if len(news) != 40 || s.count() != 40 {
		t.Errorf("%d keys were new and %d kept, want 40", len(news), s.count())
	}
	for key, n := range news {
		if n != 1 {
			t.Errorf("key %s was new %d times", key, n)
		}
	}
	if s.repeats != 32*50-40 {
		t.Errorf("%d repeats noted, want %d", s.repeats, 32*50-40)
	}
}

func TestCloseDrainsAndAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(2)
		release := s.hold()
		c := start(t, s, nil)
		var told []<-chan answer
		for i := range 16 {
			told = append(told, submit(ctx, c, arrival(fmt.Sprint(i), "b")))
		}
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- c.Close(ctx) }()
		synctest.Wait()
		if _, err := c.Submit(ctx, []*onceward.Arrival{arrival("late", "b")}, 1); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close began: %v, want %v", err, ErrClosed)
		}
		release()
		if err := <-closed; err != nil {
			t.Errorf("close: %v", err)
		}
		if got := outcomes(t, told); got["new"] != 16 {
			t.Errorf("outcomes %v, want 16 new", got)
		}
		mustClose(t, c)
	})
}

func TestCloseGivesUpWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTableStore(1)
		release := s.hold()
		c := start(t, s, nil)
		var told []<-chan answer
		for i := range 3 {
			told = append(told, submit(ctx, c, arrival(fmt.Sprint(i), "b")))
			synctest.Wait()
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := c.Close(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		for _, ch := range told[1:] {
			if r := (<-ch).results; len(r) != 1 || !errors.Is(r[0].Err, ErrClosed) {
				t.Errorf("one that waited is told %v, want %v", r, ErrClosed)
			}
		}
		release() // the store comes to itself and sees that its context has ended
		if r := (<-told[0]).results; !errors.Is(r[0].Err, onceward.ErrUnknownOutcome) {
			t.Errorf("the one under way is told %v, want %v", r[0].Err, onceward.ErrUnknownOutcome)
		}
		mustClose(t, c)
	})
}
