package storetest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/onceward/onceward"
)

// Worker is how a process that the suite has started gets at a store.
type Worker struct {
	// Open opens the database of a [Database].Location.
	Open func(location string) (onceward.Store, error)
	// Contention is the Harness's.
	Contention func(s onceward.Store) int64
}

// Main is the TestMain of a store's tests. In a process that the suite has
// started from the same binary it does a worker's part instead. It also wants no
// goroutine to be left behind. It does not return.
func Main(m *testing.M, w Worker) {
	if location, ok := os.LookupEnv(workerVariable); ok {
		if err := w.serve(location, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	exit := m.Run()
	if exit == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			exit = 1
		}
	}
	os.Exit(exit)
}

const (
	workerVariable = "ONCEWARD_STORETEST_WORKER"
	// racesVariable holds how many rounds processes race, and lengthens the search
	// for histories that are not linearizable with it.
	racesVariable = "ONCEWARD_RACES"
)

// raceRounds returns how many rounds to race: those of racesVariable, else few.
func raceRounds(t testing.TB) int {
	t.Helper()
	text := os.Getenv(racesVariable)
	switch {
	case text != "":
	case testing.Short():
		return 60
	default:
		return 300
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < raceOrder {
		t.Fatalf("%s=%s is no number of rounds from %d", racesVariable, text, raceOrder)
	}
	return n
}

// order is what a worker is told to do, a line of JSON each.
type order struct {
	// Do is race or load.
	Do string
	// Side is this worker's number, 0 or 1; First is its first round, Rounds how
	// many there are, Size how many of them one commit takes.
	Side, First, Rounds, Size int
}

// report is a worker's answer.
type report struct {
	New, Duplicate int
	// Contended is how many rounds waited for or were refused by somebody else.
	Contended int
	// Shared are the ids under which the event that everybody delivers is stored,
	// by round.
	Shared []int64
	// Committed are the ids of events that are durable.
	Committed []int64
}

// serve opens the store and does what it is told until its input ends.
func (w Worker) serve(location string, in io.Reader, out io.Writer) error {
	s, err := w.Open(location)
	if err != nil {
		return err
	}
	defer s.Close()
	lines, answers := json.NewDecoder(in), json.NewEncoder(out)
	if err := answers.Encode(report{}); err != nil { // ready
		return err
	}
	for {
		var o order
		switch err := lines.Decode(&o); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		switch o.Do {
		case "race":
			r, err := w.race(s, o)
			if err != nil {
				return err
			}
			if err := answers.Encode(r); err != nil {
				return err
			}
		case "load":
			return load(s, o, answers)
		default:
			return fmt.Errorf("unknown order %q", o.Do)
		}
	}
}

// race commits one side of a batch of rounds, from several goroutines at once.
func (w Worker) race(s onceward.Store, o order) (report, error) {
	world, err := workerWorld(s, int64(1+o.Side)<<50+int64(o.First)<<8)
	if err != nil {
		return report{}, err
	}
	before := w.Contention(s)
	said, errs := make([]report, raceCopies), make([]error, raceCopies)
	var clients sync.WaitGroup
	for n := range raceCopies {
		clients.Go(func() { said[n], errs[n] = world.raceClient(s, o, n) })
	}
	clients.Wait()
	if err := errors.Join(errs...); err != nil {
		return report{}, err
	}
	got := report{Shared: said[0].Shared}
	for _, r := range said {
		got.New += r.New
		got.Duplicate += r.Duplicate
		if !slices.Equal(r.Shared, got.Shared) {
			return got, fmt.Errorf("one event is said to be stored as %d and as %d", got.Shared, r.Shared)
		}
	}
	if w.Contention(s) > before {
		got.Contended = o.Rounds
	}
	return got, nil
}

// workerWorld is a world for building arrivals outside of a test.
func workerWorld(s onceward.Store, ids int64) (*world, error) {
	mapping, err := raceMapping("acme")
	if err != nil {
		return nil, err
	}
	w := &world{store: s, source: "acme", mapping: mapping}
	w.ids.Store(ids)
	for _, name := range raceHandlers() {
		h, err := onceward.ParseHandler(name)
		if err != nil {
			return nil, err
		}
		w.handlers = append(w.handlers, h)
	}
	return w, nil
}

// load commits batches of events about few jobs until the process is killed or
// something fails, telling after each which events are durable.
func load(s onceward.Store, o order, answers *json.Encoder) error {
	w, err := workerWorld(s, int64(1)<<52+int64(o.First)<<20)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		var b onceward.Batch
		for i := range 8 {
			b.Arrivals = append(b.Arrivals, w.arrival(fmt.Sprintf("load %d-%d-%d", o.First, n, i), told(fmt.Sprintf("j%d", i%3), []string{"text", "partial"}[n%2])))
		}
		b.Now = began
		if err := s.Commit(context.Background(), &b); err != nil {
			return err
		}
		var r report
		for _, a := range b.Arrivals {
			r.Committed = append(r.Committed, a.StoredID)
		}
		if err := answers.Encode(r); err != nil {
			return err
		}
	}
}

// process is a worker as the suite sees it.
type process struct {
	t       testing.TB
	command *exec.Cmd
	orders  *json.Encoder
	answers *json.Decoder
	in      io.Closer
}

// start starts a worker on the database and waits until it is ready.
func (w *world) start() *process {
	w.t.Helper()
	executable, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	command := exec.Command(executable)
	command.Env = append(os.Environ(), workerVariable+"="+w.db.Location)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		w.t.Fatal(err)
	}
	p := &process{t: w.t, command: command, orders: json.NewEncoder(in), answers: json.NewDecoder(bufio.NewReader(out)), in: in}
	w.t.Cleanup(func() {
		if command.ProcessState == nil {
			_ = command.Process.Kill() // the test has failed
			_ = command.Wait()
		}
	})
	if _, err := p.answer(); err != nil {
		w.t.Fatalf("the worker did not start: %v", err)
	}
	return p
}

func (p *process) answer() (report, error) {
	var r report
	err := p.answers.Decode(&r)
	return r, err
}

// stop ends the worker's input and waits for it to end well.
func (p *process) stop() {
	p.t.Helper()
	if err := p.in.Close(); err != nil {
		p.t.Error(err)
	}
	if err := p.command.Wait(); err != nil {
		p.t.Errorf("the worker ended badly: %v", err)
	}
}
