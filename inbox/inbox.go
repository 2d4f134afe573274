package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox/internal/committer"
	"github.com/onceward/onceward/inbox/internal/panics"
	"github.com/onceward/onceward/provider"
)

const (
	// upkeepEvery is how often a process looks whether there is a newer mapping,
	// and takes up what older ones left held: within a minute, with room to spare.
	upkeepEvery = 30 * time.Second
	pingTimeout = 2 * time.Second
)

// Inbox takes deliveries in. Make it with New and end it with Close; its methods
// are safe for concurrent use.
type Inbox struct {
	cfg        Config
	store      onceward.Store
	log        *slog.Logger
	observer   Observer
	sources    map[string]*source
	paths      map[string]*source
	addresses  addresses
	ids        *idMaker
	chance     *chance
	committer  *committer.Committer
	quarantine *quarantine
	bodies     bodies
	handlers   handlers
	wake       chan struct{} // one token: there may be jobs

	stopUpkeep context.CancelFunc
	upkeep     sync.WaitGroup
}

// New compiles the sources, gives their mappings revisions in the store, and
// starts the committer. All that is wrong with the configuration is in the one
// error: an empty secret, a misspelt key, an unknown provider. Nothing has been
// started when New fails. The store stays the caller's: close it after the inbox.
func New(store onceward.Store, cfg Config) (*Inbox, error) {
	cfg = cfg.withDefaults()
	sources, err := compileSources(cfg)
	if err := errors.Join(cfg.check(), err); err != nil {
		return nil, fmt.Errorf("inbox: %w", err)
	}
	chance, err := newChance(cfg.Rand)
	if err != nil {
		return nil, fmt.Errorf("inbox: read Rand: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	node, err := store.Node(ctx)
	if err != nil {
		return nil, fmt.Errorf("inbox: draw a node number: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if err := sources[name].register(ctx, store, cfg); err != nil {
			return nil, fmt.Errorf("inbox: %w", err)
		}
	}
	in := &Inbox{
		cfg: cfg, store: store, log: cfg.Logger, observer: guarded{cfg.Observer, cfg.Logger},
		sources: sources, paths: make(map[string]*source, len(sources)),
		addresses: addresses{cfg.PublicURL, cfg.TrustedProxies},
		ids:       newIDMaker(cfg.Now, node), chance: chance, wake: make(chan struct{}, 1),
	}
	room := cfg.QueueBytes
	for _, s := range sources {
		in.paths[s.path] = s
		room = max(room, 2*s.maxBody) // one body always fits
	}
	in.bodies.free.Store(room)
	in.start()
	return in, nil
}

// start starts what runs in the background until Close.
func (in *Inbox) start() {
	in.committer = committer.New(committer.Config{
		Store:       in.store,
		QueueEvents: in.cfg.QueueEvents, QueueBytes: in.cfg.QueueBytes,
		BatchEvents: in.cfg.BatchEvents, BatchBytes: in.cfg.BatchBytes,
		CommitTimeout: commitTimeout, RefuseFor: refuseFor,
		Now: in.cfg.Now, Handlers: in.handlers.contracts, Resolve: in.resolve, Committed: in.committed,
	})
	in.quarantine = newQuarantine(in.store, in.cfg.Quarantine, in.log)
	ctx, stop := context.WithCancel(context.Background())
	in.stopUpkeep = stop
	in.upkeep.Go(func() {
		tick := time.NewTicker(upkeepEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				in.keepUp(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
}

// committed is told of each commit.
func (in *Inbox) committed(events int, took time.Duration, err error) {
	in.observer.Committed(events, took)
	if err != nil {
		in.log.Error("a commit failed", append([]any{"events", events, "took", took, "error", err}, stackOf(err)...)...)
		return
	}
	if len(in.handlers.all()) > 0 {
		in.wakeWorkers()
	}
}

// stackOf returns what a log line adds of an error that was a panic.
func stackOf(err error) []any {
	var thrown *panics.Error
	if !errors.As(err, &thrown) {
		return nil
	}
	return []any{"stack", thrown.Stack()}
}

// Close takes no more deliveries, commits those that were taken in, answers every
// sender that waits, and ends what runs in the background. When ctx ends first it
// cancels the commits in flight, answers those that wait for one to come with 503,
// and returns the context's error; the senders whose events are in a commit in
// flight are answered when the store returns from it, or when Config.AckTimeout is
// over. Stop the HTTP server first, and end Run by its context.
func (in *Inbox) Close(ctx context.Context) error {
	in.stopUpkeep()
	err := in.committer.Close(ctx)
	err = errors.Join(err, in.quarantine.close(ctx))
	if err != nil {
		return fmt.Errorf("inbox: close: %w", err)
	}
	in.upkeep.Wait()
	return nil
}

// Ready returns nil if deliveries are taken in and their facts applied. Otherwise
// the error says what is wrong: the store is down, or a source is read with an
// older mapping than another process has.
func (in *Inbox) Ready(ctx context.Context) error {
	var errs []error
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := in.store.Ping(ctx); err != nil {
		errs = append(errs, fmt.Errorf("the store takes no commit: %w", err))
	} else if in.committer.Refusing() {
		errs = append(errs, errors.New("a commit failed a moment ago; deliveries are taken in again after half a second"))
	}
	for _, name := range slices.Sorted(maps.Keys(in.sources)) {
		if why := in.sources[name].behind(); why != "" {
			errs = append(errs, fmt.Errorf("source %s: deliveries are stored, their facts held: %s; start this process with the newest configuration", name, why))
		}
	}
	return errors.Join(errs...)
}

// Depth is how many events wait for their commit or are in it.
func (in *Inbox) Depth() int {
	events, _ := in.committer.Depth()
	return events
}

// Sources lists the names of the sources, sorted.
func (in *Inbox) Sources() []string { return slices.Sorted(maps.Keys(in.sources)) }

// Provider returns the compiled provider of a source, nil if there is no such
// source.
func (in *Inbox) Provider(source string) *provider.Provider {
	if s := in.sources[source]; s != nil {
		return s.provider
	}
	return nil
}

// Kind returns a kind of a source's mapping, nil if there is no such one.
func (in *Inbox) Kind(source, kind string) *onceward.Kind {
	if s := in.sources[source]; s != nil {
		return s.mapping.Kinds[kind]
	}
	return nil
}
