package expr_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/debug"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/parser"
	"pgregory.net/rapid"

	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/tree"
)

// celPrograms compiles expressions once with CEL's own evaluator and extensions.
type celPrograms struct {
	env      *cel.Env
	programs map[string]cel.Program
	ours     map[string]*expr.Program
}

func newCEL(t *testing.T) *celPrograms {
	t.Helper()
	env, err := cel.NewEnv(ext.Strings(), ext.Lists(), cel.Variable("s", cel.StringType), cel.Variable("t", cel.StringType), cel.Variable("i", cel.IntType),
		cel.Variable("j", cel.IntType), cel.Variable("l", cel.ListType(cel.IntType)), cel.Variable("m", cel.ListType(cel.IntType)))
	if err != nil {
		t.Fatal(err)
	}
	return &celPrograms{env: env, programs: make(map[string]cel.Program), ours: make(map[string]*expr.Program)}
}

// eval gives what CEL says, false if it fails.
func (c *celPrograms) eval(t *rapid.T, src string, vars map[string]any) (tree.Value, bool) {
	p, ok := c.programs[src]
	if !ok {
		checked, issues := c.env.Compile(src)
		if issues.Err() != nil {
			t.Fatalf("CEL compiles %s: %v", src, issues.Err())
		}
		var err error
		if p, err = c.env.Program(checked); err != nil {
			t.Fatal(err)
		}
		c.programs[src] = p
		if c.ours[src], err = expr.Compile(src, expr.NewNames("s", "t", "i", "j", "l", "m")); err != nil {
			t.Fatalf("compile %s: %v", src, err)
		}
	}
	out, _, err := p.Eval(vars)
	if err != nil {
		return tree.Value{}, false
	}
	return fromCEL(t, out), true
}

// fromCEL turns a value of CEL into one of ours.
func fromCEL(t *rapid.T, v ref.Val) tree.Value {
	switch v := v.(type) {
	case types.Bool:
		return tree.BoolOf(bool(v))
	case types.Int:
		return tree.IntOf(int64(v))
	case types.String:
		return tree.StringOf(string(v))
	case traits.Lister:
		var list []tree.Value
		for it := v.Iterator(); it.HasNext() == types.True; {
			list = append(list, fromCEL(t, it.Next()))
		}
		return tree.ListOf(list...)
	}
	t.Fatalf("CEL gives %v", v.Type())
	return tree.Value{}
}

// TestLikeCEL compares everything that the language has "from CEL itself" with CEL's own evaluator, where no null and no
// decimal is involved: the same value, or both fail.
func TestLikeCEL(t *testing.T) {
	c := newCEL(t)
	sources := []string{
		`s.charAt(i)`, `s.indexOf(t)`, `s.indexOf(t, i)`, `s.lastIndexOf(t)`, `s.lastIndexOf(t, i)`, `s.lowerAscii()`, `s.upperAscii()`, `s.replace(t, "xy")`,
		`s.replace(t, s, i)`, `s.split(t)`, `s.split(t, i)`, `s.substring(i)`, `s.substring(i, j)`, `s.trim()`, `s.reverse()`, `s.size()`, `size(s)`,
		`s.contains(t)`, `s.startsWith(t)`, `s.endsWith(t)`, `s + t`, `s < t`, `s >= t`, `s == t`, `s in [t, "a"]`, `s.matches("^a.*b?$")`, `s.split(t).join("-")`,
		`s.split("").join()`, `int(s)`, `string(i)`, `s == "" ? t : s`, `i + j`, `i - j`, `i * j`, `i / j`, `i % j`, `-i`, `i < j`, `i <= j`, `i != j`,
		`l.map(x, x + i)`, `l.map(x, x > i, x * j)`, `l.filter(x, x != i)`, `l.all(x, x > i)`, `l.exists(x, x == i)`, `l.all(x, j / x > 0)`, `l.exists(x, j / x > 0)`,
		`l + m`, `l == m`, `l[i]  == j || i < 0`, `i in l`, `l.size()`, `l.slice(i, j)`, `l.distinct()`, `l.sort()`, `l.reverse()`, `[l, m, [i]].flatten()`,
		`[[l], [m]].flatten(2)`, `[[l]].flatten(i)`, `l.hasAny(m)`, `l.hasAll(m)`, `l.hasOnly(m)`, `l.map(x, m.map(y, x * y)).flatten()`, `{"a": i, "b" + s: j}["b" + t] == j && s == t`,
		`s in {t: 1}`, `!(i > j) && s != t || l.size() > 2`, `i / j > 0 || true`, `false && i / j > 0`, `(i / j > 0 || s == t) && true`, `l.exists(x, x / j > 0) || i == 0`,
	}
	texts := rapid.StringOfN(rapid.RuneFrom([]rune("aabbcé 1-\t\u2003😀")), 0, 8, -1)
	ints := rapid.OneOf(rapid.Int64Range(-2, 9), rapid.Int64())
	lists := rapid.SliceOfN(rapid.Int64Range(-2, 4), 0, 6)
	rapid.Check(t, func(t *rapid.T) {
		vars := map[string]any{"s": texts.Draw(t, "s"), "t": texts.Draw(t, "t"), "i": ints.Draw(t, "i"), "j": ints.Draw(t, "j"),
			"l": lists.Draw(t, "l"), "m": lists.Draw(t, "m")}
		if rapid.Bool().Draw(t, "substring") {
			r := []rune(vars["s"].(string))
			from := rapid.IntRange(0, len(r)).Draw(t, "from")
			vars["t"] = string(r[from:rapid.IntRange(from, len(r)).Draw(t, "to")])
		}
		for _, src := range sources {
			compare(t, c, src, vars)
		}
	})
}

