package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onceward/onceward"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestRunDrains ends the server while a sender waits for its answer: the sender
// gets it, and only then does Run return.
func TestRunDrains(t *testing.T) {
	f := newFixture(t, "")
	entered, release := make(chan struct{}), make(chan struct{})
	f.Server.inbox = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		w.WriteHeader(http.StatusOK)
	})
	public, admin := listen(t), listen(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx, public, admin) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	type answer struct {
		status int
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		resp, err := client.Post("http://"+public.Addr().String()+"/in/hook", "application/json", strings.NewReader("{}"))
		if err != nil {
			answered <- answer{err: err}
			return
		}
		answered <- answer{resp.StatusCode, resp.Body.Close()}
	}()
	<-entered
	stop()
	select {
	case err := <-ended:
		t.Fatalf("Run returned %v while a sender waits", err)
	case a := <-answered:
		t.Fatalf("the sender was answered %+v before the handler was", a)
	default:
	}
	close(release)
	if a := <-answered; a.status != http.StatusOK || a.err != nil {
		t.Errorf("the sender was answered %+v", a)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", public.Addr().String()); err == nil {
		t.Error("the listener is still open")
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRunGivesUp: a request that never ends does not keep the server for ever.
func TestRunGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, "")
		public, admin := newPipes(), newPipes()
		entered := make(chan struct{})
		f.Server.inbox = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(entered)
			<-r.Context().Done() // the connection is cut in the end
		})
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx, public, admin) }()
		conn := public.dial()
		if _, err := fmt.Fprint(conn, "POST /in/hook HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-entered
		start := time.Now()
		stop()
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the time to drain", err)
		}
		if took := time.Since(start); took < drainTimeout || took > drainTimeout+time.Second {
			t.Errorf("it took %v", took)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
}

// pipes is a listener of connections in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.conns <- there
	return here
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
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestOneListenerFailing(t *testing.T) {
	f := newFixture(t, "")
	public, admin := listen(t), listen(t)
	if err := public.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Run(context.Background(), public, admin); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want the listener's error", err)
	}
}

func TestLimits(t *testing.T) {
	f := newFixture(t, "")
	public, admin := listen(t), listen(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx, public, admin) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, c := range []struct{ bytes, want int }{{maxHeaderBytes / 2, http.StatusUnauthorized}, {2 * maxHeaderBytes, http.StatusRequestHeaderFieldsTooLarge}} {
		req, err := http.NewRequest(http.MethodPost, "http://"+public.Addr().String()+"/in/hook", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Long", strings.Repeat("x", c.bytes))
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != c.want {
			t.Errorf("%d bytes of headers were answered %d, want %d", c.bytes, resp.StatusCode, c.want)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s := f.httpServer(f.Public())
	if s.ReadTimeout <= 0 || s.ReadHeaderTimeout <= 0 || s.WriteTimeout <= 0 || s.IdleTimeout <= 0 {
		t.Error("a timeout is missing")
	}
}

// TestPublicAnswersSourcesOnly asks the public side for what the admin side has.
func TestPublicAnswersSourcesOnly(t *testing.T) {
	f := newFixture(t, "")
	for _, route := range Routes() {
		if w := post(f.Public(), route.Path, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s is answered %d on the public side", route.Path, w.Code)
		}
	}
}

func TestMetrics(t *testing.T) {
	f := newFixture(t, "")
	f.fill(t)
	quarantined(t, f)
	if w := post(f.Public(), "/in/music", "{}"); w.Code != http.StatusUnauthorized {
		t.Fatalf("an unsigned delivery was answered %d", w.Code)
	}
	text := f.want(t, http.StatusOK, "GET", "/metrics", "")
	for _, line := range []string{
		`onceward_deliveries_total{outcome="new",source="shop"} 3`,
		`onceward_deliveries_total{outcome="duplicate",source="shop"} 1`,
		`onceward_deliveries_total{outcome="conflict",source="hook"} 1`,
		`onceward_deliveries_total{outcome="rejected",source="music"} 1`,
		`onceward_facts_total{source="hook",verdict="held"} 1`,
		`onceward_batch_events_count 8`, // the conflict takes a second trip
		`onceward_commit_seconds_count 8`,
		`onceward_ack_seconds_count{source="shop"} 4`,
		`onceward_queue_events 0`,
		`onceward_jobs_pending 0`,
		`onceward_jobs_dead 0`,
		`onceward_entities 3`,
		`onceward_store_up 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("/metrics lacks %s", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// TestMetricsOutliveTheStore: a store that is down leaves the counters readable.
func TestMetricsOutliveTheStore(t *testing.T) {
	f := newFixture(t, "")
	g := newGauges(func(context.Context) (onceward.Stats, error) { return onceward.Stats{}, onceward.ErrUnavailable }, func() int { return 3 }, f.Server.log)
	m := NewMetrics()
	m.Delivered("shop", onceward.New)
	f.prom = m.handler(g)
	text := f.want(t, http.StatusOK, "GET", "/metrics", "")
	for _, line := range []string{"onceward_store_up 0", "onceward_queue_events 3", `onceward_deliveries_total{outcome="new",source="shop"} 1`} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("/metrics lacks %s", line)
		}
	}
	if strings.Contains(text, "onceward_entities") {
		t.Error("/metrics tells what the store did not")
	}
}
