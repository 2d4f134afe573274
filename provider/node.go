package provider

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
)

// maxFileBytes bounds a file, maxNodeDepth how deep it nests.
const (
	maxFileBytes = 1 << 20
	maxNodeDepth = 32
)

type nodeKind uint8

const (
	scalarNode nodeKind = iota
	listNode
	mapNode
)

// node is one value of a YAML text with its place. Scalars are texts: what they
// mean is decided by the key they stand under, never by YAML. A node is not
// changed once it was made; layering shares nodes.
type node struct {
	kind    nodeKind
	text    string  // of a scalar
	style   style   // of a scalar
	empty   bool    // nothing, ~ or null stands there, unquoted
	bad     bool    // it was reported, so nothing more is to be said about it
	entries []entry // of a map, in the order of the file
	items   []*node // of a list
	at      place
}

type entry struct {
	key   *node // a scalar
	value *node
}

type style uint8

const (
	plainStyle style = iota
	singleStyle
	doubleStyle
	blockStyle
)

// get returns the value under a key, nil if there is none.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, e := range n.entries {
		if e.key.text == key {
			return e.value
		}
	}
	return nil
}

// what says what a node is, for messages.
func (n *node) what() string {
	switch {
	case n.kind == listNode:
		return "a list"
	case n.kind == mapNode:
		return "a map"
	case n.empty && n.text != "null":
		return "nothing"
	}
	return "a text"
}

// parseNode reads one YAML document. It returns nil if there is nothing in it or
// its syntax is wrong, and adds what is wrong to ps.
func parseNode(src *source, text []byte, ps *problems) *node {
	if len(text) > maxFileBytes {
		ps.add(place{src: src}, "the file has %d bytes; at most %d are read", len(text), maxFileBytes)
		return nil
	}
	if !utf8.Valid(text) {
		ps.add(place{src: src}, "the file is not UTF-8")
		return nil
	}
	if strings.TrimSpace(string(text)) == "" {
		return nil
	}
	var doc yaml.Node
	if err := yaml.Load(text, &doc); err != nil {
		addSyntax(src, err, ps)
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil
	}
	c := converter{src: src}
	n := c.convert(doc.Content[0], 0, false)
	if !src.builtin {
		src.hideNode(n, "")
	}
	for _, f := range c.found {
		ps.add(f.at, f.format, f.args...)
	}
	return n
}

const quoteHint = `a value that begins with !, *, &, ", [ or {, or that holds ": " or " #", stands in quotes: '…'`

// addSyntax reports what the YAML parser refused.
func addSyntax(src *source, err error, ps *problems) {
	at := place{src: src}
	var fault *yaml.LoadError
	if !errors.As(err, &fault) {
		ps.add(at, "this is not YAML: %v", err)
		return
	}
	if at.line, at.col = fault.Mark.Line, fault.Mark.Column; at.line == 0 {
		at.line, at.col = fault.ContextMark.Line, fault.ContextMark.Column
	}
	message := fault.Message
	switch {
	case strings.Contains(message, "unknown anchor"):
		ps.add(at, "an alias is not read here; in quotes it is a text: '*…'")
	case strings.Contains(message, "multiple"):
		ps.add(place{src: src}, "the file holds more than one document; write one")
	case strings.Contains(message, "mapping values are not allowed"):
		ps.add(at, `": " stands within a value here; such a value stands in quotes: '…'`)
	case strings.Contains(message, "did not find expected"), strings.Contains(message, "cannot start any token"):
		if text, _ := src.line(at.line); strings.HasPrefix(text, "\t") {
			ps.add(at, "a tab does not indent in YAML; use spaces")
			return
		}
		ps.add(at, "this is not YAML: %s; %s", message, quoteHint)
	default:
		ps.add(at, "this is not YAML: %s", message)
	}
}

type converter struct {
	src   *source
	found []finding
}

// finding is a problem that waits until it is known what of the text is a secret.
type finding struct {
	at     place
	format string
	args   []any
}

func (c *converter) add(at place, format string, args ...any) {
	c.found = append(c.found, finding{at, format, args})
}

func (c *converter) convert(y *yaml.Node, depth int, flow bool) *node {
	at := place{c.src, y.Line, y.Column}
	n := &node{at: at}
	if depth > maxNodeDepth {
		c.add(at, "this nests deeper than %d levels", maxNodeDepth)
		return n
	}
	if what, text := special(y); what != "" {
		c.add(at, "%s is not read here; in quotes it is a text: '%s'", what, text)
		n.bad = true
		return n
	}
	flow = flow || y.Style&yaml.FlowStyle != 0
	switch y.Kind {
	case yaml.MappingNode:
		n.kind = mapNode
		c.entries(n, y, depth, flow)
	case yaml.SequenceNode:
		n.kind = listNode
		for _, item := range y.Content {
			child := c.convert(item, depth+1, flow)
			if len(n.items) > 0 && n.items[len(n.items)-1].bad && closes(child) {
				continue // the rest of a value that ended at a comma
			}
			n.items = append(n.items, child)
		}
	default:
		c.scalar(n, y, flow)
	}
	return n
}

