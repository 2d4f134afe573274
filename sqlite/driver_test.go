package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"testing"

	modernc "modernc.org/sqlite"
)

// tap stands between the store and the driver: it lists the statements that run
// and can make one fail, before or after it has done its work.
type tap struct {
	driver.Connector

	mu         sync.Mutex
	statements []string // guarded by mu, as all below
	ran        int
	failAt     int // the statement to fail, counted from 1 since arm; 0 is none
	after      bool
	struck     string // the statement that was made to fail
}

var errTapped = errors.New("the test's fault")

// open opens the file through the tap, as an application would with a wrapper.
func (p *tap) open(t testing.TB, path string) *sql.DB {
	t.Helper()
	connector, err := modernc.NewConnector("file:" + path + "?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	p.Connector = connector
	db := sql.OpenDB(p)
	t.Cleanup(func() { db.Close() })
	return db
}

// arm makes the n-th statement from now on fail.
func (p *tap) arm(n int, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ran, p.failAt, p.after, p.struck, p.statements = 0, n, after, "", nil
}

// struckAt returns the statement that was made to fail, "" if none was.
func (p *tap) struckAt() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.struck
}

func (p *tap) run(query string, do func() error) error {
	p.mu.Lock()
	p.ran++
	p.statements = append(p.statements, query)
	strikes := p.ran == p.failAt
	if strikes {
		p.struck = query
	}
	after := p.after
	p.mu.Unlock()
	if strikes && !after {
		return errTapped
	}
	err := do()
	if err == nil && strikes {
		return errTapped
	}
	return err
}

func (p *tap) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &tappedConn{c, p}, nil
}

type tappedConn struct {
	driver.Conn
	tap *tap
}

func (c *tappedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &tappedStmt{s, c.tap, query}, nil
}

func (c *tappedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.tap.run(query, func() error {
		r, err = c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
		return err
	})
	return r, err
}

func (c *tappedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Rows, err error) {
	err = c.tap.run(query, func() error {
		r, err = c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
		return c.tap.closeIfStruck(r, err)
	})
	return r, err
}

type tappedStmt struct {
	driver.Stmt
	tap   *tap
	query string
}

func (s *tappedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (r driver.Result, err error) {
	err = s.tap.run(s.query, func() error {
		r, err = s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
		return err
	})
	return r, err
}

func (s *tappedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (r driver.Rows, err error) {
	err = s.tap.run(s.query, func() error {
		r, err = s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
		return s.tap.closeIfStruck(r, err)
	})
	return r, err
}

// closeIfStruck closes the rows of a statement that is about to be reported failed:
// whoever is told of a failure closes nothing.
func (p *tap) closeIfStruck(r driver.Rows, err error) error {
	p.mu.Lock()
	struck := p.struck != "" && p.ran == p.failAt && p.after
	p.mu.Unlock()
	if err != nil || !struck {
		return err
	}
	return r.Close()
}
