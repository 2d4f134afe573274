package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward/provider"
)

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// TestHTTP2InTheClear speaks HTTP/2 to the server as it is, which has HTTP/1.1 only:
// it is answered as a request for nothing that there is, and the connection ends; an
// offer to change is passed over.
func TestHTTP2InTheClear(t *testing.T) {
	s := serve(t)
	body := event("e1")
	c := s.dial(t)
	c.say(preface + string(frame(frameSettings, 0, 0, nil)))
	c.wantStatus("the preface", http.StatusNotFound)
	c.wantEnd("the preface")
	c = s.dial(t)
	c.say(s.head(t, body, sized(len(body)), "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__") + "\r\n" + body)
	c.wantStatus("an offer to change", http.StatusOK)
	s.wantStored(t, body)
}

// secure is the same handler and limits behind TLS, where HTTP/2 is spoken, as a
// program that mounts the inbox may have it.
type secure struct {
	*fixture
	*httptest.Server
}

func (s *secure) stored(t *testing.T, bodies ...string) {
	t.Helper()
	(&serving{fixture: s.fixture}).wantStored(t, bodies...)
}

func serveTLS(t *testing.T) *secure {
	t.Helper()
	f := newFixture(t, "")
	before := runtime.NumGoroutine()
	ts := httptest.NewUnstartedServer(f.Public())
	ts.Config = f.httpServer(f.Public())
	ts.EnableHTTP2 = true
	ts.StartTLS()
	t.Cleanup(func() {
		ts.Close()
		wantGoroutines(t, before)
	})
	return &secure{f, ts}
}

// client returns one that speaks HTTP/2 over one connection.
func (s *secure) client(t *testing.T) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// signed makes a delivery to the source hook; what is sent may be another body.
func (s *secure) signed(ctx context.Context, t *testing.T, body string, sent io.Reader) *http.Request {
	t.Helper()
	r := &provider.Request{Method: http.MethodPost, URL: s.URL + "/in/hook", Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
	if err := s.inbox.Provider("hook").Sign(s.clock.now(), r, ""); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, sent)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = r.Header
	return req
}

// deliver delivers a body and wants it taken.
func (s *secure) deliver(t *testing.T, client *http.Client, body string) {
	t.Helper()
	limited, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	resp, err := client.Do(s.signed(limited, t, body, strings.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("answered %s", resp.Status)
	}
}

// TestManyStreams delivers over many streams of one connection at once.
func TestManyStreams(t *testing.T) {
	s := serveTLS(t)
	client := s.client(t)
	const streams = 400
	var bodies []string
	var all sync.WaitGroup
	for i := range streams {
		body := event(fmt.Sprint("e", i/2)) // each twice
		if i%2 == 0 {
			bodies = append(bodies, body)
		}
		req := s.signed(t.Context(), t, body, strings.NewReader(body))
		all.Go(func() {
			resp, err := client.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
				t.Errorf("answered %s over %s", resp.Status, resp.Proto)
			}
		})
	}
	all.Wait()
	s.stored(t, bodies...)
}

// TestStreamsThatStop resets streams in the middle of their bodies, and sends bodies
// that are too large, among streams that are whole.
func TestStreamsThatStop(t *testing.T) {
	s := serveTLS(t)
	client := s.client(t)
	bodies := []string{event("first")} // which makes the connection
	s.deliver(t, client, bodies[0])
	var all sync.WaitGroup
	for i := range 50 {
		body := event(fmt.Sprint("whole", i))
		bodies = append(bodies, body)
		req := s.signed(t.Context(), t, body, strings.NewReader(body))
		all.Go(func() {
			resp, err := client.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("answered %s", resp.Status)
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		broken := event(fmt.Sprint("broken", i))
		stops := s.signed(ctx, t, broken, &half{text: broken[:len(broken)/2], then: cancel})
		if i%2 == 0 {
			stops.ContentLength = int64(len(broken))
		}
		all.Go(func() {
			resp, err := client.Do(stops)
			if err == nil {
				resp.Body.Close()
				if resp.StatusCode != http.StatusBadRequest {
					t.Errorf("half of a body is answered %s", resp.Status)
				}
			}
		})
	}
	for _, length := range []int64{-1, 2 << 20} {
		large := strings.Repeat("x", 2<<20)
		req := s.signed(t.Context(), t, large, io.NopCloser(strings.NewReader(large)))
		req.ContentLength = length
		all.Go(func() {
			resp, err := client.Do(req)
			if err != nil {
				t.Errorf("a body that is too large: %v", err)
				return
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("a body that is too large is answered %s", resp.Status)
			}
		})
	}
	all.Wait()
	s.stored(t, bodies...)
}

// half is a body that stops in the middle: it says then, and waits for the end.
type half struct {
	text string
	then context.CancelFunc
	said bool
}

func (h *half) Read(p []byte) (int, error) {
	if !h.said {
		h.said = true
		return copy(p, h.text), nil
	}
	h.then()
	return 0, errors.New("the sender gives up")
}

// The frames of HTTP/2 that are spoken by hand.
const (
	frameData, frameHeaders, frameReset, frameSettings, frameGoAway, frameContinuation = 0x0, 0x1, 0x3, 0x4, 0x7, 0x9
	endStream, ack, endHeaders                                                         = 0x1, 0x1, 0x4
)

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	b := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}

// field is a header in the plainest form that HPACK has.
func field(name, value string) []byte {
	b := append([]byte{0}, length(len(name))...)
	b = append(b, name...)
	b = append(b, length(len(value))...)
	return append(b, value...)
}

// length is a number with a prefix of seven bits.
func length(n int) []byte {
	if n < 127 {
		return []byte{byte(n)}
	}
	b := []byte{127}
	for n -= 127; n >= 128; n >>= 7 {
		b = append(b, byte(n&127|128))
	}
	return append(b, byte(n))
}

// stream is a connection of HTTP/2 that is spoken to by hand.
type stream struct {
	*sender
}

// dialHTTP2 opens one and says what comes first.
func (s *secure) dialHTTP2(t *testing.T) *stream {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}, ServerName: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	st := &stream{newSender(t, c)}
	st.say(preface + string(frame(frameSettings, 0, 0, nil)) + string(frame(frameSettings, ack, 0, nil)))
	return st
}

