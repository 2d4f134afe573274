package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/pgtest"
	"github.com/onceward/onceward/postgres"
)

// ordinaryRole makes a role without rights, which goes with the test.
func ordinaryRole(t *testing.T, dsn string) string {
	t.Helper()
	role := "role_" + ask(t, dsn, "select current_database()")
	if err := pgtest.Exec(dsn, "create role "+role+" login"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pgtest.Exec(dsn, "drop owned by "+role+"; drop role "+role); err != nil {
			t.Error(err)
		}
	})
	return role
}

// TestOrdinaryRole has the tables made by hand and works with the rights to read
// and write them, and says what is missing where it has fewer.
func TestOrdinaryRole(t *testing.T) {
	dsn := pgtest.Start(t)
	role := ordinaryRole(t, dsn)
	theirs := pgtest.WithUser(dsn, role)
	ctx := context.Background()
	_, err := postgres.OpenConfig(ctx, theirs, postgres.Config{Schema: "hooks"})
	if err == nil || !strings.Contains(err.Error(), "onceward migrate --print") {
		t.Fatalf("open without rights: %v, want what to do", err)
	}
	steps, err := postgres.Migrations("hooks", "")
	if err != nil || len(steps) == 0 {
		t.Fatalf("%d migrations, %v", len(steps), err)
	}
	if err := pgtest.Exec(dsn, "create schema hooks"); err != nil {
		t.Fatal(err)
	}
	for i, m := range steps {
		if m.Version != i+1 || m.Name == "" {
			t.Errorf("migration %d is %d, %q", i, m.Version, m.Name)
		}
		if err := pgtest.Exec(dsn, "begin;\n"+m.SQL+"commit;"); err != nil {
			t.Fatal(err)
		}
	}
	if err := pgtest.Exec(dsn, fmt.Sprintf(`grant usage on schema hooks to %[1]s; grant select, insert, update, delete on all tables in schema hooks to %[1]s;
		grant usage on all sequences in schema hooks to %[1]s`, role)); err != nil {
		t.Fatal(err)
	}
	s := open(t, theirs, postgres.Config{Schema: "hooks"})
	w := newTeller(t)
	commit(t, s, w.event("e1", fact("j1", "text")))
	if e, err := s.Entity(ctx, jobRef("j1")); err != nil || e.Status != "text" {
		t.Errorf("entity: %+v, %v", e, err)
	}
	if _, err := s.Node(ctx); err != nil {
		t.Error(err)
	}
	if err := s.Quarantine(ctx, []onceward.Rejection{{Source: "acme", Reason: "forged", Delivery: onceward.Delivery{At: began}}}, onceward.QuarantineLimits{Count: 1, Bytes: 100}); err != nil {
		t.Error(err)
	}
	if err := s.Ping(ctx); err != nil {
		t.Error(err)
	}
}

// TestUsersTables puts tables with the very names that ours have, less the
// prefix, beside them, and wants them as they were.
func TestUsersTables(t *testing.T) {
	dsn := pgtest.Start(t)
	names := []string{"claims", "entities", "events", "facts", "jobs", "mappings", "meta", "nodes", "quarantine", "repeats", "rows", "schema", "variants", "orders"}
	for _, n := range names {
		if err := pgtest.Exec(dsn, fmt.Sprintf(`create table %s (id int primary key, note text); insert into %[1]s values (1, 'mine')`, n)); err != nil {
			t.Fatal(err)
		}
	}
	const described = `select string_agg(table_name || '.' || column_name || ' ' || data_type, ',' order by table_name, ordinal_position)
		from information_schema.columns where table_schema = 'public' and table_name not like 'onceward\_%'`
	columns := ask(t, dsn, described)
	elsewhere := open(t, dsn, postgres.Config{Schema: "Über x", Prefix: "hook_"})
	beside := open(t, dsn, postgres.Config{})
	again := open(t, dsn, postgres.Config{Prefix: "second_"})
	for i, s := range []*postgres.Store{elsewhere, beside, again} {
		w := newTeller(t)
		commit(t, s, w.event("e1", fact("j1", "text")), w.event("e1", fact("j1", "text")))
		if st, err := s.Stats(context.Background()); err != nil || st.Events != 1 || st.Repeats != 1 {
			t.Errorf("store %d counts %+v, %v: each has its own", i, st, err)
		}
	}
	want(t, dsn, described+` and table_name not like 'second\_%'`, columns)
	for _, n := range names {
		want(t, dsn, "select * from "+n, "1|mine")
	}
	want(t, dsn, `select string_agg(nspname, ',' order by nspname) from pg_namespace where nspname !~ '^pg_|^information_schema$'`, `public,Über x`)
}

