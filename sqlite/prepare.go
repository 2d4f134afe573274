package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	lib "modernc.org/sqlite/lib"
)

func newSession(s *Store) session {
	return session{prefix: s.cfg.Prefix, stmts: map[string]driver.Stmt{}, busy: s.cfg.BusyTimeout, waits: &s.waits}
}

// prepare sets the writing connection up and asserts what durability rests on.
func (s *Store) prepare(ctx context.Context) error {
	w := s.writer
	if !w.shared {
		conn, err := w.db.Conn(ctx)
		if err != nil {
			return err
		}
		w.conn = conn
	}
	return s.use(ctx, func(c *session) error {
		defer c.forget() // a prepared pragma does not look again
		if err := c.speaks(); err != nil {
			return err
		}
		file, err := c.file()
		if err != nil {
			return err
		}
		if file == "" {
			if s.reads != nil {
				return errors.New("a database in memory lives in one connection: call db.SetMaxOpenConns(1) first")
			}
			return c.assertDurable(false)
		}
		w.walPath = file + "-wal"
		if err := c.query(func(row []value) { w.pageSize, _ = row[0].(int64) }, `pragma page_size`); err != nil {
			return err
		}
		if err := c.patiently(ctx, c.switchToWAL); err != nil {
			return fmt.Errorf("switch to WAL: %w", err)
		}
		if !w.shared {
			if err := c.tune(s.cfg.CacheBytes, w.ownsDB); err != nil {
				return err
			}
		}
		return c.assertDurable(true)
	})
}

// speaks reports whether a connection that an application has wrapped still has
// what the session calls.
func (c *session) speaks() error {
	_, prepares := c.conn.(driver.ConnPrepareContext)
	_, runs := c.conn.(driver.ExecerContext)
	if !prepares || !runs {
		return fmt.Errorf("the connection is a %T that lacks PrepareContext or ExecContext; forward them to the driver's", c.conn)
	}
	s, err := c.prepare(`select 1`)
	if err != nil {
		return err
	}
	_, executes := s.(driver.StmtExecContext)
	_, queries := s.(driver.StmtQueryContext)
	if !executes || !queries {
		return fmt.Errorf("the statement is a %T that lacks ExecContext or QueryContext; forward them to the driver's", s)
	}
	return nil
}

// file returns the path of the main database, "" if it lives in memory.
func (c *session) file() (string, error) {
	file := ""
	err := c.query(func(row []value) {
		if row[1] == "main" {
			file, _ = row[2].(string)
		}
	}, `pragma database_list`)
	return file, err
}

func (c *session) switchToWAL() error {
	mode := ""
	if err := c.query(func(row []value) { mode, _ = row[0].(string) }, `pragma journal_mode = wal`); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the journal mode stays %q; the file must lie on a local disk", mode)
	}
	return nil
}

// tune is for a connection of the store's own. Waiting for other processes is
// done by begin, not by SQLite.
func (c *session) tune(cacheBytes int64, checkpointed bool) error {
	every := 1000
	if checkpointed {
		every = 0 // by the checkpointer
	}
	return c.script(fmt.Sprintf("pragma cache_size = -%d; pragma wal_autocheckpoint = %d; pragma busy_timeout = 0", max(1, cacheBytes>>10), every))
}

// assertDurable wants every commit to be synced, and in a file the log to be
// the journal. On a connection that is in a transaction it is errInTransaction.
func (c *session) assertDurable(inFile bool) error {
	if err := c.script(`pragma synchronous = full`); err != nil {
		if code(err) == lib.SQLITE_ERROR { // all that can be wrong with this statement
			err = fmt.Errorf("%w: %w", errInTransaction, err)
		}
		return err
	}
	level, mode := int64(0), ""
	if err := c.query(func(row []value) { level, _ = row[0].(int64) }, `pragma synchronous`); err != nil {
		return err
	}
	if err := c.query(func(row []value) { mode, _ = row[0].(string) }, `pragma journal_mode`); err != nil {
		return err
	}
	if level != 2 || inFile && mode != "wal" {
		return fmt.Errorf("synchronous is %d and the journal mode %q; they have to be 2 (full) and wal, or an acknowledged event could be lost", level, mode)
	}
	return nil
}
