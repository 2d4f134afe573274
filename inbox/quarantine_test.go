package inbox_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/storetest"
)

func TestARejectedDeliveryIsKept(t *testing.T) {
	w := newWorld(t, nil)
	body := order("e1", "o1", "paid", "10:00:00")
	r := w.signed("shop", body)
	r.Header.Set("X-Signature", strings.Repeat("0", 64))
	r.Header.Set("Authorization", "Bearer tell nobody")
	w.serve(r)
	if err := w.Close(ctx); err != nil { // writes what waits
		t.Fatal(err)
	}
	kept, err := w.below.Rejections(ctx, "shop", 10)
	if err != nil || len(kept) != 1 {
		t.Fatalf("%d kept, %v", len(kept), err)
	}
	q := kept[0]
	if string(q.Delivery.Body) != body || q.Delivery.Target != "/in/shop" || !strings.Contains(q.Reason, "differs") {
		t.Errorf("kept %+v", q)
	}
	for name, values := range q.Delivery.Header {
		notIn(t, name, strings.Join(values, " "), "tell nobody")
	}
}

func TestAFloodOfForgeriesIsDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := bubbled(t, func(cfg *inbox.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		gate := make(chan struct{})
		w.store.Before = func(_ context.Context, method string, _ int) {
			if method == "Quarantine" {
				<-gate
			}
		}
		forge := func() {
			rec := httptest.NewRecorder()
			w.Handler().ServeHTTP(rec, httptest.NewRequest("POST", "/in/shop", strings.NewReader("{}")))
			if rec.Code != 401 {
				t.Fatalf("answered %d", rec.Code)
			}
		}
		forge()
		synctest.Wait() // the first is being written, and stays so
		begin := time.Now()
		for range inbox.MostRejections + 10 {
			forge()
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("the answers waited %v for the quarantine", took)
		}
		if w.Dropped() != 10 {
			t.Errorf("%d dropped, want 10", w.Dropped())
		}
		close(gate)
		if err := w.Close(ctx); err != nil {
			t.Error(err)
		}
		if !strings.Contains(log.String(), "dropped=10") {
			t.Error("the log does not say how many were dropped")
		}
		if s := w.stats(); s.Quarantined != inbox.MostRejections+1 {
			t.Errorf("%d are kept", s.Quarantined)
		}
	})
}

func TestTheQuarantineIsARing(t *testing.T) {
	w := newWorld(t, func(cfg *inbox.Config) { cfg.Quarantine = onceward.QuarantineLimits{Count: 3, Bytes: 1 << 20} })
	for range 10 {
		w.serve(httptest.NewRequest("POST", "/in/shop", strings.NewReader("{}")))
	}
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if s := w.stats(); s.Quarantined != 3 {
		t.Errorf("%d are kept, want 3", s.Quarantined)
	}
}

// watcher counts what an Observer is told.
type watcher struct {
	mu                 sync.Mutex
	delivered          map[onceward.Outcome]int
	folded             map[onceward.Verdict]int
	commits, acks, all int
}

func (o *watcher) Delivered(_ string, outcome onceward.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.delivered[outcome]++
}

func (o *watcher) Folded(_ string, v onceward.Verdict) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.folded[v]++
}

func (o *watcher) Committed(events int, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.commits++
	o.all += events
}

func (o *watcher) Acknowledged(string, time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.acks++
}

func TestTheObserverIsTold(t *testing.T) {
	o := &watcher{delivered: map[onceward.Outcome]int{}, folded: map[onceward.Verdict]int{}}
	w := newWorld(t, func(cfg *inbox.Config) { cfg.Observer = o })
	w.ok("shop", order("e1", "o1", "paid", "10:00:00"))
	w.ok("shop", order("e1", "o1", "paid", "10:00:00"))
	w.ok("shop", order("e1", "o2", "paid", "10:00:00"))
	w.ok("shop", order("e2", "o1", "created", "09:00:00"))
	w.serve(httptest.NewRequest("POST", "/in/shop", nil))
	w.store.Plan(storetest.Fault{Method: "Commit"})
	w.deliver("shop", order("e3", "o1", "created", "09:00:00"))
	for outcome, want := range map[onceward.Outcome]int{
		onceward.New: 2, onceward.Duplicate: 1, onceward.Conflict: 1, onceward.Rejected: 1, onceward.Undecided: 1,
	} {
		if o.delivered[outcome] != want {
			t.Errorf("%d deliveries are %s, want %d", o.delivered[outcome], outcome, want)
		}
	}
	if o.folded[onceward.Applied] != 1 || o.folded[onceward.Stale] != 1 {
		t.Errorf("folded %v", o.folded)
	}
	if o.commits != 6 || o.all != 6 || o.acks != 4 { // one commit more for the conflict
		t.Errorf("%d commits of %d events, %d acknowledgements; want 6, 6, 4", o.commits, o.all, o.acks)
	}
}
