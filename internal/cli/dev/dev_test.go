package dev

import (
	"crypto/rand"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/provider"
)

// TestEveryProvider makes up a secret for each provider of the catalogue, signs with
// it, and wants the source to accept that and nothing signed with another.
func TestEveryProvider(t *testing.T) {
	path, other := filepath.Join(t.TempDir(), File), filepath.Join(t.TempDir(), File)
	mine, err := Ensure(path, provider.Catalog(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := Ensure(other, provider.Catalog(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range provider.Catalog() {
		p, err := mine.Source(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body := []byte(`{"id":"x","data":{"task_id":"t"}}`)
		for _, signing := range []string{mine[name].Signing, theirs[name].Signing} {
			r := &provider.Request{Method: http.MethodPost, URL: "http://127.0.0.1:8080/in/" + name, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
			now := time.Now()
			if err := p.Sign(now, r, signing); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			_, err := p.Verify(now, r)
			if accepted := err == nil; accepted != (signing == mine[name].Signing) {
				t.Errorf("%s: accepted %t, %v", name, accepted, err)
			}
		}
	}
}

func TestEnsureKeepsWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), File)
	first, err := Ensure(path, []string{"stripe"}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Ensure(path, []string{"stripe", "kiwify"}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if first["stripe"].Signing != second["stripe"].Signing || second["kiwify"].Signing == "" {
		t.Errorf("first %v, second %v", first, second)
	}
	loaded, err := Load(path)
	if err != nil || loaded["kiwify"].Signing != second["kiwify"].Signing {
		t.Errorf("loaded %v, %v", loaded, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file may be read by others: %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files are left, %v", len(entries), err)
	}
}

func TestAFurtherSecretIsLive(t *testing.T) {
	secrets, err := Ensure(filepath.Join(t.TempDir(), File), []string{"stripe"}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p, err := secrets.Source("stripe", "whsec_from_the_environment")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	r := &provider.Request{Method: http.MethodPost, URL: "http://x", Body: []byte("{}")}
	if err := p.Sign(now, r, "whsec_from_the_environment"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Verify(now, r); err != nil {
		t.Error(err)
	}
}

func TestDamagedAndMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), File)
	if s, err := Load(path); err != nil || len(s) != 0 {
		t.Errorf("a missing file gives %v, %v", s, err)
	}
	if _, err := (Secrets{}).Source("stripe"); err == nil || !strings.Contains(err.Error(), "onceward serve") {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("got %v", err)
	}
	if _, err := Ensure(filepath.Join(t.TempDir(), "missing", File), []string{"stripe"}, rand.Reader); err == nil {
		t.Error("it was written into a folder that is not there")
	}
	if _, err := Ensure(filepath.Join(t.TempDir(), File), []string{"stripe"}, brokenReader{}); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

var errBroken = errors.New("no randomness")

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

func TestPathFor(t *testing.T) {
	for in, want := range map[string]string{
		"sqlite:onceward.db": File, "sqlite:" + filepath.Join("a", "b.db"): filepath.Join("a", File), "postgres://x/y": File,
	} {
		if got := PathFor(in); got != want {
			t.Errorf("PathFor(%q) = %q, want %q", in, got, want)
		}
	}
}
