package verify

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"
)

// signCase is one way to sign, with a key that is made once.
type signCase struct {
	name    string
	cfg     Config
	headers []string // of the request before it is signed
	timed   bool     // the time is signed
	v       *Verifier
	secret  Secret
	signer  Signer
}

func signCases(t testing.TB) []signCase {
	t.Helper()
	stamped := `headers["X-Time"]`
	cases := []signCase{
		{name: "hmac", cfg: Config{Scheme: SchemeHMAC, Header: "X-Sig"}},
		{name: "hmac with its time", timed: true, cfg: Config{Scheme: SchemeHMAC, Header: "X-Sig", Format: "t={timestamp},v1={signature}", Signed: []string{"{timestamp}.{raw}"}}},
		{name: "hmac sha1 in the query", cfg: Config{Scheme: SchemeHMAC, Query: "signature", Hash: "sha1"}},
		{name: "hmac sha512 base64url", cfg: Config{Scheme: SchemeHMAC, Header: "X-Sig-*", Hash: "sha512", Encoding: "base64url"}},
		{name: "hmac with a time beside", timed: true, cfg: Config{Scheme: SchemeHMAC, Header: "X-Sig", Format: "v0={signature}", Signed: []string{"v0:{timestamp}:{raw}"}, Timestamp: stamped}},
		{name: "hmac with milliseconds beside", timed: true, headers: []string{"X-Time", "1600000000000"}, cfg: Config{Scheme: SchemeHMAC, Header: "X-Sig", Signed: []string{"{timestamp}{raw}"}, Timestamp: stamped, Encoding: "base64"}},
		{name: "hmac with a date beside", timed: true, headers: []string{"X-Time", "2020-01-01T00:00:00Z"}, cfg: Config{Scheme: SchemeHMAC, Header: "X-Sig", Signed: []string{"{timestamp}{raw}"}, Timestamp: stamped}},
		{name: "hmac with a time in the query", timed: true, cfg: Config{Scheme: SchemeHMAC, Header: "X-Sig", Signed: []string{"{timestamp}{raw}"}, Timestamp: `query["at"]`}},
		{name: "hmac, hex secret", cfg: Config{Scheme: SchemeHMAC, Header: "X-Sig", SecretAs: "hex"}},
		{name: "hmac, hashed secret", cfg: Config{Scheme: SchemeHMAC, Field: `headers["X-Sig"]`, SecretAs: "sha1"}},
		{name: "hmac of the address", cfg: Config{Scheme: SchemeHMAC, Header: "X-Sig", Signed: []string{"{method}{url}{path}{raw}"}}},
		{name: "hmac of the decoded body", cfg: Config{Scheme: SchemeHMAC, Header: "X-Sig", Signed: []string{"{decoded}"}}},
		{name: "hmac of alternatives", cfg: Config{Scheme: SchemeHMAC, Header: "X-Sig", Signed: []string{"{body.a}{raw}", "{raw}"}}},
		{name: "hash", cfg: Config{Scheme: SchemeHash, Header: "X-Sig", Signed: []string{"{secret}-{raw}"}}},
		{name: "ed25519", timed: true, cfg: Config{Scheme: SchemeEd25519, Header: "X-Sig", Signed: []string{"{headers['X-Id']}\n{timestamp}\n{sha256(raw)}"}, Timestamp: stamped}},
		{name: "ed25519 of a digest", cfg: Config{Scheme: SchemeEd25519, Header: "X-Sig", Hash: "sha256", Encoding: "base64url"}},
		{name: "ed25519 of a long digest", cfg: Config{Scheme: SchemeEd25519, Header: "X-Sig", Hash: "sha512"}},
		{name: "ecdsa", timed: true, cfg: Config{Scheme: SchemeECDSA, Header: "X-Sig", Encoding: "base64", Signed: []string{"{timestamp}{raw}"}, Timestamp: stamped}},
		{name: "ecdsa sha512", cfg: Config{Scheme: SchemeECDSA, Header: "X-Sig", Hash: "sha512"}},
		{name: "rsa", cfg: Config{Scheme: SchemeRSA, Header: "X-Sig", Encoding: "base64url", Separator: ";", Format: "alg=RS256;kid={kid};signature={signature}"}},
		{name: "rsa sha1", cfg: Config{Scheme: SchemeRSA, Header: "X-Sig", Hash: "sha1", Encoding: "base64"}},
		{name: "token", cfg: Config{Scheme: SchemeToken, Header: "X-Token"}},
		{name: "token with a word", cfg: Config{Scheme: SchemeToken, Header: "Authorization", Format: "Bearer {signature}"}},
		{name: "token in the query", cfg: Config{Scheme: SchemeToken, Query: "token"}},
		{name: "basic", cfg: Config{Scheme: SchemeBasic}},
		{name: "standard webhooks", timed: true, headers: []string{"webhook-id", "msg_1"}, cfg: Config{Scheme: SchemeStandardWebhooks}},
		{name: "svix", timed: true, headers: []string{"svix-id", "msg_1"}, cfg: Config{Scheme: SchemeStandardWebhooks, Prefix: "svix-"}},
	}
	for i := range cases {
		c := &cases[i]
		c.v = mustCompile(t, c.cfg)
		g, err := c.v.Generate(rand.Reader)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		c.secret = mustSecrets(t, c.v, g.Secret)[0]
		if c.signer, err = c.v.ParseSigner(g.Signing); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
	}
	return append(cases, keyCases(t)...)
}

