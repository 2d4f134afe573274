package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward/internal/cli/config"
	"github.com/onceward/onceward/internal/cli/instance"
	"github.com/onceward/onceward/provider"
)

func checkCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "say what is wrong with a configuration or a provider file",
		Long: `Reads onceward.yaml, or the FILE named, and says everything that is wrong with it at once,
each with its place, what was expected and the likely fix; then what is not wrong but
likely not meant, such as a clock that cannot tell two statuses apart.

A file that has "verify" or "facts" at its top is a provider file and is read as one.
The exit code is 1 if there are faults; warnings alone are 0.`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			file := a.config
			if file == "" {
				file = config.DefaultFile
			}
			if len(given) == 1 {
				file = given[0]
			}
			return a.check(file)
		},
	}
}

// problem is a fault or a warning as --json shows it.
type problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

func problemsOf(list []provider.Problem) []problem {
	out := []problem{}
	for _, p := range list {
		out = append(out, problem{p.File, p.Line, p.Column, p.Message})
	}
	return out
}

// checked is what came of a check.
type checked struct {
	Faults   []problem `json:"faults"`
	Warnings []problem `json:"warnings"`
	warnings []provider.Problem
	said     string
}

func (a *app) check(file string) error {
	var done checked
	var err error
	text, readErr := os.ReadFile(file)
	if readErr == nil && config.IsProviderFile(text) {
		err = done.providerFile(file, text)
	} else {
		err = a.checkConfig(&done, file)
	}
	var faults *provider.Errors
	if err != nil && !errors.As(err, &faults) {
		return err
	}
	done.Faults, done.Warnings = []problem{}, problemsOf(done.warnings)
	if faults != nil {
		done.Faults = problemsOf(faults.Problems)
	}
	if a.json {
		err = a.printJSON(done)
	} else {
		err = a.printChecked(&done, faults)
	}
	if err == nil && faults != nil {
		return errNo
	}
	return err
}

func (c *checked) providerFile(file string, text []byte) error {
	p, err := provider.Parse(config.ProviderName(file), text, provider.Options{File: file, ReadFile: os.ReadFile})
	if err != nil {
		return err
	}
	c.warnings, c.said = p.Warnings(), fmt.Sprintf("%s: a provider file, %s", file, plural(int64(len(p.Kinds())), "kind"))
	return nil
}

func (a *app) checkConfig(done *checked, file string) error {
	c, err := a.readConfig(file, config.Read)
	if err != nil {
		return err
	}
	if len(c.Sources) == 0 {
		return fmt.Errorf("%s has no source, so nothing would be taken in; write one under sources, as\n  stripe: {provider: stripe, secrets: [$STRIPE_WEBHOOK_SECRET]}", file)
	}
	secrets := 0
	for _, s := range c.Sources {
		secrets += len(s.Secrets)
	}
	done.warnings = c.Warnings()
	if c.Admin.Token == "" && openToAll(c.Admin.Listen) {
		done.warnings = append(done.warnings, provider.Problem{File: file, Message: "admin.listen is open to other machines, but without admin.token the admin API answers only on this one; write admin: {token: $ONCEWARD_ADMIN_TOKEN}"})
	}
	done.said = fmt.Sprintf("%s: %s, %s, store %s", file, plural(int64(len(c.Sources)), "source"), plural(int64(secrets), "secret"), instance.Describe(c.Store))
	return nil
}

func (a *app) printChecked(done *checked, faults *provider.Errors) error {
	colour := a.colour()
	for _, w := range done.warnings {
		if err := a.print("%s %s", colour.Strong("warning"), w.String()); err != nil {
			return err
		}
	}
	if faults != nil {
		for _, p := range faults.Problems {
			if err := a.print("%s", p.String()); err != nil {
				return err
			}
		}
		return a.print("%s", colour.Bad(plural(int64(len(faults.Problems)), "fault")))
	}
	verdict := "no faults"
	if n := len(done.warnings); n > 0 {
		verdict += ", " + plural(int64(n), "warning")
	}
	return a.print("%s: %s", done.said, colour.Good(verdict))
}
