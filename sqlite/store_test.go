package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/storetest"
	"github.com/onceward/onceward/sqlite"
)

func TestMain(m *testing.M) {
	storetest.Main(m, storetest.Worker{
		Open: func(location string) (onceward.Store, error) {
			if path, ok := strings.CutPrefix(location, poolLocation); ok {
				return openInPool(path)
			}
			return sqlite.Open(location)
		},
		Contention: contention,
	})
}

func TestStore(t *testing.T) { storetest.Run(t, harness()) }

// TestStoreInPool runs the suite over stores in the application's own pool, with
// another prefix.
func TestStoreInPool(t *testing.T) {
	h := harness()
	h.View = "inbox_entities"
	h.Fresh = func(t testing.TB) storetest.Database {
		path := filepath.Join(t.TempDir(), "app.db")
		return database(t, poolLocation+path, user(t, path), func(t testing.TB) (onceward.Store, error) { return openInPool(path) })
	}
	storetest.Run(t, h)
}

// TestStoreInMemory runs the suite over databases that live in one connection.
func TestStoreInMemory(t *testing.T) {
	h := harness()
	h.Alone = "a database in memory lives in one connection"
	h.Fresh = func(t testing.TB) storetest.Database {
		db, err := sql.Open("sqlite", ":memory:")
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		t.Cleanup(func() { db.Close() })
		return database(t, "", db, func(t testing.TB) (onceward.Store, error) { return sqlite.New(db, sqlite.Config{}) })
	}
	storetest.Run(t, h)
}

// harness is that of stores in files.
func harness() storetest.Harness {
	return storetest.Harness{
		Fresh: func(t testing.TB) storetest.Database {
			path := filepath.Join(t.TempDir(), "app.db")
			return database(t, path, user(t, path), func(t testing.TB) (onceward.Store, error) { return sqlite.Open(path) })
		},
		Precision:  time.Microsecond,
		Contention: contention,
		View:       "onceward_entities",
	}
}

func contention(s onceward.Store) int64 {
	if p, ok := s.(pooled); ok {
		s = p.Store
	}
	return s.(*sqlite.Store).Waits()
}

func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// poolLocation begins the location of a store that is made by New.
const poolLocation = "pool:"

// pooled is a store over a pool that is closed with it.
type pooled struct {
	onceward.Store
	db *sql.DB
}

func (p pooled) Close() error {
	err := p.Store.Close()
	p.db.Close()
	return err
}

func openInPool(path string) (onceward.Store, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, err
	}
	s, err := sqlite.New(db, sqlite.Config{Prefix: "inbox_"})
	if err != nil {
		db.Close()
		return nil, err
	}
	return pooled{s, db}, nil
}

// user is a pool as an application has it.
func user(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func database(t testing.TB, location string, db *sql.DB, open func(t testing.TB) (onceward.Store, error)) storetest.Database {
	return storetest.Database{
		Location: location,
		Open: func(t testing.TB) onceward.Store {
			t.Helper()
			s, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Exec: func(t testing.TB, statement string) {
			t.Helper()
			if _, err := db.Exec(statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		},
		Query: func(t testing.TB, query string) string {
			t.Helper()
			return queryText(t, db, query)
		},
		Check: func(t testing.TB) {
			t.Helper()
			if got := queryText(t, db, "pragma integrity_check"); got != "ok" {
				t.Errorf("integrity check: %s", got)
			}
		},
	}
}

// queryText returns the rows of a query as lines, columns joined by "|".
func queryText(t testing.TB, db *sql.DB, query string) string {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for rows.Next() {
		cells := make([]sql.NullString, len(columns))
		dest := make([]any, len(columns))
		for i := range cells {
			dest[i] = &cells[i]
		}
		if err := rows.Scan(dest...); err != nil {
			t.Fatal(err)
		}
		words := make([]string, len(cells))
		for i, c := range cells {
			words[i] = c.String
		}
		lines = append(lines, strings.Join(words, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