// special says whether a node is something of YAML that these files do without,
// which is mostly meant as a text that begins so.
func special(y *yaml.Node) (what, text string) {
	switch {
	case y.Kind == yaml.AliasNode:
		return "an alias", "*" + y.Value
	case y.Anchor != "":
		return "an anchor", strings.TrimSpace("&" + y.Anchor + " " + y.Value)
	case y.Style&yaml.TaggedStyle != 0:
		return "a tag", strings.TrimSpace(y.Tag + " " + y.Value)
	}
	return "", ""
}

func (c *converter) entries(n *node, y *yaml.Node, depth int, flow bool) {
	first := map[string]int{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := c.convert(y.Content[i], depth+1, flow)
		if key.kind != scalarNode {
			c.add(key.at, "a key is a word, not %s", key.what())
			continue
		}
		value := c.convert(y.Content[i+1], depth+1, flow)
		if len(n.entries) > 0 && n.entries[len(n.entries)-1].value.bad && closes(key) {
			continue // the rest of a value that ended at a comma
		}
		if line, twice := first[key.text]; twice {
			c.add(key.at, "%q stands twice in this map, first in line %d", key.text, line)
			continue
		}
		first[key.text] = key.at.line
		n.entries = append(n.entries, entry{key, value})
	}
}

func (c *converter) scalar(n *node, y *yaml.Node, flow bool) {
	n.text = y.Value
	switch {
	case y.Style&yaml.SingleQuotedStyle != 0:
		n.style = singleStyle
	case y.Style&yaml.DoubleQuotedStyle != 0:
		n.style = doubleStyle
	case y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		n.style = blockStyle
		n.text = strings.TrimRight(n.text, "\n")
	default:
		n.empty = y.Tag == "!!null"
		if flow && strings.Count(n.text, "(") > strings.Count(n.text, ")") {
			c.add(n.at, "%q ends at a comma; inside [ ] or { } a value that holds a comma stands in quotes: '…'", n.text)
			n.bad = true
		}
	}
}

// closes reports whether a scalar closes what was opened before it.
func closes(n *node) bool {
	return n.kind == scalarNode && strings.Count(n.text, ")") > strings.Count(n.text, "(")
}

// placeOf returns the place of a byte of a scalar's text, as exactly as it can
// be told.
func (n *node) placeOf(offset int) place {
	at := n.at
	line, ok := at.src.lineOf(at)
	if !ok || offset > len(n.text) || n.style == blockStyle {
		return at
	}
	rest := []rune(line)
	if at.col-1 > len(rest) {
		return at
	}
	rest = rest[at.col-1:]
	width, ok := n.width(string(rest), offset)
	if !ok {
		return at
	}
	at.col += width
	return at
}

func (s *source) lineOf(at place) (string, bool) {
	if s == nil {
		return "", false
	}
	return s.line(at.line)
}

// width counts the characters of the source that stand before the given byte of
// the text. It fails for what goes on in the next line.
func (n *node) width(written string, offset int) (int, bool) {
	before := n.text[:offset]
	switch n.style {
	case plainStyle:
		if !strings.HasPrefix(written, before) {
			return 0, false
		}
		return utf8.RuneCountInString(before), true
	case singleStyle:
		quoted := "'" + strings.ReplaceAll(before, "'", "''")
		if !strings.HasPrefix(written, quoted) {
			return 0, false
		}
		return utf8.RuneCountInString(quoted), true
	case doubleStyle:
		return doubleWidth(written, before)
	}
	return 0, false
}

// doubleWidth reads a double-quoted text until it has given the bytes before.
func doubleWidth(written, before string) (int, bool) {
	if !strings.HasPrefix(written, `"`) {
		return 0, false
	}
	width, given := 1, 0
	for rest := written[1:]; given < len(before); {
		if rest == "" {
			return 0, false
		}
		_, size := utf8.DecodeRuneInString(rest)
		read := rest[:size]
		if rest[0] == '\\' {
			var ok bool
			if read, size, ok = escape(rest); !ok {
				return 0, false
			}
		}
		if !strings.HasPrefix(before[given:], read) {
			return 0, false
		}
		given += len(read)
		width += utf8.RuneCountInString(rest[:size])
		rest = rest[size:]
	}
	return width, true
}

// escape reads one escape of a double-quoted text: what it stands for and how
// many bytes it takes. Escapes that expressions do not need are not read.
func escape(s string) (string, int, bool) {
	if len(s) < 2 {
		return "", 0, false
	}
	switch s[1] {
	case '"', '\\', '/', ' ':
		return s[1:2], 2, true
	case 'n':
		return "\n", 2, true
	case 't':
		return "\t", 2, true
	case 'u':
		var r rune
		if len(s) < 6 {
			return "", 0, false
		}
		if _, err := fmt.Sscanf(s[2:6], "%04x", &r); err != nil {
			return "", 0, false
		}
		return string(r), 6, true
	}
	return "", 0, false
}
