package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/faultproxy"
	"github.com/onceward/onceward/internal/pgtest"
	"github.com/onceward/onceward/postgres"
)

// TestLostBeforeTheCommit breaks the connection at the first round trip: nothing
// is kept, and the store says so.
func TestLostBeforeTheCommit(t *testing.T) {
	dsn := pgtest.Start(t)
	p, there := newProxy(t, dsn)
	s := openSteady(t, there, postgres.Config{})
	w := newTeller(t)
	rounds := 0
	for _, f := range []faultproxy.Fault{before, during, after} {
		for range 5 {
			key := fmt.Sprint(rounds)
			a := w.event("e"+key, fact("j"+key, "text"))
			p.Arm(f)
			err := s.Commit(context.Background(), batch(a))
			if !errors.Is(err, onceward.ErrUnavailable) || errors.Is(err, onceward.ErrUnknownOutcome) {
				t.Fatalf("fault %+v: %v, want ErrUnavailable", f, err)
			}
			want(t, dsn, counts, fmt.Sprintf("%d|%[1]d|%[1]d|%[1]d|%[1]d", rounds))
			commit(t, s, a)
			if a.Outcome != onceward.New {
				t.Fatalf("fault %+v: the event is then %v, want new", f, a.Outcome)
			}
			rounds++
		}
	}
	if p.Struck() != rounds {
		t.Errorf("%d connections were broken, want %d", p.Struck(), rounds)
	}
}

// TestLostAtTheCommit breaks the connection at the second round trip: the outcome
// is unknown, and the sender's retry finds the claim or makes it.
func TestLostAtTheCommit(t *testing.T) {
	dsn := pgtest.Start(t)
	p, there := newProxy(t, dsn)
	s := openSteady(t, there, postgres.Config{})
	healthy := open(t, dsn, postgres.Config{})
	w := newTeller(t)
	handler, err := onceward.ParseHandler("job")
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 40
	total := 0
	for name, f := range map[string]faultproxy.Fault{"before": before, "during": during, "after": after} {
		seen := map[onceward.Outcome]int{}
		for i := range rounds {
			total++
			key := fmt.Sprint(total)
			b := batch(w.event("e"+key, fact("j"+key, "text")))
			b.Handlers = []onceward.Handler{handler}
			s.Between(func() { p.Arm(f) })
			if err := s.Commit(context.Background(), b); !errors.Is(err, onceward.ErrUnknownOutcome) {
				t.Fatalf("%s: %v, want ErrUnknownOutcome", name, err)
			}
			if o := b.Arrivals[0].Outcome; o != onceward.Undecided {
				t.Fatalf("%s: the event is said to be %v, and nobody knows", name, o)
			}
			again := batch(w.event("e"+key, fact("j"+key, "text")))
			again.Handlers = b.Handlers
			s.Between(nil)
			retry := s // over a new connection of the same store, or by another node
			if i%2 == 0 {
				retry = healthy
			}
			if err := retry.Commit(context.Background(), again); err != nil {
				t.Fatalf("the retry: %v", err)
			}
			a := again.Arrivals[0]
			seen[a.Outcome]++
			if first := b.Arrivals[0].Event.ID; a.Outcome == onceward.Duplicate && a.StoredID != first {
				t.Errorf("a duplicate of event %d, want %d", a.StoredID, first)
			}
		}
		if seen[onceward.New]+seen[onceward.Duplicate] != rounds || f == before && seen[onceward.New] != rounds || f == after && seen[onceward.Duplicate] != rounds {
			t.Errorf("%s: outcomes of the retries: %v", name, seen)
		}
	}
	want(t, dsn, counts, fmt.Sprintf("%d|%[1]d|%[1]d|%[1]d|%[1]d", total))
	want(t, dsn, `select count(*) from onceward_jobs`, fmt.Sprint(total))
	if p.Struck() != total {
		t.Errorf("%d connections were broken, want %d", p.Struck(), total)
	}
}

