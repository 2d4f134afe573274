package config

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/provider"
)

var update = flag.Bool("update", false, "write the golden files")

// testWorld has the variables and files that the test files refer to.
func testWorld() World {
	variables := map[string]string{
		"STRIPE_SECRET": "whsec_value_of_stripe", "ACME_SECRET": "value of acme", "ADMIN_TOKEN": "value-of-token",
		"DATABASE_URL": "postgres://user:value-of-password@db/onceward", "PADDED": "value-of-padded ", "EMPTY": "",
	}
	files := map[string]string{filepath.Join("testdata", "old.secret"): "whsec_value_of_file\r\n"}
	return World{
		Getenv: func(name string) (string, bool) { v, ok := variables[name]; return v, ok },
		ReadFile: func(path string) ([]byte, error) {
			if text, ok := files[path]; ok {
				return []byte(text), nil
			}
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		},
	}
}

func readTest(t *testing.T, name string, read func(string, []byte, World) (*Config, error)) (*Config, error) {
	t.Helper()
	file := filepath.Join("testdata", name)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return read(file, text, testWorld())
}

func TestRead(t *testing.T) {
	c, err := readTest(t, "good.yaml", Read)
	if err != nil {
		t.Fatal(err)
	}
	if c.Store != "postgres://user:value-of-password@db/onceward" || c.StoreFrom != "$DATABASE_URL" {
		t.Errorf("store %q from %q", c.Store, c.StoreFrom)
	}
	if c.Listen != "0.0.0.0:9000" || c.PublicURL != "https://hooks.example.com" || c.Admin != (Admin{"127.0.0.1:9001", "value-of-token", "$ADMIN_TOKEN"}) {
		t.Errorf("listen %q, public_url %q, admin %+v", c.Listen, c.PublicURL, c.Admin)
	}
	if got := fmt.Sprint(c.TrustedProxies); got != "[10.0.0.0/8 192.0.2.1/32]" {
		t.Errorf("trusted_proxies %s", got)
	}
	shop, acme := c.Source("shop"), c.Source("acme")
	if shop == nil || acme == nil || c.Source("other") != nil || len(c.Sources) != 2 {
		t.Fatalf("sources %+v", c.Sources)
	}
	if shop.Path != "/webhooks/stripe" || shop.MaxBody != 64<<10 || acme.Path != "/in/acme" || acme.MaxBody != DefaultMaxBody {
		t.Errorf("paths %q %q, sizes %d %d", shop.Path, acme.Path, shop.MaxBody, acme.MaxBody)
	}
	if d := cmp.Diff([]string{"whsec_value_of_stripe", "whsec_value_of_file"}, shop.Secrets); d != "" {
		t.Error(d)
	}
	builtin, err := provider.Builtin("stripe")
	if err != nil {
		t.Fatal(err)
	}
	if shop.Provider.Hash() == builtin.Hash() {
		t.Error("facts.plan: none took nothing away")
	}
	if acme.Provider.Kinds()["order"] == nil {
		t.Error("the kind that acme describes is missing")
	}
}

// TestFaults compares every message, with its place and caret, to a golden file,
// and none may hold a value.
func TestFaults(t *testing.T) {
	_, err := readTest(t, "bad.yaml", Read)
	var all *provider.Errors
	if !errors.As(err, &all) {
		t.Fatalf("got %v, want *provider.Errors", err)
	}
	golden(t, "bad.want", []byte(err.Error()+"\n"))
	for _, value := range []string{"hunter2", "whsec_typed", "value-of", "value of", "whsec_value"} {
		if strings.Contains(err.Error(), value) {
			t.Errorf("a message shows %q", value)
		}
	}
	if !slices.IsSortedFunc(all.Problems, func(a, b provider.Problem) int { return a.Line - b.Line }) {
		t.Error("the faults are not in the order of the file")
	}
}

