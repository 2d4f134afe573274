package cli

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	randv2 "math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/cli/instance"
	"github.com/onceward/onceward/internal/cli/sender"
	"github.com/onceward/onceward/provider"
)

// crashSource describes the sender of the crash test in the language of the
// configuration. Each event tells a status and an amount of one order, and the
// clock grows by one with each event.
const crashSource = `
store: $CRASH_STORE
sources:
  acme:
    secrets: [$CRASH_SECRET]
    verify: {scheme: hmac, header: X-Acme-Signature}
    event: {key: body.id, type: body.type, time: body.at}
    kinds:
      order: {states: [[created, paid, shipped, returned]]}
    facts:
      order: {kind: order, key: body.order, status: body.status, fields: {amount: body.amount, parts: {sum: body.part, by: body.id}}}
`

const crashSecret = "secret-of-the-crash-test"

// TestCrash kills the program with SIGKILL while senders deliver to it over several
// connections, one process or two on one database; on PostgreSQL it ends the
// database as well, under a program that lives on. After each start it looks for
// every event: those that were acknowledged are there once, with their state, and
// nothing is there that nobody sent. ONCEWARD_CRASH is how often it kills,
// ONCEWARD_SEED repeats a run.
func TestCrash(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "onceward")
	build := exec.Command("go", "build", "-o", binary, "github.com/onceward/onceward/cmd/onceward")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	for _, s := range crashStores {
		t.Run(s.name, func(t *testing.T) { crash(t, s.open(t), crashProgram{binary}, nil) })
	}
}

// TestCrashLibrary is TestCrash with the other door: a process that has the inbox
// as a library, with handlers. All work that follows from what is stored is done,
// and done again only where a kill fell between doing it and saying so.
func TestCrashLibrary(t *testing.T) {
	if os.Getenv(crashServe) != "" { // started by the test as the process to kill
		if err := serveCrash(t.Context()); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, s := range crashStores {
		t.Run(s.name, func(t *testing.T) { crash(t, s.open(t), crashLibrary{}, newCrashWork()) })
	}
}

func crashSeed(t *testing.T) uint64 {
	t.Helper()
	if text := os.Getenv("ONCEWARD_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("ONCEWARD_SEED=%s is no seed", text)
		}
		return seed
	}
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	return uint64(binary.LittleEndian.Uint32(b[:]))
}

func crashKills(t *testing.T) int {
	t.Helper()
	text := os.Getenv("ONCEWARD_CRASH")
	switch {
	case text != "":
	case testing.Short():
		return 3
	default:
		return 5
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("ONCEWARD_CRASH=%s is no number of kills", text)
	}
	return n
}

// crashRun is one run over one store.
type crashRun struct {
	t        *testing.T
	store    crashStore
	victim   crashVictim
	dir      string
	env      []string
	provider *provider.Provider
	ledger   crashLedger
	client   *sender.Client
	rng      *randv2.Rand
	work     *crashWork // nil if nobody has handlers
	judged   *judgement // what has been looked at so far

	started, kills, stops, outages, cut int
}

