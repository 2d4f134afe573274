package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/onceward/onceward"
)

// examples asks each route at least once. The answers are the golden file of the
// API.
func examples(event string) []struct{ route, target, body string } {
	run := "/v1/entities/hook/job/" + url.PathEscape("r/1")
	return []struct{ route, target, body string }{
		{"GET /healthz", "/healthz", ""},
		{"GET /readyz", "/readyz", ""},
		{"GET /v1", "/v1", ""},
		{"GET /v1/entities", "/v1/entities", ""},
		{"GET /v1/entities", "/v1/entities?kind=payment&status=paid&limit=1", ""},
		{"GET /v1/entities/{source}/{kind}/{key}", run, ""},
		{"GET /v1/entities/{source}/{kind}/{key}", "/v1/entities/shop/payment/pi_1", ""},
		{"GET /v1/entities/{source}/{kind}/{key}", "/v1/entities/shop/payment/pi_1?scope=acct_1/live", ""},
		{"GET /v1/entities/{source}/{kind}/{key}", "/v1/entities/shop/payment/none", ""},
		{"GET /v1/entities/{source}/{kind}/{key}/history", "/v1/entities/shop/payment/pi_1/history?scope=acct_1/live", ""},
		{"GET /v1/entities/{source}/{kind}/{key}/history", run + "/history", ""},
		{"PUT /v1/entities/{source}/{kind}/{key}", "/v1/entities/music/job/task-1", `{"local":{"user":"u-1","n":9007199254740993}}`},
		{"PUT /v1/entities/{source}/{kind}/{key}", "/v1/entities/music/job/task-1", `{"local":{"user":null}}`},
		{"GET /v1/events", "/v1/events?source=shop&limit=2", ""},
		{"GET /v1/events/{id}", "/v1/events/" + event, ""},
		{"GET /v1/events/{id}/body", "/v1/events/" + event + "/body", ""},
		{"GET /v1/events/{id}/headers", "/v1/events/" + event + "/headers", ""},
		{"GET /v1/events/{id}", "/v1/events/7", ""},
		{"GET /v1/quarantine", "/v1/quarantine?source=hook", ""},
		{"GET /v1/stats", "/v1/stats", ""},
	}
}

func TestShapes(t *testing.T) {
	f := newFixture(t, "")
	f.fill(t)
	quarantined(t, f)
	events, err := f.store.Events(context.Background(), onceward.EventQuery{Source: "hook", Limit: 10})
	if err != nil || len(events) != 3 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	ids := map[string]string{}
	asked := map[string]bool{"GET /metrics": true} // its text has a test of its own
	var out strings.Builder
	for _, e := range examples(fmt.Sprint(events[2].ID)) {
		method, _, _ := strings.Cut(e.route, " ")
		w := f.ask(method, e.target, e.body, "Idempotency-Key", "once-"+e.body)
		asked[e.route] = true
		answer := w.Body.String()
		if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
			answer = steady(t, answer, ids)
		}
		fmt.Fprintf(&out, "== %s\n%s %s %s\n%d %s\n%s\n", e.route, method, longNumber.ReplaceAllString(e.target, "ID"), e.body,
			w.Code, w.Header().Get("Content-Type"), strings.ReplaceAll(answer, "\r\n", "\n"))
	}
	for _, route := range Routes() {
		if !asked[route.Method+" "+route.Path] {
			t.Errorf("no example asks %s %s", route.Method, route.Path)
		}
	}
	golden(t, "v1.golden", out.String())
}

