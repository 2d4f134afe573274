package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/verify"
)

// Provider is one compiled provider file, with the keys, secrets and params of
// the source that uses it laid over. It is immutable and safe for concurrent
// use. No formatting verb prints its secrets.
type Provider struct {
	name, title string
	docs        []string
	notes       []Note
	params      []Param
	ack         string
	ackSet      bool

	verifier  *verify.Verifier
	challenge *verify.Challenge
	secrets   []verify.Secret
	idHeaders []string // that Standard Webhooks signs, to be set when a request is made
	values    map[string]string
	masking   masking

	unwrap   string
	split    *expr.Program
	lets     []*expr.Program
	letIndex map[string]int // maps a name under let to its place in lets
	event    eventSpec
	rules    []*rule
	compared []compared
	kinds    map[string]*onceward.Kind

	hash     string
	doc      []byte
	warnings []Problem
}

// Note is one entry of `notes`: documentation for people, such as what is known
// of a sender's retries.
type Note struct{ Name, Text string }

// Param is one entry of `params`: what a source may or must supply.
type Param struct {
	Name     string
	Required bool
	// Secret says that its value is masked wherever it is stored or shown, and may
	// only be compared in constant time.
	Secret bool
	About  string
}

// Format writes the provider's name, whatever the verb: it holds secrets.
func (p Provider) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "provider "+p.name) }

// LogValue is the provider's name.
func (p Provider) LogValue() slog.Value { return slog.StringValue(p.name) }

// Name returns the name of the provider: its file's, or the source's if the source
// describes its sender itself.
func (p *Provider) Name() string { return p.name }

// Title returns the name for people; it is Name if the file has none.
func (p *Provider) Title() string { return p.title }

// Docs returns the addresses where the facts of the file come from.
func (p *Provider) Docs() []string { return slices.Clone(p.docs) }

// Notes returns what the file says for people, in its order.
func (p *Provider) Notes() []Note { return slices.Clone(p.notes) }

// Params returns what a source may or must supply, in the order of the file.
func (p *Provider) Params() []Param { return slices.Clone(p.params) }

// Ack returns the body that the sender wants with the 200; set is false if it
// does not care.
func (p *Provider) Ack() (body string, set bool) { return p.ack, p.ackSet }

// BodyUnsigned reports whether there is a way to be accepted in which the
// sender's signature does not cover the body.
func (p *Provider) BodyUnsigned() bool { return !p.verifier.CoversBody() }

// HasScopes reports whether the sender tells accounts or modes apart, so that an
// entity is named with its scope.
func (p *Provider) HasScopes() bool { return p.event.account != nil || p.event.mode != nil }

// Kinds returns the kinds that the rules name and those under `kinds`, by name.
// The map is the caller's, the kinds are shared.
func (p *Provider) Kinds() map[string]*onceward.Kind { return maps.Clone(p.kinds) }

// Hash identifies how events become facts and rows: two providers of one Hash
// make the same of the same delivery. It changes with everything that could make
// another row, and with nothing that only concerns verification, answers or
// people. Secrets have no part in it.
func (p *Provider) Hash() string { return p.hash }

// Doc returns the layered file as YAML, with the kinds it uses and without
// secrets and the values of params.
func (p *Provider) Doc() []byte { return slices.Clone(p.doc) }

// Warnings returns what is not wrong but likely not meant, in files of the
// user's own; [Builtin] and [Parse] return all.
func (p *Provider) Warnings() []Problem { return slices.Clone(p.warnings) }

// Secret is a new secret in both of its roles, made by [Provider.GenerateSecret].
type Secret struct {
	// Listed is what the source lists under `secrets`.
	Listed string
	// Signing is what the sender signs with: the same text for a shared secret, a
	// private key where the listed one is its public half.
	Signing string
}

// GenerateSecret makes a secret that this provider's deliveries can be signed
// with; it need not have secrets itself. Random is read for it; RSA keys are made
// from the system's randomness whatever it is. It fails if only a value in the
// body could be signed.
func (p *Provider) GenerateSecret(random io.Reader) (Secret, error) {
	g, err := p.verifier.Generate(random)
	if err != nil {
		return Secret{}, fmt.Errorf("provider %s: %w", p.name, err)
	}
	return Secret{Listed: g.Secret, Signing: g.Signing}, nil
}

