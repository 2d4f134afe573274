package expr_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/tree"
)

// input holds the values of names.
type input map[string]tree.Value

func (in input) Lookup(name string) tree.Value { return in[name] }

// signer is an input that signs.
type signer struct {
	input
	err error
}

func (s signer) Sign(text string) (string, error) { return "signed:" + text, s.err }

var names = expr.NewNames("body", "item", "headers", "params", "type", "amount")

func parse(t testing.TB, text string) tree.Value {
	t.Helper()
	doc, err := tree.Parse([]byte(text))
	if err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	return doc.Root
}

func js(v tree.Value) string { return string(v.AppendJSON(nil)) }

// inputOf returns what an event with this body gives.
func inputOf(t testing.TB, body string) input {
	v := parse(t, body)
	headers := tree.LookupOf(func(name string) tree.Value {
		if strings.EqualFold(name, "X-Name") {
			return tree.StringOf("value")
		}
		return tree.Value{}
	})
	return input{"body": v, "item": v, "headers": headers, "type": tree.StringOf("order.paid")}
}

func compile(t testing.TB, src string) *expr.Program {
	t.Helper()
	p, err := expr.Compile(src, names)
	if err != nil {
		t.Fatalf("compile %s: %v", src, err)
	}
	return p
}

// language holds expressions over general and what they give.
var language = []struct{ src, want string }{
	// Names and paths.
	{`body.object.a.b[1].c`, `"deep"`}, {`item.id`, `7205759403792793601`}, {`type`, `"order.paid"`},
	{`headers["x-nAmE"]`, `"value"`}, {`headers["X-Other"]`, `null`}, {`headers.x`, `null`}, {`"X-NAME" in headers`, `true`},
	{`body["a-b"]`, `"dash"`}, {`body["in"]`, `"keyword"`}, {`body["ünï"]`, `"ü"`}, {`body.map.all`, `1`}, {`body.map["size"]`, `2`},
	{`body.map.size`, `2`}, {`body.rows[1].tag[1]`, `"c"`}, {`body.rows[size(body.rows) - 2].x`, `2`}, {`params.user_id`, `null`},
	// A missing member is null, and null flows.
	{`body.a.b[3].c`, `null`}, {`body.text.a`, `null`}, {`body.list.a`, `null`}, {`body.list[3]`, `null`}, {`body.list[-1]`, `null`},
	{`body.list[99999999999]`, `null`}, {`body.object[0]`, `null`}, {`body.nil.a`, `null`}, {`body.list[body.x]`, `null`},
	{`body.x[body.y].z`, `null`}, {`body.list["a"]`, `null`}, {`(body.x).y`, `null`},
	{`body.x + 1`, `null`}, {`1 - body.x`, `null`}, {`body.nil * 2`, `null`}, {`body.x / 0`, `null`}, {`-body.x`, `null`}, {`body.x % 2`, `null`},
	{`body.x + "a"`, `null`}, {`body.x + [1]`, `null`}, {`lower(body.x)`, `null`}, {`size(body.x)`, `null`}, {`body.x.split(",")`, `null`},
	{`"a,b".split(body.x)`, `null`}, {`int(body.x)`, `null`}, {`string(body.x)`, `null`}, {`time(body.x)`, `null`}, {`minor(body.x, "BRL")`, `null`},
	{`minor("1", body.x)`, `null`}, {`join(body.x, ",")`, `null`}, {`sha256(body.x)`, `null`}, {`parseJSON(body.x).a`, `null`}, {`lower(null)`, `null`},
	// A test given null is false.
	{`body.x < 1`, `false`}, {`body.x >= 1`, `false`}, {`1 > body.x`, `false`}, {`body.x in [1]`, `false`}, {`1 in body.x`, `false`},
	{`null in [null]`, `false`}, {`body.x.startsWith("a")`, `false`}, {`"a".contains(body.x)`, `false`}, {`body.x.matches("a")`, `false`},
	{`body.x.endsWith("")`, `false`}, {`same(body.x, body.x)`, `false`}, {`!(body.x > 1)`, `true`}, {`body.x < 1 || body.x >= 1`, `false`},
	// Equality compares; there is no has().
	{`body.x == null`, `true`}, {`body.nil == null`, `true`}, {`body.x == body.nil`, `true`}, {`body.empty == null`, `false`},
	{`body.void != null`, `true`}, {`body.x == false`, `false`}, {`body.x != 1`, `true`}, {`body.list == [1, 2, 3.0]`, `true`},
	{`body.object.a == {"b": [0, {"c": "deep"}]}`, `true`}, {`body.yes == "true"`, `false`}, {`body.id == "7205759403792793601"`, `false`},
	// Conditions take null for false.
	{`(body.yes == true ? null : false) == null ? "a" : "b"`, `"a"`}, {`(body.no == true ? true : null) ? "a" : "b"`, `"b"`},
	{`!(body.no == true ? true : null)`, `true`}, {`true && (body.yes == true ? null : true)`, `false`},
	{`false || (body.yes == true ? null : true)`, `false`}, {`body.yes == true ? 0 : null`, `0`}, {`body.no == true ? 1 : body.text`, `"Paid"`},
	// Whole numbers are exact to 64 bits, others keep their text.
	{`body.id + 1`, `7205759403792793602`}, {`body.id == 7205759403792793600`, `false`}, {`body.id == 7205759403792793601.0`, `true`},
	{`9223372036854775807 - 1`, `9223372036854775806`}, {`-9223372036854775808 + 1`, `-9223372036854775807`}, {`body.one + 1`, `2`}, {`body.e + 1`, `1001`},
	{`7 / -2`, `-3`}, {`-7 % 4`, `-3`}, {`2 * 3 - 4`, `2`},
	{`body.n`, `49.90`}, {`first(body.n)`, `49.90`}, {`body.n == 49.9`, `true`}, {`body.n < 49.91`, `true`}, {`body.huge > 1`, `true`},
	{`body.huge > 1e308`, `true`}, {`49.90`, `49.90`}, {`-1.50`, `-1.50`}, {`.5 == 0.50`, `true`}, {`0.1000000000000000000001 > 0.1`, `true`},
	{`string(body.n)`, `"49.90"`}, {`[body.n, 1.50]`, `[49.90,1.50]`}, {`body.id in [7205759403792793601]`, `true`}, {`1 == 1.0`, `true`},
	// From CEL itself.
	{`int("-12")`, `-12`}, {`int(3.99)`, `3`}, {`int(-3.99)`, `-3`}, {`int(body.e)`, `1000`}, {`int(time("1970-01-01T00:01:00Z"))`, `60`},
	{`string(12)`, `"12"`}, {`string(true)`, `"true"`}, {`string(time(body.at))`, `"2026-01-02T03:04:05.678Z"`}, {`string("x")`, `"x"`},
	{`size("héé")`, `3`}, {`body.list.size()`, `3`}, {`size(body.object)`, `1`}, {`size("")`, `0`}, {`"ab" + "c"`, `"abc"`}, {`[1] + [2, 3]`, `[1,2,3]`},
	{`body.text.matches("^P.+d$")`, `true`}, {`matches(body.text, "x")`, `false`}, {`body.text.matches("^" + "P")`, `true`},
	{`body.text.contains("ai")`, `true`}, {`body.text.startsWith("Pa")`, `true`}, {`body.text.endsWith("x")`, `false`},
	{`2 in body.list`, `true`}, {`4 in body.list`, `false`}, {`"a" in body.object`, `true`}, {`"zz" in body.object`, `false`}, {`"nil" in body`, `true`},
	{`"b" < "c"`, `true`}, {`false < true`, `true`}, {`time(body.at) < time("2027-01-01T00:00:00Z")`, `true`},
	{`{"a": 1, "b": body.x}`, `{"a":1,"b":null}`}, {`{"a": body.list}.a[0]`, `1`}, {`{lower("K"): 1}["k"]`, `1`}, {`r"\d" + '''"'''`, `"\\d\""`},
	{`[][0]`, `null`}, {`{}`, `{}`}, {`[1, "a", null, true]`, `[1,"a",null,true]`}, {`null`, `null`}, {`"x"`, `"x"`},
	// The list macros.
	{`body.rows.map(r, r.x)`, `[1,2,null]`}, {`body.rows.map(r, r.x > 1, r.tag)`, `[["b","c"]]`}, {`body.rows.filter(r, r.x < 2)`, `[{"x":1,"tag":["a"]}]`},
	{`body.rows.all(r, r.x > 0)`, `false`}, {`body.list.all(n, n > 0)`, `true`}, {`body.list.exists(n, n == 3)`, `true`}, {`[].all(n, n > 0)`, `true`},
	{`[].exists(n, n > 0)`, `false`}, {`body.x.all(n, n > 0)`, `false`}, {`body.x.exists(n, n == null)`, `false`}, {`body.x.map(n, n)`, `null`},
	{`body.nil.filter(n, n > 0)`, `null`}, {`body.x.map(n, n.y).flatten()`, `null`}, {`body.map.map(k, k)`, `["all","size"]`},
	{`body.map.filter(k, body.map[k] > 1)`, `["size"]`}, {`body.list.map(a, body.list.map(b, a * b))`, `[[1,2,3],[2,4,6],[3,6,9]]`},
	{`body.list.map(body, body + 1)`, `[2,3,4]`}, {`body.rows.map(r, r.tag.map(t, t + string(r.x))).flatten()`, `["a1","b2","c2"]`},
	{`body.list.map(all, all)`, `[1,2,3]`}, {`[[1], [2]].map(r, r[0])`, `[1,2]`}, {`body.rows.filter(r, r.tag[0] == "b").map(r, r.x)`, `[2]`},
	// first, max, join.
	{`first(body.x, body.nil, body.empty, body.none, body.void, body.zero)`, `0`}, {`first(body.x, body.no)`, `false`}, {`first(body.x, body.empty)`, `""`},
	{`first(body.x, null)`, `null`}, {`first(body.x)`, `null`}, {`first(headers, 1) == headers`, `true`}, {`first("", "b", "c")`, `"b"`},
	{`max(1, 2)`, `2`}, {`max(body.x, -3)`, `-3`}, {`max(body.x, body.nil)`, `null`}, {`max(body.neg, body.one, 3)`, `3`}, {`max(5, null)`, `5`},
	{`join(["a", body.x, 1, true, 2.50], ".")`, `"a.1.true.2.50"`}, {`join([body.x], ".")`, `""`}, {`join([], ",")`, `""`}, {`["a", "b"].join()`, `"ab"`},
	{`join([headers["X-Name"], body.text], ".")`, `"value.Paid"`}, {`["a", null, "b"].join("-")`, `"a-b"`}, {`join(["", ""], ",")`, `","`},
	// Texts, hashes, bodies inside bodies.
	{`lower("ÄB")`, `"äb"`}, {`lower(12)`, `"12"`}, {`sha256("")`, `"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`},
	{`crc32("123456789")`, `"3421780262"`}, {`sha256(body.id) == sha256("7205759403792793601")`, `true`}, {`parseJSON(body.json).k[1]`, `2.50`},
	{`parseJSON("null")`, `null`}, {`parseJSON(" [1] ")[0]`, `1`}, {`fromBase64("aGk=")`, `"hi"`}, {`fromBase64("aGk")`, `"hi"`}, {`fromBase64(body.b64)`, `"hi?"`},
	{`fromBase64("")`, `""`}, {`parseJSON(fromBase64("eyJhIjoxfQ==")).a`, `1`}, {`sha256(fromBase64("/w=="))`, `"a8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89"`},
	{`same("a", "a")`, `true`}, {`same("a", "b")`, `false`}, {`same("a", "ab")`, `false`}, {`same("", "")`, `false`}, {`same(12, "12")`, `true`},
	// Money and time.
	{`minor("49.90", "BRL")`, `4990`}, {`minor(body.n, "brl")`, `4990`}, {`minor("49.9000", "BRL")`, `4990`}, {`minor("49", "JPY")`, `49`},
	{`minor("49.00", "JPY")`, `49`}, {`minor("1.234", "KWD")`, `1234`}, {`minor(-1, "USD")`, `-100`}, {`minor("-0.01", "usd")`, `-1`},
	{`minor(body.e, "USD")`, `100000`}, {`minor("007.5", "EUR")`, `750`}, {`minor(0, "USD") == 0`, `true`},
	{`time(1767225660)`, `"2026-01-01T00:01:00Z"`}, {`time(1767225660123)`, `"2026-01-01T00:01:00.123Z"`}, {`time(1767225660123456)`, `"2026-01-01T00:01:00.123456Z"`},
	{`time("1767225660")`, `"2026-01-01T00:01:00Z"`}, {`time("1355517523.000005")`, `"2012-12-14T20:38:43.000005Z"`}, {`time(-1)`, `"1969-12-31T23:59:59Z"`},
	{`time("2026-01-01T00:00:00-03:00")`, `"2026-01-01T03:00:00Z"`}, {`time("2026-01-01t00:00:00z")`, `"2026-01-01T00:00:00Z"`}, {`time(time(body.at))`, `"2026-01-02T03:04:05.678Z"`},
	{`time(1.7e9)`, `"2023-11-14T22:13:20Z"`}, {`time(9224318015)`, `"1970-04-17T18:18:38.015Z"`}, {`time(0)`, `"1970-01-01T00:00:00Z"`},
	{`time("2026-01-02 15:04", "2006-01-02 15:04", "America/Sao_Paulo")`, `"2026-01-02T18:04:00Z"`},
	{`time("2026-01-01T00:00:00.000Z", "2006-01-02 15:04", "America/Sao_Paulo")`, `"2026-01-01T00:00:00Z"`},
	{`time("2026-01-02 15:04 +0100", "2006-01-02 15:04 -0700", "America/Sao_Paulo")`, `"2026-01-02T14:04:00Z"`},
	{`time(20260102, "20060102", "UTC")`, `"2026-01-02T00:00:00Z"`}, {`time(1767225660, "2006-01-02", "UTC")`, `"2026-01-01T00:01:00Z"`},
	{`time(body.x, "2006", "UTC")`, `null`}, {`time("2026", body.x, "UTC")`, `null`}, {`time(time(0), "2006", "UTC")`, `"1970-01-01T00:00:00Z"`},
	{`time("2026-03-01 10:00 BRT", "2006-01-02 15:04 MST", "UTC") == null || true`, `true`}, {`time("2026-03-01", "2006" + "-01-02", "UTC")`, `"2026-03-01T00:00:00Z"`},
}

