package verify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/tree"
)

func mac(secret, text string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}

// verdict is the reason of the rejection, "" for an acceptance.
func verdict(t testing.TB, v *Verifier, r *Request, secrets ...string) Reason {
	t.Helper()
	_, err := v.Verify(testTime, r, newInput(r), mustSecrets(t, v, secrets...))
	return reasonOf(t, err)
}

func TestSeveralSecretsAndSignatures(t *testing.T) {
	v := mustCompile(t, hmacConfig(Config{}))
	old, now, other := mac("old", "body"), mac("new", "body"), mac("other", "body")
	tests := []struct {
		headers string
		secrets []string
		want    Reason
		secret  int
	}{
		{now, []string{"new"}, "", 0},
		{now, []string{"new", "old"}, "", 0},
		{old, []string{"new", "old"}, "", 1},
		{other + "," + old, []string{"new", "old"}, "", 1},
		{other + "|" + old, []string{"new", "old"}, "", 1}, // two header lines
		{other + "," + other, []string{"new", "old"}, ReasonDiffers, 0},
		{"zz," + now, []string{"new"}, "", 0},
		{"zz", []string{"new"}, ReasonMalformed, 0},
		{now[:32], []string{"new"}, ReasonDiffers, 0},
		{now + "00", []string{"new"}, ReasonDiffers, 0},
		{strings.ToUpper(now), []string{"new"}, "", 0},
		{",", []string{"new"}, ReasonMalformed, 0},
		{" ", []string{"new"}, ReasonMissing, 0},
		{now, nil, ReasonKeyUnknown, 0},
	}
	for _, tt := range tests {
		r := newRequest("body")
		for line := range strings.SplitSeq(tt.headers, "|") {
			r.Header.Add("X-Signature", line)
		}
		accepted, err := v.Verify(testTime, r, newInput(r), mustSecrets(t, v, tt.secrets...))
		if got := reasonOf(t, err); got != tt.want || err == nil && accepted.Secret != tt.secret {
			t.Errorf("%s with %v: %q by secret %d, want %q by %d", tt.headers, tt.secrets, got, accepted.Secret, tt.want, tt.secret)
		}
	}
}

// TestParsesNothing: a scheme whose file reads no member never asks for the body,
// so nothing has parsed it before it is verified.
func TestParsesNothing(t *testing.T) {
	v := mustCompile(t,
		hmacConfig(Config{Format: "t={timestamp},v1={signature}", Signed: []string{"{url}{headers['X-A']}{query['q']}{method}{path}{raw}{decoded}"}}),
		Config{Scheme: SchemeStandardWebhooks}, Config{Scheme: SchemeBasic})
	r := newRequest("{", "X-Signature", "t=1767225600,v1="+mac("s:s", "https://inbox.example/inPOST/in{{"))
	in := newInput(r)
	if _, err := v.Verify(testTime, r, in, mustSecrets(t, v, "s:s")); err != nil {
		t.Fatal(err)
	}
	if in.asked["body"]+in.asked["item"] > 0 {
		t.Error("the body was parsed before it was verified")
	}
}

