// Package inboxtest is an inbox for tests of programs that use one: the real
// engine on SQLite in memory, without network, goroutines to wait for, or a clock
// that moves by itself. Deliveries are the catalogue's samples, rightly signed.
//
// The headline is [Inbox.EveryOrder]: it plays the life cycle of a payment, a job
// or a subscription in every order in which it could arrive, each event twice, and
// asks whether everything ends the same.
package inboxtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/provider"
	"github.com/onceward/onceward/sqlite"
)

// publicURL is the address of the inbox as its senders know it.
const publicURL = "https://inbox.test"

// Inbox is an inbox under test. Its methods end the test when something other than
// the code under test is wrong. It is to be used by the test's own goroutine.
type Inbox struct {
	// Orders is the most orders that EveryOrder plays; 0 means 720. Up to that many
	// all are played, beyond it so many are drawn.
	Orders int
	// Seed is where EveryOrder begins to draw; a failure prints it.
	Seed uint64

	t        testing.TB
	cfg      inbox.Config
	signing  map[string]string // maps a source to what its sender signs with
	handlers []registered

	clock clock
	store *sqlite.Store
	inbox *inbox.Inbox
}

type registered struct {
	pattern string
	run     inbox.HandlerFunc
}

// clock stands still unless it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// New makes an inbox with a source for each provider of the catalogue, of the same
// name and with a secret of its own. It is closed when the test ends.
func New(t testing.TB, providers ...string) *Inbox {
	t.Helper()
	cfg := inbox.Config{Sources: map[string]inbox.Source{}}
	for _, name := range providers {
		cfg.Sources[name] = inbox.Source{Provider: name}
	}
	return NewConfig(t, cfg)
}

// NewConfig makes an inbox with sources of one's own. A source without Secrets is
// given one; Now and PublicURL are the test's, and Rand and Logger too unless they
// are set.
func NewConfig(t testing.TB, cfg inbox.Config) *Inbox {
	t.Helper()
	in := &Inbox{t: t, cfg: cfg, signing: map[string]string{}}
	in.cfg.PublicURL, in.cfg.Now = publicURL, in.clock.Now
	if in.cfg.Logger == nil {
		in.cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	in.cfg.Sources = map[string]inbox.Source{}
	random := newRandom(1)
	for name, s := range cfg.Sources {
		in.cfg.Sources[name] = in.compile(name, s, random)
	}
	in.open()
	t.Cleanup(in.close)
	return in
}

// compile gives a source its secret and compiles it, once for all orders.
func (in *Inbox) compile(name string, s inbox.Source, random *random) inbox.Source {
	in.t.Helper()
	if s.Compiled != nil {
		return s
	}
	cfg := provider.SourceConfig{Name: name, Provider: s.Provider, Secrets: s.Secrets, Params: s.Params, Text: s.Definition, File: name + ".yaml"}
	if len(cfg.Secrets) == 0 {
		secret, err := in.secret(cfg, random)
		if err != nil {
			in.t.Fatalf("inboxtest: source %s: %v; give it Secrets", name, err)
		}
		cfg.Secrets = []string{secret.Listed}
		in.signing[name] = secret.Signing
	}
	p, err := provider.Compile(cfg)
	if err != nil {
		in.t.Fatalf("inboxtest: source %s: %v", name, err)
	}
	s.Compiled, s.Provider, s.Secrets, s.Params, s.Definition = p, "", nil, nil, nil
	return s
}

func (in *Inbox) secret(cfg provider.SourceConfig, random *random) (provider.Secret, error) {
	var p *provider.Provider
	var err error
	if len(cfg.Text) > 0 {
		p, err = provider.Parse(cfg.Name, cfg.Text, provider.Options{Params: cfg.Params})
	} else {
		p, err = provider.Builtin(cfg.Provider)
	}
	if err != nil {
		return provider.Secret{}, err
	}
	return p.GenerateSecret(random)
}

// random is a reader of bytes that are the same in each run.
type random struct {
	mu  sync.Mutex
	src *rand.ChaCha8
}

func newRandom(seed uint64) *random {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return &random{src: rand.NewChaCha8(key)}
}

func (r *random) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.Read(p)
}

// open starts an inbox on an empty store.
func (in *Inbox) open() {
	in.t.Helper()
	in.clock.mu.Lock()
	in.clock.now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in.clock.mu.Unlock()
	cfg := in.cfg
	if cfg.Rand == nil {
		cfg.Rand = newRandom(2)
	}
	store, err := sqlite.Open(":memory:")
	if err != nil {
		in.t.Fatalf("inboxtest: open a store: %v", err)
	}
	in.store = store
	if in.inbox, err = inbox.New(store, cfg); err != nil {
		in.t.Fatalf("inboxtest: %v", err)
	}
	for _, h := range in.handlers {
		in.inbox.Handle(h.pattern, h.run)
	}
}

func (in *Inbox) close() {
	if in.inbox != nil {
		if err := in.inbox.Close(context.Background()); err != nil {
			in.t.Errorf("inboxtest: %v", err)
		}
	}
	if in.store != nil {
		if err := in.store.Close(); err != nil {
			in.t.Errorf("inboxtest: close the store: %v", err)
		}
	}
	in.inbox, in.store = nil, nil
}

// Inbox returns the engine itself, for what this package does not offer. EveryOrder
// replaces it.
func (in *Inbox) Inbox() *inbox.Inbox { return in.inbox }

// Handle registers a handler as [inbox.Inbox.Handle] does. Its jobs are done by Work.
func (in *Inbox) Handle(pattern string, fn inbox.HandlerFunc) {
	in.t.Helper()
	in.inbox.Handle(pattern, fn)
	in.handlers = append(in.handlers, registered{pattern, fn})
}

