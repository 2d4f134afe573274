package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// inTime runs a test on a server with connections in memory, where waiting takes no
// time: the timeouts are those that `serve` has.
func inTime(t *testing.T, test func(t *testing.T, s *slowly)) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowly{serving: &serving{fixture: newFixture(t, "")}, public: newPipes()}
		admin := newPipes()
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx, s.public, admin) }()
		test(t, s)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

// slowly is a server whose senders are slow.
type slowly struct {
	*serving
	public *pipes
}

// dial returns a connection and what tells when the server has ended it, and with
// what last words.
func (s *slowly) dial() (net.Conn, <-chan heard) {
	c := s.public.dial()
	done := make(chan heard, 1)
	begin := time.Now()
	go func() {
		text, err := io.ReadAll(c)
		done <- heard{string(text), err, time.Since(begin)}
	}()
	return c, done
}

// heard is what a connection ended with.
type heard struct {
	text string
	err  error
	took time.Duration
}

// drip writes a text byte by byte, with a pause before each, until the other side
// has had enough.
func drip(c net.Conn, text string, pause time.Duration) error {
	if text == "" {
		return nil
	}
	next := time.NewTicker(max(pause, 1))
	defer next.Stop()
	for i := range len(text) {
		<-next.C
		if _, err := io.WriteString(c, text[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// wantTook wants something to have ended when it should, give or take a second.
func wantTook(t *testing.T, about string, h heard, want time.Duration) {
	t.Helper()
	if h.took < want || h.took > want+time.Second {
		t.Errorf("%s: the connection ended after %v, want %v", about, h.took, want)
	}
}

// TestSlowSenders drips deliveries, as a slow loris does: each connection ends when
// its time is over, nothing of what was not whole is stored, and others are served
// meanwhile.
func TestSlowSenders(t *testing.T) {
	inTime(t, func(t *testing.T, s *slowly) {
		body := event("e1")
		whole := s.whole(t, body)
		headEnd := strings.Index(whole, "\r\n\r\n") + 4
		for _, tt := range []struct {
			about       string
			first, rest string // said at once, and dripped
			pause       time.Duration
			want        time.Duration
		}{
			{"nothing is said", "", "", 0, readHeaderTimeout},
			{"a head that drips", "", whole, time.Second, readHeaderTimeout},
			{"a head that stops", whole[:headEnd-2], "", 0, readHeaderTimeout},
			{"headers that never end", whole[:headEnd-2], strings.Repeat("X-A: b\r\n", 1000), 100 * time.Millisecond, readHeaderTimeout},
			{"a body that drips", whole[:headEnd], whole[headEnd:], time.Second, readTimeout},
			{"a body that stops", whole[:headEnd+5], "", 0, readTimeout},
			{"chunks that drip", s.head(t, body, chunkedLine) + "\r\n", inChunks(body, 1), 300 * time.Millisecond, readTimeout},
			{"chunks that never come", s.head(t, body, chunkedLine) + "\r\n", strings.Repeat("0", 1000), time.Second, readTimeout},
		} {
			c, ended := s.dial()
			_, err := io.WriteString(c, tt.first)
			if err == nil {
				err = drip(c, tt.rest, tt.pause)
			}
			h := <-ended
			if tt.rest != "" && err == nil {
				t.Errorf("%s: all of it could be said", tt.about)
			}
			wantTook(t, tt.about, h, tt.want)
			if h.text != "" && !strings.HasPrefix(h.text, "HTTP/1.1 400 ") && !strings.HasPrefix(h.text, "HTTP/1.1 408 ") {
				t.Errorf("%s: answered %q", tt.about, h.text)
			}
			c.Close()
		}
		s.wantStored(t)

		c, ended := s.dial() // slow, and in time
		if err := errors.Join(drip(c, whole[:headEnd], 10*time.Millisecond), drip(c, whole[headEnd:], 300*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.Close()
		if h := <-ended; !strings.HasPrefix(h.text, "HTTP/1.1 200 ") {
			t.Errorf("slow and in time: %q", h.text)
		}
		s.wantStored(t, body)
	})
}

// TestManySlowSenders lets many drip at once, among senders that are not slow.
func TestManySlowSenders(t *testing.T) {
	inTime(t, func(t *testing.T, s *slowly) {
		const slow = 300
		whole := s.whole(t, event("slow"))
		var all sync.WaitGroup
		for i := range slow {
			c, ended := s.dial()
			all.Go(func() {
				defer c.Close()
				text := whole
				if i%2 == 0 { // the body drips
					at := strings.Index(whole, "\r\n\r\n") + 4
					if _, err := io.WriteString(c, whole[:at]); err != nil {
						t.Error(err)
					}
					text = whole[at:]
				}
				if err := drip(c, text, time.Second); err == nil {
					t.Error("a slow sender could say all")
				}
				<-ended
			})
		}
		var bodies []string
		for i := range 20 {
			time.Sleep(time.Second)
			bodies = append(bodies, event(fmt.Sprint("e", i)))
			c, ended := s.dial()
			if _, err := io.WriteString(c, s.head(t, bodies[i], sized(len(bodies[i])), "Connection: close")+"\r\n"+bodies[i]); err != nil {
				t.Fatal(err)
			}
			if h := <-ended; !strings.HasPrefix(h.text, "HTTP/1.1 200 ") || h.took > time.Millisecond {
				t.Errorf("among slow senders: %q after %v", h.text, h.took)
			}
			c.Close()
		}
		all.Wait()
		s.wantStored(t, bodies...)
	})
}

// TestIdleSenders keeps connections open after an answer, and reads no answer at all.
func TestIdleSenders(t *testing.T) {
	inTime(t, func(t *testing.T, s *slowly) {
		body := event("e1")
		c, ended := s.dial()
		if _, err := io.WriteString(c, s.whole(t, body)); err != nil {
			t.Fatal(err)
		}
		h := <-ended
		wantTook(t, "idle after an answer", h, idleTimeout)
		if strings.Count(h.text, "HTTP/1.1 200 ") != 1 {
			t.Errorf("answered %q", h.text)
		}
		c.Close()

		deaf := s.public.dial() // its answer is never read
		begin := time.Now()
		if _, err := io.WriteString(deaf, s.whole(t, body)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(writeTimeout)
		synctest.Wait()
		if _, err := io.WriteString(deaf, "x"); err == nil {
			t.Errorf("a connection whose answer nobody reads goes on after %v", time.Since(begin))
		}
		deaf.Close()
		s.wantStored(t, body)
	})
}

// TestSendersAtTheEnd stops the server while senders drip: it ends when its time to
// drain is over, and takes nothing that was not whole.
func TestSendersAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowly{serving: &serving{fixture: newFixture(t, "")}, public: newPipes()}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx, s.public, newPipes()) }()
		body := event("e1")
		whole := s.whole(t, body)
		at := strings.Index(whole, "\r\n\r\n") + 4
		c, heardAll := s.dial()
		if _, err := io.WriteString(c, whole[:at]); err != nil {
			t.Fatal(err)
		}
		quick, quickHeard := s.dial()
		if _, err := io.WriteString(quick, whole[:at]); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		begin := time.Now()
		stop()
		synctest.Wait()
		if _, err := io.WriteString(quick, whole[at:]); err != nil {
			t.Errorf("one that is in time is not listened to: %v", err)
		}
		if h := <-quickHeard; !strings.HasPrefix(h.text, "HTTP/1.1 200 ") {
			t.Errorf("one that is in time is answered %q", h.text)
		}
		if err := drip(c, whole[at:], time.Second); err == nil {
			t.Error("a slow sender could say all")
		}
		err := <-ended
		if took := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || took < drainTimeout || took > drainTimeout+time.Second {
			t.Errorf("the server ended after %v with %v", took, err)
		}
		if h := <-heardAll; strings.HasPrefix(h.text, "HTTP/1.1 2") {
			t.Errorf("one that was not whole is answered %q", h.text)
		}
		quick.Close()
		c.Close()
		s.wantStored(t, body)
	})
}
