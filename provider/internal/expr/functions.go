package expr

import (
	"strings"
	"sync"

	"github.com/onceward/onceward/provider/internal/tree"
)

// nulls says what a function makes of a null argument.
type nulls uint8

const (
	flow   nulls = iota // it gives null
	untrue              // it is a test and gives false
	takes               // it is called with it
)

// impl is what a function does; the arguments are its own until it returns. A member function has its target first.
type impl func(f *frame, args []tree.Value) (tree.Value, error)

// function is one function of the language, called as name(x) or, a member, as x.name().
type function struct {
	name     string
	member   bool
	use      string      // how it is written, for messages
	sigs     []signature // what it takes and gives, for the type checker
	nulls    nulls
	run      impl
	prepare  func(args []*tree.Value) (impl, error) // where set: run for these literal arguments, nil where one is no literal
	signOnly bool                                   // only where Names allow sign
}

// takesCount reports whether some signature has n arguments.
func (fn *function) takesCount(n int) bool {
	for _, s := range fn.sigs {
		if len(s.args) == n {
			return true
		}
	}
	return false
}

// functionKey tells x.name() and name(x) apart.
type functionKey struct {
	name   string
	member bool
}

// functions returns all functions.
var functions = sync.OnceValue(func() map[functionKey]*function {
	all := make(map[functionKey]*function)
	for _, group := range [][]function{generalFunctions(), bodyFunctions(), textFunctions(), listFunctions()} {
		for _, fn := range group {
			all[functionKey{fn.name, fn.member}] = &fn
		}
	}
	return all
})

// maxValues is how many values first and max take.
const maxValues = 16

// generalFunctions returns those about values of any kind, numbers, money and time.
func generalFunctions() []function {
	return []function{
		{name: "first", use: "first(a, b, …) of at most 16 values", sigs: upTo(maxValues, anyT, anyT), nulls: takes, run: first},
		{name: "max", use: "max(a, b)", sigs: upTo(maxValues, intT, intT), nulls: takes, run: greatest},
		{name: "time", use: "time(x) or time(x, layout, zone)", run: instant, prepare: prepareInstant,
			sigs: sigs(sig(timeT, anyT), sig(timeT, anyT, textT, textT))},
		{name: "minor", use: "minor(x, currency)", run: minor, prepare: prepareMinor, sigs: sigs(sig(intT, anyT, textT))},
		{name: "int", use: "int(x)", run: toInt, sigs: sigs(sig(intT, anyT))},
		{name: "string", use: "string(x)", run: toText, sigs: sigs(sig(textT, anyT))},
		{name: "size", use: "size(x)", run: size, sigs: sigs(sig(intT, anyT))},
		{name: "size", member: true, use: "x.size()", run: size, sigs: sigs(sig(intT, anyT))},
	}
}

// bodyFunctions returns those for bodies inside bodies, hashes and handshakes.
func bodyFunctions() []function {
	return []function{
		{name: "parseJSON", use: "parseJSON(x)", run: parseJSON, sigs: sigs(sig(anyT, textT))},
		{name: "fromBase64", use: "fromBase64(x)", run: fromBase64, sigs: sigs(sig(textT, textT))},
		{name: "sha256", use: "sha256(x)", run: onText(sha256Hex), sigs: sigs(sig(textT, anyT))},
		{name: "crc32", use: "crc32(x)", run: onText(crc32Decimal), sigs: sigs(sig(textT, anyT))},
		{name: "lower", use: "lower(x)", run: onText(strings.ToLower), sigs: sigs(sig(textT, anyT))},
		{name: "join", use: "join(list, separator)", run: joinTexts, sigs: sigs(sig(textT, listT, textT))},
		{name: "same", use: "same(a, b)", nulls: untrue, run: same, sigs: sigs(sig(boolT, anyT, anyT))},
		{name: "sign", use: "sign(x)", run: sign, sigs: sigs(sig(textT, anyT)), signOnly: true},
	}
}

// textFunctions returns what CEL and its string extension know about texts.
func textFunctions() []function {
	text := func(name, use string, run impl, s ...signature) function {
		return function{name: name, member: true, use: use, run: run, sigs: s}
	}
	test := func(name string, holds func(s, t string) bool) function {
		return function{name: name, member: true, use: "x." + name + "(text)", nulls: untrue, run: textTest(holds),
			sigs: sigs(sig(boolT, textT, textT))}
	}
	matches := function{name: "matches", use: "matches(x, pattern)", nulls: untrue, run: matchesDynamic, prepare: prepareMatches,
		sigs: sigs(sig(boolT, textT, textT))}
	matchesMember := matches
	matchesMember.member, matchesMember.use = true, "x.matches(pattern)"
	return []function{
		matches, matchesMember,
		test("contains", strings.Contains), test("startsWith", strings.HasPrefix), test("endsWith", strings.HasSuffix),
		text("charAt", "x.charAt(index)", charAt, sig(textT, textT, intT)),
		text("indexOf", "x.indexOf(text) or x.indexOf(text, from)", indexOf, sig(intT, textT, textT), sig(intT, textT, textT, intT)),
		text("lastIndexOf", "x.lastIndexOf(text) or x.lastIndexOf(text, from)", lastIndexOf,
			sig(intT, textT, textT), sig(intT, textT, textT, intT)),
		text("lowerAscii", "x.lowerAscii()", onOwnText(lowerASCII), sig(textT, textT)),
		text("upperAscii", "x.upperAscii()", onOwnText(upperASCII), sig(textT, textT)),
		text("trim", "x.trim()", onOwnText(strings.TrimSpace), sig(textT, textT)),
		text("replace", "x.replace(old, new) or x.replace(old, new, limit)", replace,
			sig(textT, textT, textT, textT), sig(textT, textT, textT, textT, intT)),
		text("split", "x.split(separator) or x.split(separator, limit)", split, sig(listT, textT, textT), sig(listT, textT, textT, intT)),
		text("substring", "x.substring(from) or x.substring(from, to)", substring, sig(textT, textT, intT), sig(textT, textT, intT, intT)),
		text("reverse", "x.reverse()", reverse, sig(textT, textT), sig(listT, listT)),
	}
}

