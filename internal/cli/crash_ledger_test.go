package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	randv2 "math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/onceward/onceward"
)

// crashLedger is what the senders know: what they have sent, and what was
// acknowledged. It is the outsider's truth; it shares no code with the engine.
type crashLedger struct {
	mu   sync.Mutex // over all below
	sent map[string]*crashEvent
}

type crashEvent struct {
	id, order, status string
	at, amount        int64
	body              []byte
	acked             bool
}

// crashHot is how many orders everybody tells events of, for ever.
const crashHot = 3

// invent makes the i-th event of a sender with a number. Most are about one of its
// own few orders, so that batches meet on rows. No two are of the same second.
func (l *crashLedger) invent(number, i int, rng *randv2.Rand) *crashEvent {
	order := fmt.Sprintf("o-%d-%d", number, rng.IntN(6))
	if rng.IntN(8) == 0 {
		order = fmt.Sprintf("hot-%d", rng.IntN(crashHot))
	}
	e := &crashEvent{
		id: fmt.Sprintf("e-%d-%d", number, i), order: order, at: int64(1767225600 + i<<16 + number),
		status: []string{"created", "paid", "shipped", "returned"}[rng.IntN(4)], amount: rng.Int64N(1e6),
	}
	e.body = crashBody(e)
	l.note(e)
	return e
}

func (l *crashLedger) note(e *crashEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[e.id] = e
}

func (l *crashLedger) ack(e *crashEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.acked = true
}

func (l *crashLedger) isAcked(e *crashEvent) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return e.acked
}

// unacked lists what was never acknowledged, in an order that does not change.
func (l *crashLedger) unacked() []*crashEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	var left []*crashEvent
	for _, e := range l.sent {
		if !e.acked {
			left = append(left, e)
		}
	}
	slices.SortFunc(left, func(a, b *crashEvent) int { return strings.Compare(a.id, b.id) })
	return left
}

// judge says where the store and the ledger disagree in the end: each event that was
// sent is there once with its bytes, nothing else is, and every row is what the
// newest of its events says.
func (l *crashLedger) judge(ctx context.Context, store onceward.Reader) ([]string, error) {
	j := newJudgement(l, nil, nil)
	if err := j.events(ctx, store); err != nil {
		return nil, err
	}
	for id, e := range l.sent {
		if j.stored[id] != 1 {
			j.fault("%s (acknowledged %t) is stored %d times", id, e.acked, j.stored[id])
		}
	}
	if err := j.allRows(ctx, store); err != nil {
		return nil, err
	}
	return j.faults, nil
}

// judgement is what was found while a store is held against a ledger. It may look
// several times, and looks then at what is new.
type judgement struct {
	ledger *crashLedger
	kind   *onceward.Kind // of the rows, if they are to be folded anew
	work   *crashWork     // what was done, if anything is

	stored map[string]int         // how often each event is there
	newest map[string]*crashEvent // of each order, among those that are there
	parts  map[string]int64       // how many events of each order are there
	wanted map[crashJob]bool      // the work that follows from what is there

	known      map[int64]bool  // ids of events that were looked at
	mark, next int64           // look again at what is above mark; at the next time, above next
	changed    map[string]bool // orders with events since the last look
	untold     int             // events that are there and were not acknowledged when they were met
	faults     []string
}

// crashReader is what a look is at.
type crashReader interface {
	onceward.Reader
	Jobs(ctx context.Context, limit int) ([]onceward.Job, error)
}

func newJudgement(l *crashLedger, kind *onceward.Kind, work *crashWork) *judgement {
	return &judgement{
		ledger: l, kind: kind, work: work, stored: map[string]int{}, newest: map[string]*crashEvent{}, parts: map[string]int64{},
		wanted: map[crashJob]bool{}, known: map[int64]bool{}, changed: map[string]bool{},
	}
}

func (j *judgement) fault(format string, args ...any) {
	j.faults = append(j.faults, fmt.Sprintf(format, args...))
}

// look holds what is new against the ledger: what was acknowledged is there, what is
// there was sent, and rows, histories and work are what follows from it. It looks for
// events among those that came after the last look but one, in case some came late.
func (j *judgement) look(ctx context.Context, store crashReader) error {
	if err := j.events(ctx, store); err != nil {
		return err
	}
	for id, e := range j.ledger.sent {
		if n := j.stored[id]; n > 1 || n == 0 && e.acked {
			j.fault("%s (acknowledged %t) is stored %d times", id, e.acked, n)
		}
	}
	for _, order := range slices.Sorted(maps.Keys(j.changed)) {
		row, err := store.Entity(ctx, onceward.Ref{Source: "acme", Kind: "order", Key: order})
		if err != nil {
			return fmt.Errorf("order %s: %w", order, err)
		}
		if err := j.row(row); err != nil {
			return err
		}
		if err := j.history(ctx, store, row); err != nil {
			return err
		}
	}
	clear(j.changed)
	jobs, err := store.Jobs(ctx, 1<<30)
	if err != nil {
		return err
	}
	j.jobs(jobs)
	return nil
}

// events looks at the events that it has not looked at.
func (j *judgement) events(ctx context.Context, store onceward.Reader) error {
	newest := j.next
	for q := (onceward.EventQuery{Limit: 500}); ; {
		events, err := store.Events(ctx, q)
		if err != nil {
			return err
		}
		for i := range events {
			if q.Before = events[i].ID; j.known[q.Before] || q.Before <= j.mark {
				continue
			}
			newest = max(newest, q.Before)
			whole, err := store.Event(ctx, q.Before)
			if err != nil {
				return err
			}
			j.known[q.Before] = true
			j.event(&events[i], whole.Delivery.Body)
		}
		if len(events) == 0 || q.Before <= j.mark {
			break
		}
	}
	j.mark, j.next = j.next, newest
	return nil
}