// TestFrozenBetweenTrips stops a node that holds its locks. The server ends it
// after two seconds, and others go on as if it had never been.
func TestFrozenBetweenTrips(t *testing.T) {
	dsn := pgtest.Start(t)
	frozen := open(t, dsn, postgres.Config{})
	other := open(t, dsn, postgres.Config{LockTimeout: 20 * time.Second, StatementTimeout: 20 * time.Second}) // it is the server that ends the wait
	w := newTeller(t)
	commit(t, other, w.event("e0", fact("j1", "queued")))
	holds, thaw := make(chan struct{}), make(chan struct{})
	var once sync.Once
	frozen.Between(func() {
		once.Do(func() {
			close(holds)
			<-thaw
		})
	})
	first, second := w.event("e1", fact("j1", "text")), w.event("e1", fact("j1", "text"))
	result := make(chan error, 1)
	go func() { result <- frozen.Commit(context.Background(), batch(first)) }()
	<-holds
	began := time.Now()
	commit(t, other, second)
	if waited := time.Since(began); waited < time.Second || waited > 5*time.Second {
		t.Errorf("the other node waited %v, want about 2 s", waited)
	}
	if second.Outcome != onceward.New || second.Results[0].Version != 2 {
		t.Errorf("the other node's event is %v with %+v, want new at version 2", second.Outcome, second.Results)
	}
	close(thaw)
	if err := <-result; !errors.Is(err, onceward.ErrUnavailable) && !errors.Is(err, onceward.ErrUnknownOutcome) {
		t.Errorf("the frozen node: %v, want ErrUnavailable or ErrUnknownOutcome", err)
	}
	want(t, dsn, counts, "2|2|2|1|2")
	commit(t, frozen, first)
	if first.Outcome != onceward.Duplicate || first.StoredID != second.Event.ID {
		t.Errorf("the frozen node's retry is %v of %d, want a duplicate of %d", first.Outcome, first.StoredID, second.Event.ID)
	}
}

// TestLockTimeout waits for a lock that nobody gives back in time.
func TestLockTimeout(t *testing.T) {
	dsn := pgtest.Start(t)
	s := open(t, dsn, postgres.Config{LockTimeout: 100 * time.Millisecond})
	w := newTeller(t)
	commit(t, s, w.event("e0", fact("j1", "queued")))
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `begin; select 1 from onceward_rows for update`); err != nil {
		t.Fatal(err)
	}
	a := w.event("e1", fact("j1", "text"))
	if err := s.Commit(ctx, batch(a)); !errors.Is(err, onceward.ErrUnavailable) {
		t.Errorf("commit: %v, want ErrUnavailable", err)
	}
	if _, err := conn.Exec(ctx, `rollback`); err != nil {
		t.Fatal(err)
	}
	want(t, dsn, counts, "1|1|1|1|1")
	commit(t, s, a)
	if a.Outcome != onceward.New {
		t.Errorf("the event is then %v, want new", a.Outcome)
	}
}

// TestServerDoesNotAnswer commits to a server that has stopped answering.
func TestServerDoesNotAnswer(t *testing.T) {
	dsn := pgtest.Start(t)
	p, there := newProxy(t, dsn)
	limit := 300 * time.Millisecond
	s := openSteady(t, there, postgres.Config{StatementTimeout: limit, LockTimeout: limit, IdleInTransaction: limit})
	w := newTeller(t)
	commit(t, s, w.event("e0", fact("j1", "queued")))
	p.Arm(hold)
	if err := s.Commit(context.Background(), batch(w.event("e1", fact("j1", "text")))); !errors.Is(err, onceward.ErrUnavailable) {
		t.Errorf("the first round trip: %v, want ErrUnavailable", err)
	}
	reached := false
	s.Between(func() {
		reached = true
		p.Arm(hold)
	})
	var err error
	for n := 0; n < 10 && !reached; n++ { // a busy machine may not get there in time
		err = s.Commit(context.Background(), batch(w.event("e2", fact("j2", "text"))))
	}
	if !reached || !errors.Is(err, onceward.ErrUnknownOutcome) {
		t.Errorf("the second round trip: %v, want ErrUnknownOutcome", err)
	}
	s.Between(nil)
	commit(t, s, w.event("e3", fact("j3", "text")))
}

