package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/faultproxy"
	"github.com/onceward/onceward/internal/pgtest"
	"github.com/onceward/onceward/postgres"
)

const (
	// answerWithin is the site's Config.AckTimeout, slack what a busy machine adds.
	answerWithin = 700 * time.Millisecond
	slack        = 2 * time.Second
	// recoverWithin is how long a site may take to answer 200 again when what it
	// stands on works.
	recoverWithin = 10 * time.Second
)

// site is an inbox that is served over TCP, on a store that can be made to fail.
type site struct {
	*world
	server *httptest.Server
	client *http.Client
}

// newSite serves an inbox on a store, which it closes at the end.
func newSite(t *testing.T, store onceward.Store) *site {
	t.Helper()
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	s := &site{world: worldOn(t, store, func(cfg *inbox.Config) { cfg.AckTimeout = answerWithin })}
	s.Handle("order", func(context.Context, onceward.Change) error { return nil }) // so that changes make jobs
	s.server = s.listen()
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	s.client = &http.Client{Transport: transport}
	return s
}

// answered is what a sender is told.
type answered struct {
	status  int
	id      int64
	outcome string
}

// try delivers a body once, and wants an answer that the laws allow, in time: 200
// or a 503 that says when to come back.
func (s *site) try(body string) (a answered, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.server.URL+"/in/shop", strings.NewReader(body))
	if err != nil {
		return a, err
	}
	r.Header = s.signed("shop", body).Header
	begin := time.Now()
	got, err := send(s.client, r)
	if err != nil {
		return a, err
	}
	if took := time.Since(begin); took > answerWithin+slack {
		return a, fmt.Errorf("answered %d after %v, which is longer than a sender waits", got.status, took)
	}
	a.status = got.status
	switch a.status {
	case http.StatusOK:
		a.id, a.outcome = parseAnswer(s.t, got.body)
	case http.StatusServiceUnavailable:
		if after := got.retryAfter; after < "1" || after > "3" || len(after) != 1 {
			return a, fmt.Errorf("Retry-After is %q", after)
		}
	default:
		return a, fmt.Errorf("answered %d: %s", a.status, got.body)
	}
	return a, nil
}

// until delivers a body until it is taken, for as long as so, and returns the last
// answer and how many there were.
func (s *site) until(body string, patience time.Duration) (a answered, tries int, err error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		tries++
		if a, err = s.try(body); err != nil || a.status == http.StatusOK {
			return a, tries, err
		}
		select {
		case <-again.C:
		case <-limited.Done():
			return a, tries, fmt.Errorf("not taken within %v, nor after %d tries", patience, tries)
		}
	}
}

// wantOnce wants one event about each order, and all that follows of it once.
func (s *site) wantOnce(t *testing.T, keys ...string) {
	t.Helper()
	got := s.stats()
	n := int64(len(keys))
	if got.Events != n || got.Conflicts != 0 || got.Facts[onceward.Applied] != n || got.Facts[onceward.Held] != 0 || got.JobsPending != n || got.JobsDead != 0 {
		t.Errorf("%d events were delivered, and there is %+v", n, got)
	}
	for _, key := range keys {
		if row := s.row("shop", "order", key); row.Version != 1 || row.Facts != 1 || row.Status != "paid" {
			t.Errorf("the row of %s is %s, version %d of %d facts", key, row.Status, row.Version, row.Facts)
		}
	}
}

// everything reports whether the long form is to be run.
func everything() bool { return os.Getenv("ONCEWARD_FAULTS") != "" }

// wired is a site on a database of a server, behind a proxy.
func wired(t *testing.T, server *pgtest.Server, parameters string) (*site, *faultproxy.Proxy) {
	t.Helper()
	dsn := server.Database(t)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p := faultproxy.New(t, u.Host, faultproxy.TaggedFlights("SQHXp"), faultproxy.TaggedAnswers)
	s := newSite(t, openPostgres(t, pgtest.WithAddress(dsn, p.Addr())+parameters, limits()))
	t.Cleanup(func() { p.Strike(faultproxy.Close) }) // or closing the store waits for what is silent
	return s, p
}

