package verify

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
)

func spkiOf(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func certificateOf(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "made up"}, NotAfter: time.Unix(1, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf("CERTIFICATE", der)
}

func TestParsePublicKeys(t *testing.T) {
	ed := ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)
	ec, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	edPEM, ecPEM := pemOf("PUBLIC KEY", spkiOf(t, ed)), pemOf("PUBLIC KEY", spkiOf(t, &ec.PublicKey))
	forms := map[string]struct {
		text string
		keys int
	}{
		"ed25519 hex":           {hex.EncodeToString(ed), 1},
		"ed25519 HEX":           {strings.ToUpper(hex.EncodeToString(ed)), 1},
		"ed25519 base64":        {base64.StdEncoding.EncodeToString(ed), 1},
		"ed25519 base64url":     {base64.RawURLEncoding.EncodeToString(ed), 1},
		"ed25519 SPKI":          {base64.StdEncoding.EncodeToString(spkiOf(t, ed)), 1},
		"ed25519 PEM":           {edPEM, 1},
		"ecdsa SPKI":            {base64.StdEncoding.EncodeToString(spkiOf(t, &ec.PublicKey)), 1},
		"ecdsa PEM":             {ecPEM, 1},
		"rsa SPKI PEM":          {pemOf("PUBLIC KEY", spkiOf(t, &rs.PublicKey)), 1},
		"rsa PKCS1 PEM":         {pemOf("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&rs.PublicKey)), 1},
		"certificate":           {certificateOf(t, ec), 1},
		"two PEM blocks":        {edPEM + "\n" + ecPEM, 2},
		"JWK of ed25519":        {jwkText(t, "", ed), 1},
		"JWK of ecdsa":          {jwkText(t, "", &ec.PublicKey), 1},
		"JWK of rsa":            {jwkText(t, "", &rs.PublicKey), 1},
		"set":                   {`{"keys":[` + jwkText(t, "a", ed) + `,` + jwkText(t, "b", &ec.PublicKey) + `]}`, 2},
		"list":                  {`[` + jwkText(t, "a", ed) + `]`, 1},
		"unknown kinds skipped": {`{"keys":[{"kty":"OKP","crv":"X25519","x":"AA"},{"kty":"EC","crv":"secp256k1"},{"kty":"new"},` + jwkText(t, "", ed) + `]}`, 1},
		"encryption skipped":    {`{"keys":[{"kty":"RSA","use":"enc","n":"!"},{"kty":"RSA","key_ops":["sign"],"n":"!"},` + jwkText(t, "", ed) + `]}`, 1},
		"key_ops verify":        {`{"keys":[` + strings.Replace(jwkText(t, "", ed), `"use":"sig"`, `"key_ops":["verify"]`, 1) + `]}`, 1},
	}
	for name, tt := range forms {
		keys, err := parsePublicKeys(tt.text)
		if err != nil || len(keys) != tt.keys {
			t.Errorf("%s: %d keys, %v", name, len(keys), err)
			continue
		}
		public := keys[0].key.(interface{ Equal(x crypto.PublicKey) bool })
		if !public.Equal(ed) && !public.Equal(&ec.PublicKey) && !public.Equal(&rs.PublicKey) {
			t.Errorf("%s: another key", name)
		}
	}
}

func jwkText(t *testing.T, kid string, key any) string {
	t.Helper()
	k, err := jwkOf(kid, key)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"kty":%q,"use":"sig","kid":%q,"crv":%q,"x":%q,"y":%q,"n":%q,"e":%q}`, k.Kty, k.Kid, k.Crv, k.X, k.Y, k.N, k.E)
}

func TestParsePublicKeysRefuses(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ed := ed25519.NewKeyFromSeed(make([]byte, 32))
	private, err := x509.MarshalPKCS8PrivateKey(ed)
	if err != nil {
		t.Fatal(err)
	}
	public := ed.Public().(ed25519.PublicKey)
	many := strings.TrimSuffix(strings.Repeat(jwkText(t, "", public)+",", maxKeys+1), ",")
	x := base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))
	tests := map[string]struct {
		text string
		err  error
		msg  string
	}{
		"nothing":             {"", errNotKey, ""},
		"a word":              {"madeup-secret", errNotKey, ""},
		"base64 of no key":    {base64.StdEncoding.EncodeToString([]byte("madeup-secret")), errNotKey, ""},
		"small rsa":           {pemOf("PUBLIC KEY", spkiOf(t, &small.PublicKey)), nil, "1024 bits"},
		"P-224":               {pemOf("PUBLIC KEY", spkiOf(t, &p224.PublicKey)), nil, "curve"},
		"private PEM":         {pemOf("PRIVATE KEY", private), errPrivate, ""},
		"PEM cut off":         {pemOf("PUBLIC KEY", spkiOf(t, public))[:60], errNotKey, ""},
		"PEM with a tail":     {pemOf("PUBLIC KEY", spkiOf(t, public)) + "x", errNotKey, ""},
		"PEM of nonsense":     {pemOf("PUBLIC KEY", []byte("x")), errNotKey, ""},
		"no certificate":      {pemOf("CERTIFICATE", []byte("x")), errNotKey, ""},
		"JSON cut off":        {`{"keys":[`, errNotKey, ""},
		"list cut off":        {`[{`, errNotKey, ""},
		"empty set":           {`{"keys":[]}`, errNotKey, ""},
		"symmetric JWK":       {`{"kty":"oct","k":"AAAA"}`, errPrivate, ""},
		"private JWK":         {`{"kty":"OKP","crv":"Ed25519","x":"` + x + `","d":"` + x + `"}`, errPrivate, ""},
		"short x":             {`{"kty":"OKP","crv":"Ed25519","x":"AAAA"}`, errNotKey, ""},
		"x in plain base64":   {`{"kty":"OKP","crv":"Ed25519","x":"` + strings.Repeat("+", 43) + `"}`, errNotKey, ""},
		"point off the curve": {`{"kty":"EC","crv":"P-256","x":"` + x + `","y":"` + x + `"}`, errNotKey, ""},
		"point too long":      {`{"kty":"EC","crv":"P-256","x":"` + x + `AA","y":"` + x + `"}`, errNotKey, ""},
		"even exponent":       {`{"kty":"RSA","n":"` + strings.Repeat("qqqq", 86) + `","e":"Ag"}`, nil, "exponent"},
		"huge exponent":       {`{"kty":"RSA","n":"` + strings.Repeat("qqqq", 86) + `","e":"AQAAAAE"}`, nil, "exponent"},
		"too many":            {`{"keys":[` + many + `]}`, nil, "more than"},
	}
	for name, tt := range tests {
		keys, err := parsePublicKeys(tt.text)
		if err == nil {
			t.Errorf("%s: %d keys", name, len(keys))
			continue
		}
		if tt.err != nil && !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.msg) {
			t.Errorf("%s: %v, want %v %s", name, err, tt.err, tt.msg)
		}
		if strings.Contains(err.Error(), x) || strings.Contains(err.Error(), "madeup-secret") {
			t.Errorf("%s: the error holds what it was given: %v", name, err)
		}
	}
}

func TestSigningKeyTexts(t *testing.T) {
	for _, scheme := range []string{SchemeEd25519, SchemeECDSA, SchemeRSA, SchemeStandardWebhooks} {
		k := mustSigningKey(t, scheme)
		text, err := k.Text()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseSigningKey(text)
		if err != nil || again.Kid() != k.Kid() {
			t.Errorf("%s: %v; kid %s, want %s", scheme, err, again.Kid(), k.Kid())
		}
		jwks, err := k.JWKS()
		if err != nil {
			t.Fatal(err)
		}
		if keys, err := parsePublicKeys(jwks); err != nil || len(keys) != 1 || keys[0].kid != k.Kid() {
			t.Errorf("%s: key set %s: %v", scheme, jwks, err)
		}
	}
	if _, err := NewSigningKey(SchemeHMAC, rand.Reader); err == nil {
		t.Error("hmac has a signing key")
	}
	seeded := func() SigningKey {
		k, err := NewSigningKey(SchemeECDSA, strings.NewReader(strings.Repeat("s", 32)))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	if one, two := seeded(), seeded(); one.Kid() != two.Kid() {
		t.Error("the same randomness makes two keys")
	}
	if _, err := NewSigningKey(SchemeECDSA, bytes.NewReader(make([]byte, 1<<16))); err == nil {
		t.Error("a key was made from zeros")
	}
	if _, err := NewSigningKey(SchemeEd25519, strings.NewReader("short")); err == nil {
		t.Error("a key was made from five bytes")
	}
	for _, text := range []string{"", "whsk_AAAA", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "whsec_AAAA"} {
		if _, err := ParseSigningKey(text); err == nil {
			t.Errorf("%q is a signing key", text)
		}
	}
}