// keyCases are those whose key is told apart by more than its secret's text.
func keyCases(t testing.TB) []signCase {
	k := mustSigningKey(t, SchemeStandardWebhooks)
	public, err := k.PublicText(SchemeStandardWebhooks)
	if err != nil {
		t.Fatal(err)
	}
	standard := signCase{name: "standard webhooks, v1a", timed: true, headers: []string{"webhook-id", "msg_1"}, signer: k}
	standard.v = mustCompile(t, Config{Scheme: SchemeStandardWebhooks})
	standard.secret = mustSecrets(t, standard.v, public)[0]

	named := mustSigningKey(t, SchemeECDSA)
	set, err := named.JWKS()
	if err != nil {
		t.Fatal(err)
	}
	published := signCase{name: "published key with a name", signer: named}
	published.cfg = Config{Scheme: SchemeECDSA, Header: "X-Sig", Format: "{kid}:{signature}", Keys: &KeysConfig{Published: set}}
	published.v = mustCompile(t, published.cfg)
	return []signCase{standard, published}
}

// draw makes a request and signs it.
func (c signCase) draw(t *rapid.T) *Request {
	r := newRequest(string(rapid.SliceOf(rapid.Byte()).Draw(t, "body")), c.headers...)
	r.Method = rapid.SampledFrom([]string{"POST", "PUT"}).Draw(t, "method")
	r.URL = rapid.SampledFrom([]string{"https://inbox.example/in", "https://inbox.example:8443/in/é?a=b&c", "http://[::1]/in#x"}).Draw(t, "url")
	r.Header.Set("X-Id", rapid.String().Draw(t, "id"))
	if err := c.v.Sign(testTime, r, newInput(r), c.signer); err != nil {
		t.Fatalf("Sign: %v", err)
	}
	return r
}

func (c signCase) verify(r *Request, now time.Time) (Accepted, error) {
	return c.v.Verify(now, r, newInput(r), []Secret{c.secret})
}

// TestSignVerify: what Sign makes, Verify accepts: as of then, and up to the
// tolerance where it tells the time; with another secret it does not.
func TestSignVerify(t *testing.T) {
	others := signCases(t)
	for i, c := range signCases(t) {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := c.draw(t)
				accepted, err := c.verify(r, testTime)
				if err != nil {
					t.Fatal(err)
				}
				if c.timed != !accepted.SignedAt.IsZero() || c.timed && !accepted.SignedAt.Equal(testTime) {
					t.Errorf("signed at %v", accepted.SignedAt)
				}
				if accepted.BodySigned != c.v.CoversBody() {
					t.Errorf("body signed: %v", accepted.BodySigned)
				}
				for by, ok := range map[time.Duration]bool{5 * time.Minute: true, -5 * time.Minute: true, 5*time.Minute + 1: !c.timed, -5*time.Minute - 1: !c.timed} {
					if _, err := c.verify(r, testTime.Add(by)); (err == nil) != ok {
						t.Errorf("after %v: %v", by, err)
					}
				}
				if c.secret.hold == nil {
					return // its key is published
				}
				stranger := others[i] // the same entry, with a key of its own
				if _, err := stranger.verify(r, testTime); err == nil {
					t.Error("another secret accepts it")
				}
			})
		})
	}
}

