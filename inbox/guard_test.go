package inbox_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/storetest"
)

func TestReadinessComesBackWithoutTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := bubbled(t, nil)
		w.store.Plan(storetest.Fault{Method: "Commit", Call: 1})
		w.deliver("shop", order("e1", "o1", "paid", "10:00:00"))
		if err := w.Ready(ctx); err == nil {
			t.Error("ready right after a commit failed")
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if err := w.Ready(ctx); err != nil {
			t.Errorf("half a second later, and no delivery came: %v", err)
		}
		w.store.Plan(storetest.Fault{Method: "Ping"})
		if err := w.Ready(ctx); err == nil {
			t.Error("ready though the store is down")
		}
		w.store.Plan()
		if err := w.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}

// broken is an Observer with a bug.
type broken struct{}

func (broken) Delivered(string, onceward.Outcome) { panic("a bug in the metrics: Delivered") }
func (broken) Folded(string, onceward.Verdict)    { panic("a bug in the metrics: Folded") }
func (broken) Committed(int, time.Duration)       { panic("a bug in the metrics: Committed") }
func (broken) Acknowledged(string, time.Duration) { panic("a bug in the metrics: Acknowledged") }

func TestAnObserverThatPanicsChangesNothing(t *testing.T) {
	var log *logText
	w := newWorld(t, func(cfg *inbox.Config) { log = logged(cfg); cfg.Observer = broken{} })
	if a := w.ok("shop", order("e1", "o1", "paid", "10:00:00")); a.Outcome != "new" {
		t.Errorf("outcome %s", a.Outcome)
	}
	if rec := w.serve(httptest.NewRequest(http.MethodPost, "/in/shop", strings.NewReader("{}"))); rec.Code != http.StatusUnauthorized {
		t.Errorf("a forgery is answered %d", rec.Code)
	}
	for _, method := range []string{"Delivered", "Folded", "Committed", "Acknowledged"} {
		if !strings.Contains(log.String(), "a bug in the metrics: "+method) {
			t.Errorf("the log does not tell of the panic in %s", method)
		}
	}
}

const payload = "jane.doe@example.com"

func TestAPanicIsKeptAsOneLine(t *testing.T) {
	var log *logText
	w := newWorld(t, func(cfg *inbox.Config) { log = logged(cfg) })
	w.Handle("order.paid", func(context.Context, onceward.Change) error { panic("nil map\nfor " + payload) })
	w.ok("shop", order("e1", "o1", "paid", "10:00:00"))
	if _, err := w.Work(ctx); err != nil {
		t.Fatal(err)
	}
	jobs, err := w.store.Jobs(ctx, 10)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	if e := jobs[0].LastError; !strings.Contains(e, "panic: nil map") || strings.Contains(e, "\n") || strings.Contains(e, "goroutine") {
		t.Errorf("kept with the job: %q", e)
	}
	if !strings.Contains(log.String(), "guard_test.go") {
		t.Errorf("the log does not say where it came from:\n%s", log)
	}
	notIn(t, "the log", log.String(), payload)
}

func TestErrorsNameNoKeys(t *testing.T) {
	w := newWorld(t, nil)
	ref := onceward.Ref{Source: "shop", Kind: "order", Key: payload}
	down := errors.New("down")
	w.store.Plan(storetest.Fault{Method: "Entity", Err: down}, storetest.Fault{Method: "History", Err: down},
		storetest.Fault{Method: "Entities", Err: down}, storetest.Fault{Method: "Commit", Err: down})
	_, entity := w.Entity(ctx, ref)
	_, history := w.History(ctx, ref)
	_, find := w.Find(ctx, "shop", "order", payload)
	_, put := w.Put(ctx, inbox.Registration{Ref: ref})
	for _, err := range []error{entity, history, find, put} {
		if !errors.Is(err, down) {
			t.Errorf("the error is %v, want %v", err, down)
			continue
		}
		notIn(t, "an error of the store", err.Error(), payload)
	}
	w.store.Plan()
}

// TestTheQuarantineBoundsHeadersToo floods it with forgeries of large headers and
// no body.
func TestTheQuarantineBoundsHeadersToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := bubbled(t, nil)
		gate := make(chan struct{})
		w.store.Before = func(_ context.Context, method string, _ int) {
			if method == "Quarantine" {
				<-gate
			}
		}
		forge := func() {
			r := httptest.NewRequest(http.MethodPost, "/in/shop?q="+strings.Repeat("q", 100<<10), nil)
			r.Header.Set("User-Agent", strings.Repeat("x", 300<<10))
			if rec := w.serve(r); rec.Code != http.StatusUnauthorized {
				t.Fatalf("answered %d", rec.Code)
			}
		}
		forge()
		synctest.Wait() // the first is being written, and stays so
		for range 100 {
			forge()
		}
		if w.Dropped() < 75 {
			t.Errorf("%d of 100 rejections of 400 KiB were dropped, want all but those that fit in 8 MiB", w.Dropped())
		}
		close(gate)
		if err := w.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}
