package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onceward/onceward"
)

// Register implements onceward.Inbox. Mappings are few and change rarely, so the
// next number is drawn under a lock, and only for a hash that is not there yet.
func (s *Store) Register(ctx context.Context, source, hash string, doc []byte, now time.Time) (revision, newest int64, err error) {
	const find = `select coalesce(max(revision) filter (where hash = $2), 0), coalesce(max(revision), 0) from {mappings} where source = $1`
	scan := func(rows pgx.Rows) error { return rows.Scan(&revision, &newest) }
	if err := s.read(ctx, "register a mapping", find, scan, source, hash); err != nil || revision != 0 {
		return revision, newest, err
	}
	err = s.write(ctx, "register a mapping", func(p *pipeline) {
		p.add(`select pg_advisory_xact_lock($1)`, s.lockKey("mappings"))
		p.add(s.names.sql(`insert into {mappings} (source, revision, hash, doc, created)
			select $1, 1 + coalesce((select max(revision) from {mappings} where source = $1), 0), $2, $3, $4
			where not exists (select from {mappings} where source = $1 and hash = $2)`), source, hash, text(string(doc)), now)
		p.query(s.names.sql(find), func(rows pgx.Rows) error {
			for rows.Next() {
				if err := scan(rows); err != nil {
					return err
				}
			}
			return nil
		}, source, hash)
	})
	if err != nil {
		return 0, 0, err
	}
	return revision, newest, nil
}

// Node implements onceward.Inbox. The numbers go round: after 1,024 draws the
// first comes again.
func (s *Store) Node(ctx context.Context) (int, error) {
	var n int
	err := s.read(ctx, "draw a node number", `select nextval('{nodes}'::regclass)`, func(rows pgx.Rows) error { return rows.Scan(&n) })
	return n, err
}

// Quarantine implements onceward.Inbox.
func (s *Store) Quarantine(ctx context.Context, rejections []onceward.Rejection, limits onceward.QuarantineLimits) error {
	if len(rejections) == 0 {
		return nil
	}
	n := len(rejections)
	source, reason, method, remote := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	at, size := make([]time.Time, n), make([]int64, n)
	target, headers, body := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	for i, r := range rejections {
		d := r.Delivery
		source[i], reason[i], at[i] = text(r.Source), text(r.Reason), d.At
		method[i], target[i], remote[i] = text(d.Method), []byte(d.Target), text(d.Remote)
		headers[i], body[i] = encodeHeader(d.Header), d.Body
		size[i] = int64(len(body[i]) + len(headers[i]) + len(target[i]) + len(reason[i]) + len(method[i]) + len(remote[i])) // all that a sender can make long
	}
	return s.write(ctx, "quarantine", func(p *pipeline) {
		// Two that trimmed at once would each see what the other removes.
		p.add(`select pg_advisory_xact_lock($1)`, s.lockKey("quarantine"))
		p.add(s.names.sql(`insert into {quarantine} (source, reason, at, method, target, remote, headers, body, bytes)
			select * from unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::bytea[], $6::text[], $7::bytea[], $8::bytea[], $9::bigint[])`),
			source, reason, at, method, target, remote, headers, body, size)
		p.add(s.names.sql(`delete from {quarantine} q using (
				select id, row_number() over newer as place, sum(bytes) over newer as bytes from {quarantine}
				where source = any($1::text[]) window newer as (partition by source order by id desc)) o
			where q.id = o.id and (o.place > $2::bigint or o.bytes > $3::bigint)`), distinct(source), int64(limits.Count), limits.Bytes)
	})
}

// Rejections implements onceward.Reader.
func (s *Store) Rejections(ctx context.Context, source string, most int) ([]onceward.Rejection, error) {
	where := newWhere()
	if source != "" {
		where.and("source = ", source)
	}
	var found []onceward.Rejection
	sql := `select id, source, reason, at, method, target, remote, headers, body from {quarantine}` + where.text() + ` order by id desc limit ` + where.arg(limit(most))
	err := s.read(ctx, "list the quarantine", sql, func(rows pgx.Rows) error {
		var r onceward.Rejection
		var target, headers []byte
		d := &r.Delivery
		if err := rows.Scan(&r.ID, &r.Source, &r.Reason, &d.At, &d.Method, &target, &d.Remote, &headers, &d.Body); err != nil {
			return err
		}
		var err error
		if d.Header, err = decodeHeader(headers); err != nil {
			return fmt.Errorf("rejection %d: %w", r.ID, err)
		}
		d.At, d.Target = d.At.UTC(), string(target)
		found = append(found, r)
		return nil
	}, where.args...)
	return found, err
}
