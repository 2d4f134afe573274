package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/pgtest"
	"github.com/onceward/onceward/postgres"
)

// parallel runs f n times at the same time and fails the test on any error.
func parallel(t testing.TB, n int, f func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, n)
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("worker %d: %v", i, err)
		}
	}
}

// TestOneUniqueIndex guards claims and rows: ON CONFLICT arbitrates on one index,
// and a duplicate that a second one finds first is an error.
func TestOneUniqueIndex(t *testing.T) {
	dsn := pgtest.Start(t)
	open(t, dsn, postgres.Config{})
	const unique = `select count(*) from pg_index where indisunique and indrelid = 'onceward_%s'::regclass`
	want(t, dsn, fmt.Sprintf(unique, "claims"), "1")
	want(t, dsn, fmt.Sprintf(unique, "rows"), "1")

	// What it would be like: the insert that names the first index fails on the second.
	if err := pgtest.Exec(dsn, `create unique index trap on onceward_rows (source, kind, key); insert into onceward_rows (id, source, account, mode, kind, key, created, updated)
		values ('00000000-0000-0000-0000-000000000001', 'a', '', '', 'k', 'x', now(), now())`); err != nil {
		t.Fatal(err)
	}
	want(t, dsn, fmt.Sprintf(unique, "rows"), "2")
	err := pgtest.Exec(dsn, `insert into onceward_rows (id, source, account, mode, kind, key, created, updated)
		values ('00000000-0000-0000-0000-000000000002', 'a', '', '', 'k', 'x', now(), now()) on conflict (id) do nothing`)
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code != "23505" {
		t.Errorf("with a second unique index: %v, want 23505", err)
	}
}

// TestRefusedGuardTakesCommitAlong sends the guarded write of a row that has moved
// on, with a commit behind it.
func TestRefusedGuardTakesCommitAlong(t *testing.T) {
	dsn := pgtest.Start(t)
	s := open(t, dsn, postgres.Config{})
	w := newTeller(t)
	commit(t, s, w.event("e1", fact("j1", "text")), w.event("e2", fact("j2", "text")))
	write := func(job string, wasVersion, wasFacts int64) onceward.RowWrite {
		return onceward.RowWrite{ID: jobRef(job).ID(), Ref: jobRef(job), WasVersion: wasVersion, WasFacts: wasFacts, Row: &onceward.Row{Status: "lost", Version: 9}, Facts: 9}
	}
	stale := map[string][]onceward.RowWrite{
		"another version":         {write("j1", 0, 1)},
		"another number of facts": {write("j1", 1, 0)},
		"one of two":              {write("j1", 1, 1), write("j2", 7, 1)},
		"no such row":             {write("nobody", 0, 0)},
	}
	for name, rows := range stale {
		retried := s.Retried()
		if err := s.WriteRows(context.Background(), batch(), rows); !errors.Is(err, postgres.Refused) || !errors.Is(err, onceward.ErrUnavailable) {
			t.Errorf("%s: %v, want a refusal, and to try later", name, err)
		}
		if s.Retried() == retried {
			t.Errorf("%s: a refusal is not tried anew", name)
		}
		want(t, dsn, `select string_agg(status || version, ',') from onceward_rows`, "text1,text1")
	}
	if err := s.WriteRows(context.Background(), batch(), []onceward.RowWrite{write("j1", 1, 1)}); err != nil {
		t.Errorf("a write of what the row is: %v", err)
	}
	want(t, dsn, `select string_agg(status || version, ',' order by status) from onceward_rows`, "lost9,text1")

	s.WithoutRaise() // the trap: the commit goes through, and half of the batch with it
	if err := s.WriteRows(context.Background(), batch(), []onceward.RowWrite{write("j2", 1, 1), write("nobody", 0, 0)}); err != nil {
		t.Errorf("a guard that only counts: %v", err)
	}
	want(t, dsn, `select count(*) from onceward_rows where status = 'lost'`, "2")
}

// TestGuardWithoutLocks takes the locks away: commits are refused and begun anew,
// and no row is wrong. The locks make it succeed, the WHERE makes it right.
func TestGuardWithoutLocks(t *testing.T) {
	dsn := pgtest.Start(t)
	w := newTeller(t)
	const workers, rounds = 4, 40
	stores := make([]*postgres.Store, workers)
	for i := range stores {
		stores[i] = open(t, dsn, postgres.Config{})
		stores[i].WithoutLocks()
	}
	commit(t, stores[0], w.event("e0", fact("j1", "text")))
	parallel(t, workers, func(i int) error {
		for r := range rounds {
			a := w.event(fmt.Sprintf("e%d-%d", i, r), fact("j1", "text", onceward.Part{Field: "parts", By: fmt.Sprintf("%d-%d", i, r), Value: onceward.Int(1)}))
			for {
				err := stores[i].Commit(context.Background(), batch(a))
				if err == nil {
					break
				}
				if !errors.Is(err, onceward.ErrUnavailable) {
					return err
				}
			}
		}
		return nil
	})
	refused := int64(0)
	for _, s := range stores {
		refused += s.Retried()
	}
	if refused == 0 {
		t.Error("nobody was refused; the race was none")
	}
	want(t, dsn, counts, fmt.Sprintf("%d|%[1]d|%[1]d|1|%[1]d", workers*rounds+1))
	want(t, dsn, `select data ->> 'parts' from onceward_entities`, fmt.Sprint(workers*rounds))
}

