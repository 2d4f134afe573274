package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/cli/instance"
	"github.com/onceward/onceward/internal/server"
)

// subject is a server under test: what answers, and what is behind it.
type subject struct {
	handler http.Handler
	engine  server.Engine
	reader  server.Reader
	metrics *server.Metrics
	// count counts what is stored; close ends it.
	count func(context.Context) (farewell, error)
	close func(context.Context) error
}

// serve is the program of a process under test: it answers until its input ends.
// Every variant runs behind the same HTTP server, the one of `onceward serve`.
func serve(text string, in io.Reader, out, stderr io.Writer) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	public, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	admin, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s, err := newSubject(ctx, o, log)
	if err != nil {
		return err
	}
	finish, err := profile(o.Profile)
	if err != nil {
		return errors.Join(err, s.close(ctx))
	}
	answers := json.NewEncoder(out)
	if err := answers.Encode(greeting{public.Addr().String(), admin.Addr().String()}); err != nil {
		return fmt.Errorf("say hello: %w", err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, in) // until the benchmark closes it, or dies
		stop()
	}()
	err = server.New(server.Config{
		Inbox: s.handler, Engine: s.engine, Reader: s.reader, Metrics: s.metrics, Log: log,
	}).Run(ctx, public, admin)
	err = errors.Join(err, finish())
	end, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var last farewell
	if err == nil && o.Count {
		last, err = s.count(end)
	}
	if err := errors.Join(err, s.close(end)); err != nil {
		return err
	}
	return answers.Encode(last)
}

// profile begins a CPU profile in a file, "" for none, and returns how to end it.
func profile(file string) (finish func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("make a profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("make a profile: %w", err), f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

func newSubject(ctx context.Context, o order, log *slog.Logger) (*subject, error) {
	switch o.Variant {
	case "ceiling":
		return bare(ceilingHandler()), nil
	case "naive-select", "naive-upsert":
		return newNaive(ctx, o)
	default:
		return newOnceward(ctx, o, log)
	}
}

// bare is a subject without an engine behind it.
func bare(h http.Handler) *subject {
	return &subject{
		handler: h, engine: nobody{}, reader: nothing{}, metrics: server.NewMetrics(),
		count: func(context.Context) (farewell, error) { return farewell{}, nil },
		close: func(context.Context) error { return nil },
	}
}

// nobody is the engine of a server that has none; nothing is what it reads.
type (
	nobody  struct{ server.Engine }
	nothing struct{ server.Reader }
)

// newOnceward is the full path as `onceward serve` wires it, with a handler for
// every change and no worker, so that each change makes a job and none is done.
func newOnceward(ctx context.Context, o order, log *slog.Logger) (*subject, error) {
	store, err := instance.OpenStore(ctx, o.Store, instance.Write)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	metrics := server.NewMetrics()
	in, err := inbox.New(store, inbox.Config{
		Sources: map[string]inbox.Source{"stripe": {Provider: "stripe", Secrets: []string{secret}}},
		Now:     time.Now, Logger: log, Observer: metrics,
	})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	for _, kind := range kinds() {
		in.Handle(kind, func(context.Context, onceward.Change) error { return nil })
	}
	return &subject{
		handler: in.Handler(), engine: engine{in}, reader: store, metrics: metrics,
		count: func(ctx context.Context) (farewell, error) {
			stats, err := store.Stats(ctx)
			return farewell{Events: stats.Events, Jobs: stats.JobsPending}, err
		},
		close: func(ctx context.Context) error { return errors.Join(in.Close(ctx), store.Close()) },
	}, nil
}

// engine is an inbox as the server wants it. The benchmark registers nothing.
type engine struct{ *inbox.Inbox }

var errNotMeasured = errors.New("registrations are not measured")

// Register implements server.Engine.
func (engine) Register(context.Context, server.Registration) (server.Registered, error) {
	return server.Registered{}, errNotMeasured
}
