package provider

import (
	"slices"
	"strings"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/tree"
)

// rule is one compiled entry of facts. It is immutable.
type rule struct {
	name      string
	types     typeFilter
	when      *expr.Program // nil: always
	whenSame  *sameText     // what when compares, if that is all
	each      string        // the name of an element, "" without each
	eachOf    *expr.Program
	kind      string
	key       keySpec
	status    *statusSpec // nil: tells none
	time      *expr.Program
	sequence  *expr.Program
	epoch     *expr.Program
	hint      bool
	hintWhen  *expr.Program
	fields    []fieldSpec
	timePlace place
}

// keySpec is an expression, or a list of them that is composed to one key.
type keySpec struct {
	parts    []*expr.Program
	composed bool
}

// statusSpec says which state a fact tells.
type statusSpec struct {
	state  string            // a literal one, else ""
	of     []*expr.Program   // the words; without a table they are states
	table  map[string]string // maps the sender's words to states, nil without one
	states []string          // what an expression may yield
}

type fieldSpec struct {
	name  string
	mode  onceward.Mode
	value *expr.Program
	by    *expr.Program
	// nulls says that a null there is told: a plain path, or the word null.
	nulls bool
	money bool // must be whole minor units
	link  bool // is the key of another row
	upper bool // is a currency
}

// typeFilter says which event types a rule is about.
type typeFilter struct {
	words []typeWord
	all   bool // what holds if no word fits
}

type typeWord struct {
	word string
	not  bool
}

// match applies the words; the last that fits decides.
func (f typeFilter) match(eventType string) bool {
	for _, w := range slices.Backward(f.words) {
		if onceward.MatchType(w.word, eventType) {
			return !w.not
		}
	}
	return f.all
}

// compileFacts compiles the rules.
func (c *compiler) compileFacts(n *node) {
	if n == nil || !c.isMap(n, "facts", "rules, each with a name of your choice") {
		return
	}
	for _, e := range n.entries {
		what := "facts." + e.key.text
		if e.key.text == "" {
			c.ps.add(e.key.at, "a rule needs a name")
			continue
		}
		if !c.isMap(e.value, what, "types, when, kind, key, status, fields, …") {
			continue
		}
		c.known(e.value, what, "types", "when", "each", "kind", "key", "status", "time", "sequence", "epoch", "hint", "fields")
		if r := c.rule(e); r != nil {
			c.p.rules = append(c.p.rules, r)
		}
	}
}

func (c *compiler) rule(e entry) *rule {
	n := e.value
	r := &rule{name: e.key.text, types: c.typeFilter(n.get("types")), timePlace: e.key.at}
	names := c.eachOf(r, n.get("each"))
	if when := n.get("when"); when != nil {
		r.when = c.condition(when, names)
		r.whenSame = c.sameText(when.text)
	}
	k := c.kindNamed(e, n.get("kind"))
	if key := n.get("key"); key != nil {
		r.key = c.key(key, names)
	} else {
		c.ps.add(e.key.at, "rule %s has no key; say which member is the entity's own id, as key: body.data.id", r.name)
	}
	optional := func(key string) *expr.Program {
		if v := n.get(key); v != nil {
			return c.expression(v, names)
		}
		return nil
	}
	r.time, r.sequence, r.epoch = optional("time"), optional("sequence"), optional("epoch")
	c.hint(r, n.get("hint"), names)
	if k == nil {
		return nil
	}
	r.kind = k.name
	if status := n.get("status"); status != nil {
		r.status = c.status(status, k, names)
	}
	if fields := n.get("fields"); fields != nil && c.isMap(fields, "fields", "names and expressions") {
		for _, f := range fields.entries {
			c.field(r, k, f, names)
		}
	}
	c.watchClock(r, k, e, n)
	return r
}

func (c *compiler) kindNamed(e entry, n *node) *kindSpec {
	if n == nil {
		c.ps.add(e.key.at, "rule %s has no kind; the kinds are %s, or your own under kinds", e.key.text, wordList(c.kindNames()))
		return nil
	}
	word, ok := c.text(n, "kind")
	if !ok {
		return nil
	}
	k := c.kindOf(word)
	if k == nil {
		c.ps.add(n.at, "there is no kind %q%s", word, didYouMean(word, c.kindNames(), "the kinds are "+wordList(c.kindNames())+", or your own under kinds"))
	}
	return k
}

