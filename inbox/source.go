package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox/internal/panics"
	"github.com/onceward/onceward/provider"
)

// source is a compiled source. All but newest is immutable.
type source struct {
	name     string
	log      *slog.Logger
	provider *provider.Provider
	readInGo func(*provider.Request) ([]provider.Reading, error)
	mapping  *onceward.Mapping
	doc      []byte
	maxBody  int64
	path     string
	allow    string // the methods that are answered, for 405
	ack      []byte // what the sender wants to be answered; nil for the small JSON

	scopes scoping

	newest atomic.Int64 // the newest revision there is of the mapping
}

// scoping says whether a source's sender tells accounts and modes apart.
type scoping uint8

const (
	unscoped    scoping = iota
	scoped              // its definition says so
	mayBeScoped         // a mapping in Go may do it
)

// compileSources compiles every source and returns all that is wrong with them.
func compileSources(cfg Config) (map[string]*source, error) {
	sources := make(map[string]*source, len(cfg.Sources))
	paths := map[string]string{} // maps a path to the source that has it
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(cfg.Sources)) {
		s, err := compileSource(name, cfg.Sources[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("source %s: %w", name, err))
			continue
		}
		s.log = cfg.Logger
		if s.maxBody == 0 {
			s.maxBody = cfg.MaxBody
		}
		if other, taken := paths[s.path]; taken {
			errs = append(errs, fmt.Errorf("source %s: its path %s is that of source %s; give one of them another", name, s.path, other))
		}
		paths[s.path] = name
		sources[name] = s
	}
	return sources, errors.Join(errs...)
}

func compileSource(name string, cfg Source) (*source, error) {
	if !isName(name) {
		return nil, errors.New("a name is of letters, digits, points, dashes and underscores, at most 64 of them")
	}
	s := &source{name: name, maxBody: cfg.MaxBody, readInGo: cfg.Map, path: cfg.Path}
	var errs []error
	switch {
	case cfg.Path == "":
		s.path = "/in/" + name
	case !strings.HasPrefix(cfg.Path, "/") || strings.ContainsAny(cfg.Path, "?#"):
		errs = append(errs, fmt.Errorf("path %q begins with / and has no query, as /webhooks/%s", cfg.Path, name))
	default:
		s.path = withoutSlash(cfg.Path)
	}
	if cfg.MaxBody < 0 {
		errs = append(errs, errors.New("MaxBody is negative; leave it out for the default"))
	}
	var err error
	if s.provider, err = compileProvider(name, cfg); err != nil {
		return nil, errors.Join(append(errs, err)...)
	}
	s.allow = http.MethodPost
	if m := s.provider.HandshakeMethod(); m != "" && m != http.MethodPost {
		s.allow = m + ", " + http.MethodPost
	}
	if body, set := s.provider.Ack(); set {
		s.ack = []byte(body)
	}
	if err := s.setMapping(cfg); err != nil {
		errs = append(errs, err)
	}
	return s, errors.Join(errs...)
}

func compileProvider(name string, cfg Source) (*provider.Provider, error) {
	if cfg.Compiled == nil {
		return provider.Compile(provider.SourceConfig{
			Name: name, Provider: cfg.Provider, Secrets: cfg.Secrets, Params: cfg.Params, Text: cfg.Definition, File: name + ".yaml",
		})
	}
	if cfg.Provider != "" || len(cfg.Secrets) > 0 || len(cfg.Params) > 0 || len(cfg.Definition) > 0 {
		return nil, errors.New("Compiled stands beside Provider, Secrets, Params or Definition; give these to provider.Compile instead")
	}
	return cfg.Compiled, nil
}

// setMapping sets the mapping. One that reads in Go is told apart by its version and its
// kinds, since Go code has no hash.
func (s *source) setMapping(cfg Source) error {
	s.mapping = &onceward.Mapping{Source: s.name, Hash: s.provider.Hash(), Kinds: s.provider.Kinds()}
	s.doc = s.provider.Doc()
	if s.provider.HasScopes() {
		s.scopes = scoped
	}
	if cfg.Map == nil {
		if len(cfg.Kinds) > 0 || cfg.MapVersion != "" {
			return errors.New("Kinds and MapVersion say something about Map, which is nil; kinds of a definition stand under kinds:")
		}
		return nil
	}
	s.scopes = mayBeScoped
	var text strings.Builder
	fmt.Fprintf(&text, "%s\nmapped in Go, version %q\n", s.mapping.Hash, cfg.MapVersion)
	for _, k := range cfg.Kinds {
		if k == nil || k.Name == "" {
			return errors.New("Kinds holds one that is nil or has no name; make each with onceward.NewKind")
		}
		s.mapping.Kinds[k.Name] = k
		fmt.Fprintf(&text, "%s: %v, terminal %v, order %v, fields %v, derived %t\n",
			k.Name, k.States, k.Terminal, k.Order, k.Fields, k.Derive != nil) // maps print sorted
	}
	sum := sha256.Sum256([]byte(text.String()))
	s.mapping.Hash = hex.EncodeToString(sum[:16])
	s.doc = append(s.doc, "# read in Go\n"...)
	return nil
}

func isName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_') {
			return false
		}
	}
	return name != "" && len(name) <= 64 && strings.Trim(name, ".") != ""
}