func TestToleranceBoundary(t *testing.T) {
	for _, tt := range []struct {
		tolerance string
		by        time.Duration // how far now is after the signature
		want      Reason
	}{
		{"", 0, ""},
		{"", 5 * time.Minute, ""},
		{"", 5*time.Minute + time.Second, ReasonExpired},
		{"", 5*time.Minute + 1, ReasonExpired},
		{"", -5 * time.Minute, ""},
		{"", -5*time.Minute - time.Second, ReasonFuture},
		{"", -5*time.Minute - 1, ReasonFuture},
		{"90s", 90 * time.Second, ""},
		{"90s", 91 * time.Second, ReasonExpired},
		{"90s", -90 * time.Second, ""},
		{"90s", -91 * time.Second, ReasonFuture},
		{"0s", 1000 * time.Hour, ""},
		{"0s", -1000 * time.Hour, ""},
	} {
		for name, c := range map[string]Config{
			"format": hmacConfig(Config{Format: "t={timestamp},v1={signature}", Signed: []string{"{timestamp}.{raw}"}, Tolerance: tt.tolerance}),
			"header": hmacConfig(Config{Signed: []string{"{timestamp}.{raw}"}, Timestamp: `headers["X-Time"]`, Tolerance: tt.tolerance}),
		} {
			v := mustCompile(t, c)
			signature := mac("s", "1767225600.body")
			r := newRequest("body", "X-Time", "1767225600", "X-Signature", signature)
			if name == "format" {
				r.Header.Set("X-Signature", "t=1767225600,v1="+signature)
			}
			accepted, err := v.Verify(testTime.Add(tt.by), r, newInput(r), mustSecrets(t, v, "s"))
			if got := reasonOf(t, err); got != tt.want {
				t.Errorf("%s, tolerance %q, %v: %q, want %q", name, tt.tolerance, tt.by, got, tt.want)
			}
			if err == nil && !accepted.SignedAt.Equal(testTime) {
				t.Errorf("signed at %v", accepted.SignedAt)
			}
		}
	}
	v := mustCompile(t, Config{Scheme: SchemeStandardWebhooks, Tolerance: "90s"})
	secret := mustSecrets(t, v, "plain")
	r := newRequest("body", "webhook-id", "a", "webhook-timestamp", "1767225600")
	if err := v.Sign(testTime, r, newInput(r), secret[0]); err != nil {
		t.Fatal(err)
	}
	for by, want := range map[time.Duration]Reason{90 * time.Second: "", 91 * time.Second: ReasonExpired, -90 * time.Second: "", -91 * time.Second: ReasonFuture} {
		if _, err := v.Verify(testTime.Add(by), r, newInput(r), secret); reasonOf(t, err) != want {
			t.Errorf("standard webhooks, %v: %v, want %q", by, err, want)
		}
	}
}

func TestTimestamps(t *testing.T) {
	tests := []struct {
		tolerance, timestamp string
		want                 Reason
	}{
		{"", "1767225600", ""},
		{"", "1767225600000", ""},
		{"", "2026-01-01T00:00:00Z", ""},
		{"", "2025-12-31T21:00:00.000-03:00", ""},
		{"", "", ReasonMissing},
		{"", "yesterday", ReasonMalformed},
		{"", "1767225600.0", ReasonMalformed},
		{"", "176722560000000000", ReasonMalformed},
		{"", "99999999999", ReasonFuture}, // far enough to overflow a Duration
		{"", "0", ReasonExpired},
		{"0s", "", ""},
		{"0s", "yesterday", ""},
	}
	for _, tt := range tests {
		v := mustCompile(t, hmacConfig(Config{Signed: []string{"{timestamp}.{raw}"}, Timestamp: `headers["X-Time"]`, Tolerance: tt.tolerance}))
		r := newRequest("body", "X-Time", tt.timestamp, "X-Signature", mac("s", tt.timestamp+".body"))
		if got := verdict(t, v, r, "s"); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.timestamp, got, tt.want)
		}
	}
	// A wrong signature is told before a wrong time, and a number in the body is a time too.
	v := mustCompile(t, hmacConfig(Config{Timestamp: "body.t"}))
	if got := verdict(t, v, newRequest(`{"t":1}`, "X-Signature", mac("x", `{"t":1}`)), "s"); got != ReasonDiffers {
		t.Error(got)
	}
	if got := verdict(t, v, newRequest(`{"t":1}`, "X-Signature", mac("s", `{"t":1}`)), "s"); got != ReasonExpired {
		t.Error(got)
	}
	if got := verdict(t, v, newRequest(`{"t":[1]}`, "X-Signature", mac("s", `{"t":[1]}`)), "s"); got != ReasonMalformed {
		t.Error(got)
	}
}

