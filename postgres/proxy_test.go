package postgres_test

import (
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/onceward/onceward/internal/pgtest"
)

// cut is what a proxy does with the next thing that a client sends.
type cut int

const (
	// pass hands everything on.
	pass cut = iota
	// before breaks both connections and hands nothing on.
	before
	// during hands it on and breaks both connections at once.
	during
	// after hands it on, waits for the answer, and breaks both without handing
	// that on.
	after
	// hold hands nothing on, either way, until the client ends its connection.
	hold
)

// proxy stands between a store and its server and breaks connections.
type proxy struct {
	server string
	mu     sync.Mutex
	next   cut // guarded by mu
	struck int // guarded by mu
	wg     sync.WaitGroup
}

// newProxy starts a proxy before the database that dsn names, and returns its
// address there.
func newProxy(t testing.TB, dsn string) (*proxy, string) {
	t.Helper()
	pc := poolConfig(t, dsn)
	p := &proxy{server: net.JoinHostPort(pc.ConnConfig.Host, strconv.Itoa(int(pc.ConnConfig.Port)))}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.wg.Wait()
	})
	return p, pgtest.WithAddress(dsn, l.Addr().String())
}

// arm says what becomes of the next thing sent.
func (p *proxy) arm(c cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = c
}

func (p *proxy) take() cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.next
	p.next = pass
	if c != pass {
		p.struck++
	}
	return c
}

func (p *proxy) strikes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.struck
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	var silent atomic.Bool // what the server says is not handed on
	answered := make(chan struct{})
	p.wg.Go(func() {
		defer close(answered)
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			if silent.Load() {
				continue
			}
			if _, err = client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	buf := make([]byte, 1<<20)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		c := p.take()
		if c == before {
			return
		}
		if c == hold {
			silent.Store(true)
			_, _ = io.Copy(io.Discard, client)
			return
		}
		silent.Store(c != pass)
		if _, err := server.Write(buf[:n]); err != nil || c == during {
			return
		}
		if c == after {
			// The server does all that it was sent, then finds that nothing more
			// comes, and ends its side.
			if err := server.(*net.TCPConn).CloseWrite(); err == nil {
				<-answered
			}
			return
		}
	}
}
