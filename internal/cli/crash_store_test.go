package cli

import (
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward/internal/pgtest"
)

// crashStore is a database that outlives those who use it.
type crashStore struct {
	url string
	// server is the database's own, if there is one that can be ended.
	server *pgtest.Server
	// check, if not nil, wants its files to be sound.
	check func(t *testing.T)
	// quiet, if not nil, waits until nothing is done any more for processes that are
	// dead: a database server goes on with what it has been sent.
	quiet func(t *testing.T)
}

// crashStores are the kinds there are.
var crashStores = []struct {
	name string
	open func(t *testing.T) crashStore
}{
	{"SQLite", func(t *testing.T) crashStore {
		path := filepath.Join(t.TempDir(), "crash.db")
		return crashStore{url: "sqlite:" + path, check: func(t *testing.T) { soundFile(t, path) }}
	}},
	{"PostgreSQL", func(t *testing.T) crashStore {
		s := pgtest.New(t, pgtest.Options{Fsync: true})
		url := s.Database(t)
		return crashStore{url: url, server: s, quiet: func(t *testing.T) { quietSessions(t, url) }}
	}},
}

// soundFile asks SQLite whether a file is whole, as anybody may.
func soundFile(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	var found string
	err = errors.Join(db.QueryRow("pragma integrity_check").Scan(&found), db.Close())
	if err != nil || found != "ok" {
		t.Errorf("the file is not sound: %s, %v", found, err)
	}
}

// quietSessions waits until no session is in a transaction.
func quietSessions(t *testing.T, url string) {
	t.Helper()
	const busy = `select from pg_stat_activity
		where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid() and state <> 'idle'`
	deadline := time.NewTimer(crashPatience)
	defer deadline.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		err := pgtest.Exec(url, `select 1 / (case when exists (`+busy+`) then 0 else 1 end)`)
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-deadline.C:
			t.Fatalf("the database is not quiet: %v", err)
		}
	}
}

// crashServer is a process that is to be killed.
type crashServer struct {
	number       int
	inbox, ready string // addresses
	process      *os.Process
	begin        func() error // lets it work
	end          func() error // waits for its end
	ending       atomic.Bool  // somebody is ending it
}

// abort ends it if nobody has.
func (s *crashServer) abort() {
	if !s.ending.Swap(true) {
		_ = s.process.Kill()
		_ = s.end()
	}
}

// crashVictim is a kind of process to kill.
type crashVictim interface {
	// command makes the command that is one on the run's store.
	command(r *crashRun) *exec.Cmd
	// start starts one with a number, and returns when it is ready.
	start(r *crashRun, number int) (*crashServer, error)
}

// crashProgram is the program itself, which has no handlers.
type crashProgram struct{ binary string }

func (p crashProgram) args() []string {
	return []string{"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
}

func (p crashProgram) command(r *crashRun) *exec.Cmd {
	cmd := exec.Command(p.binary, append([]string{"serve"}, p.args()...)...)
	cmd.Dir, cmd.Env = r.dir, r.env
	return cmd
}

func (p crashProgram) start(r *crashRun, number int) (*crashServer, error) {
	s, inbox, admin, err := startServer(p.binary, r.dir, r.env, p.args()...)
	if err != nil {
		return nil, err
	}
	return &crashServer{
		number: number, inbox: inbox, ready: admin + "/readyz", process: s.cmd.Process, end: s.end,
		begin: func() error { return nil },
	}, nil
}
