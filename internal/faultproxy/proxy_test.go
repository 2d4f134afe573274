package faultproxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines takes each line for a message, and the first for one of its own kind: it
// ends with a point.
func lines(b []byte, first bool) int {
	end := byte('\n')
	if first {
		end = '.'
	}
	return bytes.IndexByte(b, end) + 1
}

// echo is a server that answers each line with itself, and keeps what it got.
type echo struct {
	net.Listener
	mu    sync.Mutex
	heard []string
	ended chan error // how each connection ended, from the server's side
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{Listener: l, ended: make(chan error, 100)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { e.serve(c) })
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		running.Wait()
	})
	return e
}

func (e *echo) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	if _, err := r.ReadString('.'); err != nil {
		e.ended <- err
		return
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			e.ended <- err
			return
		}
		e.mu.Lock()
		e.heard = append(e.heard, line)
		e.mu.Unlock()
		if _, err := io.WriteString(c, line); err != nil {
			e.ended <- err
			return
		}
	}
}

// took returns what the server has heard.
func (e *echo) took() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Sprint(e.heard)
}

// caller is a client that says a line and reads what comes back.
type caller struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func call(t *testing.T, p *Proxy) *caller {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, "hello."); err != nil {
		t.Fatal(err)
	}
	return &caller{c, t, bufio.NewReader(c)}
}

func (c *caller) say(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// hear reads a line, for at most so long.
func (c *caller) hear(patience time.Duration) (string, error) {
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
	return c.r.ReadString('\n')
}

const long, short = 10 * time.Second, 50 * time.Millisecond

// TestWhereAFaultStrikes sends three lines in one piece, of which a fault strikes
// at one.
func TestWhereAFaultStrikes(t *testing.T) {
	for _, tt := range []struct {
		about string
		fault Fault
		heard string // by the server
		back  int    // how many lines the client gets, at most
		least int    // and at least
		err   error  // how its connection ends then; nil is by silence
	}{
		{"close before", Fault{ToServer, 3, false, Close}, "[a\n]", 1, 0, io.EOF}, // the greeting is the first message
		{"close after", Fault{ToServer, 3, true, Close}, "[a\n b\n]", 1, 0, io.EOF},
		{"reset before", Fault{ToServer, 3, false, Reset}, "", 1, 0, syscall.ECONNRESET},
		{"swallow before", Fault{ToServer, 3, false, Swallow}, "[a\n]", 1, 0, io.EOF},
		{"swallow after", Fault{ToServer, 3, true, Swallow}, "[a\n b\n]", 1, 0, io.EOF},
		{"swallow an answer", Fault{ToClient, 2, false, Swallow}, "", 1, 1, io.EOF},
		{"silence before", Fault{ToServer, 3, false, Silence}, "[a\n]", 1, 0, nil},
		{"silence after", Fault{ToServer, 4, true, Silence}, "[a\n b\n c\n]", 2, 0, nil},
		{"an answer is not given", Fault{ToClient, 2, false, Close}, "", 1, 1, io.EOF},
		{"an answer is given and then nothing", Fault{ToClient, 2, true, Silence}, "[a\n b\n c\n]", 2, 2, nil},
	} {
		t.Run(tt.about, func(t *testing.T) {
			e := newEcho(t)
			var toClient Framing = func(b []byte, _ bool) int { return lines(b, false) }
			p := New(t, e.Addr().String(), lines, toClient)
			p.Arm(tt.fault)
			c := call(t, p)
			c.say("a\nb\nc\n")
			back := -1
			var err error
			for err == nil {
				back++
				patience := long
				if tt.err == nil && back >= tt.least {
					patience = short
				}
				_, err = c.hear(patience)
			}
			if back < tt.least || back > tt.back {
				t.Errorf("%d lines come back, want %d to %d", back, tt.least, tt.back)
			}
			if want := tt.err; want == nil && !errors.Is(err, os.ErrDeadlineExceeded) || want != nil && !errors.Is(err, want) {
				t.Errorf("the client's connection ends with %v, want %v", err, want)
			}
			if p.Struck() != 1 || !p.Disarm() {
				t.Error("the fault has not struck")
			}
			if tt.err == nil { // the server is not told that the client gave up
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				select {
				case err := <-e.ended:
					t.Errorf("the server is told: %v", err)
				case <-time.After(short):
				}
				p.Strike(Close)
			}
			<-e.ended
			if got := e.took(); tt.heard != "" && got != tt.heard {
				t.Errorf("the server hears %q, want %q", got, tt.heard)
			}
		})
	}
}

func TestDownAndUp(t *testing.T) {
	for _, a := range []Action{Close, Reset, Silence} {
		e := newEcho(t)
		p := New(t, e.Addr().String(), nil, nil)
		c := call(t, p)
		c.say("a\n")
		if line, err := c.hear(long); line != "a\n" {
			t.Fatalf("hears %q, %v", line, err)
		}
		p.Down(a)
		silent := func(c *caller) {
			t.Helper()
			patience := long
			if a == Silence {
				patience = short
			}
			if line, err := c.hear(patience); err == nil || (a == Silence) != errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("action %d: hears %q, %v", a, line, err)
			}
		}
		silent(c)
		if a != Reset { // its greeting may fail
			silent(call(t, p))
		}
		p.Up()
		c = call(t, p)
		c.say("b\n")
		if line, err := c.hear(long); line != "b\n" {
			t.Fatalf("when it is up again: hears %q, %v", line, err)
		}
		if e.took() != "[a\n b\n]" || p.Opened() < 2 {
			t.Errorf("the server hears %q over %d connections", e.took(), p.Opened())
		}
		p.Strike(Reset)
		if _, err := c.hear(long); err == nil {
			t.Error("a reset is not noticed")
		}
	}
}

func TestDelay(t *testing.T) {
	e := newEcho(t)
	p := New(t, e.Addr().String(), lines, nil)
	const delay = 20 * time.Millisecond
	c := call(t, p)
	c.say("a\n")
	if _, err := c.hear(long); err != nil {
		t.Fatal(err)
	}
	p.Delay(delay)
	begin := time.Now()
	for range 3 {
		c.say("b\n")
		if line, err := c.hear(long); line != "b\n" {
			t.Fatalf("hears %q, %v", line, err)
		}
	}
	if took := time.Since(begin); took < 6*delay {
		t.Errorf("three lines there and back took %v, want %v or more", took, 6*delay)
	}
	if p.Passed(ToServer) != 5 {
		t.Errorf("%d messages passed, want 5", p.Passed(ToServer))
	}
}

// TestHalfOfAMessage ends a connection inside of one.
func TestHalfOfAMessage(t *testing.T) {
	e := newEcho(t)
	p := New(t, e.Addr().String(), lines, nil)
	c := call(t, p)
	c.say("a\nhalf")
	if _, err := c.hear(long); err != nil {
		t.Fatal(err)
	}
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := <-e.ended; !errors.Is(err, io.EOF) {
		t.Errorf("the server's connection ends with %v", err)
	}
	if _, err := c.hear(long); !errors.Is(err, io.EOF) {
		t.Errorf("the client's connection ends with %v", err)
	}
}

func TestNoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p := New(t, l.Addr().String(), nil, nil)
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		return // it was reset so early
	}
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("something answers")
	}
}
