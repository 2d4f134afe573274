package verify

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/tree"
)

// testTime is when tests happen: 2026-01-01T00:00:00Z, as in most vectors.
var testTime = time.Unix(1767225600, 0)

var testNames = expr.NewNames("body", "item", "raw", "headers", "query", "method", "url", "path", "params")

// testInput reads a Request as the provider package's own Input does: the body is
// parsed when first asked for, headers and query as they are at that time.
type testInput struct {
	r      *Request
	params tree.Value
	item   *tree.Value
	asked  map[string]int
	body   *tree.Value
}

func newInput(r *Request) *testInput { return &testInput{r: r, asked: map[string]int{}} }

func (in *testInput) Lookup(name string) tree.Value {
	in.asked[name]++
	switch name {
	case "body":
		return in.parsed()
	case "item":
		if in.item != nil {
			return *in.item
		}
		return in.parsed()
	case "raw":
		return tree.StringOf(string(in.r.Raw))
	case "headers":
		return tree.LookupOf(func(name string) tree.Value {
			if values := in.r.Header.Values(name); len(values) > 0 {
				return tree.StringOf(values[0])
			}
			return tree.Value{}
		})
	case "query":
		return tree.LookupOf(func(name string) tree.Value {
			if in.r.Query.Has(name) {
				return tree.StringOf(in.r.Query.Get(name))
			}
			return tree.Value{}
		})
	case "method":
		return tree.StringOf(in.r.Method)
	case "url":
		return tree.StringOf(in.r.URL)
	case "path":
		u, err := url.Parse(in.r.URL)
		if err != nil {
			return tree.Value{}
		}
		return tree.StringOf(u.Path)
	case "params":
		return in.params
	}
	return tree.Value{}
}

func (in *testInput) parsed() tree.Value {
	if in.body != nil {
		return *in.body
	}
	parse := tree.Parse
	if strings.HasPrefix(in.r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		parse = tree.ParseForm
	}
	var root tree.Value
	if doc, err := parse(in.r.Raw); err == nil {
		root = doc.Root
	}
	in.body = &root
	return root
}

// newRequest is a POST of a body to an address.
func newRequest(body string, headers ...string) *Request {
	r := &Request{Method: "POST", URL: "https://inbox.example/in", Header: http.Header{}, Query: url.Values{}, Raw: []byte(body)}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func mustCompile(t testing.TB, cfgs ...Config) *Verifier {
	t.Helper()
	v, problems := Compile(cfgs, testNames)
	for _, p := range problems {
		t.Errorf("entry %d, %s[%d]:%d: %s", p.Entry, p.Key, p.Index, p.Offset, p)
	}
	if v == nil {
		t.FailNow()
	}
	return v
}

func mustSecrets(t testing.TB, v *Verifier, texts ...string) []Secret {
	t.Helper()
	var secrets []Secret
	for _, text := range texts {
		s, err := v.ParseSecret(text)
		if err != nil {
			t.Fatalf("ParseSecret: %v", err)
		}
		secrets = append(secrets, s)
	}
	return secrets
}

// reasonOf is the reason of a rejection, "" for an acceptance. It fails on any other
// error.
func reasonOf(t testing.TB, err error) Reason {
	t.Helper()
	if err == nil {
		return ""
	}
	var rej *Rejected
	if !errors.As(err, &rej) {
		t.Fatalf("error is a %T, not a *Rejected: %v", err, err)
	}
	if rej.Detail == "" || rej.Reason.rank() < 0 {
		t.Errorf("rejection without a known reason or a detail: %#v", rej)
	}
	return rej.Reason
}
