package provider

import (
	"path"
	"slices"
	"strings"
)

// Options are what [Parse] needs besides the text.
type Options struct {
	// File is the name of the text in errors; "" means the provider's name with
	// .yaml behind it.
	File string
	// ReadFile reads a file that `provider: ./acme.yaml` names, by its path joined
	// to the directory of the file that names it, with slashes. Nil means that the
	// text may start from the catalogue only.
	ReadFile func(name string) ([]byte, error)
	// Secrets are values, not references. Without one the provider reads, and
	// Verify rejects whatever needs a secret.
	Secrets []string
	// Params are values by name.
	Params map[string]string
}

// Parse compiles one provider file, or the keys by which a source describes its
// sender. All faults are returned at once, as [*Errors].
func Parse(name string, text []byte, opts Options) (*Provider, error) {
	file := opts.File
	if file == "" {
		file = name + ".yaml"
	}
	ps := &problems{}
	src := newSource(file, text, false)
	l := layering{read: opts.ReadFile, ps: ps}
	root := l.root(parseNode(src, text, ps))
	if root == nil && len(ps.faults) == 0 {
		ps.add(place{src: src}, "the file is empty; it needs at least verify, as verify: {scheme: hmac, header: X-Signature}")
	}
	if root != nil {
		root = l.over(root, file, []string{path.Clean(strings.ReplaceAll(file, `\`, "/"))})
	}
	in := inputs{secrets: opts.Secrets, params: opts.Params, secretsAt: place{src: src}, paramsAt: place{src: src}}
	return finish(name, root, in, ps, true)
}

// SourceConfig describes a configured source.
type SourceConfig struct {
	// Name is the source's.
	Name string
	// Provider is a name of the catalogue or a file as ./acme.yaml; "" if Text
	// says so itself or describes the sender.
	Provider string
	// Secrets and Params are values; references are resolved before.
	Secrets []string
	Params  map[string]string
	// Text is YAML that holds the source's keys, as the whole onceward.yaml, and At
	// are the keys that lead to them, as {"sources", "shop"}. The source's own keys
	// (secrets, params, path, max_body) may stand there and are not read here. Text
	// may be empty.
	Text []byte
	At   []string
	// File is the name of Text in errors, and what ./acme.yaml is relative to.
	File string
	// ReadFile is as in [Options].
	ReadFile func(name string) ([]byte, error)
}

// inputs are what a source gives besides its keys.
type inputs struct {
	strict              bool // a source: what is required must be there
	secrets             []string
	params              map[string]string
	secretsAt, paramsAt place
}

// Compile compiles a configured source: the keys beside `provider:` are laid over
// what it names. Unlike [Parse] it also wants every required param and the secrets
// that verification needs. All faults are returned at once, as [*Errors]; none
// holds a secret.
func Compile(cfg SourceConfig) (*Provider, error) {
	ps := &problems{}
	src := newSource(cfg.File, cfg.Text, false)
	in := inputs{strict: true, secrets: cfg.Secrets, params: cfg.Params}
	keys, at := sourceMap(cfg, src, ps)
	in.secretsAt, in.paramsAt = at, at
	name := cfg.Name
	var root *node
	if keys != nil {
		if n := keys.key("secrets"); n != nil {
			in.secretsAt = n.at
		}
		if n := keys.key("params"); n != nil {
			in.paramsAt = n.at
		}
		l := layering{read: cfg.ReadFile, ps: ps}
		ref, own := l.startsFrom(withoutSourceKeys(keys))
		if ref == nil && cfg.Provider != "" {
			ref = &node{text: cfg.Provider, at: at}
		}
		root = own
		if ref != nil {
			name = providerName(ref.text)
			if base := l.base(ref.text, ref.at, cfg.File, nil); base != nil {
				root = l.merge(base, own, nil)
			} else {
				root = nil
			}
		}
	}
	return finish(name, root, in, ps, false)
}

// providerName is the name of a provider by the name or file that a source gives.
func providerName(ref string) string {
	if !isFile(ref) {
		return ref
	}
	base := path.Base(strings.ReplaceAll(ref, `\`, "/"))
	return strings.TrimSuffix(strings.TrimSuffix(base, ".yaml"), ".yml")
}

// sourceMap finds the map with the source's keys, which is empty if there is no
// text, and where it stands.
func sourceMap(cfg SourceConfig, src *source, ps *problems) (*node, place) {
	at := place{src: src}
	n := parseNode(src, cfg.Text, ps)
	if n == nil {
		if len(ps.faults) > 0 {
			return nil, at
		}
		return &node{kind: mapNode, at: at}, at
	}
	for _, key := range cfg.At {
		next := n.get(key)
		if next == nil {
			ps.add(n.at, "there is nothing under %s", strings.Join(cfg.At, "."))
			return nil, at
		}
		at, n = n.key(key).at, next
	}
	switch {
	case n.kind == scalarNode && n.empty:
		return &node{kind: mapNode, at: at}, at
	case n.kind != mapNode:
		ps.add(n.at, "source %s is a map of keys as provider and secrets; this is %s", cfg.Name, n.what())
		return nil, at
	}
	return n, at
}

// withoutSourceKeys returns the keys that describe the sender.
func withoutSourceKeys(keys *node) *node {
	own := *keys
	own.entries = slices.DeleteFunc(slices.Clone(keys.entries), func(e entry) bool {
		return slices.Contains(sourceKeys, e.key.text) || e.key.text == "params"
	})
	return &own
}

// finish compiles the layered root and returns the provider or all that is wrong.
func finish(name string, root *node, in inputs, ps *problems, all bool) (*Provider, error) {
	var p *Provider
	if root != nil {
		p = compileAll(name, root, in, ps)
	}
	if err := ps.err(); err != nil {
		return nil, err
	}
	p.warnings = inOrder(ps.warnings)
	if all {
		p.warnings = inOrder(append(ps.warnings, ps.builtin...))
	}
	return p, nil
}
