package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/tree"
)

// facts extracts what the event says. If the event itself is in doubt, each rule
// about its type gives one held fact, or, if the type is in doubt too, one is given
// for all.
func (e *env) facts(ev *onceward.Event, h *held) []onceward.Fact {
	p := e.d.p
	if h.reason != "" && h.typeToo {
		if len(p.rules) == 0 {
			return nil
		}
		return []onceward.Fact{{Held: h.reason}}
	}
	var facts []onceward.Fact
	var former *env
	for _, r := range p.rules {
		if !r.types.match(ev.Type) {
			continue
		}
		if h.reason != "" {
			facts = append(facts, onceward.Fact{Rule: r.name, Held: h.reason})
			continue
		}
		x := extraction{env: e, rule: r, ev: ev}
		from := len(facts)
		facts = x.facts(facts)
		if len(facts) > from && p.event.was != nil {
			if former == nil {
				former = e.former()
			}
			x.addFormer(former, facts[from:])
		}
	}
	return facts
}

// extraction applies one rule to one event.
type extraction struct {
	*env
	rule *rule
	ev   *onceward.Event
	// elements are the positions in each of the facts made, -1 without each; they
	// are kept where former values are told.
	elements []int
}

// facts appends what the rule says about the event.
func (x *extraction) facts(facts []onceward.Fact) []onceward.Fact {
	if x.rule.eachOf == nil {
		return x.one(facts, -1)
	}
	list, err := x.eval(x.rule.eachOf)
	switch {
	case err == nil && list.IsNull():
		return facts
	case err != nil || list.Kind() != tree.List || list.Len() > maxElements:
		x.each, x.element = x.rule.each, tree.Value{}
		defer func() { x.each = "" }()
		if ok, whenErr := x.applies(); whenErr == nil && !ok {
			return facts
		}
		reason := "each gives no list"
		if err != nil {
			reason = fmt.Sprintf("each cannot be computed: %v", err)
		} else if list.Kind() == tree.List {
			reason = fmt.Sprintf("each gives %d elements; at most %d are read", list.Len(), maxElements)
		}
		return append(facts, onceward.Fact{Rule: x.rule.name, Held: reason})
	}
	x.each = x.rule.each
	defer func() { x.each = "" }()
	i := 0
	for element := range list.Elements() {
		x.element = element
		facts = x.one(facts, i)
		i++
	}
	return facts
}

// one appends the fact about one element, or about the event.
func (x *extraction) one(facts []onceward.Fact, element int) []onceward.Fact {
	ok, err := x.applies()
	if err == nil && !ok {
		return facts
	}
	if x.d.p.event.was != nil {
		x.elements = append(x.elements, element)
	}
	f := onceward.Fact{Rule: x.rule.name}
	if err == nil {
		err = x.fill(&f)
	} else {
		err = fmt.Errorf("when: %w", err)
	}
	if err != nil {
		f = onceward.Fact{Rule: f.Rule, Kind: f.Kind, Key: f.Key, Held: err.Error()}
	}
	return append(facts, f)
}

// applies evaluates the rule's condition.
func (x *extraction) applies() (bool, error) {
	if x.rule.whenSame != nil {
		return x.same(x.rule.whenSame)
	}
	return x.holds(x.rule.when)
}

// fill computes all of a fact; an error holds it.
func (x *extraction) fill(f *onceward.Fact) error {
	r := x.rule
	key, err := x.entityKey(r.key)
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	f.Kind, f.Key = r.kind, key
	if f.Status, err = x.status(r.status); err != nil {
		return fmt.Errorf("status: %w", err)
	}
	f.Time = x.ev.Time
	if r.time != nil {
		if f.Time, err = x.instant(r.time); err != nil {
			return fmt.Errorf("time: %w", err)
		}
	}
	if f.Sequence, err = x.whole(r.sequence); err != nil {
		return fmt.Errorf("sequence: %w", err)
	}
	if f.Epoch, err = x.whole(r.epoch); err != nil {
		return fmt.Errorf("epoch: %w", err)
	}
	f.Hint = r.hint
	if r.hintWhen != nil {
		if f.Hint, err = x.holds(r.hintWhen); err != nil {
			return fmt.Errorf("hint: %w", err)
		}
	}
	if len(r.fields) > 0 {
		f.Fields = make([]onceward.Part, 0, len(r.fields))
	}
	for i := range r.fields {
		part, told, err := x.field(&r.fields[i])
		if err != nil {
			f.Notes = append(f.Notes, fmt.Sprintf("%s: %v", r.fields[i].name, err))
		} else if told {
			f.Fields = append(f.Fields, part)
		}
	}
	return nil
}

// entityKey evaluates the key of an entity. With any part of it empty it would
// name another entity, so that holds the fact.
func (x *extraction) entityKey(spec keySpec) (string, error) {
	key, empty, err := x.key(spec)
	switch {
	case err != nil:
		return "", err
	case empty > 0 && spec.composed:
		return "", errors.New("a part is empty")
	case empty > 0:
		return "", errors.New("is empty")
	case len(key) > maxKeyBytes:
		return "", fmt.Errorf("is longer than %d bytes", maxKeyBytes)
	case !isWhole(key):
		return "", errors.New("holds bytes that no text has")
	}
	return key, nil
}

