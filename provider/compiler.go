package provider

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/onceward/onceward/provider/internal/expr"
)

// baseNames are the names that every expression about a delivery may use.
var baseNames = []string{"body", "item", "raw", "headers", "query", "method", "url", "path", "type", "digest", "params"}

// compiler turns one layered file into a Provider. It gathers every fault and
// goes on. It is used by one goroutine.
type compiler struct {
	ps   *problems
	root *node
	p    *Provider

	names     expr.Names // baseNames and those under let
	params    map[string]*Param
	supplied  map[string]string // values that the source gives to params
	paramUsed map[string]bool   // that anything reads
	paramRead map[string]bool   // that what makes events and facts reads
	secretsIn bool              // the source gives secrets, or the provider is only read

	lets      map[string]*letSpec
	kindsNode *node // the table with the file's own keys laid over
	ownKinds  *node // the file's own
	kinds     map[string]*kindSpec
	kindOrder []string

	maskHeaders, maskQuery []string // that are compared with a secret

	typeProg  *expr.Program // of event.type
	timeNode  *node
	ruleTimes map[string][]timeUse // by kind
}

// rootKeys are the keys of a provider file.
var rootKeys = []string{
	"provider", "title", "docs", "params", "verify", "challenge", "unwrap", "split", "let", "event", "kinds", "facts",
	"ack", "notes", "fetch",
}

// sourceKeys are the keys that a source has besides.
var sourceKeys = []string{"secrets", "path", "max_body"}

// isMap reports whether n is a map and says what was expected if not.
func (c *compiler) isMap(n *node, what, of string) bool {
	if n.bad {
		return false
	}
	if n.kind != mapNode {
		c.ps.add(n.at, "%s is a map of %s; this is %s", what, of, n.what())
		return false
	}
	return true
}

// known reports keys of a map that mean nothing.
func (c *compiler) known(n *node, what string, keys ...string) {
	for _, e := range n.entries {
		if !slices.Contains(keys, e.key.text) {
			c.ps.add(e.key.at, "unknown key %q in %s%s", e.key.text, what, didYouMean(e.key.text, keys, "the keys are "+strings.Join(keys, ", ")))
		}
	}
}

// text returns a scalar's text; empty reports whether nothing may stand there.
func (c *compiler) text(n *node, what string) (string, bool) {
	if n.bad {
		return "", false
	}
	if n.kind != scalarNode || n.empty {
		c.ps.add(n.at, "%s is a text; this is %s", what, n.what())
		return "", false
	}
	return n.text, true
}

// words returns the scalars of a list, or the one scalar that stands for a list.
func (c *compiler) words(n *node, what, expected string) []*node {
	items := []*node{n}
	if n.kind == listNode {
		items = n.items
	}
	var words []*node
	for _, item := range items {
		if item.bad {
			continue
		}
		if item.kind != scalarNode || item.text == "" {
			c.ps.add(item.at, "%s is %s; this is %s", what, expected, item.what())
			continue
		}
		words = append(words, item)
	}
	return words
}

// yesNo reads a boolean.
func (c *compiler) yesNo(n *node, what string) bool {
	if n == nil {
		return false
	}
	if n.kind != scalarNode || n.text != "true" && n.text != "false" {
		c.ps.add(n.at, "%s is true or false; this is %s", what, described(n))
	}
	return n.text == "true"
}

func described(n *node) string {
	if n.kind == scalarNode && n.text != "" {
		return fmt.Sprintf("%q", n.text)
	}
	return n.what()
}

// isWord reports whether s is a word of small letters, digits and _ or -.
func isWord(s string) bool {
	for i, r := range s {
		switch {
		case 'a' <= r && r <= 'z':
		case i > 0 && ('0' <= r && r <= '9' || r == '_' || r == '-'):
		default:
			return false
		}
	}
	return s != ""
}

// expression compiles the expression that stands at n; nil if it is faulty.
func (c *compiler) expression(n *node, names expr.Names) *expr.Program {
	return c.compile(n, names, expr.Compile)
}

// condition compiles an expression that gives a truth value.
func (c *compiler) condition(n *node, names expr.Names) *expr.Program {
	return c.compile(n, names, expr.CompileCondition)
}

func (c *compiler) compile(n *node, names expr.Names, compile func(string, expr.Names) (*expr.Program, error)) *expr.Program {
	if n.bad {
		return nil
	}
	if n.kind != scalarNode || strings.TrimSpace(n.text) == "" || n.empty && n.text != "null" {
		c.ps.add(n.at, "an expression should stand here, as body.id; this is %s", n.what())
		return nil
	}
	prog, err := compile(n.text, names)
	if err != nil {
		c.expressionFaults(n, err)
		return nil
	}
	c.checkParams(n, prog)
	for _, read := range prog.Reads() {
		if read.Parts[0] == "params" && len(read.Parts) > 1 {
			c.paramRead[read.Parts[1]] = true
		}
	}
	return prog
}

// expressionFaults reports the faults of an expression, which may be joined.
func (c *compiler) expressionFaults(n *node, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			c.expressionFaults(n, e)
		}
		return
	}
	var fault *expr.Error
	if !errors.As(err, &fault) {
		c.ps.add(n.at, "%v", err)
		return
	}
	c.ps.add(n.placeOf(fault.Offset), "%s", withHint(fault.Msg, fault.Hint))
}

func withHint(msg, hint string) string {
	if hint == "" {
		return msg
	}
	return msg + "; " + hint
}

