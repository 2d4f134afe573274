package provider_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/provider"
)

// files is a ReadFile over texts.
func files(texts map[string]string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		text, ok := texts[name]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return []byte(text), nil
	}
}

// problemsOf returns the messages with their places.
func problemsOf(t *testing.T, err error) []string {
	t.Helper()
	var faults *provider.Errors
	if !errors.As(err, &faults) {
		t.Fatalf("got %v, want *Errors", err)
	}
	var lines []string
	for _, p := range faults.Problems {
		lines = append(lines, fmt.Sprintf("%s:%d:%d %s", p.File, p.Line, p.Column, p.Message))
	}
	return lines
}

const stripeBody = `{"id":"evt_1","type":"charge.succeeded","created":1767225600,"livemode":true,"data":{"object":{"id":"ch_1","object":"charge","amount":100,"currency":"usd","status":"succeeded","metadata":{"order":"A-1"}}}}`

func TestLayers(t *testing.T) {
	whole := `
store: sqlite:onceward.db
sources:
  shop:
    provider: stripe
    secrets: [$STRIPE]
    path: /hooks/stripe
    max_body: 2MiB
    let: {o: body.data.object}
    kinds:
      payment: {order: [rank]}
      plan: none
    facts:
      plan: none
      intent: none
      charge:
        status: {of: o.state, paid: none, failed: [failed, ok]}
        fields: {amount: none, reference: o.metadata.order, currency: '"EUR"'}
      order: {when: 'o.metadata.order != null', kind: order, key: o.metadata.order, status: paid}
    notes: {mine: a note of my own}
    ack: ""
`
	p, err := provider.Compile(provider.SourceConfig{
		Name: "shop", Secrets: []string{"whsec_x"}, File: "onceward.yaml", Text: []byte(whole), At: []string{"sources", "shop"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.Name() != "stripe" || p.Title() != "Stripe" {
		t.Errorf("name %q, title %q", p.Name(), p.Title())
	}
	if body, set := p.Ack(); body != "" || !set {
		t.Errorf("ack %q, %v", body, set)
	}
	want := []string{
		`payment ch_1  currency="EUR" refund_total=0 reference="A-1" at 2026-01-01T00:00:00Z`,
		"order A-1 paid at 2026-01-01T00:00:00Z",
	}
	if diff := cmp.Diff(want, showAll(one(t, p, stripeBody))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := show(one(t, p, strings.Replace(stripeBody, `"status":"succeeded"`, `"state":"ok"`, 1)).Facts[0]); !strings.HasPrefix(got, "payment ch_1 failed ") {
		t.Errorf("a word moved to another state: %s", got)
	}
	if _, there := p.Kinds()["plan"]; there {
		t.Error("kind plan was taken away and is there")
	}
	if _, there := p.Kinds()["order"]; !there {
		t.Error("kind order is not there, though a rule names it")
	}
	if notes := p.Notes(); notes[len(notes)-1].Name != "mine" {
		t.Errorf("notes %v", notes)
	}
	if doc := string(p.Doc()); strings.Contains(doc, "STRIPE") || strings.Contains(doc, "max_body") || !strings.Contains(doc, "reference: o.metadata.order") {
		t.Errorf("the document holds too much or too little:\n%s", doc)
	}
}

func TestVerifyIsReplacedByAScheme(t *testing.T) {
	for text, want := range map[string]string{
		"verify: {scheme: token, header: X-Token}": "tolerance means nothing",
		"verify: {tolerance: 10m}":                 "",
	} {
		p, err := provider.Compile(provider.SourceConfig{Name: "s", Provider: "stripe", Secrets: []string{"x"}, Text: []byte(text)})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if header := strings.Contains(string(p.Doc()), "Stripe-Signature"); header != (want == "") {
			t.Errorf("%s: laid over wrongly:\n%s", text, p.Doc())
		}
	}
}

func TestChains(t *testing.T) {
	texts := map[string]string{
		"conf/acme.yaml":      "provider: base/base.yaml\nevent: {type: body.kind}\n",
		"conf/base/base.yaml": "verify: {scheme: none}\nevent: {key: body.id, type: body.type}\nfacts: {a: {kind: cart, key: body.id}}\n",
		"conf/loop.yaml":      "provider: ./loop2.yaml\n",
		"conf/loop2.yaml":     "provider: ./loop.yaml\nfacts: {x: none}\n",
		"conf/stripe.yaml":    "provider: stripe\n",
		"conf/broken.yaml":    "verify: {scheme: none}\nevent: {kee: body.id}\n",
		"conf/list.yaml":      "- a\n",
	}
	compile := func(ref string) (*provider.Provider, error) {
		return provider.Compile(provider.SourceConfig{
			Name: "s", Provider: ref, Secrets: nil, File: "conf/onceward.yaml", Text: []byte("facts:\n  b: {kind: job, key: body.id}\n"), ReadFile: files(texts),
		})
	}
	p, err := compile("./acme.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if p.Name() != "acme" {
		t.Errorf("name %q, want that of the file", p.Name())
	}
	r := one(t, p, `{"id":"e1","kind":"k","type":"t"}`)
	if got := r.Event.Key + " " + r.Event.Type + " " + strings.Join(showAll(r), ","); got != "e1 k cart e1 ,job e1 " {
		t.Errorf("three layers: %s", got)
	}
	for ref, want := range map[string]string{
		"./loop.yaml":   "conf/loop2.yaml:1:11 conf/loop.yaml starts from itself: conf/loop.yaml -> conf/loop2.yaml -> conf/loop.yaml; a file's own name is its file name, so leave provider out",
		"./none.yaml":   `conf/onceward.yaml:0:0 provider "conf/none.yaml" cannot be read: file does not exist`,
		"./broken.yaml": `conf/broken.yaml:2:9 unknown key "kee" in event; did you mean "key"? The keys are key, type, time, scope, was`,
		"./list.yaml":   "conf/list.yaml:1:1 a provider file is a map of keys as verify, event and facts; this is a list",
		"strip":         `conf/onceward.yaml:0:0 there is no provider "strip" in the catalogue; did you mean "stripe"? A file of your own begins with ./`,
		"../catalog":    `conf/onceward.yaml:0:0 provider "catalog" cannot be read: file does not exist`,
	} {
		_, err := compile(ref)
		if err == nil {
			t.Errorf("%s: accepted", ref)
		} else if got := problemsOf(t, err); len(got) != 1 || got[0] != want {
			t.Errorf("%s:\n got %q\nwant %q", ref, got, want)
		}
	}
	if _, err := provider.Parse("stripe", []byte("provider: stripe\n"), provider.Options{}); err != nil {
		t.Errorf("a file may be called as what it starts from: %v", err)
	}
	if _, err := provider.Parse("x", []byte("provider: ./x.yaml\n"), provider.Options{ReadFile: files(nil)}); err == nil || !strings.Contains(err.Error(), "starts from itself") {
		t.Errorf("a file that starts from itself: %v", err)
	}
	if _, err := provider.Parse("x", []byte("provider: ./y.yaml\n"), provider.Options{}); err == nil || !strings.Contains(err.Error(), "nothing here reads files") {
		t.Errorf("without ReadFile: %v", err)
	}
}

func TestTakingAway(t *testing.T) {
	for text, want := range map[string]string{
		"facts: {chrge: none}":                 `:1:9 facts has no entry "chrge" to take away; did you mean "charge"? It has `,
		"challenge: none":                      `:1:1 the layer below has no entry "challenge" to take away; it has `,
		"kinds: {plam: none}":                  `:1:9 kinds has no entry "plam" to take away; did you mean "plan"? It has `,
		"verify: none":                         `:1:1 verify is missing: `,
		"facts: {charge: {fields: {x: none}}}": `:1:27 facts.charge.fields has no entry "x" to take away; it has amount`,
	} {
		_, err := provider.Compile(provider.SourceConfig{Name: "s", Provider: "stripe", Secrets: []string{"x"}, Text: []byte(text)})
		if err == nil {
			t.Errorf("%s: accepted", text)
		} else if got := problemsOf(t, err); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%s:\n got %q\nwant %q", text, got, want)
		}
	}
}

func TestSourceSecretsAndParams(t *testing.T) {
	file := "sources:\n  f:\n    provider: fal\n    secrets: [s3cr3t-in-plain-text]\n    params: {user_id: me, usr: x}\n    event: {kee: body.id}\n"
	base := provider.SourceConfig{Name: "f", File: "onceward.yaml", Text: []byte(file), At: []string{"sources", "f"}}
	keys := provider.Samples("fal")[0].Keys
	for _, c := range []struct {
		name    string
		secrets []string
		params  map[string]string
		want    []string
	}{
		{"none", nil, nil, []string{"onceward.yaml:4:5 a secret is missing: list under `secrets` the sender's public key", "onceward.yaml:6:13 unknown key"}},
		{"empty", []string{""}, nil, []string{"onceward.yaml:4:5 secret 1 of 1: the secret is empty", "onceward.yaml:6:13 unknown key"}},
		{"no key", []string{"s3cr3t-in-plain-text"}, nil, []string{"onceward.yaml:4:5 secret 1 of 1: ", "onceward.yaml:6:13 unknown key"}},
		{"unknown param", []string{keys}, map[string]string{"user": "x", "user_id": "me"}, []string{`onceward.yaml:5:5 nothing reads a param "user"; the params are user_id`, "onceward.yaml:6:13 unknown key"}},
	} {
		cfg := base
		cfg.Secrets, cfg.Params = c.secrets, c.params
		_, err := provider.Compile(cfg)
		if err == nil {
			t.Errorf("%s: accepted", c.name)
			continue
		}
		got := problemsOf(t, err)
		for i, want := range c.want {
			if i >= len(got) || !strings.HasPrefix(got[i], want) {
				t.Errorf("%s: got %q, want %q", c.name, got, c.want)
				break
			}
		}
		if strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: the error shows a secret:\n%v", c.name, err)
		}
	}
	required := "params: {tenant: {required: true, about: your tenant}, token: {secret: true}}\nverify: {scheme: none}\nevent: {key: 'same(query[\"t\"], params.token) ? body.id : null', scope: {account: params.tenant}}\n"
	_, err := provider.Compile(provider.SourceConfig{Name: "s", Provider: "./a.yaml", ReadFile: files(map[string]string{"a.yaml": required})})
	if got := problemsOf(t, err); len(got) != 1 || got[0] != `:0:0 param "tenant" is required (your tenant); write params: {tenant: …}` {
		t.Errorf("a required param: %q", got)
	}
	p, err := provider.Compile(provider.SourceConfig{
		Name: "s", Provider: "./a.yaml", ReadFile: files(map[string]string{"a.yaml": required}), Params: map[string]string{"tenant": "t1", "token": "from=query"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := one(t, p, `{"id":1}`).Event.Scope.String(); got != "t1" {
		t.Errorf("scope %q", got)
	}
	want := []provider.Param{{Name: "tenant", Required: true, About: "your tenant"}, {Name: "token", Secret: true}}
	if diff := cmp.Diff(want, p.Params()); diff != "" {
		t.Error(diff)
	}
}

// TestUndeclaredParams lets a source that describes its sender use the params it
// gives itself.
func TestUndeclaredParams(t *testing.T) {
	text := []byte("verify: {scheme: none}\nevent: {key: 'join([params.tenant, body.id], \"-\")'}\n")
	if _, err := provider.Compile(provider.SourceConfig{Name: "s", Text: text}); err == nil || !strings.Contains(err.Error(), `there is no param "tenant"`) {
		t.Errorf("not given: %v", err)
	}
	p, err := provider.Compile(provider.SourceConfig{Name: "s", Text: text, Params: map[string]string{"tenant": "t"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := one(t, p, `{"id":7}`).Event.Key; got != "t-7" {
		t.Errorf("key %q", got)
	}
}

func TestHash(t *testing.T) {
	hash := func(text string, params map[string]string) string {
		t.Helper()
		p, err := provider.Parse("acme", []byte(text), provider.Options{Params: params})
		if err != nil {
			t.Fatal(err)
		}
		return p.Hash()
	}
	base := "verify: {scheme: none}\nlet: {o: body.o}\nevent: {key: body.id, type: body.type}\nfacts:\n  a: {kind: cart, key: o.id, fields: {x: o.x, y: o.y}}\n  b: {kind: job, key: o.id}\n"
	first := hash(base, nil)
	for name, text := range map[string]string{
		"verification":    strings.Replace(base, "scheme: none", "scheme: token, header: X-T", 1),
		"notes and title": base + "title: T\nnotes: {a: b}\ndocs: [x]\nack: ok\n",
		"quotes":          strings.Replace(base, "body.type", "'body.type'", 1),
		"order of keys":   "event: {type: body.type, key: body.id}\nfacts:\n  a: {fields: {y: o.y, x: o.x}, key: o.id, kind: cart}\n  b: {key: o.id, kind: job}\nlet: {o: body.o}\nverify: {scheme: none}\n",
		"a kind as it is": base + "kinds: {job: {order: [rank]}}\n",
	} {
		if got := hash(text, nil); got != first {
			t.Errorf("%s: another hash", name)
		}
	}
	seen := map[string]string{first: "base"}
	for name, text := range map[string]string{
		"an expression":  strings.Replace(base, "o.x", "o.z", 1),
		"a key":          strings.Replace(base, "body.id", "digest", 1),
		"order of rules": strings.Replace(strings.Replace(base, "  b: {kind: job, key: o.id}\n", "", 1), "facts:\n", "facts:\n  b: {kind: job, key: o.id}\n", 1),
		"a let":          strings.Replace(base, "o: body.o", "o: body.p", 1),
		"a kind":         base + "kinds: {job: {order: [rank, time]}}\n",
		"one more state": base + "kinds: {cart: {states: [open, abandoned, recovered, sold]}}\n",
		"split":          base + "split: body.list\n",
		"unwrap":         base + "unwrap: payload\n",
		"a new rule":     base + "  c: {kind: job, key: o.id}\n",
	} {
		got := hash(text, nil)
		if other, is := seen[got]; is {
			t.Errorf("%s and %s have one hash", name, other)
		}
		seen[got] = name
	}
	with := base + "  c: {when: 'params.mode == \"x\"', kind: job, key: o.id}\nparams: {mode: {}, token: {secret: true}, other: {}}\n"
	plain := hash(with, nil)
	if hash(with, map[string]string{"mode": "x"}) == plain {
		t.Error("a param that rules read does not change the hash")
	}
	if hash(with, map[string]string{"other": "x", "token": "t"}) != plain {
		t.Error("a param that no rule reads changes the hash")
	}
}

// TestDocIsTheFile wants the document of every provider to compile to the same.
func TestDocIsTheFile(t *testing.T) {
	for _, name := range provider.Catalog() {
		p, err := provider.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		again, err := provider.Parse(name, p.Doc(), provider.Options{})
		if err != nil {
			t.Errorf("%s: its document does not compile: %v\n%s", name, err, p.Doc())
			continue
		}
		if again.Hash() != p.Hash() || again.Title() != p.Title() || len(again.Notes()) != len(p.Notes()) {
			t.Errorf("%s: its document is another provider", name)
		}
		if !bytes.Equal(again.Doc(), p.Doc()) {
			t.Errorf("%s: the document of its document differs:\n%s", name, cmp.Diff(string(p.Doc()), string(again.Doc())))
		}
	}
}

func TestWarnings(t *testing.T) {
	p := parse(t, `
verify: {scheme: none}
event: {key: body.id}
kinds:
  parcel: {states: [sent, [delivered, lost]], terminal: [delivered, lost]}
  version: {states: [a, b], order: [sequence, rank]}
  clock: {states: [[a, b]]}
facts:
  sent: {kind: parcel, key: body.id, time: body.sent_at, status: sent}
  gone: {kind: parcel, key: body.id, time: body.gone_at, status: lost}
  copy: {kind: parcel, key: body.id, time: body.copied_at, hint: true, status: sent}
  late: {kind: parcel, key: body.id, status: lost}
  one: {kind: version, key: body.id, status: a}
  two: {kind: job, key: body.id, sequence: body.v, status: queued}
  coarse: {kind: clock, key: body.id, status: a, time: 'time(body.t, "02/01/2006 15:04", "UTC")'}
`)
	var got []string
	for _, w := range p.Warnings() {
		got = append(got, fmt.Sprintf("%d:%d %.70s", w.Line, w.Column, w.Message))
	}
	want := []string{
		"5:57 delivered and lost share a rank and are terminal: of two that are told",
		"10:44 rule gone takes the time of parcel from body.gone_at, another from bod",
		"12:3 rule late tells no time, the first component of the order of parcel: i",
		"13:3 rule one tells no sequence, the first component of the order of versio",
		"14:44 the order of job is [rank], so this sequence decides nothing; write ki",
		"15:56 this clock has no seconds and states of clock share a rank: of two fac",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