// TestPlansOfEmptyTables makes the plans that a connection would keep from its
// first minute, on empty and analyzed tables, under the settings of a commit, and
// wants none that would read a large table through.
func TestPlansOfEmptyTables(t *testing.T) {
	dsn := pgtest.Start(t)
	s := open(t, dsn, postgres.Config{})
	if err := pgtest.Exec(dsn, `analyze onceward_claims, onceward_rows, onceward_facts, onceward_variants`); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	run := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(ctx, sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	explain := func(name, sql string) string {
		t.Helper()
		arguments := slices.Compact(slices.Sorted(slices.Values(placeholder.FindAllString(sql, -1))))
		nulls := slices.Repeat([]string{"null"}, len(arguments))
		run("prepare " + name + " as " + sql)
		defer run("deallocate " + name)
		text := ""
		rows, err := conn.Query(ctx, "explain execute "+name+" ("+strings.Join(nulls, ", ")+")", pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			text += line + "\n"
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return text
	}
	bad := regexp.MustCompile(`Seq Scan|Hash Join|Hash (Semi|Anti) Join|Merge Join`)

	statements := s.CommitStatements()
	begin, args := s.Begin()
	for i, sql := range begin {
		run(sql, args[i]...)
	}
	run("set local plan_cache_mode = force_generic_plan")
	for name, sql := range statements {
		if plan := explain(name, sql); bad.MatchString(plan) {
			t.Errorf("%s is planned for empty tables:\n%s", name, plan)
		}
	}
	run("commit")
	for _, setting := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin"} {
		var value string
		if err := conn.QueryRow(ctx, "select current_setting($1)", setting).Scan(&value); err != nil || value != "on" {
			t.Errorf("%s is %s after the commit, %v: the settings must end with the transaction", setting, value, err)
		}
	}
	run("begin")
	run("set local plan_cache_mode = force_generic_plan")
	trapped := 0
	for name, sql := range statements {
		if bad.MatchString(explain(name, sql)) {
			trapped++
		}
	}
	run("rollback")
	if trapped == 0 {
		t.Error("without the settings no plan is bad: the test shows nothing")
	}
}

var placeholder = regexp.MustCompile(`\$[0-9]+`)

// TestSettingsAreInForce reads them inside a commit's transaction.
func TestSettingsAreInForce(t *testing.T) {
	dsn := pgtest.Start(t)
	database := dsn[strings.LastIndexByte(dsn, '/')+1 : strings.IndexByte(dsn, '?')]
	if err := pgtest.Exec(dsn, `alter database `+database+` set synchronous_commit = off; alter database `+database+` set default_transaction_isolation = 'repeatable read'`); err != nil {
		t.Fatal(err)
	}
	s := open(t, dsn, postgres.Config{StatementTimeout: 7 * time.Second})
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	begin, args := s.Begin()
	for i, sql := range begin {
		if _, err := conn.Exec(ctx, sql, args[i]...); err != nil {
			t.Fatal(err)
		}
	}
	for setting, wanted := range map[string]string{
		"transaction_isolation": "read committed", "synchronous_commit": "on", "statement_timeout": "7s", "lock_timeout": "3s",
		"idle_in_transaction_session_timeout": "2s", "enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
	} {
		var value string
		if err := conn.QueryRow(ctx, "select current_setting($1)", setting).Scan(&value); err != nil || value != wanted {
			t.Errorf("%s is %s, %v; want %s", setting, value, err, wanted)
		}
	}
}

// TestPlaceholdersDoNotStay makes commits that lock rows and then do not write
// them.
func TestPlaceholdersDoNotStay(t *testing.T) {
	dsn := pgtest.Start(t)
	s := open(t, dsn, postgres.Config{})
	w := newTeller(t)
	commit(t, s, w.event("e1", fact("j1", "text")))
	duplicate, differing := w.event("e1", fact("j2", "text")), w.event("e1", fact("j3", "text"))
	differing.Event.Digest = onceward.DigestOf([]byte("other bytes"))
	commit(t, s, duplicate)
	commit(t, s, differing)
	commit(t, s, w.event("e2", fact("j4", "text")), w.event("e2", fact("j5", "text")))
	if duplicate.Outcome != onceward.Duplicate || differing.Outcome != onceward.Differs {
		t.Errorf("outcomes %v and %v, want duplicate and differs", duplicate.Outcome, differing.Outcome)
	}
	want(t, dsn, `select string_agg(key, ',' order by key) from onceward_rows`, "j1,j4")

	// Two commits of one event that name different rows, at the same time.
	parallel(t, 8, func(i int) error {
		for r := range 20 {
			if err := s.Commit(context.Background(), batch(w.event(fmt.Sprintf("race %d", r), fact(fmt.Sprintf("r%d-%d", r, i), "text")))); err != nil {
				return err
			}
		}
		return nil
	})
	want(t, dsn, `select count(*), count(*) filter (where facts = 0 or version = 0) from onceward_rows`, "22|0")

	held := fact("h1", "")
	held.Held = "no status"
	commit(t, s, w.event("e3", held))
	want(t, dsn, `select count(*), (select count(*) from onceward_entities where key = 'h1') from onceward_rows where key = 'h1'`, "1|0")
}

// TestArrivalOrder folds facts of one tick in the order of a batch, whatever the
// order in which their claims and rows are locked.
func TestArrivalOrder(t *testing.T) {
	dsn := pgtest.Start(t)
	s := open(t, dsn, postgres.Config{})
	w := newTeller(t)
	var arrivals []*onceward.Arrival
	for i := range 40 {
		note := onceward.Part{Field: "note", Value: onceward.Int(int64(i))}
		arrivals = append(arrivals, w.event(fmt.Sprintf("e%d", i), fact("j1", "text", note), fact("j2", "text", note)))
	}
	commit(t, s, arrivals...)
	want(t, dsn, `select string_agg(distinct data ->> 'note' || ' ' || version || ' ' || tie, ',') from onceward_entities`, "39 40 note")
	facts, err := s.History(context.Background(), jobRef("j1"))
	if err != nil || len(facts) != 40 {
		t.Fatalf("%d facts, %v", len(facts), err)
	}
	for i, f := range facts {
		if f.EventID != arrivals[i].Event.ID || f.Seq != int64(i+1) {
			t.Fatalf("fact %d is of event %d, number %d", i, f.EventID, f.Seq)
		}
	}
}

// TestNoDeadlocks commits batches that overlap from eight connections.
func TestNoDeadlocks(t *testing.T) {
	dsn := pgtest.Start(t)
	w := newTeller(t)
	const workers, rounds, size = 8, 30, 16
	stores := []*postgres.Store{open(t, dsn, postgres.Config{Lanes: 4}), open(t, dsn, postgres.Config{Lanes: 4})}
	parallel(t, workers, func(i int) error {
		for r := range rounds {
			var arrivals []*onceward.Arrival
			for j := range size {
				n := (i*7 + r*5 + j*11) % 40
				arrivals = append(arrivals, w.event(fmt.Sprintf("shared %d %d", r, n), fact(fmt.Sprintf("j%d", n), "text"), fact(fmt.Sprintf("j%d", 39-n), "queued")))
			}
			if err := stores[i%2].Commit(context.Background(), batch(arrivals...)); err != nil {
				return err
			}
		}
		return nil
	})
	for _, s := range stores {
		if n := s.Retried(); n != 0 {
			t.Errorf("%d commits were begun anew, want none", n)
		}
		closeStore(t, s)
	}
	// A session reports what it counted at the latest when it ends.
	const deadlocks = `select pg_stat_clear_snapshot(), deadlocks from pg_stat_database where datname = current_database()`
	want(t, dsn, deadlocks, "|0")
	provokeDeadlock(t, dsn)
	waitFor(t, "the count of a deadlock that was made on purpose", func() bool { return ask(t, dsn, deadlocks) == "|1" })
}

// provokeDeadlock lets two transactions lock two rows in opposite orders.
func provokeDeadlock(t *testing.T, dsn string) {
	t.Helper()
	ctx := context.Background()
	var conns [2]*pgx.Conn
	lock := func(c *pgx.Conn, key string) error {
		_, err := c.Exec(ctx, `select 1 from onceward_rows where key = $1 for update`, key)
		return err
	}
	for i := range conns {
		c, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(ctx) })
		conns[i] = c
		if _, err := c.Exec(ctx, "set deadlock_timeout = '10ms'; begin"); err != nil {
			t.Fatal(err)
		}
		if err := lock(c, fmt.Sprintf("j%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	failed := make(chan error, 2)
	for i, c := range conns {
		go func() {
			err := lock(c, fmt.Sprintf("j%d", 1-i))
			_, _ = c.Exec(ctx, "rollback")
			failed <- err
		}()
	}
	var server *pgconn.PgError
	if err := errors.Join(<-failed, <-failed); !errors.As(err, &server) || server.Code != "40P01" {
		t.Fatalf("locking in opposite orders: %v, want a deadlock", err)
	}
}

// waitFor asks again until it is so, for half a minute at most.
func waitFor(t testing.TB, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s does not come", what)
		case <-again.C:
		}
	}
}
