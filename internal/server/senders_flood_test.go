package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// memory is what the program holds: its heap and its stacks, without garbage.
func memory() int64 {
	runtime.GC() // what it finds unused, stacks too, is free after the next
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// flood writes to c until the other side has had enough, and returns how much was
// written.
func flood(c net.Conn, first, more string, most int64) (written int64, err error) {
	n, err := io.WriteString(c, first)
	for written = int64(n); err == nil && written < most; written += int64(n) {
		n, err = io.WriteString(c, more)
	}
	return written + int64(n), err
}

// inFlight is what may be written to a connection beyond what the server has read:
// the buffers of both ends.
const inFlight = 16 << 20

// TestHeaderFloods sends heads without measure: each is answered 431, or cut off, and
// the connection ends after little more than the limit was read.
func TestHeaderFloods(t *testing.T) {
	s := serve(t)
	before := memory()
	begin := "POST /in/hook HTTP/1.1\r\nHost: example.com\r\n"
	var all sync.WaitGroup
	for name, f := range map[string]struct{ first, more string }{
		"one header without end":  {begin + "X-Long: ", strings.Repeat("x", 64<<10)},
		"headers without end":     {begin, strings.Repeat("X-Many: 1\r\n", 5000)},
		"names without end":       {begin, strings.Repeat("x", 64<<10)},
		"a target without end":    {"POST /in/hook?", strings.Repeat("x", 64<<10)},
		"a method without end":    {"P", strings.Repeat("P", 64<<10)},
		"empty lines without end": {"\r\n", strings.Repeat("\r\n", 32<<10)},
	} {
		c := s.dial(t)
		all.Go(func() {
			if a, err := c.hear(); err == nil && (a.status < 400 || a.status > 431) {
				t.Errorf("%s: answered %d", name, a.status)
			}
		})
		all.Go(func() {
			if written, err := flood(c, f.first, f.more, inFlight); err == nil {
				t.Errorf("%s: %d bytes were written, and the connection goes on", name, written)
				c.Close()
			}
		})
	}
	all.Wait()
	// Written in one go, it is answered for certain.
	many := s.dial(t)
	many.say(begin + strings.Repeat("X-Many: 1\r\n", 2*maxHeaderBytes/11) + "\r\n")
	many.wantStatus("many headers", http.StatusRequestHeaderFieldsTooLarge)
	many.wantEnd("many headers")
	if grown := memory() - before; grown > 8<<20 {
		t.Errorf("%d bytes are held after the floods", grown)
	}
	s.takes(t, "e1", "new")
	s.wantStored(t, event("e1"))
}

// TestBodyFloods sends bodies without measure, many at once: each is answered 413,
// and little more than the limit is read of any.
func TestBodyFloods(t *testing.T) {
	s := serve(t)
	before := memory()
	body := event("e1")
	piece := strings.Repeat("x", 64<<10)
	var all sync.WaitGroup
	var answered atomic.Int64
	for name, f := range map[string]struct {
		senders     int
		first, more string
	}{
		"with a length":    {16, s.head(t, body, sized(1<<40)) + "\r\n", piece},
		"without a length": {16, s.head(t, body, chunkedLine) + "\r\n", fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)},
		"in chunks of one": {2, s.head(t, body, chunkedLine) + "\r\n", strings.Repeat("1\r\nx\r\n", 10_000)},
	} {
		for range f.senders {
			c := s.dial(t)
			all.Go(func() {
				switch a, err := c.hear(); {
				case err != nil: // a sender that goes on writing may lose its answer to a reset
				case a.status == http.StatusRequestEntityTooLarge:
					answered.Add(1)
				default:
					t.Errorf("%s: answered %d", name, a.status)
				}
			})
			all.Go(func() {
				if written, err := flood(c, f.first, f.more, 2*inFlight); err == nil {
					t.Errorf("%s: %d bytes were written, and the connection goes on", name, written)
					c.Close()
				}
			})
		}
	}
	all.Wait()
	if answered.Load() == 0 {
		t.Error("nobody was answered 413")
	}
	if grown := memory() - before; grown > 8<<20 {
		t.Errorf("%d bytes are held after the floods", grown)
	}
	s.takes(t, "e1", "new")
	s.wantStored(t, body)
}

// open opens connections until there are n, or the machine has no more, and says so.
func (s *serving) open(t *testing.T, n int) []net.Conn {
	t.Helper()
	conns := make([]net.Conn, 0, n)
	t.Cleanup(func() {
		for _, c := range conns {
			c.Close()
		}
	})
	for len(conns) < n {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatalf("connection %d: %v", len(conns), err)
		}
		conns = append(conns, c)
	}
	return conns
}

// affordable returns how many connections this process can have both ends of: n, or
// less where the machine's limit or -short says so, which it tells.
func affordable(t *testing.T, n int) int {
	t.Helper()
	limit := openFiles(t, 2*n+500)
	can := min(n, (limit-500)/2)
	if testing.Short() {
		can = min(can, 1000)
	}
	if can < n {
		t.Logf("ONLY %d connections, of %d: a process may have %d files open here, and -short is %v", can, n, limit, testing.Short())
	}
	return can
}