// compare evaluates src both ways.
func compare(t *rapid.T, c *celPrograms, src string, vars map[string]any) {
	in := input{}
	for name, v := range vars {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := tree.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		in[name] = doc.Root
	}
	want, ok := c.eval(t, src, vars)
	v, err := c.ours[src].Eval(in)
	if (err == nil) != ok && !missingIndex(src, v) {
		t.Fatalf("%s over %v gives %s, %v; CEL gives %s, %v", src, vars, js(v), err, js(want), ok)
	}
	if err != nil || !ok {
		return
	}
	if !tree.Equal(v, want) {
		t.Fatalf("%s over %v gives %s, CEL gives %s", src, vars, js(v), js(want))
	}
}

// missingIndex reports whether src reads an element that is not there, which is null here and fails in CEL.
func missingIndex(src string, v tree.Value) bool {
	return strings.HasPrefix(src, "l[i]") && js(v) == "false"
}

// TestParsersAgree reads expressions with both of CEL's parsers, the older one and the one used here: the same tree, or both
// refuse.
func TestParsersAgree(t *testing.T) {
	macros := parser.Macros(parser.AllMacro, parser.ExistsMacro, parser.FilterMacro, parser.MapMacro, parser.MapFilterMacro)
	pratt, err := parser.NewParser(macros, parser.EnablePrattParser(true))
	if err != nil {
		t.Fatal(err)
	}
	older, err := parser.NewParser(macros)
	if err != nil {
		t.Fatal(err)
	}
	atoms := []string{"body.a", "1", "-2", "2.50", `"x"`, "null", "true", "x.y[0]", "[1, 2]", `{"a": 1}`, "f(1, x)", "x.g()", "x.map(e, e.y)", "(1)", "r'\\d'", "-x"}
	signs := []string{" + ", "-", " * ", " && ", " || ", " == ", " < ", " in ", " ? 1 : ", ".b.", ", ", " ", "[", "!", ".all(e, e == ", ")"}
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for i := range rapid.IntRange(1, 6).Draw(t, "parts") {
			if i > 0 {
				b.WriteString(rapid.SampledFrom(signs).Draw(t, "sign"))
			}
			b.WriteString(rapid.SampledFrom(atoms).Draw(t, "atom"))
		}
		src := b.String()
		got, want := parsed(pratt, src), parsed(older, src)
		if got != want {
			t.Fatalf("%s is read as\n%s\nand by the older parser as\n%s", src, got, want)
		}
	})
}

// parsed writes the tree of an expression, "refused" if there is none.
func parsed(p *parser.Parser, src string) string {
	read, errs := p.Parse(common.NewTextSource(src))
	if len(errs.GetErrors()) > 0 {
		return "refused"
	}
	return fmt.Sprint(ast.NodeCount(read), debug.ToDebugString(read.Expr()))
}
