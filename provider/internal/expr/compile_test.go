package expr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/provider/internal/expr"
)

// fault is an error as a test states it.
type fault struct {
	Offset int
	Text   string
}

// faults takes the errors of one expression apart.
func faults(t *testing.T, err error) []fault {
	t.Helper()
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	}
	var all []fault
	for _, one := range list {
		e := &expr.Error{}
		ok := errors.As(one, &e)
		if !ok {
			t.Fatalf("%v is no *Error", one)
		}
		all = append(all, fault{e.Offset, e.Error()})
	}
	return all
}

// path begins the hint for most names that are not there.
const path = "a member of the body is written body."

// compileErrors holds expressions that are refused.
var compileErrors = map[string][]fault{
	// Names.
	`id`:                   {{0, "undeclared reference to 'id'; " + path + "id"}},
	`boddy.id`:             {{0, `undeclared reference to 'boddy'; did you mean "body"?`}},
	`header["X"]`:          {{0, `undeclared reference to 'header'; did you mean "headers"?`}},
	`"é" + id + other`:     {{7, "undeclared reference to 'id'; " + path + "id"}, {12, "undeclared reference to 'other'; " + path + "other"}},
	`body.a-b`:             {{7, `undeclared reference to 'b'; a member whose name has a "-" in it is written body["a-b"]`}},
	`body.a - b`:           {{9, "undeclared reference to 'b'; " + path + "b"}},
	`.body.a`:              {{0, `undeclared reference to '.body'; did you mean "body"?`}},
	`lower == 1`:           {{0, "undeclared reference to 'lower'; the function is called lower(x)"}},
	`body.l.map(row, rwo)`: {{16, `undeclared reference to 'rwo'; did you mean "row"?`}},
	`body.l.map(x, x) + x`: {{19, "undeclared reference to 'x'; " + path + "x"}},
	// Functions.
	`has(body.a)`:                     {{0, "there is no has(); a missing member is null; compare: body.a != null"}},
	`timestamp(body.a)`:               {{0, "there is no timestamp(); time(x) gives an instant"}},
	`dyn(body.a)`:                     {{0, "there is no dyn()"}},
	`parseXML(body.x)`:                {{0, "parseXML is not there yet: it waits for the catalogue"}},
	`sortedForm(item)`:                {{0, "sortedForm is not there yet: it waits for the catalogue"}},
	`"%s".format([1])`:                {{5, "format is not there yet: it waits for the catalogue"}},
	`body.l.sortBy(x, x.a)`:           {{7, "sortBy is not there yet: it waits for the catalogue"}},
	`lowr(body.x)`:                    {{0, "there is no function 'lowr'; did you mean lower(x)?"}},
	`body.x.startswith("a")`:          {{7, "there is no function 'startswith'; did you mean x.startsWith(text)?"}},
	`body.l.fliter(x, x.a == 1)`:      {{7, "there is no function 'fliter'; did you mean list.filter(x, condition)?"}},
	`body.x.nothing()`:                {{7, "there is no function 'nothing'"}},
	`body.x.lower()`:                  {{7, "lower is not written so; it is written lower(x)"}},
	`startsWith(body.x, "a")`:         {{0, "startsWith is not written so; it is written x.startsWith(text)"}},
	`map(body.l, x)`:                  {{0, "map is not written so; it is written list.map(x, expression) or list.map(x, condition, expression)"}},
	`body.l.all(x)`:                   {{7, "all is not written so; it is written list.all(x, condition)"}},
	`time(body.a, "2006")`:            {{0, "time does not take 2 values; it is written time(x) or time(x, layout, zone)"}},
	`first()`:                         {{0, "first does not take 0 values; it is written first(a, b, …) of at most 16 values"}},
	`minor (1)`:                       {{0, "minor does not take 1 value; it is written minor(x, currency)"}},
	`body.x.startsWith("a", "b")`:     {{7, "startsWith does not take 2 values; it is written x.startsWith(text)"}},
	`sign(body.x)`:                    {{0, "sign cannot be used here; it is for challenge, where the source has a secret to sign with"}},
	`minor(1, "XXQ")`:                 {{0, "there is no such currency; currencies are written by their ISO 4217 code, like BRL"}},
	`time("1", "YYYY-MM-DD", "UTC")`:  {{0, "the layout has no part of a time; a Go layout writes this moment: 2006-01-02 15:04:05.999"}},
	`time("1", "2006", "Mars/North")`: {{0, "there is no such time zone; zones are written like America/Sao_Paulo or UTC"}},
	`time("1", "2006", "Local")`:      {{0, "there is no such time zone; zones are written like America/Sao_Paulo or UTC"}},
	`body.x.matches("(?=a)")`:         {{7, "the pattern of matches is not a regular expression; the syntax is RE2's, without look-around and back references"}},
	// Types.
	`1 + "a"`:                {{2, "+ does not take a whole number and a text"}},
	`1.5 + 1`:                {{4, "+ does not take a decimal number and a whole number; minor(x, currency) turns a decimal into minor units"}},
	`time(body.a) + 1`:       {{13, "+ does not take an instant and a whole number"}},
	`size(body.l) == "3"`:    {{13, "== does not take a whole number and a text"}},
	`[1] != {"a": 1}`:        {{4, "!= does not take a list and an object"}},
	`lower(body.x) < 1`:      {{14, "< does not take a text and a whole number"}},
	`-"a"`:                   {{0, "- does not take a text"}},
	`[1]["a"]`:               {{3, "[ ] does not take a list and a text"}},
	`1 in "a"`:               {{2, "in does not take a whole number and a text"}},
	`5.startsWith("a")`:      {{2, "startsWith does not take a whole number and a text; it is written x.startsWith(text)"}},
	`size(body.l).map(x, x)`: {{0, "a list or an object is needed, not a whole number"}},
	`null.map(x, x)`:         {{0, "a list or an object is needed, not null"}},
	`size(body.l).x`:         {{12, "a whole number has no members"}},
	// Conditions.
	`body.paid ? 1 : 2`:               {{0, "a truth value is needed; compare: body.paid == true"}},
	`body.a["b"][0].c && body.d == 1`: {{0, `a truth value is needed; compare: body.a["b"][0].c == true`}},
	`!body.paid`:                      {{1, "a truth value is needed; compare: body.paid == true"}},
	`true || first(body.a, true)`:     {{8, "a truth value is needed; compare: x == true"}},
	`body.l.filter(x, x.paid)`:        {{17, "a truth value is needed; compare: x.paid == true"}},
	`body.l.all(x, x)`:                {{14, "a truth value is needed; compare: x == true"}},
	`body.l.map(x, x.a, 1)`:           {{14, "a truth value is needed; compare: x.a == true"}},
	`body.l.exists(x, size(x))`:       {{17, "a truth value is needed, not a whole number"}},
	`body.l.filter(x, size(x))`:       {{17, "a truth value is needed, not a whole number"}},
	`1 && true`:                       {{0, "a truth value is needed, not a whole number"}},
	`"a" ? 1 : 2`:                     {{0, "a truth value is needed, not a text"}},
	`!null`:                           {{1, "a truth value is needed, not null"}},
	`!(body.a == 1 ? body.b : false)`: {{16, "a truth value is needed; compare: body.b == true"}},
	`(true ? 1 : true) && true`:       {{8, "a truth value is needed, not a whole number; compare it with something"}},
	// Literals and syntax.
	`b"x"`:                 {{0, `there are no bytes apart from texts; write "…" without the b`}},
	`1u`:                   {{0, "there are no unsigned numbers; leave the u out"}},
	`{1: 2}`:               {{1, `the names of an object's members are texts; write {"name": value}`}},
	`Foo{a: 1}`:            {{3, `an expression cannot make messages; an object is written {"name": value}`}},
	``:                     {{0, "the expression is empty; a member of the body is written body.id"}},
	" \n":                  {{0, "the expression is empty; a member of the body is written body.id"}},
	"body.\xff":            {{0, "the expression is not UTF-8"}},
	`body.a +`:             {{8, "the expression ends too early"}},
	"body.a ==\n ":         {{11, "the expression ends too early"}},
	`body.in`:              {{5, `expected identifier after '.'; a member called in is written body["in"]`}},
	`body.a. true`:         {{8, `expected identifier after '.'; a member called true is written body["true"]`}},
	`body.ü`:               {{5, "unexpected character"}},
	`body.a = 1`:           {{7, "unexpected token after expression; equality is written =="}},
	`body.a == 1 and true`: {{12, "unexpected token after expression; and is written &&, or is written ||, not is written !"}},
	`for`:                  {{0, "reserved identifier: for; CEL keeps this word for itself; as a member it is written body.for"}},
	`99999999999999999999`: {{0, "invalid int literal; whole numbers have 64 bits; a longer one is written as a text"}},
	`"a`:                   {{0, "unterminated string literal"}},
	`body.a ? 1`:           {{10, "expected ':' in conditional expression"}},
	`body.l.map(x.y, 1)`:   {{12, "argument is not an identifier"}},
}

