package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/cli/config"
	"github.com/onceward/onceward/internal/cli/instance"
	"github.com/onceward/onceward/provider"
)

func initCommand(a *app) *cobra.Command {
	var sources []string
	c := &cobra.Command{
		Use:   "init [--source PROVIDER]...",
		Short: "write onceward.yaml for what was used here",
		Long: `Writes onceward.yaml for what was used in this folder: the store, and a source for each
provider that has sent something to it, or that --source names. Secrets are references;
set $PROVIDER_WEBHOOK_SECRET before serve. A file that is there is never overwritten.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return a.init(c.Context(), sources) },
	}
	c.Flags().StringArrayVar(&sources, "source", nil, "write a source for this provider; may be repeated")
	a.complete(c, "source", completeProviders)
	return c
}

func (a *app) init(ctx context.Context, sources []string) error {
	file := a.config
	if file == "" {
		file = config.DefaultFile
	}
	store := config.DefaultStore
	if a.store != "" {
		store = a.store
	}
	if err := config.CheckStore(store); err != nil {
		return usage("--store: %w", err)
	}
	for _, name := range sources {
		if !slices.Contains(provider.Catalog(), name) {
			_, err := provider.Builtin(name)
			return &usageError{err}
		}
	}
	if len(sources) == 0 {
		var err error
		if sources, err = usedSources(ctx, store); err != nil {
			return err
		}
	}
	if len(sources) == 0 {
		sources = []string{"stripe"}
	}
	text, secrets := config.Initial(store, sources, variable)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already; `%s` says whether it is right", file, withConfig("check", file))
	}
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return a.initDone(file, store, sources, secrets)
}

// usedSources lists the providers of the catalogue that have sent something.
func usedSources(ctx context.Context, url string) (used []string, err error) {
	store, err := instance.OpenStore(ctx, url, instance.Read)
	if errors.Is(err, instance.ErrNoStore) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for _, name := range provider.Catalog() {
		events, err := store.Events(ctx, onceward.EventQuery{Source: name, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(events) > 0 {
			used = append(used, name)
		}
	}
	return used, nil
}

func (a *app) initDone(file, store string, sources, secrets []string) error {
	var unset []string
	for _, name := range secrets {
		if a.Getenv(name) == "" {
			unset = append(unset, "$"+name)
		}
	}
	if a.json {
		return a.printJSON(map[string]any{"file": file, "store": instance.Describe(store), "sources": sources, "unset": append([]string{}, unset...)})
	}
	word := "source"
	if len(sources) != 1 {
		word = "sources"
	}
	lines := []string{fmt.Sprintf("wrote %s: %s %s, store %s", file, word, strings.Join(sources, ", "), instance.Describe(store))}
	if len(unset) > 0 {
		lines = append(lines, "set        "+strings.Join(unset, ", ")+" to what the sender shows")
	}
	return a.printLines(append(lines, "then       "+withConfig("check", file)+", "+withConfig("serve", file)))
}
