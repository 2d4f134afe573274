package provider

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider/internal/expr"
)

//go:embed kinds.yaml
var kindsFile []byte

// moneyFields are names that derivations may read on any kind, told or not, and
// of which the first four are whole minor units wherever the kind is one of the
// built-in ones with money.
var moneyFields = []string{"amount", "captured", "refunded", "fee", "currency", "dispute"}

// moneyKinds are the built-in kinds whose money fields are checked.
var moneyKinds = []string{"payment", "order", "refund", "dispute", "subscription", "invoice", "payout", "checkout"}

// IsReservedField reports whether the row itself uses a name, so that no fact may
// tell a field of this name.
func IsReservedField(name string) bool { return slices.Contains(reservedFields, name) }

// reservedFields are names that the row itself uses.
var reservedFields = []string{"status", "told", "local", "tie", "version", "key", "kind", "source"}

// builtinKinds parses the table of kinds.
func builtinKinds(ps *problems) *node {
	return parseNode(newSource("kinds.yaml", kindsFile, true), kindsFile, ps)
}

// kindSpec is one kind while its file is compiled.
type kindSpec struct {
	name   string
	node   *node // nil for a kind that does not exist
	at     place
	kind   onceward.Kind
	fields map[string]*fieldUse
	names  []string // of the fields, in the order in which rules tell them
	derive deriveSpec
}

// fieldUse is the first place where a field of a kind is told.
type fieldUse struct {
	mode onceward.Mode
	at   place
}

// states lists all states, lowest rank first.
func (k *kindSpec) states() []string { return slices.Concat(k.kind.States...) }

func (k *kindSpec) has(state string) bool { return slices.Contains(k.states(), state) }

// kindNames lists the kinds there are.
func (c *compiler) kindNames() []string {
	var names []string
	for _, e := range c.kindsNode.entries {
		names = append(names, e.key.text)
	}
	return names
}

// kindOf returns the kind of this name, compiling it when it is first asked for;
// nil if there is none.
func (c *compiler) kindOf(name string) *kindSpec {
	if k, done := c.kinds[name]; done {
		return k
	}
	n := c.kindsNode.get(name)
	if n == nil {
		return nil
	}
	k := &kindSpec{name: name, node: n, at: c.kindsNode.key(name).at, fields: map[string]*fieldUse{}}
	k.kind = onceward.Kind{Name: name, Fields: map[string]onceward.Mode{}}
	c.kinds[name] = k
	c.kindOrder = append(c.kindOrder, name)
	if !isWord(name) {
		c.ps.add(k.at, "%q is no name of a kind; write small letters, digits and _, as subscription", name)
	}
	if !c.isMap(n, "kinds."+name, "states, terminal, order and derive") {
		c.kindOrderOf(k, nil) // its rules are looked at all the same, for what else is wrong
		return k
	}
	c.known(n, "kinds."+name, "states", "terminal", "order", "derive")
	c.kindStates(k, n.get("states"))
	c.kindTerminal(k, n.get("terminal"))
	c.kindOrderOf(k, n.get("order"))
	return k
}

func (c *compiler) kindStates(k *kindSpec, n *node) {
	if n == nil {
		c.ps.add(k.at, "kind %s has no states; list them, lowest rank first, as states: [created, paid, [delivered, returned]]", k.name)
		return
	}
	if n.kind != listNode {
		c.ps.add(n.at, "states is a list, lowest rank first, as [created, paid, [delivered, returned]]; this is %s", n.what())
		return
	}
	for _, item := range n.items {
		group := []*node{item}
		if item.kind == listNode {
			group = item.items
		}
		var words []string
		for _, word := range group {
			switch {
			case word.kind != scalarNode || !isWord(word.text):
				c.ps.add(word.at, "a state is a word of small letters, digits and _; this is %s", described(word))
			case word.text == "of" || word.text == noneWord:
				c.ps.add(word.at, "no state can be called %q: the word has another meaning in these files", word.text)
			case slices.Contains(words, word.text) || k.has(word.text):
				c.ps.add(word.at, "state %q stands twice", word.text)
			default:
				words = append(words, word.text)
			}
		}
		if len(words) > 0 {
			k.kind.States = append(k.kind.States, words)
		}
	}
	if len(k.kind.States) == 0 && len(n.items) == 0 {
		c.ps.add(n.at, "kind %s has no states; list them, lowest rank first", k.name)
	}
}

func (c *compiler) kindTerminal(k *kindSpec, n *node) {
	if n == nil {
		return
	}
	for _, word := range c.words(n, "terminal", "a state or a list of states") {
		switch {
		case !k.has(word.text):
			c.notAState(word, k)
		case slices.Contains(k.kind.Terminal, word.text):
			c.ps.add(word.at, "%q stands twice", word.text)
		default:
			k.kind.Terminal = append(k.kind.Terminal, word.text)
		}
	}
	c.warnSinks(k, n)
}

