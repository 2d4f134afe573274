package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/provider"
	"github.com/onceward/onceward/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files")

const (
	testSecret = "whsec_fixture_secret_0001"
	testToken  = "fixture-token-0001"
)

// clock stands still between two requests.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Second)
}

// locked is a buffer that may be read while others write.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// engineOf is an inbox as the server wants it, as package cli makes one.
type engineOf struct{ *inbox.Inbox }

func (e engineOf) Register(ctx context.Context, reg Registration) (Registered, error) {
	local := map[string]any{}
	for name, value := range reg.Local {
		local[name] = value
	}
	done, err := e.Put(ctx, inbox.Registration{Ref: reg.Ref, Scoped: reg.Scoped, Local: local, Key: reg.Key})
	return Registered{Ref: done.Ref, Event: done.Event, Outcome: done.Outcome}, err
}

// fixture is a server over an inbox with three sources: shop (Stripe, with
// scopes), music (sunoapi) and hook (described in place).
type fixture struct {
	*Server
	inbox *inbox.Inbox
	store onceward.Store
	clock *clock
	log   *locked
}

const hookDefinition = `
verify: {scheme: hmac, header: X-Hook-Signature}
event: {key: body.id, type: body.type, time: body.at}
facts:
  run: {kind: job, key: body.run, status: {of: body.state, running: running, succeeded: done}, fields: {note: body.note}}
`

func newFixture(t *testing.T, token string) *fixture {
	t.Helper()
	store, err := sqlite.Open(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{store: store, clock: &clock{at: time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)}, log: &locked{}}
	log := slog.New(slog.NewTextHandler(f.log, nil))
	metrics := NewMetrics()
	f.inbox, err = inbox.New(store, inbox.Config{
		Sources: map[string]inbox.Source{
			"shop":  {Provider: "stripe", Secrets: []string{testSecret}},
			"music": {Provider: "sunoapi", Secrets: []string{testSecret}},
			"hook":  {Definition: []byte(hookDefinition), Secrets: []string{testSecret}},
		},
		Now: f.clock.now, Rand: rand.Reader, Logger: log, Observer: metrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Server = New(Config{Inbox: f.inbox.Handler(), Engine: engineOf{f.inbox}, Reader: store, Token: token, Metrics: metrics, Log: log})
	t.Cleanup(func() {
		if err := f.inbox.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// deliver sends a signed body to the public side and wants its status.
func (f *fixture) deliver(t *testing.T, source, body string, want int) {
	t.Helper()
	f.clock.tick()
	r := &provider.Request{Method: http.MethodPost, URL: "http://example.com/in/" + source, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
	if err := f.inbox.Provider(source).Sign(f.clock.now(), r, ""); err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest(http.MethodPost, r.URL, strings.NewReader(body))
	req.Header = r.Header
	w := httptest.NewRecorder()
	f.Public().ServeHTTP(w, req)
	if w.Code != want {
		t.Fatalf("delivery to %s answered %d: %s", source, w.Code, w.Body)
	}
}

// fill delivers a small story to every source.
func (f *fixture) fill(t *testing.T) {
	t.Helper()
	intent := func(id, typ, status, account string, created int) string {
		return fmt.Sprintf(`{"id":"%s","account":%s,"created":%d,"livemode":true,"type":"%s","data":{"object":{"id":"pi_1","object":"payment_intent","amount":4990,"amount_received":0,"currency":"brl","metadata":{"order":"A-1"},"status":"%s"}}}`, id, account, created, typ, status)
	}
	f.deliver(t, "shop", intent("evt_2", "payment_intent.succeeded", "succeeded", `"acct_1"`, 1767225660), 200)
	f.deliver(t, "shop", intent("evt_1", "payment_intent.created", "requires_payment_method", `"acct_1"`, 1767225600), 200)
	f.deliver(t, "shop", intent("evt_1", "payment_intent.created", "requires_payment_method", `"acct_1"`, 1767225600), 200)
	f.deliver(t, "shop", intent("evt_3", "payment_intent.created", "requires_payment_method", `"acct_2"`, 1767225600), 200)
	f.deliver(t, "hook", `{"id":"e1","type":"run.done","at":1767225600,"run":"r/1","state":"done","note":"sp ace"}`, 200)
	f.deliver(t, "hook", `{"id":"e2","type":"run.odd","at":1767225601,"run":"r/1","state":"never heard of"}`, 200)
	f.deliver(t, "hook", `{"id":"e1","type":"run.done","at":1767225600,"run":"r/1","state":"running"}`, 200)
}

// ask sends a request to the admin side from this machine.
func (f *fixture) ask(method, target, body string, header ...string) *httptest.ResponseRecorder {
	f.clock.tick()
	req := httptest.NewRequest(method, target, strings.NewReader(body))
	req.Host, req.RemoteAddr = "127.0.0.1:8081", "127.0.0.1:50000"
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	f.Admin().ServeHTTP(w, req)
	return w
}

// want asks and wants a status.
func (f *fixture) want(t *testing.T, status int, method, target, body string, header ...string) string {
	t.Helper()
	w := f.ask(method, target, body, header...)
	if w.Code != status {
		t.Errorf("%s %s answered %d, want %d: %s", method, target, w.Code, status, w.Body)
	}
	return w.Body.String()
}

var longNumber = regexp.MustCompile(`\d{16,}`)

// steady replaces ids, which hold the time and a drawn number, by their order of
// appearance, and indents JSON.
func steady(t *testing.T, body string, ids map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(body), "", "  "); err != nil {
		t.Fatal(err)
	}
	return longNumber.ReplaceAllStringFunc(out.String(), func(id string) string {
		if ids[id] == "" {
			ids[id] = fmt.Sprintf("ID-%d", len(ids)+1)
		}
		return ids[id]
	})
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs; the API may not change without its version. If it only grew, run the test with -update:\n%s", file, d)
	}
}
