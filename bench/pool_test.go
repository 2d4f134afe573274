package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/provider"
)

func stripe(t *testing.T) *provider.Provider {
	t.Helper()
	p, err := provider.Compile(provider.SourceConfig{Name: "stripe", Provider: "stripe", Secrets: []string{secret}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func fill(t *testing.T, s stream, entities, n int, inOrder bool) *pool {
	t.Helper()
	sender, err := newSender(s, entities, 7)
	if err != nil {
		t.Fatal(err)
	}
	sender.inOrder = inOrder
	p := &pool{}
	if err := p.fill(sender, n, time.Now()); err != nil {
		t.Fatal(err)
	}
	return p
}

// delivery reads a prepared request as a server does.
func delivery(t *testing.T, p *pool, i int) *provider.Request {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(p.request(i))))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) != bodySize || !bytes.Equal(body, p.body(i)) {
		t.Fatalf("the body has %d bytes, %v", len(body), err)
	}
	return &provider.Request{Method: r.Method, URL: "http://127.0.0.1" + r.URL.Path, Header: r.Header, Body: body}
}

// TestRequests reads what is sent with the provider that will: each is accepted, has
// an id of its own, and tells one fact about an entity of the stream's kind.
func TestRequests(t *testing.T) {
	stripe := stripe(t)
	for s, kind := range map[stream]string{plainStream: "subscription", derivedStream: "payment"} {
		p := fill(t, s, 3, 60, false)
		ids, statuses, entities := map[string]bool{}, map[string]int{}, map[string]bool{}
		for i := range p.n {
			r := delivery(t, p, i)
			if _, err := stripe.Verify(time.Now(), r); err != nil {
				t.Fatalf("%v: request %d: %v", s, i, err)
			}
			readings := stripe.Read(r)
			if len(readings) != 1 || len(readings[0].Facts) != 1 {
				t.Fatalf("%v: request %d tells %d events", s, i, len(readings))
			}
			e, f := readings[0].Event, readings[0].Facts[0]
			if f.Held != "" || f.Kind != kind || ids[e.Key] || !strings.HasPrefix(e.Key, "evt_") || len(e.Key) != len("evt_")+idLength {
				t.Fatalf("%v: request %d: event %s, kind %s, held %q, repeated %t", s, i, e.Key, f.Kind, f.Held, ids[e.Key])
			}
			ids[e.Key], entities[f.Key] = true, true
			statuses[e.Type]++
		}
		if s == plainStream && len(entities) != 3 {
			t.Errorf("%v: %d entities, want 3", s, len(entities))
		}
		if s == derivedStream && (len(statuses) != 4 || len(entities) < 10) { // charge.refunded comes twice in a life
			t.Errorf("%v: types %v, %d entities", s, statuses, len(entities))
		}
	}
}

// TestSigner signs as the provider does.
func TestSigner(t *testing.T) {
	stripe, now := stripe(t), time.Unix(1767225600, 0)
	body := []byte(`{"id":"evt_1","type":"payment_intent.created","created":1767225600}`)
	r := &provider.Request{Method: http.MethodPost, URL: "http://127.0.0.1/in/stripe", Header: http.Header{}, Body: body}
	if err := stripe.Sign(now, r, ""); err != nil {
		t.Fatal(err)
	}
	s := newSigner(now)
	for range 2 {
		if diff := cmp.Diff(r.Header.Get("Stripe-Signature"), string(s.append(nil, body))); diff != "" {
			t.Error(diff)
		}
	}
}

// TestRisingIDs has ids in the order of their making, and others in none.
func TestRisingIDs(t *testing.T) {
	stripe := stripe(t)
	for _, inOrder := range []bool{true, false} {
		p := fill(t, plainStream, 5, 50, inOrder)
		risen := 0
		before := ""
		for i := range p.n {
			key := stripe.Read(delivery(t, p, i))[0].Event.Key
			if key > before {
				risen++
			}
			before = key
		}
		if (risen == p.n) != inOrder {
			t.Errorf("in order %t: %d of %d ids rise", inOrder, risen, p.n)
		}
	}
}

// TestTemplateRefuses a sample that is not of the form that is filled in.
func TestTemplateRefuses(t *testing.T) {
	names := map[string]blank{"sub_1": entityID}
	for name, body := range map[string]string{
		"no JSON":       `{`,
		"no object":     `{"id": "evt_3x", "created": 1767225600, "type": "sub_1"}`,
		"no entity":     `{"id": "evt_3x", "created": 1767225600, "data": {"object": {"id": "sub_2"}}}`,
		"id is twice":   `{"id": "evt_3x", "created": 1767225600, "data": {"object": {"id": "sub_1", "event": "evt_3x"}}}`,
		"it is too big": `{"id": "evt_3x", "created": 1767225600, "data": {"object": {"id": "sub_1", "x": "` + strings.Repeat("y", bodySize) + `"}}}`,
	} {
		if _, err := newTemplate(provider.Sample{Name: name, Body: []byte(body)}, names); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestCeiling checks the HMAC, which is all that it does.
func TestCeiling(t *testing.T) {
	p := fill(t, plainStream, 1, 2, false)
	request := func(change func(*http.Request)) int {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(p.request(1))))
		if err != nil {
			t.Fatal(err)
		}
		change(r)
		w := httptest.NewRecorder()
		ceilingHandler().ServeHTTP(w, r)
		return w.Code
	}
	for name, c := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"as it was signed": {func(*http.Request) {}, http.StatusOK},
		"another body":     {func(r *http.Request) { r.Body = io.NopCloser(bytes.NewReader(p.body(0))) }, http.StatusBadRequest},
		"cut off":          {func(r *http.Request) { r.Body = io.NopCloser(bytes.NewReader(p.body(1)[:9])) }, http.StatusBadRequest},
		"no signature":     {func(r *http.Request) { r.Header.Del("Stripe-Signature") }, http.StatusBadRequest},
		"no length":        {func(r *http.Request) { r.ContentLength = -1 }, http.StatusBadRequest},
	} {
		if got := request(c.change); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	body, old := p.body(1), newSigner(time.Now().Add(-time.Hour))
	if err := checkSignature(string(old.append(nil, body)), body, time.Now()); err == nil {
		t.Error("a signature of an hour ago is accepted")
	}
}

// TestLoad counts what a server has answered, and what it has refused.
func TestLoad(t *testing.T) {
	p := fill(t, plainStream, 5, 300, false)
	seen := make(chan string, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		seen <- string(body)
		if bytes.Equal(body, p.body(7)) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	marks := 0
	l := load{address: strings.TrimPrefix(server.URL, "http://"), conns: 4, pool: p, mark: func() { marks++ }}
	got, err := l.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.acked != 299 || len(got.delays) != 299 || got.refused != 1 || got.first != http.StatusServiceUnavailable || marks != 2 || got.took <= 0 {
		t.Errorf("acked %d, %d delays, refused %d, first %d, %d marks, took %v", got.acked, len(got.delays), got.refused, got.first, marks, got.took)
	}
	bodies := map[string]bool{}
	for range len(seen) {
		bodies[<-seen] = true
	}
	if len(bodies) != 300 {
		t.Errorf("%d different bodies came, want 300", len(bodies))
	}

	server.CloseClientConnections()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.run(ended); err == nil {
		t.Error("a load that was cancelled has figures")
	}
}
