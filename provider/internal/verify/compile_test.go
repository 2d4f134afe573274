package verify

import (
	"strings"
	"testing"
)

func TestCompileProblems(t *testing.T) {
	const jwks = "https://keys.example/.well-known/jwks.json"
	h := hmacConfig
	key := func(k KeysConfig) Config { return Config{Scheme: SchemeEd25519, Header: "X-Signature", Keys: &k} }
	tests := []struct {
		name   string
		cfg    Config
		key    string
		index  int
		offset int
		text   string // in the message or its hint
	}{
		{"no scheme", Config{Header: "X"}, "scheme", 0, 0, "scheme is missing"},
		{"unknown scheme", Config{Scheme: "hmca", Header: "X"}, "scheme", 0, 0, "did you mean hmac?"},
		{"unknown scheme, far off", Config{Scheme: "signature"}, "scheme", 0, 0, "the schemes are hmac, hash"},
		{"scheme in other case", Config{Scheme: "HMAC"}, "scheme", 0, 0, "did you mean hmac?"},
		{"no place", Config{Scheme: SchemeHMAC}, "", 0, 0, "exactly one"},
		{"two places", Config{Scheme: SchemeHMAC, Header: "X", Query: "q"}, "", 0, 0, "exactly one"},
		{"three places", Config{Scheme: SchemeToken, Header: "X", Query: "q", Field: "body.a"}, "", 0, 0, "exactly one"},
		{"header with a colon", Config{Scheme: SchemeHMAC, Header: "X: y"}, "header", 0, 0, "no name of a header"},
		{"header of a star", Config{Scheme: SchemeHMAC, Header: "*"}, "header", 0, 0, "no name of a header"},
		{"star within", Config{Scheme: SchemeHMAC, Header: "X-*-Sig"}, "header", 0, 0, "no name of a header"},
		{"field", Config{Scheme: SchemeHMAC, Field: "body.a +"}, "field", 0, -1, ""},
		{"field of no name", Config{Scheme: SchemeHMAC, Field: "signature"}, "field", 0, 0, "body.signature"},
		{"format", h(Config{Format: "t={timestamp},v1={sig"}), "format", 0, 17, "not closed"},
		{"format without a signature", h(Config{Format: "t={timestamp}"}), "format", 0, 0, "{signature} must stand"},
		{"separator", h(Config{Format: "{signature}", Separator: "and"}), "separator", 0, 0, "punctuation"},
		{"hole not closed", h(Config{Signed: []string{"{raw}", "v0:{timestamp:{raw}"}}), "signed", 1, 3, "not closed"},
		{"hole with an open text", h(Config{Signed: []string{`{headers["X}`}}), "signed", 0, 0, "not closed"},
		{"empty hole", h(Config{Signed: []string{"a{ }"}}), "signed", 0, 2, "empty"},
		{"timestamp without a source", h(Config{Signed: []string{"{timestamp}.{raw}"}}), "signed", 0, 1, "no source"},
		{"signature in signed", h(Config{Signed: []string{"{raw}{signature}"}}), "signed", 0, 6, "cannot stand"},
		{"secret in an hmac", h(Config{Signed: []string{"{raw}{secret}"}}), "signed", 0, 6, "only for scheme hash"},
		{"hole of no name", h(Config{Signed: []string{"{raw}", "{raw}{  idd }"}}), "signed", 1, 8, "body.idd"},
		{"nothing varies", h(Config{Signed: []string{"text"}}), "signed", 0, 0, "same for every delivery"},
		{"too many alternatives", h(Config{Signed: strings.Split(strings.Repeat("{raw},", maxAlternatives)+"{raw}", ",")}), "signed", 0, 0, "more than"},
		{"hash without signed", Config{Scheme: SchemeHash, Header: "X"}, "signed", 0, 0, "{secret}"},
		{"hash without a secret", Config{Scheme: SchemeHash, Header: "X", Signed: []string{"{secret}{raw}", "{raw}"}}, "signed", 1, 0, "anybody"},
		{"hash of a secret", Config{Scheme: SchemeHash, Header: "X", Signed: []string{"{secret}"}}, "signed", 0, 0, "same for every delivery"},
		{"timestamp", h(Config{Timestamp: "headers["}), "timestamp", 0, -1, ""},
		{"tolerance without a unit", h(Config{Timestamp: "body.t", Tolerance: "300"}), "tolerance", 0, 0, "300s"},
		{"tolerance of days", h(Config{Timestamp: "body.t", Tolerance: "1 day"}), "tolerance", 0, 0, "5m"},
		{"negative tolerance", h(Config{Timestamp: "body.t", Tolerance: "-5m"}), "tolerance", 0, 0, "negative"},
		{"tolerance of nothing", h(Config{Tolerance: "5m"}), "tolerance", 0, 0, "nothing says when"},
		{"hash of another name", h(Config{Hash: "sha265"}), "hash", 0, 0, "did you mean sha256?"},
		{"unknown hash", h(Config{Hash: "md5"}), "hash", 0, 0, "sha1, sha256, sha512"},
		{"unknown encoding", h(Config{Encoding: "base-64"}), "encoding", 0, 0, "did you mean base64?"},
		{"unknown secret_as", h(Config{SecretAs: "utf8"}), "secret_as", 0, 0, "text, hex, sha1"},
		{"require is no condition", h(Config{Require: "body.paid"}), "require", 0, -1, ""},
		{"prefix", Config{Scheme: SchemeStandardWebhooks, Prefix: "svix"}, "prefix", 0, 0, "svix-"},

		{"a key that means nothing", Config{Scheme: SchemeStandardWebhooks, Header: "X"}, "header", 0, 0, "means nothing with scheme standard-webhooks"},
		{"prefix of an hmac", h(Config{Prefix: "svix-"}), "prefix", 0, 0, "means nothing"},
		{"hash of a token", Config{Scheme: SchemeToken, Header: "X", Hash: "sha1"}, "hash", 0, 0, "means nothing"},
		{"query of basic", Config{Scheme: SchemeBasic, Query: "q"}, "query", 0, 0, "means nothing"},
		{"secret_as of rsa", Config{Scheme: SchemeRSA, Header: "X", SecretAs: "hex"}, "secret_as", 0, 0, "means nothing"},
		{"keys of an hmac", h(Config{Keys: &KeysConfig{JWKS: jwks}}), "keys", 0, 0, "means nothing"},
		{"tolerance of none", Config{Scheme: SchemeNone, Tolerance: "5m"}, "tolerance", 0, 0, "means nothing"},

		{"key set to fetch", key(KeysConfig{JWKS: jwks}), "keys.jwks", 0, 0, "fetching key sets waits for the catalogue; give the keys in the file under keys: {published: ...}"},
		{"key set over http", key(KeysConfig{JWKS: "http://keys.example/"}), "keys.jwks", 0, 0, "https://"},
		{"certificate to fetch", key(KeysConfig{Certificate: `headers["X-Cert"]`}), "keys.certificate", 0, 0, "waits for the catalogue"},
		{"certificate", key(KeysConfig{Certificate: "headers[", Hosts: []string{".x"}}), "keys.certificate", 0, -1, ""},
		{"hosts alone", key(KeysConfig{Hosts: []string{".x"}, Published: "x"}), "keys.hosts", 0, 0, "belongs to certificate"},
		{"empty keys", key(KeysConfig{}), "keys", 0, 0, "keys is empty"},
		{"published is no key", key(KeysConfig{Published: `{"keys":[]}`}), "keys.published", 0, 0, "no key for signatures"},
		{"published of another kind", key(KeysConfig{Published: jwkText(t, "", mustSigningKey(t, SchemeECDSA).hold().private.Public())}), "keys.published", 0, 0, "none of the keys is for scheme ed25519"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, problems := Compile([]Config{tt.cfg}, testNames)
			if v != nil || len(problems) == 0 {
				t.Fatal("compiled")
			}
			for _, p := range problems {
				if p.Key == tt.key && p.Index == tt.index && (tt.offset < 0 || p.Offset == tt.offset) && strings.Contains(p.String(), tt.text) {
					return
				}
			}
			t.Errorf("problems %+v, want %s[%d]:%d %q", problems, tt.key, tt.index, tt.offset, tt.text)
		})
	}
}

