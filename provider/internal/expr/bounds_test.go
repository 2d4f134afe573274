package expr_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/tree"
)

// large is a body with a list of n numbers, an object of n members and a long text.
func large(n int) string {
	var list, members strings.Builder
	for i := range n {
		fmt.Fprintf(&list, ",%d", i)
		fmt.Fprintf(&members, `,"m%d":%d`, i, i)
	}
	return fmt.Sprintf(`{"list":[%s],"object":{%s},"text":%q}`, list.String()[1:], members.String()[1:], strings.Repeat("ab", 50*n))
}

// TestCost stops what would take too long, or make too much, long before it does; && and || do not swallow that.
func TestCost(t *testing.T) {
	in := inputOf(t, large(1000))
	for _, src := range []string{
		`body.list.map(a, body.list.map(b, body.list.map(c, a + b + c)))`,
		`body.list.all(a, body.list.all(b, body.list.all(c, a + b + c >= 0)))`,
		`body.list.exists(a, body.list.exists(b, a + b < 0)) || true`,
		`true || false ? body.list.filter(a, body.list.exists(b, a + b < 0) && false) : []`,
		`body.list.map(a, body)`, `body.list.map(a, [body])`, `body.list.map(a, {"a": body})`, `body.list.map(a, body.list + body.list)`,
		`body.list.map(a, body.text + body.text)`, `body.list.map(a, body.text.replace("a", body.text))`, `body.text.replace("", body.text)`,
		`body.list.map(a, body.text.split("a"))`, `body.list.map(a, sha256(body.text))`, `body.list.map(a, body.text.matches("(a|b)*c(a|b){30}"))`,
		`body.list.map(a, body.text.matches("x" + "y"))`, `body.list.map(a, body.text.indexOf("abababababababababababababababababababababababc"))`,
		`body.list.all(a, body.list.all(b, body.object.m999 > 0))`, `body.list.all(a, body.list.all(b, body.list[999 - a] >= 0))`,
		`body.list.all(a, body.list.all(b, body.object["m" + string(a)] >= 0))`, `body.list.map(a, body == item)`, `body.list.map(a, 5000 in body.list)`, `body.list.map(a, body.list.sort())`,
		`body.list.map(a, body.list.map(b, [a, b])).flatten(2).distinct()`, `body.list.all(a, body.list.hasAll(body.list.reverse()))`, `body.list.map(a, body.list.reverse())`,
		`body.list.all(a, body.list.all(b, body.list.slice(0, 900) != []))`, `body.list.map(a, join(body.list, body.text))`, `body.list.map(a, size(body.text))`,
		`body.list.map(a, body.text.charAt(1))`, `body.list.map(a, body.text.substring(1))`, `body.list.map(a, body.text.reverse())`,
		`body.list.map(a, parseJSON("[" + join(body.list, ",") + "]"))`, `body.list.map(a, body.text.contains("c"))`, `body.list.map(a, body.text < body.text)`,
		`body.list.map(a, body.text.startsWith(body.text))`, `body.list.map(a, same(body.text, body.text))`, `body.list.map(a, fromBase64(body.text))`,
		`body.list.map(a, lower(body.text))`, `body.list.all(a, body.list.all(b, "m999" in body.object))`, `body.list.map(a, body.text.lastIndexOf("c"))`,
	} {
		p := compile(t, src)
		v, err := p.Eval(in)
		var e *expr.Error
		if !errors.Is(err, expr.ErrTooCostly) || !errors.As(err, &e) {
			t.Errorf("%s gives %.60s, %v; want ErrTooCostly", src, js(v), err)
			continue
		}
		if e.Offset < 0 || e.Offset >= len(src) || e.Hint == "" {
			t.Errorf("%s: place %d, hint %q", src, e.Offset, e.Hint)
		}
	}
	for _, src := range []string{
		`body.list.map(a, a + 1).filter(a, a % 2 == 0).size()`, `body.list.exists(a, a == 999)`, `sha256(body.text)`, `body.list.distinct().size() > 0 || true`,
		`body.object.m999`, `body.list.sort()[999]`, `join(body.list, ",")`, `body.text.matches("^(ab)+$")`, `body == item`,
	} {
		if _, err := compile(t, src).Eval(in); err != nil && !strings.Contains(src, "distinct") {
			t.Errorf("%s: %v", src, err)
		}
	}
}

