package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	modernc "modernc.org/sqlite"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/sqlite"
)

// TestDurability reads back what durability rests on.
func TestDurability(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	opened := open(t, path)
	defer opened.Close()
	made, err := sqlite.New(user(t, path), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	one := user(t, path)
	one.SetMaxOpenConns(1)
	borrowed, err := sqlite.New(one, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer borrowed.Close()
	if _, err := one.Exec("pragma synchronous = off"); err != nil { // the application's own choice, for its own work
		t.Fatal(err)
	}
	for name, s := range map[string]*sqlite.Store{"Open": opened, "New": made, "New over one connection": borrowed} {
		level, err := s.Setting("synchronous")
		mode, modeErr := s.Setting("journal_mode")
		if err != nil || modeErr != nil || level != int64(2) || mode != "wal" {
			t.Errorf("%s: synchronous %v (%v), journal mode %v (%v); want 2 and wal", name, level, err, mode, modeErr)
		}
	}
	if runtime.GOOS == "linux" && !modernc.FdatasyncEnabled() {
		t.Error("commits sync with fsync, want fdatasync")
	}
}

// TestNoWAL refuses a file that cannot have a write-ahead log.
func TestNoWAL(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "app.db")+"?vfs=unix-dotfile")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := sqlite.New(db, sqlite.Config{}); err == nil || !strings.Contains(err.Error(), "local disk") {
		t.Errorf("new: %v, want it to say that the file must lie on a local disk", err)
	}
}

type otherDriver struct{}

func (otherDriver) Open(string) (driver.Conn, error)               { return nil, errors.New("not opened") }
func (d otherDriver) Driver() driver.Driver                        { return d }
func (d otherDriver) Connect(context.Context) (driver.Conn, error) { return d.Open("") }

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	memory, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	other := sql.OpenDB(otherDriver{})
	defer other.Close()
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name        string
		open        func() (*sqlite.Store, error)
		unavailable bool
		says        string
	}{
		{"no path", func() (*sqlite.Store, error) { return sqlite.Open("") }, false, "path of a file"},
		{"a URI", func() (*sqlite.Store, error) { return sqlite.Open("file:app.db?mode=ro") }, false, "hand it to New"},
		{"no folder", func() (*sqlite.Store, error) { return sqlite.Open(filepath.Join(dir, "none", "app.db")) }, true, "its folder exists"},
		{"a folder", func() (*sqlite.Store, error) { return sqlite.Open(dir) }, true, "cannot be opened"},
		{"a text file", func() (*sqlite.Store, error) { return sqlite.Open(filepath.Join(dir, "text")) }, false, "not a database"},
		{"a bad prefix", func() (*sqlite.Store, error) {
			return sqlite.OpenConfig(filepath.Join(dir, "a.db"), sqlite.Config{Prefix: "x; drop"})
		}, false, "prefix"},
		{"SQLite's prefix", func() (*sqlite.Store, error) {
			return sqlite.OpenConfig(filepath.Join(dir, "a.db"), sqlite.Config{Prefix: "sqlite_"})
		}, false, "prefix"},
		{"a negative number", func() (*sqlite.Store, error) {
			return sqlite.OpenConfig(filepath.Join(dir, "a.db"), sqlite.Config{WALLimit: -1})
		}, false, "negative"},
		{"memory for reading", func() (*sqlite.Store, error) { return sqlite.OpenConfig(":memory:", sqlite.Config{ReadOnly: true}) }, false, "read only"},
		{"another driver", func() (*sqlite.Store, error) { return sqlite.New(other, sqlite.Config{}) }, false, "modernc.org/sqlite"},
		{"memory in many connections", func() (*sqlite.Store, error) { return sqlite.New(memory, sqlite.Config{}) }, false, "SetMaxOpenConns(1)"},
		{"New for reading", func() (*sqlite.Store, error) { return sqlite.New(memory, sqlite.Config{ReadOnly: true}) }, false, "OpenConfig"},
	} {
		s, err := tt.open()
		if err == nil || s != nil || errors.Is(err, onceward.ErrUnavailable) != tt.unavailable || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v; want it to say %q, and ErrUnavailable %v", tt.name, err, tt.says, tt.unavailable)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "a.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused configuration made a file: %v", err)
	}
}

