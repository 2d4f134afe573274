package faultproxy

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Way is the direction in which something passes.
type Way uint8

// The ways.
const (
	ToServer Way = iota
	ToClient
)

// Action is what happens to a connection.
type Action uint8

// The actions.
const (
	// Close ends both sides in order, as the end of a process does.
	Close Action = iota
	// Reset ends both sides by a reset; what was under way is lost.
	Reset
	// Silence hands nothing on any more, either way, and ends nothing: each side
	// believes that the other is there and slow. When the client gives up the
	// server is not told.
	Silence
	// Swallow hands nothing on any more, lets the server do all that it was sent
	// before, and ends both sides when it has.
	Swallow
)

// Fault says at which message a connection breaks, and how.
type Fault struct {
	// Way is the direction whose messages are counted.
	Way Way
	// Message is the number of the message, from 1, since Arm and over all
	// connections.
	Message int
	// After says that the message itself is handed on before.
	After bool
	// Do is what happens.
	Do Action
}

// Framing tells messages apart. It returns the length of the first message in
// what has come so far, or 0 if more must come first. first says that b begins the
// stream, where some protocols have another form.
type Framing func(b []byte, first bool) int

// Proxy is a listener in front of a server. Its methods are safe for concurrent
// use. Make it with [New].
type Proxy struct {
	server   *net.TCPAddr
	listener *net.TCPListener
	framing  [2]Framing // by way
	running  sync.WaitGroup
	ended    chan struct{} // closed when the test is over

	mu     sync.Mutex
	links  map[*link]struct{} // guarded by mu, as all below
	down   bool               // new connections are broken with downBy
	downBy Action
	delay  time.Duration
	fault  *Fault // the planned one, nil if none is or it has struck
	passed [2]int // messages since Arm, by way
	struck int
	opened int
}

// New starts a proxy before the server at an address host:port, until the test
// ends. The framings tell the messages of each way apart; where one is nil, what
// comes in one piece is a message.
func New(t testing.TB, server string, toServer, toClient Framing) *Proxy {
	t.Helper()
	address, err := net.ResolveTCPAddr("tcp", server)
	if err != nil {
		t.Fatalf("faultproxy: %v", err)
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatalf("faultproxy: %v", err)
	}
	p := &Proxy{
		server: address, listener: listener, framing: [2]Framing{ToServer: toServer, ToClient: toClient},
		ended: make(chan struct{}), links: map[*link]struct{}{},
	}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the proxy's address, host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Arm plans a fault, in place of one that has not struck, and counts messages from
// the beginning.
func (p *Proxy) Arm(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.passed = &f, [2]int{}
}

// Disarm takes the planned fault back and reports whether it had struck.
func (p *Proxy) Disarm() (struck bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	struck, p.fault = p.fault == nil, nil
	return struck
}

// Struck returns how many planned faults have struck.
func (p *Proxy) Struck() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.struck
}

// Passed returns how many messages have come in one way since Arm, the one that a
// fault struck at included.
func (p *Proxy) Passed(w Way) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed[w]
}

// Opened returns how many connections clients have opened.
func (p *Proxy) Opened() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened
}

// Strike breaks every connection that there is; new ones are served.
func (p *Proxy) Strike(a Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.strike(a)
	}
}

// Down breaks every connection, and new ones as soon as they are made.
func (p *Proxy) Down(a Action) {
	p.mu.Lock()
	p.down, p.downBy = true, a
	p.mu.Unlock()
	p.Strike(a)
}

// Up serves new connections again. What was silenced stays silent.
func (p *Proxy) Up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

// Delay holds back each message for a time, one after the other, either way; 0 ends
// it.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

