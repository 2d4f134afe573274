// Package tree holds one parsed body, a JSON text or a form, as an immutable tree.
//
// A body is parsed once, strictly; every path and every expression reads the same tree, so no two readers can disagree
// about it. Numbers keep the text the sender wrote (an id of 64 bits and an amount of 49.90 survive), each value
// remembers the span of bytes it came from, and members that stand twice in one object are noticed.
package tree

import (
	"iter"
	"strconv"
	"time"
)

// Kind says what a Value is.
type Kind uint8

// The kinds of a value. Missing is the zero Kind: what reading an absent member gives.
const (
	Missing Kind = iota
	Null
	Bool
	Number
	String
	List
	Object
	Time
)

// String returns the word for k that error messages use.
func (k Kind) String() string {
	switch k {
	case Missing, Null:
		return "null"
	case Bool:
		return "truth value"
	case Number:
		return "number"
	case String:
		return "text"
	case List:
		return "list"
	case Object:
		return "object"
	case Time:
		return "instant"
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}

// form says where a value's content is.
type form uint8

const (
	formPlain  form = iota // text, num or from hold it as it is
	formCoded              // a String whose text still has escapes or invalid UTF-8 in it
	formWhole              // a Number held in num
	formParsed             // a List or Object whose node is at
	formLookup             // an Object answered by a function
)

// Value is one immutable value of a tree. It is cheap to copy and safe for concurrent use; it keeps the body it was
// parsed from alive. The zero Value is Missing.
type Value struct {
	kind Kind
	form form
	at   uint32     // the node in from, where from was parsed; of a Time the nanoseconds
	num  int64      // a Bool (0 or 1), a whole Number, the seconds of a Time
	text string     // of a String and of a Number
	from *container // a List's elements, an Object's members, and the source of a parsed value
}

// container is what values share: a parsed body, or the content of one computed list or object.
type container struct {
	src     string // of a parsed body
	nodes   []node // of a parsed body, in the order of the source; a member's name stands before its value
	list    []Value
	members []Member
	lookup  func(name string) Value
	weight  int // of a computed list or object
}

// node is one value, or the name of a member, of a parsed body.
type node struct {
	start, end uint32 // the span in the source, quotes included
	next       uint32 // the node after this one and all that is in it
	size       uint32 // how many elements or distinct members
	kind       Kind
	coded      bool // a String with escapes or invalid UTF-8
	again      bool // the name of a member that stood in its object before
}

// Member is a name and its value.
type Member struct {
	Name  string
	Value Value
}

// value returns the value of node i.
func (c *container) value(i uint32) Value {
	n := &c.nodes[i]
	v := Value{kind: n.kind, at: i, from: c}
	switch n.kind {
	case String:
		v.text = c.src[n.start+1 : n.end-1]
		if n.coded {
			v.form = formCoded
		}
	case Number:
		v.text = c.src[n.start:n.end]
	case Bool:
		if c.src[n.start] == 't' {
			v.num = 1
		}
	case List, Object:
		v.form = formParsed
	}
	return v
}

// name returns the text of the String node i.
func (c *container) name(i uint32) string {
	n := &c.nodes[i]
	if n.coded {
		return decode(c.src[n.start+1 : n.end-1])
	}
	return c.src[n.start+1 : n.end-1]
}

// Kind returns what v is.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether v is missing or null.
func (v Value) IsNull() bool { return v.kind <= Null }

// Bool returns the truth value of a Bool.
func (v Value) Bool() (value, ok bool) { return v.num == 1 && v.kind == Bool, v.kind == Bool }

// Text returns a String's text, a Number's own text, "true" or "false" of a Bool, and a Time in UTC as RFC 3339 with
// as many digits of a second as it has. A text from a body is valid UTF-8: what was not became U+FFFD.
func (v Value) Text() (string, bool) {
	switch v.kind {
	case String:
		if v.form == formCoded {
			return decode(v.text), true
		}
		return v.text, true
	case Number:
		return v.NumberText()
	case Bool:
		return strconv.FormatBool(v.num == 1), true
	case Time:
		t, _ := v.Time()
		return t.Format(time.RFC3339Nano), true
	}
	return "", false
}

// Int64 returns a Number that is whole (also when written 1.0 or 1e3) and fits 64 bits.
func (v Value) Int64() (int64, bool) {
	if v.kind != Number {
		return 0, false
	}
	if v.form == formWhole {
		return v.num, true
	}
	return wholeOf(v.text)
}

// NumberText returns the text of a Number as the sender wrote it.
func (v Value) NumberText() (string, bool) {
	if v.kind != Number {
		return "", false
	}
	if v.form == formWhole {
		return strconv.FormatInt(v.num, 10), true
	}
	return v.text, true
}

// Time returns the instant of a Time, in UTC.
func (v Value) Time() (time.Time, bool) {
	if v.kind != Time {
		return time.Time{}, false
	}
	return time.Unix(v.num, int64(v.at)).UTC(), true
}

// Get returns the member of an Object by its name, Missing when there is none and for anything that is no Object. Of a
// doubled member it returns the first.
func (v Value) Get(name string) Value {
	if v.kind != Object {
		return Value{}
	}
	switch v.form {
	case formParsed:
		return v.from.member(v.at, name)
	case formLookup:
		return v.from.lookup(name)
	}
	for i := range v.from.members {
		if v.from.members[i].Name == name {
			return v.from.members[i].Value
		}
	}
	return Value{}
}

// member returns the first member of the object node that is called name.
func (c *container) member(object uint32, name string) Value {
	end, span := c.nodes[object].next, uint32(len(name)+len(`""`))
	for i := object + 1; i < end; i = c.nodes[i+1].next {
		n := &c.nodes[i]
		if n.end-n.start != span && !n.coded {
			continue
		}
		if c.name(i) == name {
			return c.value(i + 1)
		}
	}
	return Value{}
}

// Index returns the element i of a List, counted from 0, Missing when there is none and for anything that is no List.
// The time it takes grows with i; to read all, use Elements.
func (v Value) Index(i int) Value {
	if v.kind != List || i < 0 || i >= v.Len() {
		return Value{}
	}
	if v.form != formParsed {
		return v.from.list[i]
	}
	at := v.at + 1
	for ; i > 0; i-- {
		at = v.from.nodes[at].next
	}
	return v.from.value(at)
}

// Len returns how many elements a List or distinct members an Object has; 0 for anything else, and for an Object that
// is answered by a function.
func (v Value) Len() int {
	if v.kind != List && v.kind != Object {
		return 0
	}
	switch {
	case v.form == formParsed:
		return int(v.from.nodes[v.at].size)
	case v.kind == List:
		return len(v.from.list)
	}
	return len(v.from.members)
}

// Weight tells how large v is with all that is in it, in units of about 16 bytes of JSON, at once. What is in it several
// times counts several times.
func (v Value) Weight() int {
	switch {
	case v.from == nil:
		return 1 + len(v.text)/16
	case v.from.nodes != nil:
		n := &v.from.nodes[v.at]
		return 1 + int(n.end-n.start)/16
	}
	return 1 + v.from.weight
}

// IsLookup reports whether v is an Object that is answered by a function.
func (v Value) IsLookup() bool { return v.form == formLookup }

// Members yields the names and values of an Object in the order of the source, a doubled member once.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.kind != Object {
			return
		}
		if v.form != formParsed {
			for _, m := range v.from.members {
				if !yield(m.Name, m.Value) {
					return
				}
			}
			return
		}
		c, end := v.from, v.from.nodes[v.at].next
		for i := v.at + 1; i < end; i = c.nodes[i+1].next {
			if !c.nodes[i].again && !yield(c.name(i), c.value(i+1)) {
				return
			}
		}
	}
}

// Elements yields the elements of a List.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.kind != List {
			return
		}
		if v.form != formParsed {
			for _, e := range v.from.list {
				if !yield(e) {
					return
				}
			}
			return
		}
		c, end := v.from, v.from.nodes[v.at].next
		for i := v.at + 1; i < end; i = c.nodes[i].next {
			if !yield(c.value(i)) {
				return
			}
		}
	}
}

// Raw returns a copy of the exact bytes v was parsed from, without the white space around them; nil if v was computed
// or comes from a form.
func (v Value) Raw() []byte {
	if v.from == nil || v.from.nodes == nil {
		return nil
	}
	n := &v.from.nodes[v.at]
	return []byte(v.from.src[n.start:n.end])
}