// TestNameTaken meets a table of the user's under a name of ours.
func TestNameTaken(t *testing.T) {
	dsn := pgtest.Start(t)
	if err := pgtest.Exec(dsn, `create table onceward_facts (mine int)`); err != nil {
		t.Fatal(err)
	}
	_, err := postgres.Open(context.Background(), dsn)
	if err == nil || !strings.Contains(err.Error(), "choose another Prefix") {
		t.Errorf("open: %v, want what to do", err)
	}
	want(t, dsn, `select count(*) from pg_tables where schemaname = 'public'`, "1")
}

// TestMigrateAtOnce opens a fresh database from many connections.
func TestMigrateAtOnce(t *testing.T) {
	dsn := pgtest.Start(t)
	parallel(t, 8, func(i int) error {
		s, err := postgres.OpenConfig(context.Background(), dsn, postgres.Config{Schema: "hooks"})
		if err != nil {
			return err
		}
		w := newTeller(t)
		if err := s.Commit(context.Background(), batch(w.event("e1", fact("j1", "text")))); err != nil {
			return err
		}
		return s.Close()
	})
	want(t, dsn, `select string_agg(version::text, ',') from hooks.onceward_schema`, "1")
	want(t, dsn, `select count(*) from hooks.onceward_events`, "1")
}

// TestSchemaNewer refuses tables that a newer program has changed.
func TestSchemaNewer(t *testing.T) {
	dsn := pgtest.Start(t)
	open(t, dsn, postgres.Config{})
	if err := pgtest.Exec(dsn, `insert into onceward_schema (version) values (999)`); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Open(context.Background(), dsn); !errors.Is(err, onceward.ErrSchemaNewer) {
		t.Errorf("open: %v, want ErrSchemaNewer", err)
	}
}

// TestOpenRefuses lists what cannot be opened, and what is said of it.
func TestOpenRefuses(t *testing.T) {
	dsn := pgtest.Start(t)
	ctx := context.Background()
	const secret = "s3cr3t"
	for name, c := range map[string]struct {
		dsn  string
		cfg  postgres.Config
		says string
		is   error
	}{
		"no URL":             {dsn: "postgres://user:" + secret + "%zz@localhost/db", says: "USER:PASSWORD@HOST"},
		"a slash":            {dsn: "postgres://user:" + secret + "/x@localhost/db", says: "USER:PASSWORD@HOST"},
		"no pairs":           {dsn: "host=localhost password=" + secret + " oops", says: "key=value"},
		"an odd setting":     {dsn: "host=localhost sslmode=odd password=" + secret, says: "sslmode is invalid"},
		"nobody there":       {dsn: "postgres://user:" + secret + "@127.0.0.1:1/db", is: onceward.ErrUnavailable},
		"no such database":   {dsn: pgtest.WithDatabase(dsn, "nowhere"), says: "nowhere", is: onceward.ErrUnavailable},
		"a prefix with dots": {dsn: dsn, cfg: postgres.Config{Prefix: "a.b"}, says: "prefix"},
		"a long prefix":      {dsn: dsn, cfg: postgres.Config{Prefix: strings.Repeat("a", 43)}, says: "prefix"},
		"an odd schema":      {dsn: dsn, cfg: postgres.Config{Schema: `a"b`}, says: "schema"},
		"no schema":          {dsn: dsn + "&search_path=nowhere", says: "Config.Schema"},
		"negative lanes":     {dsn: dsn, cfg: postgres.Config{Lanes: -1}, says: "Lanes"},
		"negative timeout":   {dsn: dsn, cfg: postgres.Config{LockTimeout: -1}, says: "LockTimeout"},
		"another encoding":   {dsn: latin1(t, dsn), says: "UTF8"},
	} {
		_, err := postgres.OpenConfig(ctx, c.dsn, c.cfg)
		if err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want one that says %q", name, err, c.says)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the password is in the error", name)
		}
	}
	if _, err := postgres.Migrations("public", "No"); err == nil {
		t.Error("migrations with an odd prefix")
	}
}