const general = `{
	"id": 7205759403792793601, "n": 49.90, "one": 1.0, "e": 1e3, "huge": 1e400, "neg": -5, "zero": 0, "text": "Paid", "empty": "",
	"nil": null, "yes": true, "no": false, "list": [1, 2, 3], "none": [], "object": {"a": {"b": [0, {"c": "deep"}]}}, "void": {},
	"rows": [{"x": 1, "tag": ["a"]}, {"x": 2, "tag": ["b", "c"]}, {}], "at": "2026-01-02T03:04:05.678Z", "map": {"all": 1, "size": 2},
	"in": "keyword", "a-b": "dash", "json": "{\"k\": [1, 2.50]}", "b64": "aGk_", "ünï": "ü"
}`

// TestLanguage has the sentences of the catalogue language's chapter on expressions, one after the other.
func TestLanguage(t *testing.T) {
	in := inputOf(t, general)
	for _, test := range language {
		p, err := expr.Compile(test.src, names)
		if err != nil {
			t.Errorf("compile %s: %v", test.src, err)
			continue
		}
		v, err := p.Eval(in)
		if err != nil {
			t.Errorf("%s: %v", test.src, err)
		} else if got := js(v); got != test.want {
			t.Errorf("%s is %s, want %s", test.src, got, test.want)
		}
	}
}

