package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/cli/config"
	"github.com/onceward/onceward/provider"
)

// completer gives the values that may stand next.
type completer = func(c *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective)

const noFiles = cobra.ShellCompDirectiveNoFileComp

// complete attaches values to a flag.
func (a *app) complete(c *cobra.Command, flag string, values completer) {
	if err := c.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // the flag is not defined: a fault of the table
	}
}

func completeProviders(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, noFiles
	}
	return provider.Catalog(), noFiles
}

// completeSources gives the sources of the configuration, else the catalogue.
func (a *app) completeSources(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	s, err := a.setup(config.Glance)
	if err != nil || s.file == nil {
		return provider.Catalog(), noFiles
	}
	var names []string
	for _, source := range s.file.Sources {
		names = append(names, source.Name)
	}
	return names, noFiles
}

// Completion answers while a person types, so it asks for little and waits
// briefly.
const (
	completeMost = 50
	completeWait = time.Second
)

func (a *app) completeEntities(c *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	var words []string
	seen := map[string]bool{}
	note := func(word string) {
		if !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	}
	a.glance(c.Context(), func(ctx context.Context, store onceward.Reader) {
		q := onceward.EntityQuery{Limit: completeMost}
		if len(given) > 0 {
			q.Kind = given[len(given)-1]
		}
		rows, err := store.Entities(ctx, q)
		if err != nil {
			return
		}
		for _, row := range rows {
			if len(given) == 0 {
				note(row.Kind)
			} else {
				note(row.Key)
			}
		}
	})
	return words, noFiles
}

func (a *app) completeEvents(c *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	var words []string
	if len(given) > 0 {
		return nil, noFiles
	}
	a.glance(c.Context(), func(ctx context.Context, store onceward.Reader) {
		events, err := store.Events(ctx, onceward.EventQuery{Limit: completeMost})
		if err != nil {
			return
		}
		for i := range events {
			words = append(words, cobra.CompletionWithDesc(strconv.FormatInt(events[i].ID, 10), eventType(&events[i])))
		}
	})
	return words, noFiles
}

// glance reads from the store if that is possible; a person who types is told of
// no fault.
func (a *app) glance(ctx context.Context, read func(context.Context, onceward.Reader)) {
	ctx, cancel := context.WithTimeout(ctx, completeWait)
	defer cancel()
	_ = a.reading(ctx, func(_ *setup, store onceward.Reader) error {
		read(ctx, store)
		return nil
	})
}