// TestTampered: one bit of the body, of the value with the signature, or of the
// time decides, unless it is read as the same.
func TestTampered(t *testing.T) {
	for _, c := range signCases(t) {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := c.draw(t)
				before := c.reading(r)
				what := c.tamper(t, r)
				same := what != "body" && reflect.DeepEqual(before, c.reading(r))
				_, err := c.verify(r, testTime)
				if what == "body" && !c.v.CoversBody() {
					same = true
				}
				if (err == nil) != same {
					t.Errorf("%s changed, read as the same: %v; error %v", what, same, err)
				}
			})
		})
	}
}

// tamper flips one bit of something and says of what.
func (c signCase) tamper(t *rapid.T, r *Request) string {
	flip := func(b []byte) []byte {
		b = bytes.Clone(b)
		b[rapid.IntRange(0, len(b)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		return b
	}
	type place struct {
		what string
		get  string
		set  func(string)
	}
	var places []place
	if len(r.Raw) > 0 {
		places = append(places, place{"body", string(r.Raw), func(s string) { r.Raw = []byte(s) }})
	}
	for name := range r.Header {
		if name != "X-Id" || strings.HasPrefix(c.name, "ed25519") && c.timed {
			places = append(places, place{"header " + name, r.Header.Get(name), func(s string) { r.Header.Set(name, s) }})
		}
	}
	for name := range r.Query {
		places = append(places, place{"query " + name, r.Query.Get(name), func(s string) { r.Query.Set(name, s) }})
	}
	p := places[rapid.IntRange(0, len(places)-1).Draw(t, "place")]
	if p.get == "" {
		p.set("x")
		return p.what
	}
	p.set(string(flip([]byte(p.get))))
	return p.what
}

// reading is all that the verifier reads of a request but its body: two requests of
// one reading are the same to it.
func (c signCase) reading(r *Request) any {
	e := c.v.entries[0]
	all := []any{r.Header.Get("X-Id"), r.Header.Get("X-Time"), r.Query.Get("at")}
	switch e.scheme {
	case SchemeStandardWebhooks:
		prefix := e.prefixes[0]
		shared, public, _ := standardSignatures(r.Header.Values(prefix+"signature"), prefix)
		return append(all, shared, public, r.Header.Get(prefix+"id"), r.Header.Get(prefix+"timestamp"))
	case SchemeBasic:
		scheme, text, _ := strings.Cut(trimBlank(r.Header.Get("Authorization")), " ")
		return append(all, strings.EqualFold(scheme, "Basic"), text)
	}
	values, rej := e.location.values(r, newInput(r))
	if rej != nil {
		return rej
	}
	candidates, rej := e.read(values)
	if rej != nil {
		return rej
	}
	if e.scheme == SchemeToken {
		return append(all, candidates)
	}
	groups := e.groups(candidates)
	if hole := e.format.hole(holeKid); hole >= 0 && c.secret.hold != nil {
		for _, g := range groups {
			g.holes[hole] = "" // a key without a name answers to every name
		}
	}
	return append(all, groups)
}

func TestSignInTheQuery(t *testing.T) {
	v := mustCompile(t, Config{Scheme: SchemeHMAC, Query: "signature"})
	secret := mustSecrets(t, v, "s")[0]
	r := newRequest("body")
	r.URL = "https://inbox.example/in?tenant=7"
	for range 2 {
		if err := v.Sign(testTime, r, newInput(r), secret); err != nil {
			t.Fatal(err)
		}
	}
	if want := "https://inbox.example/in?tenant=7&signature=" + mac("s", "body"); r.URL != want {
		t.Errorf("address %s, want %s", r.URL, want)
	}
}

// TestSignedTime: the time is put where it is read, in the unit that stands there; a
// time in the body is signed as it stands.
func TestSignedTime(t *testing.T) {
	at := func(expression string) Config {
		return hmacConfig(Config{Signed: []string{"{timestamp}.{raw}"}, Timestamp: expression})
	}
	header, query, body := at(`headers["X-Time"]`), at(`query["at"]`), at("body.t")
	tests := []struct {
		name          string
		cfg           Config
		before, after string // of the header, or of the query parameter
	}{
		{"nothing there", header, "", "1767225600"},
		{"seconds", header, "1", "1767225600"},
		{"milliseconds", header, "1600000000000", "1767225600000"},
		{"a date", header, "2020-01-01T00:00:00.5Z", "2026-01-01T00:00:00Z"},
		{"something else", header, "now", "1767225600"},
		{"query", query, "", "1767225600"},
		{"query that is there", query, "1767225601", "1767225601"},
		{"body", body, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := mustCompile(t, tt.cfg)
			r := newRequest(`{"t":1767225600}`)
			get := func() string { return r.Header.Get("X-Time") }
			if tt.cfg.Timestamp == query.Timestamp {
				get = func() string { return r.Query.Get("at") }
			}
			if tt.before != "" {
				r.Header.Set("X-Time", tt.before)
				r.Query.Set("at", tt.before)
			}
			secret := mustSecrets(t, v, "s")
			if err := v.Sign(testTime, r, newInput(r), secret[0]); err != nil {
				t.Fatal(err)
			}
			if get() != tt.after {
				t.Errorf("%q, want %q", get(), tt.after)
			}
			if _, err := v.Verify(testTime, r, newInput(r), secret); err != nil {
				t.Error(err)
			}
		})
	}
	v := mustCompile(t, body)
	r := newRequest(`{"t":[]}`)
	if err := v.Sign(testTime, r, newInput(r), mustSecrets(t, v, "s")[0]); err == nil || errors.Is(err, ErrNotSignable) {
		t.Errorf("a list is no time: %v", err)
	}
}

func TestNotSignable(t *testing.T) {
	k := mustSigningKey(t, SchemeRSA)
	public, err := mustSigningKey(t, SchemeEd25519).PublicText(SchemeEd25519)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		cfg  Config
		by   any
	}{
		{"signature in the body", Config{Scheme: SchemeHMAC, Field: "body.sig"}, "s"},
		{"token in the body", Config{Scheme: SchemeToken, Field: "body.token"}, "s"},
		{"a hole that only the sender fills", hmacConfig(Config{Format: "{key}|{signature}"}), "s"},
		{"a public key", Config{Scheme: SchemeEd25519, Header: "X"}, public},
		{"a key of another kind", Config{Scheme: SchemeEd25519, Header: "X"}, k},
		{"a private key for a MAC", hmacConfig(Config{}), k},
		{"a private key for a token", Config{Scheme: SchemeToken, Header: "X"}, k},
		{"a private key for basic", Config{Scheme: SchemeBasic}, k},
		{"an rsa key for v1a", Config{Scheme: SchemeStandardWebhooks}, k},
		{"no key", Config{Scheme: SchemeRSA, Header: "X"}, SigningKey{}},
		{"no secret", hmacConfig(Config{}), Secret{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := mustCompile(t, tt.cfg)
			var by Signer
			switch given := tt.by.(type) {
			case string:
				by = mustSecrets(t, v, given)[0]
			case Signer:
				by = given
			}
			r := newRequest(`{"sig":"x"}`, "webhook-id", "a")
			if err := v.Sign(testTime, r, newInput(r), by); !errors.Is(err, ErrNotSignable) {
				t.Errorf("%v, want %v", err, ErrNotSignable)
			}
		})
	}
	v := mustCompile(t, Config{Scheme: SchemeStandardWebhooks})
	r := newRequest("")
	if err := v.Sign(testTime, r, newInput(r), mustSecrets(t, v, "s")[0]); !errors.Is(err, ErrNotSignable) || !strings.Contains(err.Error(), "webhook-id") {
		t.Errorf("without an id: %v", err)
	}
	broken := hmacConfig(Config{Signed: []string{"{decoded}"}})
	v = mustCompile(t, broken)
	r = newRequest("", "Content-Encoding", "br")
	if err := v.Sign(testTime, r, newInput(r), mustSecrets(t, v, "s")[0]); err == nil || errors.Is(err, ErrNotSignable) {
		t.Errorf("encoding not known: %v", err)
	}
}

