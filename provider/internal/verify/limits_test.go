package verify

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/onceward/onceward/provider/internal/expr"
)

// TestLimitsOfADelivery tries each limit, and one over. The last thing tried is the
// right one, so that what is within the limit is accepted.
func TestLimitsOfADelivery(t *testing.T) {
	good, bad := mac("s", "body"), mac("x", "body")
	b64 := encodingBase64.encode(mustHex(t, mac("s", "a.1767225600.body")))
	one, star, standard := hmacConfig(Config{}), Config{Scheme: SchemeHMAC, Header: "X-S-*"}, Config{Scheme: SchemeStandardWebhooks}
	single := hmacConfig(Config{Separator: ";"})
	whid := []string{"webhook-id", "a", "webhook-timestamp", "1767225600"}
	tests := []struct {
		name    string
		cfg     Config
		limit   int
		headers func(n int) []string
	}{
		{"signatures in a value", one, maxSignatures, func(n int) []string {
			return []string{"X-Signature", strings.Repeat(bad+",", n-1) + good}
		}},
		{"lines of a header", one, maxValues, func(n int) (h []string) {
			for range n - 1 {
				h = append(h, "X-Signature", bad)
			}
			return append(h, "X-Signature", good)
		}},
		{"headers under a star", star, maxValues, func(n int) (h []string) {
			for i := range n - 1 {
				h = append(h, fmt.Sprintf("X-S-%02d", i), bad)
			}
			return append(h, "X-S-99", good)
		}},
		{"length of a value", single, maxValueBytes, func(n int) []string {
			return []string{"X-Signature", good + ";" + strings.Repeat("x", n-len(good)-1)}
		}},
		{"length of basic", Config{Scheme: SchemeBasic}, maxValueBytes, func(n int) []string {
			return []string{"Authorization", "Basic" + strings.Repeat(" ", n-len("Basicczo=")) + "czo="}
		}},
		{"signatures of standard webhooks", standard, maxSignatures, func(n int) []string {
			return append(whid, "webhook-signature", strings.Repeat("v1,AAAA ", n-1)+"v1,"+b64)
		}},
		{"lines of standard webhooks", standard, maxValues, func(n int) []string {
			h := whid
			for range n - 1 {
				h = append(h, "webhook-signature", "v9,x")
			}
			return append(h, "webhook-signature", "v1,"+b64)
		}},
		{"length of standard webhooks", standard, maxValueBytes, func(n int) []string {
			return append(whid, "webhook-signature", "v1,"+b64+" "+strings.Repeat("x", n-len(b64)-4))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := mustCompile(t, tt.cfg)
			secret := "s"
			if tt.cfg.Scheme == SchemeBasic {
				secret = "s:"
			}
			if got := verdict(t, v, newRequest("body", tt.headers(tt.limit)...), secret); got != "" {
				t.Errorf("%d: %q", tt.limit, got)
			}
			if got := verdict(t, v, newRequest("body", tt.headers(tt.limit+1)...), secret); got != ReasonMalformed {
				t.Errorf("%d: %q, want %q", tt.limit+1, got, ReasonMalformed)
			}
		})
	}
}

func TestLimitOfItems(t *testing.T) {
	v := mustCompile(t, Config{Scheme: SchemeHMAC, Field: "item.s", Signed: []string{"{item.a}"}})
	secrets := mustSecrets(t, v, "s")
	for n, want := range map[int]Reason{maxItems: "", maxItems + 1: ReasonMalformed} {
		r := newRequest(`{"a":"x","s":"` + mac("s", "x") + `"}`)
		in := newInput(r)
		r.Items = func() ([]expr.Input, error) {
			items := make([]expr.Input, n)
			for i := range items {
				items[i] = in
			}
			return items, nil
		}
		if _, err := v.Verify(testTime, r, in, secrets); reasonOf(t, err) != want {
			t.Errorf("%d items: %v, want %q", n, err, want)
		}
	}
}