// atOnce runs f for each connection, some at a time.
func atOnce(t *testing.T, conns []net.Conn, f func(c net.Conn) error) {
	t.Helper()
	var all sync.WaitGroup
	next := make(chan net.Conn)
	var failed atomic.Int64
	for range 32 {
		all.Go(func() {
			for c := range next {
				if err := f(c); err != nil && failed.Add(1) == 1 {
					t.Error(err)
				}
			}
		})
	}
	for _, c := range conns {
		next <- c
	}
	close(next)
	all.Wait()
	if n := failed.Load(); n > 1 {
		t.Errorf("and %d more", n-1)
	}
}

// TestIdleConnections holds ten thousand connections that say nothing, or nothing
// more: each costs little, and a fresh sender is answered all the same.
func TestIdleConnections(t *testing.T) {
	s := serve(t)
	n := affordable(t, 10_000)
	s.takes(t, "warm", "new")
	bodies := []string{event("warm")}
	before := memory()
	conns := s.open(t, n)
	asked := conns[:n/2]
	text := "GET /in/hook HTTP/1.1\r\nHost: example.com\r\n\r\n"
	atOnce(t, asked, func(c net.Conn) error {
		if _, err := io.WriteString(c, text); err != nil {
			return err
		}
		buf := make([]byte, 1<<10)
		_, err := c.Read(buf)
		return err
	})
	s.accepted(t, n)
	each := (memory() - before) / int64(n)
	t.Logf("%d idle connections cost %d bytes each, both ends", n, each)
	if each > 40<<10 {
		t.Errorf("an idle connection costs %d bytes", each)
	}
	for i := range 20 {
		id := fmt.Sprint("fresh", i)
		s.takes(t, id, "new")
		bodies = append(bodies, event(id))
	}
	s.wantStored(t, bodies...)
}

// accepted waits until the server has as many goroutines as it needs at least for so
// many connections.
func (s *serving) accepted(t *testing.T, n int) {
	t.Helper()
	limited, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for runtime.NumGoroutine() < n {
		select {
		case <-again.C:
		case <-limited.Done():
			t.Fatalf("%d goroutines for %d connections", runtime.NumGoroutine(), n)
		}
	}
}

// TestPromisedBodies holds many connections that have said how long their bodies
// will be, and no more: what is only promised takes no memory.
func TestPromisedBodies(t *testing.T) {
	s := serve(t)
	n := affordable(t, 2000)
	s.takes(t, "warm", "new")
	body := padded("e1", 64<<10)
	text := s.head(t, body, sized(len(body))) + "\r\n" + body[:10]
	chunked := s.head(t, body, chunkedLine) + "\r\n" + "a\r\n" + body[:10] + "\r\n"
	before := memory()
	conns := s.open(t, n)
	var odd atomic.Int64
	atOnce(t, conns, func(c net.Conn) error {
		what := text
		if odd.Add(1)%2 == 0 {
			what = chunked
		}
		_, err := io.WriteString(c, what)
		return err
	})
	s.accepted(t, n)
	s.takes(t, "after", "new")
	each := (memory() - before) / int64(n)
	t.Logf("%d bodies under way cost %d bytes each, both ends", n, each)
	if each > 40<<10 {
		t.Errorf("a body of which nothing has come costs %d bytes", each)
	}
	s.wantStored(t, event("warm"), event("after"))
}

// TestBodiesUnderWay holds connections that have each sent most of a large body:
// together they take a bounded part of memory, and those that are too many are told
// to come back.
func TestBodiesUnderWay(t *testing.T) {
	s := serve(t)
	n := 300
	if testing.Short() {
		n = 150
	}
	const bound = 64 << 20 // what inbox.Config.QueueBytes is
	body := padded("e1", 1<<20)
	text := s.head(t, body, sized(len(body))) + "\r\n" + body[:len(body)-10]
	before := memory()
	conns := s.open(t, n)
	var refused, broken atomic.Int64
	atOnce(t, conns, func(c net.Conn) error {
		if _, err := io.WriteString(c, text); err != nil {
			broken.Add(1) // it was refused before it had said all
		}
		return nil
	})
	s.takes(t, "small", "new") // which also lets the server read what is there
	held := memory() - before
	t.Logf("%d bodies of 1 MiB under way take %d MiB", n, held>>20)
	if held > 3*bound {
		t.Errorf("%d bodies under way take %d bytes, which grows with their number", n, held)
	}
	atOnce(t, conns, func(c net.Conn) error {
		_, err := io.WriteString(c, body[len(body)-10:])
		var a said
		if err == nil {
			a, err = newSender(t, c).hear()
		}
		switch {
		case err != nil: // it was reset while it was still writing
			broken.Add(1)
		case a.status == http.StatusServiceUnavailable && a.retryAfter != "":
			refused.Add(1)
		case a.status != http.StatusOK:
			return fmt.Errorf("answered %d: %s", a.status, a.body)
		}
		return nil
	})
	t.Logf("%d were refused, %d cut off", refused.Load(), broken.Load())
	if refused.Load()+broken.Load() == 0 {
		t.Error("nobody was refused")
	}
	s.wantStored(t, event("small"), body)
}
