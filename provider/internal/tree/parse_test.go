package tree_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/provider/internal/tree"
)

// parse is Parse of a text that must be right.
func parse(t testing.TB, text string) tree.Value {
	t.Helper()
	doc, err := tree.Parse([]byte(text))
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return doc.Root
}

func js(v tree.Value) string { return string(v.AppendJSON(nil)) }

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		` {"b" : 1.50 , "a" : [ true,false,null ] } `: `{"b":1.50,"a":[true,false,null]}`,
		"\ufeff[]":                 `[]`,
		"\r\n\t {}\r\n\t ":         `{}`,
		`-0`:                       `-0`,
		`1E+2`:                     `1E+2`,
		`7205759403792793601`:      `7205759403792793601`,
		`"\u0041\n\/\"\\\b\f\r\t"`: `"A\n/\"\\\u0008\u000c\r\t"`,
		`"\ud83d\ude00"`:           `"😀"`,
		`"\ud800x"`:                `"` + "\ufffd" + `x"`,
		`"\ud800\u0041"`:           `"` + "\ufffd" + `A"`,
		`"\udc00\ud800"`:           `"` + "\ufffd\ufffd" + `"`,
		"\"a\xff\xfeb\"":           `"a` + "\ufffd\ufffd" + `b"`,
		`"\u0000"`:                 `"\u0000"`,
		`{"\u0061":1}`:             `{"a":1}`,
		`{"a":{"":[[],{}]}}`:       `{"a":{"":[[],{}]}}`,
	} {
		if got := js(parse(t, text)); got != want {
			t.Errorf("Parse(%q) is %s, want %s", text, got, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:             "the text ends where a value should follow, at byte 0",
		"\ufeff ":      "the text ends where a value should follow, at byte 4",
		`{`:            "the text ends where the name of a member should follow, at byte 1",
		`{"a"`:         "the text ends where a colon should follow, at byte 4",
		`{"a":`:        "the text ends where a value should follow, at byte 5",
		`{"a":1`:       "the text ends where a comma or the end of the object should follow, at byte 6",
		`{"a":1,}`:     "the name of a member should stand here, at byte 7",
		`{a:1}`:        "the name of a member should stand here, at byte 1",
		`{,}`:          "the name of a member should stand here, at byte 1",
		`[1,]`:         "a value should stand here, at byte 3",
		`[1 2]`:        "a comma or the end of the list should stand here, at byte 3",
		`[`:            "the text ends where a value should follow, at byte 1",
		`1 2`:          "more text follows the value, at byte 2",
		`01`:           "more text follows the value, at byte 1",
		`+1`:           "a value should stand here, at byte 0",
		`.5`:           "a value should stand here, at byte 0",
		`1.`:           "the text ends where a digit should follow, at byte 2",
		`-`:            "the text ends where a digit should follow, at byte 1",
		`1e+x`:         "a digit should stand here, at byte 3",
		`NaN`:          "a value should stand here, at byte 0",
		`nul`:          "a value should stand here, at byte 0",
		`'a'`:          "a value should stand here, at byte 0",
		`"a`:           "the text ends where the end of a string should follow, at byte 2",
		`"\x"`:         "there is no such escape, at byte 1",
		`"\u12g4"`:     "there is no such escape, at byte 1",
		"\"a\nb\"":     "a control character stands in a string, at byte 2",
		"1\v":          "more text follows the value, at byte 1",
		"[1]\ufeff":    "more text follows the value, at byte 3",
		"\u00a01":      "a value should stand here, at byte 0",
		`{"a":1} // x`: "more text follows the value, at byte 8",
	} {
		_, err := tree.Parse([]byte(text))
		if _, ok := errors.AsType[*tree.SyntaxError](err); !ok {
			t.Errorf("Parse(%q): %v, want a SyntaxError", text, err)
		} else if err.Error() != want {
			t.Errorf("Parse(%q): %v, want %s", text, err, want)
		}
	}
}

func TestParseDepth(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if _, err := tree.Parse(nested(tree.MaxDepth)); err != nil {
		t.Errorf("depth %d: %v", tree.MaxDepth, err)
	}
	if _, err := tree.Parse(nested(tree.MaxDepth + 1)); err == nil {
		t.Errorf("depth %d is read", tree.MaxDepth+1)
	}
	wide := "[" + strings.Repeat("[],", 2*tree.MaxDepth) + "{}]"
	if _, err := tree.Parse([]byte(wide)); err != nil {
		t.Errorf("lists beside each other count as depth: %v", err)
	}
}

func TestDoubled(t *testing.T) {
	tests := []struct {
		text, root string
		doubled    []string
	}{
		{`{"a":1,"b":2}`, `{"a":1,"b":2}`, nil},
		{`{"a":1,"a":2}`, `{"a":1}`, []string{"a"}},
		{`{"a":1,"\u0061":2,"a":3}`, `{"a":1}`, []string{"a"}},
		{`{"x":[{},{"a":{"b":1,"b":{"c":1,"c":1}}}],"y":1,"x":0}`, `{"x":[{},{"a":{"b":1}}],"y":1}`,
			[]string{"x.1.a.b", "x.1.a.b.c", "x"}},
		{`[{"a":1,"a":1}]`, `[{"a":1}]`, []string{"0.a"}},
		{`{"":1,"":2}`, `{"":1}`, []string{""}},
	}
	for _, test := range tests {
		doc, err := tree.Parse([]byte(test.text))
		if err != nil {
			t.Errorf("Parse(%s): %v", test.text, err)
			continue
		}
		if got := js(doc.Root); got != test.root {
			t.Errorf("%s reads as %s, want %s", test.text, got, test.root)
		}
		if diff := cmp.Diff(test.doubled, doc.Doubled); diff != "" {
			t.Errorf("%s: doubled (-want +got):\n%s", test.text, diff)
		}
	}
	first := parse(t, `{"a":1,"a":2,"b":3}`)
	if n, _ := first.Get("a").Int64(); n != 1 || first.Len() != 2 {
		t.Errorf("a doubled member reads as %d of %d members, want the first, 1, of 2", n, first.Len())
	}
}

func TestDoubledBounded(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `"m%d":1,"m%d":2,`, i, i)
	}
	doc, err := tree.Parse([]byte("{" + strings.TrimSuffix(b.String(), ",") + "}"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(doc.Doubled); n != 101 || doc.Doubled[99] != "m99" || doc.Doubled[100] != "" {
		t.Errorf("%d doubled members are listed, the last two %q", n, doc.Doubled[n-2:])
	}
	if doc.Root.Len() != 1000 {
		t.Errorf("the object has %d members, want 1000", doc.Root.Len())
	}
}

func TestRaw(t *testing.T) {
	const text = " { \"a\" : [ 1.0 , { \"b\":\"\\ud800\" } ] }\n"
	root := parse(t, text)
	for want, v := range map[string]tree.Value{
		strings.TrimSpace(text):      root,
		`[ 1.0 , { "b":"\ud800" } ]`: root.Get("a"),
		`1.0`:                        root.Get("a").Index(0),
		`{ "b":"\ud800" }`:           root.Get("a").Index(1),
		`"\ud800"`:                   root.Get("a").Index(1).Get("b"),
	} {
		if got := string(v.Raw()); got != want {
			t.Errorf("Raw is %q, want %q", got, want)
		}
	}
	for _, v := range []tree.Value{{}, tree.IntOf(1), tree.StringOf("x"), tree.ListOf(tree.IntOf(1)), root.Get("none")} {
		if v.Raw() != nil {
			t.Errorf("the computed %s has raw bytes", js(v))
		}
	}
	data := []byte(`["abc"]`)
	doc, err := tree.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	copy(data, "xxxxxxx")
	doc.Root.Raw()[0] = 'y'
	if got := js(doc.Root); got != `["abc"]` {
		t.Errorf("the tree changed with its source: %s", got)
	}
}

// walk visits v and everything in it.
func walk(v tree.Value, visit func(tree.Value)) {
	visit(v)
	for e := range v.Elements() {
		walk(e, visit)
	}
	for _, m := range v.Members() {
		walk(m, visit)
	}
}

// plain turns a tree into what encoding/json makes of it with UseNumber.
func plain(v tree.Value) any {
	switch v.Kind() {
	case tree.Bool:
		b, _ := v.Bool()
		return b
	case tree.Number:
		text, _ := v.NumberText()
		return json.Number(text)
	case tree.String:
		text, _ := v.Text()
		return text
	case tree.List:
		list := []any{}
		for e := range v.Elements() {
			list = append(list, plain(e))
		}
		return list
	case tree.Object:
		object := map[string]any{}
		for name, m := range v.Members() {
			object[name] = plain(m)
		}
		return object
	}
	return nil
}

// depth returns how deep the brackets of a JSON text are nested.
func depth(data []byte) (deepest int) {
	dec, now := json.NewDecoder(bytes.NewReader(data)), 0
	for {
		token, err := dec.Token()
		if err != nil {
			return deepest
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			now++
			deepest = max(deepest, now)
		case json.Delim(']'), json.Delim('}'):
			now--
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range samples {
		f.Add(sample(f, name))
	}
	for _, s := range []string{
		`{"a":[1,-2.50e+3,"\ud83d\ude00\u0000\ud800"],"b":{"a":null,"a":true}}`, "\ufeff 1e400", "\"\xff\"", `[[[[]]]]`, `{"":{"":""}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := tree.Parse(data)
		body := bytes.TrimPrefix(data, []byte("\ufeff"))
		valid := json.Valid(body) && depth(body) <= tree.MaxDepth
		if valid != (err == nil) {
			t.Fatalf("encoding/json and depth say %v, Parse: %v", valid, err)
		}
		if err != nil {
			var syntax *tree.SyntaxError
			if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > int64(len(data)) {
				t.Fatalf("bad error %v", err)
			}
			return
		}
		checkTree(t, doc, body)
	})
}

// checkTree checks that a tree reads like encoding/json, writes itself so that it reads the same again, and knows its
// spans.
func checkTree(t *testing.T, doc tree.Document, body []byte) {
	t.Helper()
	if doc.Doubled == nil {
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, plain(doc.Root)); diff != "" {
			t.Fatalf("encoding/json reads otherwise (-want +got):\n%s", diff)
		}
	}
	out := doc.Root.AppendJSON(nil)
	if !json.Valid(out) || !utf8.Valid(out) {
		t.Fatalf("AppendJSON wrote %q", out)
	}
	again, err := tree.Parse(out)
	if err != nil || again.Doubled != nil || !tree.Equal(again.Root, doc.Root) {
		t.Fatalf("%q reads otherwise again: %v", out, err)
	}
	left := 2000 // spans and elements by index take their time
	walk(doc.Root, func(v tree.Value) {
		if left--; left < 0 {
			return
		}
		raw := v.Raw()
		same, err := tree.Parse(raw)
		if err != nil || !tree.Equal(same.Root, v) || !bytes.Contains(body, raw) {
			t.Fatalf("raw %q is not %s", raw, js(v))
		}
		if list := slices.Collect(v.Elements()); v.Kind() == tree.List {
			if len(list) != v.Len() || len(list) > 0 && !tree.Equal(list[len(list)-1], v.Index(len(list)-1)) {
				t.Fatalf("%s has %d elements, Len %d", js(v), len(list), v.Len())
			}
		}
		members := 0
		for name, m := range v.Members() {
			members++
			if !tree.Equal(v.Get(name), m) {
				t.Fatalf("member %q of %s is not what Get gives", name, js(v))
			}
		}
		if v.Kind() == tree.Object && members != v.Len() {
			t.Fatalf("%s has %d members, Len %d", js(v), members, v.Len())
		}
	})
}
