package postgres

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onceward/onceward"
)

// writing is the second round trip without its commit: all that Plan says, the
// guards first. It is empty if there is nothing to keep.
func (s *Store) writing(p *pipeline, b *onceward.Batch, w *onceward.Writes, v *view) error {
	s.guardRows(p, b, w.Rows)
	if up := w.TakenUp; len(up) > 0 {
		held := 0
		for _, t := range up {
			held += v.held[t]
		}
		in := p.input(len(up))
		in.bigints(func(i int) int64 { return up[i].EventID })
		in.bigints(func(i int) int64 { return up[i].Below })
		in.bigint(int64(held))
		p.guarded(s.sql.takeUp, in)
	}
	s.insertEvents(p, w.Events)
	s.insertFacts(p, w.Facts)
	if err := s.insertJobs(p, w.Jobs); err != nil {
		return err
	}
	s.insertRepeats(p, w.Repeats)
	if len(p.statements) == 0 {
		return nil
	}
	// Rows that were there before hold facts; the others must not stay.
	var unborn []onceward.ID
	for _, id := range w.Unborn {
		if v.rows[id].Facts == 0 {
			unborn = append(unborn, id)
		}
	}
	if len(unborn) > 0 {
		p.send(s.sql.deleteUnborn, p.ids(unborn))
	}
	return nil
}

func (s *Store) guardRows(p *pipeline, b *onceward.Batch, rows []onceward.RowWrite) {
	if len(rows) == 0 {
		return
	}
	in := p.input(len(rows))
	in.uuids(func(i int) [16]byte { return rows[i].ID })
	in.bigints(func(i int) int64 { return rows[i].WasVersion })
	in.bigints(func(i int) int64 { return rows[i].WasFacts })
	in.texts(func(i int) string { return text(rows[i].Row.Status) })
	in.texts(func(i int) string { return text(rows[i].Row.Told) })
	in.bigints(func(i int) int64 { return rows[i].Row.Version })
	in.bigints(func(i int) int64 { return rows[i].Row.Revision })
	in.bigints(func(i int) int64 { return rows[i].Facts })
	in.texts(func(i int) string { return text(strings.Join(rows[i].Tie, ",")) })
	_ = in.jsons(func(b []byte, i int) ([]byte, error) { return append(b, rows[i].Data...), nil }) // never fails
	in.byteas(func(b []byte, i int) ([]byte, bool) { return append(b, rows[i].Row.EncodeState()...), true })
	in.time(b.Now)
	in.bigint(int64(len(rows)))
	p.guarded(s.sql.updateRows, in)
}

func (s *Store) insertEvents(p *pipeline, events []onceward.EventWrite) {
	if len(events) == 0 {
		return
	}
	in := p.input(len(events))
	in.bigints(func(i int) int64 { return events[i].ID })
	in.times(func(i int) time.Time { return events[i].Delivery.At })
	in.texts(func(i int) string { return text(events[i].Source) })
	in.texts(func(i int) string { return events[i].Scope.Account })
	in.texts(func(i int) string { return events[i].Scope.Mode })
	in.smallints(func(i int) int { return int(events[i].Origin) })
	in.texts(func(i int) string { return events[i].Key })
	in.texts(func(i int) string { return events[i].Type })
	in.optionals(func(i int) (int64, bool) { return events[i].Time.N, events[i].Time.Set })
	in.integers(func(i int) int { return events[i].Item })
	in.uuids(func(i int) [16]byte { return events[i].Digest })
	in.booleans(func(i int) bool { return events[i].Unsigned })
	in.booleans(func(i int) bool { return events[i].DigestKey })
	in.texts(func(i int) string { return text(events[i].Delivery.Method) })
	in.byteas(func(b []byte, i int) ([]byte, bool) { return append(b, events[i].Delivery.Target...), true })
	in.texts(func(i int) string { return text(events[i].Delivery.Remote) })
	in.byteas(func(b []byte, i int) ([]byte, bool) {
		w := &events[i]
		if w.BodyOf != 0 || w.Delivery.Header == nil {
			return b, false
		}
		return appendHeader(b, w.Delivery.Header), true
	})
	in.byteas(func(b []byte, i int) ([]byte, bool) {
		w := &events[i]
		if w.BodyOf != 0 || w.Delivery.Body == nil {
			return b, false
		}
		return append(b, w.Delivery.Body...), true
	})
	in.bigints(func(i int) int64 { return events[i].BodyOf })
	in.smallints(func(i int) int { return int(events[i].Outcome) })
	in.bigints(func(i int) int64 { return events[i].Of })
	in.bigints(func(i int) int64 { return events[i].Revision })
	p.send(s.sql.insertEvents, in)
}

