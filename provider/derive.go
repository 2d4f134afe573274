package provider

import (
	"fmt"
	"strings"
	"sync"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/tree"
)

// function returns the derivation as a pure function of a row, nil if there is
// none. What fails is left out, and Why says so behind the condition that held.
func (d *deriveSpec) function() func(onceward.Folded) onceward.Derived {
	if len(d.fields) == 0 && len(d.states) == 0 {
		return nil
	}
	// Rows are derived by the hundred thousand while other deliveries wait, so what an
	// evaluation needs is kept from one to the next.
	var pool sync.Pool
	return func(row onceward.Folded) onceward.Derived {
		in, kept := pool.Get().(*rowNames)
		if !kept {
			in = new(rowNames)
		}
		in.row = row
		out := d.derive(in)
		in.reset()
		pool.Put(in)
		return out
	}
}

func (d *deriveSpec) derive(in *rowNames) onceward.Derived {
	var out onceward.Derived
	if in.row.Tied {
		in.from = map[string][]string{}
		out.From = in.from
	}
	var failed []string
	for _, f := range d.fields {
		v, err := f.prog.EvalIn(&in.memory, in)
		in.readFor(f.name)
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s is left out: %v", f.name, err))
		}
		if err != nil || v.IsNull() {
			continue // the row shows what the facts give, if they give anything
		}
		out.Fields = append(out.Fields, onceward.NamedValue{Name: f.name, Value: valueOf(v)})
		in.derived = append(in.derived, tree.Member{Name: f.name, Value: v})
	}
	for _, s := range d.states {
		if in.lacks(s.cond) {
			continue
		}
		holds, err := s.cond.TrueIn(&in.memory, in)
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s cannot be told: %v", s.state, err))
		} else if holds {
			out.Status, out.Why = s.state, s.why
			break
		}
	}
	in.readFor(onceward.StatusPart)
	if len(failed) > 0 {
		if out.Why != "" {
			failed = append([]string{out.Why}, failed...)
		}
		out.Why = strings.Join(failed, "; ")
	}
	return out
}

// rowNames gives the fields of a row to expressions: derived ones, as far as they
// are computed, before folded ones. It is used by one goroutine at a time.
type rowNames struct {
	row     onceward.Folded
	derived []tree.Member
	told    []tree.Member // the folded ones that were read

	from map[string][]string // what was read for each derived name; nil if nobody asks
	read []string            // since the last readFor

	memory expr.Memory
}

// reset forgets the row.
func (n *rowNames) reset() {
	clear(n.derived)
	clear(n.told)
	n.row, n.derived, n.told = onceward.Folded{}, n.derived[:0], n.told[:0]
	n.from, n.read = nil, nil // which the caller has
	n.memory.Reset()
}

// lacks reports whether the row lacks what the condition cannot hold without. Where
// it is noted what is read, everything is, as a condition reads it.
func (n *rowNames) lacks(cond *expr.Program) bool {
	if n.from != nil {
		return false
	}
	for _, name := range cond.Needs() {
		if n.Lookup(name).IsNull() {
			return true
		}
	}
	return false
}

// readFor notes that what was read since the last call was read to derive name.
func (n *rowNames) readFor(name string) {
	if n.from != nil {
		n.from[name], n.read = n.read, nil
	}
}

// Lookup implements [expr.Input].
func (n *rowNames) Lookup(name string) tree.Value {
	if n.from != nil {
		n.read = append(append(n.read, name), n.from[name]...)
	}
	if name == onceward.StatusPart {
		if n.row.Status == "" {
			return tree.Value{}
		}
		return tree.StringOf(n.row.Status)
	}
	for i := range n.derived {
		if n.derived[i].Name == name {
			return n.derived[i].Value
		}
	}
	for i := range n.told {
		if n.told[i].Name == name {
			return n.told[i].Value
		}
	}
	v := treeOf(n.row.Field(name))
	n.told = append(n.told, tree.Member{Name: name, Value: v})
	return v
}

// treeOf returns a folded value as expressions read it.
func treeOf(v onceward.Value) tree.Value {
	switch {
	case v.IsZero():
		return tree.Value{}
	case v.IsNull():
		return tree.NullValue()
	}
	if text, is := v.Text(); is {
		return tree.StringOf(text)
	}
	if n, is := tree.NumberOf(v.JSON()); is {
		return n
	}
	doc, err := tree.ParseText(v.JSON())
	if err != nil { // a value is JSON
		return tree.Value{}
	}
	return doc.Root
}