// TestReadOnly commits to a database that takes no writes.
func TestReadOnly(t *testing.T) {
	dsn := pgtest.Start(t)
	open(t, dsn, postgres.Config{})
	s := open(t, dsn+"&default_transaction_read_only=on", postgres.Config{})
	w := newTeller(t)
	if err := s.Commit(context.Background(), batch(w.event("e1", fact("j1", "text")))); !errors.Is(err, onceward.ErrUnavailable) {
		t.Errorf("commit: %v, want ErrUnavailable", err)
	}
	if err := s.Ping(context.Background()); !errors.Is(err, onceward.ErrUnavailable) {
		t.Errorf("ping: %v, want ErrUnavailable", err)
	}
	if _, err := s.Entities(context.Background(), onceward.EntityQuery{}); err != nil {
		t.Errorf("reading: %v", err)
	}
}

// TestFailover goes on at the next server that takes writes, when the one that
// it is connected to takes none any more.
func TestFailover(t *testing.T) {
	old, next := pgtest.Start(t), pgtest.New(t, pgtest.Options{})
	database := ask(t, old, "select current_database()")
	if err := pgtest.Exec(next.DSN("postgres"), "create database "+database); err != nil {
		t.Fatal(err)
	}
	open(t, next.DSN(database), postgres.Config{})
	primary := poolConfig(t, old).ConnConfig
	second := poolConfig(t, next.DSN(database)).ConnConfig
	s := open(t, fmt.Sprintf("host=%s,%s port=%d,%d user=%s database=%s sslmode=disable target_session_attrs=read-write pool_max_conns=1",
		primary.Host, second.Host, primary.Port, second.Port, primary.User, database), postgres.Config{})
	w := newTeller(t)
	commit(t, s, w.event("e1", fact("j1", "text")))
	if err := pgtest.Exec(old, `alter database `+database+` set default_transaction_read_only = on`); err != nil {
		t.Fatal(err)
	}
	// A session keeps the default that it began with; a demoted server does not.
	if _, err := s.Pool().Exec(context.Background(), "set default_transaction_read_only = on"); err != nil {
		t.Fatal(err)
	}
	a := w.event("e2", fact("j2", "text"))
	failures := 0
	for ; failures < 20; failures++ {
		err := s.Commit(context.Background(), batch(a))
		if err == nil {
			break
		}
		if !errors.Is(err, onceward.ErrUnavailable) {
			t.Fatalf("commit: %v, want ErrUnavailable", err)
		}
	}
	if failures == 0 || failures == 20 {
		t.Errorf("%d commits failed, want one for each connection to the old server", failures)
	}
	want(t, old, counts, "1|1|1|1|1")
	want(t, next.DSN(database), counts, "1|1|1|1|1")
}

