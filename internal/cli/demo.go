package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward/internal/cli/demo"
)

func demoCommand(a *app) *cobra.Command {
	var exit bool
	var seed uint64
	c := &cobra.Command{
		Use:   "demo [--exit] [--seed N]",
		Short: "watch duplicated, reordered, concurrent webhooks end in the right state",
		Long: `Starts a real server on free ports of this machine, over a temporary SQLite file, and plays
two stories to it over real HTTP with real signatures: a song whose callbacks come 64
times at once, and a day of 40 sales from four payment senders. Beside it stand two naive
handlers that get the very same deliveries.

Every figure of Onceward is read back from the store and compared with the script of the
day; the exit code is 1 if they do not agree. Without --exit the server then stays up, to
be looked at, until it is interrupted (Ctrl-C); then its folder is removed.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return a.demo(c.Context(), exit, seed) },
	}
	c.Flags().BoolVar(&exit, "exit", false, "end when the stories are told")
	c.Flags().Uint64Var(&seed, "seed", 1, "draw another day")
	return c
}

func (a *app) demo(ctx context.Context, exit bool, seed uint64) (err error) {
	dir, err := os.MkdirTemp("", "onceward-demo-")
	if err != nil {
		return fmt.Errorf("make a folder for the demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	progress := func(format string, args ...any) {
		if isTerminal(a.Stderr) && !a.json {
			a.complain("... "+format, args...)
		}
	}
	return demo.Run(ctx, demo.Options{
		Dir: dir, Seed: seed, Now: a.Now, Random: a.Random, Log: a.logger(slog.LevelWarn), Progress: progress,
		Played: func(r *demo.Result, where demo.Where) error { return a.demoPlayed(ctx, r, where, exit) },
	})
}

// demoPlayed shows the result and, unless asked to end, waits for the end.
func (a *app) demoPlayed(ctx context.Context, r *demo.Result, where demo.Where, exit bool) error {
	var err error
	if a.json {
		err = a.printJSON(r)
	} else {
		err = a.printLines(append(r.Lines(a.colour()), lookLines(where, exit)...))
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if !exit {
		<-ctx.Done()
	}
	if len(r.Faults) > 0 {
		return errNo
	}
	return nil
}

// lookLines say where to look while the demo is up, or what to do next.
func lookLines(where demo.Where, exit bool) []string {
	if exit {
		return []string{"next       onceward serve"}
	}
	return []string{
		"store      " + where.Store,
		"admin      " + where.Admin + "/v1/entities?kind=payment",
		"look       sqlite3 " + where.Store + ` "select kind, status, count(*) from onceward_entities group by 1, 2"`,
		"           onceward entities list --store sqlite:" + where.Store,
		"onceward   is what `go build -o onceward ./cmd/onceward` makes; or go run ./cmd/onceward",
		"stays up   until Ctrl-C; then the store and its folder are removed",
		"next       Ctrl-C, then: onceward serve",
	}
}