// headers are those of a delivery, with more.
func headers(more ...[]byte) []byte {
	all := [][]byte{field(":method", "POST"), field(":scheme", "https"), field(":authority", "example.com"), field(":path", "/in/hook")}
	return bytes.Join(append(all, more...), nil)
}

// until reads frames until one of a kind comes, or the connection ends, which gives
// false.
func (c *stream) until(kind byte) (payload []byte, came bool) {
	for {
		var head [9]byte
		if _, err := io.ReadFull(c.read, head[:]); err != nil {
			return nil, false
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(c.read, payload); err != nil {
			return nil, false
		}
		if head[3] == kind {
			return payload, true
		}
	}
}

// TestHeaderFloodsOverHTTP2 sends lists of headers without measure, and frames that
// continue one without end: the connection ends, or the stream, and memory is
// bounded.
func TestHeaderFloodsOverHTTP2(t *testing.T) {
	s := serveTLS(t)
	before := memory()
	many := bytes.Repeat(field("x-many", strings.Repeat("v", 100)), 100) // about 11 kB, in a frame of at most 16 KiB
	for name, flags := range map[string]byte{"without end": 0, "with an end": endHeaders} {
		c := s.dialHTTP2(t)
		go func() {
			_, err := c.Write(frame(frameHeaders, endStream, 1, headers()))
			for n := 0; err == nil && n < 2000; n++ {
				var last byte
				if n == 1999 {
					last = flags
				}
				_, err = c.Write(frame(frameContinuation, last, 1, many))
			}
		}()
		if payload, came := c.until(frameGoAway); came && binary.BigEndian.Uint32(payload[4:]) == 0 {
			t.Errorf("%s: the connection ends without an error", name)
		} else if !came && !c.over() {
			t.Errorf("%s: the connection goes on", name)
		}
		c.Close()
	}
	c := s.dialHTTP2(t) // as much as is more than the limit, and is still read
	c.say(string(frame(frameHeaders, endStream, 1, headers())))
	for n := range 8 {
		var last byte
		if n == 7 {
			last = endHeaders
		}
		c.say(string(frame(frameContinuation, last, 1, many)))
	}
	if payload, came := c.until(frameHeaders); came && !bytes.Contains(payload, []byte("431")) && payload[0] != 0x48 {
		t.Errorf("a list that is too long is answered with %x", payload)
	}
	if grown := memory() - before; grown > 8<<20 {
		t.Errorf("%d bytes are held after the floods", grown)
	}
	s.stored(t)
}

// over reports whether the connection has ended.
func (c *stream) over() bool {
	_, err := io.Copy(io.Discard, c.read)
	timeout, is := errors.AsType[net.Error](err)
	return !is || !timeout.Timeout()
}

// TestRapidResets opens streams and resets them at once, many thousands of them, over
// one connection: the server ends it or bears it, what runs at a time is bounded, and
// nothing is stored.
func TestRapidResets(t *testing.T) {
	s := serveTLS(t)
	before, idle := memory(), runtime.NumGoroutine()
	c := s.dialHTTP2(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, c.read)
	}()
	most := 0
	code := binary.BigEndian.AppendUint32(nil, 8) // cancel
	for id := uint32(1); id < 40_000; id += 2 {
		b := frame(frameHeaders, endHeaders, id, headers(field("content-length", "100")))
		b = append(b, frame(frameData, 0, id, []byte("half"))...)
		if _, err := c.Write(append(b, frame(frameReset, 0, id, code)...)); err != nil {
			break // the server has had enough
		}
		most = max(most, runtime.NumGoroutine())
	}
	if grown := memory() - before; grown > 16<<20 {
		t.Errorf("%d bytes are held after the resets", grown)
	}
	if most > idle+1000 {
		t.Errorf("%d goroutines at once", most)
	}
	c.Close()
	<-ended
	s.deliver(t, s.client(t), event("e1"))
	s.stored(t, event("e1"))
}
