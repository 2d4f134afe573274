package cases

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/cli/config"
	"github.com/onceward/onceward/provider"
)

// layout is the configuration of a case: an onceward.yaml, as a user would write
// it for the senders of the case, and what is set beside it.
type layout struct {
	text    string
	env     map[string]string // what its references stand for
	sources []*sourceLayout
	jobs    inbox.JobConfig
}

// sourceLayout is one source of a case: one path.
type sourceLayout struct {
	name, provider, path string
	keys                 []string // lines of YAML below it
	secrets              []string // names
	standard             bool     // signed as Standard Webhooks say
}

// file is the name of the sender: that of its file here or in the catalogue.
func (s *sourceLayout) file() string {
	return strings.TrimSuffix(strings.TrimPrefix(s.provider, "./"), ".yaml")
}

// ownSources is where the files of providers are that the catalogue does not have.
const ownSources = "testdata/sources"

// library is where the files of providers are looked for, before the catalogue. It
// keeps what it has compiled, for all plays of one case are configured alike.
type library struct {
	dirs     []string
	compiled sync.Map // from the text and the environment to what reading gave
}

func newLibrary(dirs ...string) *library { return &library{dirs: dirs} }

// file returns the file of a provider.
func (lib *library) file(name string) ([]byte, error) {
	for _, dir := range lib.dirs {
		text, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
		if err == nil {
			return text, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// lay makes the configuration of a case. gone are secrets that have been retired.
func lay(c *fieldCase, lib *library, gone []string) (*layout, error) {
	l := &layout{env: map[string]string{}}
	if err := l.addSources(c, lib, gone); err != nil {
		return nil, err
	}
	if err := l.configure(c); err != nil {
		return nil, err
	}
	for name, secret := range c.Setup.Secrets {
		l.env["SECRET_"+name] = secret
	}
	var b strings.Builder
	if raw, ok := c.Setup.Config["public_base_url"]; ok {
		fmt.Fprintf(&b, "public_url: %s\n", raw)
	}
	b.WriteString("sources:\n")
	for _, s := range l.sources {
		fmt.Fprintf(&b, "  %s:\n    provider: %s\n    path: %s\n", s.name, s.provider, s.path)
		var refs []string
		for _, name := range s.secrets {
			refs = append(refs, "$SECRET_"+name)
			if s.standard {
				l.env["SECRET_"+name] = strengthened(c.Setup.Secrets[name])
			}
		}
		if len(refs) > 0 {
			fmt.Fprintf(&b, "    secrets: [%s]\n", strings.Join(refs, ", "))
		}
		for _, line := range s.keys {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	l.text = b.String()
	return l, nil
}

// strengthened is a secret as Standard Webhooks want it, where the case has a
// shorter one.
func strengthened(secret string) string {
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if key, err := base64.StdEncoding.DecodeString(text); err == nil && len(key) >= 24 {
			return secret
		}
	}
	sum := sha256.Sum256([]byte(secret))
	return "whsec_" + base64.StdEncoding.EncodeToString(sum[:])
}

// addSources adds one source for each path that the case delivers to.
func (l *layout) addSources(c *fieldCase, lib *library, gone []string) error {
	byPath := map[string]*sourceLayout{}
	paths := map[string]int{} // of a provider
	for i := range c.Steps {
		d := &c.Steps[i].delivery
		if c.Steps[i].Op != "" {
			continue
		}
		name, rest, ok := d.endpoint()
		if !ok {
			return unsupported("the path " + d.Path + ", which is not below /in/")
		}
		at := "/in/" + name
		s := byPath[at+"/"+rest]
		if s == nil {
			s = &sourceLayout{name: name, provider: "./" + name + ".yaml", path: at}
			if rest != "" {
				s.name, s.path = name+"-"+rest, at+"/"+rest
			}
			s.name = strings.Map(nameRune, strings.ToLower(s.name))
			text, err := lib.file(name + ".yaml")
			if err != nil {
				if !slices.Contains(provider.Catalog(), name) {
					return unsupported("provider " + name)
				}
				s.provider = name
			}
			s.secrets = slices.Sorted(maps.Keys(c.Setup.Secrets))
			if strings.Contains(string(text), "scheme: none") {
				s.secrets = nil
			}
			byPath[at+"/"+rest] = s
			paths[name]++
			l.sources = append(l.sources, s)
		}
		if d.Sign != nil && d.Sign.Scheme == "standard" {
			s.standard = true
		}
	}
	for _, s := range l.sources {
		if name, _, _ := (&delivery{Path: s.path}).endpoint(); paths[name] > 1 {
			s.secrets = used(c, s) // two sources of one sender: each has its own secret
		}
		s.secrets = slices.DeleteFunc(s.secrets, func(name string) bool { return slices.Contains(gone, name) })
	}
	return nil
}

func nameRune(r rune) rune {
	if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-", r) {
		return r
	}
	return '-'
}

// used lists the secrets by which deliveries to a source are signed.
func used(c *fieldCase, s *sourceLayout) []string {
	names := map[string]bool{}
	for i := range c.Steps {
		d := &c.Steps[i].delivery
		provider, rest, ok := d.endpoint()
		if !ok || strings.TrimSuffix("/in/"+provider+"/"+rest, "/") != s.path || d.Sign == nil {
			continue
		}
		for _, name := range append(d.Sign.Secrets, d.Sign.Secret) {
			if name != "" {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// configure applies setup.config and setup.dedupe.
func (l *layout) configure(c *fieldCase) error {
	for _, name := range slices.Sorted(maps.Keys(c.Setup.Config)) {
		raw := c.Setup.Config[name]
		var n int64
		number := json.Unmarshal(raw, &n) == nil
		switch {
		case name == "public_base_url": // in lay
		case name == "max_body_bytes" && number:
			l.all(fmt.Sprintf("max_body: %d", n))
		case name == "max_inflated_bytes" && n == 1<<20: // what a short body may become in any case
		case name == "batch" && number:
			l.jobs.Workers = int(n) // so many jobs are taken at once
		case name == "max_attempts" && number:
			l.jobs.Attempts = int(n)
		case name == "backoff_ms" && number:
			l.jobs.BackoffBase = time.Duration(n) * time.Millisecond
		default:
			if err := l.configureSource(name, raw); err != nil {
				return err
			}
		}
	}
	if len(c.Setup.Dedupe) > 0 {
		return l.dedupe(c.Setup.Dedupe)
	}
	return nil
}

func (l *layout) all(line string) {
	for _, s := range l.sources {
		s.keys = append(s.keys, line)
	}
}

func (l *layout) source(name string) *sourceLayout {
	i := slices.IndexFunc(l.sources, func(s *sourceLayout) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	return l.sources[i]
}

// configureSource applies what stands under the name of a source.
func (l *layout) configureSource(name string, raw json.RawMessage) error {
	var members map[string]json.RawMessage
	s := l.source(name)
	if s == nil || json.Unmarshal(raw, &members) != nil {
		return unsupported("setup.config." + name)
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		value := members[key]
		var text string
		var list []string
		_ = json.Unmarshal(value, &text) // one of the two it is
		_ = json.Unmarshal(value, &list)
		switch {
		case key == "signed_over" && text == "decoded":
			s.keys = append(s.keys, `verify: {signed: "{decoded}"}`)
		case key == "signed_over" && text == "wire": // the default
		case key == "verify_token" && text != "":
			l.env["VERIFY_TOKEN"] = text
			s.keys = append(s.keys, "params: {verify_token: $VERIFY_TOKEN}")
		case key == "dedupe_key" && list != nil:
			s.keys = append(s.keys, keyOf(list))
		case key == "allowed_origins": // OPTIONS is answered as DESIGN.md section 6 says, whoever asks
		default:
			return unsupported("setup.config." + name + "." + key)
		}
	}
	return nil
}

// keyOf makes the event's key of members of the body.
func keyOf(members []string) string {
	parts := make([]string, len(members))
	for i, m := range members {
		parts[i] = "item." + m
	}
	return "event: {key: [" + strings.Join(parts, ", ") + "]}"
}

// dedupe applies a policy for all sources: a list of members, or for each source.
func (l *layout) dedupe(raw json.RawMessage) error {
	var list []string
	var each map[string][]string
	var word string
	switch {
	case json.Unmarshal(raw, &list) == nil:
		l.all(keyOf(list))
	case json.Unmarshal(raw, &word) == nil && slices.Contains([]string{"digest", "body_digest", "body"}, word):
		l.all("event: {key: digest}")
	case json.Unmarshal(raw, &each) == nil:
		for name, members := range each {
			s := l.source(name)
			if s == nil {
				return unsupported("setup.dedupe." + name)
			}
			s.keys = append(s.keys, keyOf(members))
		}
	default:
		return unsupported("setup.dedupe " + string(raw))
	}
	return nil
}

// read reads the configuration as the program does.
func (l *layout) read(lib *library) (*config.Config, error) {
	read := sync.OnceValues(func() (*config.Config, error) {
		return config.Read("onceward.yaml", []byte(l.text), config.World{
			Getenv: func(name string) (string, bool) {
				value, ok := l.env[name]
				return value, ok
			},
			ReadFile: lib.file,
		})
	})
	known, _ := lib.compiled.LoadOrStore(l.text+fmt.Sprint(l.env), read)
	return known.(func() (*config.Config, error))()
}
