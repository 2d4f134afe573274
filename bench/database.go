package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onceward/onceward/internal/pgtest"
)

// postgresServer is the PostgreSQL that is measured.
type postgresServer struct {
	dsn        string
	version    string
	settings   string // those that decide what a commit costs
	postmaster int    // its first process, 0 if it is not on this machine
	close      func() error
}

// startPostgres starts a throw-away server from the programs that are installed, or
// takes the one that the environment names.
func startPostgres(ctx context.Context, dir string) (*postgresServer, error) {
	s := &postgresServer{dsn: os.Getenv(pgtest.Env), close: func() error { return nil }}
	if s.dsn == "" {
		if err := s.launch(dir); err != nil {
			return nil, err
		}
	}
	if err := s.look(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("look at PostgreSQL: %w", err), s.close())
	}
	return s, nil
}

// launch starts a server as pgtest does for tests, with the memory and the log that
// a server of one's own has.
func (s *postgresServer) launch(dir string) (err error) {
	if dir != "" {
		if err := os.Setenv("TMPDIR", dir); err != nil { // where pgtest makes its folder
			return fmt.Errorf("choose the folder of PostgreSQL: %w", err)
		}
	}
	caller := &caller{}
	defer func() {
		if p := recover(); p != nil {
			stopped, is := p.(*stopped)
			if !is {
				panic(p)
			}
			err = errors.Join(stopped.err, caller.end())
		}
	}()
	s.dsn = pgtest.New(caller, pgtest.Options{Fsync: true, Settings: map[string]string{
		"shared_buffers": "1GB", "max_wal_size": "8GB", "synchronous_commit": "on",
	}}).DSN("postgres")
	s.close = caller.end
	return nil
}

// look finds out what is measured.
func (s *postgresServer) look(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var pid int
	if err := conn.QueryRow(ctx, `select current_setting('server_version'), pg_backend_pid()`).Scan(&s.version, &pid); err != nil {
		return err
	}
	s.version, _, _ = strings.Cut(s.version, " ")
	var settings []string
	for _, name := range []string{"shared_buffers", "max_wal_size", "synchronous_commit", "fsync"} {
		var value string
		if err := conn.QueryRow(ctx, `select current_setting($1)`, name).Scan(&value); err != nil {
			return err
		}
		settings = append(settings, name+"="+value)
	}
	s.settings = strings.Join(settings, " ")
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil || !strings.HasPrefix(string(name), "postgres") {
		return nil // it is on another machine
	}
	s.postmaster, err = parentOf(pid)
	return err
}

// caller is what pgtest takes a test for. It stops by a panic with *stopped.
type caller struct {
	testing.TB // nil: pgtest calls the methods below and no other
	cleanups   []func()
	errs       []error
}

type stopped struct{ err error }

func (c *caller) Helper()          {}
func (c *caller) Cleanup(f func()) { c.cleanups = append(c.cleanups, f) }
func (c *caller) Errorf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}
func (c *caller) Fatalf(format string, args ...any) { panic(&stopped{fmt.Errorf(format, args...)}) }

// end does what a test does when it ends.
func (c *caller) end() error {
	for len(c.cleanups) > 0 {
		last := c.cleanups[len(c.cleanups)-1]
		c.cleanups = c.cleanups[:len(c.cleanups)-1]
		last()
	}
	return errors.Join(c.errs...)
}

// database is a fresh, empty one.
type database struct {
	url  string // as onceward's --store takes it; "" for a variant that stores nothing
	path string // the file, for SQLite
	drop func() error
}

// newDatabase makes a database for one run.
func (b *bench) newDatabase(store string) (*database, error) {
	b.made++
	switch store {
	case inSQLite:
		dir, err := os.MkdirTemp(b.o.dir, "onceward-bench")
		if err != nil {
			return nil, fmt.Errorf("make a folder for the database: %w", err)
		}
		path := filepath.Join(dir, "bench.db")
		return &database{url: "sqlite:" + path, path: path, drop: func() error { return os.RemoveAll(dir) }}, nil
	case inPostgres:
		name := fmt.Sprintf("bench_%d_%d", os.Getpid(), b.made)
		if err := pgtest.Exec(b.postgres.dsn, "create database "+name+" template template0 encoding 'UTF8'"); err != nil {
			return nil, fmt.Errorf("make a database: %w", err)
		}
		return &database{url: pgtest.WithDatabase(b.postgres.dsn, name), drop: func() error {
			return pgtest.Exec(b.postgres.dsn, "drop database "+name+" with (force)")
		}}, nil
	default:
		return &database{drop: func() error { return nil }}, nil
	}
}

// pause waits, but not longer than the context lives.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
