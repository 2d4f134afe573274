package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/onceward/onceward"
)

// due is a job that could be claimed.
type due struct{ row, at int64 }

// Claim implements [onceward.Work].
func (s *Store) Claim(ctx context.Context, handlers []string, limit int, now time.Time, lease time.Duration) ([]onceward.Job, error) {
	var jobs []onceward.Job
	err := s.use(ctx, func(c *session) error {
		// Most of the time nothing is due: look before taking the database's lock.
		var found []due
		err := c.patiently(ctx, func() (err error) {
			found, err = c.findDue(handlers, limit, now)
			return err
		})
		if err != nil || len(found) == 0 {
			return err
		}
		return c.transact(ctx, func() error {
			found, err := c.findDue(handlers, limit, now)
			if err != nil {
				return err
			}
			jobs = jobs[:0]
			for _, d := range found {
				j, readable, err := c.lease(d.row, now.Add(lease))
				if err == nil && !readable {
					_, err = c.exec(`update onceward_jobs set dead = 1, error = ? where rowid = ?`, unreadable, d.row)
				}
				if err != nil {
					return err
				}
				if readable {
					jobs = append(jobs, j)
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, translate("claim jobs", err)
	}
	return jobs, nil
}

// findDue finds the jobs that have been due longest.
func (c *session) findDue(handlers []string, limit int, now time.Time) ([]due, error) {
	var found []due
	for _, h := range handlers {
		err := c.query(func(row []value) { found = append(found, due{row[0].(int64), row[1].(int64)}) },
			`select rowid, due from onceward_jobs where handler = ? and dead = 0 and due <= ? order by due limit ?`, h, micros(now), int64(limit))
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(found, func(a, b due) int { return cmp.Compare(a.at, b.at) })
	found = slices.CompactFunc(found, func(a, b due) bool { return a.row == b.row }) // a handler named twice
	return found[:min(max(limit, 0), len(found))], nil
}

// unreadable is why a job is dead whose change cannot be decoded. Its text is
// not quoted: a change has what the senders told.
const unreadable = "its stored change cannot be read: it was damaged, or written by a newer program"

// lease moves a job's due time ahead and its token on, and reports whether its
// change can be decoded.
func (c *session) lease(row int64, until time.Time) (j onceward.Job, readable bool, err error) {
	err = c.query(func(row []value) {
		j.Handler, j.Version, j.Attempts, j.Due = row[0].(string), row[2].(int64), int(row[4].(int64)), fromMicros(row[5].(int64))
		copy(j.Lane[:], row[1].([]byte))
		j.Token, j.LastError = row[6].(int64), row[7].(string)
		readable = json.Unmarshal([]byte(row[3].(string)), &j.Change) == nil
	}, `update onceward_jobs set due = ?, token = token + 1, attempts = attempts + 1 where rowid = ?
		returning handler, lane, version, change, attempts, due, token, error`, micros(until), row)
	return j, readable, err
}

// Settle implements [onceward.Work].
func (s *Store) Settle(ctx context.Context, settlements []onceward.Settlement, now time.Time) error {
	stale := 0
	err := s.use(ctx, func(c *session) error {
		return c.transact(ctx, func() error {
			stale = 0
			for i := range settlements {
				n, err := c.settle(&settlements[i])
				if err != nil {
					return err
				}
				if n == 0 {
					stale++
				}
			}
			return nil
		})
	})
	if err == nil && stale > 0 {
		err = fmt.Errorf("%d of %d settlements: %w", stale, len(settlements), onceward.ErrStaleToken)
	}
	return translate("settle jobs", err)
}

func (c *session) settle(s *onceward.Settlement) (int64, error) {
	switch {
	case s.Done:
		return c.exec(`delete from onceward_jobs where handler = ? and lane = ? and version = ? and token = ? and dead = 0`, s.Handler, s.Lane[:], s.Version, s.Token)
	case s.Dead:
		return c.exec(`update onceward_jobs set dead = 1, error = ? where handler = ? and lane = ? and version = ? and token = ? and dead = 0`,
			errorText(s.Error), s.Handler, s.Lane[:], s.Version, s.Token)
	default:
		return c.exec(`update onceward_jobs set due = ?, error = ? where handler = ? and lane = ? and version = ? and token = ? and dead = 0`,
			micros(s.Due), errorText(s.Error), s.Handler, s.Lane[:], s.Version, s.Token)
	}
}

// errorText is what is kept of an error's words.
func errorText(s string) string {
	const most = 2000
	s = onceward.CleanText(s)
	if len(s) <= most {
		return s
	}
	end := most
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.Clone(s[:end])
}

// Jobs implements [onceward.Work], in the order in which they were made.
func (s *Store) Jobs(ctx context.Context, limit int) ([]onceward.Job, error) {
	var jobs []onceward.Job
	err := s.read(ctx, func(scan func(...any) error) error {
		var j onceward.Job
		var lane []byte
		var change string
		var dueAt int64
		if err := scan(&j.Handler, &lane, &j.Version, &change, &j.Attempts, &dueAt, &j.Token, &j.Dead, &j.LastError); err != nil {
			return err
		}
		copy(j.Lane[:], lane)
		j.Due = fromMicros(dueAt)
		if json.Unmarshal([]byte(change), &j.Change) != nil {
			j.Change, j.LastError = onceward.Change{}, unreadable
		}
		jobs = append(jobs, j)
		return nil
	}, `select handler, lane, version, change, attempts, due, token, dead, error from onceward_jobs order by rowid limit ?`, limitOf(limit))
	return jobs, translate("list jobs", err)
}
