package provider_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider"
)

// FuzzParse compiles anything: it ends in a provider that reads, or in problems
// with their places, never in a panic. What compiles has a document that compiles
// to the same.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"catalog/*.yaml", "testdata/errors/*.yaml"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			f.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Add([]byte("verify: {scheme: none}\nfacts: {a: {kind: job, key: body.id, status: {of: body.s, running: [a, b]}}}\n"))
	f.Add([]byte("verify: {scheme: none}\nlet: {a: b, b: a}\nsplit: a\nevent: {type: type, was: {at: a, values: b}}\n"))
	f.Add([]byte("\"\\u0041\": 'x''y'\n? [a]\n: |\n  b\n"))
	f.Add([]byte("kinds:\n job:\nfacts:\n 0:\n    kind: job")) // a kind that says nothing
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := provider.Parse("fuzz", text, provider.Options{})
		if err != nil {
			var faults *provider.Errors
			if !errors.As(err, &faults) || len(faults.Problems) == 0 || faults.Problems[0].Message == "" {
				t.Fatalf("%v is no list of problems", err)
			}
			return
		}
		r := post(`{"id":"e1","type":"t","data":{"object":{"id":1,"object":"charge"}},"list":[{"id":1},2]}`)
		if len(p.Read(r)) == 0 {
			t.Fatal("no event was read")
		}
		if _, err := p.Verify(time.Unix(1_790_000_000, 0), r); err == nil && !p.BodyUnsigned() {
			t.Fatal("a request without a signature was accepted as signed")
		}
		again, err := provider.Parse("fuzz", p.Doc(), provider.Options{})
		if err != nil {
			t.Fatalf("the document does not compile: %v\n%s", err, p.Doc())
		}
		if again.Hash() != p.Hash() {
			t.Fatalf("the document is another provider:\n%s", p.Doc())
		}
	})
}

// FuzzRead reads any body with every file of the catalogue: each gives events with
// keys and facts that fold, the same each time.
func FuzzRead(f *testing.F) {
	var providers []*provider.Provider
	for _, name := range provider.Catalog() {
		p, err := provider.Builtin(name)
		if err != nil {
			f.Fatal(err)
		}
		providers = append(providers, p)
		for _, s := range provider.Samples(name) {
			f.Add(s.Body, s.Header.Get("Content-Type"))
		}
	}
	split, err := provider.Parse("split", []byte("verify: {scheme: none}\nsplit: body.list\nevent: {key: item.id, type: item.type, time: item.at}\nfacts: {a: {kind: job, key: item.id, status: {of: item.s, running: x}, fields: {m: {map: item.v, by: item.b}}}}\n"), provider.Options{})
	if err != nil {
		f.Fatal(err)
	}
	providers = append(providers, split)
	f.Add([]byte(`{"list":[{"id":1,"at":1},{"id":1,"id":2}]}`), "application/json")
	f.Add([]byte("a[b]=1&a[]=2&payload=%7B%7D"), "application/x-www-form-urlencoded")
	f.Add([]byte{0xef, 0xbb, 0xbf, '{', '}'}, "")
	f.Fuzz(func(t *testing.T, body []byte, mediaType string) {
		for _, p := range providers {
			request := func() *provider.Request {
				return &provider.Request{
					Method: "POST", URL: "https://inbox.example/in", Body: body,
					Header: http.Header{"Content-Type": {mediaType}, "X-Github-Event": {"workflow_run"}, "Webhook-Timestamp": {"1767225600"}},
				}
			}
			readings := p.Read(request())
			if len(readings) == 0 {
				t.Fatalf("%s: no event", p.Name())
			}
			again := p.Read(request())
			for i, r := range readings {
				if len(again) != len(readings) || again[i].Event != r.Event || !onceward.SameFacts(again[i].Facts, r.Facts) {
					t.Fatalf("%s: read twice, it differs", p.Name())
				}
				checkReading(t, p, r)
			}
		}
	})
}

func checkReading(t *testing.T, p *provider.Provider, r provider.Reading) {
	t.Helper()
	if r.Event.Key == "" || r.Event.Key != onceward.CleanText(r.Event.Key) || r.Event.Type != onceward.CleanText(r.Event.Type) {
		t.Fatalf("%s: key %q, type %q", p.Name(), r.Event.Key, r.Event.Type)
	}
	if scope, err := onceward.ParseScope(r.Event.Scope.String()); err != nil || scope != r.Event.Scope {
		t.Fatalf("%s: scope %q reads as %q, %v", p.Name(), r.Event.Scope, scope, err)
	}
	for _, f := range r.Facts {
		if f.Held != "" {
			continue
		}
		k := p.Kinds()[f.Kind]
		if _, known := k.Rank(f.Status); !known && f.Status != "" || f.Key == "" || f.Key != onceward.CleanText(f.Key) {
			t.Fatalf("%s: %s %q %q", p.Name(), f.Kind, f.Key, f.Status)
		}
		if row := onceward.Fold(k, []onceward.Fact{f, f}); !json.Valid(row.Data()) {
			t.Fatalf("%s: the row is no JSON: %s", p.Name(), row.Data())
		}
	}
}
