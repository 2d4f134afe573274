package verify

import (
	"errors"
	"strings"
	"testing"

	"github.com/onceward/onceward/provider/internal/tree"
)

func TestCompileChallenge(t *testing.T) {
	v := mustCompile(t, hmacConfig(Config{}))
	tok := mustCompile(t, Config{Scheme: SchemeToken, Header: "X"})
	yes := `body.type == "x"`
	tests := []struct {
		name string
		cfg  ChallengeConfig
		v    *Verifier
		key  string
		text string
	}{
		{"no when", ChallengeConfig{Text: "body.a"}, v, "when", "nothing stored"},
		{"when is no condition", ChallengeConfig{When: "body.type", Text: "body.a"}, v, "when", ""},
		{"no answer", ChallengeConfig{When: yes}, v, "text", "write text or json"},
		{"two answers", ChallengeConfig{When: yes, Text: "body.a", JSON: map[string]string{"a": "body.a"}}, v, "text", "leave one"},
		{"method in other case", ChallengeConfig{Method: "get", When: yes, Text: "body.a"}, v, "method", "did you mean GET?"},
		{"method", ChallengeConfig{Method: "FETCH", When: yes, Text: "body.a"}, v, "method", "GET, HEAD"},
		{"text", ChallengeConfig{When: yes, Text: "challenge"}, v, "text", "body.challenge"},
		{"json", ChallengeConfig{When: yes, JSON: map[string]string{"ok": "body.a", "bad": "body.a +"}}, v, "json.bad", ""},
		{"nothing to sign with", ChallengeConfig{When: yes, Text: `sign("a" + body.a)`}, tok, "", "hmac and standard-webhooks"},
		{"no verifier to sign with", ChallengeConfig{When: yes, JSON: map[string]string{"a": "sign(body.a)"}}, nil, "", "hmac"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ch, problems := CompileChallenge(tt.cfg, testNames, tt.v)
			if ch != nil || len(problems) == 0 {
				t.Fatal("compiled")
			}
			for _, p := range problems {
				if p.Key == tt.key && strings.Contains(p.String(), tt.text) {
					return
				}
			}
			t.Errorf("problems %+v, want %s %q", problems, tt.key, tt.text)
		})
	}
	_, problems := CompileChallenge(ChallengeConfig{Method: "x", Text: "y +"}, testNames, v)
	if len(problems) < 3 {
		t.Errorf("not all at once: %v", problems)
	}
}

func TestAnswer(t *testing.T) {
	v := mustCompile(t, Config{Scheme: SchemeBasic}, hmacConfig(Config{}))
	secrets := mustSecrets(t, v, "s")
	yes := `body.type == "hello"`
	const hello = `{"type":"hello","a":"x<&\"","n":1.50,"l":[1],"z":null}`
	tests := []struct {
		name, method, body string
		cfg                ChallengeConfig
		answer, kind       string
		fails              bool
	}{
		{"text", "POST", hello, ChallengeConfig{When: yes, Text: "body.a"}, `x<&"`, "text/plain; charset=utf-8", false},
		{"a number as text", "POST", hello, ChallengeConfig{When: yes, Text: "body.n"}, `1.50`, "text/plain; charset=utf-8", false},
		{"json, in the order of names", "POST", hello, ChallengeConfig{When: yes, JSON: map[string]string{"b": "body.n", "a": "body.none", "c": "body.l", "z": "body.z"}}, `{"a":null,"b":1.50,"c":[1],"z":null}`, "application/json", false},
		{"signed", "POST", hello, ChallengeConfig{When: yes, Text: "sign(body.type)"}, mac("s", "hello"), "text/plain; charset=utf-8", false},
		{"another method", "GET", hello, ChallengeConfig{When: yes, Text: "body.a"}, "", "", false},
		{"HEAD is not GET", "HEAD", hello, ChallengeConfig{Method: "GET", When: yes, Text: "body.a"}, "", "", false},
		{"does not hold", "POST", `{"type":"other"}`, ChallengeConfig{When: yes, Text: "body.a"}, "", "", false},
		{"body of no form", "POST", `{`, ChallengeConfig{When: yes, Text: "body.a"}, "", "", false},
		{"a list is no text", "POST", hello, ChallengeConfig{When: yes, Text: "body.l"}, "", "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ch, problems := CompileChallenge(tt.cfg, testNames, v)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			body, kind, ok, err := ch.Answer(tt.method, newInput(newRequest(tt.body)), secrets)
			if string(body) != tt.answer || kind != tt.kind || ok != (tt.kind != "") || (err != nil) != tt.fails {
				t.Errorf("%q %q %v %v, want %q %q", body, kind, ok, err, tt.answer, tt.kind)
			}
		})
	}
}

// TestSameRefusesEmpty: a handshake whose token was never set must not match a
// request that sends none.
func TestSameRefusesEmpty(t *testing.T) {
	v := mustCompile(t, hmacConfig(Config{}))
	ch, problems := CompileChallenge(ChallengeConfig{Method: "GET", When: `same(query["token"], params.token)`, Text: `query["c"]`}, testNames, v)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if ch.Method() != "GET" {
		t.Errorf("method %s", ch.Method())
	}
	for _, tt := range []struct {
		query, param string
		want         bool
	}{{"a", "a", true}, {"a", "b", false}, {"", "", false}, {"-", "-", false}, {"a", "-", false}} {
		r := newRequest("")
		r.Query.Set("c", "1")
		if tt.query != "-" {
			r.Query.Set("token", tt.query)
		}
		in := newInput(r)
		if tt.param != "-" {
			in.params = tree.ObjectOf(tree.Member{Name: "token", Value: tree.StringOf(tt.param)})
		}
		if _, _, ok, err := ch.Answer("GET", in, nil); ok != tt.want || err != nil {
			t.Errorf("%q and %q: %v, %v", tt.query, tt.param, ok, err)
		}
	}
}

func TestSignNeedsASecret(t *testing.T) {
	v := mustCompile(t, Config{Scheme: SchemeBasic}, hmacConfig(Config{SecretAs: "hex"}))
	ch, problems := CompileChallenge(ChallengeConfig{When: `body.a == 1`, Text: "sign(body.b)"}, testNames, v)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	in := newInput(newRequest(`{"a":1,"b":"x"}`))
	if _, _, ok, err := ch.Answer("POST", in, nil); ok || !errors.Is(err, ErrNoSecret) {
		t.Errorf("without a secret: %v, %v", ok, err)
	}
	// The first secret is of no use to the entry that signs; the second is.
	secrets := mustSecrets(t, v, "u:p", "616263")
	body, _, ok, err := ch.Answer("POST", in, secrets)
	if !ok || err != nil || string(body) != mac("abc", "x") {
		t.Errorf("%s, %v, %v", body, ok, err)
	}
	if _, err := (&signingInput{verifier: v, secrets: secrets[:1]}).Sign("x"); !errors.Is(err, ErrNotSignable) {
		t.Error(err)
	}
	if _, err := (&signingInput{}).Sign("x"); !errors.Is(err, ErrNoSecret) {
		t.Error(err)
	}
}