// limits are those of the store: shorter than the senders' patience.
func limits() postgres.Config {
	const limit = 250 * time.Millisecond
	return postgres.Config{StatementTimeout: limit, LockTimeout: limit, IdleInTransaction: limit}
}

// faultsOfANetwork breaks the way to a database, with the whole inbox before it.
func faultsOfANetwork(t *testing.T, server *pgtest.Server) {
	for name, test := range map[string]func(*testing.T, *pgtest.Server){
		"at the first trip":       func(t *testing.T, s *pgtest.Server) { faultsOfACommit(t, s, 1) },
		"at the commit":           func(t *testing.T, s *pgtest.Server) { faultsOfACommit(t, s, 2) },
		"connections that died":   connectionsThatDied,
		"away, by resets":         func(t *testing.T, s *pgtest.Server) { away(t, s, faultproxy.Reset) },
		"away, in silence":        func(t *testing.T, s *pgtest.Server) { away(t, s, faultproxy.Silence) },
		"slow":                    slowNetwork,
		"at chance, while loaded": faultsUnderLoad,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, server)
		})
	}
}

// faultsOfACommit breaks the connection at one of a commit's two round trips, in
// every manner: the sender is told to come back, in time, and when it does
// everything is there once.
func faultsOfACommit(t *testing.T, server *pgtest.Server, trip int) {
	s, p := wired(t, server, "&pool_max_conns=1&default_query_exec_mode=exec")
	var keys []string
	deliver := func(key string) answered {
		t.Helper()
		a, _, err := s.until(order("e"+key, key, "paid", "10:00:00"), recoverWithin)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
		return a
	}
	deliver("o0")
	p.Arm(faultproxy.Fault{Message: 1 << 30}) // counts
	deliver("o1")
	if n := p.Passed(faultproxy.ToServer); n != 2 {
		t.Fatalf("a commit makes %d round trips, want 2", n)
	}
	answers := p.Passed(faultproxy.ToClient)
	outcomes := map[string]int{}
	for i, f := range faultsAt(trip, answers) {
		key := fmt.Sprint("o", i+2)
		p.Arm(f)
		first, err := s.try(order("e"+key, key, "paid", "10:00:00"))
		if err != nil {
			t.Fatalf("%+v: %v", f, err)
		}
		if struck := p.Disarm(); !struck || first.status == http.StatusOK {
			t.Errorf("%+v: answered %d, and the fault has struck: %v", f, first.status, struck)
		}
		outcome := deliver(key).outcome
		switch sent := f.After || f.Way == faultproxy.ToClient; {
		case (trip == 1 || !sent) && outcome != "new", trip == 2 && sent && f.Do == faultproxy.Swallow && outcome != "duplicate":
			t.Errorf("%+v: the repeat is %s", f, outcome)
		}
		outcomes[outcome]++
	}
	if outcomes["new"] == 0 || (outcomes["duplicate"] > 0) != (trip == 2) {
		t.Errorf("the repeats are %v", outcomes)
	}
	s.wantOnce(t, keys...)
}

// faultsAt lists faults of one trip of a commit that is answered by so many messages.
func faultsAt(trip, answers int) []faultproxy.Fault {
	answer := 4 // of the first trip, or near the end of the last
	if trip == 2 {
		answer = answers - 4
	}
	faults := []faultproxy.Fault{{Way: faultproxy.ToClient, Message: answer, Do: faultproxy.Reset}, {Way: faultproxy.ToClient, Message: answer, Do: faultproxy.Silence}}
	for _, do := range []faultproxy.Action{faultproxy.Silence, faultproxy.Swallow, faultproxy.Reset, faultproxy.Close} {
		for _, after := range []bool{true, false} {
			faults = append(faults, faultproxy.Fault{Way: faultproxy.ToServer, Message: trip, After: after, Do: do})
		}
	}
	switch {
	case everything():
		return faults
	case trip == 1: // those of the commit are what matters
		return faults[:4]
	}
	return faults[:7]
}

