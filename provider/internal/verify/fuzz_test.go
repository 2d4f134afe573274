package verify

import (
	"net/url"
	"strings"
	"testing"

	"github.com/onceward/onceward/provider/internal/expr"
)

func FuzzFormat(f *testing.F) {
	f.Add("t={timestamp},v1={signature}", ",", "t=1,v1=a,v1=b,x")
	f.Add("alg=RS256; kid={kid}; signature={signature}", ";", "alg=RS256; kid=k; signature=s")
	f.Add("{a}|{signature}<", "&", "1|2<&3|4<")
	f.Fuzz(func(t *testing.T, text, separator, value string) {
		if separator == "" {
			return
		}
		fm, flt := parseFormat(text, separator, true)
		if flt != nil {
			if flt.offset < 0 || flt.offset > len(text) || flt.msg == "" {
				t.Fatalf("fault %+v of %q", flt, text)
			}
			return
		}
		candidates, err := fm.read(value)
		if err != nil {
			if len(value) > 3 && strings.Contains(err.Error(), value) && !strings.Contains(text, value) {
				t.Fatalf("the error holds the value: %v", err)
			}
			return
		}
		if len(candidates) > maxPieces {
			t.Fatalf("%d candidates", len(candidates))
		}
		for _, c := range candidates {
			if len(c.signature) > len(value) || len(c.holes) != len(fm.holes) {
				t.Fatalf("candidate %+v of %q", c, value)
			}
		}
	})
}

func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"{raw}", "{timestamp}.{raw}", `{headers["X}"]}{"}`, "{secret}-{raw}", "{{}", "a{", `{r"\"}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, faults := parseTemplate(text, scope{names: testNames, timestamp: true, secret: true})
		for _, flt := range faults {
			if flt.offset < 0 || flt.offset > len(text) || flt.msg == "" {
				t.Fatalf("fault %+v of %q", flt, text)
			}
		}
	})
}

func FuzzPublicKeys(f *testing.F) {
	for _, text := range []string{`{"keys":[{"kty":"RSA","n":"AQ","e":"AQAB"}]}`, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", strings.Repeat("00", 32), "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g=="} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := parsePublicKeys(text)
		if (err == nil) != (len(keys) > 0) || len(keys) > maxKeys {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		for _, k := range keys {
			verifyPublic(k.key, 0, []byte("m"), []byte("s"))
		}
	})
}

const fuzzSecret = "madeup-secret:4e0f8a61d2c75b39"

// fuzzVerifiers are one of each scheme, and lists of them, with secrets that no
// input can know.
func fuzzVerifiers(t testing.TB) map[*Verifier][]Secret {
	t.Helper()
	all := map[*Verifier][]Secret{}
	add := func(secret string, cfgs ...Config) {
		v := mustCompile(t, cfgs...)
		all[v] = mustSecrets(t, v, secret)
	}
	time := `headers["X-Time"]`
	add(fuzzSecret, hmacConfig(Config{Format: "t={timestamp},v1={signature}", Signed: []string{"{timestamp}.{raw}"}}))
	add(fuzzSecret, hmacConfig(Config{Format: "{kid}|{signature}", Separator: "&", Encoding: "base64", Signed: []string{"{url}{decoded}{kid}"}, Timestamp: "body.t", Tolerance: "0s"}))
	add(fuzzSecret, Config{Scheme: SchemeHash, Query: "sig", Encoding: "base64url", Signed: []string{"{secret}{body.a}{raw}", "{secret}" + "{query['q']}"}})
	add(fuzzSecret, Config{Scheme: SchemeToken, Header: "X-Sig-*", Format: "Bearer {signature}"}, Config{Scheme: SchemeBasic}, Config{Scheme: SchemeToken, Field: "body.token"})
	add(fuzzSecret, Config{Scheme: SchemeStandardWebhooks, Prefix: "svix-"}, Config{Scheme: SchemeHMAC, Field: "item.sig", Signed: []string{"{item.id}"}, Require: "item.ok == true"})
	for _, scheme := range []string{SchemeEd25519, SchemeECDSA, SchemeRSA} {
		public, err := mustSigningKey(t, scheme).PublicText(scheme)
		if err != nil {
			t.Fatal(err)
		}
		add(public, Config{Scheme: scheme, Header: "X-Signature", Signed: []string{"{timestamp}{sha256(raw)}"}, Timestamp: time})
	}
	return all
}

func FuzzVerify(f *testing.F) {
	verifiers := fuzzVerifiers(f)
	f.Add("t=1767225600,v1=00", "1767225600", "sig=00", `{"a":1,"token":"x","t":1}`, "https://inbox.example:1/in", "gzip", "application/json")
	f.Add("k|AAAA&k|BBBB", "2026-01-01T00:00:00Z", "", `[{"id":"1","sig":"00","ok":true}]`, "", "deflate, br", "")
	f.Add("v1,AAAA v1a,BBBB", "", "sig=&sig=%00", "a=b&token=c", "//", "", "application/x-www-form-urlencoded")
	f.Add("Bearer x", "-1", "%zz", "", "http://[::1", "identity", "text/plain")
	f.Fuzz(func(t *testing.T, signature, time, query, body, address, coding, kind string) {
		for v, secrets := range verifiers {
			r := newRequest(body, "X-Signature", signature, "X-Sig-1", signature, "X-Sig-2", time, "Authorization", signature,
				"X-Time", time, "svix-id", time, "svix-timestamp", time, "svix-signature", signature, "webhook-id", "a",
				"webhook-timestamp", "1767225600", "webhook-signature", signature, "Content-Encoding", coding, "Content-Type", kind)
			r.URL = address
			r.Query, _ = url.ParseQuery(query) // what is readable of it
			in := newInput(r)
			r.Items = func() ([]expr.Input, error) {
				var items []expr.Input
				for item := range in.parsed().Elements() {
					one := newInput(r)
					one.item = &item
					items = append(items, one)
				}
				return items, nil
			}
			_, err := v.Verify(testTime, r, in, secrets)
			if err == nil {
				t.Fatal("accepted without the secret")
			}
			reasonOf(t, err)
			if strings.Contains(err.Error(), fuzzSecret) {
				t.Fatalf("the error holds the secret: %v", err)
			}
		}
	})
}
