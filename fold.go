package onceward

import (
	"slices"
	"strings"
)

// Fold is the definition of a row: a pure function of the facts told about an
// entity, given in order of arrival, ties aside. Held facts count for nothing.
// The row's Version, Revision and Reached are left at zero: they tell the story
// of arrival and are not state.
//
// Each part shows the newest word about it: newest by the sender's clock, not by
// arrival. Where the clock cannot tell two words apart, what the sender says was
// replaced decides, else the last to arrive is shown (between terminal statuses
// the first) and the part is marked a tie.
func Fold(k *Kind, facts []Fact) *Row {
	r := &Row{}
	for i := range facts {
		if facts[i].Held == "" {
			r.setLocal(&facts[i])
		}
	}
	current, epoch := ofGreatestEpoch(facts)
	r.Epoch = epoch
	var told []telling
	for _, f := range current {
		if k.tellsStatus(f) {
			told = append(told, telling{f, String(f.Status), k.StatusOrder(f)})
		}
	}
	if len(told) > 0 {
		value, m := newest(k, told, StatusPart, "")
		r.Told, _ = value.Text()
		r.status = m
	}
	for _, part := range partsTold(k, current) {
		r.parts = append(r.parts, foldPart(k, current, part))
	}
	r.derive(k)
	return r
}

// ofGreatestEpoch returns the facts of the greatest epoch and those without one.
func ofGreatestEpoch(facts []Fact) ([]*Fact, Opt) {
	var epoch Opt
	for i := range facts {
		if f := &facts[i]; f.Held == "" && f.Epoch.Set && (!epoch.Set || f.Epoch.N > epoch.N) {
			epoch = f.Epoch
		}
	}
	var current []*Fact
	for i := range facts {
		if f := &facts[i]; f.Held == "" && (!f.Epoch.Set || f.Epoch == epoch) {
			current = append(current, f)
		}
	}
	return current, epoch
}

// partsTold lists the parts that some fact tells, the status aside, sorted.
func partsTold(k *Kind, facts []*Fact) []rowPart {
	var parts []rowPart
	for _, f := range facts {
		for _, p := range f.Fields {
			if k.tellsPart(p) {
				parts = append(parts, rowPart{field: p.Field, by: p.By, mode: k.mode(p)})
			}
		}
	}
	slices.SortFunc(parts, func(p, q rowPart) int { return p.compare(q.field, q.by) })
	return slices.CompactFunc(parts, func(p, q rowPart) bool { return p.field == q.field && p.by == q.by })
}

func foldPart(k *Kind, facts []*Fact, part rowPart) rowPart {
	var told []telling
	for _, f := range facts {
		for _, p := range f.Fields {
			if p.Field == part.field && p.By == part.by {
				told = append(told, telling{f, p.Value, k.FieldOrder(f)})
			}
		}
	}
	if part.mode == Max {
		part.value = Null
		for _, t := range told {
			if !t.value.IsNull() && t.value.Compare(part.value) > 0 {
				part.value = t.value
			}
		}
		return part
	}
	part.value, part.mark = newest(k, told, part.field, part.by)
	return part
}

// telling is a fact, what it tells of one part, and its order for that part.
type telling struct {
	fact  *Fact
	value Value
	order Order
}

// newest decides a part among the facts that tell it, in order of arrival.
func newest(k *Kind, tellings []telling, field, by string) (Value, mark) {
	var tick []telling // what the sender's clock cannot tell apart
	for _, t := range tellings {
		switch {
		case len(tick) == 0 || t.order > tick[0].order:
			tick = append(tick[:0:0], t)
		case t.order == tick[0].order:
			tick = append(tick, t)
		}
	}
	m := mark{order: tick[0].order, sink: true}
	replaced := map[string]bool{} // the values that another fact says it replaced
	told := map[string]bool{}
	for _, t := range tick {
		told[t.value.key()] = true
		m.sink = m.sink && k.IsTerminal(t.fact.Status)
		if was, ok := t.fact.was(field, by); ok {
			m.former = true
			if !was.Equal(t.value) {
				replaced[was.key()] = true
			}
		}
	}
	if len(told) == 1 {
		return tick[0].value, m
	}
	m.contested = true
	if left, one := lastLeft(tick, replaced, field, by); one {
		return left, m
	}
	m.tie = true
	if m.sink {
		return tick[0].value, m // terminals are sinks for each other, in all that they say
	}
	return tick[len(tick)-1].value, m
}

// lastLeft returns the one value of a tick that no other fact of it replaced, if
// there is just one and it was told as a change.
func lastLeft(tick []telling, replaced map[string]bool, field, by string) (Value, bool) {
	var left Value
	asChange := false
	for _, t := range tick {
		if replaced[t.value.key()] {
			continue
		}
		if !left.IsZero() && !left.Equal(t.value) {
			return Value{}, false
		}
		if left.IsZero() {
			left = t.value
		}
		_, told := t.fact.was(field, by)
		asChange = asChange || told
	}
	return left, asChange
}

// CleanText returns s as every store can keep it in a text column: bytes that
// are not UTF-8, and NUL, become U+FFFD. Bodies are never cleaned.
func CleanText(s string) string {
	clean := true
	for i := range len(s) {
		if s[i] == 0 || s[i] >= 0x80 {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
