package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider"
)

// serving is a server that listens as `serve` does, with senders that speak by hand.
type serving struct {
	*fixture
	address string
}

// serve starts the fixture's server on loopback. When the test ends it has to stop,
// and no goroutine may be left of all that the senders did.
func serve(t *testing.T) *serving {
	t.Helper()
	f := newFixture(t, "")
	before := runtime.NumGoroutine()
	public, admin := listen(t), listen(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx, public, admin) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		wantGoroutines(t, before)
	})
	return &serving{f, public.Addr().String()}
}

// wantGoroutines waits until there are no more goroutines than there were.
func wantGoroutines(t *testing.T, before int) {
	t.Helper()
	limited, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for runtime.NumGoroutine() > before {
		select {
		case <-again.C:
		case <-limited.Done():
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines are left, of %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

// sender is a connection that is spoken to by hand.
type sender struct {
	net.Conn
	t    *testing.T
	read *bufio.Reader
}

func (s *serving) dial(t *testing.T) *sender {
	t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	return newSender(t, c)
}

func newSender(t *testing.T, c net.Conn) *sender {
	t.Helper()
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return &sender{c, t, bufio.NewReader(c)}
}

func (c *sender) say(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// said is an answer.
type said struct {
	status     int
	retryAfter string
	body       string
}

// hear reads the next answer.
func (c *sender) hear() (said, error) {
	resp, err := http.ReadResponse(c.read, &http.Request{Method: http.MethodPost})
	if err != nil {
		return said{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return said{resp.StatusCode, resp.Header.Get("Retry-After"), string(b)}, err
}

// wantStatus reads the next answer and wants it to have a status.
func (c *sender) wantStatus(about string, want int) (body string) {
	c.t.Helper()
	a, err := c.hear()
	if err != nil {
		c.t.Fatalf("%s: no answer: %v", about, err)
	}
	if a.status != want {
		c.t.Errorf("%s: answered %d, want %d: %s", about, a.status, want, a.body)
	}
	return a.body
}

// wantEnd wants the server to say nothing more and to end the connection.
func (c *sender) wantEnd(about string) {
	c.t.Helper()
	rest, err := io.ReadAll(c.read)
	if timeout, is := errors.AsType[net.Error](err); is && timeout.Timeout() || len(rest) > 0 {
		c.t.Errorf("%s: the connection goes on with %q, %v", about, rest, err)
	}
}

// event is a body of the source hook.
func event(id string) string {
	return fmt.Sprintf(`{"id":%q,"type":"run.done","at":1767225600,"run":"r-%s","state":"done"}`, id, id)
}

// padded is an event of so many bytes.
func padded(id string, size int) string {
	body := event(id)
	return body + strings.Repeat(" ", size-len(body))
}

// head is the head of a signed delivery to the source hook, without its last line
// end; lines are added to it.
func (s *serving) head(t *testing.T, body string, lines ...string) string {
	t.Helper()
	r := &provider.Request{Method: http.MethodPost, URL: "http://example.com/in/hook", Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
	if err := s.inbox.Provider("hook").Sign(s.clock.now(), r, ""); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString("POST /in/hook HTTP/1.1\r\nHost: example.com\r\n")
	if err := r.Header.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		b.WriteString(line + "\r\n")
	}
	return b.String()
}

// whole is a delivery as it should be.
func (s *serving) whole(t *testing.T, body string) string {
	t.Helper()
	return s.head(t, body, sized(len(body))) + "\r\n" + body
}

func sized(n int) string { return fmt.Sprintf("Content-Length: %d", n) }

const chunkedLine = "Transfer-Encoding: chunked"

// inChunks writes a body in chunks of so many bytes.
func inChunks(body string, size int) string {
	var b strings.Builder
	for chunk := range slices.Chunk([]byte(body), size) {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(chunk), chunk)
	}
	return b.String() + "0\r\n\r\n"
}

// takes delivers an event over a connection of its own, and wants it taken.
func (s *serving) takes(t *testing.T, id, outcome string) {
	t.Helper()
	c := s.dial(t)
	defer c.Close()
	c.say(s.whole(t, event(id)))
	if body := c.wantStatus(id, http.StatusOK); !strings.Contains(body, `"`+outcome+`"`) {
		t.Errorf("%s is answered %s, want %s", id, body, outcome)
	}
}

// wantStored wants the store to hold exactly these bodies, each once, with what
// follows of them, and nothing that was rejected.
func (s *serving) wantStored(t *testing.T, bodies ...string) {
	t.Helper()
	ctx := context.Background()
	got := []string{}
	q := onceward.EventQuery{Limit: 1000}
	for {
		page, err := s.store.Events(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			whole, err := s.store.Event(ctx, e.ID)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(whole.Delivery.Body))
		}
		if len(page) < q.Limit {
			break
		}
		q.Before = page[len(page)-1].ID
	}
	want := slices.Clone(bodies)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d bodies are stored, want %d; the first that differs is %q, want %q", len(got), len(want), firstOther(got, want), firstOther(want, got))
	}
	stats, err := s.store.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n := int64(len(bodies))
	if stats.Events != n || stats.Conflicts != 0 || stats.Entities != n || stats.Facts[onceward.Applied] != n || stats.Quarantined != 0 {
		t.Errorf("%d events came whole, and there is %+v", n, stats)
	}
}

func firstOther(list, than []string) string {
	for i, s := range list {
		if i >= len(than) || s != than[i] {
			return s[:min(len(s), 100)]
		}
	}
	return ""
}

// abort ends a connection by a reset, as the end of a machine does.
func (c *sender) abort() {
	c.t.Helper()
	if err := c.Conn.(*net.TCPConn).SetLinger(0); err != nil {
		c.t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		c.t.Fatal(err)
	}
}

// TestSendersThatStop cuts deliveries off at every place: nothing of them is stored,
// and none is acknowledged.
func TestSendersThatStop(t *testing.T) {
	s := serve(t)
	body := event("whole")
	chunked := s.head(t, body, chunkedLine) + "\r\n" + inChunks(body, 10)
	plain := s.whole(t, body)
	for name, text := range map[string]string{"with a length": plain, "in chunks": chunked} {
		for at := 1; at < len(text); at += 7 {
			for _, abort := range []bool{false, true} {
				c := s.dial(t)
				c.say(text[:at])
				if abort {
					c.abort()
					continue
				}
				if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
				rest, err := io.ReadAll(c.read)
				if err != nil {
					t.Errorf("%s, cut at %d: %v", name, at, err)
				}
				if got := string(rest); got != "" && !strings.HasPrefix(got, "HTTP/1.1 400 ") {
					t.Errorf("%s, cut at %d: answered %q", name, at, got)
				}
				c.Close()
			}
		}
	}
	for name, text := range map[string]string{
		"a chunk whose size is no size":       s.head(t, body, chunkedLine) + "\r\nxyz\r\n",
		"a chunk that is longer than it says": s.head(t, body, chunkedLine) + "\r\n3\r\n12345\r\n0\r\n\r\n",
		"two lengths":                         s.head(t, body, sized(len(body)), sized(5)) + "\r\n" + body,
		"a length below nothing":              s.head(t, body, sized(-1)) + "\r\n",
		"another way of transfer":             s.head(t, body, "Transfer-Encoding: gzip") + "\r\n" + body,
		"a header that is none":               s.head(t, body, "Bad Header: x") + "\r\n" + body,
		"no HTTP":                             "nonsense\r\n\r\n",
	} {
		c := s.dial(t)
		c.say(text)
		if a, err := c.hear(); err == nil && a.status != http.StatusBadRequest && a.status != http.StatusNotImplemented {
			t.Errorf("%s: answered %d", name, a.status)
		}
		c.Close()
	}
	s.wantStored(t)
	s.takes(t, "whole", "new")
	s.wantStored(t, body)
}

// TestTwoWaysToSayALength delivers with a length that is not true, and chunks: the
// chunks decide, as RFC 9112 has it, also where the next request begins.
func TestTwoWaysToSayALength(t *testing.T) {
	s := serve(t)
	body, next := event("e1"), event("e2")
	c := s.dial(t)
	c.say(s.head(t, body, sized(6), chunkedLine) + "\r\n" + inChunks(body, 10) + s.whole(t, next))
	c.wantStatus("with both", http.StatusOK)
	c.wantStatus("behind it", http.StatusOK)
	s.wantStored(t, body, next)
}

// TestLostAnswers sends whole deliveries and goes away before their answers: each
// was taken or was not, and its repeat is taken, once.
func TestLostAnswers(t *testing.T) {
	s := serve(t)
	const senders, each = 8, 10
	var all sync.WaitGroup
	for i := range senders {
		texts := make([]string, each)
		for n := range texts {
			texts[n] = s.whole(t, event(fmt.Sprintf("e%d-%d", i, n)))
		}
		all.Go(func() {
			for n, text := range texts {
				c, err := net.Dial("tcp", s.address)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := io.WriteString(c, text); err != nil {
					t.Error(err)
				}
				if n%2 == 0 {
					err = c.(*net.TCPConn).SetLinger(0)
				}
				if err := errors.Join(err, c.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	var bodies []string
	outcomes := map[string]int{}
	for i := range senders {
		for n := range each {
			body := event(fmt.Sprintf("e%d-%d", i, n))
			bodies = append(bodies, body)
			c := s.dial(t)
			c.say(s.whole(t, body))
			var a struct{ Outcome string }
			if err := json.Unmarshal([]byte(c.wantStatus("a repeat", http.StatusOK)), &a); err != nil {
				t.Fatal(err)
			}
			outcomes[a.Outcome]++
			c.Close()
		}
	}
	if outcomes["new"]+outcomes["duplicate"] != senders*each || outcomes["duplicate"] == 0 {
		t.Errorf("the repeats are %v", outcomes)
	}
	s.wantStored(t, bodies...)
}

// TestExpectContinue asks before it sends a body.
func TestExpectContinue(t *testing.T) {
	s := serve(t)
	body := event("e1")
	const ask = "Expect: 100-continue"
	c := s.dial(t)
	c.say(s.head(t, body, sized(len(body)), ask) + "\r\n")
	c.wantStatus("asked to go on", http.StatusContinue)
	c.say(body)
	c.wantStatus("then", http.StatusOK)
	chunked := event("e2") // the connection is still there
	c.say(s.head(t, chunked, chunkedLine, ask) + "\r\n")
	c.wantStatus("asked to go on in chunks", http.StatusContinue)
	c.say(inChunks(chunked, 20))
	c.wantStatus("then", http.StatusOK)

	c = s.dial(t)
	c.say(s.head(t, body, sized(1<<20+1), ask) + "\r\n")
	c.wantStatus("one that is too large, without asking for its body", http.StatusRequestEntityTooLarge)
	c.wantEnd("one that is too large")
	c = s.dial(t)
	c.say(s.head(t, body, sized(len(body)), "Expect: 999-wonders") + "\r\n")
	c.wantStatus("an expectation that nobody knows", http.StatusExpectationFailed)
	c = s.dial(t)
	c.say(s.head(t, body, sized(len(body)), ask) + "\r\n")
	c.wantStatus("asked, and then nothing comes", http.StatusContinue)
	c.abort()
	s.wantStored(t, body, chunked)
}

// TestPipelining sends many deliveries in one write: each is answered, in order, and
// stored once; nothing behind one that is refused is taken.
func TestPipelining(t *testing.T) {
	s := serve(t)
	const n = 60
	var text strings.Builder
	var bodies []string
	for i := range n {
		body := event(fmt.Sprint("e", i/2))
		if i%2 == 0 {
			bodies = append(bodies, body)
		}
		if i%3 == 0 {
			text.WriteString(s.head(t, body, chunkedLine) + "\r\n" + inChunks(body, 30))
		} else {
			text.WriteString(s.whole(t, body))
		}
	}
	c := s.dial(t)
	c.say(text.String())
	first := map[int]string{}
	for i := range n {
		body := c.wantStatus(fmt.Sprint("request ", i), http.StatusOK)
		var a struct{ Event, Outcome string }
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			first[i/2] = a.Event
		}
		if a.Outcome != []string{"new", "duplicate"}[i%2] || a.Event != first[i/2] {
			t.Errorf("answer %d is %s; the event is %s", i, body, first[i/2])
		}
	}
	c = s.dial(t)
	c.say(s.whole(t, event("before")) + s.head(t, event("no"), sized(2<<20)) + "\r\n" + s.whole(t, event("behind")))
	c.wantStatus("before", http.StatusOK)
	c.wantStatus("too large", http.StatusRequestEntityTooLarge)
	c.wantEnd("behind")
	s.wantStored(t, append(bodies, event("before"))...)
}

// TestChunks sends a body whose length nobody says, in chunks of every form.
func TestChunks(t *testing.T) {
	s := serve(t)
	var bodies []string
	c := s.dial(t)
	for i, size := range []int{1, 2, 7, 1000, 1 << 20} {
		body := padded(fmt.Sprint("e", i), 3000)
		bodies = append(bodies, body)
		c.say(s.head(t, body, chunkedLine) + "\r\n" + inChunks(body, size))
		c.wantStatus(fmt.Sprint("chunks of ", size), http.StatusOK)
	}
	body := event("extended")
	c.say(s.head(t, body, chunkedLine, "Trailer: X-After") + "\r\n" + fmt.Sprintf("%x;name=value\r\n%s\r\n0\r\nX-After: 1\r\n\r\n", len(body), body))
	c.wantStatus("with what may stand beside chunks", http.StatusOK)
	s.wantStored(t, append(bodies, body)...)
}
