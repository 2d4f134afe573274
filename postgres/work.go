package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onceward/onceward"
)

const jobColumns = `j.handler, j.lane, j.version, j.change, j.attempts, j.due, j.token, j.dead, j.error`

// Claim implements onceward.Work. A worker passes over what another is claiming
// at the same time. Each handler is looked at by itself, so that the due jobs of
// one that nobody runs are never waded through.
func (s *Store) Claim(ctx context.Context, handlers []string, most int, now time.Time, lease time.Duration) ([]onceward.Job, error) {
	if len(handlers) == 0 || most <= 0 {
		return nil, nil
	}
	type claimed struct {
		job onceward.Job
		due time.Time
	}
	var found []claimed
	var broken []onceward.Settlement
	err := s.write(ctx, "claim jobs", func(p *pipeline) {
		found, broken = nil, nil
		p.query(s.names.sql(`with chosen as materialized (
				select c.* from unnest($1::text[]) as h (handler)
				cross join lateral (select handler, lane, version, due from {jobs}
					where handler = h.handler and due <= $2 and not dead order by due limit $3 for update skip locked) c
				order by c.due, c.handler, c.lane, c.version limit $3)
			update {jobs} j set due = $4, token = j.token + 1, attempts = j.attempts + 1
			from chosen c where j.handler = c.handler and j.lane = c.lane and j.version = c.version
			returning c.due, `+jobColumns), func(rows pgx.Rows) error {
			for rows.Next() {
				var due time.Time
				j, readable, err := scanJob(rows, &due)
				if err != nil {
					return err
				}
				if !readable {
					broken = append(broken, onceward.Settlement{Handler: j.Handler, Lane: j.Lane, Version: j.Version, Token: j.Token, Dead: true, Error: unreadable})
					continue
				}
				found = append(found, claimed{j, due})
			}
			return nil
		}, distinct(handlers), now, int64(most), now.Add(lease))
	})
	if err != nil {
		return nil, err // and found may be half of an answer
	}
	if err := s.Settle(ctx, broken, now); err != nil && len(found) == 0 { // those that were leased are handed out; a broken one is met again
		return nil, err
	}
	slices.SortFunc(found, func(a, b claimed) int {
		return cmp.Or(a.due.Compare(b.due), strings.Compare(a.job.Handler, b.job.Handler), a.job.Lane.Compare(b.job.Lane), cmp.Compare(a.job.Version, b.job.Version))
	})
	jobs := make([]onceward.Job, len(found))
	for i, c := range found {
		jobs[i] = c.job
	}
	return jobs, nil
}

func distinct(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// unreadable is why a job is dead whose change cannot be decoded. Its text is
// not quoted: a change has what the senders told.
const unreadable = "its stored change cannot be read: it was damaged, or written by a newer program"

// scanJob reads what further columns come first, and jobColumns, and reports
// whether the job's change can be decoded.
func scanJob(rows pgx.Rows, first ...any) (j onceward.Job, readable bool, err error) {
	var lane pgtype.UUID
	var change []byte
	to := append(slices.Clip(first), &j.Handler, &lane, &j.Version, &change, &j.Attempts, &j.Due, &j.Token, &j.Dead, &j.LastError)
	if err := rows.Scan(to...); err != nil {
		return j, false, err
	}
	j.Lane, j.Due = onceward.ID(lane.Bytes), j.Due.UTC()
	readable = json.Unmarshal(change, &j.Change) == nil
	if !readable {
		j.Change = onceward.Change{}
	}
	return j, readable, nil
}

// Settle implements onceward.Work. The first statement locks the jobs in order,
// so that two workers with an overlap, which one of them must have lost, cannot
// deadlock.
func (s *Store) Settle(ctx context.Context, settlements []onceward.Settlement, _ time.Time) error {
	if len(settlements) == 0 {
		return nil
	}
	sorted := slices.Clone(settlements)
	slices.SortFunc(sorted, func(a, b onceward.Settlement) int {
		return cmp.Or(strings.Compare(a.Handler, b.Handler), a.Lane.Compare(b.Lane), cmp.Compare(a.Version, b.Version))
	})
	n := len(sorted)
	handler, lane, version, token := make([]string, n), make([]pgtype.UUID, n), make([]int64, n), make([]int64, n)
	done, dead, due, why := make([]bool, n), make([]bool, n), make([]time.Time, n), make([]string, n)
	for i, x := range sorted {
		handler[i], lane[i], version[i], token[i] = text(x.Handler), uuid(x.Lane), x.Version, x.Token
		done[i], dead[i], due[i], why[i] = x.Done, x.Dead, x.Due, shorten(text(x.Error))
	}
	settled := 0
	err := s.write(ctx, "settle jobs", func(p *pipeline) {
		settled = 0
		count := func(rows pgx.Rows) error {
			for rows.Next() {
				settled++
			}
			return nil
		}
		const these = ` from unnest($1::text[], $2::uuid[], $3::bigint[], $4::bigint[]`
		const match = ` j.handler = u.handler and j.lane = u.lane and j.version = u.version and j.token = u.token and not j.dead`
		p.add(s.names.sql(`select 1`+these+`) as u (handler, lane, version, token) join {jobs} j on`+match+`
			order by j.handler, j.lane, j.version for update of j`), handler, lane, version, token)
		p.query(s.names.sql(`delete from {jobs} j using (select *`+these+`, $5::boolean[]) as u (handler, lane, version, token, done) where done) u
			where`+match+` returning 1`), count, handler, lane, version, token, done)
		p.query(s.names.sql(`update {jobs} j set dead = u.dead, due = case when u.dead then j.due else u.due end, error = u.why
			from (select *`+these+`, $5::boolean[], $6::boolean[], $7::timestamptz[], $8::text[])
				as u (handler, lane, version, token, done, dead, due, why) where not done) u
			where`+match+` returning 1`), count, handler, lane, version, token, done, dead, due, why)
	})
	if err != nil {
		return err
	}
	if settled < n {
		return fmt.Errorf("postgres: settle jobs: %d of %d: %w", n-settled, n, onceward.ErrStaleToken)
	}
	return nil
}

// longestError is how many bytes of a job's error are kept.
const longestError = 2000

func shorten(s string) string {
	if len(s) <= longestError {
		return s
	}
	end := longestError
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// Jobs implements onceward.Work: the longest due first, the dead last.
func (s *Store) Jobs(ctx context.Context, most int) ([]onceward.Job, error) {
	var jobs []onceward.Job
	err := s.read(ctx, "list jobs", `select `+jobColumns+` from {jobs} j order by j.dead, j.due, j.handler, j.lane, j.version limit $1`, func(rows pgx.Rows) error {
		j, readable, err := scanJob(rows)
		if !readable {
			j.LastError = unreadable
		}
		jobs = append(jobs, j)
		return err
	}, limit(most))
	return jobs, err
}
