package cases

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/cli/config"
)

// host runs the server of a play, in this process or in one of its own that can be
// killed. Every method but kill waits until it is done.
type host interface {
	// public is the address where deliveries come in.
	public() string
	// at moves the clock to the moment of a step, advance moves all later steps too.
	at(ms int64) error
	advance(ms int64) error
	pause() error
	resume() error
	// fault makes the store fail: down until it is up again, the next commits, or the
	// whole process die at a point.
	fault(f fault) error
	put(ref onceward.Ref, fields string) error
	// rest waits until the work that is due is done; drain moves the clock until there
	// is none left; ready waits until deliveries are taken in.
	rest() error
	drain() error
	ready() error
	// restart ends everything in order and starts it again with a configuration.
	restart(l *layout, gone []string) error
	// kill ends the process at once, and starts another.
	kill() error
	close() error
}

// fault is how a store is to fail.
type fault struct {
	Down  bool   `json:"down"`
	Next  int    `json:"next"`
	Crash string `json:"crash"`
}

// hostConfig says what a host runs.
type hostConfig struct {
	c       *fieldCase
	lib     *library
	layout  *layout
	prefix  string // of the names of sources
	suffix  string // of the names of handlers
	effects map[string]effect
	open    func() (onceward.Store, error)
	// had is told of each effect.
	had func(name string, c onceward.Change, at time.Time) error
	die func()
	// clock and paused are what a process that is started again goes on with.
	clock  *clock
	paused bool
}

// local is a host in this process.
type local struct {
	cfg    hostConfig
	conf   *config.Config
	clock  *clock
	app    *application
	store  *watched
	engine *engine
	paused bool
}

func startLocal(cfg hostConfig) (*local, error) {
	clock := cfg.clock
	if clock == nil {
		clock = newClock()
	}
	app, err := newApplication(clock, &cfg.c.Setup)
	if err != nil {
		return nil, err
	}
	app.had = cfg.had
	h := &local{cfg: cfg, clock: clock, app: app, paused: cfg.paused}
	err = h.start()
	return h, err
}

func (h *local) start() error {
	conf, err := h.cfg.layout.read(h.cfg.lib)
	if err != nil {
		return err
	}
	store, err := h.cfg.open()
	if err != nil {
		return err
	}
	h.conf, h.store = conf, watch(store)
	h.store.die = h.cfg.die
	h.engine, err = startEngine(engineConfig{
		store: h.store, sources: sourcesOf(conf, func(name string) string { return h.cfg.prefix + name }),
		publicURL: conf.PublicURL, jobs: h.cfg.layout.jobs, clock: h.clock, app: h.app,
		effects: h.cfg.effects, suffix: h.cfg.suffix, paused: h.paused,
	})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	return nil
}

func (h *local) public() string { return h.engine.public }

func (h *local) at(ms int64) error {
	h.clock.at(ms)
	return nil
}

func (h *local) advance(ms int64) error {
	h.clock.advance(time.Duration(ms) * time.Millisecond)
	return nil
}

func (h *local) pause() error {
	h.paused = true
	return h.engine.pause()
}

func (h *local) resume() error {
	h.paused = false
	h.engine.resume()
	return nil
}

func (h *local) fault(f fault) error {
	h.store.set(func(w *watched) { w.down, w.failing, w.crash = f.Down, w.failing+f.Next, f.Crash })
	return nil
}

func (h *local) put(ref onceward.Ref, fields string) error { return h.engine.put(ref, fields) }
func (h *local) rest() error                               { return h.engine.rest() }

func (h *local) drain() error {
	if err := h.resume(); err != nil { // work that nobody lets go on is not part of any case's end
		return err
	}
	h.store.set(func(w *watched) {
		if strings.HasSuffix(w.crash, "_commit") {
			w.crash = "" // no commit has come that it was meant for
		}
	})
	return h.engine.drain(h.unfinished)
}

// unfinished tells of jobs that are not done and not dead.
func (h *local) unfinished() (first time.Time, any bool, err error) {
	jobs, err := h.store.Jobs(context.Background(), 10*page)
	if err != nil {
		return first, false, err
	}
	jobs = slices.DeleteFunc(jobs, func(j onceward.Job) bool { return j.Dead || !strings.HasSuffix(j.Handler, h.cfg.suffix) })
	for _, j := range jobs {
		if !any || j.Due.Before(first) {
			first, any = j.Due, true
		}
	}
	return first, any, nil
}

func (h *local) ready() error {
	return await("the inbox is ready", func() (bool, error) { return h.engine.inbox.Ready(context.Background()) == nil, nil })
}

func (h *local) restart(l *layout, _ []string) error {
	if err := h.close(); err != nil {
		return err
	}
	h.cfg.layout = l
	return h.start()
}

func (h *local) kill() error { return errors.New("this process cannot be killed") }

func (h *local) close() error {
	return errors.Join(h.engine.close(), h.store.Close())
}
