package verify

import (
	"crypto"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/onceward/onceward/provider/internal/expr"

	_ "crypto/sha1" // registers what `hash` names
	_ "crypto/sha256"
	_ "crypto/sha512"
)

// Verifier checks deliveries against the entries of one `verify`. It is immutable
// and safe for concurrent use.
type Verifier struct{ entries []*entry }

// entry is one compiled entry.
type entry struct {
	index     int
	scheme    string
	location  location
	format    *format // of schemes that read values
	signed    []template
	timestamp *expr.Program // nil: from the format, or there is none
	tolerance time.Duration
	hash      crypto.Hash // 0: none, with ed25519
	encoding  encoding
	secretAs  string
	published []publicKey
	require   *expr.Program // nil: none
	prefixes  []string      // of standard-webhooks

	itemChecked  bool // signature, timestamp or place depends on the item
	itemRequired bool // require depends on the item
	checkReads   int  // how many expressions besides `signed` read the body's bytes in each check
}

// location is where the values with signatures are. It is one of the three.
type location struct {
	header string // canonical; a trailing * takes every header that begins so
	query  string
	field  *expr.Program
}

// Compile compiles the entries of `verify` and returns every fault of all of them.
// With a fault there is no Verifier. Names are those that expressions may use.
func Compile(cfgs []Config, names expr.Names) (*Verifier, []Problem) {
	if len(cfgs) == 0 {
		return nil, []Problem{{Msg: "verify is missing", Hint: "write a scheme; to accept what nobody signed, write verify: {scheme: none}"}}
	}
	v := &Verifier{}
	var problems []Problem
	for i := range cfgs {
		c := compiler{cfg: &cfgs[i], names: names, entry: &entry{index: i}}
		c.compile()
		problems = append(problems, c.problems...)
		v.entries = append(v.entries, c.entry)
		if cfgs[i].Scheme == SchemeNone && len(cfgs) > 1 {
			problems = append(problems, Problem{Entry: i, Key: "scheme", Msg: "none beside other entries accepts everything", Hint: "leave it out, or the others"})
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return v, nil
}

// compiler compiles one entry and gathers its faults.
type compiler struct {
	cfg      *Config
	names    expr.Names
	entry    *entry
	problems []Problem
}

func (c *compiler) problem(key, msg, hint string) {
	c.faults(key, 0, fault{0, msg, hint})
}

func (c *compiler) faults(key string, index int, faults ...fault) {
	for _, f := range faults {
		c.problems = append(c.problems, Problem{Entry: c.entry.index, Key: key, Index: index, Offset: f.offset, Msg: f.msg, Hint: f.hint})
	}
}

func (c *compiler) compile() {
	if !c.scheme() {
		return
	}
	for _, key := range c.cfg.written() {
		if !allowed(key, c.entry.scheme) {
			c.problem(key, fmt.Sprintf("%s means nothing with scheme %s", key, c.entry.scheme), "leave it out")
		}
	}
	c.words()
	c.location()
	if signs(c.entry.scheme) || c.entry.scheme == SchemeToken {
		c.format()
	}
	c.entry.timestamp = c.expression("timestamp", c.cfg.Timestamp)
	if signs(c.entry.scheme) {
		c.signed()
	}
	c.tolerance()
	c.keys()
	c.entry.require = c.condition("require", c.cfg.Require)
	c.entry.prefixes = c.prefixes()
	c.items()
}

func (c *compiler) scheme() bool {
	name := c.cfg.Scheme
	if slices.Contains(Schemes(), name) {
		c.entry.scheme = name
		return true
	}
	all := strings.Join(Schemes(), ", ")
	switch near := closest(name, Schemes()); {
	case name == "":
		c.problem("scheme", "scheme is missing", "write one of "+all+"; what nobody signed is accepted with none only")
	case near != "":
		c.problem("scheme", fmt.Sprintf("%q is no scheme", name), fmt.Sprintf("did you mean %s?", near))
	default:
		c.problem("scheme", fmt.Sprintf("%q is no scheme", name), "the schemes are "+all)
	}
	return false
}

// words compiles the keys whose value is one of a few words.
func (c *compiler) words() {
	hashes := map[string]crypto.Hash{"sha1": crypto.SHA1, "sha256": crypto.SHA256, "sha512": crypto.SHA512}
	hash := c.word("hash", c.cfg.Hash, "sha256", "sha1", "sha256", "sha512")
	c.entry.hash = hashes[hash]
	if c.entry.scheme == SchemeEd25519 && c.cfg.Hash == "" {
		c.entry.hash = 0
	}
	c.entry.encoding = encoding(c.word("encoding", c.cfg.Encoding, "hex", "hex", "base64", "base64url"))
	c.entry.secretAs = c.word("secret_as", c.cfg.SecretAs, "text", "text", "hex", "sha1")
}

func (c *compiler) word(key, value, otherwise string, words ...string) string {
	if value == "" {
		return otherwise
	}
	if slices.Contains(words, value) {
		return value
	}
	hint := "it is one of " + strings.Join(words, ", ")
	if near := closest(value, words); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	c.problem(key, fmt.Sprintf("%q is no %s", value, key), hint)
	return otherwise
}

func (c *compiler) location() {
	scheme, cfg := c.entry.scheme, c.cfg
	count := 0
	for _, text := range []string{cfg.Header, cfg.Query, cfg.Field} {
		if text != "" {
			count++
		}
	}
	switch {
	case signs(scheme) || scheme == SchemeToken:
		if count != 1 {
			c.problem("", "one of header, query and field says where the signature or token is", "write exactly one of them")
		}
	case scheme == SchemeBasic && count == 0:
		c.entry.location.header = headerBasic
	}
	if cfg.Header != "" {
		c.header()
	}
	c.entry.location.query = cfg.Query
	c.entry.location.field = c.expression("field", cfg.Field)
}

func (c *compiler) header() {
	name := c.cfg.Header
	fixed := strings.TrimSuffix(name, "*")
	if fixed == "" || strings.Trim(fixed, headerLetters) != "" {
		c.problem("header", fmt.Sprintf("%q is no name of a header", name), "letters, digits and -, as in X-Signature; a * may end it, as in X-Sig-*")
		return
	}
	c.entry.location.header = canonicalHeader(name)
}

func (c *compiler) format() {
	cfg := c.cfg
	separator := cfg.Separator
	if separator == "" {
		separator = ","
	}
	if strings.ContainsAny(separator, "{}\r\n"+wordLetters) {
		c.problem("separator", "a separator is punctuation or a blank", "as in ;")
		separator = ","
	}
	text := cfg.Format
	if text == "" {
		text = "{signature}"
	}
	// A token may hold a comma, so it is cut only where the file says how.
	split := c.entry.scheme != SchemeToken || cfg.Separator != ""
	f, flt := parseFormat(text, separator, split)
	if flt != nil {
		c.faults("format", 0, *flt)
		return
	}
	c.entry.format = f
}

// timed reports whether the entry has a source of {timestamp}.
func (c *compiler) timed() bool {
	if c.entry.scheme == SchemeStandardWebhooks || c.cfg.Timestamp != "" {
		return true
	}
	return c.entry.format != nil && c.entry.format.hole(holeTimestamp) >= 0
}

func (c *compiler) signed() {
	texts := c.cfg.Signed
	if len(texts) == 0 {
		texts = []string{"{raw}"}
		if c.entry.scheme == SchemeHash {
			c.problem("signed", "scheme hash needs `signed` with a {secret}", "as in signed: \"{secret}{raw}\"")
			return
		}
	}
	if len(texts) > maxAlternatives {
		c.problem("signed", fmt.Sprintf("more than %d alternatives", maxAlternatives), "")
		return
	}
	sc := scope{names: c.names, format: c.entry.format, timestamp: c.timed(), secret: c.entry.scheme == SchemeHash}
	for i, text := range texts {
		t, faults := parseTemplate(text, sc)
		c.faults("signed", i, faults...)
		if len(faults) == 0 && c.entry.scheme == SchemeHash && !t.has(partSecret) {
			c.faults("signed", i, fault{0, "without {secret} anybody can make this hash", "as in \"{secret}{raw}\""})
		}
		if len(faults) == 0 && !t.varies() {
			c.faults("signed", i, fault{0, "this text is the same for every delivery", "it needs a hole, as in {raw}"})
		}
		c.entry.signed = append(c.entry.signed, t)
	}
}

func (c *compiler) tolerance() {
	c.entry.tolerance = defaultTolerance
	text := c.cfg.Tolerance
	if text == "" {
		return
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil && strings.Trim(text, "0123456789") == "":
		c.problem("tolerance", fmt.Sprintf("%q has no unit", text), fmt.Sprintf("seconds are written %ss", text))
	case err != nil:
		c.problem("tolerance", fmt.Sprintf("%q is no duration", text), "as in 300s or 5m; 0s is no check")
	case d < 0:
		c.problem("tolerance", "a tolerance cannot be negative", "0s is no check")
	case d > 0 && !c.timed():
		c.problem("tolerance", "nothing says when the delivery was signed, so there is nothing to tolerate", "name a `timestamp`, or leave tolerance out")
	}
	c.entry.tolerance = d
}

func (c *compiler) keys() {
	k := c.cfg.Keys
	if k == nil {
		return
	}
	if k.Published != "" {
		keys, err := parsePublicKeys(k.Published)
		if err != nil {
			c.problem("keys.published", err.Error(), "copy the sender's key set as it publishes it")
		} else if c.entry.published = usableKeys(keys, c.entry); len(c.entry.published) == 0 {
			c.problem("keys.published", fmt.Sprintf("none of the keys is for scheme %s", c.entry.scheme), "")
		}
	}
	inHand := k.Published != "" || c.cfg.SecretsGiven
	if k.JWKS != "" {
		if u, err := url.Parse(k.JWKS); err != nil || u.Scheme != "https" || u.Host == "" {
			c.problem("keys.jwks", "the address of a key set begins with https://", "")
		} else if !inHand {
			c.problem("keys.jwks", "fetching key sets waits for the catalogue", "give the keys in the file under keys: {published: ...}")
		}
	}
	if k.Certificate != "" {
		c.expression("keys.certificate", k.Certificate)
		if !inHand {
			c.problem("keys.certificate", "fetching certificates waits for the catalogue", "give the certificate or its public key under `secrets`")
		}
	} else if len(k.Hosts) > 0 {
		c.problem("keys.hosts", "hosts belongs to certificate", "leave it out")
	}
	if k.JWKS == "" && k.Certificate == "" && k.Published == "" {
		c.problem("keys", "keys is empty", "write published, or leave keys out and put public keys under `secrets`")
	}
}

func (c *compiler) prefixes() []string {
	if c.entry.scheme != SchemeStandardWebhooks {
		return nil
	}
	prefix := c.cfg.Prefix
	if prefix == "" || strings.EqualFold(prefix, defaultPrefix) {
		return []string{defaultPrefix}
	}
	if strings.Trim(prefix, headerLetters) != "" || !strings.HasSuffix(prefix, "-") {
		c.problem("prefix", fmt.Sprintf("%q is no beginning of a header's name", prefix), "letters, digits and - with a - at its end, as in svix-")
	}
	return []string{prefix, defaultPrefix}
}

func (c *compiler) expression(key, text string) *expr.Program {
	return c.program(key, text, expr.Compile)
}

func (c *compiler) condition(key, text string) *expr.Program {
	return c.program(key, text, expr.CompileCondition)
}

func (c *compiler) program(key, text string, compile func(string, expr.Names) (*expr.Program, error)) *expr.Program {
	if text == "" {
		return nil
	}
	prog, err := compile(text, c.names)
	if err != nil {
		c.faults(key, 0, expressionProblems(err)...)
		return nil
	}
	return prog
}

// items finds out what has to be checked for each item of a split body.
func (c *compiler) items() {
	e := c.entry
	e.itemRequired = dependsOnItem(e.require)
	for _, prog := range []*expr.Program{e.location.field, e.timestamp} {
		e.itemChecked = e.itemChecked || dependsOnItem(prog)
		if prog != nil && prog.Refers("raw") {
			e.checkReads++
		}
	}
	for _, t := range e.signed {
		for _, p := range t.parts {
			e.itemChecked = e.itemChecked || dependsOnItem(p.prog)
		}
	}
}

// dependsOnItem reports whether an expression may differ between the items of one
// delivery. A name that is not known to be the delivery's own (one under `let`,
// for instance) may stand for something of the item, so it counts.
func dependsOnItem(prog *expr.Program) bool {
	if prog == nil {
		return false
	}
	whole := []string{"body", "raw", "headers", "query", "method", "url", "path", "params"}
	for _, read := range prog.Reads() {
		if !slices.Contains(whole, read.Parts[0]) {
			return true
		}
	}
	return false
}
