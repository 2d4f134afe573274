package provider_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider"
)

// TestKeyOfTheHeaders keeps the key that headers alone say, whatever the body is.
func TestKeyOfTheHeaders(t *testing.T) {
	const fromHeader = "verify: {scheme: none}\nevent: {key: 'headers[\"X-Event-Id\"]'}\n"
	scoped := strings.Replace(fromHeader, "event: {", "event: {scope: {account: body.account, mode: body.live}, ", 1)
	for _, c := range []struct {
		name, file, body, want string
	}{
		{"not JSON", fromHeader, `x`, "h-1"},
		{"a doubled member", fromHeader, `{"a":1,"a":2}`, "h-1"},
		{"not split", fromHeader + "split: body.list\n", `{"list":1}`, "h-1"},
		{"a body that the key reads", strings.Replace(fromHeader, `key: '`, `key: 'body.a == null ? null : `, 1), `x`, ""},
		{"a scope", scoped, `{"account":"a"}`, "h-1"},
		{"a scope of a body that is not JSON", scoped, `x`, ""},
		{"a doubled account", scoped, `{"account":"a","account":"b"}`, ""},
		{"a doubled mode", scoped, `{"live":true,"live":false}`, ""},
		{"an account that is none", scoped, `{"account":{}}`, ""},
		{"a mode that is none", scoped, `{"live":"a/b"}`, ""},
	} {
		ev := one(t, parse(t, c.file), c.body).Event
		want, digest := c.want, c.want == ""
		if digest {
			sum := sha256.Sum256([]byte(c.body))
			want = hex.EncodeToString(sum[:])
		}
		if ev.Key != want || ev.DigestKey != digest {
			t.Errorf("%s: key %q by digest %v, want %q", c.name, ev.Key, ev.DigestKey, want)
		}
	}
}

