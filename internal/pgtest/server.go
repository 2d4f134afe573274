package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options say how a server of one's own is to run.
type Options struct {
	// Fsync makes the server sync what it commits. Off, the default, it may lose
	// everything when the machine fails, which does not matter to most tests,
	// and is faster.
	Fsync bool
	// Settings are further server settings, as wal_level.
	Settings map[string]string
}

// Server is a running PostgreSQL that this package started. Its methods are for
// one goroutine at a time.
type Server struct {
	options Options
	bin     string // the folder of its programs
	dir     string
	owner   *owner
	port    int
	process *process
}

var errMissing = errors.New("PostgreSQL is not on this machine: there is no initdb on PATH or in /usr/lib/postgresql/*/bin; `make test` installs it")

const (
	startPatience = 60 * time.Second
	stopPatience  = 10 * time.Second
)

// New starts a server for one test, which ends with it.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := launch(o)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := s.remove(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return s
}

// launch starts a server in a temporary folder of its own. The folder is not a
// test's, because the server may serve a whole test binary, because a socket's
// path must be short, and because another user than root must be able to enter.
func launch(o Options) (*Server, error) {
	bin, err := find("initdb")
	if err != nil {
		return nil, errMissing
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the server: %w", err)
	}
	s := &Server{options: o, bin: filepath.Dir(bin), dir: dir}
	if err := s.init(); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	if err := s.Start(); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

func (s *Server) init() error {
	var err error
	if s.owner, err = unprivileged(); err != nil {
		return err
	}
	if err := s.owner.own(s.dir); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), "-D", filepath.Join(s.dir, "data"),
		"-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = s.dir, environment(), s.owner.attributes()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// Start starts the server again after Stop or Crash, on the address it had.
func (s *Server) Start() error {
	for try := 1; ; try++ {
		if s.port == 0 {
			port, err := freePort()
			if err != nil {
				return err
			}
			s.port = port
		}
		err := s.start()
		if err == nil {
			return nil
		}
		if try == 3 {
			return fmt.Errorf("start PostgreSQL: %w", err)
		}
		s.port = 0 // somebody may have taken the port in between
	}
}

func (s *Server) start() error {
	settings := map[string]string{
		"listen_addresses": "127.0.0.1", "unix_socket_directories": s.dir,
		"max_connections": "100", "shared_buffers": "32MB", "lc_messages": "C", "fsync": "on",
	}
	if !s.options.Fsync {
		settings["fsync"], settings["full_page_writes"] = "off", "off"
	}
	maps.Copy(settings, s.options.Settings)
	args := []string{"-D", filepath.Join(s.dir, "data"), "-p", strconv.Itoa(s.port)}
	for name, value := range settings {
		args = append(args, "-c", name+"="+value)
	}
	p, err := run(s.dir, s.owner, filepath.Join(s.bin, "postgres"), args...)
	if err != nil {
		return err
	}
	s.process = p
	return p.await(func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, s.DSN("postgres"))
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
}

// Stop ends the server's sessions and the server, as `pg_ctl -m fast` does.
func (s *Server) Stop() error { return s.end(os.Interrupt) }

// Crash ends the server without a checkpoint, as `pg_ctl -m immediate` does;
// the next Start recovers.
func (s *Server) Crash() error { return s.end(quit) }

func (s *Server) end(sig os.Signal) error {
	if s.process == nil {
		return nil
	}
	err := s.process.end(sig, quit, os.Kill)
	s.process = nil
	return err
}

func (s *Server) remove() error {
	return errors.Join(s.end(quit), os.RemoveAll(s.dir))
}

// DSN returns the address of a database of the server, as its superuser.
func (s *Server) DSN(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// Database returns the address of a fresh database, which goes with the test.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return database(t, s.DSN("postgres"))
}

// find looks for a program on PATH and where Debian puts PostgreSQL's, newest
// first.
func find(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			path = resolved // its siblings need not be on PATH
		}
		return path, nil
	}
	found, err := filepath.Glob(filepath.Join("/usr/lib/postgresql/*/bin", program))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("there is no %s", program)
	}
	slices.SortFunc(found, func(a, b string) int { return major(b) - major(a) })
	return found[0], nil
}

func major(path string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	if err != nil {
		return 0
	}
	return n
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// environment is what a server inherits: nothing that could change how it runs.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
}
