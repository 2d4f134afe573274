package inbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/storetest"
)

func TestWhatIsAcknowledged(t *testing.T) {
	w := newWorld(t, func(cfg *inbox.Config) { cfg.Development = true })
	for _, test := range []struct {
		about, body, outcome, verdict string
	}{
		{"a new event", order("e1", "o1", "paid", "10:00:00"), "new", "applied"},
		{"the same bytes again", order("e1", "o1", "paid", "10:00:00"), "duplicate", ""},
		{"other bytes with the same facts", order("e1", "o1", "paid", "10:00:00") + " ", "duplicate", ""},
		{"other facts under the same key", order("e1", "o1", "shipped", "11:00:00"), "conflict", ""},
		{"the same conflict again", order("e1", "o1", "shipped", "11:00:00"), "conflict", ""},
		{"an older fact", order("e2", "o1", "created", "09:00:00"), "new", "stale"},
		{"a fact that tells nothing new", order("e3", "o1", "paid", "10:00:00"), "new", "same"},
		{"a word that is not listed", order("e4", "o1", "exploded", "12:00:00"), "new", "held"},
		{"a type that no rule knows", `{"id":"e5","type":"refund.made"}`, "new", ""},
		{"a member twice", `{"id":"e6","id":"e7","type":"order.paid","order":"o9","status":"paid"}`, "new", "held"},
		{"no JSON at all", `<xml/>`, "new", "held"},
		{"nothing", ``, "new", ""},
	} {
		t.Run(test.about, func(t *testing.T) {
			a := w.ok("shop", test.body)
			if a.Outcome != test.outcome {
				t.Errorf("outcome %s, want %s", a.Outcome, test.outcome)
			}
			var verdicts []string
			for _, f := range a.Facts {
				verdicts = append(verdicts, f.Verdict)
			}
			if got := strings.Join(verdicts, ","); got != test.verdict {
				t.Errorf("verdicts %q, want %q", got, test.verdict)
			}
		})
	}
	row := w.row("shop", "order", "o1")
	if row.Status != "paid" || row.Version != 1 {
		t.Errorf("the row is %s, version %d; want paid, version 1", row.Status, row.Version)
	}
	if _, err := w.Find(ctx, "shop", "order", "o9"); !errors.Is(err, onceward.ErrNotFound) {
		t.Errorf("a body with a member twice made a row: %v", err)
	}
	if s := w.stats(); s.Conflicts != 1 || s.Events != 8 {
		t.Errorf("%d conflicts and %d events, want 1 and 8", s.Conflicts, s.Events)
	}
}

