package provider_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider"
)

// equalValues compares values as the store does.
var equalValues = cmp.Comparer(func(a, b onceward.Value) bool { return a.Equal(b) && a.IsZero() == b.IsZero() })

// parse compiles a file that must be right.
func parse(t testing.TB, text string) *provider.Provider {
	t.Helper()
	p, err := provider.Parse("acme", []byte(text), provider.Options{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

// post is a request with a body of JSON.
func post(body string) *provider.Request {
	return &provider.Request{
		Method: "POST", URL: "https://inbox.example/in/acme?from=query", Body: []byte(body),
		Header: http.Header{"Content-Type": {"application/json"}, "X-Event-Id": {"h-1", "h-2"}},
	}
}

// one reads a body that is one event.
func one(t testing.TB, p *provider.Provider, body string) provider.Reading {
	t.Helper()
	readings := p.Read(post(body))
	if len(readings) != 1 {
		t.Fatalf("%d events, want 1", len(readings))
	}
	return readings[0]
}

// show writes a fact on one line: kind key status fields, then what is unusual.
func show(f onceward.Fact) string {
	if f.Held != "" {
		return "held: " + f.Held
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", f.Kind, f.Key, f.Status)
	for _, p := range f.Fields {
		fmt.Fprintf(&b, " %s=%s", onceward.PartName(p.Field, p.By, p.By != ""), p.Value.JSON())
	}
	if f.Hint {
		b.WriteString(" hint")
	}
	for _, c := range []struct {
		name string
		opt  onceward.Opt
	}{{"epoch", f.Epoch}, {"sequence", f.Sequence}} {
		if c.opt.Set {
			fmt.Fprintf(&b, " %s %d", c.name, c.opt.N)
		}
	}
	if f.Time.Set {
		b.WriteString(" at " + f.Time.Time().Format(time.RFC3339Nano))
	}
	for _, p := range f.Was {
		fmt.Fprintf(&b, " was %s=%s", onceward.PartName(p.Field, p.By, p.By != ""), p.Value.JSON())
	}
	for _, n := range f.Notes {
		b.WriteString(" note: " + n)
	}
	return b.String()
}

func showAll(r provider.Reading) []string {
	var lines []string
	for _, f := range r.Facts {
		lines = append(lines, show(f))
	}
	return lines
}

// mac is a hex HMAC-SHA256.
func mac(key, text string) string {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}
