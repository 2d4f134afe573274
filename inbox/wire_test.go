package inbox_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/inbox"
)

// wire is a connection to an inbox over loopback, spoken by hand.
type wire struct {
	net.Conn
	t    testing.TB
	read *bufio.Reader
}

// listen serves the world's inbox on loopback.
func (w *world) listen() *httptest.Server {
	s := httptest.NewServer(w.Handler())
	w.t.Cleanup(s.Close)
	return s
}

func dial(t testing.TB, s *httptest.Server) *wire {
	t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &wire{c, t, bufio.NewReader(c)}
}

func (c *wire) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads the next answer; its body is read too.
func (c *wire) answer() (status int, body string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.read, &http.Request{Method: http.MethodPost})
	if err != nil {
		c.t.Fatalf("no answer: %v", err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode, string(b)
}

// closed reports whether the other side has closed the connection.
func (c *wire) closed() bool {
	_, err := c.read.ReadByte()
	return err != nil
}

// head is a request head with a right signature of the whole body.
func (w *world) head(source, body string, more ...string) string {
	r := w.signed(source, body)
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST /in/%s HTTP/1.1\r\nHost: example.com\r\n", source)
	if err := r.Header.Write(&b); err != nil {
		w.t.Fatal(err)
	}
	for _, line := range more {
		b.WriteString(line + "\r\n")
	}
	return b.String() + "\r\n"
}

func length(body string) string { return fmt.Sprintf("Content-Length: %d", len(body)) }

// chunked writes a body in chunks of so many bytes.
func chunked(body string, size int) string {
	var b strings.Builder
	for len(body) > 0 {
		n := min(size, len(body))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String() + "0\r\n\r\n"
}

const chunkedHeader = "Transfer-Encoding: chunked"

func TestABodyThatIsCutOff(t *testing.T) {
	w := newWorld(t, nil)
	s := w.listen()
	body := order("e1", "o1", "paid", "10:00:00")
	whole := chunked(body, 10)
	for name, text := range map[string]string{
		"a length that is not reached":  w.head("shop", body, length(body)) + body[:len(body)-1],
		"nothing of the body":           w.head("shop", body, length(body)),
		"chunks without their end":      w.head("shop", body, chunkedHeader) + whole[:len(whole)-5],
		"a chunk that is not whole":     w.head("shop", body, chunkedHeader) + "a\r\n12345",
		"a chunk whose size is no size": w.head("shop", body, chunkedHeader) + "xyz\r\n12345\r\n0\r\n\r\n",
	} {
		c := dial(t, s)
		c.send(text)
		if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(c.read)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := string(rest); got != "" && !strings.HasPrefix(got, "HTTP/1.1 400 ") {
			t.Errorf("%s is answered %q", name, got)
		}
	}
	if s := w.stats(); s.Events != 0 || s.Quarantined != 0 {
		t.Errorf("%d events and %d rejections are stored of what did not come", s.Events, s.Quarantined)
	}
}

func TestABodyThatComesSlowly(t *testing.T) {
	w := newWorld(t, nil)
	s := w.listen()
	body := order("e1", "o1", "paid", "10:00:00")
	c := dial(t, s)
	for _, b := range []byte(w.head("shop", body, length(body)) + body) {
		c.send(string(b))
	}
	if status, text := c.answer(); status != 200 {
		t.Errorf("answered %d %s", status, text)
	}
}

func TestChunksOverTheLimit(t *testing.T) {
	w := newWorld(t, func(cfg *inbox.Config) { cfg.MaxBody = 1000 })
	s := w.listen()
	for _, test := range []struct {
		about string
		body  string
		head  string
		want  int
	}{
		{"chunks up to the limit", padded(1000), chunkedHeader, 200},
		{"chunks over it by one byte", padded(1001), chunkedHeader, 413},
		{"chunks far over it", padded(500_000), chunkedHeader, 413},
		{"a length over it", padded(1001), length(padded(1001)), 413},
	} {
		c := dial(t, s)
		text := test.body
		if test.head == chunkedHeader {
			text = chunked(test.body, 100)
		}
		go func() { // the server stops reading at some point, and may close
			_, _ = io.WriteString(c, w.head("shop", test.body, test.head)+text)
		}()
		if status, _ := c.answer(); status != test.want {
			t.Errorf("%s: answered %d, want %d", test.about, status, test.want)
		}
		if test.want == 413 && !c.closed() {
			t.Errorf("%s: the connection stays open in the middle of a body", test.about)
		}
	}
	if s := w.stats(); s.Events != 1 {
		t.Errorf("%d events, want the one within the limit", s.Events)
	}
}

// padded is a body of a length.
func padded(n int) string {
	body := order("e1", "o1", "paid", "10:00:00")
	return body + strings.Repeat(" ", n-len(body))
}

func TestExpectContinue(t *testing.T) {
	w := newWorld(t, func(cfg *inbox.Config) { cfg.MaxBody = 1000 })
	s := w.listen()
	body := order("e1", "o1", "paid", "10:00:00")
	c := dial(t, s)
	c.send(w.head("shop", body, length(body), "Expect: 100-continue"))
	line, err := c.read.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("asked to go on: %q %v", line, err)
	}
	if _, err := c.read.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	c.send(body)
	if status, text := c.answer(); status != 200 {
		t.Errorf("answered %d %s", status, text)
	}
	c = dial(t, s)
	c.send(w.head("shop", padded(2000), length(padded(2000)), "Expect: 100-continue"))
	if status, _ := c.answer(); status != 413 {
		t.Errorf("one that is too large is answered %d before its body comes, want 413", status)
	}
}

func TestPipelining(t *testing.T) {
	w := newWorld(t, nil)
	s := w.listen()
	c := dial(t, s)
	var text strings.Builder
	for i := range 10 {
		body := order(fmt.Sprint("e", i/2), "o1", "paid", "10:00:00")
		text.WriteString(w.head("shop", body, length(body)) + body)
	}
	c.send(text.String())
	for i := range 10 {
		want := []string{`"new"`, `"duplicate"`}[i%2]
		if status, body := c.answer(); status != 200 || !strings.Contains(body, want) {
			t.Errorf("answer %d is %d %s, want %s", i, status, body, want)
		}
	}
}

func TestASenderThatGoesAway(t *testing.T) {
	w := newWorld(t, nil)
	s := w.listen()
	begun, release := w.hold()
	body := order("e1", "o1", "paid", "10:00:00")
	c := dial(t, s)
	c.send(w.head("shop", body, length(body)) + body)
	<-begun
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	release()
	if a := w.ok("shop", body); a.Outcome != "duplicate" {
		t.Errorf("its repeat is %s: what had been taken in is not stored", a.Outcome)
	}
}

func TestMalformedHTTP(t *testing.T) {
	w := newWorld(t, nil)
	s := w.listen()
	for _, text := range []string{
		"nonsense\r\n\r\n",
		"POST /in/shop HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"POST /in/shop HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
		"POST /in/shop HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
		"POST /in/shop HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n",
	} {
		c := dial(t, s)
		c.send(text)
		if status, _ := c.answer(); status != 400 && status != 501 {
			t.Errorf("%q is answered %d", text, status)
		}
	}
	if s := w.stats(); s.Events != 0 || s.Quarantined != 0 {
		t.Errorf("%d events and %d rejections are stored", s.Events, s.Quarantined)
	}
}
