package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/cli/instance"
	"github.com/onceward/onceward/provider"
)

const (
	// crashServe is set in the environment of a process that is to be killed.
	crashServe = "CRASH_SERVE"
	// crashAhead holds how far its clock is ahead. Each round's is by more than a
	// lease further, so that what a killed process held is free at once.
	crashAhead     = "CRASH_AHEAD"
	crashAheadStep = time.Minute
	// crashWorkers is how many jobs a process does at once, crashUnsettled the most
	// that it may have done and not settled: those that are being settled, those
	// that wait for that, and those that wait to wait.
	crashWorkers   = 8
	crashUnsettled = 8 * crashWorkers
)

// crashJob is the identity of a job, as it travels from process to process.
type crashJob struct {
	Handler, Lane string
	Version       int64
}

func (j crashJob) String() string { return fmt.Sprintf("%s %s %d", j.Handler, j.Lane, j.Version) }

// crashLine is what a process that is to be killed tells its test, in one write a
// line: what was written is read although the writer is dead.
type crashLine struct {
	Inbox, Ready string     `json:",omitempty"`
	Did          *crashJob  `json:",omitempty"`
	Settled      []crashJob `json:",omitempty"`
	Failed       []crashJob `json:",omitempty"`
}

// crashTeller writes lines.
type crashTeller struct {
	mu sync.Mutex
	to io.Writer
}

func (c *crashTeller) tell(line crashLine) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.to.Write(append(text, '\n'))
	return err
}

// crashSettling is a store that tells which settlements it has kept.
type crashSettling struct {
	onceward.Store
	teller *crashTeller
}

// Settle implements onceward.Work.
func (c crashSettling) Settle(ctx context.Context, settlements []onceward.Settlement, now time.Time) error {
	err := c.Store.Settle(ctx, settlements, now)
	var jobs []crashJob
	for _, s := range settlements {
		if s.Done {
			jobs = append(jobs, crashJob{s.Handler, s.Lane.String(), s.Version})
		}
	}
	line := crashLine{Settled: jobs}
	if err != nil {
		line = crashLine{Failed: jobs}
	}
	return errors.Join(err, c.teller.tell(line))
}

// serveCrash is the process that is to be killed: a program with the inbox as a
// library. It tells where it listens, waits for a line, and then works until its
// input ends or it is told to stop.
func serveCrash(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ahead, err := time.ParseDuration(os.Getenv(crashAhead))
	if err != nil {
		return err
	}
	compiled, err := provider.Compile(provider.SourceConfig{
		Name: "acme", Secrets: []string{crashSecret}, Text: []byte(crashSource), At: []string{"sources", "acme"},
	})
	if err != nil {
		return err
	}
	store, err := instance.OpenStore(ctx, os.Getenv("CRASH_STORE"), instance.Write)
	if err != nil {
		return err
	}
	teller := &crashTeller{to: os.Stdout}
	in, err := inbox.New(crashSettling{store, teller}, inbox.Config{
		Sources: map[string]inbox.Source{"acme": {Compiled: compiled}},
		Now:     func() time.Time { return time.Now().Add(ahead) },
		Jobs:    inbox.JobConfig{Workers: crashWorkers, Timeout: 10 * time.Second, Poll: 50 * time.Millisecond},
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	for _, name := range []string{"order", "order.paid", "event:order.*"} {
		in.Handle(name, func(_ context.Context, c onceward.Change) error {
			lane := c.Ref().ID()
			if c.Kind == "" {
				e := onceward.Event{Source: c.Source, Scope: c.Scope, Key: c.Event.Key}
				lane = e.ClaimID()
			}
			return teller.tell(crashLine{Did: &crashJob{name, lane.String(), c.Version}})
		})
	}
	err = listenCrash(ctx, stop, in, teller)
	return errors.Join(err, in.Close(context.WithoutCancel(ctx)), store.Close())
}

// listenCrash answers and works.
func listenCrash(ctx context.Context, stop func(), in *inbox.Inbox, teller *crashTeller) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/in/", in.Handler())
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if in.Ready(r.Context()) != nil {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	at := "http://" + l.Addr().String()
	if err := teller.tell(crashLine{Inbox: at, Ready: at + "/readyz"}); err != nil {
		return err
	}
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return errors.Join(err, l.Close())
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test, if nobody else ends this
		stop()
	}()
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served, worked := make(chan error, 1), make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	work, endWork := context.WithCancel(context.Background())
	defer endWork()
	go func() { worked <- in.Run(work) }()
	<-ctx.Done()
	drain, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = server.Shutdown(drain)
	endWork()
	if closed := <-served; !errors.Is(closed, http.ErrServerClosed) {
		err = errors.Join(err, closed)
	}
	return errors.Join(err, <-worked)
}

// crashLibrary is this test's own binary as the process to kill.
type crashLibrary struct{}

func (crashLibrary) command(r *crashRun) *exec.Cmd {
	binary, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(binary, "-test.run=^TestCrashLibrary$", "-test.timeout=0")
	ahead := time.Duration(r.kills+r.stops+1) * crashAheadStep // the same for all of one round
	// What a killed test binary leaves in its temporary folder goes with the test's.
	cmd.Env = append(slices.Clone(r.env), crashServe+"=1", crashAhead+"="+ahead.String(), "TMPDIR="+r.dir)
	cmd.Dir = r.dir
	return cmd
}

func (l crashLibrary) start(r *crashRun, number int) (*crashServer, error) {
	cmd, log := l.command(r), &output{}
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &crashServer{number: number, process: cmd.Process}
	ready, drained := make(chan crashLine, 1), make(chan struct{})
	go func() {
		defer close(drained)
		r.work.listen(number, out, ready)
	}()
	s.begin = func() error {
		_, err := in.Write([]byte("\n"))
		return err
	}
	s.end = func() error {
		<-drained
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("%w: %s", err, log.String())
		}
		return nil
	}
	select {
	case line := <-ready:
		s.inbox, s.ready = line.Inbox, line.Ready
		return s, nil
	case <-drained:
		return nil, errors.Join(errors.New("it ended before it was ready"), s.end())
	}
}

