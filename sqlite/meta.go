package sqlite

import (
	"context"
	"time"

	"github.com/onceward/onceward"
)

// Register implements [onceward.Inbox].
func (s *Store) Register(ctx context.Context, source, hash string, doc []byte, now time.Time) (revision, newest int64, err error) {
	err = s.use(ctx, func(c *session) error {
		err := c.patiently(ctx, func() (err error) {
			revision, newest, err = c.revisions(source, hash)
			return err
		})
		if err != nil || revision != 0 {
			return err
		}
		return c.transact(ctx, func() error {
			if revision, newest, err = c.revisions(source, hash); err != nil || revision != 0 {
				return err
			}
			newest++
			revision = newest
			_, err := c.exec(`insert into onceward_mappings (source, revision, hash, doc, at) values (?, ?, ?, ?, ?)`, source, revision, hash, notNil(doc), micros(now))
			return err
		})
	})
	if err != nil {
		return 0, 0, translate("register a mapping", err)
	}
	return revision, newest, nil
}

// revisions returns the number of a mapping, 0 if it is not known, and the
// greatest one.
func (c *session) revisions(source, hash string) (revision, newest int64, err error) {
	err = c.query(func(row []value) { revision, newest = row[0].(int64), row[1].(int64) },
		`select coalesce(max(iif(hash = ?, revision, 0)), 0), coalesce(max(revision), 0) from onceward_mappings where source = ?`, hash, source)
	return revision, newest, err
}

const nodes = 1024

// Node implements [onceward.Inbox]: numbers go round, so that the one drawn was
// drawn last by the program started longest ago.
func (s *Store) Node(ctx context.Context) (int, error) {
	var number int64
	err := s.use(ctx, func(c *session) error {
		return c.transact(ctx, func() error {
			return c.query(func(row []value) { number = row[0].(int64) },
				`update onceward_meta set value = (value + 1) % ? where name = 'node' returning value`, int64(nodes))
		})
	})
	return int(number), translate("draw a node number", err)
}

// Ping implements [onceward.Inbox] by committing a number, which finds a disk
// that is full as well.
func (s *Store) Ping(ctx context.Context) error {
	return translate("ping", s.use(ctx, func(c *session) error {
		return c.transact(ctx, func() error {
			return c.must(`update onceward_meta set value = value + 1 where name = 'ping'`)
		})
	}))
}

// Stats implements [onceward.Reader].
func (s *Store) Stats(ctx context.Context) (onceward.Stats, error) {
	var st onceward.Stats
	var verdicts [onceward.Held + 1]int64
	err := s.read(ctx, func(scan func(...any) error) error {
		return scan(&st.Events, &st.Repeats, &st.Conflicts, &st.Entities,
			&verdicts[onceward.Applied], &verdicts[onceward.Stale], &verdicts[onceward.Same], &verdicts[onceward.Held],
			&st.JobsPending, &st.JobsDead, &st.Quarantined)
	}, `select events, repeats, conflicts, entities, applied, stale, same, held,
		(select count(*) from onceward_jobs where dead = 0), (select count(*) from onceward_jobs where dead = 1),
		(select coalesce(sum(count), 0) from onceward_quarantine_size) from onceward_counts`)
	for v := onceward.Applied; v <= onceward.Held; v++ {
		if verdicts[v] != 0 {
			if st.Facts == nil {
				st.Facts = map[onceward.Verdict]int64{}
			}
			st.Facts[v] = verdicts[v]
		}
	}
	return st, translate("count", err)
}
