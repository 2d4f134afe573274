package sqlite

import (
	"fmt"
	"strings"
	"time"

	"github.com/onceward/onceward"
)

// write does what a plan says.
func (c *session) write(b *onceward.Batch, w *onceward.Writes) error {
	n := counts{}
	for i := range w.Events {
		if err := c.writeEvent(&w.Events[i], &n); err != nil {
			return err
		}
	}
	for _, up := range w.TakenUp {
		taken, err := c.exec(`delete from onceward_facts where event = ? and verdict = 4 and revision < ?`, up.EventID, up.Below)
		if err != nil {
			return err
		}
		n.verdicts[onceward.Held] -= taken
	}
	now := micros(b.Now)
	for i := range w.Rows {
		if err := c.writeRow(&w.Rows[i], now, &n); err != nil {
			return err
		}
	}
	for i := range w.Facts {
		if err := c.writeFact(&w.Facts[i], &n); err != nil {
			return err
		}
	}
	for i := range w.Jobs {
		if err := c.writeJob(&w.Jobs[i], now); err != nil {
			return err
		}
	}
	for i := range w.Repeats {
		r := &w.Repeats[i]
		kept, err := c.exec(`insert into onceward_repeats (claim, event, at, remote, digest) select ?1, ?2, ?3, ?4, ?5
			where not exists (select 1 from onceward_repeats where event = ?2 limit 1 offset ?6)`,
			r.Claim[:], r.EventID, micros(r.At), r.Remote, r.Digest[:], int64(onceward.MaxRepeats-1))
		if err != nil {
			return err
		}
		n.repeats += kept
	}
	return c.writeCounts(&n)
}

// micros is how times are kept: rounded down, so that a time read back is never
// later than it was.
func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }

// flags of an event.
const (
	flagUnsigned  = 1
	flagDigestKey = 2
)

func (c *session) writeEvent(e *onceward.EventWrite, n *counts) error {
	switch e.Outcome {
	case onceward.New:
		n.events++
	case onceward.Conflict:
		n.conflicts++
	}
	flags := int64(0)
	if e.Unsigned {
		flags |= flagUnsigned
	}
	if e.DigestKey {
		flags |= flagDigestKey
	}
	d := e.Delivery
	var headers, body value
	if e.BodyOf == 0 {
		headers, body = encodeHeader(d.Header), notNil(d.Body)
	}
	_, err := c.exec(`insert into onceward_events (id, at, source, account, mode, origin, key, type, time, item, digest, flags, outcome, "of", revision,
		body_of, method, target, remote, headers, body) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.ID, micros(d.At), e.Source, e.Scope.Account, e.Scope.Mode, int64(e.Origin), e.Key, e.Type, optional(e.Time), int64(e.Item), e.Digest[:],
		flags, int64(e.Outcome), e.Of, e.Revision, e.BodyOf, d.Method, d.Target, d.Remote, headers, body)
	return err
}

func optional(o onceward.Opt) value {
	if !o.Set {
		return nil
	}
	return o.N
}

// notNil makes no bytes an empty blob, where the driver would make it null.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// writeRow writes a row under the guard: only if it still has the version and
// the number of facts that the decision was made on.
func (c *session) writeRow(w *onceward.RowWrite, now int64, n *counts) error {
	r := w.Row
	if w.WasVersion == 0 && r.Version > 0 {
		n.entities++
	}
	tie, data, state := strings.Join(w.Tie, ","), string(w.Data), r.EncodeState()
	if w.WasFacts == 0 {
		return c.must(`insert into onceward_rows (id, source, account, mode, kind, key, status, told, version, revision, epoch, tie, facts, data, state, created, updated)
			values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (id) do nothing`,
			w.ID[:], w.Ref.Source, w.Ref.Scope.Account, w.Ref.Scope.Mode, w.Ref.Kind, w.Ref.Key,
			r.Status, r.Told, r.Version, r.Revision, optional(r.Epoch), tie, w.Facts, data, state, now, now)
	}
	return c.must(`update onceward_rows set status = ?, told = ?, version = ?, revision = ?, epoch = ?, tie = ?, facts = ?, data = ?, state = ?,
		created = iif(version = 0, ?, created), updated = iif(version = ?, updated, max(updated, ?))
		where id = ? and version = ? and facts = ?`,
		r.Status, r.Told, r.Version, r.Revision, optional(r.Epoch), tie, w.Facts, data, state,
		now, r.Version, now, w.ID[:], w.WasVersion, w.WasFacts)
}

func (c *session) writeFact(w *onceward.FactWrite, n *counts) error {
	n.verdicts[w.Verdict]++
	f := w.Fact
	_, err := c.exec(`insert into onceward_facts (entity, seq, event, rule, kind, key, status, verdict, version, revision, "from", "to", ord, against, decided, patch)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		w.Entity[:], w.Seq, w.EventID, f.Rule, f.Kind, f.Key, f.Status, int64(w.Verdict), w.Version, w.Revision,
		w.From, w.To, []byte(w.Order), []byte(w.Against), w.Decided, encodePatch(f))
	return err
}

func (c *session) writeJob(j *onceward.Job, now int64) error {
	change, err := j.Change.AppendJSON(nil)
	if err != nil {
		return fmt.Errorf("write a job of handler %s: %w", j.Handler, err)
	}
	_, err = c.exec(`insert into onceward_jobs (handler, lane, version, change, attempts, due, token, dead, error, created) values (?, ?, ?, ?, 0, ?, 0, 0, '', ?)`,
		j.Handler, j.Lane[:], j.Version, string(change), micros(j.Due), now)
	return err
}

// counts is by how much a batch moves the numbers of Stats that would take a
// walk through whole tables.
type counts struct {
	events, repeats, conflicts, entities int64
	verdicts                             [onceward.Held + 1]int64
}

func (c *session) writeCounts(n *counts) error {
	return c.must(`update onceward_counts set events = events + ?, repeats = repeats + ?, conflicts = conflicts + ?, entities = entities + ?,
		applied = applied + ?, stale = stale + ?, same = same + ?, held = held + ? where id = 1`,
		n.events, n.repeats, n.conflicts, n.entities,
		n.verdicts[onceward.Applied], n.verdicts[onceward.Stale], n.verdicts[onceward.Same], n.verdicts[onceward.Held])
}