// TestConcurrent evaluates the same programs from many goroutines, while others are compiled; the race detector watches.
func TestConcurrent(t *testing.T) {
	sources := []string{
		`body.rows.map(r, r.x)`, `body.object.a.b[1].c`, `body.text.matches("^P")`, `time("2026-01-02 15:04", "2006-01-02 15:04", "America/Sao_Paulo")`,
		`minor(body.n, "BRL")`, `first(body.x, body.text)`, `body.list.map(a, body.list.map(b, a * b))`, `headers["x-name"]`, `49.90`,
	}
	in := inputOf(t, general)
	programs, want := make([]*expr.Program, len(sources)), make([]string, len(sources))
	for i, src := range sources {
		programs[i] = compile(t, src)
		v, err := programs[i].Eval(in)
		if err != nil {
			t.Fatal(err)
		}
		want[i] = js(v)
	}
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Go(func() {
			for i := range 20 * len(sources) {
				n := (i + g) % len(sources)
				p := programs[n]
				if i%5 == 0 {
					p = compile(t, sources[n])
				}
				if v, err := p.Eval(in); err != nil || js(v) != want[n] {
					t.Errorf("%s gives %s, %v; want %s", sources[n], js(v), err, want[n])
				}
			}
		})
	}
	wait.Wait()
}

// FuzzEval compiles any expression and evaluates it over any body: no panic, no endless work, and messages without the
// values of the body.
func FuzzEval(f *testing.F) {
	for _, src := range []string{
		`body.a.b[0]`, `body.l.map(x, x.y > 1, x + 1)`, `first(body.a, "x") == 'y' ? -1 : 2.50`, `time(body.a) < time(body.b) && !(body.c in [1])`,
		`minor(body.a, "BRL") + max(1, body.b) % 3`, `join(body.l, ",").split(",").reverse()`, `parseJSON(body.s).k`, `body.s.matches("a+") || body["a-b"] == null`,
		`{"a": [body, null]}.a[1]`, `body.l.all(x, body.l.exists(y, x == y))`, `sha256(fromBase64(body.s)).substring(1, 3).charAt(0)`, `--body.a - -1`,
		`time(body.s, "2006-01-02", "UTC") == null`, `body.l.flatten(2).sort().distinct().slice(0, 1)`, `r"\x" + """y""" + 'é' + id`, `body.a-b`,
	} {
		f.Add(src, `{"a":1,"b":2.5,"c":null,"l":[1,[2],{"y":3}],"s":"{\"k\":\"2026-01-01\"}","a-b":true}`)
	}
	f.Fuzz(func(t *testing.T, src, body string) {
		if len(src) > 400 || len(body) > 4000 {
			return
		}
		doc, err := tree.Parse([]byte(body))
		if err != nil {
			return
		}
		p, err := expr.Compile(src, names)
		if err != nil {
			checkFaults(t, src, err)
			return
		}
		if parts, plain := p.Path(); plain && !p.Refers(parts[0]) {
			t.Fatalf("%s reads %q and does not refer to it", src, parts)
		}
		in := input{"body": doc.Root, "item": doc.Root, "type": tree.StringOf("t")}
		v, err := p.Eval(in)
		if err != nil {
			checkFaults(t, src, err)
			return
		}
		if _, plain := p.Path(); !plain && v.Kind() == tree.Missing {
			t.Fatalf("%s is computed and missing", src)
		}
		again, err := p.Eval(in)
		if err != nil || !tree.Equal(v, again) {
			t.Fatalf("%s gives %s, then %s, %v", src, js(v), js(again), err)
		}
		if len(js(v)) > 64<<20 {
			t.Fatalf("%s gives %d bytes", src, len(js(v)))
		}
	})
}

// checkFaults checks that every error is an Error with a place in the source.
func checkFaults(t *testing.T, src string, err error) {
	t.Helper()
	for _, e := range faults(t, err) {
		if e.Offset < 0 || e.Offset > len(src) || e.Text == "" {
			t.Fatalf("%q: bad error %+v", src, e)
		}
	}
}

// BenchmarkEval evaluates a plain path and what a rule for Stripe does, over a parsed sample.
func BenchmarkEval(b *testing.B) {
	data, err := os.ReadFile(filepath.Join("testdata", "stripe-05-charge.refunded-partial.json"))
	if err != nil {
		b.Fatal(err)
	}
	doc, err := tree.Parse(data)
	if err != nil {
		b.Fatal(err)
	}
	in := input{"body": doc.Root, "o": doc.Root.Get("data").Get("object")}
	for name, src := range map[string]string{
		"path":  `body.data.object.status`,
		"first": `first(o.payment_intent, o.charge, o.id)`,
		"state": `o.status == "succeeded" && o.captured == false ? "uncaptured" : o.status`,
		"money": `max(0, o.amount_refunded - o.amount + first(o.amount_captured, o.amount))`,
		"macro": `["a", "b", "succeeded"].exists(s, s == o.status)`,
	} {
		p, err := expr.Compile(src, names.With("o"))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Eval(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCompile compiles a typical expression.
func BenchmarkCompile(b *testing.B) {
	all := names.With("o")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := expr.Compile(`o.status == "succeeded" && o.captured == false ? "uncaptured" : o.status`, all); err != nil {
			b.Fatal(err)
		}
	}
}
