package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/onceward/onceward/internal/cli/screen"
)

var update = flag.Bool("update", false, "write the golden files and the scripts' expected output")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"onceward": func() { os.Exit(run()) }})
}

// run is main of cmd/onceward.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Main(ctx, os.Args[1:], World{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Now: time.Now, Random: rand.Reader,
	})
}

// TestScripts runs the commands as a person would. A script has, besides the
// commands of testscript:
//
//	exits CODE CMD...     run and want this exit code
//	serve NAME ARGS...    start `onceward serve ARGS` on free ports and wait until it
//	                      is ready; $INBOX and $ADMIN are its addresses
//	end NAME              end it as an operator does, want exit code 0, and leave its
//	                      output in NAME.out and NAME.err
//	steady FROM TO        copy stdout, stderr or a file with times, ids and ports
//	                      replaced, and no line wider than the screen; with whole
//	                      behind it, lines of any width
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits, "serve": cmdServe, "end": cmdEnd, "steady": cmdSteady,
		},
		Setup: func(e *testscript.Env) error {
			e.Values[servers{}] = map[string]*served{}
			return nil
		},
	})
}

// TestEveryCommandHasAScript walks the table of commands.
func TestEveryCommandHasAScript(t *testing.T) {
	a := &app{World: World{Stdout: io.Discard, Stderr: io.Discard, Getenv: os.Getenv}}
	for _, c := range allCommands(a.root()) {
		words := strings.Fields(c.CommandPath())
		if len(words) < 2 || !c.Runnable() || c.Name() == "help" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("testdata", "script", words[1]+".txtar"))
		if err != nil {
			t.Error(err)
			continue
		}
		call := strings.Join(words, " ")
		if words[1] == "serve" {
			call = "serve "
		}
		if !strings.Contains(string(text), call) {
			t.Errorf("the script of %s never calls %q", words[1], call)
		}
		if c.Short == "" || c.Args == nil {
			t.Errorf("%s says not what it does, or takes whatever stands behind it", call)
		}
	}
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE CMD...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	default:
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("the exit code is %d, want %d", got, want)
	}
}

// served is one `onceward serve` of a script.
type served struct {
	cmd      *exec.Cmd
	out, err output
	drained  chan struct{}
}

// output is what a process has written so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// servers is under which a script keeps its servers, by name.
type servers struct{}

// startServer starts the program and waits for its line that says where it
// listens.
func startServer(binary, dir string, env []string, args ...string) (s *served, inbox, admin string, err error) {
	proc := &served{drained: make(chan struct{})}
	proc.cmd = exec.Command(binary, append([]string{"serve"}, args...)...)
	proc.cmd.Dir, proc.cmd.Env, proc.cmd.Stdout = dir, env, &proc.out
	logs, err := proc.cmd.StderrPipe()
	if err != nil {
		return nil, "", "", err
	}
	if err := proc.cmd.Start(); err != nil {
		return nil, "", "", err
	}
	ready := make(chan [2]string, 1)
	go proc.drain(logs, ready)
	select {
	case at := <-ready:
		return proc, at[0], at[1], nil
	case <-proc.drained:
		err = proc.cmd.Wait()
		return nil, "", "", errors.Join(errors.New("it ended before it was ready: "+proc.out.String()+proc.err.String()), err)
	}
}

// drain reads the log to its end and hands over the addresses.
func (s *served) drain(logs io.Reader, ready chan<- [2]string) {
	defer close(s.drained)
	lines := bufio.NewScanner(io.TeeReader(logs, &s.err))
	for lines.Scan() {
		var line struct{ Msg, Inbox, Admin string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "ready" {
			ready <- [2]string{line.Inbox, line.Admin}
		}
	}
}

// end waits for the end of the process.
func (s *served) end() error {
	<-s.drained
	return s.cmd.Wait()
}

func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: serve NAME ARGS...")
	}
	binary, err := exec.LookPath("onceward")
	ts.Check(err)
	env := os.Environ()
	for _, name := range []string{"HOME", "STRIPE_WEBHOOK_SECRET", "KIWIFY_WEBHOOK_SECRET", "SHOP_SECRET", "ADMIN_TOKEN"} {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	s, inbox, admin, err := startServer(binary, ts.MkAbs("."), env, append([]string{"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args[1:]...)...)
	ts.Check(err)
	ts.Setenv("INBOX", inbox)
	ts.Setenv("ADMIN", admin)
	ts.Value(servers{}).(map[string]*served)[args[0]] = s
	ts.Defer(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.end()
		}
	})
}

func cmdEnd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: end NAME")
	}
	s := ts.Value(servers{}).(map[string]*served)[args[0]]
	if s == nil {
		ts.Fatalf("no server %s runs", args[0])
	}
	ts.Check(s.cmd.Process.Signal(syscall.SIGTERM))
	err := s.end()
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".out"), []byte(s.out.String()), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".err"), []byte(s.err.String()), 0o600))
	if err != nil {
		ts.Fatalf("the server ended with %v: %s", err, s.err.String())
	}
}

// unsteady are the texts that differ from run to run, longest first.
var unsteady = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d+`), "TTTT-TT-TT TT:TT:TT.TTT"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d\.\d{3}`), "TT:TT:TT.TTT"},
	{regexp.MustCompile(`\b3\d{18}\b`), "9999999999999999999"},
	{regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `), "TT:TT:TT "},
	{regexp.MustCompile(`127\.0\.0\.1:\d{4,5}`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`t=\d{10},v1=[0-9a-f]{64}`), "t=NOW,v1=SIGNATURE"},
}

func cmdSteady(ts *testscript.TestScript, neg bool, args []string) {
	whole := len(args) == 3 && args[2] == "whole"
	if neg || len(args) != 2 && !whole {
		ts.Fatalf("usage: steady FROM TO [whole]")
	}
	text := ts.ReadFile(args[0])
	for _, u := range unsteady {
		text = u.pattern.ReplaceAllString(text, u.as)
	}
	if !whole && !strings.HasPrefix(strings.TrimSpace(text), "{") && !strings.HasPrefix(strings.TrimSpace(text), "[") {
		for line := range strings.SplitSeq(text, "\n") {
			if n := utf8.RuneCountInString(line); n > screen.Width {
				ts.Fatalf("a line of %d characters: %s", n, line)
			}
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}
