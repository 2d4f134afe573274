package tree

import "time"

// NullValue returns null.
func NullValue() Value { return Value{kind: Null} }

// BoolOf returns a truth value.
func BoolOf(b bool) Value {
	v := Value{kind: Bool}
	if b {
		v.num = 1
	}
	return v
}

// IntOf returns a whole number.
func IntOf(n int64) Value { return Value{kind: Number, form: formWhole, num: n} }

// NumberOf returns the number that text writes and that keeps this text; false if it is no number as JSON writes them.
func NumberOf(text string) (Value, bool) {
	end, reason := scanNumber(text, 0)
	if reason != "" || end != len(text) {
		return Value{}, false
	}
	return Value{kind: Number, text: text}, true
}

// StringOf returns a text. It may hold any bytes; where it is written as JSON, those that are not UTF-8 become U+FFFD.
func StringOf(s string) Value { return Value{kind: String, text: s} }

// ListOf returns a list of these elements, which the caller must not change afterwards; a Missing one counts as null.
func ListOf(elements ...Value) Value {
	c := &container{list: elements}
	for _, e := range elements {
		c.weight += e.Weight()
	}
	return Value{kind: List, from: c}
}

// ObjectOf returns an object with these members, which the caller must not change afterwards. Of equal names the first
// counts, and a member whose value is Missing is none.
func ObjectOf(members ...Member) Value {
	return objectOf(distinct(members))
}

// objectOf returns an object of members that are there and distinct.
func objectOf(members []Member) Value {
	c := &container{members: members}
	for _, m := range members {
		c.weight += m.Value.Weight() + len(m.Name)/16
	}
	return Value{kind: Object, from: c}
}

// distinct returns the members without those that are missing or stood before; it copies only if there are such.
func distinct(members []Member) []Member {
	if !anyDropped(members) {
		return members
	}
	kept, seen := make([]Member, 0, len(members)), make(map[string]bool, len(members))
	for _, m := range members {
		if m.Value.kind != Missing && !seen[m.Name] {
			seen[m.Name] = true
			kept = append(kept, m)
		}
	}
	return kept
}

// anyDropped reports whether distinct has something to leave out; long lists of members are not searched but copied.
func anyDropped(members []Member) bool {
	if len(members) > 16 {
		return true
	}
	for i, m := range members {
		if m.Value.kind == Missing {
			return true
		}
		for j := range i {
			if members[j].Name == m.Name {
				return true
			}
		}
	}
	return false
}

// LookupOf returns an Object whose members come from the function, which must be safe for concurrent use: so can
// headers["x-name"] be read in any letter case. It has no members to list, count or write as JSON.
func LookupOf(lookup func(name string) Value) Value {
	return Value{kind: Object, form: formLookup, from: &container{lookup: lookup}}
}

// TimeOf returns an instant, to the nanosecond and without its zone.
func TimeOf(t time.Time) Value {
	return Value{kind: Time, num: t.Unix(), at: uint32(t.Nanosecond())}
}

// Overlay returns at with values laid over it: objects member by member, anything else whole. What values does not
// name stays as it is in at; a null in values is a value. It is how former values are laid over an object.
func Overlay(at, values Value) Value {
	switch {
	case values.kind == Missing:
		return at
	case at.kind != Object || values.kind != Object:
		return values
	case at.form == formLookup || values.form == formLookup:
		return values
	}
	over := make(map[string]Value, values.Len())
	for name, v := range values.Members() {
		over[name] = v
	}
	members := make([]Member, 0, at.Len()+len(over))
	for name, v := range at.Members() {
		if former, ok := over[name]; ok {
			v = Overlay(v, former)
			delete(over, name)
		}
		members = append(members, Member{name, v})
	}
	for name, v := range values.Members() {
		if _, ok := over[name]; ok {
			members = append(members, Member{name, v})
		}
	}
	return objectOf(members)
}

// Put returns root with the value at path replaced by v; a part is a member's name, or the decimal index of an element.
// An empty path gives v. A path that does not exist in root is made of objects; where it meets something else than
// an object, or an index a list does not have, root is returned as it is and ok is false.
func Put(root Value, path []string, v Value) (put Value, ok bool) {
	if len(path) == 0 {
		return v, true
	}
	switch {
	case root.kind <= Null:
		inner, _ := Put(Value{}, path[1:], v)
		return ObjectOf(Member{path[0], inner}), true
	case root.kind == List:
		return putElement(root, path, v)
	case root.kind != Object || root.form == formLookup:
		return root, false
	}
	inner, ok := Put(root.Get(path[0]), path[1:], v)
	if !ok {
		return root, false
	}
	members, found := make([]Member, 0, root.Len()+1), false
	for name, old := range root.Members() {
		if name == path[0] {
			old, found = inner, true
		}
		members = append(members, Member{name, old})
	}
	if !found {
		members = append(members, Member{path[0], inner})
	}
	return ObjectOf(members...), true
}

// putElement is Put for a list.
func putElement(root Value, path []string, v Value) (Value, bool) {
	i, whole := wholeOf(path[0])
	if !whole || i < 0 || i >= int64(root.Len()) {
		return root, false
	}
	inner, ok := Put(root.Index(int(i)), path[1:], v)
	if !ok {
		return root, false
	}
	elements := make([]Value, 0, root.Len())
	for e := range root.Elements() {
		elements = append(elements, e)
	}
	elements[i] = inner
	return ListOf(elements...), true
}
