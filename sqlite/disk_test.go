package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/sqlite"
)

// fill commits events until a commit fails, and wants the failure to be that the
// store is unavailable. It returns the ids of those that were acknowledged.
func fill(t *testing.T, s *sqlite.Store, from int64) (acknowledged []int64, failed int64) {
	t.Helper()
	for id := from; ; id++ {
		if id-from > 200_000 {
			t.Fatal("the disk does not get full")
		}
		err := commitOne(s, id)
		switch {
		case err == nil:
			acknowledged = append(acknowledged, id)
			continue
		case !errors.Is(err, onceward.ErrUnavailable) && !errors.Is(err, onceward.ErrUnknownOutcome):
			t.Fatalf("commit on a full disk: %v, want ErrUnavailable", err)
		}
		t.Logf("after %d events: %v", len(acknowledged), err)
		return acknowledged, id
	}
}

// wantAll wants every acknowledged event, and its row's facts, to be there once.
func wantAll(t *testing.T, s *sqlite.Store, db *sql.DB, acknowledged []int64) {
	t.Helper()
	ctx := context.Background()
	for i, id := range acknowledged {
		if i%10 > 0 && i < len(acknowledged)-10 {
			continue // the counts below are of all
		}
		if e, err := s.Event(ctx, id); err != nil || e.Facts != 1 {
			t.Fatalf("acknowledged event %d: %v", id, err)
		}
	}
	n := fmt.Sprint(len(acknowledged))
	if got := queryText(t, db, `select (select count(*) from onceward_claims), (select count(*) from onceward_events), (select count(*) from onceward_facts),
		(select sum(version) from onceward_entities), (select events from onceward_counts)`); got != n+"|"+n+"|"+n+"|"+n+"|"+n {
		t.Errorf("claims, events, facts, versions, counted: %s; want %s of each", got, n)
	}
	if got := queryText(t, db, "pragma integrity_check"); got != "ok" {
		t.Errorf("integrity check: %s", got)
	}
}

// TestFull fills a database that may not grow, gives it room, and goes on with
// the same store.
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	s := open(t, path)
	defer s.Close()
	if err := s.Script("pragma max_page_count = 200"); err != nil {
		t.Fatal(err)
	}
	acknowledged, failed := fill(t, s, 1)
	if len(acknowledged) < 20 {
		t.Errorf("only %d events fit", len(acknowledged))
	}
	for range 3 { // it stays full, and readable
		if err := commitOne(s, failed); !errors.Is(err, onceward.ErrUnavailable) || errors.Is(err, onceward.ErrUnknownOutcome) {
			t.Errorf("commit: %v, want ErrUnavailable", err)
		}
	}
	wantAll(t, s, user(t, path), acknowledged)
	if err := s.Script("pragma max_page_count = 100000"); err != nil {
		t.Fatal(err)
	}
	for id := failed; id < failed+50; id++ {
		if err := commitOne(s, id); err != nil {
			t.Fatalf("commit when there is room again: %v", err)
		}
		acknowledged = append(acknowledged, id)
	}
	wantAll(t, s, user(t, path), acknowledged)
}

// TestNotWritable meets a database that may not be written for a while.
func TestNotWritable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	s := open(t, path)
	defer s.Close()
	if err := commitOne(s, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Script("pragma query_only = 1"); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"commit": commitOne(s, 2), "ping": s.Ping(context.Background())} {
		if !errors.Is(err, onceward.ErrUnavailable) || errors.Is(err, onceward.ErrUnknownOutcome) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
	if _, err := s.Event(context.Background(), 1); err != nil {
		t.Errorf("read: %v", err)
	}
	if err := s.Script("pragma query_only = 0"); err != nil {
		t.Fatal(err)
	}
	if err := commitOne(s, 2); err != nil {
		t.Errorf("commit when it may be written again: %v", err)
	}

	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ro, err := sqlite.New(db, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer ro.Close()
	if err := commitOne(ro, 3); !errors.Is(err, onceward.ErrUnavailable) {
		t.Errorf("commit to a file opened for reading: %v, want ErrUnavailable", err)
	}
}

// TestBusy meets another program that holds the database's lock.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	s, err := sqlite.OpenConfig(path, sqlite.Config{BusyTimeout: 60 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	other := user(t, path)
	other.SetMaxOpenConns(1)
	if _, err := other.Exec("begin immediate"); err != nil {
		t.Fatal(err)
	}
	before := s.Waits()
	if err := commitOne(s, 1); !errors.Is(err, onceward.ErrUnavailable) || s.Waits()-before < 5 {
		t.Errorf("commit: %v after %d waits; want ErrUnavailable after some", err, s.Waits()-before)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := s.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ping: %v, want it to end with its context", err)
	}
	if _, err := s.Stats(context.Background()); err != nil {
		t.Errorf("a read waits for a writer: %v", err)
	}
	if _, err := other.Exec("rollback"); err != nil {
		t.Fatal(err)
	}
	if err := commitOne(s, 1); err != nil {
		t.Errorf("commit when the lock is free: %v", err)
	}
}

