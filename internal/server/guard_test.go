package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/onceward/onceward"
)

func post(h http.Handler, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, target, strings.NewReader(body)))
	return w
}

func decode[T any](t *testing.T, body string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return v
}

// TestGuard asks every route from everywhere.
func TestGuard(t *testing.T) {
	for _, c := range []struct {
		name, token          string
		remote, host, header string
		want                 bool
	}{
		{"this machine", "", "127.0.0.1:4000", "127.0.0.1:8081", "", true},
		{"this machine by name", "", "[::1]:4000", "localhost:8081", "", true},
		{"this machine, IPv6", "", "[::1]:4000", "[::1]:8081", "", true},
		{"another machine", "", "192.0.2.7:4000", "127.0.0.1:8081", "", false},
		{"a foreign name", "", "127.0.0.1:4000", "evil.example:8081", "", false},
		{"a name that begins well", "", "127.0.0.1:4000", "localhost.evil.example", "", false},
		{"no name", "", "127.0.0.1:4000", "", "", false},
		{"through a proxy here", "", "127.0.0.1:4000", "localhost", "X-Forwarded-For: 192.0.2.7", false},
		{"through another proxy here", "", "127.0.0.1:4000", "localhost", "Forwarded: for=192.0.2.7", false},
		{"with the token", testToken, "192.0.2.7:4000", "admin.example", "Authorization: Bearer " + testToken, true},
		{"with the token, small letters", testToken, "192.0.2.7:4000", "admin.example", "Authorization: bearer " + testToken, true},
		{"without the token", testToken, "127.0.0.1:4000", "localhost", "", false},
		{"with another token", testToken, "127.0.0.1:4000", "localhost", "Authorization: Bearer " + testToken + "x", false},
		{"with a part of it", testToken, "127.0.0.1:4000", "localhost", "Authorization: Bearer " + testToken[:9], false},
		{"with it as a password", testToken, "127.0.0.1:4000", "localhost", "Authorization: Basic " + testToken, false},
	} {
		f := newFixture(t, c.token)
		for _, route := range Routes() {
			target := strings.NewReplacer("{id}", "1", "{source}", "music", "{kind}", "job", "{key}", "k").Replace(route.Path)
			req := httptest.NewRequest(route.Method, target, strings.NewReader(`{"local":{}}`))
			req.RemoteAddr, req.Host = c.remote, c.host
			if name, value, found := strings.Cut(c.header, ": "); found {
				req.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			f.Admin().ServeHTTP(w, req)
			passed := w.Code != http.StatusUnauthorized && w.Code != http.StatusForbidden
			if want := c.want || route.Open; passed != want {
				t.Errorf("%s: %s %s answered %d", c.name, route.Method, route.Path, w.Code)
			}
			if strings.Contains(w.Body.String(), testToken) {
				t.Errorf("%s: the answer shows the token", c.name)
			}
		}
	}
}

func TestPagesOfOthersMayNotWrite(t *testing.T) {
	f := newFixture(t, "")
	f.want(t, http.StatusForbidden, "PUT", "/v1/entities/music/job/x", `{"local":{}}`, "Sec-Fetch-Site", "cross-site")
	f.want(t, http.StatusForbidden, "PUT", "/v1/entities/music/job/x", `{"local":{}}`, "Origin", "https://evil.example")
	f.want(t, http.StatusNotFound, "GET", "/v1/entities/music/job/x", "")
}

// brokenReader fails with what must not be shown.
type brokenReader struct {
	Reader
	err error
}

func (b brokenReader) Stats(context.Context) (onceward.Stats, error) {
	return onceward.Stats{}, b.err
}

func (b brokenReader) Events(context.Context, onceward.EventQuery) ([]onceward.StoredEvent, error) {
	return nil, b.err
}

func TestNothingInternalIsShown(t *testing.T) {
	const marker = "internal-detail-4711"
	f := newFixture(t, "")
	f.reader = brokenReader{f.store, errors.New("open /secret/place: " + marker)}
	body := f.want(t, http.StatusInternalServerError, "GET", "/v1/stats", "")
	if strings.Contains(body, marker) || !strings.Contains(f.log.String(), marker) {
		t.Errorf("the answer is %s, the log %s", body, f.log)
	}
	f.reader = brokenReader{f.store, fmt.Errorf("%w: %s", onceward.ErrUnavailable, marker)}
	w := f.ask("GET", "/v1/events", "")
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), marker) {
		t.Errorf("a store that is down is answered %d %v: %s", w.Code, w.Header(), w.Body)
	}
}

// TestLogsHoldNothingSent looks for payloads, tokens and secrets in the log of a
// whole story.
func TestLogsHoldNothingSent(t *testing.T) {
	f := newFixture(t, testToken)
	f.fill(t)
	if w := post(f.Public(), "/in/hook", `{"id":"e9","run":"private-0816"}`); w.Code != http.StatusUnauthorized {
		t.Errorf("an unsigned delivery was answered %d", w.Code)
	}
	f.ask("GET", "/v1/stats", "", "Authorization", "Bearer wrong-token-0815")
	f.ask("PUT", "/v1/entities/music/job/x", `{"local":{"user":"private-0815"}}`, "Authorization", "Bearer "+testToken)
	for _, text := range []string{testSecret, testToken, "wrong-token-0815", "private-0815", "private-0816", "sp ace", "acct_1", "4990"} {
		if strings.Contains(f.log.String(), text) {
			t.Errorf("the log holds %q", text)
		}
	}
}