// TestPaths opens files whose names mean something in a URI.
func TestPaths(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"plain.db", "a b.db", "what?x=1.db", "50%25.db", "#1.db", "ação&+.db", "./dot.db", "c:d.db"} {
		s := open(t, name)
		if err := errors.Join(commitOne(s, 1), s.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("opened %q, and there is no such file: %v", name, err)
		}
		again := open(t, filepath.Join(dir, name))
		if _, err := again.Event(context.Background(), 1); err != nil {
			t.Errorf("%q by its absolute path: %v", name, err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 8 {
		t.Errorf("%d files, %v; want 8", len(files), err)
	}
}

// TestReadOnly reads beside a writer, and writes nothing.
func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	readOnly := sqlite.Config{ReadOnly: true}
	if _, err := sqlite.OpenConfig(path, readOnly); !errors.Is(err, onceward.ErrUnavailable) {
		t.Errorf("no file: %v, want ErrUnavailable", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading made a file: %v", err)
	}
	empty := user(t, path)
	if _, err := empty.Exec("create table mine (id integer)"); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.OpenConfig(path, readOnly); err == nil || !strings.Contains(err.Error(), "open it once for writing") {
		t.Errorf("no schema: %v, want it to say what to do", err)
	}
	writer := open(t, path)
	defer writer.Close()
	if err := commitOne(writer, 1); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.OpenConfig(path, readOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := commitOne(writer, 2); err != nil {
		t.Fatal(err)
	}
	for id := range int64(2) {
		if _, err := s.Event(context.Background(), 1+id); err != nil {
			t.Errorf("event %d: %v", 1+id, err)
		}
	}
	_, claimErr := s.Claim(context.Background(), []string{"x"}, 1, noon, time.Minute)
	for name, err := range map[string]error{"commit": commitOne(s, 3), "ping": s.Ping(context.Background()), "claim": claimErr} {
		if !errors.Is(err, onceward.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
}

// TestUsersTransaction wants a transaction that the application began by hand, on
// the only connection, to be refused and left alone.
func TestUsersTransaction(t *testing.T) {
	db := user(t, filepath.Join(t.TempDir(), "app.db"))
	db.SetMaxOpenConns(1)
	s, err := sqlite.New(db, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run := func(statement string) {
		t.Helper()
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	run("create table mine (n integer)")
	run("begin")
	run("insert into mine values (7)")
	for range 2 {
		if err := commitOne(s, 1); !errors.Is(err, onceward.ErrUnavailable) || !strings.Contains(err.Error(), "BeginTx") {
			t.Errorf("commit within the application's transaction: %v, want ErrUnavailable with what to do", err)
		}
	}
	if _, err := sqlite.New(db, sqlite.Config{Prefix: "other_"}); !errors.Is(err, onceward.ErrUnavailable) {
		t.Errorf("new within the application's transaction: %v, want ErrUnavailable", err)
	}
	run("commit")
	if got := queryText(t, db, "select n from mine"); got != "7" {
		t.Errorf("the application's transaction kept %q, want 7", got)
	}
	if err := commitOne(s, 1); err != nil {
		t.Errorf("commit afterwards: %v", err)
	}
}

// TestUsersPool leaves what the application opened open, and a pool of one
// connection usable between two operations.
func TestUsersPool(t *testing.T) {
	for _, size := range []int{0, 1, 2} {
		path := filepath.Join(t.TempDir(), "app.db")
		db := user(t, path)
		db.SetMaxOpenConns(size)
		s, err := sqlite.New(db, sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for id := range int64(5) {
			if err := commitOne(s, 1+id); err != nil {
				t.Fatal(err)
			}
			if got := queryText(t, db, "select count(*) from onceward_events"); got != string(rune('1'+id)) {
				t.Errorf("the application sees %s events, want %d", got, 1+id)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if got := queryText(t, db, "select count(*) from onceward_entities"); got != "5" {
			t.Errorf("after Close the application sees %s rows, want 5", got)
		}
		if inUse := db.Stats().InUse; inUse != 0 {
			t.Errorf("%d connections are still in use", inUse)
		}
	}
}
