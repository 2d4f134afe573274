package verify

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/asn1"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/onceward/onceward/provider/internal/expr"
)

// TestECDSAForms: a signature is DER, or r and s side by side, on each curve.
func TestECDSAForms(t *testing.T) {
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		private, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		v := mustCompile(t, Config{Scheme: SchemeECDSA, Header: "X"})
		secrets := mustSecrets(t, v, jwkText(t, "", &private.PublicKey))
		der, err := ecdsa.SignASN1(rand.Reader, private, sum256("body"))
		if err != nil {
			t.Fatal(err)
		}
		var pair struct{ R, S *big.Int }
		if _, err := asn1.Unmarshal(der, &pair); err != nil {
			t.Fatal(err)
		}
		size := (curve.Params().BitSize + 7) / 8
		raw := append(pair.R.FillBytes(make([]byte, size)), pair.S.FillBytes(make([]byte, size))...)
		swapped := slices.Concat(raw[size:], raw[:size])
		for name, tt := range map[string]struct {
			signature []byte
			want      Reason
		}{
			"DER": {der, ""}, "raw": {raw, ""}, "swapped": {swapped, ReasonDiffers}, "short": {raw[1:], ReasonDiffers},
			"zeros": {make([]byte, 2*size), ReasonDiffers}, "DER with a tail": {append(der, 0), ReasonDiffers},
		} {
			r := newRequest("body", "X", encodingHex.encode(tt.signature))
			if _, err := v.Verify(testTime, r, newInput(r), secrets); reasonOf(t, err) != tt.want {
				t.Errorf("%s, %s: %v, want %q", curve.Params().Name, name, err, tt.want)
			}
		}
	}
}

// TestKeyNames: {kid} picks one of several keys, and one that is not there is told.
func TestKeyNames(t *testing.T) {
	a, b, nameless := mustSigningKey(t, SchemeEd25519), mustSigningKey(t, SchemeEd25519), mustSigningKey(t, SchemeEd25519)
	set := `{"keys":[` + jwkText(t, "a", public(a)) + `,` + jwkText(t, "b", public(b)) + `]}`
	c := Config{Scheme: SchemeEd25519, Header: "X", Format: "kid={kid},sig={signature}"}
	sign := func(k SigningKey, kid string) string {
		signature, err := k.hold().private.Sign(nil, []byte("body"), crypto.Hash(0))
		if err != nil {
			t.Fatal(err)
		}
		return "kid=" + kid + ",sig=" + encodingHex.encode(signature)
	}
	withSet, withBoth := c, c
	withSet.Keys = &KeysConfig{Published: set}
	withBoth.Keys = withSet.Keys
	tests := []struct {
		name   string
		cfg    Config
		secret string
		value  string
		want   Reason
		by     int
	}{
		{"named", withSet, "", sign(a, "a"), "", -1},
		{"the other", withSet, "", sign(b, "b"), "", -1},
		{"named for another", withSet, "", sign(a, "b"), ReasonDiffers, 0},
		{"not there", withSet, "", sign(a, "c"), ReasonKeyUnknown, 0},
		{"no name is given", withSet, "", sign(b, ""), "", -1},
		{"the piece is not there", withSet, "", strings.TrimPrefix(sign(b, ""), "kid=,"), "", -1},
		{"a secret without a name answers", c, mustPublicText(t, nameless), sign(nameless, "z"), "", 0},
		{"a secret without a name, beside names", withBoth, mustPublicText(t, nameless), sign(nameless, "z"), "", 0},
		{"a name that is there wins", withBoth, mustPublicText(t, nameless), sign(nameless, "a"), ReasonDiffers, 0},
		{"a set under secrets", c, set, sign(b, "b"), "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := mustCompile(t, tt.cfg)
			var secrets []Secret
			if tt.secret != "" {
				secrets = mustSecrets(t, v, tt.secret)
			}
			r := newRequest("body", "X", tt.value)
			accepted, err := v.Verify(testTime, r, newInput(r), secrets)
			if got := reasonOf(t, err); got != tt.want || err == nil && accepted.Secret != tt.by {
				t.Errorf("%q by %d, want %q by %d", got, accepted.Secret, tt.want, tt.by)
			}
		})
	}
}

func public(k SigningKey) crypto.PublicKey { return k.hold().private.Public() }