// listFunctions returns what CEL's list extension knows.
func listFunctions() []function {
	list := func(name, use string, run impl, s ...signature) function {
		return function{name: name, member: true, use: use, run: run, sigs: s}
	}
	test := func(name string, holds func(f *frame, a, b tree.Value) (bool, error)) function {
		return function{name: name, member: true, use: "list." + name + "(list)", nulls: untrue, run: listTest(holds),
			sigs: sigs(sig(boolT, listT, listT))}
	}
	return []function{
		list("join", "list.join() or list.join(separator)", joinTexts, sig(textT, listT), sig(textT, listT, textT)),
		list("flatten", "list.flatten() or list.flatten(depth)", flatten, sig(listT, listT), sig(listT, listT, intT)),
		list("slice", "list.slice(from, to)", slice, sig(listT, listT, intT, intT)),
		list("distinct", "list.distinct()", distinct, sig(listT, listT)),
		list("sort", "list.sort()", sortList, sig(listT, listT)),
		test("hasAny", hasAny), test("hasAll", hasAll),
		test("hasOnly", func(f *frame, a, b tree.Value) (bool, error) { return hasAll(f, b, a) }),
	}
}

// macroUses says how the list macros are written.
var macroUses = map[string]string{
	"all":    "list.all(x, condition)",
	"exists": "list.exists(x, condition)",
	"filter": "list.filter(x, condition)",
	"map":    "list.map(x, expression) or list.map(x, condition, expression)",
}

// unknowns holds hints for functions that people may expect and that are not there.
var unknowns = map[string]string{
	"has":        "a missing member is null; compare: body.a != null",
	"min":        "write a < b ? a : b",
	"upper":      "x.upperAscii() gives capitals",
	"timestamp":  "time(x) gives an instant",
	"duration":   "instants are only compared",
	"double":     "decimal numbers keep their text; minor(x, currency) turns one into minor units",
	"uint":       "int(x) gives a whole number",
	"bytes":      "a text may hold any bytes",
	"type":       "",
	"dyn":        "",
	"exists_one": "size(list.filter(x, condition)) == 1 says it",
	"existsOne":  "size(list.filter(x, condition)) == 1 says it",
}

// waiting holds what is refused until the catalogue needs it.
var waiting = []string{"parseXML", "sortedForm", "format", "sortBy"}

// onText returns a function of the text of a scalar: a text, a number, a truth value or an instant.
func onText(do func(string) string) impl {
	return func(f *frame, args []tree.Value) (tree.Value, error) {
		s, ok := args[0].Text()
		if !ok {
			return tree.Value{}, fault("a text is needed, not "+describe(args[0]), "")
		}
		return madeText(f, len(s), do(s))
	}
}

// onOwnText returns a function of a text.
func onOwnText(do func(string) string) impl {
	return func(f *frame, args []tree.Value) (tree.Value, error) {
		s, err := textArg(args[0])
		if err != nil {
			return tree.Value{}, err
		}
		return madeText(f, len(s), do(s))
	}
}

// madeText returns the text s, charged together with what was read to make it.
func madeText(f *frame, read int, s string) (tree.Value, error) {
	return tree.StringOf(s), f.chargeText(read + len(s))
}

// textArg returns the text of a String.
func textArg(v tree.Value) (string, error) {
	if v.Kind() != tree.String {
		return "", fault("a text is needed, not "+describe(v), hintText(v))
	}
	s, _ := v.Text()
	return s, nil
}

// hintText says how a value that is no text becomes one.
func hintText(v tree.Value) string {
	if v.Kind() == tree.List || v.Kind() == tree.Object {
		return ""
	}
	return "string(x) gives its text"
}

// intArg returns a whole number.
func intArg(v tree.Value) (int64, error) {
	n, ok := v.Int64()
	if !ok {
		return 0, fault("a whole number is needed, not "+describe(v), hintInt(v))
	}
	return n, nil
}

// hintInt says how a value that is no whole number becomes one.
func hintInt(v tree.Value) string {
	switch v.Kind() {
	case tree.String:
		return "int(x) reads one from a text"
	case tree.Number:
		return "minor(x, currency) turns a decimal into minor units"
	}
	return ""
}

// listArg checks that v is a list.
func listArg(v tree.Value) error {
	if v.Kind() != tree.List {
		return fault("a list is needed, not "+describe(v), "")
	}
	return nil
}
