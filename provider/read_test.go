package provider_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward"
)

func digest(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

func TestEventKey(t *testing.T) {
	long := strings.Repeat("x", 1025)
	for _, c := range []struct {
		name, key, body, want string
		digest                bool
	}{
		{"text", "body.id", `{"id":"e1"}`, "e1", false},
		{"number keeps its text", "body.id", `{"id":9007199254740993}`, "9007199254740993", false},
		{"decimal keeps its text", "body.id", `{"id":1.50}`, "1.50", false},
		{"truth value", "body.id", `{"id":false}`, "false", false},
		{"list", "[body.a, body.b]", `{"a":"x:y","b":7}`, `x\:y:7`, false},
		{"list with an empty part", "[body.a, body.b]", `{"b":7}`, ":7", false},
		{"list of one", "[body.a]", `{"a":"x:y"}`, `x\:y`, false},
		{"header", `headers["x-event-ID"]`, `{}`, "h-1", false},
		{"query", `query["from"]`, `{}`, "query", false},
		{"digest", "digest", `{}`, digest(`{}`), false},
		{"missing", "body.id", `{"id":null}`, digest(`{"id":null}`), true},
		{"empty", "body.id", `{"id":""}`, digest(`{"id":""}`), true},
		{"all parts empty", "[body.a, body.b]", `{"a":"","b":null}`, digest(`{"a":"","b":null}`), true},
		{"an object", "body.id", `{"id":{}}`, digest(`{"id":{}}`), true},
		{"cannot be computed", "int(body.id)", `{"id":"x"}`, digest(`{"id":"x"}`), true},
		{"a NUL", "body.id", `{"id":"a\u0000"}`, digest(`{"id":"a\u0000"}`), true},
		{"too long", "body.id", `{"id":"` + long + `"}`, digest(`{"id":"` + long + `"}`), true},
		{"doubled", "body.id", `{"id":"a","id":"b"}`, digest(`{"id":"a","id":"b"}`), true},
		{"doubled above", "body.a.id", `{"a":{"id":1},"a":{"id":2}}`, digest(`{"a":{"id":1},"a":{"id":2}}`), true},
		{"doubled elsewhere", "body.id", `{"id":"a","x":1,"x":2}`, "a", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, "verify: {scheme: none}\nevent:\n  key: "+c.key+"\n")
			ev := one(t, p, c.body).Event
			if ev.Key != c.want || ev.DigestKey != c.digest {
				t.Errorf("key %q by digest %v, want %q, %v", ev.Key, ev.DigestKey, c.want, c.digest)
			}
			if ev.Digest != onceward.DigestOf([]byte(c.body)) {
				t.Errorf("digest %s", ev.Digest)
			}
		})
	}
	p := parse(t, "verify: {scheme: none}")
	if ev := one(t, p, `{}`).Event; ev.Key != digest(`{}`) || ev.DigestKey {
		t.Errorf("without a key: %q, %v", ev.Key, ev.DigestKey)
	}
}

const orderFile = `
verify: {scheme: none}
let:
  o: body.order
event:
  key: body.id
  type: body.type
  time: body.at
  scope: {account: body.account, mode: body.live}
facts:
  order:
    types: order.*
    kind: order
    key: o.id
    status: {of: o.status, created: [new, 1, true], paid: ok, canceled: ["no", null]}
    fields: {amount: o.amount, currency: o.currency, email: o.email}
  note:
    types: [note.*, "!note.old"]
    kind: cart
    key: body.id
`

