package inbox_test

import (
	"crypto/tls"
	"errors"
	"math"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/storetest"
	"github.com/onceward/onceward/provider"
	"github.com/onceward/onceward/sqlite"
)

func TestIDsGrow(t *testing.T) {
	c := &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	m := inbox.NewIDMaker(c.Now, 1023)
	seen := map[int64]bool{}
	var last int64
	for i := range 30_000 {
		switch i {
		case 10_000:
			c.advance(-time.Hour) // the clock is set back
		case 20_000:
			c.advance(2 * time.Hour)
		}
		id := m.Next()
		if id <= last || seen[id] || id>>12&1023 != 1023 {
			t.Fatalf("id %d is %d after %d", i, id, last)
		}
		last, seen[id] = id, true
	}
	for _, at := range []time.Time{time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2069, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if id := inbox.NewIDMaker(func() time.Time { return at }, 0).Next(); id <= 0 || id == math.MaxInt64 {
			t.Errorf("at %v an id is %d", at, id)
		}
	}
}

func TestIDsOfManyGoroutinesDiffer(t *testing.T) {
	m := inbox.NewIDMaker(time.Now, 5)
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				id := m.Next()
				mu.Lock()
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 8000 {
		t.Errorf("%d ids of 8000 differ", len(seen))
	}
}

func TestAddresses(t *testing.T) {
	trusted := inbox.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}
	for _, test := range []struct {
		about, remote string
		header        []string // name, value, ...
		tls           bool
		client, url   string
	}{
		{"straight", "203.0.113.9:1234", nil, false, "203.0.113.9", "http://example.com/in/a%2Fb/?q=1"},
		{"straight, TLS", "203.0.113.9:1234", nil, true, "203.0.113.9", "https://example.com/in/a%2Fb/?q=1"},
		{"a stranger claims things", "203.0.113.9:1234", []string{"X-Forwarded-For", "1.1.1.1", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "evil.test"}, false, "203.0.113.9", "http://example.com/in/a%2Fb/?q=1"},
		{"one proxy", "10.0.0.1:1", []string{"X-Forwarded-For", "198.51.100.7", "X-Forwarded-Proto", "HTTPS", "X-Forwarded-Host", "hooks.test"}, false, "198.51.100.7", "https://hooks.test/in/a%2Fb/?q=1"},
		{"two proxies and a claim", "10.0.0.1:1", []string{"X-Forwarded-For", "1.1.1.1, 198.51.100.7, 10.0.0.2"}, false, "198.51.100.7", "http://example.com/in/a%2Fb/?q=1"},
		{"over two headers", "10.0.0.1:1", []string{"X-Forwarded-For", "1.1.1.1", "X-Forwarded-For", "198.51.100.7"}, false, "198.51.100.7", "http://example.com/in/a%2Fb/?q=1"},
		{"the nearest proxy's words count", "10.0.0.1:1", []string{"X-Forwarded-Proto", "http, https", "X-Forwarded-Host", "evil.test, hooks.test"}, false, "10.0.0.1", "https://hooks.test/in/a%2Fb/?q=1"},
		{"all trusted", "10.0.0.1:1", []string{"X-Forwarded-For", "10.0.0.3, 10.0.0.2"}, false, "10.0.0.3", "http://example.com/in/a%2Fb/?q=1"},
		{"nonsense", "10.0.0.1:1", []string{"X-Forwarded-For", "unknown"}, false, "10.0.0.1", "http://example.com/in/a%2Fb/?q=1"},
		{"with port and brackets", "[fd00::1]:443", []string{"X-Forwarded-For", "[2001:db8::7]:5000"}, false, "2001:db8::7", "http://example.com/in/a%2Fb/?q=1"},
		{"mapped", "[::ffff:10.0.0.1]:443", []string{"X-Forwarded-For", "::ffff:198.51.100.7"}, false, "198.51.100.7", "http://example.com/in/a%2Fb/?q=1"},
		{"a unix socket", "@", []string{"X-Forwarded-For", "198.51.100.7"}, false, "@", "http://example.com/in/a%2Fb/?q=1"},
	} {
		r := httptest.NewRequest("POST", "/in/a%2Fb/?q=1", nil)
		r.RemoteAddr = test.remote
		for i := 0; i < len(test.header); i += 2 {
			r.Header.Add(test.header[i], test.header[i+1])
		}
		if test.tls {
			r.TLS = &tls.ConnectionState{}
		}
		a := inbox.NewAddresses("", trusted)
		if got := inbox.AddressClient(a, r); got != test.client {
			t.Errorf("%s: client %s, want %s", test.about, got, test.client)
		}
		if got := inbox.AddressURL(a, r); got != test.url {
			t.Errorf("%s: URL %s, want %s", test.about, got, test.url)
		}
		if got := inbox.AddressURL(inbox.NewAddresses("https://public.test/x", trusted), r); got != "https://public.test/x/in/a%2Fb/?q=1" {
			t.Errorf("%s: with a public URL %s", test.about, got)
		}
	}
}