// status computes the state that is told, "" for none. The first word that is
// listed decides; words that are not listed are never guessed at.
func (x *extraction) status(spec *statusSpec) (string, error) {
	if spec == nil || spec.state != "" {
		if spec == nil {
			return "", nil
		}
		return spec.state, nil
	}
	var unlisted error
	for _, prog := range spec.of {
		v, err := x.eval(prog)
		if err != nil {
			return "", err
		}
		if v.IsNull() {
			continue
		}
		word, isText := wordOf(v)
		state, listed := word, isText && slices.Contains(spec.states, word)
		if spec.table != nil {
			state, listed = spec.table[word], false
			if isText {
				_, listed = spec.table[word]
			}
		}
		switch {
		case listed:
			return state, nil
		case unlisted != nil:
		case !isText:
			unlisted = errNoText
		default:
			unlisted = fmt.Errorf("the word %q is not listed", clip(word))
		}
	}
	return "", unlisted
}

// clip bounds a sender's word for a message.
func clip(word string) string {
	const most = 64
	word = onceward.CleanText(word)
	if len(word) > most {
		return strings.ToValidUTF8(word[:most], "") + "…"
	}
	return word
}

// whole evaluates a component that is a whole number; an instant counts its
// nanoseconds.
func (e *env) whole(prog *expr.Program) (onceward.Opt, error) {
	v, err := e.eval(prog)
	if err != nil || v.IsNull() {
		return onceward.Opt{}, err
	}
	if n, ok := v.Int64(); ok {
		return onceward.Some(n), nil
	}
	if t, ok := v.Time(); ok {
		return onceward.Instant(t), nil
	}
	return onceward.Opt{}, errors.New("is no whole number of 64 bits; of a text write int(…)")
}

// instant evaluates a time: an instant, or what time(x) reads.
func (e *env) instant(prog *expr.Program) (onceward.Opt, error) {
	v, err := e.eval(prog)
	if err != nil {
		return onceward.Opt{}, err
	}
	at, told, err := expr.Instant(v)
	if err != nil || !told {
		return onceward.Opt{}, err
	}
	return onceward.Instant(at), nil
}

// field computes one part; told is false if the fact says nothing about it.
func (x *extraction) field(f *fieldSpec) (part onceward.Part, told bool, err error) {
	v, err := x.eval(f.value)
	if err != nil {
		return part, false, err
	}
	if v.IsNull() && (v.Kind() == tree.Missing || !f.nulls || f.mode == onceward.Max) {
		return part, false, nil
	}
	part.Field = f.name
	if part.Value, err = f.meaning(v); err != nil {
		return part, false, err
	}
	if f.by == nil {
		return part, true, nil
	}
	switch part.By, err = x.text(f.by); {
	case err != nil:
		return part, false, fmt.Errorf("by: %w", err)
	case part.By == "":
		return part, false, errors.New("by is empty, so it cannot be told what is counted")
	case len(part.By) > maxKeyBytes || !isWhole(part.By):
		return part, false, errors.New("by is too long or holds bytes that no text has")
	}
	return part, true, nil
}

// meaning turns what an expression gave into a field's value.
func (f *fieldSpec) meaning(v tree.Value) (onceward.Value, error) {
	switch {
	case v.IsNull():
		return onceward.Null, nil
	case f.money:
		n, ok := v.Int64()
		if !ok {
			return onceward.Value{}, errors.New("is no whole number of minor units; write minor(x, currency) of a decimal, int(x) of a text")
		}
		return onceward.Int(n), nil
	case f.upper:
		text, ok := v.Text()
		if !ok {
			return onceward.Value{}, errNoText
		}
		return onceward.String(strings.ToUpper(onceward.CleanText(text))), nil
	case f.link && v.Kind() == tree.Number:
		text, _ := v.Text()
		return onceward.String(text), nil
	}
	return valueOf(v), nil
}

// valueOf returns a value of the tree as it is kept: numbers with their digits,
// instants as RFC 3339 in UTC. A NUL, which a store may not hold, becomes U+FFFD.
func valueOf(v tree.Value) onceward.Value {
	if text, is := v.NumberText(); is {
		return onceward.TrustedJSON(strings.Clone(text)) // not to keep the body alive
	}
	return onceward.TrustedJSON(string(withoutNUL(v.AppendJSON(nil))))
}

// withoutNUL replaces the escape of NUL in JSON text.
func withoutNUL(text []byte) []byte {
	const escape, replacement = `\u0000`, `\ufffd`
	if !strings.Contains(string(text), escape) {
		return text
	}
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if strings.HasPrefix(string(text[i:min(i+len(escape), len(text))]), escape) {
			copy(text[i:], replacement)
		}
		i++ // what is escaped begins no escape
	}
	return text
}
