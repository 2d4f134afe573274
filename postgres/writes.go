package postgres

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onceward/onceward"
)

// writing is the second round trip without its commit: all that Plan says, the
// guards first. It is empty if there is nothing to keep.
func (s *Store) writing(b *onceward.Batch, w *onceward.Writes, v *view) (pipeline, error) {
	var p pipeline
	s.guardRows(&p, b, w.Rows)
	if len(w.TakenUp) > 0 {
		events, below := make([]int64, len(w.TakenUp)), make([]int64, len(w.TakenUp))
		held := 0
		for i, up := range w.TakenUp {
			events[i], below[i] = up.EventID, up.Below
			held += v.held[up]
		}
		p.guarded(s.sql.takeUp, events, below, int64(held))
	}
	s.insertEvents(&p, w.Events)
	if err := s.insertFacts(&p, w.Facts); err != nil {
		return nil, err
	}
	if err := s.insertJobs(&p, w.Jobs); err != nil {
		return nil, err
	}
	s.insertRepeats(&p, w.Repeats)
	if len(p) == 0 {
		return nil, nil
	}
	// Rows that were there before hold facts; the others must not stay.
	var unborn []pgtype.UUID
	for _, id := range w.Unborn {
		if v.rows[id].Facts == 0 {
			unborn = append(unborn, uuid(id))
		}
	}
	if len(unborn) > 0 {
		p.add(s.sql.deleteUnborn, unborn)
	}
	return p, nil
}

func (s *Store) guardRows(p *pipeline, b *onceward.Batch, rows []onceward.RowWrite) {
	n := len(rows)
	if n == 0 {
		return
	}
	ids := make([]pgtype.UUID, n)
	wasVersion, wasFacts, version, revision, facts := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	status, told, tie, data := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	state := make([][]byte, n)
	for i, w := range rows {
		r := w.Row
		ids[i], wasVersion[i], wasFacts[i] = uuid(w.ID), w.WasVersion, w.WasFacts
		status[i], told[i] = text(r.Status), text(r.Told)
		version[i], revision[i], facts[i] = r.Version, r.Revision, w.Facts
		tie[i], data[i], state[i] = text(strings.Join(r.Tie(), ",")), validText(string(r.Data())), r.EncodeState()
	}
	p.guarded(s.sql.updateRows, ids, wasVersion, wasFacts, status, told, version, revision, facts, tie, data, state, b.Now, int64(n))
}

func (s *Store) insertEvents(p *pipeline, events []onceward.EventWrite) {
	n := len(events)
	if n == 0 {
		return
	}
	id, bodyOf, of, revision := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	at, sent := make([]time.Time, n), make([]pgtype.Int8, n)
	source, account, mode, key, kind := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	method, remote := make([]string, n), make([]string, n)
	origin, outcome, item := make([]int16, n), make([]int16, n), make([]int32, n)
	digest := make([]pgtype.UUID, n)
	unsigned, digestKey := make([]bool, n), make([]bool, n)
	target, headers, body := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	for i, w := range events {
		e, d := w.Event, w.Event.Delivery
		id[i], bodyOf[i], of[i], revision[i] = e.ID, w.BodyOf, w.Of, w.Revision
		at[i], sent[i] = d.At, pgtype.Int8{Int64: e.Time.N, Valid: e.Time.Set}
		source[i], account[i], mode[i], key[i], kind[i] = text(e.Source), e.Scope.Account, e.Scope.Mode, e.Key, e.Type
		method[i], remote[i], target[i] = text(d.Method), text(d.Remote), []byte(d.Target)
		origin[i], outcome[i], item[i] = int16(e.Origin), int16(w.Outcome), int32(e.Item)
		digest[i], unsigned[i], digestKey[i] = uuid(e.Digest), e.Unsigned, e.DigestKey
		if w.BodyOf == 0 {
			headers[i], body[i] = encodeHeader(d.Header), d.Body
		}
	}
	p.add(s.sql.insertEvents, id, at, source, account, mode, origin, key, kind, sent, item, digest, unsigned, digestKey,
		method, target, remote, headers, body, bodyOf, outcome, of, revision)
}

func (s *Store) insertFacts(p *pipeline, facts []onceward.FactWrite) error {
	n := len(facts)
	if n == 0 {
		return nil
	}
	entity := make([]pgtype.UUID, n)
	seq, event, version, revision := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	place, verdict := make([]int32, n), make([]int16, n)
	from, to, decided, told := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	ordered, against := make([][]byte, n), make([][]byte, n)
	places := map[int64]int32{}
	for i, w := range facts {
		entity[i], seq[i], event[i], version[i], revision[i] = uuid(w.Entity), w.Seq, w.EventID, w.Version, w.Revision
		place[i], verdict[i] = places[w.EventID], int16(w.Verdict)
		places[w.EventID]++
		from[i], to[i], decided[i] = text(w.From), text(w.To), w.Decided
		ordered[i], against[i] = []byte(w.Order), []byte(w.Against)
		fact, err := w.Fact.MarshalJSON()
		if err != nil {
			return fmt.Errorf("write a fact of event %d: %w", w.EventID, err)
		}
		told[i] = validText(string(fact))
	}
	p.add(s.sql.insertFacts, entity, seq, event, place, verdict, version, revision, from, to, ordered, against, decided, told)
	return nil
}

func (s *Store) insertJobs(p *pipeline, jobs []onceward.Job) error {
	n := len(jobs)
	if n == 0 {
		return nil
	}
	handler, change := make([]string, n), make([]string, n)
	lane, version, due := make([]pgtype.UUID, n), make([]int64, n), make([]time.Time, n)
	for i, j := range jobs {
		var c strings.Builder
		enc := json.NewEncoder(&c)
		enc.SetEscapeHTML(false) // fields are shown as the row has them
		if err := enc.Encode(j.Change); err != nil {
			return fmt.Errorf("write a job of handler %s: %w", j.Handler, err)
		}
		handler[i], change[i] = text(j.Handler), validText(c.String())
		lane[i], version[i], due[i] = uuid(j.Lane), j.Version, j.Due
	}
	p.add(s.sql.insertJobs, handler, lane, version, change, due)
	return nil
}

func (s *Store) insertRepeats(p *pipeline, repeats []onceward.RepeatWrite) {
	n := len(repeats)
	if n == 0 {
		return
	}
	event, claim, digest := make([]int64, n), make([]pgtype.UUID, n), make([]pgtype.UUID, n)
	at, remote := make([]time.Time, n), make([]string, n)
	for i, r := range repeats {
		event[i], claim[i], digest[i] = r.EventID, uuid(r.Claim), uuid(r.Digest)
		at[i], remote[i] = r.At, text(r.Remote)
	}
	p.add(s.sql.insertRepeats, event, claim, digest, at, remote, onceward.MaxRepeats-1)
}

// text makes a text fit for a column, which a batch must never fail on.
func text(s string) string { return onceward.CleanText(s) }

// validText is text for JSON, in which NUL can only stand escaped.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