// warnSinks warns of terminal states that share a rank. Those of the built-in
// kinds are meant: which of two ends of a job came first nobody can know.
func (c *compiler) warnSinks(k *kindSpec, n *node) {
	for _, group := range k.kind.States {
		var sinks []string
		for _, state := range group {
			if slices.Contains(k.kind.Terminal, state) {
				sinks = append(sinks, state)
			}
		}
		if len(sinks) > 1 && !n.at.src.builtin {
			c.ps.warn(n.at, "%s share a rank and are terminal: of two that are told, the one stored first stays and is marked a tie; give them ranks if one can follow the other", strings.Join(sinks, " and "))
		}
	}
}

func (c *compiler) kindOrderOf(k *kindSpec, n *node) {
	if n == nil {
		k.kind.Order = []onceward.Component{onceward.Time, onceward.Rank}
		return
	}
	components := map[string]onceward.Component{}
	var names []string
	for _, comp := range []onceward.Component{onceward.Sequence, onceward.Time, onceward.Rank} {
		components[comp.String()] = comp
		names = append(names, comp.String())
	}
	for _, word := range c.words(n, "order", "a list of sequence, time and rank") {
		comp, known := components[word.text]
		switch {
		case !known:
			c.ps.add(word.at, "%q is no component of an order%s", word.text, didYouMean(word.text, names, "write sequence, time or rank"))
		case slices.Contains(k.kind.Order, comp):
			c.ps.add(word.at, "%q stands twice", word.text)
		default:
			k.kind.Order = append(k.kind.Order, comp)
		}
	}
	if len(k.kind.Order) == 0 {
		k.kind.Order = []onceward.Component{onceward.Time, onceward.Rank}
	}
}

// notAState says that a word is no state of the kind, and which there are.
func (c *compiler) notAState(word *node, k *kindSpec) {
	if len(k.kind.States) == 0 {
		return // which is reported where the states should stand
	}
	c.ps.add(word.at, "%q is not a state of %s%s", word.text, k.name, didYouMean(word.text, k.states(), "its states are "+wordList(k.states())))
}

// finishKinds compiles what needs to know every field of a kind, and makes the
// kinds.
func (c *compiler) finishKinds() map[string]*onceward.Kind {
	for _, e := range c.ownKinds.entries {
		c.kindOf(e.key.text) // also those that no rule names
	}
	made := map[string]*onceward.Kind{}
	for _, name := range c.kindOrder {
		k := c.kinds[name]
		c.deriveOf(k, k.node.get("derive"))
		for field, use := range k.fields {
			k.kind.Fields[field] = use.mode
		}
		k.kind.Derive = k.derive.function()
		kind, err := onceward.NewKind(k.kind)
		if err != nil {
			if len(c.ps.faults) == 0 {
				c.ps.add(k.at, "%v", err)
			}
			continue
		}
		made[name] = kind
	}
	return made
}

// deriveSpec is a compiled `derive`.
type deriveSpec struct {
	fields []derivedField
	states []derivedState
}

type derivedField struct {
	name string
	prog *expr.Program
}

type derivedState struct {
	state, why string
	cond       *expr.Program
}

func (c *compiler) deriveOf(k *kindSpec, n *node) {
	if n == nil || !c.isMap(n, "derive", "names of fields and status") {
		return
	}
	names := slices.Concat(k.names, []string{onceward.StatusPart})
	if slices.Contains(moneyKinds, k.name) {
		names = append(names, moneyFields...)
	}
	for _, e := range n.entries {
		name := e.key.text
		if name == onceward.StatusPart {
			continue
		}
		if !c.fieldName(e.key) {
			continue
		}
		prog := c.expression(e.value, expr.NewNames(names...))
		names = append(names, name)
		k.derive.fields = append(k.derive.fields, derivedField{name, prog})
	}
	status := n.get(onceward.StatusPart)
	if status == nil {
		return
	}
	if status.kind != listNode {
		c.ps.add(status.at, "the status is derived by a list, the first that holds, as [{refunded: refunded >= amount}]; this is %s", status.what())
		return
	}
	for _, item := range status.items {
		if item.kind != mapNode || len(item.entries) != 1 {
			c.ps.add(item.at, "this is one state and its condition, as refunded: refunded >= amount")
			continue
		}
		e := item.entries[0]
		if !k.has(e.key.text) {
			c.notAState(e.key, k)
		}
		cond := c.condition(e.value, expr.NewNames(names...))
		k.derive.states = append(k.derive.states, derivedState{e.key.text, e.key.text + ": " + e.value.text, cond})
	}
}