func TestTheBytesAreKept(t *testing.T) {
	w := newWorld(t, nil)
	body := "\xef\xbb\xbf{\"id\" : \"e1\",\r\n\"type\":\"order.paid\",\"order\":\"o1\",\"status\":\"paid\",\"note\":\"\\u00e9\"}\n"
	r := w.signed("shop", body)
	r.Header.Add("X-Twice", "one")
	r.Header.Add("X-Twice", "two")
	r.Header.Set("Authorization", "Bearer tell nobody")
	r.RemoteAddr = "203.0.113.9:1234"
	a := decode(t, w.serve(r))
	events, err := w.Events(ctx, onceward.EventQuery{})
	if err != nil || len(events) != 1 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	e, err := w.Event(ctx, events[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(e.ID) != a.Event {
		t.Errorf("the answer names event %s, kept is %d", a.Event, e.ID)
	}
	d := e.Delivery
	if string(d.Body) != body {
		t.Errorf("the body is kept as %q", d.Body)
	}
	if d.Remote != "203.0.113.9" || d.Method != "POST" || d.Target != "/in/shop" || !d.At.Equal(w.clock.Now()) {
		t.Errorf("kept of the request: %s %s from %s at %v", d.Method, d.Target, d.Remote, d.At)
	}
	if got := d.Header["X-Twice"]; len(got) != 2 || got[0] != "one" || got[1] != "two" {
		t.Errorf("a header of two values is kept as %q", got)
	}
	notIn(t, "the kept header", fmt.Sprint(d.Header), "tell nobody")
}

func TestOneDeliveryOfManyEvents(t *testing.T) {
	w := newWorld(t, func(cfg *inbox.Config) { cfg.Sources["club2"] = clubWithoutAck() })
	item := func(id, status string) string {
		return `{"id":"` + id + `","job":"j1","status":"` + status + `","type":"t"}`
	}
	body := func(items ...string) string {
		return `{"account":"acct_1","live":true,"events":[` + strings.Join(items, ",") + `]}`
	}
	if rec := w.deliver("club", body(item("a", "queued"), item("b", "running"))); rec.Code != 200 || rec.Body.String() != "[accepted]" {
		t.Errorf("answered %d %q, want what the sender wants to read", rec.Code, rec.Body)
	}
	row := w.row("club", "job", "j1")
	if row.Status != "running" || row.Ref.Scope != (onceward.Scope{Account: "acct_1", Mode: "live"}) {
		t.Errorf("the row is %s in %s", row.Status, row.Ref.Scope)
	}
	for _, step := range []struct {
		body, worst string
		outcomes    []string
	}{
		{body(item("a", "queued"), item("b", "running")), "new", []string{"new", "new"}},
		{body(item("a", "queued"), item("b", "running")), "duplicate", []string{"duplicate", "duplicate"}},
		{body(item("a", "queued"), item("c", "succeeded")), "new", []string{"duplicate", "new"}},
		{body(item("d", "succeeded"), item("b", "failed")), "conflict", []string{"new", "conflict"}},
		{body(item("e", "succeeded"), item("e", "succeeded")), "new", []string{"new", "duplicate"}},
	} {
		a := w.ok("club2", step.body)
		var got []string
		for _, e := range a.Events {
			got = append(got, e.Outcome)
		}
		if a.Outcome != step.worst || fmt.Sprint(got) != fmt.Sprint(step.outcomes) {
			t.Errorf("outcome %s of %v, want %s of %v", a.Outcome, got, step.worst, step.outcomes)
		}
	}
}

// clubWithoutAck is the club, content with the small JSON.
func clubWithoutAck() inbox.Source {
	return inbox.Source{Definition: []byte(strings.Replace(club, `ack: "[accepted]"`, "", 1)), Secrets: []string{secret}}
}

func TestWhatIsRefused(t *testing.T) {
	w := newWorld(t, func(cfg *inbox.Config) {
		cfg.MaxBody = 200
		s := cfg.Sources["club"]
		s.MaxBody, s.Path = 1000, "/hooks/club/"
		cfg.Sources["club"] = s
	})
	unsigned := func(method, target, body string) *http.Request {
		return httptest.NewRequest(method, target, strings.NewReader(body))
	}
	forged := w.signed("shop", order("e1", "o1", "paid", "10:00:00"))
	forged.Header.Set("X-Signature", strings.Repeat("0", 64))
	long := strings.Repeat(" ", 200)
	for _, test := range []struct {
		about  string
		r      *http.Request
		status int
	}{
		{"no signature", unsigned("POST", "/in/shop", `{}`), 401},
		{"a wrong signature", forged, 401},
		{"an unknown source", unsigned("POST", "/in/nobody", `{}`), 404},
		{"a path below a source", unsigned("POST", "/in/shop/more", `{}`), 404},
		{"the default path of a source with its own", unsigned("POST", "/in/club", `{}`), 404},
		{"its own path", unsigned("POST", "/hooks/club", `{}`), 401},
		{"two slashes behind", unsigned("POST", "/in/shop//", `{}`), 404},
		{"a body one byte too long", w.signed("shop", long+" "), 413},
		{"one that another source would take", w.signed("shop", long+long), 413},
		{"GET", unsigned("GET", "/in/shop", ""), 405},
		{"HEAD", unsigned("HEAD", "/in/shop", ""), 405},
		{"OPTIONS", unsigned("OPTIONS", "/in/shop", ""), 405},
		{"PUT", unsigned("PUT", "/in/shop", "{}"), 405},
		{"DELETE", unsigned("DELETE", "/in/shop", ""), 405},
	} {
		rec := w.serve(test.r)
		if rec.Code != test.status {
			t.Errorf("%s: answered %d %s, want %d", test.about, rec.Code, rec.Body, test.status)
		}
		if test.status == 405 && rec.Header().Get("Allow") != "POST" {
			t.Errorf("%s: Allow is %q", test.about, rec.Header().Get("Allow"))
		}
		if rec.Header().Get("Location") != "" {
			t.Errorf("%s: redirected", test.about)
		}
	}
	if s := w.stats(); s.Events != 0 {
		t.Errorf("%d events are stored", s.Events)
	}
	if a := w.serve(w.signed("shop", long[:len(long)-2]+"{}")); a.Code != 200 {
		t.Errorf("a body of the limit's length: %d %s", a.Code, a.Body)
	}
	slash := w.signed("shop", order("e1", "o1", "paid", "10:00:00"))
	slash.URL.Path += "/"
	if a := w.serve(slash); a.Code != 200 {
		t.Errorf("with a trailing slash: %d %s", a.Code, a.Body)
	}
	if rec := w.serve(unsigned("GET", "/in/shop", "")); !strings.Contains(rec.Body.String(), "source shop") {
		t.Errorf("a browser is told %q", rec.Body)
	}
}

func TestAnyContentTypeIsTaken(t *testing.T) {
	w := newWorld(t, nil)
	for i, contentType := range []string{"", "application/json", "text/plain; charset=latin1", "application/octet-stream", "nonsense;;", "multipart/form-data"} {
		r := w.signed("shop", order(fmt.Sprint("e", i), "o1", "paid", "10:00:00"))
		r.Header.Set("Content-Type", contentType)
		if rec := w.serve(r); rec.Code != 200 {
			t.Errorf("Content-Type %q: %d %s", contentType, rec.Code, rec.Body)
		}
	}
	if s := w.stats(); s.Events != 6 || s.Facts[onceward.Held] != 0 {
		t.Errorf("%d events, %d held facts", s.Events, s.Facts[onceward.Held])
	}
}

func TestADeveloperIsToldWhy(t *testing.T) {
	w := newWorld(t, func(cfg *inbox.Config) { cfg.Development = true })
	r := w.signed("shop", order("e1", "o1", "paid", "10:00:00"))
	r.Header.Set("X-Signature", strings.Repeat("0", 64))
	a := decode(t, w.serve(r))
	if a.Reason != "differs" || a.Detail == "" || a.Quarantine != "q1" {
		t.Errorf("told %+v", a)
	}
	if a := w.ok("shop", order("e1", "o1", "paid", "10:00:00")); len(a.Facts) != 1 || a.Facts[0].Kind != "order" || a.Facts[0].Key != "o1" || a.Facts[0].Status != "paid" || a.Facts[0].Version != 1 {
		t.Errorf("told of its facts %+v", a.Facts)
	}
}

func TestNothingInternalReachesTheSender(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, func(cfg *inbox.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	w.store.Plan(storetest.Fault{Method: "Commit", Err: errors.New("MARKER: disk sector 7")})
	rec := w.deliver("shop", order("e1", "o1", "paid", "10:00:00"))
	if rec.Code != http.StatusInternalServerError || rec.Header().Get("Content-Type") != "application/json" {
		t.Errorf("answered %d %s", rec.Code, rec.Body)
	}
	notIn(t, "the answer", rec.Body.String()+fmt.Sprint(rec.Header()), "MARKER", secret, "o1")
	w.store.Plan()
	forged := w.signed("shop", `{"id":"e2","card":"4242424242424242"}`)
	forged.Header.Set("X-Signature", "00")
	rec = w.serve(forged)
	if rec.Code != 401 || rec.Body.String() != `{"error":"the delivery could not be verified"}` {
		t.Errorf("a forgery is answered %d %s", rec.Code, rec.Body)
	}
	w.deliver("shop", order("e3", "o1", "4242424242424242", "10:00:00"))
	w.deliver("shop", order("e3", "o2", "4242424242424242", "10:00:00"))
	w.serve(httptest.NewRequest("POST", "/in/shop", strings.NewReader(strings.Repeat("4242424242424242", 1<<17))))
	text := log.String()
	if !strings.Contains(text, "MARKER") {
		t.Errorf("the log does not say what went wrong:\n%s", text)
	}
	notIn(t, "the log", text, secret, "4242424242424242")
}

func TestAHandshakeIsAnswered(t *testing.T) {
	definition := shop + "\nchallenge: {method: GET, when: 'same(query[\"token\"], params.token)', text: 'query[\"echo\"]'}\nparams: {token: {secret: true}}\n"
	odd := shop + "\nchallenge: {when: body.type.startsWith(\"url\"), text: body.challenge}\n"
	posted := shop + "\nchallenge: {when: body.type == \"url_verification\", text: body.challenge}\n"
	w := newWorld(t, func(cfg *inbox.Config) {
		cfg.Sources["meta"] = inbox.Source{Definition: []byte(definition), Secrets: []string{secret}, Params: map[string]string{"token": "abcdefgh"}}
		cfg.Sources["odd"] = inbox.Source{Definition: []byte(odd), Secrets: []string{secret}}
		cfg.Sources["slack"] = inbox.Source{Definition: []byte(posted), Secrets: []string{secret}}
	})
	get := func(target string) *httptest.ResponseRecorder {
		return w.serve(httptest.NewRequest("GET", target, nil))
	}
	if rec := get("/in/meta?token=abcdefgh&echo=42"); rec.Code != 200 || rec.Body.String() != "42" {
		t.Errorf("a right handshake: %d %q", rec.Code, rec.Body)
	}
	if rec := get("/in/meta?token=wrong&echo=42"); rec.Code != 405 || rec.Header().Get("Allow") != "GET, POST" || strings.Contains(rec.Body.String(), "42") {
		t.Errorf("a wrong one: %d %q, Allow %q", rec.Code, rec.Body, rec.Header().Get("Allow"))
	}
	if rec := w.deliver("slack", `{"type":"url_verification","challenge":"c1"}`); rec.Code != 200 || rec.Body.String() != "c1" {
		t.Errorf("a posted one: %d %q", rec.Code, rec.Body)
	}
	forged := w.signed("slack", `{"type":"url_verification","challenge":"c1"}`)
	forged.Header.Set("X-Signature", "00")
	if rec := w.serve(forged); rec.Code != 401 {
		t.Errorf("a posted one that is not signed: %d %q", rec.Code, rec.Body)
	}
	if s := w.stats(); s.Events != 0 {
		t.Errorf("%d handshakes are stored", s.Events)
	}
	if a := w.ok("slack", order("e1", "o1", "paid", "10:00:00")); a.Outcome != "new" {
		t.Errorf("a delivery beside them: %+v", a)
	}
	if a := w.ok("odd", `{"id":"e1","type":7}`); a.Outcome != "new" {
		t.Errorf("one of which cannot be told whether it is a handshake: %+v", a)
	}
}

func TestAnUnknownSourceAnswers404(t *testing.T) {
	w := newWorld(t, nil)
	rec := httptest.NewRecorder()
	w.Source("nobody").ServeHTTP(rec, httptest.NewRequest("POST", "/", nil))
	if rec.Code != 404 {
		t.Errorf("answered %d", rec.Code)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/mine", w.Source("shop"))
	r := w.signed("shop", order("e1", "o1", "paid", "10:00:00"))
	r.URL.Path = "/webhooks/mine"
	rec = httptest.NewRecorder()
	mux.ServeHTTP(rec, r)
	if rec.Code != 200 {
		t.Errorf("mounted at a path of one's own: %d %s", rec.Code, rec.Body)
	}
}