// quarantined keeps a rejected delivery, as the inbox does in the background.
func quarantined(t *testing.T, f *fixture) {
	t.Helper()
	err := f.store.Quarantine(context.Background(), []onceward.Rejection{{
		Source: "hook", Reason: "missing: no signature",
		Delivery: onceward.Delivery{At: f.clock.now(), Method: "POST", Target: "/in/hook", Remote: "192.0.2.1", Body: []byte(`{"id":"e9"}`)},
	}}, onceward.QuarantineLimits{Count: 10, Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPaging(t *testing.T) {
	f := newFixture(t, "")
	f.fill(t)
	for _, list := range []struct {
		path, next string
		want       int
	}{{"/v1/events", "before", 6}, {"/v1/entities", "after", 3}} {
		seen := map[string]bool{}
		target := list.path + "?limit=1"
		for range 20 {
			body := f.want(t, http.StatusOK, "GET", target, "")
			page := decode[struct {
				Events, Entities []map[string]any
				Next             string
			}](t, body)
			for _, e := range append(page.Events, page.Entities...) {
				name := fmt.Sprint(e["id"], e["source"], e["kind"], e["scope"], e["key"])
				if seen[name] {
					t.Errorf("%s: %s came twice", list.path, name)
				}
				seen[name] = true
			}
			if page.Next == "" {
				break
			}
			target = list.path + "?limit=1&" + list.next + "=" + url.QueryEscape(page.Next)
		}
		if len(seen) != list.want {
			t.Errorf("%s: %d came, want %d", list.path, len(seen), list.want)
		}
	}
}

// TestRefusals asks in ways that mean nothing; each answer is JSON with a sentence.
func TestRefusals(t *testing.T) {
	f := newFixture(t, "")
	f.fill(t)
	big := `{"local":{"x":"` + strings.Repeat("x", maxPutBytes) + `"}}`
	for _, c := range []struct {
		status               int
		method, target, body string
		says                 string
	}{
		{404, "GET", "/nothing", "", "GET /v1 lists"},
		{404, "GET", "/v1/", "", "GET /v1 lists"},
		{405, "DELETE", "/v1/events", "", "does not answer DELETE"},
		{405, "POST", "/v1/entities/music/job/x", "", "does not answer POST"},
		{400, "GET", "/v1/events?sorce=shop", "", "?sorce= is not read here"},
		{400, "GET", "/v1/events?limit=0", "", "limit is a number"},
		{400, "GET", "/v1/events?limit=1001", "", "limit is a number"},
		{400, "GET", "/v1/events?before=x", "", "whole number"},
		{400, "GET", "/v1/events/x", "", "whole number"},
		{400, "GET", "/v1/events?type=%00", "", "no text"},
		{400, "GET", "/v1/entities?key=%ff", "", "no text"},
		{400, "GET", "/v1/entities/shop/payment/%00", "", "no text"},
		{400, "GET", "/v1/entities?after=x", "", "next of an earlier page"},
		{400, "GET", "/v1/entities/shop/payment/pi_1?scope=a/b/c", "", "ACCOUNT/MODE"},
		{409, "GET", "/v1/entities/shop/payment/pi_1/history", "", "several scopes"},
		{409, "PUT", "/v1/entities/shop/payment/pi_1", `{"local":{}}`, "several scopes"},
		{400, "PUT", "/v1/entities/shop/payment/new", `{"local":{}}`, "acct_1/live"},
		{404, "PUT", "/v1/entities/none/payment/new", `{"local":{}}`, "there is no source"},
		{400, "PUT", "/v1/entities/music/payment/new", `{"local":{}}`, "no kind"},
		{400, "PUT", "/v1/entities/music/job/x", `{"status":"succeeded"}`, "senders alone write"},
		{400, "PUT", "/v1/entities/music/job/x", `{"local":[]}`, "local is no object"},
		{400, "PUT", "/v1/entities/music/job/x", `{"local":null}`, "local is no object"},
		{400, "PUT", "/v1/entities/music/job/x", `nonsense`, "not JSON"},
		{413, "PUT", "/v1/entities/music/job/x", big, "send less"},
	} {
		body := f.want(t, c.status, c.method, c.target, c.body)
		got := decode[struct {
			Error  string
			Status int
		}](t, body)
		if !strings.Contains(got.Error, c.says) || got.Status != c.status {
			t.Errorf("%s %s says %q (%d), want %q in it", c.method, c.target, got.Error, got.Status, c.says)
		}
	}
}

func TestPutIsOnce(t *testing.T) {
	f := newFixture(t, "")
	put := func(want int, body, key string) map[string]any {
		t.Helper()
		return decode[map[string]any](t, f.want(t, want, "PUT", "/v1/entities/music/job/task-1", body, "Idempotency-Key", key))
	}
	first := put(http.StatusCreated, `{"local":{"user":"u-1"}}`, "k-1")
	again := put(http.StatusOK, `{"local":{"user":"u-1"}}`, "k-1")
	if first["event"] != again["event"] || again["outcome"] != "duplicate" {
		t.Errorf("first %v, again %v", first, again)
	}
	put(http.StatusConflict, `{"local":{"user":"u-2"}}`, "k-1")
	last := put(http.StatusOK, `{"local":{"plan":"b"}}`, "k-2")
	data := last["entity"].(map[string]any)["data"].(map[string]any)["local"]
	if fmt.Sprint(data) != "map[plan:b user:u-1]" {
		t.Errorf("local is %v", data)
	}
}

// TestSentinels walks the errors of the root package: each has a status.
func TestSentinels(t *testing.T) {
	for err, want := range map[error]int{
		onceward.ErrNotFound: 404, onceward.ErrUnknownOutcome: 503, onceward.ErrUnavailable: 503,
		context.DeadlineExceeded: 503, errors.New("anything else"): 500,
	} {
		if got := translate(fmt.Errorf("wrapped: %w", err)); got.status != want || got.message == "" {
			t.Errorf("%v is answered %d %q, want %d", err, got.status, got.message, want)
		}
	}
}