// checkParams checks the params that an expression reads.
func (c *compiler) checkParams(n *node, prog *expr.Program) {
	for _, read := range prog.Reads() {
		c.checkParam(n.placeOf(read.Offset), read)
		if read.Within != "same" || len(read.Parts) != 2 {
			continue
		}
		switch read.Parts[0] {
		case "headers":
			c.maskHeaders = append(c.maskHeaders, http.CanonicalHeaderKey(read.Parts[1]))
		case "query":
			c.maskQuery = append(c.maskQuery, read.Parts[1])
		}
	}
}

func (c *compiler) checkParam(at place, read expr.Read) {
	if read.Parts[0] != "params" {
		return
	}
	if len(read.Parts) == 1 {
		c.ps.add(at, "params is read by its members, as params.user_id")
		return
	}
	name := read.Parts[1]
	c.paramUsed[name] = true
	param, declared := c.params[name]
	_, given := c.supplied[name]
	switch {
	case !declared && !given:
		var names []string
		for known := range c.params {
			names = append(names, known)
		}
		slices.Sort(names)
		c.ps.add(at, "there is no param %q%s", name, didYouMean(name, names, fmt.Sprintf("declare it under params, as %s: {about: …}", name)))
	case declared && param.Secret && read.Within != "same":
		c.ps.add(at, "param %q is secret and may stand only in same(…), where it is compared in constant time", name)
	}
}

// fieldName checks the name of a field.
func (c *compiler) fieldName(key *node) bool {
	name := key.text
	switch {
	case IsReservedField(name):
		c.ps.add(key.at, "a field cannot be called %q, which the row uses itself; the names it uses are %s", name, strings.Join(reservedFields, ", "))
		return false
	case !expr.IsName(name):
		c.ps.add(key.at, "%q is no name of a field; write letters, digits and _, and no word of the expression language", name)
		return false
	}
	return true
}

// letSpec is one entry under let.
type letSpec struct {
	key  *node
	prog *expr.Program
	deps []string
}

// compileLets compiles the names under let. Each may use all others, but not
// itself by any way.
func (c *compiler) compileLets(n *node) {
	c.names = expr.NewNames(baseNames...)
	if n == nil || !c.isMap(n, "let", "names and expressions") {
		return
	}
	var names []string
	for _, e := range n.entries {
		switch name := e.key.text; {
		case !expr.IsName(name):
			c.ps.add(e.key.at, "%q is no name; write letters, digits and _", name)
		case c.names.Has(name):
			c.ps.add(e.key.at, "the name %q is taken; the names there are without let are %s", name, strings.Join(baseNames, ", "))
		default:
			names = append(names, name)
		}
	}
	c.names = c.names.With(names...)
	for _, e := range n.entries {
		if !slices.Contains(names, e.key.text) {
			continue
		}
		c.lets[e.key.text] = &letSpec{key: e.key}
	}
	for _, e := range n.entries {
		l := c.lets[e.key.text]
		if l == nil {
			continue
		}
		if l.prog = c.expression(e.value, c.names); l.prog != nil {
			l.deps = namesRead(l.prog)
		}
		c.p.letIndex[e.key.text] = len(c.p.lets)
		c.p.lets = append(c.p.lets, l.prog)
	}
	for _, name := range names {
		if cycle := c.cycleFrom(name); cycle != nil {
			c.ps.add(c.lets[name].key.at, "%s is defined by itself: %s", name, strings.Join(cycle, " -> "))
			c.lets[name].prog, c.lets[name].deps = nil, nil // breaks the circle for what follows
		}
	}
}

// namesRead lists the names that an expression reads, each once.
func namesRead(prog *expr.Program) []string {
	var names []string
	for _, read := range prog.Reads() {
		if !slices.Contains(names, read.Parts[0]) {
			names = append(names, read.Parts[0])
		}
	}
	return names
}

// cycleFrom returns a way from a let back to itself, nil if there is none.
func (c *compiler) cycleFrom(name string) []string {
	seen := map[string]bool{}
	var walk func(at string) []string
	walk = func(at string) []string {
		l := c.lets[at]
		if l == nil {
			return nil
		}
		for _, dep := range l.deps {
			if dep == name {
				return []string{at, name}
			}
			if seen[dep] {
				continue
			}
			seen[dep] = true
			if way := walk(dep); way != nil {
				return append([]string{at}, way...)
			}
		}
		return nil
	}
	return walk(name)
}

// reaches returns a way from an expression to one of the names, by way of let
// and type; nil if it reads none of them.
func (c *compiler) reaches(prog *expr.Program, names ...string) []string {
	seen := map[string]bool{}
	var walk func(prog *expr.Program) []string
	walk = func(prog *expr.Program) []string {
		if prog == nil {
			return nil
		}
		for _, name := range namesRead(prog) {
			if slices.Contains(names, name) {
				return []string{name}
			}
			if seen[name] {
				continue
			}
			seen[name] = true
			var next *expr.Program
			if l := c.lets[name]; l != nil {
				next = l.prog
			} else if name == "type" {
				next = c.typeProg
			}
			if way := walk(next); way != nil {
				return append([]string{name}, way...)
			}
		}
		return nil
	}
	return walk(prog)
}

// plainPath returns the members that an expression names one after the other,
// beginning with a base name: names under let are replaced by their paths. plain
// is false for anything else.
func (c *compiler) plainPath(prog *expr.Program) (path []string, plain bool) {
	if prog == nil {
		return nil, false
	}
	if path, plain = prog.Path(); !plain {
		return nil, false
	}
	l := c.lets[path[0]]
	if l == nil {
		return path, true
	}
	head, plain := c.plainPath(l.prog)
	return slices.Concat(head, path[1:]), plain
}