func TestCompileErrors(t *testing.T) {
	for src, want := range compileErrors {
		p, err := expr.Compile(src, names)
		if err == nil {
			t.Errorf("compiled %s to %v", src, p)
		} else if diff := cmp.Diff(want, faults(t, err)); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", src, diff)
		}
	}
}

func TestCompileConditionErrors(t *testing.T) {
	for src, want := range map[string]string{
		`body.paid`: "a truth value is needed; compare: body.paid == true", `size(body.l)`: "a truth value is needed, not a whole number; compare it with something",
		`null`: "a truth value is needed, not null; compare it with something", `(body.a).b`: "a truth value is needed; compare: body.a.b == true",
		`body.a == 1 ? body.b : true`: "a truth value is needed; compare: body.b == true", `first(true)`: "a truth value is needed; compare: x == true",
		`body.l[size(body.l) - 1]`: "a truth value is needed; compare: x == true",
	} {
		_, err := expr.CompileCondition(src, names)
		if err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", src, err, want)
		}
	}
}

func TestNameHints(t *testing.T) {
	_, err := expr.Compile(`zzz`, expr.NewNames("amount", "refunded"))
	if want := "undeclared reference to 'zzz'; the names here are amount, refunded"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err = expr.Compile(`zzz`, expr.Names{}); err == nil || !strings.HasSuffix(err.Error(), "; no names can be used here") {
		t.Errorf("got %v", err)
	}
	many := expr.NewNames(strings.Split("aaa bbb ccc ddd eee fff ggg hhh iii jjj kkk lll mmm", " ")...)
	if _, err = expr.Compile(`z`, many); err == nil || !strings.HasSuffix(err.Error(), "kkk, lll, …") {
		t.Errorf("got %v", err)
	}
}