// TestExtensions has the examples of CEL's string and list extensions.
func TestExtensions(t *testing.T) {
	in := inputOf(t, general)
	for _, test := range []struct{ src, want string }{
		{`"hello".charAt(4)`, `"o"`}, {`"héllo".charAt(1)`, `"é"`}, {`"hello".charAt(5)`, `""`},
		{`"hello mellow".indexOf("")`, `0`}, {`"hello mellow".indexOf("ello")`, `1`}, {`"hello mellow".indexOf("jello")`, `-1`},
		{`"hello mellow".indexOf("", 2)`, `2`}, {`"hello mellow".indexOf("ello", 2)`, `7`}, {`"hello mellow".indexOf("ello", 20)`, `-1`},
		{`"hello mellow".lastIndexOf("")`, `12`}, {`"hello mellow".lastIndexOf("ello")`, `7`}, {`"hello mellow".lastIndexOf("jello")`, `-1`},
		{`"hello mellow".lastIndexOf("ello", 6)`, `1`}, {`"hello mellow".lastIndexOf("ello", 20)`, `-1`},
		{`"TacoCÆt Xii".lowerAscii()`, `"tacocÆt xii"`}, {`"TacoCÆt Xii".upperAscii()`, `"TACOCÆT XII"`},
		{`"hello hello".replace("he", "we")`, `"wello wello"`}, {`"hello hello".replace("he", "we", 1)`, `"wello hello"`},
		{`"hello hello".replace("he", "we", 0)`, `"hello hello"`}, {`"hello".replace("", "_")`, `"_h_e_l_l_o_"`},
		{`"hello hello".split(" ")`, `["hello","hello"]`}, {`"a b c".split(" ", 0)`, `[]`}, {`"a b c".split(" ", 1)`, `["a b c"]`},
		{`"a b c".split(" ", 2)`, `["a","b c"]`}, {`"a b c".split(" ", -1)`, `["a","b","c"]`}, {`"tacocat".substring(4)`, `"cat"`},
		{`"tacocat".substring(0, 4)`, `"taco"`}, {`"tacocat".substring(7)`, `""`}, {`"  \ttrim\n    ".trim()`, `"trim"`}, {`"gums".reverse()`, `"smug"`},
		{`[1, [2, 3], [4]].flatten()`, `[1,2,3,4]`}, {`[1, [2, [3, 4]]].flatten()`, `[1,2,[3,4]]`}, {`[1, [2, [3, [4]]]].flatten(2)`, `[1,2,3,[4]]`},
		{`[1, null, [2, null]].flatten()`, `[1,2]`}, {`[[1]].flatten(0)`, `[[1]]`}, {`[1, 2, 3, 4].slice(1, 3)`, `[2,3]`}, {`[1, 2].slice(0, 0)`, `[]`},
		{`[3, 2, 1].sort()`, `[1,2,3]`}, {`["b", null, "c", "a"].sort()`, `[null,"a","b","c"]`}, {`[1, 1.0, 2, "1", 2].distinct()`, `[1,2,"1"]`},
		{`[5, 3, 1].reverse()`, `[1,3,5]`}, {`[1, 2].hasAny([3, 2])`, `true`}, {`[1].hasAny([])`, `false`}, {`[1, 2, 3].hasAll([2, 3])`, `true`},
		{`[1].hasAll([])`, `true`}, {`[1, 1].hasOnly([1, 2])`, `true`}, {`[1, 4].hasOnly([1])`, `false`}, {`body.x.hasAny([1])`, `false`},
		{`body.x.reverse()`, `null`}, {`body.x.sort()`, `null`}, {`[1].hasAll(body.x)`, `false`},
	} {
		v, err := compile(t, test.src).Eval(in)
		if err != nil {
			t.Errorf("%s: %v", test.src, err)
		} else if got := js(v); got != test.want {
			t.Errorf("%s is %s, want %s", test.src, got, test.want)
		}
	}
}

