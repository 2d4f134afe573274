package expr

import (
	"iter"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"github.com/onceward/onceward/provider/internal/tree"
)

// loop is a compiled list macro.
type loop struct {
	name      string
	list      node
	condition func(f *frame) (bool, error) // nil if there is none
	value     node                         // of map, else nil
	slot      int
	weight    int // what one turn costs
	offset    int
}

// buildMacro compiles a list macro.
func (c *compiler) buildMacro(e ast.Expr) node {
	m := c.macro(e)
	l := &loop{name: m.name, list: c.build(m.list), slot: len(c.scope), offset: c.offset(e)}
	c.scope = append(c.scope, m.variable)
	c.slots = max(c.slots, len(c.scope))
	before := c.built
	if m.condition != nil {
		l.condition = c.buildTruth(m.condition)
	}
	if m.value != nil {
		l.value = c.build(m.value)
	}
	l.weight = c.built - before
	c.scope = c.scope[:len(c.scope)-1]
	if m.name == operators.All || m.name == operators.Exists {
		return l.test
	}
	return l.collect
}

// elements returns what the macro ranges over: a list's elements or the names of an object's members; ok is false for
// null.
func (l *loop) elements(f *frame) (elements iter.Seq[tree.Value], ok bool, err error) {
	v, err := l.list(f)
	if err != nil {
		return nil, false, err
	}
	switch v.Kind() {
	case tree.Missing, tree.Null:
		return nil, false, nil
	case tree.List:
		return v.Elements(), true, nil
	case tree.Object:
		return func(yield func(tree.Value) bool) {
			for name := range v.Members() {
				if !yield(tree.StringOf(name)) {
					return
				}
			}
		}, true, nil
	}
	return nil, false, placed(fault(l.name+" goes through a list or an object, not "+describe(v), ""), l.offset)
}

// turn sets the variable and tells whether the condition holds.
func (l *loop) turn(f *frame, e tree.Value) (bool, error) {
	if err := f.charge(l.weight); err != nil {
		return false, placed(err, l.offset)
	}
	f.locals[l.slot] = e
	if l.condition == nil {
		return true, nil
	}
	return l.condition(f)
}

// test is all (decided by an element for which the condition is false) and exists (by one for which it is true). An element
// that decides does so even if the condition fails for another. Over null both are false.
func (l *loop) test(f *frame) (tree.Value, error) {
	decides := l.name == operators.Exists
	elements, ok, err := l.elements(f)
	if err != nil || !ok {
		return tree.BoolOf(false), err
	}
	var failed error
	for e := range elements {
		holds, err := l.turn(f, e)
		switch {
		case f.spent():
			return tree.Value{}, err
		case err != nil && failed == nil:
			failed = err
		case err == nil && holds == decides:
			return tree.BoolOf(decides), nil
		}
	}
	return tree.BoolOf(!decides), failed
}

// collect is filter and map. Over null both are null.
func (l *loop) collect(f *frame) (tree.Value, error) {
	elements, ok, err := l.elements(f)
	if err != nil || !ok {
		return tree.NullValue(), err
	}
	var list []tree.Value
	for e := range elements {
		holds, err := l.turn(f, e)
		if err != nil {
			return tree.Value{}, err
		}
		if !holds {
			continue
		}
		if l.value != nil {
			if e, err = l.value(f); err != nil {
				return tree.Value{}, err
			}
		}
		if err := f.charge(e.Weight()); err != nil {
			return tree.Value{}, placed(err, l.offset)
		}
		list = append(list, e)
	}
	return tree.ListOf(list...), nil
}
