package inbox

import (
	"bytes"
	"context"
	"log/slog"
	"sync"

	"github.com/onceward/onceward"
)

// What waits to be written into the quarantine is bounded as well: a flood of
// forgeries must cost no memory and hold up no answer.
const (
	mostRejections     = 256
	mostRejectionBytes = 8 << 20
)

// quarantine writes rejected deliveries in the background.
type quarantine struct {
	store  onceward.Inbox
	limits onceward.QuarantineLimits
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	changed sync.Cond
	waiting []onceward.Rejection
	bytes   int64
	dropped int // since the last write
	closed  bool
}

func newQuarantine(store onceward.Inbox, limits onceward.QuarantineLimits, log *slog.Logger) *quarantine {
	q := &quarantine{store: store, limits: limits, log: log, ended: make(chan struct{})}
	q.changed.L = &q.mu
	q.ctx, q.cancel = context.WithCancel(context.Background())
	go q.run()
	return q
}

// add hands over a rejection and never waits.
func (q *quarantine) add(r onceward.Rejection) {
	size := footprint(&r.Delivery) + int64(len(r.Reason))
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting) >= mostRejections || q.bytes+size > mostRejectionBytes && len(q.waiting) > 0 {
		q.dropped++
		return
	}
	q.waiting, q.bytes = append(q.waiting, r), q.bytes+size
	q.changed.Signal()
}

func (q *quarantine) run() {
	defer close(q.ended)
	for {
		q.mu.Lock()
		for len(q.waiting) == 0 && !q.closed {
			q.changed.Wait()
		}
		batch, dropped := q.waiting, q.dropped
		q.waiting, q.bytes, q.dropped = nil, 0, 0
		q.mu.Unlock()
		if dropped > 0 {
			q.log.Warn("rejected deliveries were not kept, for too many came at once", "dropped", dropped)
		}
		if len(batch) == 0 {
			return
		}
		q.write(q.ctx, batch)
	}
}

func (q *quarantine) write(ctx context.Context, batch []onceward.Rejection) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	if err := q.store.Quarantine(ctx, batch, q.limits); err != nil {
		q.log.Error("rejected deliveries were not kept", "dropped", len(batch), "error", err)
	}
}

// keep writes a rejection at once and returns the number that the store gave it,
// 0 if that is not known. It is for the development mode: a flood would wait here.
func (q *quarantine) keep(ctx context.Context, store onceward.Reader, r onceward.Rejection) int64 {
	q.write(ctx, []onceward.Rejection{r})
	newest, err := store.Rejections(ctx, r.Source, 20)
	if err != nil {
		q.log.Error("the quarantine cannot be read", "error", err)
		return 0
	}
	for _, kept := range newest {
		if kept.Reason == r.Reason && bytes.Equal(kept.Delivery.Body, r.Delivery.Body) {
			return kept.ID
		}
	}
	return 0
}

// close writes what waits, until ctx ends.
func (q *quarantine) close(ctx context.Context) error {
	q.mu.Lock()
	q.closed = true
	q.changed.Signal()
	q.mu.Unlock()
	defer q.cancel()
	select {
	case <-q.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
