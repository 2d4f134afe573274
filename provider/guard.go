package provider

import (
	"encoding/json"
	"strings"

	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/verify"
)

// verifyKeys are the keys of an entry of verify.
var verifyKeys = []string{
	"scheme", "header", "query", "field", "format", "separator", "signed", "timestamp", "tolerance", "hash", "encoding",
	"secret_as", "keys", "require", "prefix",
}

// compileVerify compiles the entries of verify.
func (c *compiler) compileVerify() {
	n := c.root.get("verify")
	if n == nil {
		c.ps.add(c.root.at, "verify is missing: it says how a delivery is known to be the sender's, as verify: {scheme: hmac, header: X-Signature}; what nobody signs is accepted with {scheme: none} only")
		return
	}
	entries := []*node{n}
	if n.kind == listNode {
		entries = n.items
		if len(entries) == 0 {
			c.ps.add(n.at, "verify is an empty list; write at least one entry, as {scheme: hmac, header: X-Signature}")
			return
		}
	}
	var configs []verify.Config
	faulty := make([]bool, len(entries))
	for i, e := range entries {
		before := len(c.ps.faults)
		configs = append(configs, c.verifyConfig(e))
		faulty[i] = len(c.ps.faults) > before
		c.verifyParams(e)
	}
	verifier, faults := verify.Compile(configs, c.names)
	for _, f := range faults {
		if f.Entry < len(faulty) && !faulty[f.Entry] { // what is missing because it was faulty is no fault of its own
			c.ps.add(faultPlace(entries, f), "%s", f.String())
		}
	}
	c.p.verifier = verifier
}

// faultPlace finds the place that a fault of the verifier is about.
func faultPlace(entries []*node, f verify.Problem) place {
	if f.Entry >= len(entries) {
		return entries[0].at
	}
	n := entries[f.Entry]
	at := n.at
	for key := range strings.SplitSeq(f.Key, ".") {
		next := n.get(key)
		if next == nil {
			return at
		}
		n = next
		at = n.at
	}
	if n.kind == listNode && f.Index < len(n.items) {
		n = n.items[f.Index]
	}
	if n.kind == scalarNode {
		return n.placeOf(f.Offset)
	}
	return n.at
}

func (c *compiler) verifyConfig(n *node) verify.Config {
	cfg := verify.Config{SecretsGiven: c.secretsIn}
	if !c.isMap(n, "an entry of verify", "scheme and its parameters") {
		return cfg
	}
	c.known(n, "verify", verifyKeys...)
	texts := map[string]*string{
		"scheme": &cfg.Scheme, "header": &cfg.Header, "query": &cfg.Query, "field": &cfg.Field, "format": &cfg.Format,
		"separator": &cfg.Separator, "timestamp": &cfg.Timestamp, "tolerance": &cfg.Tolerance, "hash": &cfg.Hash,
		"encoding": &cfg.Encoding, "secret_as": &cfg.SecretAs, "require": &cfg.Require, "prefix": &cfg.Prefix,
	}
	for _, e := range n.entries {
		target := texts[e.key.text]
		if target == nil {
			continue
		}
		text, ok := c.text(e.value, "verify."+e.key.text)
		if ok && text == "" {
			c.ps.add(e.value.at, "verify.%s is empty; leave it out, or write what it is", e.key.text)
		}
		*target = text
	}
	if signed := n.get("signed"); signed != nil {
		for _, text := range c.words(signed, "verify.signed", "a text with holes, as {timestamp}.{raw}, or a list of alternatives") {
			cfg.Signed = append(cfg.Signed, text.text)
		}
	}
	if keys := n.get("keys"); keys != nil {
		cfg.Keys = c.verifyPublished(keys)
	}
	return cfg
}

