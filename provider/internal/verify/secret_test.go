package verify

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func hmacConfig(c Config) Config {
	c.Scheme, c.Header = SchemeHMAC, "X-Signature"
	return c
}

func TestParseSecret(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	standard, hexed := Config{Scheme: SchemeStandardWebhooks}, hmacConfig(Config{SecretAs: "hex"})
	basic, tok := Config{Scheme: SchemeBasic}, Config{Scheme: SchemeToken, Header: "X-Token"}
	key := bytes.Repeat([]byte{7}, 32)
	tests := []struct {
		name string
		cfg  Config
		text string
		err  error
		hint string
		keys [][]byte
	}{
		{"text", hmacConfig(Config{}), "whsec_abc", nil, "", [][]byte{[]byte("whsec_abc")}},
		{"empty", hmacConfig(Config{}), "", ErrEmptySecret, "anybody could sign", nil},
		{"blank", hmacConfig(Config{}), " \n", ErrEmptySecret, "", nil},
		{"line end", hmacConfig(Config{}), "abc\n", ErrSecretSpace, "remove it", nil},
		{"blank before", tok, " abc", ErrSecretSpace, "", nil},
		{"blank within", tok, "a b", nil, "", [][]byte{[]byte("a b")}},
		{"a brace is no key set", hmacConfig(Config{}), "{abc\n", ErrSecretSpace, "", nil},
		{"hex", hexed, "00FFaa", nil, "", [][]byte{{0, 255, 170}}},
		{"not hex", hexed, "secret-key", ErrSecretForm, "secret_as is hex", nil},
		{"odd hex", hexed, "0", ErrSecretForm, "secret_as is hex", nil},
		{"sha1", hmacConfig(Config{SecretAs: "sha1"}), "abc", nil, "", [][]byte{mustHex(t, "a9993e364706816aba3e25717850c26c9cd0d89d")}},
		{"basic", basic, "user:pa:ss", nil, "", [][]byte{[]byte("user:pa:ss")}},
		{"basic without a colon", basic, "madeup-name", ErrSecretForm, "user:pass", nil},
		{"none", Config{Scheme: SchemeNone}, "abc", ErrSecretForm, "leave it out", nil},

		{"whsec_ 24 bytes", standard, "whsec_" + b64(key[:24]), nil, "", [][]byte{key[:24]}},
		{"whsec_ 64 bytes", standard, "whsec_" + b64(bytes.Repeat(key, 2)), nil, "", [][]byte{bytes.Repeat(key, 2)}},
		{"whsec_ without padding", standard, "whsec_" + strings.TrimRight(b64(key), "="), nil, "", [][]byte{key}},
		{"whsec_ 23 bytes", standard, "whsec_" + b64(key[:23]), ErrSecretForm, "24 to 64 bytes", nil},
		{"whsec_ 65 bytes", standard, "whsec_" + b64(append(bytes.Repeat(key, 2), 1)), ErrSecretForm, "24 to 64 bytes", nil},
		{"whsec_ not base64", standard, "whsec_madeup-secret-one", ErrSecretForm, "copy the whole", nil},
		{"whsec_ with a line end", standard, "whsec_" + b64(key)[:20] + "\n" + b64(key)[20:], ErrSecretForm, "", nil},
		{"whpk_ cut off", standard, "whpk_" + b64(key[:31]), ErrSecretForm, "32 bytes", nil},
		{"whsk_", standard, "whsk_" + b64(bytes.Repeat(key, 2)), ErrSecretForm, "private key", nil},
		{"no prefix, text", standard, "plain-secret-without-prefix", nil, "", [][]byte{[]byte("plain-secret-without-prefix")}},
		{"no prefix, base64", standard, b64(key), nil, "", [][]byte{key, []byte(b64(key))}},
		{"no prefix, short base64", standard, b64(key[:6]), nil, "", [][]byte{[]byte(b64(key[:6]))}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := mustCompile(t, tt.cfg)
			s, err := v.ParseSecret(tt.text)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tt.hint) {
					t.Errorf("error %q does not say %q", err, tt.hint)
				}
				if text := strings.TrimSpace(tt.text); len(text) > 2 && strings.Contains(err.Error(), text) {
					t.Errorf("the error holds the secret: %v", err)
				}
				return
			}
			var got [][]byte
			for _, k := range v.entries[0].keys(v, []Secret{s}, "") {
				got = append(got, k.shared)
			}
			if !equalKeys(got, tt.keys) {
				t.Errorf("%d keys, want %d, or they differ", len(got), len(tt.keys))
			}
		})
	}
}

func mustHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func equalKeys(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// TestSecretOfAList: a secret need be of use to one entry only, and is tried on no
// other.
func TestSecretOfAList(t *testing.T) {
	v := mustCompile(t, Config{Scheme: SchemeBasic}, hmacConfig(Config{SecretAs: "hex"}))
	s := mustSecrets(t, v, "user:pass", "00ff")
	if got := v.entries[0].keys(v, s, ""); len(got) != 1 || got[0].secret != 0 {
		t.Errorf("basic has %d keys", len(got))
	}
	if got := v.entries[1].keys(v, s, ""); len(got) != 1 || got[0].secret != 1 {
		t.Errorf("hmac has %d keys", len(got))
	}
	if _, err := v.ParseSecret("neither"); !errors.Is(err, ErrSecretForm) || !strings.Contains(err.Error(), "basic") || !strings.Contains(err.Error(), "hmac") {
		t.Errorf("%v, want both schemes to say why", err)
	}
	other := mustCompile(t, Config{Scheme: SchemeBasic})
	if got := other.entries[0].keys(other, append(s, Secret{}), ""); len(got) != 0 {
		t.Error("a secret of another Verifier is used")
	}
}

func TestCheckSecrets(t *testing.T) {
	v := mustCompile(t, hmacConfig(Config{}))
	if err := v.CheckSecrets(nil); !errors.Is(err, ErrNoSecret) || !strings.Contains(err.Error(), "secrets") {
		t.Errorf("%v, want %v", err, ErrNoSecret)
	}
	if err := v.CheckSecrets(mustSecrets(t, v, "abc")); err != nil {
		t.Error(err)
	}
	if err := mustCompile(t, Config{Scheme: SchemeNone}).CheckSecrets(nil); err != nil {
		t.Error(err)
	}
	k := mustSigningKey(t, SchemeEd25519)
	jwks, err := k.JWKS()
	if err != nil {
		t.Fatal(err)
	}
	published := mustCompile(t, Config{Scheme: SchemeEd25519, Header: "X", Keys: &KeysConfig{Published: jwks}})
	if err := published.CheckSecrets(nil); err != nil {
		t.Error(err)
	}
	given := mustCompile(t, Config{Scheme: SchemeEd25519, Header: "X", SecretsGiven: true, Keys: &KeysConfig{JWKS: "https://keys.example/"}})
	if err := given.CheckSecrets(nil); !errors.Is(err, ErrNoSecret) || !strings.Contains(err.Error(), "public key") {
		t.Errorf("%v, want %v", err, ErrNoSecret)
	}
}

func mustSigningKey(t testing.TB, scheme string) SigningKey {
	t.Helper()
	k, err := NewSigningKey(scheme, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestMasked: nothing that prints prints a secret or a private key, wherever in a
// value it is.
func TestMasked(t *testing.T) {
	const text = "madeup-secret-0123456789"
	v := mustCompile(t, hmacConfig(Config{}))
	secret := mustSecrets(t, v, text)[0]
	signing := mustSigningKey(t, SchemeECDSA)
	private, err := signing.Text()
	if err != nil {
		t.Fatal(err)
	}
	needles := []string{text, hex.EncodeToString([]byte(text)), fmt.Sprint([]byte(text)), private}
	type holder struct {
		Public  Secret
		private Secret
		key     SigningKey
		list    []Secret
	}
	held := holder{secret, secret, signing, []Secret{secret}}
	values := []any{secret, &secret, []Secret{secret}, map[string]Secret{"a": secret}, held, &held, signing, &signing}
	var out strings.Builder
	logs := []*slog.Logger{slog.New(slog.NewTextHandler(&out, nil)), slog.New(slog.NewJSONHandler(&out, nil))}
	for _, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%T", "%p", "%t"} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
		for _, log := range logs {
			log.Info("a", "value", value)
		}
		if text, err := json.Marshal(value); err != nil {
			t.Error(err)
		} else {
			out.Write(text)
		}
	}
	for _, needle := range needles {
		if strings.Contains(strings.ToLower(out.String()), strings.ToLower(needle)) {
			t.Errorf("printed: %.40s", needle)
		}
	}
	if !strings.Contains(out.String(), masked) || !strings.Contains(out.String(), maskedKey) {
		t.Error("the masks are not printed")
	}
}
