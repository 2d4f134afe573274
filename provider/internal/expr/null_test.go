package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/onceward/onceward/provider/internal/tree"
)

// mixed is an input whose every name holds the value called so, and whose other names hold nothing.
type mixed map[string]tree.Value

func (m mixed) Lookup(name string) tree.Value { return m[name] }

func (mixed) Sign(text string) (string, error) { return text, nil }

// call is one way to write an operator or a function, with holes for its arguments.
type call struct {
	format string
	holes  int
	rule   nulls
}

// calls returns all operators, functions and macros.
func calls() []call {
	var all []call
	for _, sign := range []string{"+", "-", "*", "/", "%%"} {
		all = append(all, call{"%s " + sign + " %s", 2, flow})
	}
	for _, sign := range []string{"<", "<=", ">", ">=", "in"} {
		all = append(all, call{"%s " + sign + " %s", 2, untrue})
	}
	all = append(all, call{"-%s", 1, flow}, call{"%s[%s]", 2, flow}, call{"(%s).member", 1, flow}, call{"%s == %s", 2, takes}, call{"%s != %s", 2, takes},
		call{"%s.all(x, x == 1)", 1, untrue}, call{"%s.exists(x, x == 1)", 1, untrue}, call{"%s.map(x, x)", 1, flow}, call{"%s.filter(x, x == 1)", 1, flow},
		call{"%s.map(x, x == 1, x)", 1, flow}, call{"%s == 1 ? %s : %s", 3, takes}, call{"[%s, %s]", 2, takes}, call{`{"a": %s}`, 1, takes})
	for key, fn := range functions() {
		for _, s := range fn.sigs {
			format, n := key.name+"(%s)", len(s.args)
			if key.member {
				format, n = "%s."+key.name+"(%s)", n-1
			}
			format = strings.TrimSuffix(format, "(%s)") + "(" + strings.TrimSuffix(strings.Repeat("%s, ", n), ", ") + ")"
			all = append(all, call{format, len(s.args), fn.nulls})
		}
	}
	slices.SortFunc(all, func(a, b call) int { return strings.Compare(a.format, b.format) })
	return all
}

// TestNullFlows calls every operator, function and macro with null for some of its arguments and anything for the others. None
// fails; those that flow give null, tests give false.
func TestNullFlows(t *testing.T) {
	all := calls()
	if len(all) < 60 {
		t.Fatalf("only %d calls", len(all))
	}
	values := mixed{"text": tree.StringOf("a"), "number": tree.IntOf(1), "decimal": mustNumber(t, "4.50"), "yes": tree.BoolOf(true),
		"list": tree.ListOf(tree.IntOf(1)), "object": tree.ObjectOf(tree.Member{Name: "a", Value: tree.IntOf(1)}), "nil": tree.NullValue()}
	names := NewNames("text", "number", "decimal", "yes", "list", "object", "nil", "missing").WithSign()
	for _, c := range all {
		rapid.Check(t, func(t *rapid.T) {
			args := make([]any, c.holes)
			null := rapid.IntRange(0, c.holes-1).Draw(t, "null")
			for i := range args {
				arg := rapid.SampledFrom(names.sorted()).Draw(t, "arg")
				if i == null || strings.HasPrefix(c.format, "max") && arg != "number" { // max looks at the others
					arg = rapid.SampledFrom([]string{"nil", "missing", "object.b", "text.c", "list[7].d"}).Draw(t, "nothing")
				}
				args[i] = arg
			}
			src := fmt.Sprintf(c.format, args...)
			p, err := Compile(src, names)
			if err != nil {
				t.Fatalf("compile %s: %v", src, err)
			}
			v, err := p.Eval(values)
			if err != nil {
				t.Fatalf("%s: %v", src, err)
			}
			switch b, isBool := v.Bool(); {
			case c.rule == flow && !v.IsNull():
				t.Fatalf("%s is %s, want null", src, v.AppendJSON(nil))
			case c.rule == untrue && (!isBool || b):
				t.Fatalf("%s is %s, want false", src, v.AppendJSON(nil))
			}
		})
	}
}

// TestAnyKinds calls every operator, function and macro with values of any kind: what it does not take is an Error with a
// place, in whose text nothing of the values stands.
func TestAnyKinds(t *testing.T) {
	const mark = "a1b2c3d4"
	values := mixed{"text": tree.StringOf(mark), "digits": tree.StringOf("12345678"), "number": tree.IntOf(98765432), "decimal": mustNumber(t, "98765432.5"),
		"huge": mustNumber(t, "98765432e400"), "yes": tree.BoolOf(true), "list": tree.ListOf(tree.StringOf(mark), tree.IntOf(98765432)),
		"object": tree.ObjectOf(tree.Member{Name: mark, Value: tree.IntOf(98765432)}), "lookup": tree.LookupOf(func(string) tree.Value { return tree.Value{} }),
		"at": tree.TimeOf(time.Unix(98765432, 0)), "json": tree.StringOf(`{"` + mark + `":`), "small": tree.IntOf(1)}
	names := NewNames("text", "digits", "number", "decimal", "huge", "yes", "list", "object", "lookup", "at", "json", "small", "nil").WithSign()
	failures := 0
	for _, c := range calls() {
		rapid.Check(t, func(t *rapid.T) {
			args := make([]any, c.holes)
			for i := range args {
				args[i] = rapid.SampledFrom(names.sorted()).Draw(t, "arg")
			}
			src := fmt.Sprintf(c.format, args...)
			p, err := Compile(src, names)
			if err != nil {
				t.Fatalf("compile %s: %v", src, err)
			}
			_, err = p.Eval(values)
			if err == nil {
				return
			}
			failures++
			e := (*Error)(nil)
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset >= len(src) {
				t.Fatalf("%s: %#v", src, err)
			}
			for _, secret := range []string{mark, "12345678", "98765432"} {
				if strings.Contains(err.Error(), secret) {
					t.Fatalf("%s tells a value: %v", src, err)
				}
			}
		})
	}
	if failures < 1000 {
		t.Errorf("only %d calls failed", failures)
	}
}

func mustNumber(t *testing.T, text string) tree.Value {
	t.Helper()
	v, ok := tree.NumberOf(text)
	if !ok {
		t.Fatalf("%s is no number", text)
	}
	return v
}

// TestTable checks the table of functions against itself: each says how it is written, and no name stands twice.
func TestTable(t *testing.T) {
	count := 0
	for _, group := range [][]function{generalFunctions(), bodyFunctions(), textFunctions(), listFunctions()} {
		count += len(group)
	}
	if count != len(functions()) {
		t.Errorf("%d functions have %d names", count, len(functions()))
	}
	for key, fn := range functions() {
		if fn.run == nil || fn.use == "" || !strings.Contains(fn.use, key.name) || len(fn.sigs) == 0 || macroUses[key.name] != "" {
			t.Errorf("%s is incomplete", key.name)
		}
		if slices.Contains(waiting, key.name) || unknowns[key.name] != "" {
			t.Errorf("%s is there and said not to be", key.name)
		}
	}
	for name := range binaryOps {
		if operatorSigs()[name] == nil {
			t.Errorf("the type checker does not know %s", name)
		}
	}
}
