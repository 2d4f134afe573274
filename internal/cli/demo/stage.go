package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/cli/instance"
	"github.com/onceward/onceward/provider"
)

// Options say how the demo runs.
type Options struct {
	// Dir is the folder for the SQLite file.
	Dir string
	// Seed draws the day.
	Seed     uint64
	Now      func() time.Time
	Random   io.Reader
	Log      *slog.Logger
	Progress func(format string, args ...any)
	// Played is called with the result once the stories are told, while the server
	// still answers. Run ends when it returns.
	Played func(*Result, Where) error
}

// Where says where to look while the demo is up.
type Where struct {
	// Store is the SQLite file, Inbox and Admin the addresses of the server.
	Store, Inbox, Admin string
}

// Run starts a server on free loopback ports, plays the stories to it and ends it
// again.
func Run(ctx context.Context, o Options) error {
	where := Where{Store: filepath.Join(o.Dir, "onceward-demo.db")}
	signers, sources, err := endpoints(o.Random)
	if err != nil {
		return err
	}
	inst, err := instance.Start(ctx, instance.Config{
		Store: "sqlite:" + where.Store, Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", Sources: sources,
		Log: o.Log, Now: o.Now, Random: o.Random,
	})
	if err != nil {
		return err
	}
	where.Inbox, where.Admin = inst.Inbox(), inst.Admin()
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- inst.Run(serving) }()
	result, err := Play(ctx, Stage{
		Inbox: where.Inbox, Admin: where.Admin, Sources: signers, Store: inst.Reader(), Seed: o.Seed, Now: o.Now, Progress: o.Progress,
	})
	if err == nil {
		err = o.Played(result, where)
	}
	stop()
	return errors.Join(err, <-ended)
}

// endpoints makes up a secret for each source of the stories.
func endpoints(random io.Reader) (map[string]Source, map[string]inbox.Source, error) {
	signers, sources := map[string]Source{}, map[string]inbox.Source{}
	for source, name := range map[string]string{
		"stripe": "stripe", "kiwify": "kiwify", "hotmart": "hotmart", "pagarme": "pagarme", "music": "sunoapi",
	} {
		p, err := provider.Builtin(name)
		if err != nil {
			return nil, nil, fmt.Errorf("source %s: %w", source, err)
		}
		secret, err := p.GenerateSecret(random)
		if err != nil {
			return nil, nil, fmt.Errorf("source %s: %w", source, err)
		}
		p, err = provider.Compile(provider.SourceConfig{Name: source, Provider: name, Secrets: []string{secret.Listed}})
		if err != nil {
			return nil, nil, fmt.Errorf("source %s: %w", source, err)
		}
		signers[source] = Source{Provider: p, Signing: secret.Signing}
		sources[source] = inbox.Source{Compiled: p}
	}
	return signers, sources, nil
}
