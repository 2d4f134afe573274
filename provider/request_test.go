package provider_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider"
)

// TestSignedAfresh makes a new secret for every provider, signs every sample with
// it at another time, and has it accepted then, and only then and only with it.
func TestSignedAfresh(t *testing.T) {
	now := time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC)
	for name := range catalogue {
		base, err := provider.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := base.GenerateSecret(rand.Reader)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		other, err := base.GenerateSecret(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		compile := func(listed string) *provider.Provider {
			p, err := provider.Compile(provider.SourceConfig{Name: "s", Provider: name, Secrets: []string{listed}})
			if err != nil {
				t.Fatalf("%s: a secret of its own making: %v", name, err)
			}
			return p
		}
		right, wrong := compile(secret.Listed), compile(other.Listed)
		for _, s := range provider.Samples(name) {
			r := s.Request()
			if err := right.Sign(now, r, secret.Signing); err != nil {
				t.Errorf("%s/%s: %v", name, s.Name, err)
				continue
			}
			if !bytes.Equal(r.Body, s.Body) {
				t.Errorf("%s/%s: signing changed the body", name, s.Name)
			}
			if _, err := right.Verify(now, r); err != nil {
				t.Errorf("%s/%s: %v", name, s.Name, err)
			}
			if _, err := wrong.Verify(now, r); err == nil {
				t.Errorf("%s/%s: accepted with another secret", name, s.Name)
			}
			if got, want := len(right.Read(r)), 1; got != want {
				t.Errorf("%s/%s: %d events", name, s.Name, got)
			}
		}
	}
}