// verifyParams checks the params in what the verifier compiles itself; other
// faults are reported there.
func (c *compiler) verifyParams(n *node) {
	for _, key := range []string{"field", "timestamp", "require"} {
		e := n.get(key)
		if e == nil || e.kind != scalarNode {
			continue
		}
		if prog, err := expr.Compile(e.text, c.names); err == nil {
			c.checkParams(e, prog)
		}
	}
	signed := n.get("signed")
	if signed == nil {
		return
	}
	format := ""
	if f := n.get("format"); f != nil {
		format = f.text
	}
	for _, text := range append([]*node{signed}, signed.items...) {
		for _, read := range verify.SignedReads(text.text, format, c.names) {
			c.checkParam(text.placeOf(read.Offset), read)
		}
	}
}

// verifyPublished reads keys: where the sender's public keys are.
func (c *compiler) verifyPublished(n *node) *verify.KeysConfig {
	cfg := &verify.KeysConfig{}
	if !c.isMap(n, "verify.keys", "jwks, published, certificate and hosts") {
		return cfg
	}
	c.known(n, "verify.keys", "jwks", "published", "certificate", "hosts")
	for key, target := range map[string]*string{"jwks": &cfg.JWKS, "certificate": &cfg.Certificate} {
		if v := n.get(key); v != nil {
			*target, _ = c.text(v, "verify.keys."+key)
		}
	}
	if v := n.get("published"); v != nil {
		if cfg.Published = v.text; v.kind != scalarNode {
			cfg.Published = string(v.json())
		}
	}
	if v := n.get("hosts"); v != nil {
		for _, word := range c.words(v, "verify.keys.hosts", "the end of a host's name, as .paypal.com, or a list of them") {
			cfg.Hosts = append(cfg.Hosts, word.text)
		}
	}
	return cfg
}

// json returns a node as JSON, every scalar a text: a key set may stand in a file
// as the JSON that its sender publishes, which is YAML too.
func (n *node) json() []byte {
	switch n.kind {
	case listNode:
		parts := make([]string, len(n.items))
		for i, item := range n.items {
			parts[i] = string(item.json())
		}
		return []byte("[" + strings.Join(parts, ",") + "]")
	case mapNode:
		parts := make([]string, len(n.entries))
		for i, e := range n.entries {
			parts[i] = string(e.key.json()) + ":" + string(e.value.json())
		}
		return []byte("{" + strings.Join(parts, ",") + "}")
	}
	text, _ := json.Marshal(n.text) // a text always marshals
	return text
}

// compileChallenge compiles the handshake.
func (c *compiler) compileChallenge() {
	n := c.root.get("challenge")
	if n == nil || !c.isMap(n, "challenge", "method, when, and text or json") {
		return
	}
	c.known(n, "challenge", "method", "when", "text", "json")
	before := len(c.ps.faults)
	var cfg verify.ChallengeConfig
	for key, target := range map[string]*string{"method": &cfg.Method, "when": &cfg.When, "text": &cfg.Text} {
		if v := n.get(key); v != nil {
			*target, _ = c.text(v, "challenge."+key)
			c.checkChallengeParams(key, v)
		}
	}
	if object := n.get("json"); object != nil && c.isMap(object, "challenge.json", "names and expressions") {
		cfg.JSON = map[string]string{}
		for _, e := range object.entries {
			cfg.JSON[e.key.text], _ = c.text(e.value, "challenge.json."+e.key.text)
			c.checkChallengeParams("json", e.value)
		}
	}
	if len(c.ps.faults) > before {
		return
	}
	challenge, faults := verify.CompileChallenge(cfg, c.names, c.p.verifier)
	for _, f := range faults {
		if f.Key != "" || c.p.verifier != nil { // whether it can sign is known only with a verifier
			c.ps.add(faultPlace([]*node{n}, f), "%s", f.String())
		}
	}
	c.p.challenge = challenge
}

func (c *compiler) checkChallengeParams(key string, n *node) {
	if key == "method" {
		return
	}
	if prog, err := expr.Compile(n.text, c.names.WithSign()); err == nil {
		c.checkParams(n, prog)
	}
}
