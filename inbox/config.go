package inbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider"
)

// Config says what an inbox takes in and how. Only Sources must be set; the zero
// value of anything else means the default that its comment names. It is not
// changed and may be used again.
type Config struct {
	// Sources maps the name of each source to its description. A name is part of
	// every key, for ever, and of the path /in/NAME: letters, digits, points,
	// dashes and underscores.
	Sources map[string]Source

	// MaxBody is the most bytes that a body may have; 1 MiB. More is answered 413.
	MaxBody int64
	// QueueEvents and QueueBytes bound what waits for its commit; 4096 events and
	// 64 MiB. QueueBytes bounds the bodies that are still coming in likewise, beyond
	// the first 4 KiB of each. More is answered 503.
	QueueEvents int
	QueueBytes  int64
	// BatchEvents and BatchBytes bound one commit; 512 events and 4 MiB.
	BatchEvents int
	BatchBytes  int64
	// AckTimeout is how long a sender waits before it is answered 503; 4 s, for
	// some senders give up at 5. Its event may still be stored.
	AckTimeout time.Duration

	// PublicURL is the address under which senders know this server, without the
	// path, as https://hooks.example.com. Schemes that sign the address need it
	// where a proxy hides it. "" means the request's own.
	PublicURL string
	// TrustedProxies are the networks whose X-Forwarded-For, X-Forwarded-Proto and
	// X-Forwarded-Host are believed; none.
	TrustedProxies []netip.Prefix

	// Quarantine bounds what is kept of rejected deliveries, per source; 1000 of
	// them and 16 MiB.
	Quarantine onceward.QuarantineLimits
	// Jobs says how handlers are run.
	Jobs JobConfig

	// Now is the clock; time.Now.
	Now func() time.Time
	// Rand is where keys and the seed of jitter are read; crypto/rand.Reader.
	Rand io.Reader
	// Logger is told of what an operator should know; nothing is logged without
	// one. No line holds a body, a header or a secret.
	Logger *slog.Logger
	// Observer is told of everything that metrics count; nobody.
	Observer Observer
	// Development adds to answers what only a developer may see: why a delivery
	// was rejected, and what became of each fact.
	Development bool
}

// Source describes one inbound endpoint.
type Source struct {
	// Provider is a name of the catalogue, as stripe; "" if Definition or Compiled
	// describes the sender.
	Provider string
	// Secrets are values, not references. Several may be live at once.
	Secrets []string
	// Params are what the provider's file asks for.
	Params map[string]string
	// Definition is YAML in the language of provider files, laid over Provider:
	// the keys that stand beside `provider:` in onceward.yaml.
	Definition []byte
	// Compiled is a provider that has been compiled before, with its secrets; the
	// four fields above must be empty then.
	Compiled *provider.Provider
	// Map, if not nil, reads verified deliveries in Go in place of the provider's
	// rules; verification and handshakes stay the provider's. It must be a pure
	// function of the request and safe for concurrent use. An error holds the
	// delivery's facts with it as the reason; the event is kept.
	Map func(*provider.Request) ([]provider.Reading, error)
	// Kinds are the kinds that Map's facts name, beside those of the provider; one
	// of the same name takes the place of the provider's.
	Kinds []*onceward.Kind
	// MapVersion tells two versions of Map apart: change it when Map reads otherwise
	// than before, so that its rows are made anew.
	MapVersion string
	// MaxBody is the most bytes of a body; 0 means Config.MaxBody.
	MaxBody int64
	// Path is where Handler serves the source; /in/NAME.
	Path string
}

// JobConfig says how handlers are run.
type JobConfig struct {
	// Workers is how many jobs one Run does at the same time; 8.
	Workers int
	// Timeout bounds one attempt, by its context; 1 minute. A job whose process
	// died is tried again after Timeout and 15 seconds.
	Timeout time.Duration
	// Poll is how often the store is asked for jobs that other processes made or
	// that have become due; 1 s. Jobs of this process start at once.
	Poll time.Duration
	// BackoffBase and BackoffMax bound the pause after a failed attempt: the n-th
	// is a random part of BackoffBase doubled n-1 times, and never more than
	// BackoffMax; 1 s and 1 hour.
	BackoffBase, BackoffMax time.Duration
	// Attempts is after how many failures a job is dead; 60, about a day.
	Attempts int
	// Grace is how long Run waits for work under way after its context has ended,
	// before it cancels that work; 10 s.
	Grace time.Duration
}