// latin1 makes a database of another encoding.
func latin1(t *testing.T, dsn string) string {
	t.Helper()
	name := "latin1_" + ask(t, dsn, "select current_database()")
	if err := pgtest.Exec(dsn, "create database "+name+" template template0 encoding 'LATIN1' lc_collate 'C' lc_ctype 'C'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pgtest.Exec(dsn, "drop database "+name); err != nil {
			t.Error(err)
		}
	})
	return pgtest.WithDatabase(dsn, name)
}

// TestPoolOfTheUser stays open, and is not changed.
func TestPoolOfTheUser(t *testing.T) {
	dsn := pgtest.Start(t)
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := postgres.New(ctx, pool, postgres.Config{Lanes: 3})
	if err != nil {
		t.Fatal(err)
	}
	if s.Lanes() != 3 {
		t.Errorf("%d lanes, want 3", s.Lanes())
	}
	w := newTeller(t)
	commit(t, s, w.event("e1", fact("j1", "text")))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := pool.Ping(ctx); err != nil {
		t.Errorf("the user's pool: %v", err)
	}
	warnings := s.Warnings()
	if !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "fsync") }) {
		t.Errorf("warnings %q, want one of fsync", warnings)
	}
	if slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "pooler") }) {
		t.Errorf("warnings %q: there is no pooler", warnings)
	}
	open(t, dsn, postgres.Config{}) // one that is closed twice
	own, err := postgres.Open(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, own)
	closeStore(t, own)
	if err := own.Commit(ctx, batch(w.event("e2"))); !errors.Is(err, onceward.ErrUnavailable) {
		t.Errorf("commit after close: %v, want ErrUnavailable", err)
	}
}

// TestBehindPgBouncer works through a pooler that gives each transaction another
// session, where named statements fail.
func TestBehindPgBouncer(t *testing.T) {
	dsn := pgtest.Start(t)
	there := pgtest.Bouncer(t, dsn, 2)
	ctx := context.Background()
	s := open(t, there, postgres.Config{Lanes: 4})
	if s.ExecMode() != pgx.QueryExecModeCacheDescribe {
		t.Errorf("the store executes by %v", s.ExecMode())
	}
	w := newTeller(t)
	parallel(t, 6, func(i int) error {
		for r := range 20 {
			a := w.event(fmt.Sprintf("e%d", r), fact("j1", "text", onceward.Part{Field: "parts", By: fmt.Sprint(r), Value: onceward.Int(1)}))
			if err := s.Commit(ctx, batch(a)); err != nil {
				return err
			}
			if _, err := s.Entities(ctx, onceward.EntityQuery{Source: "acme", Key: "j1"}); err != nil {
				return err
			}
		}
		return nil
	})
	want(t, dsn, counts, "20|20|20|1|20")
	want(t, dsn, `select count(*) from onceward_repeats`, "100")
	want(t, dsn, `select data ->> 'parts' from onceward_entities`, "20")

	// Settings are the transaction's: the sessions behind are as they were.
	want(t, there+"&default_query_exec_mode=simple_protocol", `select current_setting('enable_seqscan') || ' ' || current_setting('lock_timeout')`, "on 0")

	// A pool of the user's that prepares is warned of, and the failure says so.
	pool, err := pgxpool.New(ctx, there)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	preparing, err := postgres.New(ctx, pool, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(preparing.Warnings(), func(w string) bool { return strings.Contains(w, "default_query_exec_mode") }) {
		t.Errorf("warnings %q, want one of the pooler", preparing.Warnings())
	}
	other, err := pgxpool.New(ctx, there)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	another, err := postgres.New(ctx, other, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, preparing, w.event("p1", fact("p1", "text")))
	err = another.Commit(ctx, batch(w.event("p2", fact("p2", "text")))) // its names are there already
	if err == nil || !strings.Contains(err.Error(), "default_query_exec_mode=cache_describe") {
		t.Errorf("a pool that prepares: %v, want what to do", err)
	}
}