func (s *Store) insertFacts(p *pipeline, facts []onceward.FactWrite) {
	if len(facts) == 0 {
		return
	}
	in := p.input(len(facts))
	in.uuids(func(i int) [16]byte { return facts[i].Entity })
	in.bigints(func(i int) int64 { return facts[i].Seq })
	in.bigints(func(i int) int64 { return facts[i].EventID })
	places := make(map[int64]int, len(facts))
	in.integers(func(i int) int {
		place := places[facts[i].EventID]
		places[facts[i].EventID]++
		return place
	})
	in.smallints(func(i int) int { return int(facts[i].Verdict) })
	in.bigints(func(i int) int64 { return facts[i].Version })
	in.bigints(func(i int) int64 { return facts[i].Revision })
	in.texts(func(i int) string { return text(facts[i].From) })
	in.texts(func(i int) string { return text(facts[i].To) })
	in.byteas(func(b []byte, i int) ([]byte, bool) { return append(b, facts[i].Order...), true })
	in.byteas(func(b []byte, i int) ([]byte, bool) { return append(b, facts[i].Against...), true })
	in.texts(func(i int) string { return facts[i].Decided })
	_ = in.jsons(func(b []byte, i int) ([]byte, error) { return facts[i].Fact.AppendJSON(b), nil }) // never fails
	p.send(s.sql.insertFacts, in)
}

func (s *Store) insertJobs(p *pipeline, jobs []onceward.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	in := p.input(len(jobs))
	in.texts(func(i int) string { return text(jobs[i].Handler) })
	in.uuids(func(i int) [16]byte { return jobs[i].Lane })
	in.bigints(func(i int) int64 { return jobs[i].Version })
	err := in.jsons(func(b []byte, i int) ([]byte, error) {
		b, err := jobs[i].Change.AppendJSON(b)
		if err != nil {
			err = fmt.Errorf("write a job of handler %s: %w", jobs[i].Handler, err)
		}
		return b, err
	})
	in.times(func(i int) time.Time { return jobs[i].Due })
	p.send(s.sql.insertJobs, in)
	return err
}

func (s *Store) insertRepeats(p *pipeline, repeats []onceward.RepeatWrite) {
	if len(repeats) == 0 {
		return
	}
	in := p.input(len(repeats))
	in.bigints(func(i int) int64 { return repeats[i].EventID })
	in.uuids(func(i int) [16]byte { return repeats[i].Claim })
	in.uuids(func(i int) [16]byte { return repeats[i].Digest })
	in.times(func(i int) time.Time { return repeats[i].At })
	in.texts(func(i int) string { return text(repeats[i].Remote) })
	in.bigint(onceward.MaxRepeats - 1)
	p.send(s.sql.insertRepeats, in)
}

// jsons adds JSON texts, each by appending it. NUL can only stand escaped in one;
// what is no text is replaced, and a batch never fails on it.
func (in input) jsons(appendTo func(b []byte, i int) ([]byte, error)) error {
	var failed error
	in.begin(pgtype.TextOID, pgtype.TextArrayOID)
	p := in.params
	for i := range in.rows {
		at := len(p.buf) + 4
		b, err := appendTo(append(p.buf, 0, 0, 0, 0), i)
		if err != nil {
			failed = err
		}
		if !utf8.Valid(b[at:]) {
			b = append(b[:at], bytes.ToValidUTF8(b[at:], []byte("\uFFFD"))...)
		}
		p.buf = b
		binary.BigEndian.PutUint32(b[at-4:], uint32(len(b)-at))
	}
	in.end()
	return failed
}

// text makes a text fit for a column, which a batch must never fail on.
func text(s string) string { return onceward.CleanText(s) }