// The defaults.
const (
	defaultMaxBody     = 1 << 20
	defaultQueueEvents = 4096
	defaultQueueBytes  = 64 << 20
	defaultBatchEvents = 512
	defaultBatchBytes  = 4 << 20
	defaultAckTimeout  = 4 * time.Second
	defaultQuarantine  = 1000
	defaultRingBytes   = 16 << 20

	defaultWorkers  = 8
	defaultTimeout  = time.Minute
	defaultPoll     = time.Second
	defaultBackoff  = time.Second
	defaultLongest  = time.Hour
	defaultAttempts = 60
	defaultGrace    = 10 * time.Second
)

// commitTimeout bounds one commit, refuseFor is the pause after one that failed,
// startTimeout bounds what New asks of the store.
const (
	commitTimeout = 30 * time.Second
	refuseFor     = 500 * time.Millisecond
	startTimeout  = 30 * time.Second
)

// withDefaults returns a copy of cfg in which everything is set.
func (cfg Config) withDefaults() Config {
	cfg.MaxBody = or(cfg.MaxBody, defaultMaxBody)
	cfg.QueueEvents = or(cfg.QueueEvents, defaultQueueEvents)
	cfg.QueueBytes = or(cfg.QueueBytes, defaultQueueBytes)
	cfg.BatchEvents = or(cfg.BatchEvents, defaultBatchEvents)
	cfg.BatchBytes = or(cfg.BatchBytes, defaultBatchBytes)
	cfg.AckTimeout = or(cfg.AckTimeout, defaultAckTimeout)
	cfg.Quarantine.Count = or(cfg.Quarantine.Count, defaultQuarantine)
	cfg.Quarantine.Bytes = or(cfg.Quarantine.Bytes, defaultRingBytes)
	j := &cfg.Jobs
	j.Workers = or(j.Workers, defaultWorkers)
	j.Timeout = or(j.Timeout, defaultTimeout)
	j.Poll = or(j.Poll, defaultPoll)
	j.BackoffBase = or(j.BackoffBase, defaultBackoff)
	j.BackoffMax = or(j.BackoffMax, defaultLongest)
	j.Attempts = or(j.Attempts, defaultAttempts)
	j.Grace = or(j.Grace, defaultGrace)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Observer == nil {
		cfg.Observer = blind{}
	}
	cfg.PublicURL = strings.TrimRight(cfg.PublicURL, "/")
	return cfg
}

func or[T int | int64 | time.Duration](value, otherwise T) T {
	if value == 0 {
		return otherwise
	}
	return value
}

// check returns all that is wrong with the configuration itself; the sources are
// checked when they are compiled.
func (cfg Config) check() error {
	var errs []error
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"MaxBody", cfg.MaxBody},
		{"QueueEvents", int64(cfg.QueueEvents)},
		{"QueueBytes", cfg.QueueBytes},
		{"BatchEvents", int64(cfg.BatchEvents)},
		{"BatchBytes", cfg.BatchBytes},
		{"AckTimeout", int64(cfg.AckTimeout)},
		{"Quarantine.Count", int64(cfg.Quarantine.Count)},
		{"Quarantine.Bytes", cfg.Quarantine.Bytes},
		{"Jobs.Workers", int64(cfg.Jobs.Workers)},
		{"Jobs.Timeout", int64(cfg.Jobs.Timeout)},
		{"Jobs.Poll", int64(cfg.Jobs.Poll)},
		{"Jobs.BackoffBase", int64(cfg.Jobs.BackoffBase)},
		{"Jobs.BackoffMax", int64(cfg.Jobs.BackoffMax)},
		{"Jobs.Attempts", int64(cfg.Jobs.Attempts)},
		{"Jobs.Grace", int64(cfg.Jobs.Grace)},
	} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("%s is negative; leave it out for the default", n.name))
		}
	}
	if len(cfg.Sources) == 0 {
		errs = append(errs, errors.New(`there is no source; name one, as Sources: map[string]inbox.Source{"stripe": {Provider: "stripe", Secrets: …}}`))
	}
	if cfg.PublicURL != "" {
		u, err := url.Parse(cfg.PublicURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			errs = append(errs, errors.New("PublicURL is no address of a server; write it as https://hooks.example.com"))
		}
	}
	return errors.Join(errs...)
}
