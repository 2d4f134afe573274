package tree

import (
	"fmt"
	"strings"
)

// ParseForm reads application/x-www-form-urlencoded data as if it were JSON: a[b]=1 is {"a":{"b":"1"}}, and each a[]
// adds an element to a list. Every value is a text. Of repeated names the first counts, and so does the first where names
// disagree about what a thing is (a=1 and a[b]=2). A name whose brackets do not fit is one name as it stands. A semicolon
// separates nothing. A % without two hexadecimal digits, more than MaxDepth brackets, or more than 20,000 values, lists
// and objects, is a *SyntaxError.
func ParseForm(data []byte) (Document, error) {
	root, left := branch{kind: Object}, maxFormValues
	rest, offset := string(data), int64(0)
	for rest != "" {
		pair, after, _ := strings.Cut(rest, "&")
		if pair != "" {
			if err := root.add(pair, offset, &left); err != nil {
				return Document{}, err
			}
		}
		offset += int64(len(rest) - len(after))
		rest = after
	}
	return Document{Root: root.value()}, nil
}

// maxFormValues bounds the values of a form, the lists and objects they are in included. Each costs more than a node of JSON.
const maxFormValues = 20_000

// branch is a value of a form under construction: a leaf with its text, or an object or list with what is in it.
type branch struct {
	kind  Kind
	text  string
	names []string
	items []*branch
	index map[string]*branch // of an object
}

// add puts the pair name=value, which stands at offset, in its place. Left is how many branches may still be made.
func (b *branch) add(pair string, offset int64, left *int) error {
	name, value, _ := strings.Cut(pair, "=")
	text, ok := unescapeForm(value)
	if !ok {
		return &SyntaxError{Offset: offset + int64(len(pair)-len(value)), Reason: "a value has a % without two hexadecimal digits"}
	}
	if name, ok = unescapeForm(name); !ok {
		return &SyntaxError{Offset: offset, Reason: "a name has a % without two hexadecimal digits"}
	}
	parts := nameParts(name)
	if len(parts) > MaxDepth {
		return &SyntaxError{Offset: offset, Reason: fmt.Sprintf("a name has more than %d brackets", MaxDepth)}
	}
	if *left -= b.put(parts, text); *left < 0 {
		return &SyntaxError{Offset: offset, Reason: fmt.Sprintf("the form holds more than %d values, lists and objects", maxFormValues)}
	}
	return nil
}

// part is one step of a form's name.
type part struct {
	name string
	next bool // [], the next element of a list
}

// nameParts takes a[b][] apart; a name that is not of this shape is one part.
func nameParts(name string) []part {
	open := strings.IndexByte(name, '[')
	if open <= 0 || name[len(name)-1] != ']' {
		return []part{{name: name}}
	}
	parts := []part{{name: name[:open]}}
	for rest := name[open:]; rest != ""; {
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 0 || strings.IndexByte(rest[1:end], '[') >= 0 {
			return []part{{name: name}}
		}
		parts = append(parts, part{name: rest[1:end], next: end == 1})
		rest = rest[end+1:]
	}
	return parts
}

// put makes the branches along parts and the leaf at their end, unless something else stands in the way, and returns how many
// it made.
func (b *branch) put(parts []part, text string) (made int) {
	for i, p := range parts {
		kind := String
		if i+1 < len(parts) {
			kind = Object
			if parts[i+1].next {
				kind = List
			}
		}
		next := b.index[p.name]
		if p.next || next == nil {
			next = &branch{kind: kind, text: text}
			b.attach(p, next)
			made++
		} else if next.kind != kind || kind == String {
			return made
		}
		b = next
	}
	return made
}

// attach adds a member or an element.
func (b *branch) attach(p part, child *branch) {
	b.items = append(b.items, child)
	if p.next {
		return
	}
	if b.index == nil {
		b.index = map[string]*branch{}
	}
	b.index[p.name] = child
	b.names = append(b.names, p.name)
}

// value returns the finished value.
func (b *branch) value() Value {
	switch b.kind {
	case String:
		return StringOf(b.text)
	case List:
		list := make([]Value, len(b.items))
		for i, item := range b.items {
			list[i] = item.value()
		}
		return ListOf(list...)
	}
	members := make([]Member, len(b.items))
	for i, item := range b.items {
		members[i] = Member{b.names[i], item.value()}
	}
	return objectOf(members)
}

// unescapeForm resolves + and %XX; false if a % has no two hexadecimal digits.
func unescapeForm(s string) (string, bool) {
	if !strings.ContainsAny(s, "+%") {
		return validText(s), true
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '+':
			b = append(b, ' ')
		case '%':
			if len(s) < i+3 || hexDigit(s[i+1])|hexDigit(s[i+2]) > 15 {
				return "", false
			}
			b = append(b, hexDigit(s[i+1])<<4|hexDigit(s[i+2]))
			i += 2
		default:
			b = append(b, s[i])
		}
	}
	return validText(string(b)), true
}
