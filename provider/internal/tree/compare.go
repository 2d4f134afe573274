package tree

import (
	"cmp"
	"strings"
	"time"
)

// Equal reports whether two values are the same: numbers as numbers (49.90 is 49.9, exactly), objects whatever the order
// of their members, Missing like null. Values of different kinds differ.
func Equal(a, b Value) bool {
	if a.IsNull() || b.IsNull() {
		return a.IsNull() && b.IsNull()
	}
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case String:
		if a.form == formPlain && b.form == formPlain {
			return a.text == b.text
		}
	case List:
		return equalLists(a, b)
	case Object:
		return equalObjects(a, b)
	}
	c, _ := Compare(a, b)
	return c == 0
}

func equalLists(a, b Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	others := make([]Value, 0, b.Len())
	for e := range b.Elements() {
		others = append(others, e)
	}
	i := 0
	for e := range a.Elements() {
		if !Equal(e, others[i]) {
			return false
		}
		i++
	}
	return true
}

func equalObjects(a, b Value) bool {
	if a.form == formLookup || b.form == formLookup {
		return a.from == b.from
	}
	if a.Len() != b.Len() {
		return false
	}
	others := make(map[string]Value, b.Len())
	for name, v := range b.Members() {
		others[name] = v
	}
	for name, v := range a.Members() {
		other, ok := others[name]
		if !ok || !Equal(v, other) {
			return false
		}
	}
	return true
}

// Compare orders two numbers (exactly, whatever their size), two texts (by their bytes), two truth values (false first)
// or two instants: -1, 0 or 1. It is false for any other pair.
func Compare(a, b Value) (order int, ok bool) {
	if a.kind != b.kind {
		return 0, false
	}
	switch a.kind {
	case Number:
		return compareNumbers(a, b), true
	case String:
		x, _ := a.Text()
		y, _ := b.Text()
		return strings.Compare(x, y), true
	case Bool:
		return cmp.Compare(a.num, b.num), true
	case Time:
		return compareTimes(a, b), true
	}
	return 0, false
}

func compareNumbers(a, b Value) int {
	x, whole := a.Int64()
	y, both := b.Int64()
	if whole && both {
		return cmp.Compare(x, y)
	}
	s, _ := a.NumberText()
	t, _ := b.NumberText()
	return decimalOf(s).compare(decimalOf(t))
}

func compareTimes(a, b Value) int {
	return time.Unix(a.num, int64(a.at)).Compare(time.Unix(b.num, int64(b.at)))
}