// evalErrors holds expressions that fail over general.
var evalErrors = []struct {
	src    string
	offset int
	want   string
}{
	{`body.text + 1`, 10, "+ does not take a text and a whole number; int(x) reads a whole number from a text, string(x) gives the text of a number"},
	{`1 + body.n`, 2, "there is arithmetic on whole numbers of 64 bits only; minor(x, currency) turns a decimal into minor units"},
	{`body.huge * 2`, 10, "there is arithmetic on whole numbers of 64 bits only; minor(x, currency) turns a decimal into minor units"},
	{`body.id * 2`, 8, "the result does not fit 64 bits"}, {`9223372036854775807 + body.one`, 20, "the result does not fit 64 bits"},
	{`-9223372036854775808 - body.one`, 21, "the result does not fit 64 bits"}, {`-(-9223372036854775807 - body.one)`, 0, "the result does not fit 64 bits"},
	{`(-9223372036854775807 - 1) / -1`, 27, "the result does not fit 64 bits"}, {`-1 * (-9223372036854775807 - 1)`, 3, "the result does not fit 64 bits"},
	{`1 / body.zero`, 2, "there is no division by 0"}, {`1 % body.zero`, 2, "there is no division by 0"},
	{`body.text < 1`, 10, "< does not take a text and a whole number; int(x) reads a whole number from a text, string(x) gives the text of a number"},
	{`body.list < body.list`, 10, "< does not take a list and a list"}, {`body.yes > body.at`, 9, "> does not take a truth value and a text"},
	{`1 in body.text`, 2, "in looks into a list or an object, not a text; x.contains(y) looks into a text"},
	{`1 in body.object`, 2, "a text is needed, not a whole number; string(x) gives its text"}, {`body.list[true == true ? body.n : 0]`, 9,
		"a whole number is needed, not a decimal number; minor(x, currency) turns a decimal into minor units"},
	{`-body.text`, 0, "a whole number is needed, not a text; int(x) reads one from a text"},
	{`body.text.map(c, c)`, 13, "map goes through a list or an object, not a text"}, {`body.n.all(c, c == 1)`, 10, "all goes through a list or an object, not a decimal number"},
	{`body.id.startsWith("7")`, 18, "a text is needed, not a whole number; string(x) gives its text"}, {`body.list.contains(1 == 1 ? "a" : "b")`, 18, "a text is needed, not a list"},
	{`max(1, body.text)`, 3, "a whole number is needed, not a text; int(x) reads one from a text"},
	{`max(1, body.n)`, 3, "a whole number is needed, not a decimal number; minor(x, currency) turns a decimal into minor units"},
	{`int(body.text)`, 3, "the text is not a whole number of 64 bits; minor(x, currency) reads a decimal from a text"},
	{`int("99999999999999999999")`, 3, "the text is not a whole number of 64 bits; minor(x, currency) reads a decimal from a text"},
	{`int(body.huge)`, 3, "the number does not fit 64 bits"}, {`int(body.list)`, 3, "int(x) does not take a list"}, {`string(body.void)`, 6, "string(x) does not take an object"},
	{`size(body.id)`, 4, "size(x) does not take a whole number"}, {`lower(body.list)`, 5, "a text is needed, not a list"},
	{`join([body.list], ",")`, 4, "join(list, separator) joins texts; the list holds a list"}, {`join(body.text, ",")`, 4, "a list is needed, not a text"},
	{`join([], body.id)`, 4, "a text is needed, not a whole number; string(x) gives its text"}, {`same(body.list, "a")`, 4, "same(a, b) compares texts, not a list and a text"},
	{`parseJSON(body.text)`, 9, "the text is not JSON: a value should stand here, at byte 0"}, {`parseJSON(body.list)`, 9, "a text is needed, not a list"},
	{`parseJSON('{"a":1,"a":2}')`, 9, "the JSON in the text has doubled members, which readers take differently"}, {`fromBase64("?")`, 10, "the text is not base64"},
	{`minor("49.905", "BRL")`, 5, "the amount has more decimals than its currency"}, {`minor("1.5", "JPY")`, 5, "the amount has more decimals than its currency"},
	{`minor("1,50", "BRL")`, 5, `the text is not a decimal number; it is written like 49.90; x.replace(",", ".") makes one of 49,90`},
	{`minor(body.huge, "BRL")`, 5, "the amount does not fit 64 bits"}, {`minor(body.list, "BRL")`, 5, "minor(x, currency) takes a number or its text, not a list"},
	{`minor(1, body.text)`, 5, "there is no such currency; currencies are written by their ISO 4217 code, like BRL"}, {`minor(1, body.empty)`, 5,
		"there is no such currency; currencies are written by their ISO 4217 code, like BRL"},
	{`time(body.text)`, 4, "the text is not an instant; it reads RFC 3339 and Unix time; time(x, layout, zone) reads other texts"},
	{`time(body.list)`, 4, "an instant cannot be read from a list"}, {`time("")`, 4, "the text is not an instant; it reads RFC 3339 and Unix time; time(x, layout, zone) reads other texts"},
	{`time(99999999999999999)`, 4, "the Unix time is outside the years 1678 to 2261, in seconds, milliseconds and microseconds"},
	{`time("1.0000000001")`, 4, "the Unix time is finer than a nanosecond"}, {`time("1600-01-01T00:00:00Z")`, 4, "the instant is outside the years 1678 to 2261"},
	{`time("2262-01-01T00:00:00Z")`, 4, "the instant is outside the years 1678 to 2261"}, {`time("1", "2006", "UTC")`, 4, "the text does not fit the layout"},
	{`time("0001", "2006", "UTC")`, 4, "the instant is outside the years 1678 to 2261"},
	{`time("2026-03-01 BRT", "2006-01-02 MST", "UTC")`, 4, "the text has a zone by a name that is not known there; an offset like -03:00 is certain"},
	{`time("1", body.text, "UTC")`, 4, "the layout has no part of a time; a Go layout writes this moment: 2006-01-02 15:04:05.999"},
	{`time("1", "2006", body.text)`, 4, "there is no such time zone; zones are written like America/Sao_Paulo or UTC"}, {`time("1", body.list, "UTC")`, 4, "a text is needed, not a list"},
	{`"a".matches("(" + body.text)`, 11, "the pattern of matches is not a regular expression; the syntax is RE2's, without look-around and back references"},
	{`"a".charAt(2)`, 10, "the index is outside the text"}, {`"a".charAt(-1)`, 10, "the index is outside the text"}, {`"a".indexOf("a", -1)`, 11, "the index is less than 0"},
	{`"abc".substring(2, 1)`, 15, "the indices are outside what there is"}, {`"abc".substring(4)`, 15, "the indices are outside what there is"},
	{`[1].slice(0, 2)`, 9, "the indices are outside what there is"}, {`[1].flatten(-1)`, 11, "the depth is less than 0"},
	{`[1, "a"].sort()`, 13, "the list to sort holds both a text and a whole number"}, {`[[1]].sort()`, 10, "lists and objects have no order"},
	{`{"a": 1, lower("A"): 2}`, 0, "a name stands twice in the object"},
	{`{body.list[0] == 1 ? body.id : body.id: 1}`, 0, "a text is needed, not a whole number; string(x) gives its text"},
}