// TestLimits compiles what is too long or too deep, and what is only long.
func TestLimits(t *testing.T) {
	for _, src := range []string{
		strings.Repeat("a", 30_000), strings.Repeat("body.a + ", 300) + "1", strings.Repeat("[", 5000), "body" + strings.Repeat(".a", 300),
		strings.Repeat("(", 400) + "1" + strings.Repeat(")", 400), strings.Repeat("body.l.map(x,", 300) + "x" + strings.Repeat(")", 300),
		"first(" + strings.Repeat("1,", 16) + "1)", "[" + strings.Repeat("1,", 9_999) + "1]",
	} {
		if _, err := expr.Compile(src, names); err == nil {
			t.Errorf("%.40s… of %d bytes is compiled", src, len(src))
		} else {
			faults(t, err)
		}
	}
	for src, want := range map[string]string{
		strings.Repeat("!", 9998) + "true": `true`, strings.Repeat("-", 9999) + "body.a": `-1`, strings.Repeat("body.a + ", 200) + "1": `201`,
		"body" + strings.Repeat(".b", 200): `null`, strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200): `1`,
		"first(" + strings.Repeat("null,", 15) + "1)": `1`, "size([" + strings.Repeat("1,", 4999) + "1])": `5000`,
		strings.Repeat("[1].map(x,", 20) + "x" + strings.Repeat(")", 20): strings.Repeat("[", 20) + "1" + strings.Repeat("]", 20),
	} {
		v, err := compile(t, src).Eval(inputOf(t, `{"a": 1}`))
		if err != nil || js(v) != want {
			t.Errorf("%.40s… of %d bytes gives %s, %v; want %s", src, len(src), js(v), err, want)
		}
	}
}