func TestSignWithTheFirstSecret(t *testing.T) {
	p, err := provider.Compile(provider.SourceConfig{Name: "s", Provider: "stripe", Secrets: []string{"whsec_new", "whsec_old"}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_790_000_000, 0)
	for signing, position := range map[string]int{"": 0, "whsec_new": 0, "whsec_old": 1} {
		r := &provider.Request{Method: "POST", URL: "https://inbox.example/in/stripe", Body: []byte(stripeBody)}
		if err := p.Sign(now, r, signing); err != nil {
			t.Fatal(err)
		}
		accepted, err := p.Verify(now, r)
		if err != nil {
			t.Fatalf("signed with %q: %v", signing, err)
		}
		if accepted.Secret != position || !accepted.BodySigned || !accepted.SignedAt.Equal(now) {
			t.Errorf("accepted by %+v, want secret %d", accepted, position)
		}
	}
}

func TestNotSignable(t *testing.T) {
	s := provider.Samples("fal")[0]
	p := source(t, s) // it has the public key only
	if err := p.Sign(s.Now, s.Request(), ""); !errors.Is(err, provider.ErrNotSignable) {
		t.Errorf("with the public key: %v", err)
	}
	p = parse(t, "verify: {scheme: token, field: body.token}")
	if err := p.Sign(s.Now, post(`{}`), "t0ken-t0ken"); !errors.Is(err, provider.ErrNotSignable) {
		t.Errorf("a token in the body: %v", err)
	} else if strings.Contains(err.Error(), "t0ken") {
		t.Errorf("the error shows the token: %v", err)
	}
	if _, err := p.GenerateSecret(rand.Reader); err == nil {
		t.Error("a secret that nothing could be signed with")
	}
}

// TestStandardWebhooksWithoutAnID signs what has no id yet: the body gives one, so
// that the same is the same.
func TestStandardWebhooksWithoutAnID(t *testing.T) {
	p, err := provider.Parse("svix", []byte("provider: standard-webhooks\nverify: {scheme: standard-webhooks, prefix: svix-}\nevent: {key: 'headers[\"svix-id\"]'}\n"),
		provider.Options{Secrets: []string{"whsec_bWFkZS11cC1zdGFuZGFyZC13ZWJob29rcy1rZXk="}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_790_000_000, 0)
	r := post(`{"type":"x"}`)
	if err := p.Sign(now, r, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Verify(now, r); err != nil {
		t.Fatal(err)
	}
	if id := r.Header.Get("svix-id"); !strings.HasPrefix(id, "msg_") || p.Read(r)[0].Event.Key != id {
		t.Errorf("id %q, key %q", id, p.Read(r)[0].Event.Key)
	}
}

// TestWithoutSecrets wants a provider without secrets to accept nothing.
func TestWithoutSecrets(t *testing.T) {
	for name := range catalogue {
		p, err := provider.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range provider.Samples(name) {
			_, err := p.Verify(s.Now, s.Request())
			if _, is := errors.AsType[*provider.Rejected](err); !is {
				t.Errorf("%s/%s: %v", name, s.Name, err)
			}
		}
	}
}

func TestChallenge(t *testing.T) {
	slack := `
verify: {scheme: hmac, header: X-Slack-Signature, format: "v0={signature}", signed: "v0:{timestamp}:{raw}", timestamp: 'headers["X-Slack-Request-Timestamp"]'}
challenge: {when: body.type == "url_verification", text: body.challenge}
`
	zoom := `
verify: {scheme: hmac, header: X-Signature}
challenge: {when: body.event == "endpoint.url_validation", json: {plainToken: body.payload.plainToken, encryptedToken: sign(body.payload.plainToken)}}
`
	meta := `
params: {verify_token: {secret: true, required: true}}
verify: {scheme: hmac, header: X-Hub-Signature-256, format: "sha256={signature}"}
challenge: {method: GET, when: 'same(query["hub.verify_token"], params.verify_token)', text: 'query["hub.challenge"]'}
`
	now := time.Unix(1_790_000_000, 0)
	get := func(query string) *provider.Request {
		return &provider.Request{Method: "GET", URL: "https://inbox.example/in/meta?" + query, Header: http.Header{}}
	}
	for _, c := range []struct {
		name, file string
		request    *provider.Request
		signed     bool
		want       string // "" if it is no handshake
	}{
		{"slack", slack, post(`{"type":"url_verification","challenge":"abc"}`), true, "text/plain; charset=utf-8 abc"},
		{"slack, not signed", slack, post(`{"type":"url_verification","challenge":"abc"}`), false, ""},
		{"slack, an event", slack, post(`{"type":"event_callback"}`), true, ""},
		{"slack, not JSON", slack, post(`x`), true, ""},
		{"slack by GET", slack, get(""), false, ""},
		{"zoom", zoom, post(`{"event":"endpoint.url_validation","payload":{"plainToken":"qwerty"}}`), true, `application/json {"encryptedToken":"MAC","plainToken":"qwerty"}`},
		{"meta", meta, get("hub.mode=subscribe&hub.verify_token=vt-secret&hub.challenge=42"), false, "text/plain; charset=utf-8 42"},
		{"meta, another token", meta, get("hub.verify_token=vt-secre&hub.challenge=42"), false, ""},
		{"meta, no token", meta, get("hub.challenge=42"), false, ""},
		{"none", "verify: {scheme: hmac, header: X-S}", post(`{}`), true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := provider.Parse("acme", []byte(c.file), provider.Options{
				Secrets: []string{"shared-secret"}, Params: params(c.file),
			})
			if err != nil {
				t.Fatal(err)
			}
			if c.signed {
				if err := p.Sign(now, c.request, ""); err != nil {
					t.Fatal(err)
				}
			}
			answer, is, err := p.Challenge(now, c.request)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if is {
				got = answer.ContentType + " " + string(answer.Body)
			}
			want := c.want
			if c.name == "zoom" { // the MAC is computed here, not copied
				want = strings.Replace(want, "MAC", mac("shared-secret", "qwerty"), 1)
			}
			if got != want {
				t.Errorf("answered %q, want %q", got, want)
			}
		})
	}
	p, _ := provider.Parse("meta", []byte(meta), provider.Options{})
	if m := p.HandshakeMethod(); m != "GET" {
		t.Errorf("handshake by %q", m)
	}
}

func params(file string) map[string]string {
	if strings.Contains(file, "verify_token") {
		return map[string]string{"verify_token": "vt-secret"}
	}
	return nil
}

func TestMask(t *testing.T) {
	p, err := provider.Parse("acme", []byte(`
params: {hub: {secret: true}, tenant: {}}
verify:
  - {scheme: token, header: X-Token-*}
  - {scheme: token, query: token}
  - {scheme: basic}
challenge: {method: GET, when: 'same(query["hub.verify_token"], params.hub) && same(headers["X-Hub"], params.hub)', text: 'query["c"]'}
`), provider.Options{Secrets: []string{"tok-en-secret", "user:pass-word-1", "shorty"}, Params: map[string]string{"hub": "hub-secret-1", "tenant": "not-a-secret"}})
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{
		"X-Token-A":      {"anything", "at all"},
		"X-Token":        {"this is another header"},
		"Authorization":  {"Basic dXNlcjpwYXNz"},
		"Cookie":         {"a=b"},
		"X-Hub":          {"wrong"},
		"X-Copy":         {"Bearer tok-en-secret"},
		"X-Password":     {"pass-word-1"},
		"X-Short":        {"shorty", "shorty and more"},
		"X-Tenant":       {"not-a-secret"},
		"X-Signature":    {"v1=abcdef"},
		"Content-Type":   {"application/json"},
		"X-Hub-Param-Is": {"hub-secret-1"},
	}
	before := header.Clone()
	masked, target := p.Mask(header, "https://user:pw@inbox.example/in/tok-en-secret/x?a=1&token=zzz&hub.verify_token=x&%74oken=q&b=hub-secret-1&c=shorty&d=%73horty&e=sho&flag")
	want := http.Header{
		"X-Token-A":      {"***", "***"},
		"X-Token":        {"this is another header"},
		"Authorization":  {"***"},
		"Cookie":         {"***"},
		"X-Hub":          {"***"},
		"X-Copy":         {"***"},
		"X-Password":     {"***"},
		"X-Short":        {"***", "shorty and more"},
		"X-Tenant":       {"not-a-secret"},
		"X-Signature":    {"v1=abcdef"},
		"Content-Type":   {"application/json"},
		"X-Hub-Param-Is": {"***"},
	}
	if diff := cmp.Diff(want, masked); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, header); diff != "" {
		t.Errorf("the header itself was changed:\n%s", diff)
	}
	if want := "https://***@inbox.example/in/***/x?a=1&token=***&hub.verify_token=***&%74oken=***&b=***&c=***&d=***&e=sho&flag"; target != want {
		t.Errorf("target %s\n  want %s", target, want)
	}
	if _, target := p.Mask(nil, "/in/acme?token=x"); target != "/in/acme?token=***" {
		t.Errorf("target %s", target)
	}
	if _, target := p.Mask(nil, "/in/acme"); target != "/in/acme" {
		t.Errorf("target %s", target)
	}
}

// TestMaskedCatalogue masks each sample and looks for its secret.
func TestMaskedCatalogue(t *testing.T) {
	for name := range catalogue {
		for _, s := range provider.Samples(name) {
			if s.Secret == "" {
				continue
			}
			header, target := source(t, s).Mask(s.Header, s.URL)
			if text := fmt.Sprint(header, target); strings.Contains(text, s.Secret) || strings.Contains(text, "Basic ") {
				t.Errorf("%s/%s: the secret is there: %s", name, s.Name, text)
			}
		}
	}
}

// TestNothingPrintsSecrets formats a provider in every way.
func TestNothingPrintsSecrets(t *testing.T) {
	p, err := provider.Compile(provider.SourceConfig{Name: "s", Provider: "stripe", Secrets: []string{"whsec_topsecret"}})
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("compiled", "provider", p, "value", *p)
	if text := fmt.Sprintf("%v %+v %#v %v %+v", p, p, p, *p, []any{p}) + logged.String(); strings.Contains(text, "topsecret") {
		t.Errorf("printed: %.300s", text)
	}
}

func TestHasScopes(t *testing.T) {
	for name, want := range map[string]bool{"stripe": true, "kiwify": false} {
		if p, err := provider.Builtin(name); err != nil || p.HasScopes() != want {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

// TestConcurrentUse uses one provider from many goroutines; the race detector
// looks on.
func TestConcurrentUse(t *testing.T) {
	samples := provider.Samples("stripe")
	p := source(t, samples[0])
	want := map[string]string{}
	for _, s := range samples {
		want[s.Name] = fmt.Sprint(p.Read(s.Request()))
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for _, s := range samples {
				r := s.Request()
				if _, err := p.Verify(s.Now, r); err != nil {
					t.Errorf("%s: %v", s.Name, err)
				}
				readings := p.Read(r)
				if got := fmt.Sprint(readings); got != want[s.Name] {
					t.Errorf("%s: read otherwise: %s", s.Name, got)
				}
				for _, f := range readings[0].Facts {
					onceward.Fold(p.Kinds()[f.Kind], []onceward.Fact{f})
				}
				p.Mask(s.Header, s.URL)
			}
		})
	}
	group.Wait()
}