// Advance moves the clock.
func (in *Inbox) Advance(d time.Duration) { in.clock.advance(d) }

// Work does the jobs that are due, on this goroutine, and returns how many attempts
// were made. One that failed is due again only after Advance.
func (in *Inbox) Work() int {
	in.t.Helper()
	n, err := in.inbox.Work(context.Background())
	if err != nil {
		in.t.Fatalf("inboxtest: work: %v", err)
	}
	return n
}

// Answer is what a sender was answered.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Deliver signs a body as the source's sender would and delivers it. Header holds
// what else the sender sends; nil is as good.
func (in *Inbox) Deliver(source string, header http.Header, body []byte) Answer {
	in.t.Helper()
	return in.deliver(source, &provider.Request{Method: http.MethodPost, URL: publicURL + "/in/" + source, Header: header.Clone(), Body: body})
}

// deliver signs a request for the time of now and serves it.
func (in *Inbox) deliver(source string, r *provider.Request) Answer {
	in.t.Helper()
	p := in.inbox.Provider(source)
	if p == nil {
		in.t.Fatalf("inboxtest: there is no source %q; there are %s", source, strings.Join(in.inbox.Sources(), ", "))
	}
	if err := p.Sign(in.clock.Now(), r, in.signing[source]); err != nil {
		in.t.Fatalf("inboxtest: %v", err)
	}
	req, err := http.NewRequestWithContext(context.Background(), r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		in.t.Fatalf("inboxtest: %v", err)
	}
	req.Header, req.RemoteAddr = r.Header, "192.0.2.1:12345"
	w := httptest.NewRecorder()
	in.inbox.Source(source).ServeHTTP(w, req)
	in.clock.advance(time.Millisecond)
	return Answer{w.Code, w.Header(), w.Body.String()}
}

// Send delivers samples of the source's provider, named as `onceward provider show`
// lists them, with or without the number before them: "03-charge.succeeded" or
// "charge.succeeded". Without names it sends all, in their order. Each must be
// answered 200.
func (in *Inbox) Send(source string, names ...string) {
	in.t.Helper()
	samples := in.samples(source)
	chosen := samples
	if len(names) > 0 {
		chosen = nil
		for _, name := range names {
			chosen = append(chosen, in.sample(source, samples, name))
		}
	}
	for i := range chosen {
		in.send(source, &chosen[i])
	}
}

func (in *Inbox) samples(source string) []provider.Sample {
	in.t.Helper()
	p := in.inbox.Provider(source)
	if p == nil {
		in.t.Fatalf("inboxtest: there is no source %q; there are %s", source, strings.Join(in.inbox.Sources(), ", "))
	}
	samples := provider.Samples(p.Name())
	if len(samples) == 0 {
		in.t.Fatalf("inboxtest: the catalogue has no samples of %s; use Deliver", p.Name())
	}
	return samples
}

func (in *Inbox) sample(source string, samples []provider.Sample, name string) provider.Sample {
	in.t.Helper()
	var names []string
	for _, s := range samples {
		if _, plain, _ := strings.Cut(s.Name, "-"); s.Name == name || plain == name {
			return s
		}
		names = append(names, s.Name)
	}
	slices.Sort(names)
	in.t.Fatalf("inboxtest: there is no sample %q of %s; there are %s", name, source, strings.Join(names, ", "))
	return provider.Sample{}
}

// send delivers one sample and wants a 200.
func (in *Inbox) send(source string, s *provider.Sample) {
	in.t.Helper()
	r := s.Request()
	_, query, has := strings.Cut(r.URL, "?")
	r.URL = publicURL + "/in/" + source
	if has {
		r.URL += "?" + query
	}
	if a := in.deliver(source, r); a.Status != http.StatusOK {
		in.t.Fatalf("inboxtest: sample %s of %s was answered %d: %s", s.Name, source, a.Status, a.Body)
	}
}

// Entity returns the one row of a kind and key, of any source. If there is none, or
// if there are several, the test ends with what there is instead.
func (in *Inbox) Entity(kind, key string) *onceward.Entity {
	in.t.Helper()
	e, err := in.inbox.Find(context.Background(), "", kind, key)
	if err != nil {
		in.t.Fatalf("inboxtest: %v%s", err, in.hint(kind))
	}
	return e
}

// hint says what is there in place of what was looked for.
func (in *Inbox) hint(kind string) string {
	ctx := context.Background()
	const most = 10
	var b strings.Builder
	rows, err := in.inbox.Entities(ctx, onceward.EntityQuery{Kind: kind, Limit: most})
	if err == nil && len(rows) == 0 {
		rows, err = in.inbox.Entities(ctx, onceward.EntityQuery{Limit: most})
	}
	if err != nil {
		return ""
	}
	b.WriteString("\nthe rows there are:")
	for _, r := range rows {
		fmt.Fprintf(&b, "\n  %s is %s", r.Ref, r.Status)
	}
	if len(rows) == 0 {
		b.WriteString(" none")
	}
	events, err := in.inbox.Events(ctx, onceward.EventQuery{Limit: 1000})
	if err != nil {
		return b.String()
	}
	for _, e := range events {
		if e.Held == 0 {
			continue
		}
		facts, err := in.inbox.EventFacts(ctx, e.ID)
		for _, f := range facts {
			if err == nil && f.Verdict == onceward.Held {
				fmt.Fprintf(&b, "\nheld: %s %s, rule %s: %s", e.Type, e.Key, f.Rule, f.Held)
			}
		}
	}
	return b.String()
}
