package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/storetest"
)

func TestAStoreThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(cfg *inbox.Config) { cfg.Now = time.Now })
		w.clock.advance(time.Since(w.clock.Now()))
		body := order("e1", "o1", "paid", "10:00:00")
		w.store.Plan(storetest.Fault{Method: "Commit"}, storetest.Fault{Method: "Ping"})
		for range 20 {
			if rec := w.deliver("shop", body); rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" {
				t.Fatalf("while the store is down: %d", rec.Code)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := w.store.Calls("Commit"); n < 2 || n > 5 {
			t.Errorf("in two seconds the store was tried %d times, want one probe each half second", n)
		}
		if err := w.Ready(ctx); !errors.Is(err, onceward.ErrUnavailable) {
			t.Errorf("ready: %v", err)
		}
		w.store.Plan()
		time.Sleep(500 * time.Millisecond)
		if a := w.ok("shop", body); a.Outcome != "new" {
			t.Errorf("when it is back: %s", a.Outcome)
		}
		if err := w.Ready(ctx); err != nil {
			t.Errorf("ready: %v", err)
		}
		if err := w.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}

// hold makes each call of Commit wait until the returned function is called.
func (w *world) hold() (waiting <-chan struct{}, release func()) {
	gate, begun := make(chan struct{}), make(chan struct{}, 1000)
	w.store.Before = func(_ context.Context, method string, _ int) {
		if method == "Commit" {
			begun <- struct{}{}
			<-gate
		}
	}
	return begun, sync.OnceFunc(func() { close(gate) })
}

func TestConcurrentDuplicates(t *testing.T) {
	w := newWorld(t, nil)
	begun, release := w.hold()
	var wg sync.WaitGroup
	outcomes := make(chan string, 64)
	body := order("e1", "o1", "paid", "10:00:00")
	for range 64 {
		r := w.signed("shop", body)
		wg.Go(func() {
			rec := w.serve(r)
			if rec.Code != http.StatusOK {
				t.Errorf("answered %d", rec.Code)
			}
			outcomes <- decode(t, rec).Outcome
		})
	}
	<-begun
	release()
	wg.Wait()
	close(outcomes)
	got := map[string]int{}
	for o := range outcomes {
		got[o]++
	}
	if diff := cmp.Diff(map[string]int{"new": 1, "duplicate": 63}, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if s := w.stats(); s.Events != 1 || s.Repeats != 63 || s.Entities != 1 {
		t.Errorf("%d events, %d repeats, %d rows; want 1, 63, 1", s.Events, s.Repeats, s.Entities)
	}
}

func TestAFullQueueIsAnswered503(t *testing.T) {
	w := newWorld(t, func(cfg *inbox.Config) { cfg.QueueEvents = 4 })
	begun, release := w.hold()
	var wg sync.WaitGroup
	in := make(chan int, 10)
	send := func(i int) {
		r := w.signed("shop", order(fmt.Sprint("e", i), "o1", "paid", "10:00:00"))
		wg.Go(func() { in <- w.serve(r).Code })
	}
	send(0)
	<-begun
	for i := range 5 {
		send(1 + i)
	}
	got := map[int]int{<-in: 1, <-in: 1} // two of them do not fit, and are told so at once
	if got[http.StatusServiceUnavailable] != 1 || len(got) != 1 {
		t.Errorf("answered %v while the queue is full", got)
	}
	if w.Depth() != 4 {
		t.Errorf("%d events wait, want 4", w.Depth())
	}
	release()
	wg.Wait()
	for range 4 {
		if code := <-in; code != http.StatusOK {
			t.Errorf("one that was taken in is answered %d", code)
		}
	}
}

func TestTheAnswerDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(cfg *inbox.Config) { cfg.Now = time.Now })
		w.clock.advance(time.Since(w.clock.Now()))
		_, release := w.hold()
		body := order("e1", "o1", "paid", "10:00:00")
		begin := time.Now()
		if rec := w.deliver("shop", body); rec.Code != http.StatusServiceUnavailable {
			t.Errorf("answered %d", rec.Code)
		}
		if took := time.Since(begin); took != 4*time.Second {
			t.Errorf("answered after %v, want 4s", took)
		}
		release()
		if a := w.ok("shop", body); a.Outcome != "duplicate" {
			t.Errorf("the repeat is %s; the event was stored after the answer", a.Outcome)
		}
		if err := w.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestShutdownWithWorkInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(cfg *inbox.Config) { cfg.Now = time.Now })
		w.clock.advance(time.Since(w.clock.Now()))
		_, release := w.hold()
		codes := make(chan int, 20)
		for i := range 20 {
			r := w.signed("shop", order(fmt.Sprint("e", i), "o1", "paid", "10:00:00"))
			go func() { codes <- w.serve(r).Code }()
		}
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- w.Close(ctx) }()
		synctest.Wait()
		if rec := w.deliver("shop", order("late", "o1", "paid", "10:00:00")); rec.Code != http.StatusServiceUnavailable {
			t.Errorf("one that comes after the end is answered %d", rec.Code)
		}
		release()
		if err := <-closed; err != nil {
			t.Errorf("close: %v", err)
		}
		for range 20 {
			if code := <-codes; code != http.StatusOK {
				t.Errorf("one in flight is answered %d", code)
			}
		}
		if s := w.stats(); s.Events != 20 {
			t.Errorf("%d events are stored, want 20", s.Events)
		}
	})
}

func TestAFaultOfOneEventLeavesTheOthers(t *testing.T) {
	w := newWorld(t, nil)
	w.store.Plan(storetest.Fault{Method: "Commit", Call: 1, Err: errors.New("this row cannot be")})
	if rec := w.deliver("shop", order("e1", "o1", "paid", "10:00:00")); rec.Code != http.StatusInternalServerError || rec.Header().Get("Retry-After") != "" {
		t.Errorf("answered %d", rec.Code)
	}
	if a := w.ok("shop", order("e2", "o1", "paid", "10:00:00")); a.Outcome != "new" {
		t.Errorf("the next one: %s", a.Outcome)
	}
}
