package pgtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Bouncer starts a PgBouncer in transaction mode before the database that dsn
// names, with at most size connections to it, and returns the database's
// address there. It ends with the test.
func Bouncer(t testing.TB, dsn string, size int) string {
	t.Helper()
	path, err := findBouncer()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	target, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatalf("pgtest: read the address of the database: %v", err)
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		t.Fatalf("pgtest: make a folder for PgBouncer: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	o, err := unprivileged()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	password := ""
	if target.Password != "" {
		password = "password='" + strings.ReplaceAll(target.Password, "'", "''") + "'"
	}
	ini := fmt.Sprintf(`[databases]
%s = host=%s port=%d user=%s %s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
`, target.Database, target.Host, target.Port, target.User, password, port, size)
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(ini), 0o600); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	for _, path := range []string{dir, file} {
		if err := o.own(path); err != nil {
			t.Fatalf("pgtest: %v", err)
		}
	}
	p, err := run(dir, o, path, file)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := p.end(quit, os.Kill); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	there := fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", target.User, port, target.Database)
	if err := p.await(func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, there)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	}); err != nil {
		t.Fatalf("pgtest: start PgBouncer: %v", err)
	}
	return there
}

func findBouncer() (string, error) {
	if path, err := find("pgbouncer"); err == nil {
		return path, nil
	}
	const debian = "/usr/sbin/pgbouncer" // not on every user's PATH
	if _, err := os.Stat(debian); err != nil {
		return "", fmt.Errorf("PgBouncer is not on this machine: there is no pgbouncer on PATH or in /usr/sbin; `make test` installs it")
	}
	return debian, nil
}
