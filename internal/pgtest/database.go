package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Env is the environment variable that may name a server to use in place of one
// of our own: the address of a database whose role may create databases.
const Env = "ONCEWARD_TEST_POSTGRES"

// Main runs a package's tests with one server for all of them, and returns the
// exit code:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
// It names the server in the environment, where [Start] finds it, also in
// programs that the tests start. Where no server can be started it runs the
// tests all the same; those that call Start say why, and fail.
func Main(m interface{ Run() int }) int {
	if os.Getenv(Env) != "" {
		return m.Run()
	}
	s, err := launch(Options{})
	if err != nil {
		return m.Run()
	}
	code := 1
	if err = os.Setenv(Env, s.DSN("postgres")); err == nil {
		code = m.Run()
	}
	for _, err := range []error{err, s.remove()} {
		if err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			code = 1
		}
	}
	return code
}

// Start returns the address of a fresh, empty database, as its owner. It goes
// when the test ends.
func Start(t testing.TB) string {
	t.Helper()
	if dsn := os.Getenv(Env); dsn != "" {
		return database(t, dsn)
	}
	return New(t, Options{}).Database(t)
}

// database makes a database beside the one that dsn names.
func database(t testing.TB, dsn string) string {
	t.Helper()
	name := "onceward_" + strings.ToLower(rand.Text())
	if err := Exec(dsn, "create database "+name+" template template0 encoding 'UTF8'"); err != nil {
		t.Fatalf("pgtest: create a database for the test (the role needs CREATEDB): %v", err)
	}
	t.Cleanup(func() {
		if err := Exec(dsn, "drop database if exists "+name+" with (force)"); err != nil {
			t.Errorf("pgtest: drop the test's database: %v", err)
		}
	})
	return WithDatabase(dsn, name)
}

// WithDatabase returns dsn with another database in it.
func WithDatabase(dsn, name string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return dsn + " dbname=" + name // the later of two settings counts
	}
	u.Path = "/" + name
	return u.String()
}

// WithUser returns dsn with another role in it.
func WithUser(dsn, name string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return dsn + " user=" + name
	}
	u.User = url.User(name)
	return u.String()
}

// WithAddress returns dsn with another host:port in it.
func WithAddress(dsn, address string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		host, port, _ := strings.Cut(address, ":")
		return dsn + " host=" + host + " port=" + port
	}
	u.Host = address
	return u.String()
}

// Exec runs statements on a connection of their own.
func Exec(dsn, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		return fmt.Errorf("execute: %w", err)
	}
	return nil
}