func TestEventParts(t *testing.T) {
	p := parse(t, orderFile)
	for _, c := range []struct {
		name, body, event string
		facts             []string
	}{
		{
			"all", `{"id":"e1","type":"order.new","at":1767225600,"account":"acct/1","live":true,"order":{"id":7,"status":"new","amount":4990,"currency":"brl","email":null}}`,
			`order.new 2026-01-01T00:00:00Z acct\/1/live`,
			[]string{`order 7 created amount=4990 currency="BRL" email=null at 2026-01-01T00:00:00Z`},
		},
		{
			"milliseconds and words", `{"type":"order.x","at":"2026-01-01T00:00:00.5+02:00","live":"sandbox","order":{"id":"a","status":true}}`,
			"order.x 2025-12-31T22:00:00.5Z /sandbox", []string{"order a created at 2025-12-31T22:00:00.5Z"},
		},
		{"no time", `{"type":"order.x","order":{"id":"a","status":1}}`, "order.x - ", []string{"order a created"}},
		{"word no", `{"type":"order.x","order":{"id":"a","status":"no"}}`, "order.x - ", []string{"order a canceled"}},
		{"no status", `{"type":"order.x","order":{"id":"a","status":null}}`, "order.x - ", []string{"order a "}},
		{"unlisted", `{"type":"order.x","order":{"id":"a","status":"odd"}}`, "order.x - ", []string{`held: status: the word "odd" is not listed`}},
		{"status is a list", `{"type":"order.x","order":{"id":"a","status":[]}}`, "order.x - ", []string{"held: status: gives a list or an object where a text is needed"}},
		{"no key", `{"type":"order.x","order":{"status":"new"}}`, "order.x - ", []string{"held: key: is empty"}},
		{"unreadable time", `{"type":"order.x","at":"yesterday","order":{"id":"a"}}`, "order.x - ", []string{"held: event.time: the text is not an instant; it reads RFC 3339 and Unix time; time(x, layout, zone) reads other texts"}},
		{"unmapped", `{"type":"other"}`, "other - ", nil},
		{"excluded", `{"id":"n","type":"note.old"}`, "note.old - ", nil},
		{"included", `{"id":"n","type":"note.new"}`, "note.new - ", []string{"cart n "}},
		{"no type", `{"order":{}}`, " - ", nil},
		{"type is a list", `{"type":["order.x"],"order":{"id":"a"}}`, " - ", []string{"held: event.type gives no text"}},
		{"mode with a slash", `{"type":"order.x","live":"a/b","order":{"id":"a"}}`, "order.x - ", []string{"held: event.scope.mode: holds a slash; a mode is one word, as live"}},
		{"account is an object", `{"type":"order.x","account":{},"order":{"id":"a"}}`, "order.x - ", []string{"held: event.scope.account: gives a list or an object where a text is needed"}},
		{"doubled", `{"type":"order.x","order":{"id":"a","id":"b"}}`, "order.x - ", []string{`held: the body holds the member "order.id" twice, so readers may disagree about it`}},
		{"doubled type", `{"type":"order.x","type":"order.y","order":{"id":"a"}}`, "order.x - ", []string{`held: the body holds the member "type" twice, so readers may disagree about it`}},
		{"doubled and unmapped", `{"type":"other","x":1,"x":1}`, "other - ", nil},
		{"not JSON", `not json`, " - ", []string{"held: the body is not JSON: a value should stand here, at byte 0"}},
		{"cut off", `{"type":"order.x"`, " - ", []string{"held: the body is not JSON: the text ends where a comma or the end of the object should follow, at byte 17"}},
		{"empty", ``, " - ", nil},
		{"a NUL in the type", `{"type":"order.\u0000"}`, "order.\uFFFD - ", []string{"held: key: is empty"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := one(t, p, c.body)
			at := "-"
			if r.Event.Time.Set {
				at = r.Event.Time.Time().Format("2006-01-02T15:04:05.999Z07:00")
			}
			if got := fmt.Sprintf("%s %s %s", r.Event.Type, at, r.Event.Scope); got != c.event {
				t.Errorf("event %q, want %q", got, c.event)
			}
			if diff := cmp.Diff(c.facts, showAll(r)); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHeldFacts wants the rule on a held fact where its rule is known, and the
// entity where that could be computed.
func TestHeldFacts(t *testing.T) {
	p := parse(t, orderFile)
	f := one(t, p, `{"type":"order.x","order":{"id":"a","status":"odd"}}`).Facts[0]
	if f.Rule != "order" || f.Kind != "order" || f.Key != "a" {
		t.Errorf("rule %q, kind %q, key %q", f.Rule, f.Kind, f.Key)
	}
	f = one(t, p, `{"type":"order.x","order":{}}`).Facts[0]
	if f.Rule != "order" || f.Kind != "" || f.Key != "" {
		t.Errorf("rule %q, kind %q, key %q", f.Rule, f.Kind, f.Key)
	}
	r := one(t, p, `{"id":"e1"`)
	if f = r.Facts[0]; f.Rule != "" || !r.Event.DigestKey {
		t.Errorf("rule %q, by digest %v", f.Rule, r.Event.DigestKey)
	}
	if r := one(t, parse(t, "verify: {scheme: none}"), `no rules, so nothing could be held`); len(r.Facts) != 0 {
		t.Errorf("held without a rule: %v", showAll(r))
	}
}

func compress(t *testing.T, coding, text string) []byte {
	t.Helper()
	var buf bytes.Buffer
	var w interface {
		Write([]byte) (int, error)
		Close() error
	} = gzip.NewWriter(&buf)
	if coding == "deflate" {
		w = zlib.NewWriter(&buf)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestContent(t *testing.T) {
	file := "verify: {scheme: none}\nunwrap: payload\nevent: {key: body.id}\nfacts: {a: {kind: cart, key: body.id, fields: {list: body.list}}}\n"
	form := "application/x-www-form-urlencoded"
	body := `{"id":"e1","list":[1]}`
	for _, c := range []struct {
		name, mediaType, encoding string
		body                      []byte
		key                       string // "" where the event is kept under its digest
		fact                      string
	}{
		{"JSON", "application/json", "", []byte(body), "e1", "cart e1  list=[1]"},
		{"no type", "", "", []byte(body), "e1", "cart e1  list=[1]"},
		{"text", "text/plain", "", []byte(body), "e1", "cart e1  list=[1]"},
		{"byte order mark", "application/json", "", []byte("\ufeff" + body), "e1", "cart e1  list=[1]"},
		{"form", form + "; charset=utf-8", "", []byte("id=e1&list[]=1"), "e1", `cart e1  list=["1"]`},
		{"form with a byte order mark", form, "", []byte("\ufeffid=e1"), "e1", "cart e1 "},
		{"JSON called a form", form, "", []byte(body), "e1", "cart e1  list=[1]"},
		{"form that begins like JSON", form, "", []byte("[id]=e1&id=e2"), "e2", "cart e2 "},
		{"wrapped", form, "", []byte("payload=%7B%22id%22%3A%22e1%22%7D"), "e1", "cart e1 "},
		{"wrapped and doubled", form, "", []byte("payload=%7B%22id%22%3A1%2C%22id%22%3A2%7D"), "", `held: the body holds the member "id" twice, so readers may disagree about it`},
		{"wrapped, not JSON", form, "", []byte("payload=x"), "", "held: the field payload of the form is not JSON: a value should stand here, at byte 0"},
		{"bad form", form, "", []byte("id=%zz"), "", "held: the body is not a form: a value has a % without two hexadecimal digits, at byte 3"},
		{"gzip", "application/json", "gzip", compress(t, "gzip", body), "e1", "cart e1  list=[1]"},
		{"deflate", "application/json", "deflate", compress(t, "deflate", body), "e1", "cart e1  list=[1]"},
		{"twice", "application/json", "deflate, gzip", compress(t, "gzip", string(compress(t, "deflate", body))), "e1", "cart e1  list=[1]"},
		{"identity", "application/json", "identity", []byte(body), "e1", "cart e1  list=[1]"},
		{"not gzip", "application/json", "gzip", []byte(body), "", "held: the body is not what Content-Encoding says"},
		{"unknown encoding", "application/json", "br", []byte(body), "", "held: Content-Encoding br is not supported; gzip and deflate are"},
		{"four encodings", "application/json", "gzip,gzip,gzip,gzip", []byte(body), "", "held: the body is encoded more than 3 times"},
		{"a bomb", "application/json", "gzip", compress(t, "gzip", strings.Repeat(" ", 17<<20)), "", "held: the decoded body is longer than 1048576 bytes, which is more than a body of its size may become"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := post("")
			r.Body = c.body
			r.Header.Del("Content-Type")
			if c.mediaType != "" {
				r.Header.Set("Content-Type", c.mediaType)
			}
			if c.encoding != "" {
				r.Header.Set("Content-Encoding", c.encoding)
			}
			got := parse(t, file).Read(r)[0]
			want := c.key
			if want == "" {
				want = digest(string(c.body))
			}
			if got.Event.Key != want || got.Event.DigestKey != (c.key == "") {
				t.Errorf("key %q by digest %v, want %q", got.Event.Key, got.Event.DigestKey, want)
			}
			if lines := showAll(got); len(lines) != 1 || lines[0] != c.fact {
				t.Errorf("facts %q, want %q", lines, c.fact)
			}
			if got.Event.Digest != onceward.DigestOf(c.body) {
				t.Error("the digest is not that of the bytes on the wire")
			}
		})
	}
}

func TestSplit(t *testing.T) {
	p := parse(t, `
verify: {scheme: none}
split: body.events
event: {key: item.id, type: item.type, scope: {account: body.account}}
facts:
  mail: {types: mail.*, kind: message, key: item.mail, status: {of: item.status, sent: sent, read: read}}
`)
	show := func(body string) []string {
		var lines []string
		for _, r := range p.Read(post(body)) {
			key := r.Event.Key
			if r.Event.DigestKey || len(key) == 64 {
				key = "digest"
			}
			lines = append(lines, fmt.Sprintf("%d %s %s %s %v", r.Event.Item, key, r.Event.Type, r.Event.Scope, showAll(r)))
		}
		return lines
	}
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{
			"two", `{"account":"a1","events":[{"id":1,"type":"mail.x","mail":"m","status":"sent"}, {"id":2,"type":"mail.x","mail":"m","status":"read"}]}`,
			[]string{"0 1 mail.x a1 [message m sent]", "1 2 mail.x a1 [message m read]"},
		},
		{"none", `{"account":"a1","events":[]}`, []string{"0 digest  a1 []"}},
		{"missing", `{"account":"a1"}`, []string{"0 digest  a1 []"}},
		{"no list", `{"account":"a1","events":{}}`, []string{"0 digest  a1 [held: split gives no list]"}},
		{
			"one is bad", `{"events":[{"id":1,"type":"mail.x","mail":"m","status":"odd"},{"id":2,"type":"mail.x","mail":"m","status":"read"}]}`,
			[]string{`0 1 mail.x  [held: status: the word "odd" is not listed]`, "1 2 mail.x  [message m read]"},
		},
		{
			"a doubled id", `{"events":[{"id":1,"id":3,"type":"mail.x","mail":"m"},{"id":2,"type":"mail.x","mail":"m"}]}`,
			[]string{
				`0 digest mail.x  [held: the body holds the member "events.0.id" twice, so readers may disagree about it]`,
				`1 2 mail.x  [held: the body holds the member "events.0.id" twice, so readers may disagree about it]`,
			},
		},
		{"not JSON", `[`, []string{"0 digest   [held: the body is not JSON: the text ends where a value should follow, at byte 1]"}},
		{"too many", `{"events":[` + strings.Repeat("1,", 10_000) + `1]}`, []string{"0 digest   [held: the delivery holds 10001 events; at most 10000 are read]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, show(c.body)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	r := p.Read(post(`{"events":[ {"id": 1} , 7 ]}`))
	for i, text := range []string{`{"id": 1}`, `7`} {
		if r[i].Event.Digest != onceward.DigestOf([]byte(text)) {
			t.Errorf("the digest of item %d is not over its bytes %s", i, text)
		}
	}
	p = parse(t, "verify: {scheme: none}\nsplit: 'body.map(e, {\"a\": e})'\nevent: {key: [item.a, digest]}\n")
	if r := p.Read(post(`[1,1]`)); len(r) != 2 || r[0].Event.Key != r[1].Event.Key || !strings.HasPrefix(r[0].Event.Key, "1:") {
		t.Errorf("computed items: %v", r)
	}
}

func TestReadIsTheSameForEveryProviderOfARequest(t *testing.T) {
	r := post(`{"a":1,"b":2}`)
	a := parse(t, "verify: {scheme: none}\nevent: {key: body.a}\n")
	b := parse(t, "verify: {scheme: none}\nevent: {key: body.b}\n")
	for range 2 {
		if got := a.Read(r)[0].Event.Key + b.Read(r)[0].Event.Key; got != "12" {
			t.Errorf("keys %s, want 12", got)
		}
	}
	if !a.Read(r)[0].Event.Unsigned {
		t.Error("scheme none covers no body")
	}
}