// TestEvalErrors has what is wrong only once an event is there. No message holds anything of the values.
func TestEvalErrors(t *testing.T) {
	in := inputOf(t, general)
	for _, test := range evalErrors {
		v, err := compile(t, test.src).Eval(in)
		var e *expr.Error
		if !errors.As(err, &e) {
			t.Errorf("%s is %s, %v; want an Error", test.src, js(v), err)
			continue
		}
		if err.Error() != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.src, err, test.want)
		}
		if e.Offset < 0 || e.Offset >= len(test.src) {
			t.Errorf("%s: offset %d", test.src, e.Offset)
		}
	}
}

func TestTrue(t *testing.T) {
	in := inputOf(t, general)
	for src, want := range map[string]bool{
		`body.yes == true`: true, `body.x == true`: false, `!(body.x == true)`: true, `body.yes == true ? body.no == true : body.x < 1`: false,
		`body.yes == true ? null : true`: false, `true`: true, `body.list.exists(n, n == 2) && type.startsWith("order.")`: true,
		`params.user_id == null || headers["X-Name"] == params.user_id`: true, `!type.startsWith("subscription_")`: true,
		`body.text + 1 == 2 || true`: true, `true || body.text + 1 == 2`: true, `body.text + 1 == 2 && false`: false,
		`body.list.exists(n, body.text + n == "" || n == 3)`: true, `["a", 1].exists(n, n > 0)`: true, `["a", -1].all(n, n > 0)`: false,
	} {
		p, err := expr.CompileCondition(src, names)
		if err != nil {
			t.Errorf("compile %s: %v", src, err)
			continue
		}
		if got, err := p.True(in); got != want || err != nil {
			t.Errorf("%s is %v, %v; want %v", src, got, err, want)
		}
	}
	for _, src := range []string{`body.text + 1 == 2 || false`, `false || body.text + 1 == 2`, `true && body.text + 1 == 2`, `[body.text].all(n, n > 0)`,
		`[1, "a"].all(n, n > 0)`, `["a", 1].exists(n, n > 1)`, `[body.text].filter(n, n > 1) == null`} {
		p, err := expr.CompileCondition(src, names)
		if err != nil {
			t.Errorf("compile %s: %v", src, err)
			continue
		}
		if got, err := p.True(in); err == nil {
			t.Errorf("%s is %v, want an error", src, got)
		}
	}
	if got, err := compile(t, `body.text`).True(in); err == nil {
		t.Errorf("a text is the truth value %v", got)
	}
}

