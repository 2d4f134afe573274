package postgres_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/pgtest"
	"github.com/onceward/onceward/postgres"
)

// began is the time of everything here.
var began = time.Date(2026, time.March, 4, 5, 6, 7, 890123000, time.UTC)

// teller makes events about jobs, each with an id of its own.
type teller struct {
	mapping *onceward.Mapping
	mu      sync.Mutex
	id      int64 // guarded by mu
}

func newTeller(t testing.TB) *teller {
	t.Helper()
	job, err := onceward.NewKind(onceward.Kind{
		Name: "job", States: [][]string{{"queued"}, {"text"}, {"succeeded", "failed"}}, Terminal: []string{"succeeded", "failed"},
		Order: []onceward.Component{onceward.Rank}, Fields: map[string]onceward.Mode{"parts": onceward.Sum},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &teller{mapping: &onceward.Mapping{Source: "acme", Hash: "one", Revision: 1, Kinds: map[string]*onceward.Kind{"job": job}}, id: 1 << 40}
}

func fact(job, status string, fields ...onceward.Part) onceward.Fact {
	return onceward.Fact{Rule: "callback", Kind: "job", Key: job, Status: status, Fields: fields}
}

func (w *teller) event(key string, facts ...onceward.Fact) *onceward.Arrival {
	w.mu.Lock()
	w.id++
	id := w.id
	w.mu.Unlock()
	body := []byte(fmt.Sprintf(`{"id":%q}`, key))
	return &onceward.Arrival{
		Event: &onceward.Event{
			ID: id, Source: "acme", Key: key, Type: "thing.told", Digest: onceward.DigestOf(body),
			Delivery: &onceward.Delivery{At: began, Method: "POST", Target: "/in/acme", Remote: "203.0.113.7", Body: body},
		},
		Facts: facts, Mapping: w.mapping,
	}
}

func batch(arrivals ...*onceward.Arrival) *onceward.Batch {
	return &onceward.Batch{Arrivals: arrivals, Now: began}
}

func jobRef(key string) onceward.Ref { return onceward.Ref{Source: "acme", Kind: "job", Key: key} }

func open(t testing.TB, dsn string, cfg postgres.Config) *postgres.Store {
	t.Helper()
	s, err := postgres.OpenConfig(context.Background(), dsn, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t testing.TB, s *postgres.Store) {
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func poolConfig(t testing.TB, dsn string) *pgxpool.Config {
	t.Helper()
	pc, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return pc
}

func openPool(t testing.TB, pc *pgxpool.Config, cfg postgres.Config) *postgres.Store {
	t.Helper()
	s, err := postgres.OpenPool(context.Background(), pc, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func commit(t testing.TB, s onceward.Store, arrivals ...*onceward.Arrival) {
	t.Helper()
	if err := s.Commit(context.Background(), batch(arrivals...)); err != nil {
		t.Fatal(err)
	}
}

func want(t testing.TB, dsn, query, wanted string) {
	t.Helper()
	if got := ask(t, dsn, query); got != wanted {
		t.Errorf("%s: %q, want %q", query, got, wanted)
	}
}

// counts are what must agree after whatever has happened: claims, events, facts,
// rows, and the sum of the rows' versions.
const counts = `select (select count(*) from onceward_claims), (select count(*) from onceward_events), (select count(*) from onceward_facts),
	(select count(*) from onceward_rows), (select coalesce(sum(version), 0) from onceward_rows)`

// modes are the ways in which pgx executes statements that a user may choose.
var modes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}

// TestExecModes makes one of everything in each mode.
func TestExecModes(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.Start(t)
			pc := poolConfig(t, dsn)
			pc.ConnConfig.DefaultQueryExecMode = mode
			s := openPool(t, pc, postgres.Config{})
			if s.ExecMode() != mode {
				t.Fatalf("the mode is %v", s.ExecMode())
			}
			w := newTeller(t)
			handler, err := onceward.ParseHandler("job")
			if err != nil {
				t.Fatal(err)
			}
			for i := range 8 { // beyond the five runs after which a plan is kept
				b := batch(
					w.event(fmt.Sprintf("e%d", i), fact("j1", "text", onceward.Part{Field: "parts", By: fmt.Sprint(i), Value: onceward.Int(1)})),
					w.event(fmt.Sprintf("f%d", i), onceward.Fact{Rule: "callback", Held: "no key"}),
					w.event(fmt.Sprintf("e%d", i), fact("j1", "text")),
				)
				b.Handlers = []onceward.Handler{handler}
				b.Arrivals[0].Event.Delivery.Header = map[string][]string{"X-Odd": {"\xff\x00'\\", ""}}
				b.Arrivals[0].Event.Delivery.Body = []byte("\x00\xff'\\ body")
				if err := s.Commit(context.Background(), b); err != nil {
					t.Fatal(err)
				}
				e, err := s.Event(context.Background(), b.Arrivals[0].Event.ID)
				if err != nil {
					t.Fatal(err)
				}
				if string(e.Delivery.Body) != "\x00\xff'\\ body" || e.Delivery.Header["X-Odd"][0] != "\xff\x00'\\" || e.Repeats != 1 || !e.Delivery.At.Equal(began) {
					t.Fatalf("the event came back as %+v of %+v", e, e.Delivery)
				}
			}
			want(t, dsn, counts, "16|16|16|1|8")
			jobs, err := s.Claim(context.Background(), []string{"job"}, 3, began, time.Minute)
			if err != nil || len(jobs) != 3 {
				t.Fatalf("claim: %d jobs, %v", len(jobs), err)
			}
			if err := s.Settle(context.Background(), []onceward.Settlement{{Handler: "job", Lane: jobs[0].Lane, Version: jobs[0].Version, Token: jobs[0].Token, Done: true}}, began); err != nil {
				t.Error(err)
			}
			if err := s.Ping(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// wire counts round trips: something was sent after something was received.
type wire struct {
	mu       sync.Mutex
	trips    int
	received bool
}

type wireConn struct {
	net.Conn
	wire *wire
}

func (c wireConn) Write(b []byte) (int, error) {
	c.wire.mu.Lock()
	if c.wire.received {
		c.wire.trips++
	}
	c.wire.received = false
	c.wire.mu.Unlock()
	return c.Conn.Write(b)
}

func (c wireConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.wire.mu.Lock()
	c.wire.received = true
	c.wire.mu.Unlock()
	return n, err
}

// take returns the count and begins anew.
func (w *wire) take() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.trips
	w.trips = 0
	return n
}

// TestTwoRoundTrips counts them on the wire, on a connection that knows the
// statements.
func TestTwoRoundTrips(t *testing.T) {
	for _, mode := range modes {
		if mode == pgx.QueryExecModeDescribeExec {
			continue // it asks for each statement's types each time, by its nature
		}
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			pc := poolConfig(t, pgtest.Start(t))
			pc.ConnConfig.DefaultQueryExecMode = mode
			pc.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
			wire := &wire{}
			dial := pc.ConnConfig.DialFunc
			pc.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				return wireConn{conn, wire}, err
			}
			s := openPool(t, pc, postgres.Config{})
			w := newTeller(t)
			round := func(i int) {
				var arrivals []*onceward.Arrival
				for j := range 20 {
					arrivals = append(arrivals, w.event(fmt.Sprintf("e%d-%d", i, j), fact(fmt.Sprintf("j%d", j), "text")))
				}
				commit(t, s, arrivals...)
			}
			round(0)
			commit(t, s, w.event("e0-0", fact("j0", "text")))
			wire.take()
			for i := 1; i <= 5; i++ {
				round(i)
				if n := wire.take(); n != 2 {
					t.Errorf("a batch of 20 new events took %d round trips, want 2", n)
				}
			}
			commit(t, s, w.event("e1-0", fact("j0", "text")))
			if n := wire.take(); n != 2 {
				t.Errorf("a duplicate took %d round trips, want 2", n)
			}
		})
	}
}