// TestParamsOfSigned checks the params in the holes of `signed`, however they are
// written, and nothing beside the holes.
func TestParamsOfSigned(t *testing.T) {
	file := "params: {tok: {secret: true}, hook: {}}\nverify: {scheme: hmac, header: X-S, signed: %s}\n"
	for signed, want := range map[string]string{
		`'{params["tok"]}{raw}'`:                  `2:47: param "tok" is secret`,
		`'{params.tok}{raw}'`:                     `2:47: param "tok" is secret`,
		`'{join([params["tok"]], "")}{raw}'`:      `2:53: param "tok" is secret`,
		`'{params["webhok"]}{raw}'`:               `2:47: there is no param "webhok"`,
		`['{raw}', '{ params . hok }.{raw}']`:     `there is no param "hok"`,
		`'{params}{raw}'`:                         `params is read by its members`,
		`'{params["hook"]}|{params.hook}|{raw}'`:  "",
		`'params.k {raw}'`:                        "",
		`'params.tok {"params.tok"} {raw}'`:       "",
		`['params["tok"].{raw}', 'params {raw}']`: "",
	} {
		_, err := provider.Parse("acme", fmt.Appendf(nil, file, signed), provider.Options{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("signed %s: %v, want %q", signed, err, want)
		}
	}
	held := "verify: {scheme: hmac, header: X-S, format: '{params};{signature}', separator: '|', signed: '{params}{raw}'}\n"
	if _, err := provider.Parse("acme", []byte(held), provider.Options{}); err != nil {
		t.Errorf("a hole of the format that is called params: %v", err)
	}
}

// TestHashKnowsTheOrderOfDerive: what is derived sees what was derived before it.
func TestHashKnowsTheOrderOfDerive(t *testing.T) {
	build := func(derive string) (*provider.Provider, string) {
		p := parse(t, "verify: {scheme: none}\nkinds: {thing: {states: [low], derive: {"+derive+"}}}\nfacts: {t: {kind: thing, key: body.id, fields: {a: body.a}}}\n")
		f := one(t, p, `{"id":1,"a":1}`).Facts[0]
		return p, string(onceward.Fold(p.Kinds()["thing"], []onceward.Fact{f}).Data())
	}
	p, row := build("a: '10', b: a + 1")
	q, other := build("b: a + 1, a: '10'")
	if row == other || p.Hash() == q.Hash() {
		t.Errorf("rows %s and %s, hashes %s and %s", row, other, p.Hash(), q.Hash())
	}
}

// TestHashWithoutWhatOnlyVerifies: a param that only verification or the handshake
// reads makes no other rows.
func TestHashWithoutWhatOnlyVerifies(t *testing.T) {
	hash := func(text, value string) string {
		t.Helper()
		p, err := provider.Parse("acme", []byte(text), provider.Options{Params: map[string]string{"k": value}})
		if err != nil {
			t.Fatal(err)
		}
		return p.Hash()
	}
	for text, changes := range map[string]bool{
		"verify: {scheme: none, require: params.k == body.k}\nevent: {key: body.id}\n":                                            false,
		"verify: {scheme: hmac, header: X-S, signed: '{params.k}{raw}'}\nevent: {key: body.id}\n":                                 false,
		"verify: {scheme: none}\nchallenge: {method: GET, when: 'same(query[\"t\"], params.k)', text: 'query[\"c\"]'}\n":          false,
		"verify: {scheme: none}\nevent: {key: 'join([body.id, params.k], \"-\")'}\n":                                              true,
		"verify: {scheme: none}\nlet: {x: params.k}\n":                                                                            true,
		"verify: {scheme: none}\nsplit: 'params.k == \"a\" ? body.x : body.y'\n":                                                  true,
		"verify: {scheme: none}\nfacts: {a: {kind: cart, key: body.id, fields: {k: params.k}}}\n":                                 true,
		"verify: {scheme: none, require: params.k == body.k}\nfacts: {a: {when: params.k == body.k, kind: cart, key: body.id}}\n": true,
	} {
		if got := hash(text, "a") != hash(text, "b"); got != changes {
			t.Errorf("%s: another value gives another hash: %v, want %v", text, got, changes)
		}
	}
}

// TestChallengeWhileTwoSecretsAreLive answers with the secret that the sender used.
func TestChallengeWhileTwoSecretsAreLive(t *testing.T) {
	file := "verify: {scheme: hmac, header: X-S}\nchallenge: {when: body.check != null, json: {token: sign(body.check)}}\n"
	p, err := provider.Parse("acme", []byte(file), provider.Options{Secrets: []string{"new-secret", "old-secret"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"new-secret", "old-secret"} {
		r := post(`{"check":"abc"}`)
		r.Header = http.Header{"X-S": {mac(secret, `{"check":"abc"}`)}}
		answer, is, err := p.Challenge(time.Unix(1_790_000_000, 0), r)
		if err != nil || !is {
			t.Fatal(is, err)
		}
		if want := `{"token":"` + mac(secret, "abc") + `"}`; string(answer.Body) != want {
			t.Errorf("answered %s, want %s", answer.Body, want)
		}
	}
}

// TestMaskedSegments masks secrets of a path however they are escaped.
func TestMaskedSegments(t *testing.T) {
	p, err := provider.Parse("acme", []byte("verify: {scheme: token, header: X-T}"), provider.Options{Secrets: []string{"tok/en secret", "shorty", "pläin-word"}})
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{
		"/in/tok%2Fen%20secret/x":               "/in/***/x",
		"/in/%74ok%2fen%20secret":               "/in/***",
		"/in/tok/en%20secret":                   "/***",
		"/in/short%79/x?a=1":                    "/in/***/x?a=1",
		"/in/shorty":                            "/in/***",
		"/in/shorty-and-more":                   "/in/shorty-and-more",
		"https://h.example/in/pl%C3%A4in-word#": "https://h.example/in/***",
		"https://h.example/in/acme%20x":         "https://h.example/in/acme%20x",
		"https://h.example":                     "https://h.example",
		"/in/acme?pl%C3%A4in-word":              "/in/acme?***",
		"/in/%zz":                               "/in/%zz",
	} {
		if _, got := p.Mask(nil, target); got != want {
			t.Errorf("%s is masked as %s, want %s", target, got, want)
		}
	}
}

// TestWhatCannotBeDerivedIsSaid wants a row to say what its derivation left out.
func TestWhatCannotBeDerivedIsSaid(t *testing.T) {
	p := parse(t, `
verify: {scheme: none}
kinds:
  thing:
    states: [low, high]
    order: [rank]
    derive: {twice: size * 2, status: [{high: 'size > 10'}, {low: 'ok == true'}]}
facts: {t: {kind: thing, key: body.id, status: low, fields: {size: body.size, ok: body.ok}}}
`)
	for body, want := range map[string][]string{
		`{"id":1,"size":20}`:            {"high: size > 10"},
		`{"id":1,"size":"x"}`:           {"twice is left out: ", "high cannot be told: "},
		`{"id":1,"size":"x","ok":true}`: {"low: ok == true; ", "twice is left out: ", "high cannot be told: "},
		`{"id":1}`:                      {""},
	} {
		row := onceward.Fold(p.Kinds()["thing"], one(t, p, body).Facts)
		for i, text := range want {
			if at := strings.Index(row.Why, text); at < 0 || i == 0 && at > 0 || text == "" && row.Why != "" {
				t.Errorf("%s: %q, want %q", body, row.Why, want)
			}
		}
		if strings.Contains(row.Why, `"x"`) {
			t.Errorf("it shows the value: %q", row.Why)
		}
	}
}

// TestOverridingCaptured lays another `captured` over the payment's own, or none.
func TestOverridingCaptured(t *testing.T) {
	file := "verify: {scheme: none}\nkinds: {payment: {derive: {%s}}}\nfacts: {p: {kind: payment, key: body.id, status: {of: body.s, paid: paid}, fields: {amount: body.amount, fee: body.fee}}}\n"
	for derive, want := range map[string]string{
		"x: amount":              "100",
		"captured: amount - fee": "90",
		"captured: none":         "",
	} {
		p := parse(t, fmt.Sprintf(file, derive))
		row := onceward.Fold(p.Kinds()["payment"], one(t, p, `{"id":1,"s":"paid","amount":100,"fee":10}`).Facts)
		if got := row.Field("captured").JSON(); got != want {
			t.Errorf("derive {%s}: captured %q, want %q", derive, got, want)
		}
	}
}

// TestReservedFields names what a mapping in Go may not tell.
func TestReservedFields(t *testing.T) {
	names := []string{"status", "told", "local", "tie", "version", "key", "kind", "source"}
	if slices.ContainsFunc(names, func(name string) bool { return !provider.IsReservedField(name) }) || provider.IsReservedField("amount") {
		t.Error("the reserved fields are others")
	}
}
