package provider_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/provider"
)

// catalogue lists what must be there, with the least number of samples of each.
var catalogue = map[string]int{
	"fal": 3, "github": 10, "hotmart": 11, "kie": 5, "kiwify": 11, "pagarme": 8, "pagarme-v4": 4, "replicate": 6,
	"standard-webhooks": 2, "stripe": 13, "sunoapi": 5,
}

// source compiles a source of a sample's provider with the sample's secrets.
func source(t testing.TB, s provider.Sample) *provider.Provider {
	t.Helper()
	p, err := provider.Compile(provider.SourceConfig{Name: "test", Provider: s.Provider, Secrets: s.Secrets()})
	if err != nil {
		t.Fatalf("%s: %v", s.Provider, err)
	}
	return p
}

func TestCatalogue(t *testing.T) {
	names := provider.Catalog()
	for name, least := range catalogue {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not in the catalogue", name)
		}
		if got := len(provider.Samples(name)); got < least {
			t.Errorf("%s has %d samples, want at least %d", name, got, least)
		}
	}
	var warnings []string
	for _, name := range names {
		p, err := provider.Builtin(name)
		if err != nil {
			t.Errorf("%s:\n%v", name, err)
			continue
		}
		if p.Name() != name || p.Title() == name || len(p.Docs()) == 0 || len(p.Notes()) == 0 {
			t.Errorf("%s lacks its title, docs or notes", name)
		}
		for _, w := range p.Warnings() {
			warnings = append(warnings, w.Message)
		}
		for _, note := range p.Notes() {
			if note.Text == "" {
				t.Errorf("%s: note %s is empty", name, note.Name)
			}
		}
	}
	// Those that are known and meant: Kiwify has no better clock, and the charge
	// inside an order is the charge itself, with its own clock.
	meant := []string{"this clock has no seconds", "rule order-charge takes the time of payment"}
	if len(warnings) != len(meant) {
		t.Errorf("%d warnings, want %d: %q", len(warnings), len(meant), warnings)
	}
	for _, m := range meant {
		if !slices.ContainsFunc(warnings, func(w string) bool { return strings.HasPrefix(w, m) }) {
			t.Errorf("no warning begins %q", m)
		}
	}
}

func TestSourceOfCatalogueHasNoWarnings(t *testing.T) {
	for name := range catalogue {
		p := source(t, provider.Samples(name)[0])
		if w := p.Warnings(); len(w) > 0 {
			t.Errorf("%s: a user is warned of what only the catalogue can mend: %v", name, w[0])
		}
	}
}

func TestSamplesVerifyAndRead(t *testing.T) {
	for name := range catalogue {
		for _, s := range provider.Samples(name) {
			t.Run(name+"/"+s.Name, func(t *testing.T) {
				p := source(t, s)
				r := s.Request()
				accepted, err := p.Verify(s.Now, r)
				if err != nil {
					t.Fatalf("not accepted: %v", err)
				}
				readings := p.Read(r)
				if len(readings) != 1 {
					t.Fatalf("%d events", len(readings))
				}
				ev := readings[0].Event
				if ev.Key == "" || ev.DigestKey {
					t.Errorf("key %q, by digest %v", ev.Key, ev.DigestKey)
				}
				if s.Type != "" && ev.Type != s.Type && name != "kiwify" {
					t.Errorf("type %q, want %q", ev.Type, s.Type)
				}
				if ev.Unsigned == accepted.BodySigned {
					t.Errorf("unsigned %v, though the signature covers the body: %v", ev.Unsigned, accepted.BodySigned)
				}
				for _, f := range readings[0].Facts {
					if f.Held != "" || len(f.Notes) > 0 {
						t.Errorf("rule %s: held %q, notes %q", f.Rule, f.Held, f.Notes)
					}
				}
				again := s.Request()
				if _, err := p.Verify(s.Now, again); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(readings, p.Read(again), equalValues); diff != "" {
					t.Errorf("read twice, it differs:\n%s", diff)
				}
			})
		}
	}
}