// withoutSlash returns a path without its trailing slash: the same path.
func withoutSlash(path string) string {
	if len(path) > 1 && strings.HasSuffix(path, "/") {
		return path[:len(path)-1]
	}
	return path
}

// read returns the events of a delivery and what they say. It does not fail: what
// a mapping in Go cannot read is one event under its digest whose fact is held.
func (s *source) read(r *provider.Request) []provider.Reading {
	if s.readInGo == nil {
		return s.provider.Read(r)
	}
	readings, err := callMap(s.readInGo, r)
	if err != nil {
		if thrown, ok := errors.AsType[*panics.Error](err); ok {
			s.log.Error("the mapping in Go panicked", "source", s.name, "panic", thrown, "stack", thrown.Stack())
		}
		return []provider.Reading{unread(r, err)}
	}
	if len(readings) == 0 { // nothing that anybody wants to hear, and it was delivered all the same
		return []provider.Reading{{Event: onceward.Event{Key: digestKey(r), Digest: onceward.DigestOf(r.Body), DigestKey: true}}}
	}
	for i := range readings {
		s.complete(&readings[i], i, r)
	}
	return readings
}

// callMap calls a mapping in Go; a panic is an error.
func callMap(read func(*provider.Request) ([]provider.Reading, error), r *provider.Request) (readings []provider.Reading, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %w", panics.New(p))
		}
	}()
	return read(r)
}

// complete fills in what a mapping in Go may leave out.
func (s *source) complete(reading *provider.Reading, i int, r *provider.Request) {
	e := &reading.Event
	e.Item = i
	e.Unsigned = e.Unsigned || s.provider.BodyUnsigned()
	if e.Digest == (onceward.Digest{}) {
		e.Digest = onceward.DigestOf(r.Body)
	}
	if e.Key == "" {
		e.Key, e.DigestKey = digestKey(r), true
		if i > 0 {
			e.Key = onceward.ComposeKey(e.Key, fmt.Sprint(i))
		}
	}
	for j := range reading.Facts {
		f := &reading.Facts[j]
		if why := normalize(f); f.Held == "" {
			f.Held = why
		}
		if f.Held == "" {
			f.Held = s.unfit(f)
		}
		f.Local = nil // a sender writes none of them, nor does a fact that is held
	}
}

// normalize gives the values of a fact the form that stores keep, so that the row
// is the same when it is made anew: compact, in UTF-8, and null for none. It takes
// away those that are no JSON, and says which was the first.
func normalize(f *onceward.Fact) (why string) {
	for _, list := range []*[]onceward.Part{&f.Fields, &f.Was} {
		parts := make([]onceward.Part, 0, len(*list)) // the mapping's own may be shared
		for _, p := range *list {
			text := p.Value.JSON()
			if p.Value.IsZero() {
				text = "null"
			}
			v, err := onceward.JSON([]byte(text))
			if err != nil {
				if why == "" {
					why = fmt.Sprintf("fields: the value of %q is no JSON; make it with onceward.JSON, which says what is wrong", p.Field)
				}
				continue
			}
			p.Value = v
			parts = append(parts, p)
		}
		*list = parts
	}
	return why
}

// unfit says why a fact that a mapping in Go gave cannot be applied, "" if it can.
func (s *source) unfit(f *onceward.Fact) string {
	kind := s.mapping.Kinds[f.Kind]
	switch {
	case kind == nil:
		return fmt.Sprintf("the mapping has no kind %q", f.Kind)
	case f.Key == "":
		return "key: is empty"
	case len(f.Local) > 0:
		return "local: fields of the application's own are written with Put, not by a sender's facts; tell them as Fields"
	}
	if f.Status != "" {
		if _, known := kind.Rank(f.Status); !known {
			return fmt.Sprintf("status: %q is not a state of %s", f.Status, f.Kind)
		}
	}
	for _, p := range f.Fields {
		if p.Field == "" || provider.IsReservedField(p.Field) {
			return fmt.Sprintf("fields: no field can be called %q, which the row uses itself; give it another name", p.Field)
		}
	}
	for _, p := range f.Was {
		if p.Field != onceward.StatusPart && (p.Field == "" || provider.IsReservedField(p.Field)) {
			return fmt.Sprintf("was: no field can be called %q, which the row uses itself; give it another name", p.Field)
		}
	}
	return ""
}

func unread(r *provider.Request, err error) provider.Reading {
	return provider.Reading{
		Event: onceward.Event{Key: digestKey(r), Digest: onceward.DigestOf(r.Body), DigestKey: true},
		Facts: []onceward.Fact{{Held: fmt.Sprintf("the mapping in Go: %v", err)}},
	}
}

func digestKey(r *provider.Request) string { return onceward.DigestOf(r.Body).String() }

// register gives the mapping its revision.
func (s *source) register(ctx context.Context, store onceward.Inbox, cfg Config) error {
	revision, newest, err := store.Register(ctx, s.name, s.mapping.Hash, s.doc, cfg.Now())
	if err != nil {
		return fmt.Errorf("register the mapping of source %s: %w", s.name, err)
	}
	s.mapping.Revision = revision
	s.newest.Store(newest)
	return nil
}

// behind says why the facts of this process are held, "" if they are not.
func (s *source) behind() string {
	newest := s.newest.Load()
	if newest <= s.mapping.Revision {
		return ""
	}
	return fmt.Sprintf("read with mapping %d, the newest is %d; a process with the newest takes it up", s.mapping.Revision, newest)
}
