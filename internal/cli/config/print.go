package config

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

// Effective returns the configuration as it stands in the file, with every
// default filled in: maps, lists and texts. References stay references, and a
// password in the store's address is masked.
func (c *Config) Effective() any { return plain(c.effective()) }

// Print writes what Effective returns as YAML.
func (c *Config) Print() ([]byte, error) {
	text, err := yaml.Dump(c.effective())
	if err != nil {
		return nil, fmt.Errorf("print the configuration: %w", err)
	}
	return text, nil
}

// effective builds the tree anew in the order of the table of keys.
func (c *Config) effective() *yaml.Node {
	var doc yaml.Node
	file := &yaml.Node{Kind: yaml.MappingNode}
	if yaml.Load(c.Text, &doc) == nil && doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		file = doc.Content[0]
	}
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	put(root, "store", scalar(masked(c.StoreFrom)))
	put(root, "listen", scalar(c.Listen))
	if c.PublicURL != "" {
		put(root, "public_url", scalar(c.PublicURL))
	}
	admin := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	put(admin, "listen", scalar(c.Admin.Listen))
	if c.Admin.TokenFrom != "" {
		put(admin, "token", scalar(c.Admin.TokenFrom))
	}
	put(root, "admin", admin)
	if len(c.TrustedProxies) > 0 {
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
		for _, prefix := range c.TrustedProxies {
			list.Content = append(list.Content, scalar(prefix.String()))
		}
		put(root, "trusted_proxies", list)
	}
	sources := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, s := range c.Sources {
		put(sources, s.Name, s.effective(get(get(file, "sources"), s.Name)))
	}
	put(root, "sources", sources)
	return root
}

func (s *Source) effective(file *yaml.Node) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if file != nil && file.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(file.Content); i += 2 {
			if key := file.Content[i].Value; key != "path" && key != "max_body" {
				put(out, key, bare(file.Content[i+1]))
			}
		}
	}
	put(out, "path", scalar(s.Path))
	put(out, "max_body", scalar(sizeText(s.MaxBody)))
	return out
}

// bare copies a node without its comments.
func bare(n *yaml.Node) *yaml.Node {
	copied := *n
	copied.HeadComment, copied.LineComment, copied.FootComment = "", "", ""
	copied.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		copied.Content[i] = bare(child)
	}
	return &copied
}

func scalar(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if strings.ContainsAny(text, `:#,'"{}[]&*!|>%@`) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

func put(m *yaml.Node, key string, value *yaml.Node) {
	m.Content = append(m.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
}

func get(m *yaml.Node, key string) *yaml.Node {
	if m == nil || m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// plain turns a node into maps, lists and texts.
func plain(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			out[n.Content[i].Value] = plain(n.Content[i+1])
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, item := range n.Content {
			out = append(out, plain(item))
		}
		return out
	}
	return n.Value
}

// masked hides a password in a store's address.
func masked(store string) string {
	if u, err := url.Parse(store); err == nil && u.User != nil {
		return u.Redacted()
	}
	return store
}

func sizeText(n int64) string {
	switch {
	case n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + "MiB"
	case n%(1<<10) == 0:
		return strconv.FormatInt(n>>10, 10) + "KiB"
	}
	return strconv.FormatInt(n, 10)
}

// IsProviderFile reports whether a text is a provider file rather than a
// configuration: it describes a sender at its top.
func IsProviderFile(text []byte) bool {
	var doc yaml.Node
	if yaml.Load(text, &doc) != nil || doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return false
	}
	root := doc.Content[0]
	own := slices.ContainsFunc(Keys(), func(k Key) bool { return get(root, k.Name) != nil })
	return !own && slices.ContainsFunc([]string{"verify", "facts", "provider", "event"}, func(key string) bool { return get(root, key) != nil })
}

// ProviderName is the name of the provider that a file describes: the file's own.
func ProviderName(file string) string {
	base := path.Base(strings.ReplaceAll(file, `\`, "/"))
	return strings.TrimSuffix(strings.TrimSuffix(base, ".yaml"), ".yml")
}

// Initial is the text of a first configuration, and the variables it refers to.
// variable names the one that holds a source's secret.
func Initial(store string, sources []string, variable func(string) string) (text string, variables []string) {
	b := &strings.Builder{}
	line := func(about, format string, args ...any) {
		fmt.Fprintf(b, "%-40s # %s\n", fmt.Sprintf(format, args...), about)
	}
	b.WriteString("# All that may stand here: onceward config schema. Is it right: onceward check\n")
	if strings.HasPrefix(store, "sqlite:") {
		line("or postgres://…, or $DATABASE_URL", "store: %s", store)
	} else { // its address may hold a password
		variables = append(variables, "DATABASE_URL")
		b.WriteString("store: $DATABASE_URL\n")
	}
	line("public: the sources' paths, nothing else", "listen: %q", DefaultListen)
	line("token: $ONCEWARD_ADMIN_TOKEN to reach it from elsewhere", "admin: {listen: %q}", DefaultAdmin)
	b.WriteString("sources:\n")
	for _, s := range sources {
		fmt.Fprintf(b, "  %s: {provider: %s, secrets: [$%s]}\n", s, s, variable(s))
		variables = append(variables, variable(s))
	}
	return b.String(), variables
}
