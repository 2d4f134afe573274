package instance

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "whsec_of_the_instance"

func testConfig(t *testing.T) Config {
	t.Helper()
	return Config{
		Store: "sqlite:" + filepath.Join(t.TempDir(), "x.db"), Listen: "127.0.0.1:0", Admin: "127.0.0.1:0",
		Sources: map[string]inbox.Source{"stripe": {Provider: "stripe", Secrets: []string{secret}}},
		Log:     slog.New(slog.DiscardHandler), Now: time.Now, Random: rand.Reader,
	}
}

// TestRun takes a delivery in, ends, and finds it in the store.
func TestRun(t *testing.T) {
	cfg := testConfig(t)
	i, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	body := `{"id":"evt_1","type":"payment_intent.created","created":1767225600}`
	mac := hmac.New(sha256.New, []byte(secret))
	now := time.Now().Unix()
	fmt.Fprintf(mac, "%d.%s", now, body)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.Inbox()+"/in/stripe", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Stripe-Signature", fmt.Sprintf("t=%d,v1=%x", now, mac.Sum(nil)))
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || err != nil {
		t.Errorf("answered %d %s, %v", resp.StatusCode, body, err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	health, err := client.Get(i.Admin() + "/healthz")
	if err != nil || health.StatusCode != http.StatusOK {
		t.Errorf("healthz: %v, %v", health, err)
	}
	if err := health.Body.Close(); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	store, err := OpenStore(t.Context(), cfg.Store, Read)
	if err != nil {
		t.Fatal(err)
	}
	events, err := store.Events(t.Context(), onceward.EventQuery{})
	if err != nil || len(events) != 1 {
		t.Errorf("%d events, %v", len(events), err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// TestStartFails in every way that a person can cause; nothing stays open.
func TestStartFails(t *testing.T) {
	taken, err := Start(t.Context(), testConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := taken.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	inUse := strings.TrimPrefix(taken.Inbox(), "http://")
	for _, c := range []struct {
		name, says string
		change     func(*Config)
	}{
		{"the address is in use", "is in use, perhaps by another onceward; choose another with --listen", func(c *Config) { c.Listen = inUse }},
		{"the admin address is in use", "choose another with --admin", func(c *Config) { c.Admin = inUse }},
		{"no such address", "listen on 192.0.2.1:1", func(c *Config) { c.Listen = "192.0.2.1:1" }},
		{"no such folder", "open the store", func(c *Config) { c.Store = "sqlite:" + filepath.Join(t.TempDir(), "missing", "x.db") }},
		{"no such source", "strpie", func(c *Config) { c.Sources["x"] = inbox.Source{Provider: "strpie", Secrets: []string{"s"}} }},
	} {
		cfg := testConfig(t)
		c.change(&cfg)
		i, err := Start(t.Context(), cfg)
		if err == nil || i != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q in it", c.name, err, c.says)
		}
	}
}

func TestReadWantsAStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if _, err := OpenStore(t.Context(), "sqlite:"+path, Read); !errors.Is(err, ErrNoStore) {
		t.Errorf("got %v, want ErrNoStore", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("reading made a file")
	}
	if _, err := OpenStore(t.Context(), "postgres://nobody:value-of-password@127.0.0.1:1/none", Read); err == nil || strings.Contains(err.Error(), "value-of-password") {
		t.Errorf("got %v", err)
	}
}

func TestDescribe(t *testing.T) {
	for in, want := range map[string]string{"sqlite:onceward.db": "./onceward.db", "sqlite:/x/y.db": "/x/y.db", "postgres://u:pw@h/d": "PostgreSQL"} {
		if got := Describe(in); got != want {
			t.Errorf("Describe(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMigrations(t *testing.T) {
	for _, url := range []string{"sqlite:x.db", "postgres://x/y"} {
		steps, err := Migrations(url)
		if err != nil || len(steps) == 0 || !strings.Contains(steps[0].SQL, "create table") {
			t.Errorf("%s: %d steps, %v", url, len(steps), err)
		}
	}
}
