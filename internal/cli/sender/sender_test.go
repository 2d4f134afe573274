package sender

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixed is when the tests sign.
func fixed() time.Time { return time.Unix(1767225600, 0) }

func testClient(t *testing.T) *Client {
	t.Helper()
	c := New(2, fixed)
	t.Cleanup(c.Close)
	return c
}

func compiled(t *testing.T, name, secret string) *provider.Provider {
	t.Helper()
	p, err := provider.Compile(provider.SourceConfig{Name: name, Provider: name, Secrets: []string{secret}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// receiver verifies what comes in as the inbox does.
func receiver(t *testing.T, p *provider.Provider, public string, answer func(http.ResponseWriter)) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		base := "http://" + r.Host
		if public != "" {
			base = public
		}
		if _, err := p.Verify(fixed(), &provider.Request{Method: r.Method, URL: base + r.RequestURI, Header: r.Header, Body: body}); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		answer(w)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestSend(t *testing.T) {
	for _, c := range []struct{ name, secret string }{{"stripe", "whsec_1"}, {"sunoapi", "a token & more"}, {"kiwify", "t"}, {"standard-webhooks", "whsec_bWFkZS11cC1yZXBsaWNhdGUtc2FtcGxlLWtleQ=="}} {
		p := compiled(t, c.name, c.secret)
		server := receiver(t, p, "", func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"event":"1","outcome":"new","facts":[{"kind":"payment","key":"k","verdict":"applied","status":"paid","version":2}]}`)
		})
		d := &Delivery{Provider: p, To: server.URL + "/in/x", Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"data":{"task_id":"t"}}`)}
		for range 2 { // a delivery may be sent again
			got, err := testClient(t).Send(t.Context(), d)
			if err != nil || got.Status != http.StatusOK || got.Outcome != "new" || len(got.Facts) != 1 || got.Facts[0] != (Fact{"payment", "k", "applied", "paid", 2, ""}) || len(got.Events) != 1 || got.Events[0].ID != "1" {
				t.Errorf("%s: %+v, %v", c.name, got, err)
			}
		}
		if len(d.Header) != 1 || strings.Contains(d.To, "token") {
			t.Errorf("%s: sending changed the delivery: %+v", c.name, d)
		}
	}
}

func TestSignedAs(t *testing.T) {
	p := compiled(t, "sunoapi", "a-token")
	server := receiver(t, p, "https://hooks.example.com", func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) })
	got, err := testClient(t).Send(t.Context(), &Delivery{Provider: p, To: server.URL + "/in/x?keep=1", SignedAs: "https://hooks.example.com/in/x?keep=1", Body: []byte("{}")})
	if err != nil || got.Status != http.StatusOK {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOtherAnswers(t *testing.T) {
	p := compiled(t, "stripe", "whsec_1")
	for _, c := range []struct {
		status int
		body   string
		want   Answer
	}{
		{200, "*ok*", Answer{Status: 200}},
		{200, `{"events":[{"facts":[{"kind":"a"}]},{"facts":[{"kind":"b"}]}],"outcome":"duplicate"}`, Answer{Status: 200, Outcome: "duplicate", Facts: []Fact{{Kind: "a"}, {Kind: "b"}}}},
		{401, `{"error":"x","reason":"differs","detail":"in words","quarantine":"q7"}`, Answer{Status: 401, Reason: "in words", Quarantine: "q7"}},
		{307, "", Answer{Status: 307}},
		{503, "{", Answer{Status: 503}},
	} {
		server := receiver(t, p, "", func(w http.ResponseWriter) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		got, err := testClient(t).Send(t.Context(), &Delivery{Provider: p, To: server.URL, Body: []byte("{}")})
		if err != nil || got.Status != c.want.Status || got.Outcome != c.want.Outcome || got.Reason != c.want.Reason || got.Quarantine != c.want.Quarantine || len(got.Facts) != len(c.want.Facts) {
			t.Errorf("%d %s: %+v, %v", c.status, c.body, got, err)
		}
	}
}

// TestSendAndLose: the server has answered when the call returns, and nobody knows
// what.
func TestSendAndLose(t *testing.T) {
	p := compiled(t, "stripe", "whsec_1")
	answered := make(chan struct{}, 1)
	server := receiver(t, p, "", func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, `{"outcome":"new"}`)
		answered <- struct{}{}
	})
	got, err := testClient(t).SendAndLose(t.Context(), &Delivery{Provider: p, To: server.URL + "/in/x", Body: []byte("{}")})
	if err != nil || !got.Lost || got.Status != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	<-answered
}

func TestSendAndLoseIsCancelled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	accepted := make(chan net.Conn, 1)
	go func() { // answers nothing
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- conn
		cancel()
	}()
	_, err = testClient(t).SendAndLose(ctx, &Delivery{Provider: compiled(t, "stripe", "whsec_1"), To: "http://" + l.Addr().String(), Body: []byte("{}")})
	if err == nil {
		t.Error("nothing came back, and that was no error")
	}
	if err := errors.Join((<-accepted).Close(), l.Close()); err != nil {
		t.Error(err)
	}
}

// TestErrorsHoldNoToken: the address that a token travels in is in no message.
func TestErrorsHoldNoToken(t *testing.T) {
	p := compiled(t, "sunoapi", "secret-token-0815")
	for _, send := range []func(context.Context, *Delivery) (Answer, error){testClient(t).Send, testClient(t).SendAndLose} {
		_, err := send(t.Context(), &Delivery{Provider: p, To: "http://127.0.0.1:1/in/x", Body: []byte("{}")})
		if err == nil || strings.Contains(err.Error(), "0815") {
			t.Errorf("got %v", err)
		}
	}
}

func TestNotSignable(t *testing.T) {
	p, err := provider.Builtin("stripe")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := testClient(t).Send(t.Context(), &Delivery{Provider: p, To: "http://127.0.0.1:1", Body: []byte("{}")}); err == nil {
		t.Error("it was signed with nothing")
	}
}

func TestRegister(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.Method != http.MethodPut || r.RequestURI != "/v1/entities/music/job/a%2Fb?scope=acct_1%2Flive" || string(body) != `{"local":{"user":"u-1"}}` ||
			r.Header.Get("Idempotency-Key") != "k-1" || r.Header.Get("Authorization") != "Bearer t-1" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"not as it should be"}`)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"event":"7","outcome":"new","entity":{"status":"queued"}}`)
	}))
	defer server.Close()
	ref := onceward.Ref{Source: "music", Scope: onceward.Scope{Account: "acct_1", Mode: "live"}, Kind: "job", Key: "a/b"}
	local := map[string]onceward.Value{"user": onceward.String("u-1")}
	got, err := testClient(t).Register(t.Context(), server.URL, "t-1", ref, local, "k-1")
	if err != nil || got.Event != "7" || got.Outcome != "new" || got.Entity.Status != "queued" {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = testClient(t).Register(t.Context(), server.URL, "", ref, local, "")
	if err == nil || !strings.Contains(err.Error(), "400 not as it should be") {
		t.Errorf("got %v", err)
	}
}
