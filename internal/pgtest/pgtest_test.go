package pgtest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onceward/onceward/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func show(t *testing.T, dsn, what string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var got string
	if err := conn.QueryRow(ctx, "select "+what+"::text").Scan(&got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestFreshDatabases(t *testing.T) {
	first := pgtest.Start(t)
	if err := pgtest.Exec(first, "create table mine (n int); insert into mine values (1)"); err != nil {
		t.Fatal(err)
	}
	second := pgtest.Start(t)
	if got := show(t, second, "to_regclass('mine') is null"); got != "true" {
		t.Error("a second database has the tables of the first")
	}
}

func TestDatabaseGoesWithTheTest(t *testing.T) {
	var name, dsn string
	t.Run("user", func(t *testing.T) {
		dsn = pgtest.Start(t)
		name = show(t, dsn, "current_database()")
	})
	rest := pgtest.WithDatabase(dsn, "postgres")
	if got := show(t, rest, "exists (select from pg_database where datname = '"+name+"')"); got != "false" {
		t.Errorf("database %s is still there", name)
	}
}

func TestCrashKeepsWhatWasSynced(t *testing.T) {
	s := pgtest.New(t, pgtest.Options{Fsync: true, Settings: map[string]string{"max_connections": "20"}})
	dsn := s.Database(t)
	if fsync, most := show(t, dsn, "current_setting('fsync')"), show(t, dsn, "current_setting('max_connections')"); fsync != "on" || most != "20" {
		t.Errorf("fsync %s, max_connections %s", fsync, most)
	}
	if err := pgtest.Exec(dsn, "create table kept (n int); insert into kept values (7)"); err != nil {
		t.Fatal(err)
	}
	if err := s.Crash(); err != nil {
		t.Fatal(err)
	}
	if err := pgtest.Exec(dsn, "select 1"); err == nil {
		t.Error("a server that was ended still answers")
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if got := show(t, dsn, "(select n from kept)"); got != "7" {
		t.Errorf("after the crash the table has %s", got)
	}
}

func TestBouncer(t *testing.T) {
	dsn := pgtest.Start(t)
	there := pgtest.Bouncer(t, dsn, 2)
	// simple protocol: nothing to do with how statements are prepared
	there += "&default_query_exec_mode=simple_protocol"
	if a, b := show(t, dsn, "current_database()"), show(t, there, "current_database()"); a != b {
		t.Errorf("the database is %s, through PgBouncer %s", a, b)
	}
}

// TestServerEndsWithItsProcess runs this test binary as another process, kills
// it, and waits until its server has gone.
func TestServerEndsWithItsProcess(t *testing.T) {
	if os.Getenv("PGTEST_VICTIM") != "" {
		s := pgtest.New(t, pgtest.Options{})
		os.Stdout.WriteString("DSN " + s.DSN("postgres") + "\n")
		select {} // until it is killed
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestServerEndsWithItsProcess$")
	cmd.Env = append(os.Environ(), "PGTEST_VICTIM=1", "TMPDIR="+sharedTemp(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 200)
	n, err := out.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	dsn, ok := strings.CutPrefix(strings.TrimSpace(string(text[:n])), "DSN ")
	if !ok {
		t.Fatalf("it said %q", text[:n])
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("it ended by itself")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for pgtest.Exec(dsn, "select 1") == nil {
		if ctx.Err() != nil {
			t.Fatal("the server outlived the process that started it")
		}
	}
}

// sharedTemp returns a temporary folder, gone after the test, that the server's
// user can enter: the folders of a killed process nobody else removes.
func sharedTemp(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir[:strings.LastIndexByte(dir, '/')], dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