// TestCompileAllAtOnce: one call reports the faults of every key of every entry.
func TestCompileAllAtOnce(t *testing.T) {
	_, problems := Compile([]Config{
		{Scheme: SchemeHMAC, Hash: "md5", Encoding: "b64", Signed: []string{"{timestamp}", "{x"}, Tolerance: "1"},
		{Scheme: "hmacc"},
		{Scheme: SchemeNone},
	}, testNames)
	want := map[string]bool{"0 hash": true, "0 encoding": true, "0 signed": true, "0 tolerance": true, "0 ": true, "1 scheme": true, "2 scheme": true}
	for _, p := range problems {
		delete(want, string(rune('0'+p.Entry))+" "+p.Key)
	}
	if len(want) > 0 {
		t.Errorf("not reported: %v, of %v", want, problems)
	}
}

func TestCompileEmpty(t *testing.T) {
	if v, problems := Compile(nil, testNames); v != nil || len(problems) != 1 || !strings.Contains(problems[0].String(), "scheme: none") {
		t.Errorf("%v, %v", v, problems)
	}
}

// TestCompileAccepts: what looks like a fault and is none.
func TestCompileAccepts(t *testing.T) {
	k := mustSigningKey(t, SchemeEd25519)
	set, err := k.JWKS()
	if err != nil {
		t.Fatal(err)
	}
	const jwks = "https://keys.example/"
	for name, c := range map[string]Config{
		"key set given":               {Scheme: SchemeEd25519, Header: "X", Keys: &KeysConfig{JWKS: jwks, Published: set}},
		"secrets given":               {Scheme: SchemeEd25519, Header: "X", Keys: &KeysConfig{JWKS: jwks}, SecretsGiven: true},
		"certificate, secrets given":  {Scheme: SchemeRSA, Header: "X", Keys: &KeysConfig{Certificate: `headers["X"]`, Hosts: []string{".x"}}, SecretsGiven: true},
		"keys of standard webhooks":   {Scheme: SchemeStandardWebhooks, Keys: &KeysConfig{Published: set}},
		"no tolerance, no time":       hmacConfig(Config{Tolerance: "0s"}),
		"tolerance of standard":       {Scheme: SchemeStandardWebhooks, Tolerance: "30m", Prefix: "svix-"},
		"brace in a text of an hole":  hmacConfig(Config{Signed: []string{`{"{"}{raw}`}}),
		"blank separator":             hmacConfig(Config{Separator: " "}),
		"none with a condition":       {Scheme: SchemeNone, Require: `query["a"] == "b"`},
		"a hole of the format":        hmacConfig(Config{Format: "{key}|{signature}", Signed: []string{"{key}{raw}"}}),
		"basic in another header":     {Scheme: SchemeBasic, Header: "X-Auth"},
		"one header among several":    {Scheme: SchemeHMAC, Header: "X-Sig-*"},
		"a format's hole before path": hmacConfig(Config{Format: "p={path};s={signature}", Separator: ";", Signed: []string{"{path}{raw}"}}),
	} {
		t.Run(name, func(t *testing.T) { mustCompile(t, c) })
	}
}

