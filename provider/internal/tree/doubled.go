package tree

import (
	"slices"
	"strconv"
	"strings"
)

// doubledPaths returns the paths of these name nodes, each once, in the order of the source.
func (c *container) doubledPaths(names []uint32) []string {
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	more := len(names) > maxDoubled
	if more {
		names = names[:maxDoubled]
	}
	w := pathWalk{c: c, names: names}
	w.into(0)
	if more {
		w.found = append(w.found, "")
	}
	return w.found
}

// pathWalk finds the paths of some name nodes; it enters only what holds one of them.
type pathWalk struct {
	c     *container
	names []uint32 // those still to be found, ascending
	path  []string
	found []string
}

// into looks for names within node at.
func (w *pathWalk) into(at uint32) {
	n := &w.c.nodes[at]
	step := uint32(1)
	if n.kind == Object {
		step = 2
	}
	element := 0
	for i := at + 1; i < n.next && len(w.names) > 0 && w.names[0] < n.next; element++ {
		value := i + step - 1
		if step == 2 && w.names[0] == i {
			w.names = w.names[1:]
			if path := strings.Join(append(w.path, w.c.name(i)), "."); !slices.Contains(w.found, path) {
				w.found = append(w.found, path)
			}
		}
		if next := w.c.nodes[value].next; len(w.names) > 0 && w.names[0] < next {
			part := strconv.Itoa(element)
			if step == 2 {
				part = w.c.name(i)
			}
			w.path = append(w.path, part)
			w.into(value)
			w.path = w.path[:len(w.path)-1]
		}
		i = w.c.nodes[value].next
	}
}