func (c *compiler) typeFilter(n *node) typeFilter {
	if n == nil {
		return typeFilter{all: true}
	}
	f := typeFilter{all: true}
	for _, word := range c.words(n, "types", "an event type or a list of them, where * is any run of characters and a leading ! excludes") {
		text, not := strings.CutPrefix(word.text, "!")
		if text == "" {
			c.ps.add(word.at, "a ! excludes an event type, and none follows")
			continue
		}
		f.all = f.all && not // excluding on its own leaves all the others
		f.words = append(f.words, typeWord{text, not})
	}
	return f
}

// eachOf compiles each and returns the names that the rule may use.
func (c *compiler) eachOf(r *rule, n *node) expr.Names {
	if n == nil {
		return c.names
	}
	if n.kind != mapNode || len(n.entries) != 1 {
		c.ps.add(n.at, "each is one name and a list, as each: {charge: body.data.charges}")
		return c.names
	}
	e := n.entries[0]
	name := e.key.text
	r.eachOf = c.expression(e.value, c.names)
	switch {
	case !expr.IsName(name):
		c.ps.add(e.key.at, "%q is no name; write letters, digits and _", name)
		return c.names
	case c.names.Has(name):
		c.ps.add(e.key.at, "the name %q is taken; call the element otherwise", name)
		return c.names
	}
	r.each = name
	return c.names.With(name)
}

// key compiles an expression or a list of them.
func (c *compiler) key(n *node, names expr.Names) keySpec {
	if n.bad {
		return keySpec{parts: []*expr.Program{nil}}
	}
	if n.kind != listNode {
		return keySpec{parts: []*expr.Program{c.expression(n, names)}}
	}
	if len(n.items) == 0 {
		c.ps.add(n.at, "an empty list is no key; name at least one member")
	}
	spec := keySpec{composed: true}
	for _, item := range n.items {
		spec.parts = append(spec.parts, c.expression(item, names))
	}
	return spec
}

func (c *compiler) hint(r *rule, n *node, names expr.Names) {
	switch {
	case n == nil:
	case n.kind == scalarNode && (n.text == "true" || n.text == "false"):
		r.hint = n.text == "true"
	default:
		r.hintWhen = c.condition(n, names)
	}
}

