package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"github.com/onceward/onceward/provider"
)

func (r *reader) sources(n *yaml.Node) {
	paths := map[string]string{}
	r.members(n, "sources", nil, func(key, value *yaml.Node) {
		if !isSourceName(key.Value) {
			r.add(key, "%q is no name of a source; write small letters, digits and -", key.Value)
			return
		}
		s, whole := r.source(key, value)
		if other, taken := paths[s.Path]; taken {
			r.add(key, "sources %s and %s have the same path %s; give one of them another", other, s.Name, s.Path)
		}
		paths[s.Path] = s.Name
		if whole {
			r.config.Sources = append(r.config.Sources, s)
		}
	})
}

func isSourceName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// source reads one source; whole is false if it has faults.
func (r *reader) source(key, n *yaml.Node) (s Source, whole bool) {
	s = Source{Name: key.Value, Path: "/in/" + key.Value, MaxBody: DefaultMaxBody}
	before := len(r.list)
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			r.sourceKey(&s, n.Content[i].Value, n.Content[i+1])
		}
	}
	cfg := provider.SourceConfig{
		Name: s.Name, Secrets: s.Secrets, Params: s.Params, Text: r.config.Text, At: []string{"sources", s.Name},
		File: r.file, ReadFile: r.world.ReadFile,
	}
	own := len(r.list) > before
	if r.glance && len(s.Secrets) < max(1, len(s.SecretsFrom)) {
		p, err := r.withoutSecrets(&s, n)
		r.join(err)
		s.Provider = p
		return s, !own && err == nil
	}
	if own && len(s.Secrets) < len(s.SecretsFrom) {
		// A missing secret was reported with its reason; a second complaint that there
		// are none would only hide it.
		cfg.Secrets = nil
		_, err := provider.Compile(cfg)
		r.join(withoutSecretFaults(err, n))
		return s, false
	}
	p, err := provider.Compile(cfg)
	r.join(err)
	if err != nil {
		return s, false
	}
	s.Provider = p
	r.secretParams(&s, n)
	return s, len(r.list) == before
}

// secretParams refuses a param that its provider says is a secret and that stands
// in the file as a text.
func (r *reader) secretParams(s *Source, n *yaml.Node) {
	for _, param := range s.Provider.Params() {
		from, given := s.ParamsFrom[param.Name]
		if given && param.Secret && !isReference(from) {
			r.addHidden(get(get(n, "params"), param.Name), "param %s is a secret, and a secret never stands in this file; put it into a variable and write $NAME, or into a file and write file:PATH", param.Name)
		}
	}
}

// withoutSecrets compiles what a source says of its sender, and nothing else.
func (r *reader) withoutSecrets(s *Source, n *yaml.Node) (*provider.Provider, error) {
	keys := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if key := n.Content[i].Value; !slices.Contains(names(SourceKeys()), key) {
				put(keys, key, n.Content[i+1])
			}
		}
	}
	text, err := yaml.Dump(keys)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", s.Name, err)
	}
	params := map[string]string{}
	for name, value := range s.Params {
		if value != "" {
			params[name] = value
		}
	}
	name := s.Name
	if ref := get(keys, "provider"); ref != nil {
		name = ProviderName(ref.Value)
	}
	file := fmt.Sprintf("%s (source %s)", r.file, s.Name) // the lines are not those of the file; `check` has them
	return provider.Parse(name, text, provider.Options{File: file, ReadFile: r.world.ReadFile, Params: params})
}

