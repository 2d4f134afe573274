package provider

import (
	"regexp"
	"slices"
	"strings"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider/internal/expr"
)

// timeUse is what rules of one kind take their time from, and where that is said.
type timeUse struct {
	from string
	at   place
}

// watchClock warns of rules whose facts could not be ordered as the kind says.
func (c *compiler) watchClock(r *rule, k *kindSpec, e entry, n *node) {
	sequence := slices.Contains(k.kind.Order, onceward.Sequence)
	if r.sequence != nil && !sequence {
		c.ps.warn(n.get("sequence").at, "the order of %s is %s, so this sequence decides nothing; write kinds: {%s: {order: [sequence, …]}}", k.name, orderText(k), k.name)
	}
	if r.hint {
		return // an old copy has whatever clock it has
	}
	switch k.kind.Order[0] {
	case onceward.Sequence:
		if r.sequence == nil {
			c.ps.warn(e.key.at, "rule %s tells no sequence, the first component of the order of %s: its facts are hints and overwrite nothing", r.name, k.name)
		}
	case onceward.Time:
		if r.time == nil && c.timeNode == nil {
			c.ps.warn(e.key.at, "rule %s tells no time, the first component of the order of %s: its facts are hints and overwrite nothing; write time, event.time, or kinds: {%s: {order: [rank]}}", r.name, k.name, k.name)
		}
	}
	if slices.Contains(k.kind.Order, onceward.Time) {
		c.watchTime(r, k, n)
	}
}

func orderText(k *kindSpec) string {
	words := make([]string, len(k.kind.Order))
	for i, comp := range k.kind.Order {
		words[i] = comp.String()
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// watchTime warns of clocks that cannot be compared, and of those too coarse.
func (c *compiler) watchTime(r *rule, k *kindSpec, n *node) {
	prog, at := r.time, c.timeNode
	if prog != nil {
		at = n.get("time")
	} else {
		prog = c.p.event.time
	}
	if prog == nil {
		return
	}
	from := strings.Join(strings.Fields(prog.Source()), " ")
	if path, plain := c.plainPath(prog); plain {
		from = strings.Join(path, ".")
	}
	uses := c.ruleTimes[k.name]
	known := slices.ContainsFunc(uses, func(u timeUse) bool { return u.from == from })
	if !known {
		c.ruleTimes[k.name] = append(uses, timeUse{from, at.at})
	}
	if !known && len(uses) > 0 {
		c.ps.warn(at.at, "rule %s takes the time of %s from %s, another from %s; two clocks are compared here, so make sure they are one", r.name, k.name, from, uses[0].from)
	}
	if !known && c.p.event.was == nil && c.coarse(prog) && sharesRank(k) {
		c.ps.warn(at.at, "this clock has no seconds and states of %s share a rank: of two facts in one minute the one stored last is shown and marked a tie; give the states ranks, or say where former values are with event.was", k.name)
	}
}

func sharesRank(k *kindSpec) bool {
	return slices.ContainsFunc(k.kind.States, func(group []string) bool { return len(group) > 1 })
}

// layoutArgument finds the layout in time(x, "layout", "zone").
var layoutArgument = regexp.MustCompile(`,\s*["']([^"']*)["']\s*,\s*["'][^"']*["']\s*\)`)

// coarse reports whether a clock is read by a layout without seconds.
func (c *compiler) coarse(prog *expr.Program) bool {
	if m := layoutArgument.FindStringSubmatch(prog.Source()); m != nil {
		return strings.Contains(m[1], "2006") && !strings.Contains(m[1], "05")
	}
	if l := c.lets[prog.Source()]; l != nil && l.prog != nil && l.prog != prog {
		return c.coarse(l.prog)
	}
	return false
}
