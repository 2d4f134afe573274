package expr

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/provider/internal/tree"
)

// nullInput has a value for every name but one.
type nullInput struct {
	without string
	null    tree.Value
}

func (in nullInput) Lookup(name string) tree.Value {
	if name == in.without {
		return in.null
	}
	return tree.IntOf(7)
}

// TestNeeds: without what a condition needs it is false and does not fail.
func TestNeeds(t *testing.T) {
	tests := []struct {
		src  string
		want []string
	}{
		{`a == "x"`, []string{"a"}},
		{`"x" == a`, []string{"a"}},
		{`a > 0`, []string{"a"}},
		{`a <= b`, []string{"a", "b"}},
		{`a > 0 && a >= first(b, c)`, []string{"a"}},
		{`a == 1 && b == 1 && c == 1`, []string{"a"}},
		{`a == null`, nil},
		{`null == a`, nil},
		{`a != 1`, nil},
		{`a == b`, nil},
		{`a > 0 || b > 0`, nil},
		{`!(a > 0)`, nil},
		{`a.b == 1`, nil},
		{`a > 1 / 0`, nil},
		{`true`, nil},
		{`1 < 2`, nil},
	}
	names := NewNames("a", "b", "c")
	for _, tt := range tests {
		p, err := CompileCondition(tt.src, names)
		if err != nil {
			t.Errorf("%s: %v", tt.src, err)
			continue
		}
		if diff := cmp.Diff(tt.want, p.Needs()); diff != "" {
			t.Errorf("%s needs (-want +got):\n%s", tt.src, diff)
		}
		for _, name := range p.Needs() {
			for _, null := range []tree.Value{{}, tree.NullValue()} {
				if holds, err := p.True(nullInput{name, null}); holds || err != nil {
					t.Errorf("%s without %s: %v, %v", tt.src, name, holds, err)
				}
			}
		}
	}
}