func TestASchemeThatSignsTheAddress(t *testing.T) {
	square := strings.Replace(shop, "header: X-Signature", `header: X-Signature, signed: "{url}{raw}"`, 1)
	w := newWorld(t, func(cfg *inbox.Config) {
		cfg.Sources["square"] = inbox.Source{Definition: []byte(square), Secrets: []string{secret}}
		cfg.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	})
	body := order("e1", "o1", "paid", "10:00:00")
	r := &provider.Request{Method: "POST", URL: "https://hooks.test/in/square/?x=1", Body: []byte(body)}
	if err := w.Provider("square").Sign(w.clock.Now(), r, ""); err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest("POST", "/in/square/?x=1", strings.NewReader(body))
	req.Header = r.Header
	req.Header.Set("X-Forwarded-Proto", "https")
	req.Header.Set("X-Forwarded-Host", "hooks.test")
	req.RemoteAddr = "203.0.113.9:1"
	if rec := w.serve(req.Clone(ctx)); rec.Code != 401 {
		t.Errorf("from a stranger: %d", rec.Code)
	}
	again := httptest.NewRequest("POST", "/in/square/?x=1", strings.NewReader(body))
	again.Header, again.RemoteAddr = req.Header, "10.1.2.3:1"
	if rec := w.serve(again); rec.Code != 200 {
		t.Errorf("through a trusted proxy: %d %s", rec.Code, rec.Body)
	}
}

func TestAllErrorsOfAConfigurationAtOnce(t *testing.T) {
	store, err := sqlite.Open(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	compiled, err := provider.Builtin("stripe")
	if err != nil {
		t.Fatal(err)
	}
	const marker = "do-not-print-this"
	_, err = inbox.New(store, inbox.Config{
		MaxBody: -1, PublicURL: "hooks.test", BatchEvents: -5,
		Sources: map[string]inbox.Source{
			"empty":    {Provider: "stripe", Secrets: []string{""}},
			"none":     {Provider: "stripe"},
			"blank":    {Provider: "stripe", Secrets: []string{" " + marker + " "}},
			"strpe":    {Provider: "strpe", Secrets: []string{marker}},
			"bad/name": {Provider: "stripe", Secrets: []string{marker}},
			"key":      {Definition: []byte("verfy: {scheme: none}\n"), Secrets: []string{marker}},
			"both":     {Provider: "stripe", Compiled: compiled},
			"path":     {Provider: "stripe", Secrets: []string{"whsec_x"}, Path: "hooks"},
			"a":        {Provider: "stripe", Secrets: []string{"whsec_x"}, Path: "/same"},
			"b":        {Provider: "stripe", Secrets: []string{"whsec_x"}, Path: "/same/"},
			"kinds":    {Provider: "stripe", Secrets: []string{"whsec_x"}, Kinds: []*onceward.Kind{{}}},
		},
	})
	if err == nil {
		t.Fatal("it is taken")
	}
	for _, want := range []string{
		"MaxBody", "PublicURL", "BatchEvents", "source empty:", "source none:", "source blank:", "source strpe:", "stripe",
		"source bad/name:", "source key:", "source both:", "source path:", "source b: its path /same is that of source a", "source kinds:",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %q:\n%v", want, err)
		}
	}
	notIn(t, "the error", err.Error(), marker)
	if _, err := inbox.New(store, inbox.Config{}); err == nil || !strings.Contains(err.Error(), "there is no source") {
		t.Errorf("without sources: %v", err)
	}
}

func TestNewOnAStoreThatIsDown(t *testing.T) {
	store, err := sqlite.Open(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	for _, method := range []string{"Node", "Register"} {
		if _, err := inbox.New(storetest.Faulty(store, storetest.Fault{Method: method}), config(t)); !errors.Is(err, onceward.ErrUnavailable) {
			t.Errorf("%s fails: %v", method, err)
		}
	}
	cfg := config(t)
	cfg.Rand = strings.NewReader("short")
	if _, err := inbox.New(store, cfg); err == nil {
		t.Error("it is content with too little randomness")
	}
}

func TestReading(t *testing.T) {
	w := newWorld(t, nil)
	w.ok("shop", order("e1", "o1", "paid", "10:00:00"))
	w.ok("shop", order("e2", "o1", "created", "09:00:00"))
	ref := onceward.Ref{Source: "shop", Kind: "order", Key: "o1"}
	history, err := w.History(ctx, ref)
	if err != nil || len(history) != 2 || history[0].Verdict != onceward.Applied || history[1].Verdict != onceward.Stale || history[1].Decided != "time" {
		t.Errorf("history %+v, %v", history, err)
	}
	if facts, err := w.EventFacts(ctx, history[1].EventID); err != nil || len(facts) != 1 || facts[0].Status != "created" {
		t.Errorf("the facts of an event: %+v, %v", facts, err)
	}
	if rows, err := w.Entities(ctx, onceward.EntityQuery{Source: "shop"}); err != nil || len(rows) != 1 {
		t.Errorf("rows: %v, %v", rows, err)
	}
	if _, err := w.Entity(ctx, onceward.Ref{Source: "shop", Kind: "order", Key: "o2"}); !errors.Is(err, onceward.ErrNotFound) {
		t.Errorf("a row that is not there: %v", err)
	}
	if _, err := w.Event(ctx, 42); !errors.Is(err, onceward.ErrNotFound) {
		t.Errorf("an event that is not there: %v", err)
	}
	if w.Kind("shop", "order") == nil || w.Kind("shop", "job") != nil || w.Kind("x", "order") != nil || w.Provider("x") != nil {
		t.Error("Kind or Provider")
	}
}
