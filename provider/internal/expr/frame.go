package expr

import (
	"github.com/onceward/onceward/provider/internal/tree"
)

// costLimit bounds one evaluation. A unit is about one turn of a list macro for each part of its expression, or 32
// bytes of text that are made or searched; all of them take some tens of milliseconds.
const costLimit = 1_000_000

// node is a compiled part of an expression.
type node func(f *frame) (tree.Value, error)

// frame is the state of one evaluation.
type frame struct {
	in     Input
	left   int64        // what may still be done
	locals []tree.Value // the variables of list macros, outermost first
	stack  []tree.Value // the arguments of the functions that are being called
}

// charge takes n off what may still be done.
func (f *frame) charge(n int) error {
	f.left -= int64(n)
	if f.left < 0 {
		return f.tooCostly()
	}
	return nil
}

// spent reports whether the evaluation was stopped; such an error is never absorbed by && or ||.
func (f *frame) spent() bool { return f.left < 0 }

func (f *frame) tooCostly() error {
	return &Error{
		Offset: -1, Msg: ErrTooCostly.Error(), cause: ErrTooCostly,
		Hint: "loop over fewer elements, or not within another loop",
	}
}

// chargeText charges for making or searching n bytes.
func (f *frame) chargeText(n int) error { return f.charge(n / 32) }

// path is a name and what is read of it.
type path struct {
	name  string
	slot  int // of a macro's variable, else -1
	steps []step
}

// step reads one member or one element.
type step struct {
	name  string // of a member, or the decimal text of the index
	index int    // of an element, else -1
}

// walk reads the path of v.
func (p *path) walk(v tree.Value) tree.Value {
	for i := range p.steps {
		v = p.steps[i].read(v)
	}
	return v
}

// read returns the member or element of v. A form writes lists as objects, a[0]=x; so an index reads their members too.
func (s *step) read(v tree.Value) tree.Value {
	if s.index >= 0 && v.Kind() == tree.List {
		return v.Index(s.index)
	}
	return v.Get(s.name)
}

// node returns what evaluates the path within an expression.
func (p *path) node(offset int) node {
	return func(f *frame) (tree.Value, error) {
		var v tree.Value
		if p.slot >= 0 {
			v = f.locals[p.slot]
		} else {
			v = f.in.Lookup(p.name)
		}
		for i := range p.steps {
			if err := f.chargeRead(v, p.steps[i].index); err != nil {
				return v, placed(err, offset)
			}
			v = p.steps[i].read(v)
		}
		return v, nil
	}
}

// chargeRead charges for looking a member or an element up, which takes longer in what is large.
func (f *frame) chargeRead(v tree.Value, index int) error {
	n := v.Len()
	if v.Kind() == tree.List {
		n = max(0, min(n, index))
	}
	if n < 64 {
		return nil
	}
	return f.charge(n / 8)
}

// chargeEqual charges for comparing two values.
func (f *frame) chargeEqual(a, b tree.Value) error {
	return f.charge(min(a.Weight(), b.Weight()))
}
