package provider

import (
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

// yaml writes a node as YAML.
func (n *node) yaml() []byte {
	text, err := yaml.Dump(n.toYAML(), yaml.WithLineWidth(-1))
	if err != nil { // a tree of texts, lists and maps can always be written
		panic(err)
	}
	return text
}

func (n *node) toYAML() *yaml.Node {
	switch n.kind {
	case listNode:
		y := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range n.items {
			y.Content = append(y.Content, item.toYAML())
		}
		if n.words() {
			y.Style = yaml.FlowStyle
		}
		return y
	case mapNode:
		y := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, e := range n.entries {
			y.Content = append(y.Content, e.key.toYAML(), e.value.toYAML())
		}
		return y
	}
	y := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: n.text}
	if n.style == singleStyle || n.style == doubleStyle || strings.ContainsAny(n.text, `,:#'"{}[]&*!|>%@`) {
		y.Style = yaml.SingleQuotedStyle
	}
	if strings.Contains(n.text, "\n") {
		y.Style = yaml.DoubleQuotedStyle
	}
	return y
}

// words reports whether a list holds texts and lists of texts only, which fit on
// one line.
func (n *node) words() bool {
	for _, item := range n.items {
		if item.kind == mapNode || item.kind == listNode && !item.words() {
			return false
		}
	}
	return true
}

// ordered reports whether the order of the map under these keys has a meaning: the
// facts of one event arrive in that of the rules, and what is derived sees what was
// derived before it.
func ordered(path []string) bool {
	return len(path) == 1 && path[0] == "facts" || len(path) == 3 && path[0] == "kinds" && path[2] == "derive"
}

// canonical appends the node under these keys so that two nodes of one meaning give
// the same bytes and all others different ones: members of maps are sorted where
// their order has no meaning.
func (n *node) canonical(dst []byte, path ...string) []byte {
	appendText := func(dst []byte, s string) []byte {
		dst = strconv.AppendInt(dst, int64(len(s)), 10)
		dst = append(dst, ':')
		return append(dst, s...)
	}
	switch n.kind {
	case listNode:
		dst = append(dst, '[')
		for _, item := range n.items {
			dst = item.canonical(dst, append(slices.Clip(path), "")...)
		}
		return append(dst, ']')
	case mapNode:
		entries := slices.Clone(n.entries)
		if !ordered(path) {
			slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key.text, b.key.text) })
		}
		dst = append(dst, '{')
		for _, e := range entries {
			dst = e.value.canonical(appendText(dst, e.key.text), append(slices.Clip(path), e.key.text)...)
		}
		return append(dst, '}')
	}
	return appendText(append(dst, 's'), n.text)
}
