package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/onceward/onceward"
)

// A row of version 0 holds held facts only: nobody can say yet what it is, and
// nobody is shown it.
const entityColumns = `select source, account, mode, kind, key, status, told, version, revision,
	(select count(*) from {facts} f where f.entity = r.id), data, state, created, updated
	from {rows} r where version > 0`

// Entity implements onceward.Reader.
func (s *Store) Entity(ctx context.Context, ref onceward.Ref) (*onceward.Entity, error) {
	var found *onceward.Entity
	err := s.read(ctx, "read an entity", entityColumns+` and id = $1`, func(rows pgx.Rows) (err error) {
		found, err = scanEntity(rows)
		return err
	}, uuid(ref.ID()))
	if err == nil && found == nil {
		err = fmt.Errorf("postgres: entity %s: %w", ref, onceward.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Entities implements onceward.Reader. Keys may be longer than an index takes, so
// the index has the head of the key, by which everything is ordered first.
func (s *Store) Entities(ctx context.Context, q onceward.EntityQuery) ([]onceward.Entity, error) {
	const name = "source, kind, left(key, 200), key, account, mode"
	where := newWhere()
	for _, c := range []struct{ condition, value string }{
		{"source = ", q.Source}, {"kind = ", q.Kind}, {"status = ", q.Status},
	} {
		if c.value != "" {
			where.and(c.condition, c.value)
		}
	}
	if q.Key != "" {
		key := where.arg(q.Key)
		where.conditions = append(where.conditions, "left(key, 200) = left("+key+"::text, 200) and key = "+key)
	}
	if q.After != (onceward.Ref{}) {
		a := q.After
		key := where.arg(a.Key)
		where.conditions = append(where.conditions, "("+name+") > ("+where.arg(a.Source)+", "+where.arg(a.Kind)+", left("+key+"::text, 200), "+key+
			", "+where.arg(a.Scope.Account)+", "+where.arg(a.Scope.Mode)+")")
	}
	var found []onceward.Entity
	sql := strings.Join(append([]string{entityColumns}, where.conditions...), " and ") + " order by " + name + " limit " + where.arg(limit(q.Limit))
	err := s.read(ctx, "list entities", sql, func(rows pgx.Rows) error {
		e, err := scanEntity(rows)
		if err == nil {
			found = append(found, *e)
		}
		return err
	}, where.args...)
	return found, err
}

func scanEntity(rows pgx.Rows) (*onceward.Entity, error) {
	var e onceward.Entity
	var data []byte
	if err := rows.Scan(&e.Source, &e.Scope.Account, &e.Scope.Mode, &e.Kind, &e.Key, &e.Status, &e.Told, &e.Version, &e.Revision, &e.Facts,
		&data, &e.State, &e.Created, &e.Updated); err != nil {
		return nil, err
	}
	row, err := onceward.DecodeRow(e.Status, e.Told, e.Version, e.Revision, data, e.State)
	if err != nil {
		return nil, fmt.Errorf("row of %s: %w", e.Ref, err)
	}
	e.Data, e.Epoch, e.Tie = data, row.Epoch, row.Tie()
	e.Created, e.Updated = e.Created.UTC(), e.Updated.UTC()
	return &e, nil
}

// Stats implements onceward.Reader. It counts, so it takes longer the more there
// is; the counts are of one moment.
func (s *Store) Stats(ctx context.Context) (onceward.Stats, error) {
	var st onceward.Stats
	verdicts := make([]int64, onceward.Held-onceward.Applied+1)
	err := s.read(ctx, "count", `select
		(select count(*) from {events} where outcome = 1),
		(select count(*) from {repeats}),
		(select count(*) from {events} where outcome = 3),
		(select count(*) from {rows} where version > 0),
		(select count(*) from {jobs} where not dead),
		(select count(*) from {jobs} where dead),
		(select count(*) from {quarantine}), f.*
		from (select count(*) filter (where verdict = 1), count(*) filter (where verdict = 2),
			count(*) filter (where verdict = 3), count(*) filter (where verdict = 4) from {facts}) f`, func(rows pgx.Rows) error {
		return rows.Scan(&st.Events, &st.Repeats, &st.Conflicts, &st.Entities, &st.JobsPending, &st.JobsDead, &st.Quarantined,
			&verdicts[0], &verdicts[1], &verdicts[2], &verdicts[3])
	})
	if err != nil {
		return onceward.Stats{}, err
	}
	st.Facts = map[onceward.Verdict]int64{}
	for i, n := range verdicts {
		if n > 0 {
			st.Facts[onceward.Applied+onceward.Verdict(i)] = n
		}
	}
	return st, nil
}