// TestBudget: what one delivery makes the verifier hash, and how many public-key
// operations it asks for, is bounded.
func TestBudget(t *testing.T) {
	body := bytes.Repeat([]byte("x"), 1<<18)
	items := func(n int, in expr.Input) func() ([]expr.Input, error) {
		return func() ([]expr.Input, error) { return slicesRepeat(in, n), nil }
	}
	for name, c := range map[string]Config{
		"body in `signed`":             {Signed: []string{"{type}{raw}"}},
		"hash of the body in `signed`": {Signed: []string{"{type}{sha256(raw)}"}},
		"body in `timestamp`":          {Signed: []string{"{type}{body.x}"}, Timestamp: "first(size(raw) > 0 ? 1767225600 : 0, type)"},
		"body in `require`":            {Signed: []string{"{url}"}, Require: `sha256(raw) != type`},
	} {
		t.Run(name, func(t *testing.T) {
			v, problems := Compile([]Config{hmacConfig(c)}, testNames.With("type"))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			secrets := mustSecrets(t, v, "s")
			for n, want := range map[int]Reason{2: "", 3 * maxPasses: ReasonMalformed} {
				r := newRequest(string(body))
				in := newInput(r)
				signed := map[string]string{"{type}{raw}": string(body), "{type}{sha256(raw)}": fmt.Sprintf("%x", sum256(string(body))), "{url}": r.URL}
				r.Header.Set("X-Signature", mac("s", signed[c.Signed[0]]))
				r.Items = items(n, in)
				if _, err := v.Verify(testTime, r, in, secrets); reasonOf(t, err) != want {
					t.Errorf("%d items: %v, want %q", n, err, want)
				}
			}
		})
	}
	t.Run("public keys", func(t *testing.T) {
		v := mustCompile(t, Config{Scheme: SchemeEd25519, Header: "X", Signed: []string{"{raw}", "{url}", "{method}"}})
		public, err := mustSigningKey(t, SchemeEd25519).PublicText(SchemeEd25519)
		if err != nil {
			t.Fatal(err)
		}
		one := mustSecrets(t, v, public)[0]
		signatures := strings.TrimSuffix(strings.Repeat(strings.Repeat("00", 64)+",", maxSignatures), ",")
		// 16 signatures and 2 forms of the address: 4 tries for each key and signature.
		for n, want := range map[int]Reason{maxPublicKeyChecks / maxSignatures / 4: ReasonDiffers, maxPublicKeyChecks/maxSignatures/4 + 1: ReasonMalformed} {
			r := newRequest("body", "X", signatures)
			if _, err := v.Verify(testTime, r, newInput(r), slicesRepeat(one, n)); reasonOf(t, err) != want {
				t.Errorf("%d keys: %v, want %q", n, err, want)
			}
		}
	})
}

func slicesRepeat[T any](x T, n int) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = x
	}
	return all
}

// TestOncePerDelivery: what is the same for every signature is computed once.
func TestOncePerDelivery(t *testing.T) {
	v := mustCompile(t, hmacConfig(Config{Format: "{kid}.{signature}", Signed: []string{"{kid}{sha256(raw)}", "{sha256(raw)}{decoded}", "{decoded}"}}))
	value := ""
	for i := range maxSignatures {
		value += fmt.Sprintf("k%d.00,", i)
	}
	r := newRequest("body", "X-Signature", value)
	in := newInput(r)
	if _, err := v.Verify(testTime, r, in, mustSecrets(t, v, "s")); reasonOf(t, err) != ReasonDiffers {
		t.Error(err)
	}
	if alternatives := 2; in.asked["raw"] != alternatives {
		t.Errorf("the body was hashed %d times", in.asked["raw"])
	}
	c := &call{r: newRequest(string(encode(t, "gzip", []byte("body"))), "Content-Encoding", "gzip"), budget: newBudget(0)}
	first, rej := c.decodedBody()
	left := c.budget.bytes
	second, _ := c.decodedBody()
	if rej != nil || &first[0] != &second[0] || c.budget.bytes != left {
		t.Error("the body was decoded twice")
	}
}

// TestDecodedBudget: a small body that decodes to a large one can still be verified
// with a few secrets.
func TestDecodedBudget(t *testing.T) {
	v := mustCompile(t, hmacConfig(Config{Signed: []string{"{decoded}"}}))
	large := make([]byte, minDecodedBytes)
	r := newRequest(string(encode(t, "gzip", large)), "Content-Encoding", "gzip", "X-Signature", mac("s", string(large)))
	if got := verdict(t, v, r, "a", "b", "c", "s"); got != "" {
		t.Error(got)
	}
}
