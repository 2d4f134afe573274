package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/sqlite"
)

func TestMigrations(t *testing.T) {
	steps, err := sqlite.Migrations("")
	if err != nil || len(steps) == 0 {
		t.Fatalf("%d migrations, %v", len(steps), err)
	}
	other, err := sqlite.Migrations("inbox_")
	if err != nil || len(other) != len(steps) {
		t.Fatalf("%d migrations under another prefix, %v", len(other), err)
	}
	for i, step := range steps {
		if step.Version != i+1 || step.Name == "" || !strings.Contains(step.SQL, "onceward_") {
			t.Errorf("migration %d: %d %q", i+1, step.Version, step.Name)
		}
		if strings.Contains(other[i].SQL, "onceward_") || !strings.Contains(other[i].SQL, "inbox_") {
			t.Errorf("migration %d does not take the prefix", i+1)
		}
	}
	if _, err := sqlite.Migrations("Bad Prefix"); err == nil {
		t.Error("a bad prefix is taken")
	}
}

// TestSchemaNewer refuses what a newer program made, and names both numbers.
func TestSchemaNewer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := user(t, path).Exec("insert into onceward_schema (version) values (999)"); err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []sqlite.Config{{}, {ReadOnly: true}} {
		_, err := sqlite.OpenConfig(path, cfg)
		if !errors.Is(err, onceward.ErrSchemaNewer) || !strings.Contains(err.Error(), "999") || !strings.Contains(err.Error(), "knows 1") {
			t.Errorf("open %+v: %v, want ErrSchemaNewer with 999 and 1", cfg, err)
		}
	}
}

// TestMigratedAtOnce opens one new file many times at the same time.
func TestMigratedAtOnce(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "app.db")
		stores, errs := make([]*sqlite.Store, 8), make([]error, 8)
		var wg sync.WaitGroup
		for i := range stores {
			wg.Go(func() { stores[i], errs[i] = sqlite.Open(path) })
		}
		wg.Wait()
		for i, s := range stores {
			if errs[i] != nil {
				t.Errorf("open: %v", errs[i])
				continue
			}
			if err := errors.Join(commitOne(s, int64(i+1)), s.Close()); err != nil {
				t.Error(err)
			}
		}
		if got := queryText(t, user(t, path), "select version from onceward_schema"); got != "1" {
			t.Errorf("versions %q, want 1", got)
		}
	}
}

// TestClash leaves a user's table with a name of ours as it is, and everything
// else undone.
func TestClash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := user(t, path)
	if _, err := db.Exec("create table onceward_rows (mine text); insert into onceward_rows values ('kept')"); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(path); err == nil || !strings.Contains(err.Error(), "Prefix") {
		t.Errorf("open: %v, want it to name Prefix", err)
	}
	if got := queryText(t, db, "select name, (select mine from onceward_rows) from sqlite_schema"); got != "onceward_rows|kept" {
		t.Errorf("the file holds %q, want the user's table alone", got)
	}
	s, err := sqlite.OpenConfig(path, sqlite.Config{Prefix: "inbox_"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(commitOne(s, 1), s.Close()); err != nil {
		t.Error(err)
	}
	if got := queryText(t, db, "select status from inbox_entities"); got != "paid" {
		t.Errorf("under another prefix the view holds %q", got)
	}
}

// TestTwoPrefixes keeps two inboxes in one file apart.
func TestTwoPrefixes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	first := open(t, path)
	defer first.Close()
	second, err := sqlite.OpenConfig(path, sqlite.Config{Prefix: "b"})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := errors.Join(commitOne(first, 1), commitOne(first, 2), commitOne(second, 1)); err != nil {
		t.Fatal(err)
	}
	for s, want := range map[*sqlite.Store]int64{first: 2, second: 1} {
		if stats, err := s.Stats(context.Background()); err != nil || stats.Events != want {
			t.Errorf("%d events, %v; want %d", stats.Events, err, want)
		}
	}
}

// TestOneUniqueIndex guards a trap: a second unique index on rows or claims
// breaks "on conflict" under concurrency on other databases, so there is none
// here either.
func TestOneUniqueIndex(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	defer open(t, path).Close()
	for _, table := range []string{"onceward_rows", "onceward_claims"} {
		if got := queryText(t, user(t, path), `select count(*) from pragma_index_list('`+table+`') where "unique"`); got != "1" {
			t.Errorf("%s has %s unique indexes, want 1", table, got)
		}
	}
}