func mustPublicText(t *testing.T, k SigningKey) string {
	t.Helper()
	text, err := k.PublicText(SchemeEd25519)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestKeyAlgorithms: a key that says what it is for serves for nothing else.
func TestKeyAlgorithms(t *testing.T) {
	keys := map[string]crypto.PublicKey{}
	for _, scheme := range []string{SchemeEd25519, SchemeECDSA, SchemeRSA} {
		keys[scheme] = public(mustSigningKey(t, scheme))
	}
	fits := map[string]string{
		"ed25519 ": "EdDSA Ed25519", "ed25519 sha256": "EdDSA Ed25519", "ecdsa ": "ES256", "ecdsa sha512": "ES512",
		"rsa ": "RS256", "rsa sha512": "RS512", "rsa sha1": "RS1",
	}
	for row, algorithms := range fits {
		scheme, hash, _ := strings.Cut(row, " ")
		v := mustCompile(t, Config{Scheme: scheme, Header: "X", Hash: hash})
		for alg := range strings.FieldsSeq("EdDSA Ed25519 ES256 ES384 ES512 RS1 RS256 RS512 PS256 HS256 none") {
			for kind, key := range keys {
				text := strings.Replace(jwkText(t, "", key), `{`, `{"alg":"`+alg+`",`, 1)
				_, err := v.ParseSecret(text)
				want := kind == scheme && strings.Contains(" "+algorithms+" ", " "+alg+" ")
				if (err == nil) != want {
					t.Errorf("%s with a key of %s for %s: %v", row, kind, alg, err)
				}
			}
		}
	}
}

func TestPublishedStandardWebhooks(t *testing.T) {
	k := mustSigningKey(t, SchemeStandardWebhooks)
	set, err := k.JWKS()
	if err != nil {
		t.Fatal(err)
	}
	v := mustCompile(t, Config{Scheme: SchemeStandardWebhooks, Keys: &KeysConfig{Published: set}})
	r := newRequest("body", "webhook-id", "a")
	if err := v.Sign(testTime, r, newInput(r), k); err != nil {
		t.Fatal(err)
	}
	if accepted, err := v.Verify(testTime, r, newInput(r), nil); err != nil || accepted.Secret != -1 {
		t.Errorf("%+v, %v", accepted, err)
	}
	// The bytes of a public key are known to all: they must be no shared secret.
	text, err := k.PublicText(SchemeStandardWebhooks)
	if err != nil {
		t.Fatal(err)
	}
	forged := newRequest("body", "webhook-id", "a", "webhook-timestamp", "1767225600")
	message := standardMessage("a", "1767225600", forged.Raw)
	forged.Header.Set("webhook-signature", "v1,"+encodingBase64.encode(standardShared().sum(message, public(k).(ed25519.PublicKey))))
	if _, err := v.Verify(testTime, forged, newInput(forged), mustSecrets(t, v, text)); reasonOf(t, err) != ReasonDiffers {
		t.Errorf("forged with the public key: %v", err)
	}
}

// TestExpressionFails: an expression that fails at a delivery rejects it.
func TestExpressionFails(t *testing.T) {
	failing := `int(body.a) + 1` // of a text that is no number
	body := `{"a":"x"}`
	for name, c := range map[string]Config{
		"signed":    {Signed: []string{"{string(" + failing + ")}"}},
		"timestamp": {Timestamp: failing},
		"require":   {Require: failing + " == 2"},
	} {
		v := mustCompile(t, hmacConfig(c))
		err := verifyError(t, v, newRequest(body, "X-Signature", mac("s", body)), "s")
		if reasonOf(t, err) != ReasonUnreadable || !strings.Contains(err.Error(), "int(body.a)") {
			t.Errorf("%s: %v", name, err)
		}
	}
	v := mustCompile(t, Config{Scheme: SchemeHMAC, Field: "string(" + failing + ")"})
	if err := verifyError(t, v, newRequest(body), "s"); reasonOf(t, err) != ReasonUnreadable {
		t.Errorf("field: %v", err)
	}
	ch, problems := CompileChallenge(ChallengeConfig{When: failing + " == 2", Text: "body.a"}, testNames, v)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if _, _, ok, err := ch.Answer("POST", newInput(newRequest(body)), nil); ok || err == nil {
		t.Errorf("challenge: %v, %v", ok, err)
	}
}

func verifyError(t *testing.T, v *Verifier, r *Request, secret string) error {
	t.Helper()
	_, err := v.Verify(testTime, r, newInput(r), mustSecrets(t, v, secret))
	return err
}

// TestExpressionProblems: every fault of one expression is told at its place.
func TestExpressionProblems(t *testing.T) {
	_, problems := Compile([]Config{hmacConfig(Config{Signed: []string{"{raw}{ida + idb}"}})}, testNames)
	offsets := map[int]bool{}
	for _, p := range problems {
		offsets[p.Offset] = true
	}
	if len(problems) != 2 || !offsets[6] || !offsets[12] {
		t.Errorf("%+v, want faults at 6 and 12", problems)
	}
	plain := expressionProblems(errors.Join(errors.New("a"), &expr.Error{Offset: 3, Msg: "b", Hint: "c"}))
	if len(plain) != 2 || plain[0] != (fault{0, "a", ""}) || plain[1] != (fault{3, "b", "c"}) {
		t.Errorf("%+v", plain)
	}
}

func TestNoEntries(t *testing.T) {
	r := newRequest("")
	if _, err := (&Verifier{}).Verify(testTime, r, newInput(r), nil); reasonOf(t, err) != ReasonKeyUnknown {
		t.Error(err)
	}
}
