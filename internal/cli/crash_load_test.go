package cli

import (
	"errors"
	randv2 "math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// crashSenders is how many connections deliver at once.
	crashSenders = 8
	// crashPatience bounds each wait for something that must happen.
	crashPatience = 60 * time.Second
	// crashPause is how long a sender waits that is told to come again later.
	crashPause = 5 * time.Millisecond
)

// crashLoad is the senders of one round.
type crashLoad struct {
	r       *crashRun
	servers []*crashServer
	senders sync.WaitGroup
	// down is odd while the database is known not to be there.
	down atomic.Int64

	mu     sync.Mutex // over all below
	moved  sync.Cond
	late   bool
	each   [crashSenders]crashCounts
	acks   map[*crashServer]int
	broken bool // a sender has met what ends the test
}

// crashCounts are what became of one sender's deliveries: acknowledged, told to
// come later, cut off when they were under way.
type crashCounts struct{ acked, refused, cut int }

// load starts the senders of a round. A half of what earlier rounds have left
// unacknowledged is delivered first, to whatever server is there now.
func (r *crashRun) load(round int, servers []*crashServer) *crashLoad {
	l := &crashLoad{r: r, servers: servers, acks: map[*crashServer]int{}}
	l.moved.L = &l.mu
	again := make([][]*crashEvent, crashSenders)
	for _, e := range r.ledger.unacked() {
		if r.rng.IntN(2) == 0 {
			n := r.rng.IntN(crashSenders)
			again[n] = append(again[n], e)
		}
	}
	for n := range crashSenders {
		own := randv2.New(randv2.NewPCG(r.rng.Uint64(), uint64(n)))
		l.senders.Go(func() { l.deliver(n, round*crashSenders+n, own, again[n]) })
	}
	r.t.Cleanup(func() {
		for _, s := range servers {
			s.abort() // none is left unless the test has failed
		}
		l.senders.Wait()
	})
	return l
}

// deliver sends what is left of earlier rounds and then new events, some of them
// twice, until no server is left. What is not answered is sent again, to the other
// server if there is one.
func (l *crashLoad) deliver(n, number int, rng *randv2.Rand, again []*crashEvent) {
	at, gone := n%len(l.servers), 0
	for i := 0; ; i++ {
		var e *crashEvent
		if i < len(again) {
			e = again[i]
		} else {
			e = l.r.ledger.invent(number, i, rng)
		}
		for left := 1 + rng.IntN(2); left > 0; {
			s, down := l.servers[at], l.down.Load()
			ok, err := l.r.send(s.inbox, e)
			switch {
			case err != nil && !s.ending.Load():
				l.r.t.Errorf("%s was cut off by server %d, which nobody has killed: %v", e.id, s.number, err)
				l.count(func() { l.broken = true })
				return
			case err != nil:
				if !errors.Is(err, syscall.ECONNREFUSED) {
					l.count(func() { l.each[n].cut++ })
				}
				if gone++; gone == len(l.servers) {
					return
				}
				at = (at + 1) % len(l.servers)
			case !ok:
				l.count(func() { l.each[n].refused++ })
				<-time.After(crashPause)
			default:
				if down%2 == 1 && l.down.Load() == down {
					l.r.t.Errorf("%s was acknowledged while there was no database", e.id)
				}
				l.r.ledger.ack(e)
				l.count(func() {
					l.each[n].acked++
					l.acks[s]++
				})
				left--
			}
		}
	}
}

func (l *crashLoad) count(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	l.moved.Broadcast()
}

func (l *crashLoad) cut() (sum int) {
	for _, c := range l.each {
		sum += c.cut
	}
	return sum
}

// through is reached when a server has acknowledged n deliveries more than now.
func (l *crashLoad) through(s *crashServer, n int) func() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	want := l.acks[s] + n
	return func() bool { return l.acks[s] >= want }
}

// more is reached when the senders together have been acknowledged n times more than
// now, and each of them acked times, and been told refused times to come later.
func (l *crashLoad) more(n, acked, refused int) func() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.each
	return func() bool {
		sum := 0
		for i, c := range l.each {
			if c.acked < was[i].acked+acked || c.refused < was[i].refused+refused {
				return false
			}
			sum += c.acked - was[i].acked
		}
		return sum >= n
	}
}

// await waits until something is reached.
func (l *crashLoad) await(what string, reached func() bool) {
	l.r.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	late := time.AfterFunc(crashPatience, func() { l.count(func() { l.late = true }) })
	defer late.Stop()
	for !reached() {
		if l.late || l.broken {
			l.r.t.Fatalf("waited in vain for %s; the senders have %+v", what, l.each)
		}
		l.moved.Wait()
	}
}

// awaitReady waits until a server says with this status whether it is ready.
func (l *crashLoad) awaitReady(s *crashServer, status int) {
	l.r.t.Helper()
	deadline := time.NewTimer(crashPatience)
	defer deadline.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		resp, err := l.r.client.HTTP.Get(s.ready)
		if err != nil {
			l.r.t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode == status {
			return
		}
		if status == http.StatusServiceUnavailable {
			l.r.t.Fatalf("server %d says %d of itself while there is no database", s.number, resp.StatusCode)
		}
		select {
		case <-again.C:
		case <-deadline.C:
			l.r.t.Fatalf("server %d says %d of itself, want %d", s.number, resp.StatusCode, status)
		}
	}
}