// compileAll compiles the layered file root and returns what was gathered.
func compileAll(name string, root *node, in inputs, ps *problems) *Provider {
	c := &compiler{
		ps: ps, root: root, p: &Provider{name: name, letIndex: map[string]int{}},
		params: map[string]*Param{}, supplied: in.params, paramUsed: map[string]bool{}, paramRead: map[string]bool{}, secretsIn: len(in.secrets) > 0 || !in.strict || builtinVerify(root),
		lets: map[string]*letSpec{}, kinds: map[string]*kindSpec{}, ruleTimes: map[string][]timeUse{},
	}
	c.known(root, "a provider file", rootKeys...)
	c.people()
	c.layKinds()
	c.compileParams(root.get("params"))
	c.compileLets(root.get("let"))
	c.compileSplit()
	event := root.get("event")
	c.compileType(event)
	c.compileEvent(event)
	c.compileVerify()
	c.compileChallenge()
	c.compileFacts(root.get("facts"))
	c.p.kinds = c.finishKinds()
	c.suppliedParams(in)
	c.readSecrets(in)
	c.identify()
	c.p.masking = c.newMasking(in)
	return c.p
}

// builtinVerify reports whether verify is the catalogue's own. Where it names keys
// that would have to be fetched, it is enough to say that a secret is missing.
func builtinVerify(root *node) bool {
	n := root.get("verify")
	return n != nil && n.at.src != nil && n.at.src.builtin
}

// people compiles what is for people and for the answer.
func (c *compiler) people() {
	c.p.title = c.p.name
	if n := c.root.get("title"); n != nil {
		if text, ok := c.text(n, "title"); ok {
			c.p.title = text
		}
	}
	if n := c.root.get("docs"); n != nil {
		for _, word := range c.words(n, "docs", "a list of addresses") {
			c.p.docs = append(c.p.docs, word.text)
		}
	}
	if n := c.root.get("notes"); n != nil && c.isMap(n, "notes", "texts") {
		for _, e := range n.entries {
			if text, ok := c.text(e.value, "notes."+e.key.text); ok {
				c.p.notes = append(c.p.notes, Note{e.key.text, text})
			}
		}
	}
	if n := c.root.get("ack"); n != nil {
		if n.kind != scalarNode || n.empty {
			c.ps.add(n.at, `ack is the body of the answer as a text, "" for none; this is %s`, n.what())
		} else {
			c.p.ack, c.p.ackSet = n.text, true
		}
	}
	if n := c.root.get("fetch"); n != nil {
		c.ps.add(c.root.key("fetch").at, "fetch waits for the catalogue; until then a sender whose event only names an object is read as it is")
	}
}

// layKinds lays the file's own kinds over the table.
func (c *compiler) layKinds() {
	c.ownKinds = &node{kind: mapNode}
	c.kindsNode = builtinKinds(c.ps)
	own := c.root.get("kinds")
	if own == nil || !c.isMap(own, "kinds", "kinds with their states") {
		return
	}
	l := layering{ps: c.ps}
	c.ownKinds.entries = slices.DeleteFunc(slices.Clone(own.entries), func(e entry) bool { return isNone(e.value) })
	c.kindsNode = l.merge(c.kindsNode, own, []string{"kinds"})
}

func (c *compiler) compileParams(n *node) {
	if n == nil || !c.isMap(n, "params", "names and what they are") {
		return
	}
	for _, e := range n.entries {
		name := e.key.text
		if !expr.IsName(name) {
			c.ps.add(e.key.at, "%q is no name of a param; write letters, digits and _", name)
			continue
		}
		if !c.isMap(e.value, "params."+name, "required, secret and about") {
			continue
		}
		c.known(e.value, "params."+name, "required", "secret", "about")
		p := Param{Name: name, Required: c.yesNo(e.value.get("required"), "required"), Secret: c.yesNo(e.value.get("secret"), "secret")}
		if about := e.value.get("about"); about != nil {
			p.About, _ = c.text(about, "about")
		}
		c.p.params = append(c.p.params, p)
		c.params[name] = &p
	}
}

