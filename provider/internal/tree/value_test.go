package tree_test

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/onceward/onceward/provider/internal/tree"
)

func TestKinds(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.FixedZone("", -3*3600))
	tests := []struct {
		value       tree.Value
		kind        tree.Kind
		word, text  string
		json        string
		null, texty bool
	}{
		{tree.Value{}, tree.Missing, "null", "", "null", true, false},
		{tree.NullValue(), tree.Null, "null", "", "null", true, false},
		{tree.BoolOf(true), tree.Bool, "truth value", "true", "true", false, true},
		{tree.BoolOf(false), tree.Bool, "truth value", "false", "false", false, true},
		{tree.IntOf(math.MinInt64), tree.Number, "number", "-9223372036854775808", "-9223372036854775808", false, true},
		{tree.StringOf("a\"\xff\n"), tree.String, "text", "a\"\xff\n", `"a\"` + "\ufffd" + `\n"`, false, true},
		{tree.ListOf(tree.IntOf(1), tree.Value{}), tree.List, "list", "", "[1,null]", false, false},
		{tree.ObjectOf(tree.Member{Name: "a", Value: tree.NullValue()}), tree.Object, "object", "", `{"a":null}`, false, false},
		{tree.LookupOf(func(string) tree.Value { return tree.IntOf(1) }), tree.Object, "object", "", `{}`, false, false},
		{tree.TimeOf(at), tree.Time, "instant", "2026-01-02T06:04:05.6Z", `"2026-01-02T06:04:05.6Z"`, false, true},
	}
	for _, test := range tests {
		v := test.value
		text, texty := v.Text()
		if v.Kind() != test.kind || v.Kind().String() != test.word || v.IsNull() != test.null {
			t.Errorf("%s: kind %v, null %v", test.json, v.Kind(), v.IsNull())
		}
		if text != test.text || texty != test.texty {
			t.Errorf("%s: text %q, %v", test.json, text, texty)
		}
		if got := js(v); got != test.json {
			t.Errorf("AppendJSON gives %s, want %s", got, test.json)
		}
		_, isBool := v.Bool()
		_, isNumber := v.NumberText()
		_, isInt := v.Int64()
		got, isTime := v.Time()
		if isBool != (test.kind == tree.Bool) || isNumber != (test.kind == tree.Number) ||
			isInt != isNumber || isTime != (test.kind == tree.Time) || isTime && !got.Equal(at) {
			t.Errorf("%s: wrong accessors", test.json)
		}
		if v.Get("x").Kind() != tree.Missing && v.Kind() != tree.Object || v.Index(2).Kind() != tree.Missing || v.Index(-1).Kind() != tree.Missing {
			t.Errorf("%s: what is not there is not missing", test.json)
		}
	}
	if got := tree.Kind(77).String(); got != "Kind(77)" {
		t.Errorf("an unknown kind is called %s", got)
	}
}

func TestInt64(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "-0.0e5": "0", "7205759403792793601": "7205759403792793601",
		"9223372036854775807": "9223372036854775807", "-9223372036854775808": "-9223372036854775808",
		"9223372036854775808": "", "-9223372036854775809": "", "1.0": "1", "1.10": "", "1e3": "1000", "1.5e1": "15",
		"1.5e0": "", "100e-2": "1", "105e-2": "", "0.0000000000000000000001e22": "1", "1e18": "1000000000000000000",
		"1e19": "", "9.223372036854775807e18": "9223372036854775807", "1e400": "", "1e-400": "", "0e999999999999999999999": "0",
		"1e999999999999999999999": "", "1e-999999999999999999999": "", "5e00000000000000000000000001": "50", "5e-0": "5",
		"5e-00000000000000000000": "5", "0.000e3": "0", "123456789012345678901234567890e-20": "",
		"123456789000000000000000000000e-21": "123456789",
	} {
		v, ok := tree.NumberOf(text)
		if !ok {
			t.Errorf("%s is no number", text)
			continue
		}
		got := ""
		if n, ok := v.Int64(); ok {
			got = strconv.FormatInt(n, 10)
		}
		if got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
		if js(v) != text {
			t.Errorf("%s does not keep its text", text)
		}
	}
	for _, text := range []string{"", "-", "+1", "01", "1.", ".1", "1e", "1e+", "1 ", " 1", "0x1", "NaN", "1_0", "Infinity"} {
		if v, ok := tree.NumberOf(text); ok {
			t.Errorf("%q is the number %s", text, js(v))
		}
	}
}