// event holds one stored event against what was sent.
func (j *judgement) event(e *onceward.StoredEvent, body []byte) {
	sent := j.ledger.sent[e.Key]
	if sent == nil {
		j.fault("event %s was never sent", e.Key)
		return
	}
	if e.Outcome != onceward.New || e.Facts != 1 || e.Held != 0 {
		j.fault("event %s is %s with %d facts, %d held", e.Key, e.Outcome, e.Facts, e.Held)
	}
	if !bytes.Equal(body, sent.body) {
		j.fault("event %s has other bytes than were sent", e.Key)
	}
	j.wanted[crashJob{"event:order.*", e.ClaimID().String(), 0}] = true
	j.changed[sent.order] = true
	if !sent.acked {
		j.untold++
	}
	j.stored[e.Key]++
	j.parts[sent.order]++
	if newest := j.newest[sent.order]; newest == nil || sent.at > newest.at {
		j.newest[sent.order] = sent
	}
}

// allRows holds every row that is there against the newest of its events.
func (j *judgement) allRows(ctx context.Context, store onceward.Reader) error {
	missing := maps.Clone(j.newest)
	for q := (onceward.EntityQuery{Limit: 500}); ; {
		rows, err := store.Entities(ctx, q)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		for i := range rows {
			q.After = rows[i].Ref
			if err := j.row(&rows[i]); err != nil {
				return err
			}
			delete(missing, rows[i].Key)
		}
	}
	for order := range missing {
		j.fault("order %s has events and no row", order)
	}
	return nil
}

func (j *judgement) row(row *onceward.Entity) error {
	newest, parts := j.newest[row.Key], j.parts[row.Key]
	var data struct{ Amount, Parts int64 }
	if err := json.Unmarshal(row.Data, &data); err != nil {
		return err
	}
	if newest == nil || row.Status != newest.status || data.Amount != newest.amount || data.Parts != parts || row.Facts != parts {
		j.fault("order %s is %s with %s and %d facts; its newest event of %d is %+v", row.Key, row.Status, row.Data, row.Facts, parts, newest)
	}
	return nil
}

// history wants the row to be the fold of its stored facts, these to be what was
// sent, each once, and notes the work that follows from them.
func (j *judgement) history(ctx context.Context, store crashReader, row *onceward.Entity) error {
	stored, err := store.History(ctx, row.Ref)
	if err != nil {
		return err
	}
	facts := make([]onceward.Fact, len(stored))
	told := map[string]bool{}
	version, paid := int64(0), false
	for i, f := range stored {
		facts[i] = f.Fact
		sent := j.ledger.sent[f.EventKey]
		if sent == nil || told[f.EventKey] || sent.order != row.Key || f.Status != sent.status || f.Time != onceward.Some(sent.at*1e9) || f.Seq != int64(i+1) {
			j.fault("order %s: fact %d of %s is not what was sent, or is there twice: %+v", row.Key, f.Seq, f.EventKey, f.Fact)
		}
		told[f.EventKey] = true
		if f.Verdict == onceward.Applied {
			version++
			j.wanted[crashJob{"order", row.ID().String(), version}] = true
		}
		if f.Version != version {
			j.fault("order %s: fact %d left version %d, want %d", row.Key, f.Seq, f.Version, version)
		}
		if f.From != f.To && f.To == "paid" && !paid {
			paid = true
			j.wanted[crashJob{"order.paid", row.ID().String(), version}] = true
		}
	}
	anew := onceward.Fold(j.kind, facts)
	if anew.Status != row.Status || anew.Told != row.Told || row.Version != version || anew.Epoch != row.Epoch ||
		!slices.Equal(anew.Tie(), row.Tie) || !sameJSON(anew.Data(), row.Data) {
		j.fault("order %s is %s %s at version %d, tie %q; its facts fold to %s %s, tie %q, and %d were applied",
			row.Key, row.Status, row.Data, row.Version, row.Tie, anew.Status, anew.Data(), anew.Tie(), version)
	}
	return nil
}

func sameJSON(a, b []byte) bool {
	var v, w any
	return json.Unmarshal(a, &v) == nil && json.Unmarshal(b, &w) == nil && reflect.DeepEqual(v, w)
}

// jobs holds the jobs that wait against the work that follows from what is there:
// each is there or was done, and nothing else is there.
func (j *judgement) jobs(waiting []onceward.Job) {
	if j.work == nil {
		if len(waiting) > 0 {
			j.fault("%d jobs wait, and nobody has a handler", len(waiting))
		}
		return
	}
	left := map[crashJob]bool{}
	for _, w := range waiting {
		job := crashJob{w.Handler, w.Lane.String(), w.Version}
		left[job] = true
		if !j.wanted[job] || w.Dead {
			j.fault("a job of %s is there, dead %t, that follows from nothing", job, w.Dead)
		}
		if j.work.isSettled(job) {
			j.fault("a job of %s is there again after it was settled", job)
		}
	}
	for job := range j.wanted {
		if !left[job] && !j.work.isDone(job) {
			j.fault("the job of %s is neither there nor done", job)
		}
	}
}
