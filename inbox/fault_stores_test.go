package inbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/pgtest"
	"github.com/onceward/onceward/internal/storetest"
	"github.com/onceward/onceward/postgres"
	"github.com/onceward/onceward/sqlite"
)

// opener opens a store on a database that it knows, each time that it is called.
type opener func(t testing.TB) onceward.Store

// TestFaults has all that is tried with stores of every kind and what they stand on,
// so that most of it shares a server.
func TestFaults(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t, pgtest.Options{})
	for name, test := range map[string]func(*testing.T, *pgtest.Server){
		"every call of a store": everyCallMayFail,
		"a clock that steps":    clockThatSteps,
		"a network":             faultsOfANetwork,
		"no room, or no rights": storesThatCannotWrite,
		"a server that ends":    func(t *testing.T, _ *pgtest.Server) { serversThatEnd(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, server)
		})
	}
}

// onEachStore runs a test on an empty database of each kind, in parallel.
func onEachStore(t *testing.T, server *pgtest.Server, test func(t *testing.T, open opener)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "app.db")
		test(t, func(t testing.TB) onceward.Store {
			t.Helper()
			s, err := sqlite.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			return s
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		dsn := server.Database(t)
		test(t, func(t testing.TB) onceward.Store { return openPostgres(t, dsn, postgres.Config{}) })
	})
}

func openPostgres(t testing.TB, dsn string, cfg postgres.Config) onceward.Store {
	t.Helper()
	s, err := postgres.OpenConfig(ctx, dsn, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pipes is a listener whose connections are in memory, so that HTTP is spoken in a
// bubble. It is the dialling side too.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// overHTTP serves the world's inbox on connections in memory, and returns a client
// of it and what ends both.
func (w *world) overHTTP() (*http.Client, func()) {
	p := newPipes()
	server := &http.Server{Handler: w.Handler()}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(p) }()
	transport := &http.Transport{DialContext: p.dial}
	return &http.Client{Transport: transport}, func() {
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			w.t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			w.t.Errorf("serve: %v", err)
		}
	}
}

// reply is an answer over HTTP.
type reply struct {
	status     int
	retryAfter string
	body       string
}

// post delivers a body over HTTP.
func (w *world) post(client *http.Client, source, body string) (reply, error) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://example.com/in/"+source, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	r.Header = w.signed(source, body).Header
	return send(client, r)
}

func send(client *http.Client, r *http.Request) (reply, error) {
	resp, err := client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header.Get("Retry-After"), string(text)}, err
}

// story is what one run of the fault test delivers; the last body of a key decides
// nothing, the first does.
var story = []struct{ body, want string }{
	{order("e1", "o1", "created", "09:00:00"), "new"},
	{order("e2", "o1", "paid", "10:00:00"), "new"},
	{order("e2", "o1", "paid", "10:00:00"), "duplicate"},
	{order("e2", "o1", "paid", "10:00:00") + " ", "duplicate"}, // other bytes, the same facts
	{order("e2", "o2", "paid", "10:00:00"), "conflict"},
	{order("e3", "o1", "shipped", "11:00:00"), "new"},
	{order("e4", "o1", "parked", "08:00:00"), "new"}, // held until parked is a status
}

// everyCallMayFail plays the story once for each call of the store on its
// way, with that call failing: not applied, or applied though reported failed. The
// sender repeats what is not acknowledged; in the end everything is there once, and
// everything that follows is done once.
func everyCallMayFail(t *testing.T, server *pgtest.Server) {
	onEachStore(t, server, func(t *testing.T, open opener) {
		run, stride := 0, 2
		switch {
		case everything():
			stride = 1
		case testing.Short():
			stride = 5
		}
		for _, method := range []string{"Node", "Register", "Commit", "Event", "Quarantine", "HeldEvents", "Claim", "Settle"} {
			for _, applied := range []bool{false, true} {
				struck := 0
				for call := 1; ; call += stride {
					fault := storetest.Fault{Method: method, Call: call, Applied: applied}
					run++
					p := &play{open: open, source: fmt.Sprint("shop", run), fault: fault}
					synctest.Test(t, p.run)
					if t.Failed() {
						t.Fatalf("with %+v", fault)
					}
					if p.struck == 0 {
						break
					}
					struck++
				}
				if struck == 0 {
					t.Errorf("no call of %s was on the way", method)
				}
				t.Logf("%d calls of %s failed, one in each run; applied: %v", struck, method, applied)
			}
		}
	})
}