func TestFaultsOfOne(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"not YAML", "sources: [", "x.yaml:2:1: this is not YAML"},
		{"a list", "- a", "x.yaml:1:1: x.yaml is a map; this is a list"},
		{"source without secrets", "sources:\n  a: {provider: stripe}", "x.yaml:2:3:"},
		{"source that is a text", "sources:\n  a: stripe", "source a is a map"},
		{"verify none needs no secret but a word", "sources:\n  a: {event: {key: body.id}}", "verify is missing"},
		{"password in the store", "store: mysql://user:pw@host/db", "this is no store"},
		{"token under a map", "admin: {token: {a: b}}", "admin.token is a reference, $NAME or file:PATH; this is a map"},
		{"secret params", "sources:\n  a:\n    verify: {scheme: none}\n    params: {t: plain}\n    params: {}", "stands twice"},
	} {
		_, err := Read("x.yaml", []byte(c.text), testWorld())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q in it", c.name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "user:pw") {
			t.Errorf("%s: the message shows the password", c.name)
		}
	}
}

func TestSecretParamIsAReference(t *testing.T) {
	const file = "sources:\n  a:\n    verify: {scheme: none}\n    event: {key: body.id}\n    challenge: {method: GET, when: 'same(query[\"t\"], params.t)', text: 'query[\"c\"]'}\n"
	_, err := Read("x.yaml", []byte(file+"    params: {t: typed-here}"), testWorld())
	if err != nil {
		t.Fatalf("a param that is no secret was refused: %v", err)
	}
	text := []byte("params: {t: {secret: true}}\nverify: {scheme: none}\nevent: {key: body.id}\nchallenge: {method: GET, when: 'same(query[\"t\"], params.t)', text: 'query[\"c\"]'}\n")
	w := testWorld()
	w.ReadFile = func(string) ([]byte, error) { return text, nil }
	_, err = Read("x.yaml", []byte("sources:\n  a: {provider: ./acme.yaml, params: {t: typed-here}}"), w)
	if err == nil || !strings.Contains(err.Error(), "param t is a secret") || strings.Contains(err.Error(), "typed-here") {
		t.Errorf("got %v", err)
	}
	_, err = Read("x.yaml", []byte("sources:\n  a: {provider: ./acme.yaml, params: {t: $ACME_SECRET}}"), w)
	if err != nil {
		t.Error(err)
	}
}

// TestGlance reads a configuration whose secrets are not to be had here.
func TestGlance(t *testing.T) {
	text := "store: sqlite:x.db\nadmin: {token: $UNSET}\nsources:\n  shop: {provider: stripe, secrets: [$UNSET], facts: {plan: none}}\n"
	if _, err := Read("x.yaml", []byte(text), testWorld()); err == nil {
		t.Fatal("Read wants every secret")
	}
	c, err := Glance("x.yaml", []byte(text), testWorld())
	if err != nil {
		t.Fatal(err)
	}
	shop := c.Source("shop")
	if shop == nil || shop.Provider.Name() != "stripe" || shop.Provider.Kinds()["payment"] == nil {
		t.Errorf("source %+v", shop)
	}
	whole, err := readTest(t, "good.yaml", Read)
	if err != nil {
		t.Fatal(err)
	}
	glanced, err := readTest(t, "good.yaml", Glance)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range whole.Sources {
		if got := glanced.Source(s.Name).Provider.Hash(); got != s.Provider.Hash() {
			t.Errorf("source %s is read by another mapping at a glance", s.Name)
		}
	}
}

func TestPrint(t *testing.T) {
	c, err := readTest(t, "good.yaml", Read)
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.Print()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "good.print", text)
	again, err := Read(filepath.Join("testdata", "good.print"), text, testWorld())
	if err != nil {
		t.Fatalf("what is printed cannot be read: %v", err)
	}
	for i, s := range again.Sources {
		if s.Provider.Hash() != c.Sources[i].Provider.Hash() || s.Path != c.Sources[i].Path || s.MaxBody != c.Sources[i].MaxBody {
			t.Errorf("source %s is another one when it is printed", s.Name)
		}
	}
	if strings.Contains(string(text), "value") {
		t.Error("the print shows a value")
	}
}