func TestScaled(t *testing.T) {
	tests := []struct {
		text   string
		places int
		want   int64
		how    tree.Scaling
	}{
		{"49.90", 2, 4990, tree.Exact}, {"49.9", 2, 4990, tree.Exact}, {"49", 2, 4900, tree.Exact}, {"-0.01", 2, -1, tree.Exact},
		{"+1", 0, 1, tree.Exact}, {"007.500", 3, 7500, tree.Exact}, {".5", 1, 5, tree.Exact}, {"5.", 1, 50, tree.Exact},
		{"49.900", 2, 4990, tree.Exact}, {"49.901", 2, 0, tree.Inexact}, {"4.99e1", 2, 4990, tree.Exact}, {"0", 2, 0, tree.Exact},
		{"92233720368547758.07", 2, math.MaxInt64, tree.Exact}, {"92233720368547758.08", 2, 0, tree.TooLarge},
		{"-92233720368547758.08", 2, math.MinInt64, tree.Exact}, {"1e99", 2, 0, tree.TooLarge}, {"1e-99", 2, 0, tree.Inexact},
		{"1e99999999999999999999", 0, 0, tree.TooLarge}, {"1e-99999999999999999999", 0, 0, tree.Inexact},
		{"", 2, 0, tree.NotNumber}, {".", 2, 0, tree.NotNumber}, {"1,5", 2, 0, tree.NotNumber}, {"1e", 2, 0, tree.NotNumber},
		{"1.2.3", 2, 0, tree.NotNumber}, {"--1", 2, 0, tree.NotNumber}, {" 1", 2, 0, tree.NotNumber}, {"e5", 2, 0, tree.NotNumber},
		{"1e5e5", 2, 0, tree.NotNumber}, {"1e--5", 2, 0, tree.NotNumber}, {"R$ 5", 2, 0, tree.NotNumber}, {"1e5.5", 2, 0, tree.NotNumber},
	}
	for _, test := range tests {
		if got, how := tree.Scaled(test.text, test.places); got != test.want || how != test.how {
			t.Errorf("Scaled(%q, %d) is %d, %d; want %d, %d", test.text, test.places, got, how, test.want, test.how)
		}
	}
}

