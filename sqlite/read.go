package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
)

// querier is what reads: the pool of readers, or the one connection there is.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// read runs one query, which is one transaction, and calls each for every row.
// Nothing else happens while the transaction is open.
func (s *Store) read(ctx context.Context, each func(scan func(...any) error) error, query string, args ...any) error {
	if s.closed.Load() {
		return errClosed
	}
	if s.reads != nil {
		return s.readFrom(ctx, s.reads, each, query, args)
	}
	w := s.writer
	if w.shared {
		return s.readFrom(ctx, w.db, each, query, args)
	}
	if err := w.acquire(ctx); err != nil {
		return err
	}
	defer w.release()
	return s.readFrom(ctx, w.conn, each, query, args)
}

func (s *Store) readFrom(ctx context.Context, q querier, each func(scan func(...any) error) error, query string, args []any) (err error) {
	rows, err := q.QueryContext(ctx, withPrefix(s.cfg.Prefix, query), args...)
	if err != nil {
		if s.closed.Load() {
			return errClosed
		}
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// chunk is how many rows a filtered list looks at in one transaction.
const chunk = 1000

// pageSize is the number of rows of a list for which the caller named no limit.
const pageSize = 100

func limitOf(limit int) int {
	if limit <= 0 {
		return pageSize
	}
	return limit
}

// list writes numbers as the JSON array that json_each takes: a parameter for
// any number of ids.
func list(ids []int64) string {
	b, _ := json.Marshal(ids) // integers always marshal
	return string(b)
}

func (s *Store) readVersion(ctx context.Context) (int, error) {
	found, version := false, 0
	err := s.read(ctx, func(scan func(...any) error) error { return scan(&found) },
		`select count(*) > 0 from sqlite_schema where type = 'table' and name = ?`, s.cfg.Prefix+"schema")
	if err != nil || !found {
		return 0, err
	}
	err = s.read(ctx, func(scan func(...any) error) error { return scan(&version) }, `select coalesce(max(version), 0) from onceward_schema`)
	return version, err
}