// suppliedParams checks the values that the source gives to params.
func (c *compiler) suppliedParams(in inputs) {
	c.p.values = maps.Clone(in.params)
	var names []string
	for _, p := range c.p.params {
		names = append(names, p.Name)
		if in.strict && p.Required && in.params[p.Name] == "" {
			c.ps.add(in.paramsAt, "param %q is required%s; write params: {%s: …}", p.Name, about(p), p.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.params)) {
		if _, declared := c.params[name]; !declared && !c.paramUsed[name] {
			c.ps.add(in.paramsAt, "nothing reads a param %q%s", name, didYouMean(name, names, paramsThere(names)))
		}
	}
}

func paramsThere(names []string) string {
	if len(names) == 0 {
		return "this provider has no params"
	}
	return "the params are " + wordList(names)
}

func about(p Param) string {
	if p.About == "" {
		return ""
	}
	return " (" + p.About + ")"
}

// readSecrets parses the source's secrets.
func (c *compiler) readSecrets(in inputs) {
	v := c.p.verifier
	if v == nil {
		return
	}
	for i, text := range in.secrets {
		secret, err := v.ParseSecret(text)
		if err != nil {
			c.ps.add(in.secretsAt, "secret %d of %d: %v", i+1, len(in.secrets), err)
			continue
		}
		c.p.secrets = append(c.p.secrets, secret)
	}
	if in.strict && len(c.p.secrets) == len(in.secrets) {
		if err := v.CheckSecrets(c.p.secrets); err != nil {
			c.ps.add(in.secretsAt, "%v", err)
		}
	}
}

// identify computes the hash and the document.
func (c *compiler) identify() {
	used := &node{kind: mapNode}
	for _, e := range c.kindsNode.entries {
		if _, is := c.kinds[e.key.text]; is {
			used.entries = append(used.entries, e)
		}
	}
	full := &node{kind: mapNode}
	for _, key := range rootKeys {
		value := c.root.get(key)
		if key == "kinds" {
			value = used
		}
		if value != nil && (value.kind != mapNode || len(value.entries) > 0) {
			full.entries = append(full.entries, entry{&node{text: key}, value})
		}
	}
	c.p.doc = full.yaml()
	text := fmt.Appendf(nil, "onceward language %d\n", languageVersion)
	for _, key := range []string{"unwrap", "split", "let", "event", "kinds", "facts"} {
		if value := full.get(key); value != nil {
			text = value.canonical(text, key)
		}
		text = append(text, 0)
	}
	for _, name := range slices.Sorted(maps.Keys(c.supplied)) {
		if p := c.params[name]; c.paramRead[name] && (p == nil || !p.Secret) {
			text = fmt.Appendf(text, "%d:%s%d:%s", len(name), name, len(c.supplied[name]), c.supplied[name])
		}
	}
	sum := sha256.Sum256(text)
	c.p.hash = hex.EncodeToString(sum[:16])
	c.p.idHeaders = c.standardHeaders()
}

// languageVersion changes when this program reads the same file otherwise than
// before, so that rows are made anew.
const languageVersion = 1

// standardHeaders lists the id headers of the entries that sign by Standard
// Webhooks.
func (c *compiler) standardHeaders() []string {
	n := c.root.get("verify")
	if n == nil {
		return nil
	}
	entries := []*node{n}
	if n.kind == listNode {
		entries = n.items
	}
	var headers []string
	for _, e := range entries {
		if scheme := e.get("scheme"); scheme == nil || scheme.text != verify.SchemeStandardWebhooks {
			continue
		}
		prefix := "webhook-"
		if p := e.get("prefix"); p != nil && strings.HasSuffix(p.text, "-") {
			prefix = p.text
		}
		headers = append(headers, prefix+"id")
	}
	return headers
}