// isLoneWord reports whether a status is a word, which is always a state.
func isLoneWord(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

func (c *compiler) status(n *node, k *kindSpec, names expr.Names) *statusSpec {
	if n.bad {
		return nil
	}
	switch n.kind {
	case listNode:
		c.ps.add(n.at, "status is a state, an expression, or a map of states to the sender's words; this is a list")
		return nil
	case mapNode:
		return c.statusTable(n, k, names)
	}
	if isLoneWord(n.text) {
		if !k.has(n.text) {
			if names.Has(n.text) {
				c.ps.add(n.at, "a lone word is always a state, and %q is none of %s; of a name write {of: %s, …} with the words under their states", n.text, k.name, n.text)
			} else {
				c.notAState(n, k)
			}
			return nil
		}
		return &statusSpec{state: n.text}
	}
	prog := c.expression(n, names)
	if prog == nil {
		return nil
	}
	if literal, ok := prog.Literal(); ok {
		if text, isText := literal.Text(); !isText || !k.has(text) {
			c.notAState(&node{text: text, at: n.at}, k)
			return nil
		}
	}
	return &statusSpec{of: []*expr.Program{prog}, states: k.states()}
}

func (c *compiler) statusTable(n *node, k *kindSpec, names expr.Names) *statusSpec {
	spec := &statusSpec{table: map[string]string{}, states: k.states()}
	of := n.get("of")
	switch {
	case of == nil:
		c.ps.add(n.at, "of is missing: it says where the sender's word is, as of: body.data.status")
	case of.kind == listNode:
		for _, item := range of.items {
			spec.of = append(spec.of, c.expression(item, names))
		}
	default:
		spec.of = append(spec.of, c.expression(of, names))
	}
	if of != nil && len(spec.of) == 0 {
		c.ps.add(of.at, "of names no expression")
	}
	first := map[string]string{}
	for _, e := range n.entries {
		state := e.key.text
		if state == "of" {
			continue
		}
		if !k.has(state) {
			c.notAState(e.key, k)
		}
		for _, word := range c.words(e.value, "status."+state, "a word of the sender's or a list of them") {
			if other, twice := first[word.text]; twice {
				c.ps.add(word.at, "the word %q stands under two states, %s and %s; it can mean one", word.text, other, state)
				continue
			}
			first[word.text] = state
			spec.table[word.text] = state
		}
	}
	if len(spec.table) == 0 && len(c.ps.faults) == 0 {
		c.ps.add(n.at, "no word of the sender's is listed; write them under their states, as paid: [ok, done]")
	}
	return spec
}

var fieldModes = []onceward.Mode{onceward.Latest, onceward.Max, onceward.Sum, onceward.Map}

// field compiles one field of a rule.
func (c *compiler) field(r *rule, k *kindSpec, e entry, names expr.Names) {
	f := fieldSpec{name: e.key.text}
	valid := c.fieldName(e.key)
	value := e.value
	var by *node
	if value.kind == mapNode {
		var ok bool
		if f.mode, value, by, ok = c.fieldMode(e); !ok {
			return
		}
	}
	f.value = c.expression(value, names)
	if by != nil {
		f.by = c.expression(by, names)
	}
	if !valid || f.value == nil || by != nil && f.by == nil {
		return
	}
	if use := k.fields[f.name]; use == nil {
		k.fields[f.name] = &fieldUse{f.mode, e.key.at}
		k.names = append(k.names, f.name)
	} else if use.mode != f.mode {
		c.ps.add(e.key.at, "field %s of %s is %s here and %s in line %d; all rules of a kind agree on a field's mode", f.name, k.name, f.mode, use.mode, use.at.line)
		return
	}
	c.fieldMeaning(&f, k)
	r.fields = append(r.fields, f)
}

// fieldMeaning finds out what a field is by its name, and whether it tells nulls.
func (c *compiler) fieldMeaning(f *fieldSpec, k *kindSpec) {
	f.nulls = f.value.IsNullLiteral() || c.tellsNull(f.value)
	f.money = f.mode == onceward.Sum ||
		slices.Contains(moneyKinds, k.name) && slices.Contains(moneyFields[:4], f.name)
	f.link = c.kindsNode.get(f.name) != nil && f.mode == onceward.Latest
	f.upper = f.name == "currency"
}

// tellsNull reports whether a null where this expression points is the sender's
// own: it is a path, and not one name that stands for something computed.
func (c *compiler) tellsNull(prog *expr.Program) bool {
	path, plain := prog.Path()
	if !plain {
		return false
	}
	if l := c.lets[path[0]]; l != nil && len(path) == 1 {
		return l.prog != nil && c.tellsNull(l.prog)
	}
	return true
}

// fieldMode reads {mode: expression, by: expression}.
func (c *compiler) fieldMode(e entry) (mode onceward.Mode, value, by *node, ok bool) {
	var words []string
	for _, m := range fieldModes {
		words = append(words, m.String())
	}
	for _, part := range e.value.entries {
		i := slices.Index(words, part.key.text)
		switch {
		case part.key.text == "by":
			by = part.value
		case i < 0:
			c.ps.add(part.key.at, "unknown key %q in field %s%s", part.key.text, e.key.text, didYouMean(part.key.text, append(words, "by"), "a field is an expression, or one of "+strings.Join(words, ", ")+" with its expression, and by"))
			return 0, nil, nil, false
		case value != nil:
			c.ps.add(part.key.at, "field %s has two modes, %s and %s; to replace that of the layer below write %s: none", e.key.text, mode, words[i], mode)
			return 0, nil, nil, false
		default:
			mode, value = fieldModes[i], part.value
		}
	}
	switch {
	case value == nil:
		c.ps.add(e.value.at, "field %s has no mode; write one of %s with its expression", e.key.text, strings.Join(words, ", "))
	case mode.Keyed() && by == nil:
		c.ps.add(e.value.at, "%s needs by: the id of what is counted, so that it counts once however often it is told", mode)
	case !mode.Keyed() && by != nil:
		c.ps.add(by.at, "by belongs to sum and map; %s has none", mode)
	default:
		return mode, value, by, true
	}
	return 0, nil, nil, false
}

// wordOf returns the text of a status word: numbers and truth values count by
// how they are written.
func wordOf(v tree.Value) (string, bool) {
	if v.IsNull() {
		return "", false
	}
	return v.Text()
}