// play is one run of the story, in a source of its own.
type play struct {
	open   opener
	source string
	fault  storetest.Fault
	struck int

	mu   sync.Mutex
	done []string // what the handler did, by the event that it followed from
}

const parked = `[parked, created, paid, shipped, [delivered, returned]]`

func (p *play) run(t *testing.T) {
	below := p.open(t)
	defer func() {
		if err := below.Close(); err != nil {
			t.Error(err)
		}
	}()
	faulty := storetest.Faulty(below, p.fault)
	w := p.world(t, faulty, below, shop)
	client, end := w.overHTTP()
	for i, step := range story {
		if i == 0 {
			w.forge(client, p.source)
			synctest.Wait() // until it is written
		}
		got := w.repeatUntilTaken(client, p.source, step.body)
		// A commit that was applied though reported failed makes the repeat a duplicate.
		if got != step.want && !(p.fault.Applied && step.want == "new" && got == "duplicate") {
			t.Errorf("step %d: outcome %s, want %s", i, got, step.want)
		}
	}
	end()
	if err := w.Close(ctx); err != nil {
		t.Error(err)
	}
	w = p.world(t, faulty, below, strings.Replace(shop, "[created, paid, shipped, [delivered, returned]]", parked, 1))
	stop := w.run()
	begin, look := time.Now(), time.NewTicker(10*time.Second)
	for !p.isOver(t, below) {
		if time.Since(begin) > 10*time.Minute {
			t.Error("work is left after ten minutes")
			break
		}
		<-look.C
	}
	look.Stop()
	stop()
	p.struck = faulty.Struck()
	p.check(t, below)
}

// world makes an inbox on the faulty store, and tries again where that fails.
func (p *play) world(t *testing.T, faulty *storetest.FaultyStore, below onceward.Store, definition string) *world {
	t.Helper()
	w := &world{t: t, store: faulty, below: below, clock: &clock{now: time.Now()}}
	cfg := config(t)
	cfg.Now, cfg.Jobs.Poll = time.Now, 15*time.Second // each look for jobs is a call that can fail
	cfg.Sources = map[string]inbox.Source{p.source: {Definition: []byte(definition), Secrets: []string{secret}}}
	var err error
	for range 2 {
		if w.Inbox, err = inbox.New(faulty, cfg); err == nil {
			w.Handle("order", func(_ context.Context, c onceward.Change) error {
				p.mu.Lock()
				defer p.mu.Unlock()
				if c.Source == p.source {
					p.done = append(p.done, fmt.Sprint(c.Event.Key, " ", c.Version))
				}
				return nil
			})
			return w
		}
		if !errors.Is(err, onceward.ErrUnavailable) && !errors.Is(err, onceward.ErrUnknownOutcome) {
			break
		}
	}
	t.Fatalf("new: %v", err)
	return nil
}

// forge delivers something with a wrong signature.
func (w *world) forge(client *http.Client, source string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://example.com/in/"+source, strings.NewReader("{}"))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("X-Signature", "00")
	if a, err := send(client, r); err != nil || a.status != http.StatusUnauthorized {
		w.t.Errorf("a forgery is answered %d, %v", a.status, err)
	}
}

