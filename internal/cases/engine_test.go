package cases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/cli/config"
	"github.com/onceward/onceward/internal/server"
)

// door is an inbox as the server wants it, as the program makes one.
type door struct{ *inbox.Inbox }

// Register implements server.Engine.
func (d door) Register(ctx context.Context, reg server.Registration) (server.Registered, error) {
	local := map[string]any{}
	for name, value := range reg.Local {
		local[name] = value
	}
	done, err := d.Put(ctx, inbox.Registration{Ref: reg.Ref, Scoped: reg.Scoped, Local: local, Key: reg.Key})
	return server.Registered{Ref: done.Ref, Event: done.Event, Outcome: done.Outcome}, err
}

// engine is a whole server over a store: the inbox, both listeners, and workers.
type engine struct {
	store  *watched
	inbox  *inbox.Inbox
	clock  *clock
	app    *application
	public string // address of the listener
	admin  string

	stopServer func() error
	stopWork   func() error // nil while the workers pause
}

// engineConfig says what to start.
type engineConfig struct {
	store     *watched
	sources   map[string]inbox.Source
	publicURL string
	jobs      inbox.JobConfig
	clock     *clock
	app       *application
	effects   map[string]effect
	suffix    string // of the names of handlers
	paused    bool
}

// poll is how often workers look, by the real clock: they cannot know that a play
// has moved its own.
const poll = 10 * time.Millisecond

func startEngine(cfg engineConfig) (*engine, error) {
	jobs := cfg.jobs
	jobs.Poll = poll
	metrics := server.NewMetrics()
	log := slog.New(slog.DiscardHandler)
	in, err := inbox.New(cfg.store, inbox.Config{
		Sources: cfg.sources, PublicURL: cfg.publicURL, Jobs: jobs, Now: cfg.clock.Now, Logger: log, Observer: metrics,
	})
	if err != nil {
		return nil, err
	}
	e := &engine{store: cfg.store, inbox: in, clock: cfg.clock, app: cfg.app}
	cfg.app.register(in, cfg.effects, cfg.suffix)
	s := server.New(server.Config{Inbox: cfg.store.answers(in.Handler()), Engine: door{in}, Reader: cfg.store, Metrics: metrics, Log: log})
	if err := e.serve(s); err != nil {
		return nil, errors.Join(err, in.Close(context.Background()))
	}
	if !cfg.paused {
		e.work()
	}
	return e, nil
}

func (e *engine) serve(s *server.Server) error {
	public, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	admin, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, public.Close())
	}
	e.public, e.admin = public.Addr().String(), admin.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, public, admin) }()
	e.stopServer = func() error {
		cancel()
		return <-ended
	}
	return nil
}

// work starts the workers.
func (e *engine) work() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.inbox.Run(ctx) }()
	e.stopWork = func() error {
		cancel()
		return <-ended
	}
}

func (e *engine) pause() error {
	if e.stopWork == nil {
		return nil
	}
	stop := e.stopWork
	e.stopWork = nil
	return stop()
}

func (e *engine) resume() {
	if e.stopWork == nil {
		e.work()
	}
}

// close ends everything but the store, in the order that loses nothing.
func (e *engine) close() error {
	err := errors.Join(e.stopServer(), e.pause())
	ctx, cancel := context.WithTimeout(context.Background(), wirePatience)
	defer cancel()
	return errors.Join(err, e.inbox.Close(ctx))
}

// sourcesOf are the sources of a configuration under names that no other play has.
func sourcesOf(c *config.Config, named func(string) string) map[string]inbox.Source {
	sources := map[string]inbox.Source{}
	for _, s := range c.Sources {
		sources[named(s.Name)] = inbox.Source{Compiled: s.Provider, MaxBody: s.MaxBody, Path: s.Path}
	}
	return sources
}

// kindsOf are the kinds of all sources of a configuration, by name.
func kindsOf(c *config.Config) map[string]*onceward.Kind {
	kinds := map[string]*onceward.Kind{}
	for _, s := range c.Sources {
		maps.Copy(kinds, s.Provider.Kinds())
	}
	return kinds
}

// await waits until something is so; what says what in the error.
func await(what string, ready func() (bool, error)) error {
	limit := time.NewTimer(wirePatience)
	defer limit.Stop()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for {
		ok, err := ready()
		if ok || err != nil {
			return err
		}
		select {
		case <-limit.C:
			return fmt.Errorf("%s: not within %v", what, wirePatience)
		case <-again.C:
		}
	}
}

// rest waits until the work that is due by the clock is done, or sleeps by it.
func (e *engine) rest() error {
	e.store.disturb()
	still := 0
	return await("the workers come to rest", func() (bool, error) {
		if e.store.resting() || e.stopWork == nil || len(e.app.handlers) == 0 {
			return true, nil
		}
		if n, _ := e.clock.sleepers(); n == 0 || e.app.busy() > 0 {
			still = 0
			return false, nil
		}
		still++
		return still > 25, nil // whoever sleeps, sleeps; nobody else has begun meanwhile
	})
}

// together is how far the clock goes beyond the next retry, so that those that are
// due soon after are made in the same turn.
const together = 100 * time.Millisecond

// drain moves the clock until there is nothing left to do: no work, no retry, no
// sleeper.
func (e *engine) drain(unfinished func() (first time.Time, any bool, err error)) error {
	for range 10_000 {
		if err := e.rest(); err != nil {
			return err
		}
		if n, first := e.clock.sleepers(); n > 0 {
			e.clock.to(first)
			continue
		}
		first, any, err := unfinished()
		if err != nil || !any {
			return err
		}
		e.clock.to(first.Add(together))
	}
	return errors.New("the work never ends")
}

// put registers a row, or fields of the application, over the admin API.
func (e *engine) put(ref onceward.Ref, fields string) error {
	target := fmt.Sprintf("http://%s/v1/entities/%s/%s/%s", e.admin, url.PathEscape(ref.Source), url.PathEscape(ref.Kind), url.PathEscape(ref.Key))
	if ref.Scope != (onceward.Scope{}) {
		target += "?scope=" + url.QueryEscape(ref.Scope.String())
	}
	req, err := http.NewRequest(http.MethodPut, target, strings.NewReader(`{"local": `+fields+`}`))
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: wirePatience}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("PUT %s answered %d %s", target, resp.StatusCode, body)
	}
	return nil
}