// TestPagarmeBothWays accepts each sample by either of its two schemes alone.
func TestPagarmeBothWays(t *testing.T) {
	for _, s := range provider.Samples("pagarme") {
		for _, secret := range []string{s.Secret, s.Keys} {
			p, err := provider.Compile(provider.SourceConfig{Name: "test", Provider: "pagarme", Secrets: []string{secret}})
			if err != nil {
				t.Fatal(err)
			}
			accepted, err := p.Verify(s.Now, s.Request())
			if err != nil {
				t.Errorf("%s: %v", s.Name, err)
			} else if accepted.BodySigned != (secret == s.Keys) {
				t.Errorf("%s: body signed %v by %s", s.Name, accepted.BodySigned, accepted.Scheme)
			}
		}
	}
}

// vector is one entry of vectors.json; see the note in testdata/README.md.
type vector struct {
	Provider, Scheme, Secret, Method, URL, Note, Expect string

	Headers    map[string]string
	Body       *string
	BodyBase64 string `json:"body_base64"`
	Now        int64
	Params     struct{ JWKS json.RawMessage }
}

func (v *vector) request(t *testing.T) *provider.Request {
	t.Helper()
	r := &provider.Request{Method: v.Method, URL: v.URL, Header: http.Header{}}
	for name, value := range v.Headers {
		r.Header.Set(name, value)
	}
	if v.Body != nil {
		r.Body = []byte(*v.Body)
		return r
	}
	body, err := base64.StdEncoding.DecodeString(v.BodyBase64)
	if err != nil {
		t.Fatal(err)
	}
	r.Body = body
	return r
}

// config is the source that a vector is about.
func (v *vector) config() provider.SourceConfig {
	cfg := provider.SourceConfig{Name: "test", Provider: v.Provider}
	switch v.Scheme {
	case "pagarme-v4-hub-sha1":
		cfg.Provider = "pagarme-v4"
	case "github-sha1": // accepted only where it is asked for
		cfg.Text = []byte(`verify: {scheme: hmac, hash: sha1, header: X-Hub-Signature, format: "sha1={signature}"}`)
	}
	for _, secret := range []string{v.Secret, string(v.Params.JWKS)} {
		if secret != "" {
			cfg.Secrets = append(cfg.Secrets, secret)
		}
	}
	return cfg
}

// TestVectors runs every vector of the catalogue's senders through its file.
func TestVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	type count struct{ Valid, Invalid int }
	got := map[string]count{}
	for _, v := range vectors {
		cfg := v.config()
		if !slices.Contains(provider.Catalog(), cfg.Provider) {
			continue
		}
		n := got[cfg.Provider]
		if v.Expect == "valid" {
			n.Valid++
		} else {
			n.Invalid++
		}
		got[cfg.Provider] = n
		p, err := provider.Compile(cfg)
		if err != nil {
			// An empty secret is refused here, before anything could be accepted.
			if v.Expect == "valid" || v.Secret != "" || v.Params.JWKS != nil {
				t.Errorf("%s: %s: %v", v.Provider, v.Note, err)
			}
			continue
		}
		r := v.request(t)
		_, err = p.Verify(time.Unix(v.Now, 0), r)
		var rejected *provider.Rejected
		switch {
		case v.Expect == "valid" && err != nil:
			t.Errorf("%s: %s: rejected: %v", v.Provider, v.Note, err)
		case v.Expect != "valid" && err == nil:
			t.Errorf("%s: %s: accepted", v.Provider, v.Note)
		case err != nil && (!errors.As(err, &rejected) || !slices.Contains(provider.Reasons(), rejected.Reason)):
			t.Errorf("%s: %s: %v is no *Rejected with a known reason", v.Provider, v.Note, err)
		}
		if len(p.Read(r)) != 1 {
			t.Errorf("%s: %s: cannot be read", v.Provider, v.Note)
		}
	}
	want := map[string]count{
		"fal": {2, 5}, "github": {5, 3}, "hotmart": {2, 2}, "kie": {2, 3}, "kiwify": {2, 5}, "pagarme": {2, 4},
		"pagarme-v4": {3, 3}, "replicate": {2, 8}, "standard-webhooks": {6, 9}, "stripe": {3, 6},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the number of vectors differs (-want +got):\n%s", diff)
	}
}