// repeatUntilTaken delivers a body until it is acknowledged, as a sender does, and
// checks each answer against what is stored at that moment.
func (w *world) repeatUntilTaken(client *http.Client, source, body string) string {
	w.t.Helper()
	for range 10 {
		begin := time.Now()
		a, err := w.post(client, source, body)
		if err != nil {
			w.t.Fatalf("a delivery is not answered: %v", err)
		}
		if took := time.Since(begin); took > 4*time.Second {
			w.t.Errorf("answered after %v", took)
		}
		if a.status == http.StatusOK {
			id, outcome := parseAnswer(w.t, a.body)
			if _, err := w.below.Event(ctx, id); err != nil {
				w.t.Fatalf("acknowledged as %d and not stored: %v", id, err)
			}
			return outcome
		}
		pause := time.NewTimer(wantLater(w.t, a))
		<-pause.C
	}
	w.t.Fatal("never acknowledged")
	return ""
}

// wantLater wants an answer that asks for a repeat, and returns after how long.
func wantLater(t testing.TB, a reply) time.Duration {
	t.Helper()
	after, err := strconv.Atoi(a.retryAfter)
	if a.status != http.StatusServiceUnavailable || err != nil || after < 1 || after > 3 {
		t.Fatalf("a fault of the store is answered %d with Retry-After %q", a.status, a.retryAfter)
	}
	return time.Duration(after) * time.Second
}

// isOver reports whether nothing is left to do for the source.
func (p *play) isOver(t *testing.T, below onceward.Store) bool {
	t.Helper()
	held, err := below.HeldEvents(ctx, p.source, 1<<30, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := below.Jobs(ctx, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return len(held) == 0 && !slices.ContainsFunc(jobs, func(j onceward.Job) bool { return j.Change.Source == p.source })
}

// check compares what is stored, and what was done, with the story.
func (p *play) check(t *testing.T, below onceward.Store) {
	t.Helper()
	ref := onceward.Ref{Source: p.source, Kind: "order", Key: "o1"}
	row, err := below.Entity(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := below.History(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, f := range facts {
		if f.Verdict == onceward.Applied {
			want = append(want, fmt.Sprint(f.EventKey, " ", f.Version))
		}
	}
	slices.Sort(want)
	slices.Sort(p.done)
	if row.Status != "shipped" || len(facts) != 4 || len(want) < 3 || row.Version != int64(len(want)) {
		t.Errorf("the row is %s, version %d of %d facts; want shipped, as many as were applied, of 4", row.Status, row.Version, len(facts))
	}
	if !slices.Equal(p.done, want) {
		t.Errorf("the handler was run for %q, want once for each of %q", p.done, want)
	}
	if _, err := below.Entity(ctx, onceward.Ref{Source: p.source, Kind: "order", Key: "o2"}); !errors.Is(err, onceward.ErrNotFound) {
		t.Errorf("the conflicting body made a row: %v", err)
	}
	events, err := below.Events(ctx, onceward.EventQuery{Source: p.source})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[onceward.Outcome]int{}
	for _, e := range events {
		if outcomes[e.Outcome]++; e.Held != 0 {
			t.Errorf("facts of %s are held", e.Key)
		}
	}
	if outcomes[onceward.New] != 4 || outcomes[onceward.Conflict] != 1 || len(events) != 5 {
		t.Errorf("events are %v, want 4 new and a conflict", outcomes)
	}
	rejections, err := below.Rejections(ctx, p.source, 10)
	if err != nil {
		t.Fatal(err)
	}
	kept := 1
	if p.fault.Method == "Quarantine" && !p.fault.Applied && p.struck > 0 {
		kept = 0
	}
	if len(rejections) != kept {
		t.Errorf("%d in quarantine, want %d", len(rejections), kept)
	}
}

// parseAnswer returns what the small JSON says of one event.
func parseAnswer(t testing.TB, text string) (id int64, outcome string) {
	t.Helper()
	var a answer
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatalf("the answer %q is no JSON: %v", text, err)
	}
	id, err := strconv.ParseInt(a.Event, 10, 64)
	if err != nil {
		t.Fatalf("the answer %q names no event", text)
	}
	return id, a.Outcome
}
