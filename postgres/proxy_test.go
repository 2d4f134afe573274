package postgres_test

import (
	"context"
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/faultproxy"
	"github.com/onceward/onceward/internal/pgtest"
	"github.com/onceward/onceward/internal/storetest"
	"github.com/onceward/onceward/postgres"
)

// Faults at the next thing that a client says before it waits for an answer.
var (
	// before hands nothing of it on.
	before = faultproxy.Fault{Way: faultproxy.ToServer, Message: 1, Do: faultproxy.Close}
	// during hands it on and breaks the connection at once.
	during = faultproxy.Fault{Way: faultproxy.ToServer, Message: 1, After: true, Do: faultproxy.Close}
	// after hands it on and lets the server do it, and nobody hears the answer.
	after = faultproxy.Fault{Way: faultproxy.ToServer, Message: 1, After: true, Do: faultproxy.Swallow}
	// hold hands nothing on, either way, and nobody is told.
	hold = faultproxy.Fault{Way: faultproxy.ToServer, Message: 1, Do: faultproxy.Silence}
)

// newProxy starts a proxy before the database that dsn names, and returns its
// address there. What a client says before it waits is one message.
func newProxy(t testing.TB, dsn string) (*faultproxy.Proxy, string) {
	t.Helper()
	return proxyBefore(t, dsn, faultproxy.TaggedFlights("SQHXp"))
}

func proxyBefore(t testing.TB, dsn string, toServer faultproxy.Framing) (*faultproxy.Proxy, string) {
	t.Helper()
	pc := poolConfig(t, dsn)
	p := faultproxy.New(t, net.JoinHostPort(pc.ConnConfig.Host, strconv.Itoa(int(pc.ConnConfig.Port))), toServer, faultproxy.TaggedAnswers)
	return p, pgtest.WithAddress(dsn, p.Addr())
}

// openSteady opens a store whose messages can be counted: it has one connection,
// which is not asked whether it lives, and prepares nothing.
func openSteady(t testing.TB, dsn string, cfg postgres.Config) *postgres.Store {
	t.Helper()
	pc := poolConfig(t, dsn)
	pc.MaxConns = 1
	pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	pc.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	return openPool(t, pc, cfg)
}

// breaker makes the n-th message of a proxy fail.
type breaker struct {
	*faultproxy.Proxy
	store *postgres.Store
	fault faultproxy.Fault
}

// Arm implements [storetest.Breaker]. The store's connection is made first, so that
// its messages are not counted.
func (b breaker) Arm(n int) {
	conn, err := b.store.Pool().Acquire(context.Background())
	if err == nil {
		conn.Release()
	}
	b.fault.Message = n
	b.Proxy.Arm(b.fault)
}

// everyFault is the environment variable that has every message fail, where a plain
// run takes some.
const everyFault = "ONCEWARD_FAULTS"

// TestEveryMessageFails breaks the connection at each message of each operation in
// turn: before the server gets it, after the server has done it, and where the
// server answers.
func TestEveryMessageFails(t *testing.T) {
	for name, tt := range map[string]struct {
		fault  faultproxy.Fault
		stride int // in a plain run
		least  storetest.Least
	}{
		"a message is not given":        {faultproxy.Fault{Way: faultproxy.ToServer, Do: faultproxy.Swallow}, 2, storetest.Least{CommitSteps: 40}},
		"after a message comes no more": {faultproxy.Fault{Way: faultproxy.ToServer, After: true, Do: faultproxy.Swallow}, 3, storetest.Least{CommitSteps: 40, Kept: 4}},
		"an answer is not given":        {faultproxy.Fault{Way: faultproxy.ToClient, Do: faultproxy.Swallow}, 3, storetest.Least{CommitSteps: 40, Kept: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			switch {
			case os.Getenv(everyFault) != "":
				tt.stride = 1
			case testing.Short():
				tt.stride, tt.least = 7, storetest.Least{CommitSteps: 5}
			default:
				tt.least = storetest.Least{CommitSteps: 15}
			}
			dsn := pgtest.Start(t)
			p, there := proxyBefore(t, dsn, faultproxy.Tagged)
			broken := openSteady(t, there, postgres.Config{})
			storetest.FailBelow(t, storetest.Brittle{
				Broken: broken, Breaker: breaker{p, broken, tt.fault}, Sound: open(t, dsn, postgres.Config{}),
				Err: onceward.ErrUnavailable, Stride: tt.stride,
			}, tt.least)
		})
	}
}
