// Package instance runs one whole Onceward in this process: a store, the inbox
// over it, and the server on two listeners. The commands serve and demo are made
// of it.
package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/server"
)

// closeTimeout is how long what was taken in may take to be committed when the
// instance ends.
const closeTimeout = 20 * time.Second

// Config says what to run.
type Config struct {
	// Store is sqlite:FILE or postgres://….
	Store string
	// Listen and Admin are the addresses of the two listeners.
	Listen, Admin  string
	Token          string
	PublicURL      string
	TrustedProxies []netip.Prefix
	Sources        map[string]inbox.Source
	// Development adds to answers what only a developer may see.
	Development bool
	Log         *slog.Logger
	Now         func() time.Time
	Random      io.Reader
}

// Instance is one that listens. End it with Run, or with Close if it is not run.
type Instance struct {
	store         onceward.Store
	inbox         *inbox.Inbox
	server        *server.Server
	public, admin net.Listener
	log           *slog.Logger
}

// Start opens the store, compiles the sources and listens. Nothing is answered
// before Run. The address of a listener in use is said in words.
func Start(ctx context.Context, c Config) (i *Instance, err error) {
	i = &Instance{log: c.Log}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Close(ctx))
			i = nil
		}
	}()
	if i.public, err = listen(c.Listen, "--listen"); err != nil {
		return i, err
	}
	if i.admin, err = listen(c.Admin, "--admin"); err != nil {
		return i, err
	}
	if i.store, err = OpenStore(ctx, c.Store, Write); err != nil {
		return i, fmt.Errorf("open the store: %w", err)
	}
	metrics := server.NewMetrics()
	i.inbox, err = inbox.New(i.store, inbox.Config{
		Sources: c.Sources, PublicURL: c.PublicURL, TrustedProxies: c.TrustedProxies,
		Now: c.Now, Rand: c.Random, Logger: c.Log, Observer: metrics, Development: c.Development,
	})
	if err != nil {
		return i, err
	}
	i.server = server.New(server.Config{
		Inbox: i.inbox.Handler(), Engine: engine{i.inbox}, Reader: i.store, Token: c.Token, Metrics: metrics, Log: c.Log,
	})
	return i, nil
}

func listen(address, flag string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use, perhaps by another onceward; choose another with %s", address, flag)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}

// Inbox is the address of the public listener as senders on this machine see it,
// Admin that of the admin listener: http://127.0.0.1:8080.
func (i *Instance) Inbox() string { return address(i.public) }

// Admin is the address of the admin listener.
func (i *Instance) Admin() string { return address(i.admin) }

func address(l net.Listener) string {
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return "http://" + l.Addr().String()
	}
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}

// Reader reads the instance's store.
func (i *Instance) Reader() onceward.Reader { return i.store }

// Run answers, and does the work, until ctx ends. Then it takes no more, answers
// what is under way, commits what was taken in, and closes everything.
func (i *Instance) Run(ctx context.Context) error {
	work, stop := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() { worked <- i.inbox.Run(work) }()
	err := i.server.Run(ctx, i.public, i.admin)
	i.public, i.admin = nil, nil // closed by the server
	stop()
	return errors.Join(err, <-worked, i.Close(ctx))
}

// Close closes what is open, in the order that loses nothing. Run does so too; Close
// is for an instance that is not run.
func (i *Instance) Close(ctx context.Context) error {
	var errs []error
	for _, l := range []net.Listener{i.public, i.admin} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	if i.inbox != nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		errs = append(errs, i.inbox.Close(end))
	}
	if i.store != nil {
		errs = append(errs, i.store.Close())
	}
	return errors.Join(errs...)
}
