package provider_test

import (
	"strings"
	"testing"

	"github.com/onceward/onceward/provider"
)

// TestNoErrorShowsASecret writes secrets in plain text where references belong, in
// YAML that is right and in YAML that is not, and beside faults of every kind.
func TestNoErrorShowsASecret(t *testing.T) {
	values := []string{
		"secrets: [!s3cr3t]", "secrets: [!!s3cr3t x]", "secrets: [*s3cr3t]", "secrets: [&s3cr3t]", "secrets: [&a s3cr3t]", "secrets: s3cr3t: x",
		"secrets: [s3cr3t]", "secrets: s3cr3t", "secrets:\n  - s3cr3t", "secrets:\n- s3cr3t\n- [s3cr3t]: s3cr3t", "secrets: [$A, s3cr3t]",
		"secrets: [f(s3cr3t, x]", "secrets: [\"s3cr3t\n\n  s3cr3t\", x: y: z]", "secrets: [\n  s3cr3t,\n  s3cr3t: s3cr3t: x]", "secrets: |\n  s3cr3t\n  s3cr3t",
		"secrets: {s3cr3t: 1, s3cr3t: 2}", "secrets: {s3cr3t: {s3cr3t: !x s3cr3t}}", "secrets: @s3cr3t", "secrets: `s3cr3t", "secrets: 's3cr3t", "secrets: \"s3cr3t",
		"'secrets': [s3cr3t]", "\"secrets\": [!s3cr3t]", "params: {user_id: s3cr3t}", "params: {s3cr3t: s3cr3t: x}", "params:\n  user_id: !s3cr3t", "params: [s3cr3t]",
		"params: {user_id: {about: x, required: s3cr3t}}", "token: s3cr3t", "admin: {token: !s3cr3t x}", "secrets: [\"s\\x33cr3t\"]",
	}
	faults := []string{"", "event: {kee: x}\n", "event: {key: [f(a, b]}\n", "event: *x\n", "\tevent: x\n"}
	hides := func(t *testing.T, where, text string, err error) {
		t.Helper()
		if err == nil {
			return // some are no fault here: a source's secrets are read elsewhere
		}
		if strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), `s\x33cr3t`) {
			t.Errorf("%s, of\n%s\nshows the secret:\n%v", where, text, err)
		}
	}
	for _, value := range values {
		for _, fault := range faults {
			for _, text := range []string{value + "\n" + fault, fault + value + "\n"} {
				whole := "verify: {scheme: none}\n" + text
				_, err := provider.Parse("acme", []byte(whole), provider.Options{})
				hides(t, "Parse", whole, err)
				if err == nil && !strings.HasPrefix(value, "params") {
					t.Errorf("Parse accepts\n%s", whole)
				}
				_, err = provider.Compile(provider.SourceConfig{Name: "s", Provider: "./acme.yaml", ReadFile: files(map[string]string{"acme.yaml": whole})})
				hides(t, "a file below", whole, err)
				source := "sources:\n  s:\n    verify: {scheme: none}\n    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
				_, err = provider.Compile(provider.SourceConfig{Name: "s", File: "onceward.yaml", Text: []byte(source), At: []string{"sources", "s"}})
				hides(t, "a source", source, err)
			}
		}
	}
}

// TestASecretWrittenTwice hides a secret where it stands a second time, in a place
// that is none for secrets.
func TestASecretWrittenTwice(t *testing.T) {
	text := "verify: {scheme: none}\nsecrets: [s3cr3t]\nevent: {key: s3cr3t}\n"
	if _, err := provider.Parse("acme", []byte(text), provider.Options{}); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("%v", err)
	}
}

// TestReferencesAreShown keeps the snippets of lines that hold references only.
func TestReferencesAreShown(t *testing.T) {
	for _, line := range []string{"secrets: [$ACME_SECRET, file:acme.pem]", "secrets: $ACME_SECRET   # it's the old one", "params: {tenant: {required: true, about: your tenant}, tenant: {}}"} {
		_, err := provider.Parse("acme", []byte("verify: {scheme: none}\n"+line+"\n"), provider.Options{})
		if err == nil || !strings.Contains(err.Error(), "    "+line+"\n") {
			t.Errorf("%v, want the line %s to be shown", err, line)
		}
	}
}