// connectionsThatDied lets every connection of the pool die while nothing is said,
// last without a word, as where a firewall forgets them.
func connectionsThatDied(t *testing.T, server *pgtest.Server) {
	s, p := wired(t, server, "")
	for i, do := range []faultproxy.Action{faultproxy.Reset, faultproxy.Silence} {
		l := startLoad(s, fmt.Sprint("l", i), 4) // fills the pool
		if err := l.more(20); err != nil {
			t.Fatal(err)
		}
		l.pause()
		p.Strike(do)
		l.once(t, fmt.Sprint("o", i))
		l.again(t)
	}
}

// away cuts the database off for a while, with senders that go on: all are told to
// come back, in time, and nothing piles up.
func away(t *testing.T, server *pgtest.Server, do faultproxy.Action) {
	s, p := wired(t, server, "")
	l := startLoad(s, "l", 8)
	if err := l.more(50); err != nil {
		t.Fatal(err)
	}
	p.Down(do)
	if err := l.moreFailures(50); err != nil {
		t.Fatal(err)
	}
	if n := s.Depth(); n > 8 {
		t.Errorf("%d events wait, of 8 senders", n)
	}
	if err := s.Ready(ctx); !errors.Is(err, onceward.ErrUnavailable) && !errors.Is(err, onceward.ErrUnknownOutcome) {
		t.Errorf("ready while the database is away: %v", err)
	}
	p.Up()
	if err := l.more(50); err != nil {
		t.Fatal(err)
	}
	l.finish(t)
}

// slowNetwork delays all that is said: by so much that a commit is still in time,
// and by more.
func slowNetwork(t *testing.T, server *pgtest.Server) {
	s, p := wired(t, server, "")
	l := startLoad(s, "l", 4)
	if err := l.more(10); err != nil {
		t.Fatal(err)
	}
	failed := l.failed.Load()
	p.Delay(time.Millisecond / 2)
	if err := l.more(20); err != nil {
		t.Fatal(err)
	}
	if n := l.failed.Load() - failed; n > 4 {
		t.Errorf("%d deliveries failed for half a millisecond", n)
	}
	p.Delay(500 * time.Millisecond)
	if err := l.moreFailures(4); err != nil {
		t.Fatal(err)
	}
	p.Delay(0)
	if err := l.more(10); err != nil {
		t.Fatal(err)
	}
	l.finish(t)
}

// faultsUnderLoad breaks connections at chance, again and again, while many senders
// deliver.
func faultsUnderLoad(t *testing.T, server *pgtest.Server) {
	s, p := wired(t, server, "")
	l := startLoad(s, "l", 8)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	rounds := 6
	if everything() {
		rounds = 100
	}
	for range rounds {
		f := faultproxy.Fault{Way: faultproxy.Way(chance.IntN(2)), Message: 1 + chance.IntN(4), After: chance.IntN(2) == 0, Do: faultproxy.Action(chance.IntN(4))}
		if f.Way == faultproxy.ToClient {
			f.Message *= 10
		}
		p.Arm(f)
		if err := l.more(10); err != nil {
			t.Fatalf("%+v: %v", f, err)
		}
	}
	if p.Disarm(); p.Struck() < rounds/2 {
		t.Errorf("%d connections were broken in %d rounds", p.Struck(), rounds)
	}
	l.finish(t)
}

