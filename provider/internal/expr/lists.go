package expr

import (
	"iter"
	"slices"
	"strings"

	"github.com/onceward/onceward/provider/internal/tree"
)

// joinTexts gives the texts of a list's scalars with a separator between them; nulls are left out.
func joinTexts(f *frame, args []tree.Value) (tree.Value, error) {
	if err := listArg(args[0]); err != nil {
		return tree.Value{}, err
	}
	separator := ""
	if len(args) == 2 {
		var err error
		if separator, err = textArg(args[1]); err != nil {
			return tree.Value{}, err
		}
	}
	var b strings.Builder
	joined := false
	for e := range args[0].Elements() {
		if e.IsNull() {
			continue
		}
		s, ok := e.Text()
		if !ok {
			return tree.Value{}, fault("join(list, separator) joins texts; the list holds "+describe(e), "")
		}
		if joined {
			b.WriteString(separator)
		}
		joined = true
		b.WriteString(s)
		if err := f.charge(1 + (len(separator)+len(s))/16); err != nil {
			return tree.Value{}, err
		}
	}
	return tree.StringOf(b.String()), nil
}

// flatten gives the elements of a list, those of lists in it in their place, to a depth (1 unless told); nulls, lists
// that are missing, are left out.
func flatten(f *frame, args []tree.Value) (tree.Value, error) {
	if err := listArg(args[0]); err != nil {
		return tree.Value{}, err
	}
	depth := int64(1)
	if len(args) == 2 {
		var err error
		if depth, err = intArg(args[1]); err != nil {
			return tree.Value{}, err
		}
		if depth < 0 {
			return tree.Value{}, fault("the depth is less than 0", "")
		}
	}
	list, err := flattened(f, nil, args[0], depth)
	if err != nil {
		return tree.Value{}, err
	}
	return tree.ListOf(list...), nil
}

func flattened(f *frame, into []tree.Value, list tree.Value, depth int64) ([]tree.Value, error) {
	for e := range list.Elements() {
		if err := f.charge(1); err != nil {
			return nil, err
		}
		switch {
		case e.IsNull():
		case e.Kind() == tree.List && depth > 0:
			var err error
			if into, err = flattened(f, into, e, depth-1); err != nil {
				return nil, err
			}
		default:
			into = append(into, e)
		}
	}
	return into, nil
}

// slice gives the elements from an index to before another.
func slice(f *frame, args []tree.Value) (tree.Value, error) {
	if err := listArg(args[0]); err != nil {
		return tree.Value{}, err
	}
	from, to, err := span(args, args[0].Len())
	if err != nil {
		return tree.Value{}, err
	}
	list, i := make([]tree.Value, 0, to-from), 0
	for e := range args[0].Elements() {
		if i >= to {
			break
		}
		if i >= from {
			list = append(list, e)
		}
		i++
	}
	return tree.ListOf(list...), f.charge(to)
}

// distinct gives each element once, where it stood first.
func distinct(f *frame, args []tree.Value) (tree.Value, error) {
	if err := listArg(args[0]); err != nil {
		return tree.Value{}, err
	}
	var list []tree.Value
	for e := range args[0].Elements() {
		found, err := among(f, slices.Values(list), e)
		if err != nil {
			return tree.Value{}, err
		}
		if !found {
			list = append(list, e)
		}
	}
	return tree.ListOf(list...), nil
}

// sortList sorts texts, numbers, truth values or instants; nulls come first.
func sortList(f *frame, args []tree.Value) (tree.Value, error) {
	if err := listArg(args[0]); err != nil {
		return tree.Value{}, err
	}
	list := slices.Collect(args[0].Elements())
	if err := f.charge(8*len(list) + args[0].Weight()); err != nil {
		return tree.Value{}, err
	}
	var failed error
	slices.SortStableFunc(list, func(a, b tree.Value) int {
		if a.IsNull() || b.IsNull() {
			return rank(a) - rank(b)
		}
		c, ok := tree.Compare(a, b)
		if !ok && failed == nil {
			failed = fault("the list to sort holds both "+describe(a)+" and "+describe(b), "")
		}
		return c
	})
	if failed != nil {
		return tree.Value{}, failed
	}
	for i := range list { // one element is never compared
		if k := list[i].Kind(); k == tree.List || k == tree.Object {
			return tree.Value{}, fault("lists and objects have no order", "")
		}
	}
	return tree.ListOf(list...), nil
}

// rank puts null before what is not.
func rank(v tree.Value) int {
	if v.IsNull() {
		return 0
	}
	return 1
}

// listTest returns a test of two lists.
func listTest(holds func(f *frame, a, b tree.Value) (bool, error)) impl {
	return func(f *frame, args []tree.Value) (tree.Value, error) {
		for _, v := range args {
			if err := listArg(v); err != nil {
				return tree.Value{}, err
			}
		}
		ok, err := holds(f, args[0], args[1])
		return tree.BoolOf(ok), err
	}
}

// hasElement reports whether list holds v.
func hasElement(f *frame, list, v tree.Value) (bool, error) { return among(f, list.Elements(), v) }

// among reports whether v is one of the elements.
func among(f *frame, elements iter.Seq[tree.Value], v tree.Value) (bool, error) {
	for e := range elements {
		if err := f.chargeEqual(e, v); err != nil {
			return false, err
		}
		if tree.Equal(e, v) {
			return true, nil
		}
	}
	return false, nil
}

// hasAny reports whether a holds an element of b.
func hasAny(f *frame, a, b tree.Value) (bool, error) {
	for e := range b.Elements() {
		if found, err := hasElement(f, a, e); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// hasAll reports whether a holds every element of b.
func hasAll(f *frame, a, b tree.Value) (bool, error) {
	for e := range b.Elements() {
		if found, err := hasElement(f, a, e); !found || err != nil {
			return false, err
		}
	}
	return true, nil
}