func (p *Proxy) close() {
	close(p.ended)
	_ = p.listener.Close() // it is only the end of accept that matters
	p.Strike(Close)
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.AcceptTCP()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

// serve connects a client to the server, unless the proxy is down.
func (p *Proxy) serve(client *net.TCPConn) {
	l := &link{proxy: p, client: client}
	p.mu.Lock()
	p.links[l] = struct{}{}
	p.opened++
	down, by := p.down, p.downBy
	p.mu.Unlock()
	defer p.forget(l)
	if down {
		l.strike(by)
	}
	select {
	case <-p.ended: // between accepting and listing it
		l.strike(Close)
		return
	default:
	}
	if down {
		l.drain(client)
		return
	}
	server, err := net.DialTCP("tcp", nil, p.server)
	if err != nil {
		l.strike(Reset)
		return
	}
	l.run(server)
}

func (p *Proxy) forget(l *link) {
	l.strike(Close)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// next counts a message and returns what is to happen to its connection, if
// anything.
func (p *Proxy) next(w Way) (f Fault, strikes bool, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed[w]++
	if p.fault != nil && p.fault.Way == w && p.fault.Message == p.passed[w] {
		f, strikes = *p.fault, true
		p.fault = nil
		p.struck++
	}
	return f, strikes, p.delay
}

// link is one client's connection with its own to the server.
type link struct {
	proxy  *Proxy
	client *net.TCPConn
	silent atomic.Bool // nothing is handed on
	deaf   atomic.Bool // nothing is handed on to the client

	mu     sync.Mutex
	server *net.TCPConn // guarded by mu; nil until it is connected
	broken bool         // guarded by mu
}

// run hands on what both sides say until both have ended.
func (l *link) run(server *net.TCPConn) {
	l.mu.Lock()
	l.server = server
	broken := l.broken // by Strike, while it was being connected
	l.mu.Unlock()
	if broken {
		_ = server.Close()
		return
	}
	var fromServer sync.WaitGroup
	fromServer.Go(func() { l.pump(ToClient, server, l.client) })
	l.pump(ToServer, l.client, server)
	fromServer.Wait()
}

// pump hands on what src says, message by message.
func (l *link) pump(w Way, src, dst *net.TCPConn) {
	framing := l.proxy.framing[w]
	buf, have, first := make([]byte, 64<<10), 0, true
	for {
		if have == len(buf) { // a message that is longer
			longer := make([]byte, 2*len(buf))
			copy(longer, buf)
			buf = longer
		}
		n, err := src.Read(buf[have:])
		have += n
		for have > 0 && !l.silent.Load() {
			size := have
			if framing != nil {
				size = framing(buf[:have], first)
			}
			if size <= 0 || size > have {
				break
			}
			first = false
			if !l.pass(w, dst, buf[:size]) {
				l.drain(src)
				if l.deaf.Load() && !l.silent.Load() { // the server has done what it was to do, or the client has gone
					l.strike(Close)
				}
				return
			}
			have = copy(buf, buf[size:have])
		}
		if l.silent.Load() {
			have = 0
		}
		if err != nil {
			if have > 0 { // what was begun and not ended
				_, _ = dst.Write(buf[:have])
			}
			l.passEnd(dst)
			return
		}
	}
}

// pass hands one message on, and reports whether more is to be.
func (l *link) pass(w Way, dst *net.TCPConn, message []byte) bool {
	fault, strikes, delay := l.proxy.next(w)
	if delay > 0 && !l.proxy.wait(delay) {
		return false
	}
	if strikes { // before it can be answered
		l.deaf.Store(true)
	}
	hand := !strikes || fault.After
	if hand && (w == ToServer || strikes || !l.deaf.Load()) {
		if _, err := dst.Write(message); err != nil {
			return false
		}
	}
	if strikes {
		l.strike(fault.Do)
	}
	return !strikes
}

// passEnd tells dst that nothing more comes, unless the link is silent.
func (l *link) passEnd(dst *net.TCPConn) {
	switch {
	case l.silent.Load():
	case l.deaf.Load(): // the server has done what it was to do
		l.strike(Close)
	default:
		_ = dst.CloseWrite()
	}
}

// drain reads what nobody gets, until src ends or the link is broken.
func (l *link) drain(src *net.TCPConn) {
	buf := make([]byte, 64<<10)
	for {
		if _, err := src.Read(buf); err != nil {
			return
		}
	}
}

// strike does to both sides what an action says.
func (l *link) strike(a Action) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch a {
	case Silence:
		l.silent.Store(true)
		return
	case Swallow:
		l.deaf.Store(true)
		if l.server != nil {
			_ = l.server.CloseWrite()
		}
		return
	case Close, Reset:
	}
	l.broken = true
	for _, c := range []*net.TCPConn{l.client, l.server} {
		if c == nil {
			continue
		}
		if a == Reset {
			_ = c.SetLinger(0)
		}
		_ = c.Close() // breaking it is all that is wanted
	}
}

// wait lets time pass, and reports false if the test ends first.
func (p *Proxy) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ended:
		return false
	}
}