func TestPrintMasksAPassword(t *testing.T) {
	c, err := Read("x.yaml", []byte("store: postgres://user:pw-typed-here@db/onceward"), testWorld())
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.Print()
	if err != nil || strings.Contains(string(text), "pw-typed-here") || !strings.Contains(string(text), "user:xxxxx@db") {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestInitialCanBeRead(t *testing.T) {
	names := provider.Catalog()
	text, variables := Initial(DefaultStore, []string{"stripe", "kiwify"}, func(s string) string { return strings.ToUpper(s) + "_SECRET" })
	if len(names) < 2 || !slices.Equal(variables, []string{"STRIPE_SECRET", "KIWIFY_SECRET"}) {
		t.Errorf("variables %q", variables)
	}
	w := testWorld()
	w.Getenv = func(string) (string, bool) { return "whsec_value", true }
	c, err := Read("x.yaml", []byte(text), w)
	if err != nil {
		t.Fatal(err)
	}
	if c.Store != DefaultStore || c.Listen != DefaultListen || c.Admin.Listen != DefaultAdmin || len(c.Sources) != 2 {
		t.Errorf("got %+v", c)
	}
	text, variables = Initial("postgres://user:pw@db/x", nil, nil)
	if strings.Contains(text, "pw") || !slices.Equal(variables, []string{"DATABASE_URL"}) {
		t.Errorf("got %q, %q", text, variables)
	}
}

// TestSchema keeps the schema, and holds its keys against those that the readers
// know.
func TestSchema(t *testing.T) {
	golden(t, "schema.json", Schema())
	var doc struct {
		Properties map[string]json.RawMessage
		Defs       map[string]struct{ Properties map[string]json.RawMessage } `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, k := range Keys() {
		if doc.Properties[k.Name] == nil {
			t.Errorf("the schema has no %s", k.Name)
		}
	}
	source := doc.Defs["source"].Properties
	for _, k := range SourceKeys() {
		if source[k.Name] == nil {
			t.Errorf("the schema has no sources.*.%s", k.Name)
		}
	}
	_, err := provider.Parse("x", []byte("no-such-key: 1\nverify: {no-such-key: 1}"), provider.Options{})
	for _, c := range []struct{ in, def string }{{"a provider file", "source"}, {"verify", "verify"}} {
		m := regexp.MustCompile(`"no-such-key" in ` + c.in + `[^;]*; the keys are (.*)`).FindStringSubmatch(fmt.Sprint(err))
		if m == nil {
			t.Fatalf("the language names no keys of %s: %v", c.in, err)
		}
		for key := range strings.SplitSeq(m[1], ", ") {
			if doc.Defs[c.def].Properties[key] == nil {
				t.Errorf("the schema has no key %s of %s", key, c.in)
			}
		}
	}
}

func TestIsProviderFile(t *testing.T) {
	for text, want := range map[string]bool{
		"verify: {scheme: none}\nevent: {key: body.id}": true,
		"provider: stripe\nfacts: {}":                   true,
		"sources: {}":                                   false,
		"store: sqlite:x\nverify: {}":                   false,
		"":                                              false,
		"[":                                             false,
	} {
		if got := IsProviderFile([]byte(text)); got != want {
			t.Errorf("IsProviderFile(%q) = %t", text, got)
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s differs; if that is meant, run the test with -update:\n%s", file, d)
	}
}

func TestCheckSecret(t *testing.T) {
	for value, fits := range map[string]bool{
		"whsec_1": true, "two words": true, "-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----": true, "{\n\"keys\": []}": true,
		" whsec_1": false, "whsec_1\n": false, "whsec_1\nwhsec_2": false, "whsec_1\r\nwhsec_2": false,
	} {
		err := CheckSecret(value)
		if (err == nil) != fits {
			t.Errorf("CheckSecret(%q) = %v, want it to fit: %t", value, err, fits)
		}
		if err != nil && strings.Contains(err.Error(), "whsec") {
			t.Errorf("the error holds the secret: %v", err)
		}
	}
}
