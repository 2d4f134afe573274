package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward/internal/cli/screen"
)

// The exit codes.
const (
	exitOK    = 0
	exitNo    = 1
	exitUsage = 2
)

// World is what a command may touch besides the files and the network.
type World struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Now            func() time.Time
	// Random gives secrets and identifiers.
	Random io.Reader
}

// Main runs one command and returns the exit code. args are those behind the
// program's name. ctx ends what would else run on, as on SIGTERM.
func Main(ctx context.Context, args []string, w World) int {
	a := &app{World: w}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(w.Stdin)
	root.SetOut(w.Stdout)
	root.SetErr(w.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return a.exit(cmd, err)
}

// app is one run of the command line.
type app struct {
	World
	// The flags of every command.
	config, store string
	json          bool
}

// usageError is a call that means nothing: exit code 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// errNo ends a command with exit code 1 after it has said why itself.
var errNo = errors.New("no")

// exit says what went wrong and returns the exit code.
func (a *app) exit(cmd *cobra.Command, err error) int {
	var misuse *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNo):
		return exitNo
	case errors.As(err, &misuse):
		a.complain("%s\nsee %s --help", err, cmd.CommandPath())
		return exitUsage
	}
	a.complain("%s", err)
	return exitNo
}

// complain writes to standard error; that it cannot be written is nowhere to be
// told.
func (a *app) complain(format string, args ...any) {
	_, _ = fmt.Fprintf(a.Stderr, format+"\n", args...)
}

// command is one entry of the table.
type command func(a *app) *cobra.Command

// commands is the table of the command line: the one list that help, completion
// and the tests are made from.
func commands() []command {
	return []command{
		demoCommand, serveCommand, initCommand, sendCommand, verifyCommand,
		entitiesCommand, eventsCommand, checkCommand, configCommand,
		migrateCommand, providerCommand, versionCommand,
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "onceward",
		Short: "an inbox for webhooks: every event once, every row right",
		Long: `Onceward is an inbox for webhooks. Senders deliver at least once and in no order;
Onceward makes of that one durable copy of every event and one correct row per
sale, job or subscription.

Begin with:  onceward demo

Exit codes: 0 done; 1 it could not be done, or the answer is no; 2 the call means nothing.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.config, "config", "", "the configuration (default onceward.yaml where there is one)")
	flags.StringVar(&a.store, "store", "", "sqlite:FILE or postgres://… in place of the configuration's")
	flags.BoolVar(&a.json, "json", false, "write one JSON value")
	group(root)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	for _, make := range commands() {
		root.AddCommand(make(a))
	}
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			group(c) // so that a shell it does not know is refused
		}
	}
	for _, c := range allCommands(root) {
		c.DisableFlagsInUseLine = true
	}
	return root
}

// group makes a command that only holds others say which, and refuse those it
// does not hold.
func group(c *cobra.Command) *cobra.Command {
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		hint := ""
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			hint = fmt.Sprintf("; did you mean %q?", near[0])
		}
		return usage("%s has no command %q%s", c.CommandPath(), args[0], hint)
	}
	c.SuggestionsMinimumDistance = 2
	return c
}

func allCommands(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		all = append(all, allCommands(sub)...)
	}
	return all
}

// args wraps a check of positional arguments so that its refusal is a usage
// error that shows the form.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, given []string) error {
		if err := check(c, given); err != nil {
			return usage("%w; the form is: %s", err, c.UseLine())
		}
		return nil
	}
}

// print writes a line of the result.
func (a *app) print(format string, args ...any) error {
	_, err := fmt.Fprintf(a.Stdout, format+"\n", args...)
	return err
}

// printJSON writes the result as one JSON value.
func (a *app) printJSON(value any) error {
	enc := json.NewEncoder(a.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

// printLines writes lines of the result.
func (a *app) printLines(lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	return a.print("%s", strings.Join(lines, "\n"))
}

// colour is on where standard output is a terminal and nobody asked for none.
func (a *app) colour() screen.Colour {
	return screen.Colour{On: isTerminal(a.Stdout) && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
