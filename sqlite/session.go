package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/onceward/onceward"
)

// value is what a column holds: int64, string, []byte or nil.
type value = driver.Value

// session is the writing connection in the hands of whoever has the writer's
// lock. It speaks to the driver itself: database/sql costs a tenth to a quarter
// more CPU an event. Its statements run without a context, which spares a
// goroutine each; they are all short.
type session struct {
	conn   driver.Conn
	prefix string
	// stmts are the prepared statements by their text, kept while the connection
	// is the store's own.
	stmts map[string]driver.Stmt
	args  []driver.NamedValue // reused
	row   []value             // reused
	// busy is how long to wait in all for another process.
	busy time.Duration
	// waits counts how often a lock had to be waited for; the Store's.
	waits *atomic.Int64
}

// exec runs one statement, written with the default prefix and plain ?
// parameters, and returns how many rows it changed.
func (c *session) exec(query string, args ...value) (int64, error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	result, err := s.(driver.StmtExecContext).ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// must runs a statement that has to change exactly one row, else it is errGuard.
func (c *session) must(query string, args ...value) error {
	n, err := c.exec(query, args...)
	if err == nil && n != 1 {
		return errGuard
	}
	return err
}

// query runs one statement and hands each row to each. The slice is reused; what
// is in it is not.
func (c *session) query(each func(row []value), query string, args ...value) (err error) {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), c.bind(args))
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := rows.Close(); err == nil {
			err = closeErr
		}
	}()
	for {
		n := len(rows.Columns())
		if cap(c.row) < n {
			c.row = make([]value, n)
		}
		switch err := rows.Next(c.row[:n]); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		each(c.row[:n])
	}
}

// script runs any number of statements without parameters; it replaces nothing.
func (c *session) script(text string) error {
	_, err := c.conn.(driver.ExecerContext).ExecContext(context.Background(), text, nil)
	return err
}

func (c *session) prepare(query string) (driver.Stmt, error) {
	if s := c.stmts[query]; s != nil {
		return s, nil
	}
	s, err := c.conn.(driver.ConnPrepareContext).PrepareContext(context.Background(), withPrefix(c.prefix, query))
	if err != nil {
		return nil, err
	}
	c.stmts[query] = s
	return s, nil
}

// forget closes the prepared statements. What closing one says is what it last
// failed with, which was told then.
func (c *session) forget() {
	for _, s := range c.stmts {
		_ = s.Close()
	}
	clear(c.stmts)
}

func (c *session) bind(args []value) []driver.NamedValue {
	c.args = c.args[:0]
	for i, v := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return c.args
}

// transact runs f in one transaction that nobody else can write beside. If f
// fails or panics, or ctx has ended by then, all of it is rolled back. A commit
// whose outcome cannot be told is ErrUnknownOutcome.
func (c *session) transact(ctx context.Context, f func() error) error {
	open := true // even if begin fails: what an earlier rollback left is ended, and the application's is not reached; see use
	defer func() {
		if open {
			_ = c.rollback() // its error says only that there is nothing to roll back
		}
	}()
	if err := c.begin(ctx); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := c.exec(`commit`)
	open = false
	if err == nil {
		return nil
	}
	if c.rollback() == nil { // it was still open, so nothing of it is kept
		return err
	}
	return fmt.Errorf("%w: %w", onceward.ErrUnknownOutcome, err)
}

func (c *session) rollback() error {
	_, err := c.exec(`rollback`)
	return err
}

// begin takes the database's write lock. SQLite's own busy handler sleeps up to
// 100 ms at a time, which starves whoever waits; this one asks more often.
func (c *session) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.patiently(ctx, func() error {
		_, err := c.exec(`begin immediate`)
		return err
	})
}

const (
	firstBusyWait   = time.Millisecond
	longestBusyWait = 10 * time.Millisecond
)

// patiently runs f until it is not refused by another process's lock, for as
// long as the configuration says.
func (c *session) patiently(ctx context.Context, f func() error) error {
	wait, waited := firstBusyWait, time.Duration(0)
	for {
		err := f()
		if code(err) != lib.SQLITE_BUSY || waited >= c.busy {
			return err
		}
		c.waits.Add(1)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("wait for another process: %w", ctx.Err())
		case <-timer.C:
		}
		waited += wait
		wait = min(wait*3/2, longestBusyWait)
	}
}