func TestCoversBody(t *testing.T) {
	signed := func(texts ...string) Config { return hmacConfig(Config{Signed: texts}) }
	tests := []struct {
		name string
		cfgs []Config
		want bool
	}{
		{"raw", []Config{hmacConfig(Config{})}, true},
		{"decoded", []Config{signed("{decoded}")}, true},
		{"hash of raw", []Config{signed("{sha256(raw)}")}, true},
		{"hash of raw within", []Config{signed(`{"x" + sha256(raw)}`)}, true},
		{"raw as an expression", []Config{signed("{ (raw) }")}, true},
		{"size of raw", []Config{signed("{size(raw)}")}, false},
		{"crc32 of raw", []Config{signed("{crc32(raw)}")}, false},
		{"hash of a member", []Config{signed("{sha256(body.id)}")}, false},
		{"a member", []Config{signed("{body.id}")}, false},
		{"address", []Config{signed("{url}")}, false},
		{"one alternative of two", []Config{signed("{raw}", "{url}")}, false},
		{"token", []Config{{Scheme: SchemeToken, Header: "X"}}, false},
		{"basic", []Config{{Scheme: SchemeBasic}}, false},
		{"none", []Config{{Scheme: SchemeNone}}, false},
		{"standard webhooks", []Config{{Scheme: SchemeStandardWebhooks}}, true},
		{"one entry of two", []Config{hmacConfig(Config{}), {Scheme: SchemeBasic}}, false},
		{"both", []Config{hmacConfig(Config{}), {Scheme: SchemeStandardWebhooks}}, true},
	}
	for _, tt := range tests {
		if got := mustCompile(t, tt.cfgs...).CoversBody(); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestCredentials(t *testing.T) {
	v := mustCompile(t,
		Config{Scheme: SchemeToken, Header: "x-token"}, Config{Scheme: SchemeBasic}, Config{Scheme: SchemeToken, Query: "token"},
		Config{Scheme: SchemeToken, Field: `headers["x-other"]`}, Config{Scheme: SchemeToken, Field: `query["t"]`},
		Config{Scheme: SchemeToken, Field: "body.token"}, hmacConfig(Config{}), Config{Scheme: SchemeToken, Header: "x-key-*"},
	)
	headers, query := v.Credentials()
	if got := strings.Join(headers, " ") + " | " + strings.Join(query, " "); got != "X-Token Authorization X-Other X-Key-* | token t" {
		t.Error(got)
	}
}

func TestSignsAddress(t *testing.T) {
	for text, want := range map[string]bool{"{raw}": false, "{url}{raw}": true, "{lower(url)}": true, "{path}{raw}": false} {
		v := mustCompile(t, Config{Scheme: SchemeBasic}, hmacConfig(Config{Signed: []string{text}}))
		if got := v.SignsAddress(); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