// crashWork is what processes have told of their work.
type crashWork struct {
	mu sync.Mutex // over all below
	// did, settled and failed count what each process has told, by its number.
	did, settled, failed map[crashJob]map[int]int
	killed               map[int]bool
	torn                 int // lines that a kill has cut
}

func newCrashWork() *crashWork {
	return &crashWork{
		did: map[crashJob]map[int]int{}, settled: map[crashJob]map[int]int{}, failed: map[crashJob]map[int]int{}, killed: map[int]bool{},
	}
}

func (w *crashWork) kill(server int) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.killed[server] = true
}

// listen notes what a process tells until it is gone.
func (w *crashWork) listen(server int, out io.Reader, ready chan<- crashLine) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 || lines.Bytes()[0] != '{' {
			continue // go test's own words
		}
		var line crashLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			w.mu.Lock()
			w.torn++
			w.mu.Unlock()
			continue
		}
		if line.Inbox != "" {
			ready <- line
		}
		w.note(server, line)
	}
}

func (w *crashWork) note(server int, line crashLine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := func(in map[crashJob]map[int]int, jobs ...crashJob) {
		for _, job := range jobs {
			if in[job] == nil {
				in[job] = map[int]int{}
			}
			in[job][server]++
		}
	}
	if line.Did != nil {
		count(w.did, *line.Did)
	}
	count(w.settled, line.Settled...)
	count(w.failed, line.Failed...)
}

func (w *crashWork) isDone(job crashJob) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.did[job]) > 0
}

func (w *crashWork) isSettled(job crashJob) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.settled[job]) > 0
}

// judge says where the work that was done is not that which was wanted: all of it,
// nothing else, and again only what a process did and could not settle, because it
// was killed or its database was. told says how much that was.
func (w *crashWork) judge(wanted map[crashJob]bool) (faults []string, told string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for job := range wanted {
		if len(w.did[job]) == 0 {
			fault("the job of %s was never done", job)
		}
	}
	tries, again := 0, 0
	unsettled := map[int]int{} // by the process that was killed
	for job, by := range w.did {
		if !wanted[job] {
			fault("a job of %s was done, which follows from nothing", job)
		}
		final := 0 // tries after which nothing was left to do
		for server, n := range by {
			tries += n
			excused := w.failed[job][server] // a try that could not be settled is made again
			if w.killed[server] && w.settled[job][server] == 0 {
				excused++
				unsettled[server]++
			}
			final += max(0, n-excused)
			if n-excused > w.settled[job][server] {
				fault("the job of %s was done %d times by process %d, which was not killed then, and settled %d times", job, n, server, w.settled[job][server])
			}
		}
		if final > 1 || len(w.settled[job]) > 1 {
			fault("the job of %s was done by %v and settled by %v; it was done again after it was settled", job, by, w.settled[job])
		}
		again += total(by) - 1
	}
	most := 0
	for server, n := range unsettled {
		if most = max(most, n); n > crashUnsettled {
			fault("process %d was killed with %d jobs done and not settled, more than %d: they are not settled as they are done", server, n, crashUnsettled)
		}
	}
	if w.torn > 0 {
		fault("%d lines of the processes cannot be read", w.torn)
	}
	return faults, fmt.Sprintf("%d jobs done in %d tries, %d of them again; a kill left at most %d that were done and not settled", len(w.did), tries, again, most)
}

func total(counts map[int]int) (sum int) {
	for n := range maps.Values(counts) {
		sum += n
	}
	return sum
}
