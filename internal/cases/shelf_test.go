package cases

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/pgtest"
	"github.com/onceward/onceward/postgres"
	"github.com/onceward/onceward/sqlite"
)

// shelf is where the store of one play is: opened anew by every server of the play.
type shelf struct {
	location string // as the program writes it, "" if no other process can open it
	dir      string // for files of the play
	opens    func() (onceward.Store, error)
	store    onceward.Store // the last one opened
}

func (s *shelf) open() (onceward.Store, error) {
	store, err := s.opens()
	s.store = store
	return store, err
}

// storeKind is a kind of database that cases are played on.
type storeKind struct {
	name string
	// shelf makes the shelf of a play. lasting says that the data must outlive the
	// store's being closed.
	shelf func(t *testing.T, lasting bool) *shelf
}

// shared is a store that a play does not close, for others are on it.
type shared struct{ onceward.Store }

// Close implements onceward.Store.
func (shared) Close() error { return nil }

// storeKinds are both databases. Plays share the PostgreSQL one: each has sources
// and handlers of its own.
func storeKinds(t *testing.T) []storeKind {
	t.Helper()
	dsn := pgtest.Start(t)
	common, err := postgres.Open(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := common.Close(); err != nil {
			t.Error(err)
		}
	})
	return []storeKind{
		{"sqlite", fileShelf},
		{"postgres", func(t *testing.T, lasting bool) *shelf {
			s := &shelf{location: dsn, dir: t.TempDir()}
			s.opens = func() (onceward.Store, error) { return shared{common}, nil }
			if lasting {
				s.opens = func() (onceward.Store, error) { return postgres.Open(context.Background(), dsn) }
			}
			return s
		}},
	}
}

// fileShelf is a shelf of SQLite's: a file if it has to last, else in memory.
func fileShelf(t *testing.T, lasting bool) *shelf {
	t.Helper()
	s := &shelf{dir: t.TempDir()}
	path := ":memory:"
	if lasting {
		path = filepath.Join(s.dir, "case.db")
		s.location = "sqlite:" + path
	}
	s.opens = func() (onceward.Store, error) { return sqlite.Open(path) }
	return s
}

// lasts reports whether a case ends its server and starts another.
func (c *fieldCase) lasts() bool {
	return slices.ContainsFunc(c.Steps, func(s step) bool {
		return slices.Contains([]string{"restart_all", "kill_9", "arm_crash", "retire_secret"}, s.Op)
	})
}