func TestSign(t *testing.T) {
	p, err := expr.Compile(`sign(body.text)`, names.WithSign())
	if err != nil {
		t.Fatal(err)
	}
	in := inputOf(t, general)
	if v, err := p.Eval(signer{input: in}); err != nil || js(v) != `"signed:Paid"` {
		t.Errorf("sign gives %s, %v", js(v), err)
	}
	if _, err := p.Eval(in); err == nil {
		t.Error("an input that cannot sign signs")
	}
	broken := errors.New("no key")
	if _, err := p.Eval(signer{in, broken}); !errors.Is(err, broken) {
		t.Errorf("a failing signer gives %v", err)
	}
	null, err := expr.Compile(`sign(body.x)`, names.WithSign())
	if err != nil {
		t.Fatal(err)
	}
	if v, err := null.Eval(signer{in, broken}); err != nil || v.Kind() != tree.Null {
		t.Errorf("sign of null gives %s, %v", js(v), err)
	}
	if _, err := expr.Compile(`sign(body.text)`, names.WithSign().With("o")); err != nil {
		t.Errorf("With forgets WithSign: %v", err)
	}
}

func TestProgram(t *testing.T) {
	for src, want := range map[string][]string{
		`body`: {"body"}, `body.a.b`: {"body", "a", "b"}, `body.a[0]["x y"].c`: {"body", "a", "0", "x y", "c"}, `headers["X"]`: {"headers", "X"},
		` body . a `: {"body", "a"}, `(body.a).b`: {"body", "a", "b"}, `body.a == 1`: nil, `body.list.map(x, x)`: nil, `null`: nil, `first(body.a)`: nil,
		`body[body.a]`: nil, `body.list[-1]`: nil, `body.a.size()`: nil,
	} {
		parts, plain := compile(t, src).Path()
		if plain != (want != nil) || !cmp.Equal(parts, want) {
			t.Errorf("the path of %s is %q, %v; want %q", src, parts, plain, want)
		}
	}
	for src, want := range map[string]string{
		`null`: `null`, `"abandoned"`: `"abandoned"`, `-5`: `-5`, `49.90`: `49.90`, `true`: `true`, `body`: "", `1 + 1`: "", `[1]`: "",
	} {
		p := compile(t, src)
		v, ok := p.Literal()
		if ok != (want != "") || ok && js(v) != want {
			t.Errorf("the literal of %s is %s, %v; want %s", src, js(v), ok, want)
		}
		if p.IsNullLiteral() != (src == `null`) || p.Source() != src {
			t.Errorf("%s: null literal %v, source %s", src, p.IsNullLiteral(), p.Source())
		}
	}
	in := inputOf(t, general)
	for src, want := range map[string]tree.Kind{
		`body.x`: tree.Missing, `body.nil`: tree.Null, `first(body.x)`: tree.Null, `null`: tree.Null, `body.list[7]`: tree.Missing,
	} {
		if v, err := compile(t, src).Eval(in); err != nil || v.Kind() != want {
			t.Errorf("%s is kind %d, %v; want %d", src, v.Kind(), err, want)
		}
	}
}