func number(t *rapid.T, label string) tree.Value {
	text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?`).Draw(t, label)
	v, ok := tree.NumberOf(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	return v
}

// TestCompareNumbers compares with math/big, which is exact.
func TestCompareNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := number(t, "a"), number(t, "b")
		s, _ := a.NumberText()
		u, _ := b.NumberText()
		x, _ := new(big.Rat).SetString(s)
		y, _ := new(big.Rat).SetString(u)
		got, ok := tree.Compare(a, b)
		if !ok || got != x.Cmp(y) || tree.Equal(a, b) != (got == 0) {
			t.Fatalf("Compare(%s, %s) is %d, %v; want %d", s, u, got, ok, x.Cmp(y))
		}
		n, whole := a.Int64()
		if whole != (x.IsInt() && x.Num().IsInt64()) || whole && n != x.Num().Int64() {
			t.Fatalf("%s is the whole number %d, %v", s, n, whole)
		}
	})
}

func TestCompare(t *testing.T) {
	ascending := [][]string{
		{"-1e400", "-2", "-1.5", "0", "1e-99999999999999999999", "1e-400", "0.1", "49.9", "49.91", "9007199254740992",
			"9007199254740993", "9223372036854775807", "9223372036854775808", "1e400", "1e401", "1e99999999999999999999",
			"2e99999999999999999999"},
		{`""`, `"A"`, `"a"`, `"a\u0000"`, `"aa"`, `"é"`, `"\ud83d\ude00"`},
		{"false", "true"},
	}
	var all [][]tree.Value
	for _, row := range ascending {
		var values []tree.Value
		for _, text := range row {
			values = append(values, parse(t, text))
		}
		all = append(all, values)
	}
	all = append(all, []tree.Value{tree.TimeOf(time.Unix(-1, 5)), tree.TimeOf(time.Unix(0, 0)), tree.TimeOf(time.Unix(0, 1))})
	for r, row := range all {
		for i, a := range row {
			for j, b := range row {
				if c, ok := tree.Compare(a, b); !ok || c != sign(i-j) || tree.Equal(a, b) != (i == j) {
					t.Errorf("Compare(%s, %s) is %d, %v", js(a), js(b), c, ok)
				}
			}
			other := all[(r+1)%len(all)][0]
			if _, ok := tree.Compare(a, other); ok || tree.Equal(a, other) {
				t.Errorf("%s and %s compare", js(a), js(other))
			}
		}
	}
	if _, ok := tree.Compare(parse(t, "[]"), parse(t, "[]")); ok {
		t.Error("lists have an order")
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

func TestEqual(t *testing.T) {
	lookup := tree.LookupOf(func(string) tree.Value { return tree.Value{} })
	equal := [][2]tree.Value{
		{parse(t, `{"a":1,"b":[1.50,{"c":null}]}`), parse(t, `{"b":[15e-1,{"c":null}],"a":1.0}`)},
		{parse(t, `"\u0061"`), tree.StringOf("a")},
		{tree.Value{}, tree.NullValue()},
		{parse(t, `{}`), tree.ObjectOf(tree.Member{Name: "a"})},
		{lookup, lookup},
	}
	for _, pair := range equal {
		if !tree.Equal(pair[0], pair[1]) || !tree.Equal(pair[1], pair[0]) {
			t.Errorf("%s and %s differ", js(pair[0]), js(pair[1]))
		}
	}
	unequal := [][2]tree.Value{
		{parse(t, `{"a":null}`), parse(t, `{}`)}, {parse(t, `{"a":1}`), parse(t, `{"b":1}`)}, {parse(t, `{"a":1}`), parse(t, `{"a":2}`)},
		{parse(t, `[1,2]`), parse(t, `[2,1]`)}, {parse(t, `[1]`), parse(t, `[1,1]`)}, {parse(t, `1`), parse(t, `"1"`)},
		{parse(t, `null`), parse(t, `false`)}, {parse(t, `[]`), parse(t, `{}`)}, {lookup, parse(t, `{}`)},
	}
	for _, pair := range unequal {
		if tree.Equal(pair[0], pair[1]) || tree.Equal(pair[1], pair[0]) {
			t.Errorf("%s and %s are equal", js(pair[0]), js(pair[1]))
		}
	}
}

func TestObjectOf(t *testing.T) {
	m := func(name string, n int64) tree.Member { return tree.Member{Name: name, Value: tree.IntOf(n)} }
	v := tree.ObjectOf(m("a", 1), m("b", 2), m("a", 3), tree.Member{Name: "c"})
	if got := js(v); got != `{"a":1,"b":2}` || v.Len() != 2 {
		t.Errorf("the object is %s with %d members", got, v.Len())
	}
	var many []tree.Member
	for i := range 40 {
		many = append(many, m(strconv.Itoa(i%20), int64(i)))
	}
	if v := tree.ObjectOf(many...); v.Len() != 20 || js(v.Get("19")) != "19" {
		t.Errorf("the object is %s", js(v))
	}
}

func TestLookupOf(t *testing.T) {
	headers := tree.LookupOf(func(name string) tree.Value {
		if strings.EqualFold(name, "X-Name") {
			return tree.StringOf("v")
		}
		return tree.Value{}
	})
	if got := js(headers.Get("x-nAME")); got != `"v"` {
		t.Errorf("the header is %s", got)
	}
	if headers.Get("other").Kind() != tree.Missing || headers.Len() != 0 {
		t.Error("there are members that the function does not know")
	}
	for name := range headers.Members() {
		t.Errorf("member %s is listed", name)
	}
}

func TestOverlay(t *testing.T) {
	tests := []struct{ at, values, want string }{
		{`{"a":1,"b":{"c":1,"d":2},"l":[1,2]}`, `{"b":{"d":3},"l":[9],"n":null}`, `{"a":1,"b":{"c":1,"d":3},"l":[9],"n":null}`},
		{`{"a":{"b":1}}`, `{"a":null}`, `{"a":null}`},
		{`{"a":null}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{`{"a":1}`, `{}`, `{"a":1}`},
		{`{"a":1}`, `null`, `null`},
		{`{"a":1}`, `[1]`, `[1]`},
		{`null`, `{"a":1}`, `{"a":1}`},
	}
	for _, test := range tests {
		at, values := parse(t, test.at), parse(t, test.values)
		if got := js(tree.Overlay(at, values)); got != test.want {
			t.Errorf("%s over %s is %s, want %s", test.values, test.at, got, test.want)
		}
		if js(at) != test.at {
			t.Errorf("Overlay changed %s to %s", test.at, js(at))
		}
	}
	if got := js(tree.Overlay(parse(t, "1"), tree.Value{})); got != "1" {
		t.Errorf("nothing over 1 is %s", got)
	}
	if got := js(tree.Overlay(tree.Value{}, parse(t, "1"))); got != "1" {
		t.Errorf("1 over nothing is %s", got)
	}
}

