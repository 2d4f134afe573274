package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/cli/config"
	"github.com/onceward/onceward/internal/cli/dev"
	"github.com/onceward/onceward/internal/cli/instance"
	"github.com/onceward/onceward/provider"
)

// Where the development mode listens: on this machine only.
const (
	devListen = "127.0.0.1:8080"
	devAdmin  = config.DefaultAdmin
)

// setup is what a command works on: a configuration file, or the development mode
// of this folder.
type setup struct {
	// file is nil in development mode.
	file  *config.Config
	store string
}

// world looks references up in this process.
func (a *app) world() config.World {
	return config.World{
		ReadFile: os.ReadFile,
		Getenv: func(name string) (string, bool) {
			value := a.Getenv(name)
			return value, value != ""
		},
	}
}

// reader is config.Read or config.Glance.
type reader = func(file string, text []byte, w config.World) (*config.Config, error)

// readConfig reads a configuration file.
func (a *app) readConfig(file string, read reader) (*config.Config, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s; `%s` writes one", file, withConfig("init", file))
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return read(file, text, a.world())
}

// withConfig is a command that works on the same configuration file.
func withConfig(command, file string) string {
	if file == config.DefaultFile {
		return "onceward " + command
	}
	return "onceward " + command + " --config " + shellWord(file)
}

// setup finds the configuration: --config, else onceward.yaml if there is one,
// else the development mode.
func (a *app) setup(read reader) (*setup, error) {
	s := &setup{store: config.DefaultStore}
	file := a.config
	if file == "" {
		_, err := os.Stat(config.DefaultFile)
		switch {
		case err == nil:
			file = config.DefaultFile
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("look for %s: %w", config.DefaultFile, err)
		}
	}
	if file != "" {
		c, err := a.readConfig(file, read)
		if err != nil {
			return nil, err
		}
		s.file, s.store = c, relativeStore(c)
	}
	if a.store != "" {
		if err := config.CheckStore(a.store); err != nil {
			return nil, usage("--store: %w", err)
		}
		s.store = a.store
	}
	return s, nil
}

// relativeStore takes an SQLite file from the folder of the configuration.
func relativeStore(c *config.Config) string {
	path, isFile := strings.CutPrefix(c.Store, "sqlite:")
	if !isFile || filepath.IsAbs(path) || filepath.Dir(c.File) == "." {
		return c.Store
	}
	return "sqlite:" + filepath.Join(filepath.Dir(c.File), path)
}

// variable is the name of the environment variable that holds the secret of a
// source that no file describes.
func variable(source string) string {
	return strings.ToUpper(strings.ReplaceAll(source, "-", "_")) + "_WEBHOOK_SECRET"
}

// devSources compiles a source for every provider of the catalogue. A secret that
// stands in the environment is live beside the made-up one.
func (a *app) devSources(store string) (map[string]inbox.Source, error) {
	if err := instance.CheckFile(store); err != nil {
		return nil, err
	}
	secrets, err := dev.Ensure(dev.PathFor(store), provider.Catalog(), a.Random)
	if err != nil {
		return nil, err
	}
	sources := map[string]inbox.Source{}
	for name := range secrets {
		var more []string
		if secret := a.Getenv(variable(name)); secret != "" {
			more = append(more, secret)
		}
		p, err := secrets.Source(name, more...)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", name, err)
		}
		sources[name] = inbox.Source{Compiled: p}
	}
	return sources, nil
}

// namedSources compiles the sources of --source, whose secrets stand in the
// environment.
func (a *app) namedSources(names []string) (map[string]inbox.Source, error) {
	sources := map[string]inbox.Source{}
	var errs []error
	for _, name := range names {
		p, err := a.namedSource(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sources[name] = inbox.Source{Compiled: p}
	}
	return sources, errors.Join(errs...)
}

func (a *app) namedSource(name string) (*provider.Provider, error) {
	if _, err := provider.Builtin(name); err != nil {
		return nil, usage("%w", err)
	}
	secret := a.Getenv(variable(name))
	if secret == "" {
		return nil, fmt.Errorf("$%s is not set; it holds the secret that the sender shows, as\n  %s=… onceward serve --source %s", variable(name), variable(name), name)
	}
	if err := config.CheckSecret(secret); err != nil {
		return nil, fmt.Errorf("$%s %w", variable(name), err)
	}
	p, err := provider.Compile(provider.SourceConfig{Name: name, Provider: name, Secrets: []string{secret}})
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", name, err)
	}
	return p, nil
}

// fileSources are those of a configuration.
func fileSources(c *config.Config) map[string]inbox.Source {
	sources := map[string]inbox.Source{}
	for _, s := range c.Sources {
		sources[s.Name] = inbox.Source{Compiled: s.Provider, MaxBody: s.MaxBody, Path: s.Path}
	}
	return sources
}

// provider returns the provider of a source by which its facts were read, nil if
// it is not known here.
func (s *setup) provider(source string) *provider.Provider {
	if s.file != nil {
		if found := s.file.Source(source); found != nil {
			return found.Provider
		}
		return nil
	}
	p, err := provider.Builtin(source)
	if err != nil {
		return nil
	}
	return p
}

// describe names the store for people.
func (s *setup) describe() string { return instance.Describe(s.store) }
