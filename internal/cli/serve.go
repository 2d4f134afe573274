package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward/internal/cli/config"
	"github.com/onceward/onceward/internal/cli/instance"
	"github.com/onceward/onceward/provider"
)

type serveFlags struct {
	listen, admin string
	sources       []string
	verbose       bool
}

func serveCommand(a *app) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve [--config FILE] [--source PROVIDER]... [--listen ADDRESS] [--admin ADDRESS]",
		Short: "take deliveries in",
		Long: `Takes deliveries in: a public listener for the sources' paths and nothing else, and an
admin listener with /healthz, /readyz, /metrics and the JSON API under /v1.

With a configuration (--config, or onceward.yaml in this folder) its sources answer.
With --source, that provider answers at /in/PROVIDER with the secret that
$PROVIDER_WEBHOOK_SECRET holds. With neither it is the development mode: every
provider answers with a made-up secret that ` + "`onceward send`" + ` knows, on this machine only.

It ends on SIGTERM or SIGINT: it takes no more, and answers what is under way.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return a.serve(c.Context(), f) },
	}
	c.Flags().StringVar(&f.listen, "listen", "", "where deliveries come in (default :8080; in development 127.0.0.1:8080)")
	c.Flags().StringVar(&f.admin, "admin", "", "where the admin API is (default 127.0.0.1:8081)")
	c.Flags().StringArrayVar(&f.sources, "source", nil, "answer this provider with the secret of $PROVIDER_WEBHOOK_SECRET; may be repeated")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "log more")
	a.complete(c, "source", completeProviders)
	return c
}

func (a *app) serve(ctx context.Context, f serveFlags) error {
	cfg, lines, err := a.serveConfig(f)
	if err != nil {
		return err
	}
	inst, err := instance.Start(ctx, cfg)
	if err != nil {
		return err
	}
	if err := a.printServing(cfg, inst, lines(inst)); err != nil {
		return errors.Join(fmt.Errorf("write: %w", err), inst.Close(ctx))
	}
	switch {
	case cfg.Development && openToAll(cfg.Listen):
		cfg.Log.Warn("the development mode listens beyond this machine; its secrets are made up and its answers tell what became of rows", "listen", cfg.Listen)
	case cfg.Token == "" && openToAll(cfg.Admin):
		cfg.Log.Warn("without admin.token the admin API answers on this machine only", "listen", cfg.Admin)
	}
	cfg.Log.Info("ready", "inbox", inst.Inbox(), "admin", inst.Admin())
	err = inst.Run(ctx)
	if err == nil {
		cfg.Log.Info("stopped; everything taken in is stored")
	}
	return err
}

// printServing says what runs.
func (a *app) printServing(cfg instance.Config, i *instance.Instance, lines []string) error {
	if !a.json {
		return a.printLines(lines)
	}
	sources := map[string]string{}
	for name, s := range cfg.Sources {
		path := s.Path
		if path == "" {
			path = "/in/" + name
		}
		sources[name] = i.Inbox() + path
	}
	return a.printJSON(map[string]any{
		"inbox": i.Inbox(), "admin": i.Admin(), "store": instance.Describe(cfg.Store), "development": cfg.Development, "sources": sources,
	})
}

// serveConfig says what to run, and what to print once it listens.
func (a *app) serveConfig(f serveFlags) (instance.Config, func(*instance.Instance) []string, error) {
	level := slog.LevelInfo
	if f.verbose {
		level = slog.LevelDebug
	}
	s, err := a.setup(config.Read)
	cfg := instance.Config{
		Listen: devListen, Admin: devAdmin, Log: a.logger(level), Now: a.Now, Random: a.Random,
	}
	if err != nil {
		return cfg, nil, err
	}
	cfg.Store = s.store
	for flag, address := range map[string]string{"--listen": f.listen, "--admin": f.admin} {
		if address == "" {
			continue
		}
		if err := config.CheckAddress(address); err != nil {
			return cfg, nil, usage("%s: %w", flag, err)
		}
	}
	var print func(*instance.Instance) []string
	switch {
	case s.file != nil && len(f.sources) > 0:
		return cfg, nil, usage("--source is for a start without a configuration, and here is %s; write the source there", s.file.File)
	case s.file != nil:
		c := s.file
		if len(c.Sources) == 0 {
			return cfg, nil, fmt.Errorf("%s has no source; write one under sources, as\n  stripe: {provider: stripe, secrets: [$STRIPE_WEBHOOK_SECRET]}", c.File)
		}
		cfg.Listen, cfg.Admin, cfg.Token = c.Listen, c.Admin.Listen, c.Admin.Token
		cfg.PublicURL, cfg.TrustedProxies, cfg.Sources = c.PublicURL, c.TrustedProxies, fileSources(c)
		print = func(i *instance.Instance) []string { return servingLines(i, s, c.File) }
	case len(f.sources) > 0:
		if cfg.Sources, err = a.namedSources(f.sources); err != nil {
			return cfg, nil, err
		}
		print = func(i *instance.Instance) []string { return servingLines(i, s, strings.Join(f.sources, ", ")) }
	default:
		cfg.Development = true
		if cfg.Sources, err = a.devSources(s.store); err != nil {
			return cfg, nil, err
		}
		print = func(i *instance.Instance) []string { return devLines(i, s) }
	}
	if f.listen != "" {
		cfg.Listen = f.listen
	}
	if f.admin != "" {
		cfg.Admin = f.admin
	}
	return cfg, print, nil
}

// devLines say, in five lines, what runs and what to try.
func devLines(i *instance.Instance, s *setup) []string {
	send := "onceward send stripe"
	if i.Inbox() != "http://"+devListen {
		send += " --to " + i.Inbox()
	}
	return []string{
		"no " + config.DefaultFile + " here: development mode",
		fmt.Sprintf("  inbox    %s/in/PROVIDER   %d providers: onceward provider list", i.Inbox(), len(provider.Catalog())),
		"  store    " + s.describe(),
		"  admin    " + i.Admin(),
		"try        " + send,
		"for real   STRIPE_WEBHOOK_SECRET=whsec_... onceward serve --source stripe",
	}
}

// servingLines say what answers where.
func servingLines(i *instance.Instance, s *setup, from string) []string {
	lines := []string{
		"serving " + from,
		"  store    " + s.describe(),
		"  admin    " + i.Admin(),
	}
	if s.file == nil {
		for name := range strings.SplitSeq(from, ", ") {
			lines = append(lines, fmt.Sprintf("  %-8s %s/in/%s", name, i.Inbox(), name))
		}
		return lines
	}
	for _, source := range s.file.Sources {
		unsigned := ""
		if source.Provider.BodyUnsigned() {
			unsigned = "   body unsigned"
		}
		lines = append(lines, fmt.Sprintf("  %-8s %s%s%s", source.Name, i.Inbox(), source.Path, unsigned))
	}
	return lines
}

// openToAll reports whether an address listens beyond this machine.
func openToAll(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && !slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, host)
}
