package inbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/storetest"
	"github.com/onceward/onceward/provider"
	"github.com/onceward/onceward/sqlite"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

var ctx = context.Background()

// shop is a sender that signs its bodies and numbers its events.
const shop = `
verify: {scheme: hmac, header: X-Signature}
event: {key: body.id, type: body.type, time: body.at}
kinds:
  order: {states: [created, paid, shipped, [delivered, returned]]}
facts:
  order:
    types: order.*
    kind: order
    key: body.order
    status: body.status
    fields: {total: body.total, note: body.note}
`

// club tells accounts and modes apart, sends many events at once, and wants its own
// word for an answer.
const club = `
verify: {scheme: hmac, header: X-Signature}
split: body.events
ack: "[accepted]"
event:
  key: item.id
  type: item.type
  scope: {account: body.account, mode: body.live}
kinds:
  job: {order: [rank]}
facts:
  job: {kind: job, key: item.job, status: item.status}
`

const secret = "correct horse battery staple"

// clock stands still until it is moved; tests in a bubble use time.Now.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is an inbox on a real store in memory, whose calls can be made to fail.
type world struct {
	*inbox.Inbox
	t     testing.TB
	store *storetest.FaultyStore
	below onceward.Store // the same without faults
	clock *clock
}

// newWorld makes one with the sources shop and club; change may alter the
// configuration.
func newWorld(t testing.TB, change func(*inbox.Config)) *world {
	t.Helper()
	below, err := sqlite.Open(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := below.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return worldOn(t, below, change)
}

// worldOn is newWorld on a store that is there already and stays open.
func worldOn(t testing.TB, below onceward.Store, change func(*inbox.Config)) *world {
	t.Helper()
	w := &world{t: t, store: storetest.Faulty(below), below: below, clock: &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}}
	cfg := config(t)
	cfg.Now = w.clock.Now
	if change != nil {
		change(&cfg)
	}
	in, err := inbox.New(w.store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.Inbox = in
	t.Cleanup(func() {
		if err := in.Close(context.Background()); err != nil {
			t.Errorf("close the inbox: %v", err)
		}
	})
	return w
}

func config(t testing.TB) inbox.Config {
	return inbox.Config{
		Sources: map[string]inbox.Source{
			"shop": {Definition: []byte(shop), Secrets: []string{secret}},
			"club": {Definition: []byte(club), Secrets: []string{secret}},
		},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

// signed makes a request that the source's sender might make.
func (w *world) signed(source, body string) *http.Request {
	w.t.Helper()
	r := &provider.Request{Method: http.MethodPost, URL: "http://example.com/in/" + source, Header: http.Header{}, Body: []byte(body)}
	if err := w.Provider(source).Sign(w.clock.Now(), r, ""); err != nil {
		w.t.Fatal(err)
	}
	req := httptest.NewRequest(r.Method, r.URL, bytes.NewReader(r.Body))
	req.Header = r.Header
	return req
}

func (w *world) serve(r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	w.Handler().ServeHTTP(rec, r)
	return rec
}

// deliver signs a body and delivers it.
func (w *world) deliver(source, body string) *httptest.ResponseRecorder {
	w.t.Helper()
	return w.serve(w.signed(source, body))
}

// answer is the small JSON.
type answer struct {
	Event, Outcome, Error, Reason, Detail, Quarantine string
	Events                                            []answer
	Facts                                             []struct {
		Kind, Key, Verdict, Status, Held string
		Version                          int64
	}
}

// ok delivers a body, wants a 200, and returns what it says.
func (w *world) ok(source, body string) answer {
	w.t.Helper()
	rec := w.deliver(source, body)
	if rec.Code != http.StatusOK {
		w.t.Fatalf("answered %d: %s", rec.Code, rec.Body)
	}
	return decode(w.t, rec)
}

func decode(t testing.TB, rec *httptest.ResponseRecorder) answer {
	t.Helper()
	var a answer
	if err := json.Unmarshal(rec.Body.Bytes(), &a); err != nil {
		t.Fatalf("the answer %q is no JSON: %v", rec.Body, err)
	}
	return a
}

// row returns the row of an order.
func (w *world) row(source, kind, key string) *onceward.Entity {
	w.t.Helper()
	e, err := w.Find(ctx, source, kind, key)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func (w *world) stats() onceward.Stats {
	w.t.Helper()
	s, err := w.store.Stats(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// order is a body of the shop.
func order(id, key, status, at string) string {
	return `{"id":"` + id + `","type":"order.` + status + `","order":"` + key + `","status":"` + status + `","total":100,"at":"2026-03-01T` + at + `Z"}`
}

// notIn fails the test if one of the texts is in another.
func notIn(t *testing.T, where, text string, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		if strings.Contains(text, s) {
			t.Errorf("%s holds %q:\n%s", where, s, text)
		}
	}
}