func TestHolesOfSigned(t *testing.T) {
	gz := string(encode(t, "gzip", []byte("body")))
	tests := []struct {
		name   string
		cfg    Config
		r      *Request
		signed string // what the sender signs
		want   Reason
	}{
		{"missing is empty", Config{Signed: []string{"{headers['X-None']}|{query['q']}|{body.a.b}|{raw}"}}, newRequest("{}"), "|||{}", ""},
		{"null is empty", Config{Signed: []string{"{body.a}|{raw}"}}, newRequest(`{"a":null}`), `|{"a":null}`, ""},
		{"numbers keep their text", Config{Signed: []string{"{body.a}|{body.b}"}}, newRequest(`{"a":1.50,"b":9007199254740993}`), "1.50|9007199254740993", ""},
		{"truth values", Config{Signed: []string{"{body.a}"}}, newRequest(`{"a":true}`), "true", ""},
		{"an object is no text", Config{Signed: []string{"{body.a}"}}, newRequest(`{"a":{}}`), "{}", ReasonUnreadable},
		{"an object in one alternative", Config{Signed: []string{"{body.a}", "{raw}"}}, newRequest(`{"a":{}}`), `{"a":{}}`, ""},
		{"raw is not decoded", Config{}, newRequest(gz, "Content-Encoding", "gzip"), gz, ""},
		{"decoded", Config{Signed: []string{"{decoded}"}}, newRequest(gz, "Content-Encoding", "gzip"), "body", ""},
		{"decoded without an encoding", Config{Signed: []string{"{decoded}"}}, newRequest("body"), "body", ""},
		{"either", Config{Signed: []string{"{raw}", "{decoded}"}}, newRequest(gz, "Content-Encoding", "gzip"), "body", ""},
		{"encoding not known", Config{Signed: []string{"{decoded}"}}, newRequest("body", "Content-Encoding", "br"), "body", ReasonEncoding},
		{"encoding not known, raw signed", Config{Signed: []string{"{decoded}", "{raw}"}}, newRequest("body", "Content-Encoding", "br"), "body", ""},
		{"address", Config{Signed: []string{"{url}{raw}"}}, newRequest("body"), "https://inbox.example/inbody", ""},
		{"address with its port", Config{Signed: []string{"{url}{raw}"}}, newRequest("body"), "https://inbox.example:443/inbody", ""},
		{"address with another port", Config{Signed: []string{"{url}{raw}"}}, newRequest("body"), "https://inbox.example:444/inbody", ReasonDiffers},
		{"address as an expression", Config{Signed: []string{"{lower(url)}"}}, newRequest("body"), "https://inbox.example:443/in", ReasonDiffers},
		{"a hole of the format", Config{Format: "{kid}:{signature}", Signed: []string{"{kid}.{raw}"}}, newRequest("body"), "k.body", ""},
		{"bytes that are no text", Config{Signed: []string{"{raw}.{sha256(raw)}"}}, newRequest("\xff\x00\xfe"),
			"\xff\x00\xfe." + hex.EncodeToString(sum256("\xff\x00\xfe")), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := mustCompile(t, hmacConfig(tt.cfg))
			value := mac("s", tt.signed)
			if tt.cfg.Format != "" {
				value = "k:" + value
			}
			tt.r.Header.Set("X-Signature", value)
			if got := verdict(t, v, tt.r, "s"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func sum256(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

func TestPortIsLeftOut(t *testing.T) {
	v := mustCompile(t, hmacConfig(Config{Signed: []string{"{url}{raw}"}}))
	r := newRequest("body", "X-Signature", mac("s", "https://inbox.example/inbody"))
	r.URL = "https://inbox.example:8443/in"
	if got := verdict(t, v, r, "s"); got != "" {
		t.Error(got)
	}
}

func TestPlaces(t *testing.T) {
	signature := mac("s", "body")
	star := Config{Scheme: SchemeHMAC, Header: "x-sig-*"}
	tests := []struct {
		name    string
		cfg     Config
		headers []string
		query   map[string]string
		want    Reason
	}{
		{"header in other case", Config{Scheme: SchemeHMAC, Header: "x-SIG"}, []string{"X-Sig", signature}, nil, ""},
		{"star, first", star, []string{"X-Sig-1", signature, "X-Sig-2", "00"}, nil, ""},
		{"star, second", star, []string{"X-Sig-1", "00", "X-Sig-2", signature}, nil, ""},
		{"star needs a name of its own", star, []string{"X-Sig-", signature}, nil, ReasonMissing},
		{"star, none", star, []string{"X-Sig", signature}, nil, ReasonMissing},
		{"query", Config{Scheme: SchemeHMAC, Query: "sig"}, nil, map[string]string{"sig": signature}, ""},
		{"query in other case", Config{Scheme: SchemeHMAC, Query: "sig"}, nil, map[string]string{"Sig": signature}, ReasonMissing},
		{"field that reads a header", Config{Scheme: SchemeHMAC, Field: `headers["X-A"]`}, []string{"X-A", signature}, nil, ""},
		{"field that is missing", Config{Scheme: SchemeHMAC, Field: "body.sig"}, nil, nil, ReasonMissing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRequest("body", tt.headers...)
			for name, value := range tt.query {
				r.Query.Set(name, value)
			}
			if got := verdict(t, mustCompile(t, tt.cfg), r, "s"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	basic := func(text string) string { return "Basic " + encodingBase64.encode([]byte(text)) }
	tok, bearer := Config{Scheme: SchemeToken, Header: "X-T"}, Config{Scheme: SchemeToken, Header: "X-T", Format: "Bearer {signature}"}
	list := Config{Scheme: SchemeToken, Header: "X-T", Separator: ","}
	tests := []struct {
		name, value, secret string
		cfg                 Config
		want                Reason
	}{
		{"same", "abc", "abc", tok, ""},
		{"other", "abd", "abc", tok, ReasonDiffers},
		{"shorter", "ab", "abc", tok, ReasonDiffers},
		{"longer", "abcd", "abc", tok, ReasonDiffers},
		{"other case", "ABC", "abc", tok, ReasonDiffers},
		{"a comma is part of it", "a,b", "a,b", tok, ""},
		{"the first half is not enough", "a,b", "a", tok, ReasonDiffers},
		{"cut where the file says so", "a,b", "b", list, ""},
		{"bearer", "Bearer abc", "abc", bearer, ""},
		{"not bearer", "Basic abc", "abc", bearer, ReasonMalformed},
		{"bearer of nothing", "Bearer ", "abc", bearer, ReasonMalformed},
		{"basic", basic("user:pass"), "user:pass", Config{Scheme: SchemeBasic, Header: "X-T"}, ""},
		{"basic in other case", "bASIC " + basic("user:pass")[6:], "user:pass", Config{Scheme: SchemeBasic, Header: "X-T"}, ""},
		{"basic, colons in the password", basic("user:pa:ss"), "user:pa:ss", Config{Scheme: SchemeBasic, Header: "X-T"}, ""},
		{"basic, other password", basic("user:pasS"), "user:pass", Config{Scheme: SchemeBasic, Header: "X-T"}, ReasonDiffers},
		{"basic, other user", basic("User:pass"), "user:pass", Config{Scheme: SchemeBasic, Header: "X-T"}, ReasonDiffers},
		{"basic, not base64", "Basic user:pass", "user:pass", Config{Scheme: SchemeBasic, Header: "X-T"}, ReasonMalformed},
		{"basic, bearer", "Bearer abc", "user:pass", Config{Scheme: SchemeBasic, Header: "X-T"}, ReasonMalformed},
		{"basic, nothing", "Basic", "user:pass", Config{Scheme: SchemeBasic, Header: "X-T"}, ReasonMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := verdict(t, mustCompile(t, tt.cfg), newRequest("body", "X-T", tt.value), tt.secret); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestTokensAreComparedWhole: no other token is taken for the secret.
func TestTokensAreComparedWhole(t *testing.T) {
	v := mustCompile(t, Config{Scheme: SchemeToken, Header: "X-T"})
	secrets := mustSecrets(t, v, "token-0")
	for i := range 3000 {
		r := newRequest("", "X-T", fmt.Sprintf("token-%d", i))
		if _, err := v.Verify(testTime, r, newInput(r), secrets); (err == nil) != (i == 0) {
			t.Fatalf("token-%d: %v", i, err)
		}
	}
}

// TestBodySigned: what was accepted tells whether it covers the body, and of items
// only if it does for all.
func TestBodySigned(t *testing.T) {
	v := mustCompile(t, hmacConfig(Config{Signed: []string{"{raw}", "{url}"}}), Config{Scheme: SchemeBasic})
	url := newRequest("body").URL
	for signature, want := range map[string]bool{mac("u:p", "body"): true, mac("u:p", url): false, "": false} {
		r := newRequest("body", "Authorization", "Basic dTpw")
		if signature != "" {
			r.Header.Set("X-Signature", signature)
		}
		accepted, err := v.Verify(testTime, r, newInput(r), mustSecrets(t, v, "x:y", "u:p"))
		if err != nil || accepted.BodySigned != want || accepted.Secret != 1 {
			t.Errorf("%+v, %v; want body signed: %v", accepted, err, want)
		}
	}
	items := mustCompile(t, Config{Scheme: SchemeHMAC, Header: "X", Signed: []string{"{item.a}{raw}", "{item.b}"}})
	for raw, want := range map[string]bool{
		`[{"a":1},{"a":1}]`: true, `[{"a":1},{"b":1}]`: false, `[{"b":1},{"a":1}]`: false,
	} {
		r := newRequest(raw)
		in := newInput(r)
		r.Items = splitter(t, "body", r, in)
		r.Header.Set("X", mac("s", "1"+raw)+","+mac("s", "1"))
		if accepted, err := items.Verify(testTime, r, in, mustSecrets(t, items, "s")); err != nil || accepted.BodySigned != want {
			t.Errorf("%s: %+v, %v; want body signed: %v", raw, accepted, err, want)
		}
	}
}

// TestList: a list accepts when one entry accepts, and reports the rejection of the
// entry that got furthest.
func TestList(t *testing.T) {
	v := mustCompile(t,
		Config{Scheme: SchemeToken, Header: "X-Token"},
		hmacConfig(Config{Format: "t={timestamp},v1={signature}", Signed: []string{"{timestamp}.{raw}"}}),
		Config{Scheme: SchemeBasic},
	)
	tests := []struct {
		headers []string
		entry   int
		want    Reason
	}{
		{[]string{"X-Token", "u:p"}, 0, ""},
		{[]string{"Authorization", "Basic dTpw"}, 2, ""},
		{[]string{"X-Token", "x", "Authorization", "Basic dTpw"}, 2, ""},
		{nil, 0, ReasonMissing},
		{[]string{"Authorization", "Digest"}, 2, ReasonMalformed},
		{[]string{"X-Token", "x", "Authorization", "Digest"}, 0, ReasonDiffers},
		{[]string{"X-Token", "x", "X-Signature", "t=1,v1=" + mac("u:p", "1.body")}, 1, ReasonExpired},
	}
	for _, tt := range tests {
		r := newRequest("body", tt.headers...)
		accepted, err := v.Verify(testTime, r, newInput(r), mustSecrets(t, v, "u:p"))
		got, entry := reasonOf(t, err), accepted.Entry
		if rej := (*Rejected)(nil); errors.As(err, &rej) {
			entry = rej.Entry
		}
		if got != tt.want || entry != tt.entry {
			t.Errorf("%v: %q of entry %d, want %q of %d", tt.headers, got, entry, tt.want, tt.entry)
		}
	}
}

func TestRequire(t *testing.T) {
	v := mustCompile(t, hmacConfig(Config{Require: `body.account == "a"`}))
	for body, want := range map[string]Reason{
		`{"account":"a"}`: "", `{"account":"b"}`: ReasonRequire, `{}`: ReasonRequire, `{`: ReasonRequire,
	} {
		if got := verdict(t, v, newRequest(body, "X-Signature", mac("s", body)), "s"); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
		if got := verdict(t, v, newRequest(body, "X-Signature", mac("x", body)), "s"); got != ReasonDiffers {
			t.Errorf("%s, wrongly signed: %q", body, got)
		}
	}
	none := mustCompile(t, Config{Scheme: SchemeNone, Require: `query["a"] == "b"`})
	r := newRequest("")
	if got := verdict(t, none, r); got != ReasonRequire {
		t.Error(got)
	}
	r.Query.Set("a", "b")
	if got := verdict(t, none, r); got != "" {
		t.Error(got)
	}
}

// TestItems: what reads the item must hold for every item.
func TestItems(t *testing.T) {
	v := mustCompile(t, Config{Scheme: SchemeHMAC, Field: "item.sig", Signed: []string{"{item.id}"}, Require: `item.id != "c"`})
	item := func(id, secret string) string { return fmt.Sprintf(`{"id":%q,"sig":%q}`, id, mac(secret, id)) }
	tests := []struct {
		body string
		want Reason
	}{
		{item("a", "s"), ""},
		{item("a", "s") + "," + item("b", "s"), ""},
		{item("a", "s") + "," + item("b", "x"), ReasonDiffers},
		{item("a", "x") + "," + item("b", "s"), ReasonDiffers},
		{item("a", "s") + `,{"id":"b"}`, ReasonMissing},
		{item("a", "s") + "," + item("c", "s"), ReasonRequire},
		{"", ReasonMissing},
	}
	for _, tt := range tests {
		r := newRequest("[" + tt.body + "]")
		in := newInput(r)
		r.Items = splitter(t, "body", r, in)
		accepted, err := v.Verify(testTime, r, in, mustSecrets(t, v, "s"))
		if got := reasonOf(t, err); got != tt.want || accepted.BodySigned {
			t.Errorf("%s: %q, want %q", tt.body, got, tt.want)
		}
	}
	r := newRequest(item("a", "s"))
	if got := verdict(t, v, r, "s"); got != "" {
		t.Errorf("without split: %q", got)
	}
	r.Items = func() ([]expr.Input, error) { return nil, errors.New("madeup") }
	if got := verdict(t, v, r, "s"); got != ReasonUnreadable {
		t.Errorf("split failed: %q", got)
	}
	// An entry that reads no item does not ask for them.
	whole := mustCompile(t, hmacConfig(Config{}))
	r = newRequest("[]", "X-Signature", mac("s", "[]"))
	r.Items = func() ([]expr.Input, error) { t.Error("the body was split"); return nil, nil }
	if got := verdict(t, whole, r, "s"); got != "" {
		t.Error(got)
	}
}

// TestLetReadsTheItem: a name under `let` may stand for something of the item, so it
// is checked for each.
func TestLetReadsTheItem(t *testing.T) {
	v, problems := Compile([]Config{{Scheme: SchemeHMAC, Field: "n.sig", Signed: []string{"{n.id}"}}}, testNames.With("n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	good := fmt.Sprintf(`{"id":"a","sig":%q}`, mac("s", "a"))
	for body, want := range map[string]Reason{good + "," + good: "", good + `,{"id":"b","sig":"00"}`: ReasonDiffers} {
		r := newRequest("[" + body + "]")
		in := newInput(r)
		items := splitter(t, "body", r, in)
		r.Items = func() ([]expr.Input, error) {
			all, err := items()
			for i, in := range all {
				all[i] = letInput{in}
			}
			return all, err
		}
		if _, err := v.Verify(testTime, r, in, mustSecrets(t, v, "s")); reasonOf(t, err) != want {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

// letInput has `let: {n: item}`.
type letInput struct{ expr.Input }

func (in letInput) Lookup(name string) tree.Value {
	if name == "n" {
		name = "item"
	}
	return in.Input.Lookup(name)
}

func TestStandardWebhooks(t *testing.T) {
	v := mustCompile(t, Config{Scheme: SchemeStandardWebhooks, Prefix: "svix-"})
	sign := func(secret, id, ts string) string {
		h, err := hex.DecodeString(mac(secret, id+"."+ts+".body"))
		if err != nil {
			t.Fatal(err)
		}
		return "v1," + encodingBase64.encode(h)
	}
	ts := strconv.FormatInt(testTime.Unix(), 10)
	good, bad := sign("s", "m1", ts), sign("x", "m1", ts)
	h := func(prefix, id, ts, signature string) []string {
		return []string{prefix + "id", id, prefix + "timestamp", ts, prefix + "signature", signature}
	}
	both := func(a, b []string) []string { return append(append([]string{}, a...), b...) }
	tests := []struct {
		name    string
		headers []string
		want    Reason
	}{
		{"own prefix", h("svix-", "m1", ts, good), ""},
		{"webhook-", h("webhook-", "m1", ts, good), ""},
		{"another prefix", h("acme-", "m1", ts, good), ReasonMissing},
		{"both, the second is right", both(h("svix-", "m1", ts, bad), h("webhook-", "m1", ts, good)), ""},
		{"headers are not mixed", both(h("svix-", "m2", ts, good), []string{"webhook-id", "m1", "webhook-timestamp", ts}), ReasonDiffers},
		{"several signatures", h("svix-", "m1", ts, bad+" "+good), ""},
		{"two lines", both(h("svix-", "m1", ts, bad), []string{"svix-signature", good}), ""},
		{"unknown version beside", h("svix-", "m1", ts, "v9,AAAA "+good), ""},
		{"unreadable beside", h("svix-", "m1", ts, "v1,?? v1 , v1,"+" "+good), ""},
		{"v1a is not checked with a shared secret", h("svix-", "m1", ts, "v1a"+good[2:]), ReasonMalformed},
		{"nothing usable", h("svix-", "m1", ts, "v1,??"), ReasonMalformed},
		{"no id", h("svix-", "", ts, good), ReasonMissing},
		{"no time", h("svix-", "m1", "", good), ReasonMissing},
		{"id with a dot", h("svix-", "m1.1", ts, sign("s", "m1.1", ts)), ReasonMalformed},
		{"time with a dot", h("svix-", "m1", ts+".0", sign("s", "m1", ts+".0")), ReasonMalformed},
		{"time in milliseconds", h("svix-", "m1", ts+"000", sign("s", "m1", ts+"000")), ReasonMalformed},
		{"without padding", h("svix-", "m1", ts, strings.TrimRight(good, "=")), ReasonMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := verdict(t, v, newRequest("body", tt.headers...), "s"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