func TestReads(t *testing.T) {
	p := compile(t, `same(params.secret, body["t"]) ? body.list.map(x, x.y + item.z[0]) : {"k": [headers[type]]}`)
	want := []expr.Read{
		{Parts: []string{"params", "secret"}, Within: "same", Offset: 5}, {Parts: []string{"body", "t"}, Within: "same", Offset: 20},
		{Parts: []string{"body", "list"}, Within: "map", Offset: 33}, {Parts: []string{"item", "z", "0"}, Offset: 56},
		{Parts: []string{"headers"}, Offset: 76}, {Parts: []string{"type"}, Offset: 84},
	}
	if diff := cmp.Diff(want, p.Reads()); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
	for name, want := range map[string]bool{"params": true, "type": true, "x": false, "amount": false, "secret": false} {
		if p.Refers(name) != want {
			t.Errorf("Refers(%s) is %v", name, !want)
		}
	}
	p.Reads()[0].Parts[0] = "changed"
	parts, _ := compile(t, `body.a`).Path()
	parts[0] = "changed"
	if !p.Refers("params") {
		t.Error("a program can be changed through its reads")
	}
}

func TestNames(t *testing.T) {
	base := expr.NewNames("a")
	more := base.With("b")
	if !base.Has("a") || base.Has("b") || !more.Has("a") || !more.Has("b") || (expr.Names{}).Has("") {
		t.Error("With changed its receiver or lost a name")
	}
	for s, want := range map[string]bool{
		"o": true, "_x1": true, "sale": true, "size": true, "map": true, "": false, "1a": false, "a-b": false, "in": false, "for": false, "null": false,
		"é": false, "a.b": false, "a\n": false,
	} {
		if expr.IsName(s) != want {
			t.Errorf("IsName(%q) is %v", s, !want)
		}
		if _, err := expr.Compile(s, expr.NewNames(s)); (err == nil) != want && s != "null" { // which is a literal
			t.Errorf("a name %q: %v", s, err)
		}
	}
}

func TestInstant(t *testing.T) {
	for text, want := range map[string]string{`null`: "", `1767225660`: "2026-01-01T00:01:00Z", `"2026-01-01T00:00:00+01:00"`: "2025-12-31T23:00:00Z"} {
		at, ok, err := expr.Instant(parse(t, text))
		if err != nil || ok != (want != "") || ok && at.Format(time.RFC3339) != want {
			t.Errorf("%s is %v, %v, %v; want %q", text, at, ok, err, want)
		}
	}
	if _, ok, err := expr.Instant(tree.Value{}); ok || err != nil {
		t.Errorf("what is missing is an instant: %v, %v", ok, err)
	}
	if _, ok, err := expr.Instant(tree.BoolOf(true)); ok || err == nil {
		t.Errorf("a truth value is an instant: %v", ok)
	}
}