// TestLogIsBounded lets a reader keep SQLite from starting the log anew, and
// wants the writer to cut it once the reader is gone.
func TestLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	const limit = 6 << 20
	s, err := sqlite.OpenConfig(path, sqlite.Config{WALLimit: limit})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	size := func() int64 {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	id := int64(0)
	commitUntil := func(done func() bool) {
		t.Helper()
		for n := 0; !done(); n++ {
			id++
			if err := commitOne(s, id); err != nil {
				t.Fatal(err)
			}
			if n > 20_000 {
				t.Fatalf("the log has %d bytes", size())
			}
		}
	}
	commitUntil(func() bool { return id == 1500 })
	if size() > limit {
		t.Errorf("without readers the log has %d bytes, want it started anew", size())
	}
	reader := user(t, path)
	tx, err := reader.Begin()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRow("select count(*) from onceward_events").Scan(&n); err != nil {
		t.Fatal(err)
	}
	commitUntil(func() bool { return size() > limit+limit/8 })
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	commitUntil(func() bool { return size() <= limit })
}

// TestGuard lets something change a row between the reading and the writing of a
// commit, which nothing but a trigger can. The statement itself must refuse.
func TestGuard(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	s := open(t, path)
	defer s.Close()
	if err := commitOne(s, 1); err != nil {
		t.Fatal(err)
	}
	db := user(t, path)
	for _, change := range []string{"update onceward_rows set version = version + 1", "update onceward_rows set facts = facts + 1", "delete from onceward_rows"} {
		if _, err := db.Exec("create trigger meddle after insert on onceward_events begin " + change + "; end"); err != nil {
			t.Fatal(err)
		}
		before := snapshot(t, s)
		// Event 10001 is about the payment that event 1 was about.
		if err := commitOne(s, 10001); !errors.Is(err, onceward.ErrUnavailable) {
			t.Errorf("%s: commit gives %v, want it refused", change, err)
		}
		if after := snapshot(t, s); after != before {
			t.Errorf("%s: something is kept of a refused commit:\n%s\nbefore:\n%s", change, after, before)
		}
		if _, err := db.Exec("drop trigger meddle"); err != nil {
			t.Fatal(err)
		}
	}
	if err := commitOne(s, 10001); err != nil {
		t.Fatal(err)
	}
	// A row that appears where there was none.
	id := onceward.Ref{Source: "acme", Kind: "payment", Key: paymentKey(2)}.ID()
	if _, err := db.Exec(fmt.Sprintf(`create trigger meddle after insert on onceward_events begin
		insert into onceward_rows select x'%v', source, account, mode, kind, 'other', status, told, version, revision, epoch, tie, facts, data, state, created, updated
		from onceward_rows; end`, id)); err != nil {
		t.Fatal(err)
	}
	if err := commitOne(s, 2); !errors.Is(err, onceward.ErrUnavailable) {
		t.Errorf("a row appears: commit gives %v, want it refused", err)
	}
	if got := queryText(t, db, "select version, facts from onceward_rows"); got != "2|2" {
		t.Errorf("the row has version and facts %s, want 2|2", got)
	}
}

// TestPanic goes on after a mapping's code has panicked inside a commit.
func TestPanic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	s := open(t, path)
	defer s.Close()
	mapping, err := newMapping()
	if err != nil {
		t.Fatal(err)
	}
	mapping.Kinds["payment"].Derive = func(onceward.Folded) onceward.Derived { panic("the mapping's own") }
	func() {
		defer func() {
			if p := recover(); p != "the mapping's own" {
				t.Errorf("recovered %v, want the panic itself", p)
			}
		}()
		_ = s.Commit(context.Background(), &onceward.Batch{Arrivals: []*onceward.Arrival{arrival(mapping, 1, nil, noon)}, Now: noon})
		t.Error("the panic was swallowed")
	}()
	if err := commitOne(s, 1); err != nil {
		t.Errorf("the next commit: %v", err)
	}
	wantAll(t, s, user(t, path), []int64{1})
}