func TestPut(t *testing.T) {
	tests := []struct {
		root, path, want string
		ok               bool
	}{
		{`{"a":{"b":1,"c":2},"d":3}`, "a.b", `{"a":{"b":0,"c":2},"d":3}`, true},
		{`{"a":[1,{"b":2},3]}`, "a.1.b", `{"a":[1,{"b":0},3]}`, true},
		{`{"a":1}`, "b.c", `{"a":1,"b":{"c":0}}`, true},
		{`{"a":null}`, "a.b", `{"a":{"b":0}}`, true},
		{`null`, "a", `{"a":0}`, true},
		{`[1]`, "", `0`, true},
		{`[1]`, "1", `[1]`, false},
		{`[1]`, "x", `[1]`, false},
		{`[1]`, "-1", `[1]`, false},
		{`{"a":1}`, "a.b", `{"a":1}`, false},
		{`{"a":[1]}`, "a.0.b", `{"a":[1]}`, false},
		{`"x"`, "a", `"x"`, false},
	}
	for _, test := range tests {
		path := slices.DeleteFunc(strings.Split(test.path, "."), func(s string) bool { return s == "" })
		got, ok := tree.Put(parse(t, test.root), path, tree.IntOf(0))
		if js(got) != test.want || ok != test.ok {
			t.Errorf("0 at %s of %s gives %s, %v; want %s, %v", test.path, test.root, js(got), ok, test.want, test.ok)
		}
	}
}

func TestEarlyStop(t *testing.T) {
	for _, v := range []tree.Value{parse(t, `[1,2,3]`), tree.ListOf(tree.IntOf(1), tree.IntOf(2))} {
		for e := range v.Elements() {
			if js(e) != "1" {
				t.Errorf("the first element of %s is %s", js(v), js(e))
			}
			break
		}
	}
	var names []string
	for _, v := range []tree.Value{parse(t, `{"a":1,"b":2}`), tree.ObjectOf(tree.Member{Name: "a", Value: tree.IntOf(1)}, tree.Member{Name: "b", Value: tree.IntOf(1)})} {
		for name := range v.Members() {
			names = append(names, name)
			break
		}
	}
	if diff := cmp.Diff([]string{"a", "a"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestTruncated(t *testing.T) {
	tests := []struct {
		text string
		want int64
		how  tree.Scaling
	}{
		{"3.7", 3, tree.Exact}, {"-3.7", -3, tree.Exact}, {"0.99", 0, tree.Exact}, {"-0.99", 0, tree.Exact}, {"0.0099e3", 9, tree.Exact},
		{"1e2", 100, tree.Exact}, {"1e-99999999999999999999", 0, tree.Exact}, {"1e99999999999999999999", 0, tree.TooLarge},
		{"9223372036854775807.9", math.MaxInt64, tree.Exact}, {"9223372036854775808", 0, tree.TooLarge}, {"x", 0, tree.NotNumber},
		{"1000.5", 1000, tree.Exact}, {"100", 100, tree.Exact},
	}
	for _, test := range tests {
		if got, how := tree.Truncated(test.text); got != test.want || how != test.how {
			t.Errorf("Truncated(%q) is %d, %d; want %d, %d", test.text, got, how, test.want, test.how)
		}
	}
}

func TestWeight(t *testing.T) {
	long := tree.StringOf(strings.Repeat("x", 160))
	twice := tree.ListOf(long, long)
	for _, test := range []struct {
		value tree.Value
		want  int
	}{
		{tree.Value{}, 1}, {tree.IntOf(1), 1}, {long, 11}, {twice, 23}, {tree.ListOf(twice, twice), 47},
		{tree.ObjectOf(tree.Member{Name: strings.Repeat("n", 16), Value: twice}), 25},
		{parse(t, `["`+strings.Repeat("x", 160)+`"]`), 11},
		{tree.LookupOf(func(string) tree.Value { return long }), 1},
	} {
		if got := test.value.Weight(); got != test.want {
			t.Errorf("%.40s weighs %d, want %d", js(test.value), got, test.want)
		}
	}
}