// TestCatalogue compiles every kind of expression that docs/language.md and the catalogue use.
func TestCatalogue(t *testing.T) {
	all := expr.NewNames("body", "item", "raw", "headers", "query", "method", "url", "path", "type", "digest", "params", "o", "sale", "sub", "r",
		"refund_total", "refunds", "dispute", "refunded", "captured", "amount", "status", "from", "charge").WithSign()
	for _, src := range []string{
		`first(o.payment_intent, o.charge, o.id)`, `first(o.subscription, o.parent.subscription_details.subscription)`, `max(refund_total, refunds)`,
		`o.status == "succeeded" && o.captured == false ? "uncaptured" : o.status`, `max(0, o.amount_refunded - o.amount + first(o.amount_captured, o.amount))`,
		`o.status in ["failed", "canceled"] ? 0 : o.amount`, `o.active == false ? "inactive" : "active"`, `o.status == "complete" ? o.payment_status : o.status`,
		`o.status == "lost" ? "lost" : o.status in ["won", "warning_closed", "prevented"] ? "won" : "open"`, `o.items.data[0].current_period_end`,
		`first(body.webhook_event_type, join(["cart", body.status], "."))`, `time(first(body.updated_at, body.created_at), "2006-01-02 15:04", "America/Sao_Paulo")`,
		`body.order_status == "refunded" ? body.Commissions.charge_amount : null`, `int(body.Commissions.commissioned_stores[0].value)`, `lower(body.Customer.email)`,
		`first(body.data.data, null)`, `body.code == 200 ? null : body.msg`, `body.entry.map(e, e.changes).flatten()`, `join([headers["X-GitHub-Event"], body.action], ".")`,
		`query["hub.challenge"]`, `sign(body.payload.plainToken)`, `sha256(raw)`, `headers['X-Fal-Webhook-Request-Id']`, `minor("49.90", "BRL")`,
	} {
		if _, err := expr.Compile(src, all); err != nil {
			t.Errorf("%s: %v", src, err)
		}
	}
	for _, src := range []string{
		`body.paid == true`, `dispute == "lost"`, `first(refunded, 0) > 0 && first(captured, amount) != null && refunded >= first(captured, amount)`,
		`first(refunded, 0) > 0`, `o.object == "payment_intent"`, `sub != null && first(o.payment_status, o.status) == "paid"`, `body.Subscription != null`,
		`!type.startsWith("subscription_")`, `params.user_id == null || headers["X-Fal-Webhook-User-Id"] == params.user_id`, `status != from`,
		`same(query["hub.verify_token"], params.verify_token)`, `body.type == "url_verification"`, `o.object == "payment_intent" && o.metadata.order != null`,
	} {
		if _, err := expr.CompileCondition(src, all); err != nil {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func TestErrorText(t *testing.T) {
	cause := errors.New("cause")
	if e := (&expr.Error{Msg: "wrong"}); e.Error() != "wrong" || errors.Is(e, cause) {
		t.Errorf("the error is %v", e)
	}
}