// TestRestartUnderLoad crashes, stops and starts a server that syncs, while
// commits are made: what was acknowledged is there, once, with its state.
func TestRestartUnderLoad(t *testing.T) {
	server := pgtest.New(t, pgtest.Options{Fsync: true})
	dsn := server.Database(t)
	s := open(t, dsn, postgres.Config{})
	if len(s.Warnings()) != 0 {
		t.Errorf("warnings of a server that syncs: %q", s.Warnings())
	}
	w := newTeller(t)
	const workers = 4
	var acked, failed atomic.Int64
	progress := make(chan struct{}, 1)
	stop := make(chan struct{})
	events := make([][]*onceward.Arrival, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("%d-%d", i, n)
				a := w.event("e"+key, fact("j"+key, "text"), fact("all", "text", onceward.Part{Field: "parts", By: key, Value: onceward.Int(1)}))
				err := s.Commit(context.Background(), batch(a))
				if err == nil {
					events[i] = append(events[i], a)
					acked.Add(1)
				} else {
					failed.Add(1)
					if !errors.Is(err, onceward.ErrUnavailable) && !errors.Is(err, onceward.ErrUnknownOutcome) {
						t.Errorf("commit: %v, want ErrUnavailable or ErrUnknownOutcome", err)
						return
					}
				}
				select {
				case progress <- struct{}{}:
				default:
				}
			}
		})
	}
	more := func() {
		for target := acked.Load() + 50; acked.Load() < target; {
			<-progress
		}
	}
	for _, end := range []func() error{server.Crash, server.Stop, server.Crash} {
		more()
		if err := end(); err != nil {
			t.Fatal(err)
		}
		for target := failed.Load() + 5; failed.Load() < target; {
			<-progress
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
	}
	more()
	close(stop)
	wg.Wait()
	for i := range workers {
		for _, a := range events[i] {
			e, err := s.Entity(context.Background(), jobRef("j"+a.Event.Key[1:]))
			if err != nil || e.Status != "text" || e.Version != 1 {
				t.Fatalf("acknowledged event %s: its row is %+v, %v", a.Event.Key, e, err)
			}
			commit(t, s, a)
			if a.Outcome != onceward.Duplicate || a.StoredID != a.Event.ID {
				t.Fatalf("acknowledged event %s is then %v of %d", a.Event.Key, a.Outcome, a.StoredID)
			}
		}
	}
	// Whole, whatever was not acknowledged: one row of its own an event, one part
	// of the common row, two facts.
	want(t, dsn, `select (select count(*) from onceward_claims) - n, (select count(*) from onceward_facts) - 2 * n, (select count(*) from onceward_rows) - 1 - n,
		(select (data ->> 'parts')::bigint - n from onceward_entities where key = 'all') from (select count(*) as n from onceward_events) e`, "0|0|0|0")
}

// TestPoolExhausted waits for a connection in vain.
func TestPoolExhausted(t *testing.T) {
	dsn := pgtest.Start(t)
	pool, err := pgxpool.New(context.Background(), dsn+"&pool_max_conns=1")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	limit := 300 * time.Millisecond
	s, err := postgres.New(context.Background(), pool, postgres.Config{StatementTimeout: limit, LockTimeout: limit, IdleInTransaction: limit})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pool.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	w := newTeller(t)
	if err := s.Commit(context.Background(), batch(w.event("e1"))); !errors.Is(err, onceward.ErrUnavailable) {
		t.Errorf("commit: %v, want ErrUnavailable", err)
	}
	conn.Release()
	commit(t, s, w.event("e1"))
}

// TestIdleConnectionsThatDied commits when every connection of the pool has died
// without a word, as where a firewall forgot them: one commit finds that out of all
// of them, and closing does not wait for any.
func TestIdleConnectionsThatDied(t *testing.T) {
	dsn := pgtest.Start(t)
	p, there := newProxy(t, dsn)
	pc := poolConfig(t, there)
	const connections = 2
	pc.MaxConns = connections
	pc.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true } // as after a second of silence
	s, err := postgres.OpenPool(context.Background(), pc, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w := newTeller(t)
	all := make([]*pgxpool.Conn, connections)
	for i := range all {
		if all[i], err = s.Pool().Acquire(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range all {
		c.Release()
	}
	p.Strike(faultproxy.Silence)
	begin := time.Now()
	commit(t, s, w.event("e1", fact("j1", "text")))
	if took := time.Since(begin); took > 6*time.Second {
		t.Errorf("the commit took %v", took)
	}
	p.Strike(faultproxy.Silence)
	limited, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Stats(limited); !errors.Is(err, onceward.ErrUnavailable) {
		t.Errorf("a read over a connection that died: %v, want ErrUnavailable", err)
	}
	begin = time.Now()
	closeStore(t, s)
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("closing took %v", took)
	}
}
