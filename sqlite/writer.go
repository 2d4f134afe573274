package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// writer owns the one writing connection and its lock.
type writer struct {
	db     *sql.DB
	ownsDB bool
	// shared says that the user's pool has this one connection only, so that it
	// is borrowed for each operation.
	shared bool
	// lock holds a token while nobody writes; below it is what its holder owns.
	lock    chan struct{}
	conn    *sql.Conn // nil while a shared one is not borrowed
	session session
	// walPath is the write-ahead log, "" for a database in memory. Above walLimit
	// bytes it is cut, and above walWait that is worth a wait.
	walPath           string
	walLimit, walWait int64
	pageSize          int64 // of the file, in bytes
	// checkpoints moves the log into the file, nil where SQLite does it by itself:
	// where the connections are the user's.
	checkpoints *checkpointer

	closed atomic.Bool
}

// acquire waits for the writer's lock.
func (w *writer) acquire(ctx context.Context) error {
	select {
	case w.lock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if w.closed.Load() {
		w.release()
		return errClosed
	}
	return nil
}

func (w *writer) release() { <-w.lock }

// use runs f with the writing connection.
func (s *Store) use(ctx context.Context, f func(c *session) error) (err error) {
	w := s.writer
	if w == nil {
		return errReadOnly
	}
	if err := w.acquire(ctx); err != nil {
		return err
	}
	defer w.release()
	if w.shared {
		if w.conn, err = w.db.Conn(ctx); err != nil {
			return err
		}
		defer func() {
			_ = w.conn.Close() // back to the pool; what was done is done
			w.conn = nil
		}()
	}
	return w.raw(func(c *session) error {
		if w.shared {
			if err := c.assertDurable(w.walPath != ""); err != nil {
				return err
			}
			defer c.forget()
		}
		w.checkpoints.before(c)
		if err := w.cutLog(c); err != nil {
			return err
		}
		err := f(c)
		w.checkpoints.after(c)
		return err
	})
}

// raw runs f on the driver's connection. The errors and panics of f go around
// database/sql, which would drop the connection for some of them.
func (w *writer) raw(f func(c *session) error) error {
	var err error
	var panicked any
	ran := false
	rawErr := w.conn.Raw(func(conn any) error {
		defer func() { panicked = recover() }()
		ran = true
		w.session.conn = conn.(driver.Conn)
		err = f(&w.session)
		return nil
	})
	switch {
	case panicked != nil:
		panic(panicked)
	case !ran:
		return rawErr
	}
	return err
}

// logSize returns the size of the write-ahead log.
func (w *writer) logSize() int64 {
	if w.walPath == "" {
		return 0
	}
	info, err := os.Stat(w.walPath)
	if err != nil { // there is none yet, or the next commit will say what is wrong
		return 0
	}
	return info.Size()
}

// cutLog empties the write-ahead log once it has passed its limit, which happens
// while readers keep SQLite from starting it anew, and where the log grows faster than
// it is moved beside the writer. It waits for readers,
// for a second at most, each time that the log has grown by a quarter of the
// limit; in between it only looks whether they are gone.
func (w *writer) cutLog(c *session) error {
	size := w.logSize()
	if size <= w.walLimit || w.shared { // a pool of one connection has no readers beside it
		w.walWait = w.walLimit
		return nil
	}
	if size > w.walWait {
		w.walWait = size + w.walLimit/4
		// Pragmas that set something act when they are prepared, so each time anew.
		if err := c.script(`pragma busy_timeout = 1000`); err != nil {
			return err
		}
	}
	_, _ = c.exec(`pragma wal_checkpoint(truncate)`) // a log that is too long is no reason to refuse work
	return c.script(`pragma busy_timeout = 0`)
}

// close ends the writing connection after the work in flight, and before it the
// reading ones, so that it is the last, which moves the log into the file. What it
// changed in a connection of the user's goes with that connection.
func (w *writer) close(reads func() error) error {
	w.lock <- struct{}{}
	defer w.release()
	if w.closed.Swap(true) {
		return nil
	}
	w.checkpoints.stop()
	errs := []error{reads()}
	if w.conn != nil {
		errs = append(errs, w.raw(func(c *session) error {
			c.forget()
			return nil
		}))
		if w.ownsDB {
			errs = append(errs, w.conn.Close())
		} else {
			_ = w.conn.Raw(func(any) error { return driver.ErrBadConn }) // takes it out of the user's pool
		}
	}
	if w.ownsDB {
		errs = append(errs, w.db.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sqlite: close: %w", err)
	}
	return nil
}
