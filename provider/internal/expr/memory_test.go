package expr

import (
	"testing"

	"github.com/onceward/onceward/provider/internal/tree"
)

// nested is an Input of which the name inner is computed in the memory that the
// evaluation that reads it uses.
type nested struct {
	memory *Memory
	inner  *Program
	depth  int
}

func (in *nested) Lookup(name string) tree.Value {
	if name != "inner" || in.depth == 0 {
		return tree.IntOf(1)
	}
	in.depth--
	v, err := in.inner.EvalIn(in.memory, in)
	if err != nil {
		return tree.Value{}
	}
	return v
}

// TestMemory: evaluations that follow each other or stand within each other in one
// memory give what they give in memories of their own.
func TestMemory(t *testing.T) {
	names := NewNames("a", "inner")
	compile := func(src string) *Program {
		p, err := Compile(src, names)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	outer := compile(`max(max(a, 2), inner, [a, 2, 3].map(x, x + a).size()) + max(a, 1)`)
	inner := compile(`max(inner, 4, 5, max(6, 7)) + [a, a].filter(x, x == 1).size()`)
	fails := compile(`max(a, 2) / 0`)
	m := new(Memory)
	for range 3 {
		for depth, want := range []int64{4, 10, 12, 14} { // of inner: 1, 7+2, 9+2, 11+2
			v, err := outer.EvalIn(m, &nested{m, inner, depth})
			if got, _ := v.Int64(); err != nil || got != want {
				t.Errorf("depth %d: %d, %v; want %d", depth, got, err, want)
			}
		}
		if _, err := fails.EvalIn(m, &nested{memory: m}); err == nil {
			t.Error("a division by 0 gives a value")
		}
		m.Reset()
	}
}