// TestSignPicksTheEntry: of a list, the first that can be signed with what is given.
func TestSignPicksTheEntry(t *testing.T) {
	v := mustCompile(t, Config{Scheme: SchemeRSA, Header: "X-Rsa"}, Config{Scheme: SchemeToken, Field: "body.t"}, Config{Scheme: SchemeBasic})
	r := &Request{Raw: []byte("{}")}
	if err := v.Sign(testTime, r, newInput(r), mustSecrets(t, v, "u:p")[0]); err != nil {
		t.Fatal(err)
	}
	if r.Header.Get("Authorization") != "Basic dTpw" {
		t.Errorf("headers %v", r.Header)
	}
	none := mustCompile(t, Config{Scheme: SchemeNone})
	if err := none.Sign(testTime, r, newInput(r), Secret{}); err != nil {
		t.Error(err)
	}
}

func TestGenerate(t *testing.T) {
	for name, cfgs := range map[string][]Config{
		"none":                {{Scheme: SchemeNone}},
		"a token in the body": {{Scheme: SchemeToken, Field: "body.t"}},
	} {
		if _, err := mustCompile(t, cfgs...).Generate(rand.Reader); !errors.Is(err, ErrNotSignable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	v := mustCompile(t, Config{Scheme: SchemeToken, Field: "body.t"}, Config{Scheme: SchemeToken, Header: "X"})
	a, errA := v.Generate(rand.Reader)
	b, errB := v.Generate(rand.Reader)
	if errA != nil || errB != nil || a == b || len(a.Secret) != 64 {
		t.Errorf("%v, %v, or they are the same", errA, errB)
	}
	failing := iotest.ErrReader(errors.New("madeup"))
	for _, c := range []Config{hmacConfig(Config{}), {Scheme: SchemeEd25519, Header: "X"}, {Scheme: SchemeECDSA, Header: "X"}} {
		if _, err := mustCompile(t, c).Generate(failing); err == nil {
			t.Errorf("%s: a secret without randomness", c.Scheme)
		}
	}
}

func TestSignText(t *testing.T) {
	const zoom, plain = "madeup-zoom-1", "madeupPlainToken"
	v := mustCompile(t, Config{Scheme: SchemeBasic}, hmacConfig(Config{Format: "v0={signature}"}))
	got, err := v.SignText(plain, mustSecrets(t, v, zoom)[0])
	if want := "20c234c6acc51659503d9631b16cdf551b44b4a9188b0cfef7ff44e6d7cf0d1f"; got != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := v.SignText(plain, Secret{}); !errors.Is(err, ErrNotSignable) {
		t.Error(err)
	}
	tok := mustCompile(t, Config{Scheme: SchemeToken, Header: "X"})
	if _, err := tok.SignText(plain, mustSecrets(t, tok, zoom)[0]); !errors.Is(err, ErrNotSignable) {
		t.Error(err)
	}
	standard := mustCompile(t, Config{Scheme: SchemeStandardWebhooks})
	if got, err := standard.SignText(plain, mustSecrets(t, standard, zoom)[0]); err != nil || fmt.Sprintf("%x", mustBase64(t, got)) != mac(zoom, plain) {
		t.Errorf("%s, %v", got, err)
	}
}

func mustBase64(t *testing.T, s string) []byte {
	t.Helper()
	b, err := encodingBase64.decode(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSignedOverHTTP: what Sign sets is a valid HTTP request.
func TestSignedOverHTTP(t *testing.T) {
	for _, c := range signCases(t) {
		r := newRequest("body", c.headers...)
		if err := c.v.Sign(testTime, r, newInput(r), c.signer); err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequest(r.Method, r.URL, bytes.NewReader(r.Raw))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if strings.Contains(fmt.Sprint(r.Header), "*") {
			t.Errorf("%s: headers %v", c.name, r.Header)
		}
		again := &Request{Method: req.Method, URL: r.URL, Header: r.Header, Query: req.URL.Query(), Raw: r.Raw}
		if _, err := c.verify(again, testTime); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