// serversThatEnd crashes, stops and starts a server that syncs what it commits, under
// load, and then tells it to take no writes.
func serversThatEnd(t *testing.T) {
	server := pgtest.New(t, pgtest.Options{Fsync: true})
	t.Run("under load", func(t *testing.T) {
		s := newSite(t, openPostgres(t, server.Database(t), limits()))
		l := startLoad(s, "l", 8)
		for how, end := range map[string]func() error{"at once": server.Crash, "in order": server.Stop} {
			if err := l.more(50); err != nil {
				t.Fatal(err)
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			if err := l.moreFailures(20); err != nil {
				t.Fatalf("the server was ended %s: %v", how, err)
			}
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.more(50); err != nil {
			t.Fatal(err)
		}
		l.finish(t)
	})
	t.Run("no writes", func(t *testing.T) {
		s, stop, resume := readOnlyServer(t, server)
		deliverUntilRefused(t, s, stop, resume)
	})
}

// load is senders that deliver one event after the other, each until it is taken.
type load struct {
	site   *site
	ended  sync.WaitGroup
	stop   chan struct{}
	beat   chan struct{} // one token: something was answered
	acked  atomic.Int64
	failed atomic.Int64

	mu      sync.Mutex
	taken   map[string]int64 // the id that each order's event was acknowledged as; 0 while it is not
	problem error
}

// loadPatience is how long a load may stand still.
const loadPatience = 30 * time.Second

// startLoad starts senders of events about orders whose names begin with prefix.
func startLoad(s *site, prefix string, senders int) *load {
	l := &load{site: s, stop: make(chan struct{}), beat: make(chan struct{}, 1), taken: map[string]int64{}}
	for i := range senders {
		l.ended.Go(func() {
			for n, more := 0, true; more; n++ {
				more = l.deliver(fmt.Sprintf("%s-%d-%d", prefix, i, n))
			}
		})
	}
	s.t.Cleanup(l.pause)
	return l
}

// deliver delivers one event until it is taken, and reports whether to go on.
func (l *load) deliver(key string) bool {
	l.keep(key, 0)
	for {
		select {
		case <-l.stop:
			return false
		default:
		}
		a, err := l.site.try(order("e"+key, key, "paid", "10:00:00"))
		switch {
		case err != nil:
			l.mu.Lock()
			l.problem = errors.Join(l.problem, fmt.Errorf("%s: %w", key, err))
			l.mu.Unlock()
		case a.status == http.StatusOK:
			l.keep(key, a.id)
			l.acked.Add(1)
		default:
			l.failed.Add(1)
		}
		select {
		case l.beat <- struct{}{}:
		default:
		}
		switch {
		case err != nil:
			return false
		case a.status == http.StatusOK:
			return true
		}
		pause := time.NewTimer(20 * time.Millisecond) // less than it was asked for
		select {
		case <-pause.C:
		case <-l.stop:
			pause.Stop()
			return false
		}
	}
}

func (l *load) keep(key string, id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken[key] = id
}

// more waits until so many more events have been acknowledged, moreFailures until
// so many more deliveries were not.
func (l *load) more(n int64) error         { return l.await("acknowledged", &l.acked, n) }
func (l *load) moreFailures(n int64) error { return l.await("refused", &l.failed, n) }

func (l *load) await(what string, count *atomic.Int64, n int64) error {
	limited, cancel := context.WithTimeout(ctx, loadPatience)
	defer cancel()
	for target := count.Load() + n; count.Load() < target; {
		select {
		case <-l.beat:
		case <-limited.Done():
			return fmt.Errorf("%d deliveries are not %s within %v", n, what, loadPatience)
		}
		l.mu.Lock()
		problem := l.problem
		l.mu.Unlock()
		if problem != nil {
			return problem
		}
	}
	return nil
}

// pause ends the senders; each has been answered when it returns.
func (l *load) pause() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.ended.Wait()
}

// once delivers one event more.
func (l *load) once(t *testing.T, key string) {
	t.Helper()
	a, _, err := l.site.until(order("e"+key, key, "paid", "10:00:00"), recoverWithin)
	if err != nil {
		t.Fatal(err)
	}
	l.keep(key, a.id)
}

// again ends the senders, delivers everything once more, and wants it to be what
// was acknowledged. It returns what there is.
func (l *load) again(t *testing.T) (keys []string) {
	t.Helper()
	l.pause()
	if l.problem != nil {
		t.Fatal(l.problem)
	}
	for key, id := range l.taken {
		keys = append(keys, key)
		a, _, err := l.site.until(order("e"+key, key, "paid", "10:00:00"), recoverWithin)
		if err != nil {
			t.Fatal(err)
		}
		if id != 0 && (a.outcome != "duplicate" || a.id != id) {
			t.Errorf("%s was acknowledged as event %d and is then %s of %d", key, id, a.outcome, a.id)
		}
	}
	t.Logf("%d events, %d deliveries refused", len(keys), l.failed.Load())
	return keys
}

// finish is again, and wants everything to be there once.
func (l *load) finish(t *testing.T) {
	t.Helper()
	l.site.wantOnce(t, l.again(t)...)
}
