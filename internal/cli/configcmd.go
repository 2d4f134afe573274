package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward/internal/cli/config"
	"github.com/onceward/onceward/internal/cli/instance"
)

func configCommand(a *app) *cobra.Command {
	c := group(&cobra.Command{Use: "config", Short: "the configuration in force, and its schema"})
	c.AddCommand(
		&cobra.Command{
			Use:   "print",
			Short: "the configuration with its defaults; references stay references",
			Args:  args(cobra.NoArgs),
			RunE:  func(*cobra.Command, []string) error { return a.printConfig() },
		},
		&cobra.Command{
			Use:   "schema",
			Short: "the JSON Schema of onceward.yaml, for editors",
			Long: `Writes the JSON Schema of onceward.yaml. An editor with a YAML language server reads it with
this first line in the file:

  # yaml-language-server: $schema=./onceward.schema.json`,
			Args: args(cobra.NoArgs),
			RunE: func(*cobra.Command, []string) error {
				_, err := a.Stdout.Write(config.Schema())
				return err
			},
		},
	)
	return c
}

func (a *app) printConfig() error {
	s, err := a.setup(config.Glance)
	if err != nil {
		return err
	}
	if s.file == nil {
		return fmt.Errorf("there is no %s here: the development mode has none; `onceward init` writes one", config.DefaultFile)
	}
	if a.json {
		return a.printJSON(s.file.Effective())
	}
	text, err := s.file.Print()
	if err != nil {
		return err
	}
	_, err = a.Stdout.Write(text)
	return err
}

func migrateCommand(a *app) *cobra.Command {
	var print bool
	c := &cobra.Command{
		Use:   "migrate [--print]",
		Short: "bring the store's tables up to date, or print the SQL that does",
		Long: `Brings the store's tables up to date, each step in one transaction. serve does the same when
it starts; migrate is for those who want it done at a time of their own.

With --print it writes the SQL and touches nothing.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.setup(config.Glance)
			if err != nil {
				return err
			}
			steps, err := instance.Migrations(s.store)
			if err != nil {
				return err
			}
			if print {
				return a.printMigrations(steps)
			}
			store, err := instance.OpenStore(c.Context(), s.store, instance.Write)
			if err != nil {
				return err
			}
			if err := store.Close(); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"store": s.describe(), "version": steps[len(steps)-1].Version})
			}
			return a.print("%s is at version %d of the schema", s.describe(), steps[len(steps)-1].Version)
		},
	}
	c.Flags().BoolVar(&print, "print", false, "write the SQL and touch nothing")
	return c
}

func (a *app) printMigrations(steps []instance.Migration) error {
	if a.json {
		return a.printJSON(steps)
	}
	for _, step := range steps {
		if err := a.print("-- %d: %s\n%s", step.Version, step.Name, step.SQL); err != nil {
			return err
		}
	}
	return nil
}
