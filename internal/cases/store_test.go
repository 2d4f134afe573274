package cases

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/onceward/onceward"
)

// watched is a store whose work is watched, and which fails when it is told to. One
// play has one, also where several plays share the database behind it.
type watched struct {
	onceward.Store

	mu      sync.Mutex // over all below
	down    bool
	failing int   // commits to fail, as if nothing of them had come through
	wrote   int64 // grows with all that may make work
	claimed int   // jobs claimed and not settled
	idle    int64 // wrote when a claim last found nothing and nobody worked, plus one
	crash   string
	die     func()
	asking  int       // requests that are not answered yet
	quiet   sync.Cond // over mu: asking has become 0
}

func watch(s onceward.Store) *watched {
	w := &watched{Store: s}
	w.quiet.L = &w.mu
	return w
}

// answers counts the requests that h has under way. Where the process is going to
// die, each answer is on its way before it is counted as given.
func (w *watched) answers(h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asking++
		dying := w.crash != ""
		w.mu.Unlock()
		defer func() {
			if dying {
				if err := http.NewResponseController(rw).Flush(); err != nil {
					panic(err) // it would not be known what the sender has
				}
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.asking--; w.asking == 0 {
				w.quiet.Broadcast()
			}
		}()
		h.ServeHTTP(rw, r)
	})
}

// disturb says that there may be work again.
func (w *watched) disturb() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrote++
}

func (w *watched) set(change func(*watched)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
	w.wrote++
}

func (w *watched) fails(commit bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.down:
	case commit && w.failing > 0:
		w.failing--
	default:
		return nil
	}
	return fmt.Errorf("%w: the case wants it so", onceward.ErrUnavailable)
}

// at dies here if this is the point where the case wants it. Points of the work come
// after the answer.
func (w *watched) at(point string) {
	w.mu.Lock()
	armed := w.crash == point
	for armed && w.asking > 0 && !strings.HasSuffix(point, "_commit") {
		w.quiet.Wait()
	}
	w.mu.Unlock()
	if armed {
		w.die()
	}
}

// Commit implements onceward.Inbox.
func (w *watched) Commit(ctx context.Context, b *onceward.Batch) error {
	if err := w.fails(true); err != nil {
		return err
	}
	w.at("before_commit")
	err := w.Store.Commit(ctx, b)
	if err == nil {
		w.at("after_commit")
	}
	w.disturb()
	return err
}

// Ping implements onceward.Inbox.
func (w *watched) Ping(ctx context.Context) error {
	if err := w.fails(false); err != nil {
		return err
	}
	return w.Store.Ping(ctx)
}

// Claim implements onceward.Work.
func (w *watched) Claim(ctx context.Context, handlers []string, limit int, now time.Time, lease time.Duration) ([]onceward.Job, error) {
	if err := w.fails(false); err != nil {
		return nil, err
	}
	w.mu.Lock()
	wrote, dying := w.wrote, strings.HasSuffix(w.crash, "_commit")
	w.mu.Unlock()
	var jobs []onceward.Job
	var err error
	if !dying { // a process that dies in a commit has no time to see what it brought
		jobs, err = w.Store.Claim(ctx, handlers, limit, now, lease)
	}
	if len(jobs) > 0 {
		w.at("after_claim")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claimed += len(jobs)
	if err == nil && len(jobs) == 0 && w.claimed == 0 {
		w.idle = wrote + 1
	}
	return jobs, err
}

// Settle implements onceward.Work.
func (w *watched) Settle(ctx context.Context, settlements []onceward.Settlement, now time.Time) error {
	if err := w.fails(false); err != nil {
		return err
	}
	w.at("before_settle")
	err := w.Store.Settle(ctx, settlements, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil || errors.Is(err, onceward.ErrStaleToken) { // else they are settled again
		w.claimed -= len(settlements)
	}
	w.wrote++ // a job that failed may be due again, and the next of its lane is
	return err
}

// resting reports whether all work that was due is done.
func (w *watched) resting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.down || w.claimed == 0 && w.idle == w.wrote+1
}
