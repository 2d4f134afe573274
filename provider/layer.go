package provider

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// noneWord takes an entry of the layer below away.
const noneWord = "none"

// maxChain bounds how many files may stand on each other.
const maxChain = 16

// layering finds the files that a file starts from and lays them over each
// other.
type layering struct {
	read func(file string) ([]byte, error)
	ps   *problems
}

// base returns the layered content of what `provider: ref` names, nil if it
// cannot be had. from is where the reference stands and file the file it stands
// in; chain are the names that are being resolved.
func (l *layering) base(ref string, from place, file string, chain []string) *node {
	name, local := ref, isFile(ref)
	if local {
		name = path.Join(path.Dir(strings.ReplaceAll(file, `\`, "/")), ref)
		if path.IsAbs(ref) {
			name = path.Clean(ref)
		}
	}
	switch {
	case slices.Contains(chain, name):
		l.ps.add(from, "%s starts from itself: %s; a file's own name is its file name, so leave provider out", name, strings.Join(append(chain, name), " -> "))
		return nil
	case len(chain) >= maxChain:
		l.ps.add(from, "more than %d files stand on each other", maxChain)
		return nil
	}
	text, ok := l.text(name, local, from)
	if !ok {
		return nil
	}
	src := newSource(name, text, !local)
	if !local {
		src.file = name + ".yaml"
	}
	root := l.root(parseNode(src, text, l.ps))
	if root == nil {
		return nil
	}
	return l.over(root, name, append(slices.Clip(chain), name))
}

func (l *layering) text(name string, local bool, from place) ([]byte, bool) {
	if !local {
		text, err := catalogFiles.ReadFile("catalog/" + name + ".yaml")
		if err != nil || !isProviderName(name) {
			l.ps.add(from, "there is no provider %q in the catalogue%s", name, didYouMean(name, Catalog(), "a file of your own begins with ./"))
			return nil, false
		}
		return text, true
	}
	if l.read == nil {
		l.ps.add(from, "provider %q is a file, and nothing here reads files; name one of the catalogue", name)
		return nil, false
	}
	text, err := l.read(name)
	if err != nil {
		l.ps.add(from, "provider %q cannot be read: %v", name, err)
		return nil, false
	}
	return text, true
}

// root checks that the document is a map.
func (l *layering) root(doc *node) *node {
	if doc == nil {
		return nil
	}
	if doc.kind != mapNode {
		l.ps.add(doc.at, "a provider file is a map of keys as verify, event and facts; this is %s", doc.what())
		return nil
	}
	return doc
}

// over lays a file's own keys over what it starts from, if it says so.
func (l *layering) over(root *node, file string, chain []string) *node {
	ref, own := l.startsFrom(root)
	if ref == nil {
		return own
	}
	base := l.base(ref.text, ref.at, file, chain)
	if base == nil {
		return nil // what is laid over nothing would be reported as faulty
	}
	return l.merge(base, own, nil)
}

// startsFrom takes `provider` out of a map.
func (l *layering) startsFrom(root *node) (ref, rest *node) {
	own := *root
	own.entries = nil
	for _, e := range root.entries {
		if e.key.text != "provider" {
			own.entries = append(own.entries, e)
			continue
		}
		if e.value.kind != scalarNode || e.value.text == "" {
			l.ps.add(e.value.at, "provider is the name of one in the catalogue or a file as ./acme.yaml; this is %s", e.value.what())
			continue
		}
		ref = e.value
	}
	return ref, &own
}

// merge lays over on base: maps are merged key by key, anything else replaces,
// and `none` takes an entry away. A verify that names a scheme replaces too.
func (l *layering) merge(base, over *node, at []string) *node {
	if base.kind != mapNode || over.kind != mapNode {
		return over
	}
	if slices.Equal(at, []string{"verify"}) && over.get("scheme") != nil {
		return over
	}
	merged := *over
	merged.entries = nil
	for _, e := range base.entries {
		top := over.get(e.key.text)
		switch {
		case top == nil:
			merged.entries = append(merged.entries, e)
		case isNone(top):
		default:
			value := l.merge(e.value, top, append(slices.Clip(at), e.key.text))
			merged.entries = append(merged.entries, entry{over.key(e.key.text), value})
		}
	}
	for _, e := range over.entries {
		if base.get(e.key.text) != nil {
			continue
		}
		if isNone(e.value) {
			l.nothingToTake(base, e, at)
			continue
		}
		merged.entries = append(merged.entries, e)
	}
	return &merged
}

func (l *layering) nothingToTake(base *node, e entry, at []string) {
	var names []string
	for _, b := range base.entries {
		names = append(names, b.key.text)
	}
	where := "the layer below"
	if len(at) > 0 {
		where = strings.Join(at, ".")
	}
	l.ps.add(e.key.at, "%s has no entry %q to take away%s", where, e.key.text, didYouMean(e.key.text, names, "it has "+wordList(names)))
}

func isNone(n *node) bool { return n.kind == scalarNode && n.text == noneWord }

// key returns the node of a key.
func (n *node) key(name string) *node {
	for _, e := range n.entries {
		if e.key.text == name {
			return e.key
		}
	}
	return nil
}

// isFile reports whether a `provider` names a file rather than the catalogue.
func isFile(ref string) bool {
	return strings.ContainsAny(ref, `/\`) || strings.HasSuffix(ref, ".yaml") || strings.HasSuffix(ref, ".yml")
}

// isProviderName reports whether s may be the name of a provider or a source.
func isProviderName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// wordList joins names for a message; of many it shows the first.
func wordList(names []string) string {
	const most = 16
	switch {
	case len(names) == 0:
		return "nothing"
	case len(names) > most:
		return fmt.Sprintf("%s, … (%d)", strings.Join(names[:most], ", "), len(names))
	}
	return strings.Join(names, ", ")
}
