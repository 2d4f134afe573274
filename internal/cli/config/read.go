package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"github.com/onceward/onceward/provider"
)

// World is where references are looked up.
type World struct {
	// Getenv returns the value of a variable and whether it is set.
	Getenv func(name string) (string, bool)
	// ReadFile reads a file by its path; relative ones are taken from the folder of
	// the configuration by Read.
	ReadFile func(path string) ([]byte, error)
}

// Read reads the text of a configuration; file is its name. All faults are
// returned at once, as *provider.Errors.
func Read(file string, text []byte, w World) (*Config, error) { return read(file, text, w, false) }

// Glance is Read for those who take no deliveries in: a secret that is not to be
// had is no fault, and the source's provider then accepts nothing.
func Glance(file string, text []byte, w World) (*Config, error) { return read(file, text, w, true) }

func read(file string, text []byte, w World, glance bool) (*Config, error) {
	f := newFaults(file, text)
	c := &Config{
		File: file, Text: text, Store: DefaultStore, StoreFrom: DefaultStore, Listen: DefaultListen, Admin: Admin{Listen: DefaultAdmin},
	}
	if strings.TrimSpace(string(text)) == "" {
		return c, nil
	}
	var doc yaml.Node
	if err := yaml.Load(text, &doc); err != nil {
		return nil, syntax(file, text, err)
	}
	r := reader{faults: f, world: w, config: c, glance: glance}
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		r.root(doc.Content[0])
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// syntax lets package provider say what is wrong with the YAML, which it does
// with hints.
func syntax(file string, text []byte, cause error) error {
	_, err := provider.Compile(provider.SourceConfig{Text: text, File: file})
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: this is not YAML: %w", file, cause)
}

// reader reads one file.
type reader struct {
	*faults
	world  World
	config *Config
	glance bool
}

// members calls read for each key of a map, after it has refused what is no map,
// what is not known and what stands twice.
func (r *reader) members(n *yaml.Node, what string, known []string, read func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		if !isNothing(n) {
			r.add(n, "%s is a map; this is %s", what, kindOf(n))
		}
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		line, twice := first[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.add(key, "a key is a word, not %s", kindOf(key))
		case twice:
			r.add(key, "%q stands twice in this map, first in line %d", key.Value, line)
		case known != nil && !slices.Contains(known, key.Value):
			r.add(key, "unknown key %q in %s%s", key.Value, what, orMean(key.Value, "the keys are", known))
		default:
			read(key, value)
		}
		if !twice {
			first[key.Value] = key.Line
		}
	}
}

func (r *reader) root(n *yaml.Node) {
	c := r.config
	r.members(n, r.file, names(Keys()), func(key, value *yaml.Node) {
		switch key.Value {
		case "store":
			c.Store = r.storeURL(value)
		case "listen":
			c.Listen = r.address(value, "listen", c.Listen)
		case "public_url":
			c.PublicURL = r.publicURL(value)
		case "admin":
			r.admin(value)
		case "trusted_proxies":
			r.proxies(value)
		case "sources":
			r.sources(value)
		case "destinations":
			if !isNothing(value) && !(value.Kind == yaml.MappingNode && len(value.Content) == 0) {
				r.add(key, "destinations are not there yet; remove them or keep them commented")
			}
		}
	})
}

func (r *reader) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || isNothing(n) {
		r.add(n, "%s is a text; this is %s", what, kindOf(n))
		return ""
	}
	return n.Value
}

func (r *reader) storeURL(n *yaml.Node) string {
	text := r.text(n, "store")
	if text == "" {
		return DefaultStore
	}
	r.config.StoreFrom = text
	value := text
	if strings.HasPrefix(text, "$") {
		value = r.reference(n, "store")
	}
	if value == "" {
		return text
	}
	if err := CheckStore(value); err != nil {
		r.addHidden(n, "%v", err) // it may hold a password
	}
	return value
}

// CheckStore says whether a text names a store, and what would.
func CheckStore(text string) error {
	scheme, rest, found := strings.Cut(text, ":")
	switch {
	case found && scheme == "sqlite" && rest != "" && !strings.HasPrefix(rest, "//"):
		return nil
	case found && (scheme == "postgres" || scheme == "postgresql") && strings.HasPrefix(rest, "//"):
		return nil
	}
	return fmt.Errorf("this is no store; write sqlite:onceward.db or postgres://user:password@host/database")
}

func (r *reader) address(n *yaml.Node, what, otherwise string) string {
	text := r.text(n, what)
	if text == "" {
		return otherwise
	}
	if err := CheckAddress(text); err != nil {
		r.add(n, "%s: %v", what, err)
		return otherwise
	}
	return text
}

// CheckAddress says whether a text is an address to listen on, and what would be.
func CheckAddress(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err == nil && port != "" && !strings.ContainsAny(host, "/ ") {
		if _, err = strconv.ParseUint(port, 10, 16); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%q is no address to listen on; write host and port as 127.0.0.1:8080, or :8080 for every address", text)
}

func (r *reader) publicURL(n *yaml.Node) string {
	text := r.text(n, "public_url")
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		r.add(n, "public_url is how senders address this server, as https://hooks.example.com; no query, no user")
		return ""
	}
	return strings.TrimSuffix(text, "/")
}

func (r *reader) admin(n *yaml.Node) {
	admin := &r.config.Admin
	r.members(n, "admin", names(AdminKeys()), func(key, value *yaml.Node) {
		switch key.Value {
		case "listen":
			admin.Listen = r.address(value, "admin.listen", admin.Listen)
		case "token":
			admin.TokenFrom = value.Value
			admin.Token = r.secret(value, "admin.token")
		}
	})
}

func (r *reader) proxies(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		r.add(n, "trusted_proxies is a list of networks, as [10.0.0.0/8, 192.0.2.1]; this is %s", kindOf(n))
		return
	}
	for _, item := range n.Content {
		prefix, err := netip.ParsePrefix(item.Value)
		if err != nil {
			var addr netip.Addr
			if addr, err = netip.ParseAddr(item.Value); err == nil {
				prefix = netip.PrefixFrom(addr, addr.BitLen())
			}
		}
		if err != nil {
			r.add(item, "%q is no network; write 10.0.0.0/8 or one address", item.Value)
			continue
		}
		r.config.TrustedProxies = append(r.config.TrustedProxies, prefix.Masked())
	}
}

func isNothing(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a map"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias, which is not read here"
	case isNothing(n):
		return "nothing"
	}
	return "a text"
}