func crash(t *testing.T, store crashStore, victim crashVictim, work *crashWork) {
	seed, kills := crashSeed(t), crashKills(t)
	t.Logf("ONCEWARD_SEED=%d", seed)
	r := &crashRun{
		t: t, store: store, victim: victim, dir: t.TempDir(), client: sender.New(16, time.Now),
		env:    append(os.Environ(), "CRASH_STORE="+store.url, "CRASH_SECRET="+crashSecret),
		ledger: crashLedger{sent: map[string]*crashEvent{}},
		rng:    randv2.New(randv2.NewPCG(seed, 0)), work: work,
	}
	defer r.client.Close()
	r.client.HTTP.Transport = &crashTransport{r.client.HTTP.Transport, t}
	if err := os.WriteFile(filepath.Join(r.dir, "onceward.yaml"), []byte(crashSource), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	r.provider, err = provider.Compile(provider.SourceConfig{
		Name: "acme", Secrets: []string{crashSecret}, Text: []byte(crashSource), At: []string{"sources", "acme"},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.judged = newJudgement(&r.ledger, r.provider.Kinds()["order"], r.work)
	for n := 0; r.kills < kills; n++ {
		r.round(n)
		if t.Failed() {
			return
		}
	}
	r.last()
	if r.cut == 0 {
		t.Error("no delivery was cut off by a kill, so nothing was put to the test")
	}
	t.Logf("%d kills and %d ends of the database cut off %d deliveries, %d of which were kept; %d events sent",
		r.kills, r.outages, r.cut, r.judged.untold, len(r.ledger.sent))
	r.judgeAll()
}

// crashTransport wants every 503 to say when to come again.
type crashTransport struct {
	http.RoundTripper
	t *testing.T
}

// RoundTrip implements http.RoundTripper.
func (c *crashTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "" {
		c.t.Error("a 503 says not when to come again")
	}
	return resp, err
}

// CloseIdleConnections makes that of http.Client work.
func (c *crashTransport) CloseIdleConnections() {
	if t, ok := c.RoundTripper.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

// begin starts so many servers, looks at the store while they are idle, and lets
// them work.
func (r *crashRun) begin(servers int) []*crashServer {
	var all []*crashServer
	for range servers {
		r.started++
		s, err := r.victim.start(r, r.started)
		if err != nil {
			r.t.Fatalf("start server %d: %v", r.started, err)
		}
		all = append(all, s)
		r.t.Cleanup(s.abort)
	}
	r.judgeNew()
	for _, s := range all {
		if err := s.begin(); err != nil {
			r.t.Fatal(err)
		}
	}
	return all
}

// round starts one server or two, loads them, and kills each at a drawn moment; one
// of four second servers is ended as an operator does instead. Now and then it kills
// a server first that has hardly begun; the first of these is about to make the
// tables. Where the database is a server, that goes and comes back in some rounds.
func (r *crashRun) round(n int) {
	if n%4 == 0 {
		r.stillborn()
	}
	servers := r.begin(1 + n%2)
	l := r.load(n, servers)
	if r.store.server != nil && n%3 == 1 {
		r.outage(l)
	}
	for i, s := range servers {
		l.await("acknowledgements", l.through(s, 20+r.rng.IntN(150)))
		<-time.After(time.Duration(r.rng.IntN(3000)) * time.Microsecond)
		if i == 1 && n%8 == 1 {
			r.stop(s)
			continue
		}
		r.kills++
		r.work.kill(s.number)
		s.ending.Store(true)
		if err := s.process.Kill(); err != nil {
			r.t.Error(err)
		}
		if err := s.end(); err == nil {
			r.t.Errorf("server %d ended as if nobody had killed it", s.number)
		}
	}
	l.senders.Wait()
	r.cut += l.cut()
}

// stillborn starts a process and kills it before it is ready, or soon after.
func (r *crashRun) stillborn() {
	r.started++
	r.kills++
	r.work.kill(r.started)
	cmd := r.victim.command(r)
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	<-time.After(time.Duration(r.rng.IntN(200)) * time.Millisecond)
	if err := cmd.Process.Kill(); err != nil {
		r.t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		r.t.Error("a server ended as if nobody had killed it")
	}
}

// outage ends the database server at once, as a crash of it does, while the senders
// go on: they are told to come again later, and nobody that it was kept. When the
// database is there again so are the servers, which nobody has started anew.
func (r *crashRun) outage(l *crashLoad) {
	l.await("acknowledgements", l.more(20+r.rng.IntN(150), 0, 0))
	<-time.After(time.Duration(r.rng.IntN(3000)) * time.Microsecond)
	if err := r.store.server.Crash(); err != nil {
		r.t.Fatal(err)
	}
	r.outages++
	l.down.Add(1)
	l.await("every sender to be told to come later", l.more(0, 0, 1))
	for _, s := range l.servers {
		l.awaitReady(s, http.StatusServiceUnavailable)
	}
	l.down.Add(1)
	if err := r.store.server.Start(); err != nil {
		r.t.Fatal(err)
	}
	l.await("every sender to be acknowledged again", l.more(0, 1, 0))
	for _, s := range l.servers {
		l.awaitReady(s, http.StatusOK)
	}
}

// stop ends a server as an operator does: what it has taken in is stored, what it
// has done is settled.
func (r *crashRun) stop(s *crashServer) {
	s.ending.Store(true)
	if err := s.process.Signal(os.Interrupt); err != nil {
		r.t.Error(err)
	}
	if err := s.end(); err != nil {
		r.t.Errorf("server %d ended with %v", s.number, err)
	}
	r.stops++
}

// last starts a server once more, delivers what was never acknowledged as senders
// do, waits for its work to be done, and ends it as an operator does.
func (r *crashRun) last() {
	s := r.begin(1)[0]
	for _, e := range r.ledger.unacked() {
		ok, err := r.send(s.inbox, e)
		if err != nil || !ok {
			r.t.Errorf("%s: the server that was left alone does not take it: %v", e.id, err)
			continue
		}
		r.ledger.ack(e)
	}
	if r.work != nil {
		r.awaitWork()
	}
	r.stop(s)
}

// awaitWork waits until no job is left.
func (r *crashRun) awaitWork() {
	store := r.open()
	defer r.close(store)
	ctx, cancel := context.WithTimeout(r.t.Context(), crashPatience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		s, err := store.Stats(ctx)
		if err != nil || s.JobsDead > 0 {
			r.t.Fatalf("%d jobs wait and %d are dead, %v; want them done", s.JobsPending, s.JobsDead, err)
		}
		if s.JobsPending == 0 {
			return
		}
		<-again.C
	}
}

// send delivers one event; ok says that it was acknowledged.
func (r *crashRun) send(inbox string, e *crashEvent) (ok bool, err error) {
	known := r.ledger.isAcked(e)
	answer, err := r.client.Send(context.Background(), &sender.Delivery{
		Provider: r.provider, To: inbox + "/in/acme", Header: http.Header{"Content-Type": {"application/json"}}, Body: e.body,
	})
	switch {
	case err != nil:
		return false, err
	case answer.Status == http.StatusOK:
		if known && answer.Outcome != "duplicate" {
			r.t.Errorf("%s was acknowledged before and is %s now", e.id, answer.Outcome)
		}
		return true, nil
	case answer.Status == http.StatusServiceUnavailable:
		return false, nil
	}
	r.t.Errorf("%s was answered %d %s", e.id, answer.Status, answer.Reason)
	return false, errors.New("a wrong answer")
}

func (r *crashRun) open() onceward.Store {
	r.t.Helper()
	store, err := instance.OpenStore(r.t.Context(), r.store.url, instance.Read)
	if err != nil {
		r.t.Fatal(err)
	}
	return store
}

func (r *crashRun) close(store onceward.Store) {
	r.t.Helper()
	if err := store.Close(); err != nil {
		r.t.Error(err)
	}
}

// judgeNew looks at what is new since it last did.
func (r *crashRun) judgeNew() {
	if r.store.quiet != nil {
		r.store.quiet(r.t)
	}
	if r.store.check != nil {
		r.store.check(r.t)
	}
	store := r.open()
	defer r.close(store)
	if err := r.judged.look(r.t.Context(), store); err != nil {
		r.t.Fatal(err)
	}
	r.report(r.judged.faults)
}

// judgeAll holds all that there is in the end against all that was sent and done.
func (r *crashRun) judgeAll() {
	if r.store.check != nil {
		r.store.check(r.t)
	}
	store := r.open()
	defer r.close(store)
	faults, err := r.ledger.judge(r.t.Context(), store)
	if err != nil {
		r.t.Fatal(err)
	}
	r.report(faults)
	whole := newJudgement(&r.ledger, r.provider.Kinds()["order"], r.work)
	if err := whole.look(r.t.Context(), store); err != nil {
		r.t.Fatal(err)
	}
	r.report(whole.faults)
	if r.work == nil {
		return
	}
	faults, told := r.work.judge(whole.wanted)
	r.report(faults)
	r.t.Log(told)
}

// report fails the test for what was found, and shows the first of it.
func (r *crashRun) report(faults []string) {
	const most = 20
	for i, fault := range faults {
		if i == most {
			r.t.Errorf("and %d more", len(faults)-most)
			return
		}
		r.t.Error(fault)
	}
}

func crashBody(e *crashEvent) []byte {
	return fmt.Appendf(nil, `{"id":%q,"type":"order.%s","at":%d,"order":%q,"status":%q,"amount":%d,"part":1}`, e.id, e.status, e.at, e.order, e.status, e.amount)
}
