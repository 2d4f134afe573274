package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/cli/config"
	"github.com/onceward/onceward/internal/cli/screen"
	"github.com/onceward/onceward/provider"
)

func providerCommand(a *app) *cobra.Command {
	c := group(&cobra.Command{Use: "provider", Aliases: []string{"providers"}, Short: "the catalogue of senders"})
	list := &cobra.Command{
		Use:   "list",
		Short: "the providers of the catalogue",
		Args:  args(cobra.NoArgs),
		RunE:  func(*cobra.Command, []string) error { return a.listProviders() },
	}
	var file bool
	show := &cobra.Command{
		Use:               "show PROVIDER [--file]",
		Short:             "what is known of a provider, or of a file of one's own, as ./acme.yaml",
		Args:              args(cobra.ExactArgs(1)),
		RunE:              func(_ *cobra.Command, given []string) error { return a.showProvider(given[0], file) },
		ValidArgsFunction: completeProviders,
	}
	show.Flags().BoolVar(&file, "file", false, "write its file, with the kinds it uses")
	c.AddCommand(list, show)
	return c
}

// providerShape is a provider as --json shows it.
type providerShape struct {
	Name         string            `json:"name"`
	Title        string            `json:"title"`
	Docs         []string          `json:"docs"`
	BodyUnsigned bool              `json:"body_unsigned"`
	Params       []paramShape      `json:"params"`
	Kinds        []kindShape       `json:"kinds"`
	Notes        map[string]string `json:"notes"`
	Samples      []string          `json:"samples"`
	notes        []provider.Note
}

type paramShape struct {
	Name     string `json:"name"`
	Required bool   `json:"required"`
	Secret   bool   `json:"secret"`
	About    string `json:"about"`
}

type kindShape struct {
	Name     string     `json:"name"`
	States   [][]string `json:"states"`
	Terminal []string   `json:"terminal"`
	Order    []string   `json:"order"`
}

func shapeOf(p *provider.Provider) providerShape {
	s := providerShape{
		Name: p.Name(), Title: p.Title(), Docs: p.Docs(), BodyUnsigned: p.BodyUnsigned(), Params: []paramShape{},
		Kinds: []kindShape{}, Notes: map[string]string{}, Samples: []string{}, notes: p.Notes(),
	}
	for _, param := range p.Params() {
		s.Params = append(s.Params, paramShape(param))
	}
	kinds := p.Kinds()
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		s.Kinds = append(s.Kinds, kindOf(kinds[name]))
	}
	for _, note := range p.Notes() {
		s.Notes[note.Name] = note.Text
	}
	s.Samples = append(s.Samples, sampleTypes(p.Name())...)
	return s
}

func kindOf(k *onceward.Kind) kindShape {
	shape := kindShape{Name: k.Name, States: k.States, Terminal: append([]string{}, k.Terminal...)}
	for _, c := range k.Order {
		shape.Order = append(shape.Order, c.String())
	}
	return shape
}

func (a *app) listProviders() error {
	var shapes []providerShape
	for _, name := range provider.Catalog() {
		p, err := provider.Builtin(name)
		if err != nil {
			return err
		}
		shapes = append(shapes, shapeOf(p))
	}
	if a.json {
		return a.printJSON(shapes)
	}
	t := &screen.Table{Most: []int{0, 24, 38}, Whole: !isTerminal(a.Stdout)}
	t.Add("provider", "title", "kinds", "")
	for _, s := range shapes {
		note := ""
		if s.BodyUnsigned {
			note = "body unsigned"
		}
		t.Add(s.Name, s.Title, kindNames(s.Kinds), note)
	}
	return t.Write(a.Stdout, "")
}

func kindNames(kinds []kindShape) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name
	}
	return strings.Join(names, ", ")
}

// openProvider returns a provider of the catalogue, or one that a file of one's
// own describes, as ./acme.yaml.
func openProvider(name string) (p *provider.Provider, own bool, err error) {
	own = strings.Contains(name, "/") || filepath.IsAbs(name) || slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name))
	if !own {
		if p, err = provider.Builtin(name); err != nil {
			return nil, false, &usageError{err}
		}
		return p, false, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, true, fmt.Errorf("read the provider file: %w", err)
	}
	p, err = provider.Parse(config.ProviderName(name), text, provider.Options{File: name, ReadFile: os.ReadFile})
	return p, true, err
}

func (a *app) showProvider(name string, file bool) error {
	p, own, err := openProvider(name)
	if err != nil {
		return err
	}
	if file {
		_, err := a.Stdout.Write(p.Doc())
		return err
	}
	s := shapeOf(p)
	if own {
		s.Samples = []string{} // those of a catalogue's provider of that name are not its own
	}
	if a.json {
		return a.printJSON(s)
	}
	return a.printLines(providerLines(&s))
}

func providerLines(s *providerShape) []string {
	lines := []string{s.Name + "   " + s.Title}
	for _, doc := range s.Docs {
		lines = append(lines, "  "+doc)
	}
	if s.BodyUnsigned {
		lines = append(lines, "", "  body unsigned: the sender's signature does not cover what it says; confirm what matters with it")
	}
	section := func(t *screen.Table) {
		if t.Len() > 0 {
			lines = append(append(lines, ""), t.Lines("  ")...)
		}
	}
	params := &screen.Table{}
	for _, p := range s.Params {
		word := "optional"
		if p.Required {
			word = "required"
		}
		if p.Secret {
			word += ", secret"
		}
		params.Add("param "+p.Name, word, p.About)
	}
	section(params)
	kinds := &screen.Table{}
	for _, k := range s.Kinds {
		kinds.Add(k.Name, "["+strings.Join(k.Order, ", ")+"]", stateWords(k))
	}
	section(kinds)
	var notes []string
	for _, n := range s.notes {
		for i, line := range screen.Wrap(n.Text, screen.Width-16) {
			label := ""
			if i == 0 {
				label = n.Name
			}
			notes = append(notes, fmt.Sprintf("  %-12s  %s", label, line))
		}
	}
	if len(notes) > 0 {
		lines = append(append(lines, ""), notes...)
	}
	if len(s.Samples) > 0 {
		lines = append(lines, "", "  to try      onceward send "+s.Name+" "+s.Samples[0])
	}
	return lines
}

func stateWords(k kindShape) string {
	var words []string
	for _, group := range k.States {
		named := slices.Clone(group)
		for i, state := range named {
			if slices.Contains(k.Terminal, state) {
				named[i] = state + "!"
			}
		}
		if len(named) == 1 {
			words = append(words, named[0])
		} else {
			words = append(words, "["+strings.Join(named, ", ")+"]")
		}
	}
	return strings.Join(words, ", ")
}
