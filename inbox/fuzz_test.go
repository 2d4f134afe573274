package inbox_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/provider"
)

// FuzzHTTP sends anything, rightly signed or not, through the whole path. Whatever
// is signed is acknowledged and kept byte for byte, and the same again is a
// duplicate; nothing else is stored; no answer is a fault of ours.
func FuzzHTTP(f *testing.F) {
	for _, s := range []struct{ source, body, contentType string }{
		{"shop", order("e1", "o1", "paid", "10:00:00"), "application/json"},
		{"shop", `{"id":"e1","id":"e2","type":"order.paid"}`, ""},
		{"shop", `{"id":` + string(bytes.Repeat([]byte("["), 2000)), ""},
		{"shop", "\x00\xff\xfe", "text/plain"},
		{"shop", "id=e1&type=order.paid&order=o1&status=paid", "application/x-www-form-urlencoded"},
		{"shop", `{"id":"e` + "\\u0000" + `1","type":"order.paid","order":"\ud800","status":"paid","at":1e400}`, ""},
		{"club", `{"account":"a","live":true,"events":[{"id":"1","job":"j","status":"queued"},{"id":"1"},7,null]}`, ""},
		{"club", `{"account":"a/b\\","live":"x/y","events":{}}`, ""},
		{"club", `{"events":[]}`, ""},
	} {
		f.Add(s.source, []byte(s.body), s.contentType, "gzip", true)
		f.Add(s.source, []byte(s.body), s.contentType, "", false)
	}
	w := newWorld(f, func(cfg *inbox.Config) { cfg.Sources["club"], cfg.Logger = clubWithoutAck(), nil })
	f.Fuzz(func(t *testing.T, source string, body []byte, contentType, encoding string, sign bool) {
		w.t = t // of this call; calls do not overlap
		p := w.Provider(source)
		if p == nil {
			source, p = "shop", w.Provider("shop")
		}
		header := http.Header{"Content-Type": {contentType}, "Content-Encoding": {encoding}}
		before := w.stats()
		send := func() *httptest.ResponseRecorder {
			r := &provider.Request{Method: "POST", URL: "http://example.com/in/" + source, Header: header.Clone(), Body: body}
			if sign {
				if err := p.Sign(w.clock.Now(), r, ""); err != nil {
					t.Fatal(err)
				}
			}
			req := httptest.NewRequest(r.Method, r.URL, bytes.NewReader(body))
			req.Header = r.Header
			return w.serve(req)
		}
		rec := send()
		if !sign {
			if rec.Code != http.StatusUnauthorized || w.stats().Events != before.Events {
				t.Fatalf("what is not signed is answered %d", rec.Code)
			}
			return
		}
		if rec.Code != http.StatusOK {
			t.Fatalf("answered %d %s", rec.Code, rec.Body)
		}
		if first := decode(t, rec); first.Outcome == "new" {
			checkKept(t, w, body)
		}
		if again := decode(t, send()); again.Outcome != "duplicate" && again.Outcome != "conflict" {
			t.Fatalf("the same again is %s", again.Outcome)
		}
	})
}

// checkKept wants the newest event to have the body that was sent.
func checkKept(t *testing.T, w *world, body []byte) {
	t.Helper()
	events, err := w.Events(ctx, onceward.EventQuery{Limit: 1})
	if err != nil || len(events) != 1 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	e, err := w.Event(ctx, events[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if events[0].Outcome == onceward.New && !bytes.Equal(e.Delivery.Body, body) {
		t.Fatalf("kept is %q, sent was %q", e.Delivery.Body, body)
	}
}
