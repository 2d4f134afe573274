package provider

import (
	"fmt"
	"strings"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider/internal/tree"
)

// function returns the derivation as a pure function of a row, nil if there is
// none. What fails is left out, and Why says so behind the condition that held.
func (d *deriveSpec) function() func(onceward.Folded) onceward.Derived {
	if len(d.fields) == 0 && len(d.states) == 0 {
		return nil
	}
	return func(row onceward.Folded) onceward.Derived {
		in := &rowNames{row: row}
		var out onceward.Derived
		if row.Tied {
			in.from = map[string][]string{}
			out.From = in.from
		}
		var why []string
		for _, f := range d.fields {
			v, err := f.prog.Eval(in)
			in.readFor(f.name)
			if err != nil {
				why = append(why, fmt.Sprintf("%s is left out: %v", f.name, err))
			}
			if err != nil || v.IsNull() {
				continue // the row shows what the facts give, if they give anything
			}
			out.Fields = append(out.Fields, onceward.NamedValue{Name: f.name, Value: valueOf(v)})
			in.derived = append(in.derived, tree.Member{Name: f.name, Value: v})
		}
		for _, s := range d.states {
			holds, err := s.cond.True(in)
			if err != nil {
				why = append(why, fmt.Sprintf("%s cannot be told: %v", s.state, err))
			} else if holds {
				out.Status, why = s.state, append([]string{s.why}, why...)
				break
			}
		}
		in.readFor(onceward.StatusPart)
		out.Why = strings.Join(why, "; ")
		return out
	}
}

// rowNames gives the fields of a row to expressions: derived ones, as far as they
// are computed, before folded ones.
type rowNames struct {
	row     onceward.Folded
	derived []tree.Member

	from map[string][]string // what was read for each derived name; nil if nobody asks
	read []string            // since the last readFor
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
	for _, m := range n.derived {
		if m.Name == name {
			return m.Value
		}
	}
	return treeOf(n.row.Field(name))
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