// withoutSecretFaults takes away what was reported at the secrets of a source.
func withoutSecretFaults(err error, n *yaml.Node) error {
	var all *provider.Errors
	if !errors.As(err, &all) {
		return err
	}
	var rest []provider.Problem
	for _, p := range all.Problems {
		at := false
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			at = at || k.Value == "secrets" && k.Line == p.Line && k.Column == p.Column
		}
		if !at {
			rest = append(rest, p)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	return &provider.Errors{Problems: rest}
}

func (r *reader) sourceKey(s *Source, key string, value *yaml.Node) {
	switch key {
	case "secrets":
		r.secrets(s, value)
	case "params":
		r.params(s, value)
	case "path":
		s.Path = r.path(value, s.Path)
	case "max_body":
		s.MaxBody = r.size(value, "max_body")
	}
}

func (r *reader) secrets(s *Source, n *yaml.Node) {
	items := n.Content
	if n.Kind != yaml.SequenceNode {
		if n.Kind == yaml.ScalarNode && !isNothing(n) {
			r.addHidden(n, "secrets is a list, for several may be live at once; write secrets: [$NAME] or [file:PATH]")
		} else {
			r.add(n, "secrets is a list, as [$STRIPE_WEBHOOK_SECRET]; this is %s", kindOf(n))
		}
		s.SecretsFrom = []string{""}
		return
	}
	for _, item := range items {
		s.SecretsFrom = append(s.SecretsFrom, item.Value)
		if value := r.secret(item, "a secret"); value != "" {
			s.Secrets = append(s.Secrets, value)
		}
	}
}

func (r *reader) params(s *Source, n *yaml.Node) {
	s.Params, s.ParamsFrom = map[string]string{}, map[string]string{}
	r.members(n, "params", nil, func(key, value *yaml.Node) {
		if value.Kind != yaml.ScalarNode || isNothing(value) {
			r.add(value, "a param is a text, $NAME or file:PATH; this is %s", kindOf(value))
			return
		}
		s.ParamsFrom[key.Value], s.Params[key.Value] = value.Value, value.Value
		if isReference(value.Value) {
			s.Params[key.Value] = r.secret(value, "param "+key.Value)
		}
	})
}

func (r *reader) path(n *yaml.Node, otherwise string) string {
	text := r.text(n, "path")
	if text == "" {
		return otherwise
	}
	if !strings.HasPrefix(text, "/") || strings.ContainsAny(text, "?#{} ") || strings.Contains(text, "//") {
		r.add(n, "path is where deliveries come in, as /webhooks/stripe; it begins with / and holds no query")
		return otherwise
	}
	if trimmed := strings.TrimRight(text, "/"); trimmed != "" {
		return trimmed
	}
	return "/"
}

// maxBodyLimit bounds max_body: a body is held in memory.
const maxBodyLimit = 256 << 20

func (r *reader) size(n *yaml.Node, what string) int64 {
	text := r.text(n, what)
	digits := strings.TrimRight(text, "KMGiB")
	number, err := strconv.ParseInt(digits, 10, 64)
	unit, known := map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[text[len(digits):]]
	if text == "" || err != nil || !known || number < 1 || number > maxBodyLimit/unit {
		r.add(n, "%s is a size from 1 to 256MiB, as 64KiB or 1MiB", what)
		return DefaultMaxBody
	}
	return number * unit
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func isReference(text string) bool {
	return strings.HasPrefix(text, "$") || strings.HasPrefix(text, "file:")
}

// secret is reference for what a glance can do without.
func (r *reader) secret(n *yaml.Node, what string) string {
	if !r.glance || !isReference(n.Value) {
		return r.reference(n, what)
	}
	value, err := r.world.resolve(n.Value, filepath.Dir(r.file))
	if err != nil {
		return ""
	}
	return value
}

// reference returns what a reference stands for, "" if it gives nothing, which
// is then reported. The text of the node is never shown, for it may be the secret
// itself.
func (r *reader) reference(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || isNothing(n) {
		r.add(n, "%s is a reference, $NAME or file:PATH; this is %s", what, kindOf(n))
		return ""
	}
	value, err := r.world.resolve(n.Value, filepath.Dir(r.file))
	if err != nil {
		report := r.addHidden
		if isReference(n.Value) {
			report = r.add
		}
		report(n, "%s: %v", what, err)
		return ""
	}
	return value
}

// resolve returns what a reference stands for. Errors name the reference and
// never hold its value.
func (w World) resolve(text, dir string) (string, error) {
	name, isEnv := strings.CutPrefix(text, "$")
	path, isFile := strings.CutPrefix(text, "file:")
	var value string
	switch {
	case isEnv && strings.HasPrefix(name, "{") && strings.HasSuffix(name, "}"):
		return "", fmt.Errorf("write $%s, without braces", strings.Trim(name, "{}"))
	case isEnv && !variable.MatchString(name):
		return "", errors.New("this names no variable; a reference is written $NAME or file:PATH, and a secret that begins with $ goes into one")
	case isEnv:
		var set bool
		if value, set = w.Getenv(name); !set {
			return "", fmt.Errorf("$%s is not set; export it before the program starts", name)
		}
	case isFile:
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		content, err := w.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("%s cannot be read: %w", text, pathless(err))
		}
		value = strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	default:
		return "", errors.New("a secret never stands in this file; put it into a variable and write $NAME, or into a file and write file:PATH")
	}
	if strings.TrimSpace(value) == "" {
		return "", fmt.Errorf("%s is empty, and an empty secret is one that everybody knows; set it to the one that the sender shows", text)
	}
	if err := CheckSecret(value); err != nil {
		return "", fmt.Errorf("%s %w", text, err)
	}
	return value, nil
}

// CheckSecret refuses white space around a secret and a line end within it, which
// are slips of whoever set it. PEM and JSON, as keys come, have lines. The error
// is to stand behind the name of what holds the secret.
func CheckSecret(value string) error {
	if strings.TrimSpace(value) != value {
		return errors.New("has white space before or behind it, which is part of no secret; take it away where it is set")
	}
	keys := strings.HasPrefix(value, "-----BEGIN") || strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[")
	if !keys && strings.ContainsAny(value, "\r\n") {
		return errors.New("has a line end within it, which is part of no secret; write one secret where it is set, and another under a name of its own")
	}
	return nil
}

// pathless leaves out the path, which the reference has said.
func pathless(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
