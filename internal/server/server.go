package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/onceward/onceward"
)

// The limits of both listeners. A delivery has to be whole within readTimeout, so
// that slow senders cannot hold connections for ever.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	drainTimeout      = 15 * time.Second
	statsTimeout      = 3 * time.Second
	maxPutBytes       = 1 << 20
)

// Reader is what the admin API reads. Every onceward.Store is one.
type Reader interface {
	Event(ctx context.Context, id int64) (*onceward.StoredEvent, error)
	Events(ctx context.Context, q onceward.EventQuery) ([]onceward.StoredEvent, error)
	Entity(ctx context.Context, ref onceward.Ref) (*onceward.Entity, error)
	Entities(ctx context.Context, q onceward.EntityQuery) ([]onceward.Entity, error)
	History(ctx context.Context, ref onceward.Ref) ([]onceward.StoredFact, error)
	EventFacts(ctx context.Context, eventID int64) ([]onceward.StoredFact, error)
	Rejections(ctx context.Context, source string, limit int) ([]onceward.Rejection, error)
	Stats(ctx context.Context) (onceward.Stats, error)
}

// Registration asks for a row to be registered or its local fields written.
type Registration struct {
	Ref onceward.Ref
	// Scoped says that the scope was named, be it the empty one.
	Scoped bool
	// Local are the fields; a null takes one away.
	Local map[string]onceward.Value
	// Key makes repeats of one request one event; "" for a random one.
	Key string
}

// Registered is what became of a registration.
type Registered struct {
	// Ref names the row, with the scope that was meant.
	Ref     onceward.Ref
	Event   int64
	Outcome onceward.Outcome
}

// Engine is what the server needs of the inbox.
type Engine interface {
	// Register takes a registration in. An error with a Status method
	// (func() int) is the caller's and its text is shown.
	Register(ctx context.Context, reg Registration) (Registered, error)
	// Ready returns nil if deliveries are taken, or says in words why not.
	Ready(ctx context.Context) error
	// Kind returns a kind of the newest mapping of a source, nil if there is none.
	Kind(source, kind string) *onceward.Kind
	// Depth is how many events wait for a commit.
	Depth() int
}

// Config is what a server is made from. All fields but Token are required.
type Config struct {
	// Inbox answers the public listener.
	Inbox  http.Handler
	Engine Engine
	Reader Reader
	// Token is what the admin API wants as a bearer token, "" to answer on this
	// machine only.
	Token   string
	Metrics *Metrics
	Log     *slog.Logger
}

// Server is the two HTTP servers of an inbox. Make it with New.
type Server struct {
	inbox  http.Handler
	engine Engine
	reader Reader
	guard  guard
	prom   http.Handler
	log    *slog.Logger
}

// New returns a server that listens nowhere yet. Metrics must not have been given
// to another server.
func New(c Config) *Server {
	return &Server{
		inbox: c.Inbox, engine: c.Engine, reader: c.Reader, guard: newGuard(c.Token), log: c.Log,
		prom: c.Metrics.handler(newGauges(c.Reader.Stats, c.Engine.Depth, c.Log)),
	}
}

// Public returns the handler of the public listener.
func (s *Server) Public() http.Handler { return s.inbox }

// Run answers on both listeners until ctx ends; then it takes no more requests,
// lets those that are under way finish for up to 15 seconds, and returns nil. It
// closes the listeners.
func (s *Server) Run(ctx context.Context, public, admin net.Listener) error {
	servers := []*http.Server{s.httpServer(s.Public()), s.httpServer(s.Admin())}
	failed := make(chan error, len(servers))
	for i, l := range []net.Listener{public, admin} {
		go func() { failed <- servers[i].Serve(l) }()
	}
	var cause error
	running := len(servers)
	select {
	case <-ctx.Done():
	case cause = <-failed:
		running--
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	for _, server := range servers {
		if err := server.Shutdown(drain); err != nil {
			cause = errors.Join(cause, fmt.Errorf("drain: %w", err), server.Close())
		}
	}
	for ; running > 0; running-- {
		if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
			cause = errors.Join(cause, err)
		}
	}
	if cause != nil {
		return fmt.Errorf("serve: %w", cause)
	}
	return nil
}

func (s *Server) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,

		DisableGeneralOptionsHandler: true, // whatever is asked, the handler answers
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}
