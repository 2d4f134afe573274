package cases

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// alteration changes a case in one place, and says what the runner must say then.
type alteration struct {
	file string // of testdata, without its ending
	at   string // as expect.http.0
	to   any
	word string
	says string
}

const (
	fails        = "fail"
	notSupported = "not supported"
)

var alterations = []alteration{
	{"cases/001*", "expect.http.0", "401", fails, "http[0] is 200, want 401"},
	{"cases/001*", "expect.http", []any{"2xx"}, fails, "3 answers, want 1"},
	{"cases/001*", "expect.events_stored", 2, fails, "events_stored is 1, want 2"},
	{"cases/001*", "expect.events_stored", "2..3", fails, "events_stored is 1, want 2..3"},
	{"cases/001*", "expect.entity.status", "failed", fails, "payment/pi_1 status is paid, want failed"},
	{"cases/001*", "expect.entity.amount_minor", 5001, fails, "payment/pi_1 amount_minor is 5000, want 5001"},
	{"cases/001*", "expect.entity.net_minor", 4999, fails, "payment/pi_1 net_minor is 5000, want 4999"},
	{"cases/001*", "expect.entity.rows", 2, fails, "rows is 1, want 2"},
	{"cases/001*", "expect.entity.key", "payment/pi_2", fails, "payment/pi_2 is no row"},
	{"cases/001*", "expect.side_effects.order_completed", 2, fails, "side_effects.order_completed is 1, want 2"},
	{"cases/001*", "expect.rejected", 1, fails, "rejected is 0, want 1"},
	{"cases/001*", "expect.deliveries_logged", 2, fails, "deliveries_logged is 3, want 2"},
	{"cases/013*", "expect.entity.version_time", 1790000265, fails, "version_time is 1790000266"},
	{"cases/016*", "expect.side_effects.stuck_alert", 1, fails, "side_effects.stuck_alert is 0, want 1"},
	{"cases/031*", "expect.entity.cancel_at", 5, fails, "cancel_at is <nil>, want 5"},
	{"cases/046*", "expect.entity.order_fulfilment", "open", fails, "order_fulfilment is completed, want open"},
	{"cases/050*", "expect.entity.refund_rows", 1, fails, "refund_rows is 2, want 1"},
	{"cases/059*", "expect.entity.net_minor", 6000, fails, "net_minor is 8000, want 6000"},
	{"cases/061*", "expect.report.0.day", "2026-07-01", fails, "gross_minor is 200, want 100"},
	{"cases/062*", "expect.report.1.gross", "8000", fails, "gross is 80.00, want 8000"},
	{"cases/071*", "expect.entity.status", "test", fails, "event/evt_1 status is 0 facts"},
	{"cases/095*", "expect.quarantined", 2, fails, "quarantined is 1, want 2"},
	{"cases/104*", "expect.dead", 19, fails, "dead is 20, want 19"},
	{"cases/104*", "expect.max_wait_ms.bad1", 5000, fails, "the work of bad1 was done false"},
	{"cases/107*", "expect.deliveries_logged", 3, fails, "deliveries_logged is 2, want 3"},
	{"own/own12*", "steps.3.body", `{"id":"evt_2","object":"event","created":1790000009,"livemode":true,"type":"payment_intent.canceled","data":{"object":{"id":"pi_1","object":"payment_intent","status":"canceled"}}}`, fails, "compare_tables: the rows are"},

	{"cases/001*", "weight", 1, notSupported, "key weight"},
	{"cases/001*", "setup.weight", 1, notSupported, "key setup.weight"},
	{"cases/001*", "setup.config", map[string]any{"weight": 1}, notSupported, "setup.config.weight"},
	{"cases/001*", "setup.config", map[string]any{"stripe": map[string]any{"weight": 1}}, notSupported, "setup.config.stripe.weight"},
	{"cases/001*", "setup.dedupe", 7, notSupported, "setup.dedupe 7"},
	{"cases/001*", "setup.fail_effect", []any{1}, notSupported, "setup.fail_effect in this form"},
	{"cases/001*", "steps.0.colour", "red", notSupported, "key steps[0].colour"},
	{"cases/001*", "steps.0.sign.salt", "x", notSupported, "key steps[0].sign.salt"},
	{"cases/001*", "steps.0.sign.scheme", "rot13", notSupported, "scheme rot13"},
	{"cases/001*", "steps.0.sign.secret", "Z", notSupported, "secret Z"},
	{"cases/001*", "steps.0.headers.X-Nonce", "{{nonce}}", notSupported, "the template {{nonce}}"},
	{"cases/001*", "steps.0.transfer", "gzip", notSupported, "transfer gzip"},
	{"cases/001*", "steps.0.http_version", "3", notSupported, "http_version 3"},
	{"cases/001*", "steps.0.path", "/in/acmepay", notSupported, "provider acmepay"},
	{"cases/001*", "steps.0.path", "/hooks/stripe", notSupported, "the path /hooks/stripe"},
	{"cases/007*", "steps.0.op", "flood", notSupported, "op flood"},
	{"cases/007*", "steps.0.colour", "red", notSupported, "key steps[0].colour of op local_write"},
	{"cases/007*", "steps.0.row", map[string]any{"key": "cake/1"}, notSupported, "local_write of a cake"},
	{"own/own02*", "steps.0.point", "lunch", notSupported, "arm_crash lunch"},
	{"own/own04*", "steps.0.point", "after_effect", notSupported, "effects that are had once although"},
	{"cases/001*", "expect.weight", 1, notSupported, "key expect.weight"},
	{"cases/001*", "expect.http.0", "teapot", notSupported, "the answer teapot"},
	{"cases/001*", "expect.side_effects.cake_baked", 1, notSupported, "the effect cake_baked"},
	{"cases/001*", "expect.entity.colour", "red", notSupported, "the field colour of a payment"},
	{"cases/001*", "expect.entity.key", "cake/1", notSupported, "the kind cake"},
	{"cases/001*", "expect.entity.status", "blue", notSupported, "the status blue of a payment"},
	{"cases/071*", "expect.entity.status", "blessed", notSupported, "the status blessed of an event"},
	{"cases/071*", "expect.entity.colour", "red", notSupported, "the event's colour"},
	{"cases/062*", "expect.report.0.colour", "red", notSupported, "the report's colour"},
	{"cases/101*", "expect.entity.key", "payment/u1", notSupported, "testdata/sources has no rule"},
}

// TestAlterations changes cases that pass, and wants to be told.
func TestAlterations(t *testing.T) {
	lib := newLibrary(ownSources)
	for i, a := range alterations {
		if testing.Short() && i%4 != 0 {
			continue
		}
		t.Run(a.at+" "+fmt.Sprint(a.to), func(t *testing.T) {
			t.Parallel()
			c := altered(t, a)
			s := fileShelf(t, c.lasts())
			p := newPlay(c, lib, s, "a")
			p.note(p.play())
			all := strings.Join(slices.Concat(p.wrong, p.missing), "\n")
			if p.word() != a.word || !strings.Contains(all, a.says) {
				t.Errorf("%s: %s\n%s\nand it should have been %s, with %q", a.file, p.word(), all, a.word, a.says)
			}
		})
	}
}

// altered reads a case and changes it.
func altered(t *testing.T, a alteration) *fieldCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", a.file+".json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s is %v, %v", a.file, files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var whole any
	if err := decodeExact(text, &whole); err != nil {
		t.Fatal(err)
	}
	put(t, whole, strings.Split(a.at, "."), a.to)
	text, err = json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	c, err := readCase(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func put(t *testing.T, in any, path []string, value any) {
	t.Helper()
	switch v := in.(type) {
	case map[string]any:
		if len(path) == 1 {
			v[path[0]] = value
			return
		}
		if v[path[0]] == nil {
			v[path[0]] = map[string]any{}
		}
		put(t, v[path[0]], path[1:], value)
	case []any:
		var i int
		if _, err := fmt.Sscan(path[0], &i); err != nil || i >= len(v) {
			t.Fatalf("no place %v in a list of %d", path, len(v))
		}
		if len(path) == 1 {
			v[i] = value
			return
		}
		put(t, v[i], path[1:], value)
	default:
		t.Fatalf("no place %v", path)
	}
}

// TestOrdersAreTold plays a case whose end depends on which of two bodies came
// first, which the design allows for a conflict only, and wants to be told of it.
func TestOrdersAreTold(t *testing.T) {
	body := func(amount int) string {
		return fmt.Sprintf(`{\"id\":\"evt_1\",\"object\":\"event\",\"created\":1790000000,\"type\":\"charge.succeeded\",\"data\":{\"object\":{\"id\":\"ch_1\",\"object\":\"charge\",\"amount\":%d,\"currency\":\"usd\",\"status\":\"succeeded\"}}}`, amount)
	}
	step := func(amount int) string {
		return `{"at_ms":0,"method":"POST","path":"/in/stripe","sign":{"scheme":"stripe","secret":"A"},"headers":{"Stripe-Signature":"{{signature}}"},"body":"` + body(amount) + `"}`
	}
	c, err := readCase([]byte(`{"id":"x","setup":{"secrets":{"A":"whsec_A"}},"steps":[` + step(1) + `,` + step(2) + `],"expect":{"http":["2xx","2xx"],"events_stored":2,"entity":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, strict := range []bool{false, true} {
		p := newPlay(c, newLibrary(ownSources), fileShelf(t, false), "x")
		p.note(p.play())
		if p.word() != "pass" || p.reference == nil {
			t.Fatalf("%v %v", p.wrong, p.missing)
		}
		p.note(p.playLanes(&lanes{c: c, p: p, all: [][]int{{0, 1}, {1, 0}}, prefix: "o", strict: strict}, p.reference))
		told := strings.Join(p.wrong, "\n")
		if differs := strings.Contains(told, "steps in the order 2 1: the rows are"); differs != strict || len(p.wrong) > 1 {
			t.Errorf("strict %v: %q", strict, told)
		}
	}
}

// TestOrders counts.
func TestOrders(t *testing.T) {
	items := []int{0, 1, 2, 3, 4}
	own := func(i int) string { return fmt.Sprint(i) }
	if n := len(permutations(items, own)); n != 120 {
		t.Errorf("%d orders of five, want 120", n)
	}
	if n := len(permutations(items, func(i int) string { return fmt.Sprint(i / 2) })); n != 30 { // 5! / (2! 2! 1!)
		t.Errorf("%d orders of two pairs and one, want 30", n)
	}
	chance := rand.New(rand.NewPCG(1, 2))
	for _, order := range permutations(items, own) {
		all := twice(order, chance)
		var firsts []int
		times := map[int]int{}
		for _, i := range all {
			if times[i]++; times[i] == 1 {
				firsts = append(firsts, i)
			}
		}
		if len(all) != 10 || !slices.Equal(firsts, order) {
			t.Fatalf("%v twice is %v", order, all)
		}
	}
}

// TestForeignCases plays a folder of other cases as a person does, and looks at the
// exit code and at what is printed.
func TestForeignCases(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, a alteration) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name+".json"), altered(t, a).text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	play := func() (out string, failed bool) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCases$", "-test.v", "-test.short")
		cmd.Env = append(os.Environ(), foreign+"="+dir)
		text, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(text), err != nil
	}
	write("a", alteration{file: "cases/071*", at: "slug", to: "as it is"})
	write("b", alteration{file: "cases/071*", at: "provider", to: "acmepay"}) // says no path, so nothing follows
	write("c", alteration{file: "cases/071*", at: "steps.0.path", to: "/in/acmepay"})
	out, failed := play()
	if failed || !strings.Contains(out, "2 pass, 0 fail, 1 not supported") || !strings.Contains(out, "provider acmepay") {
		t.Errorf("failed %v:\n%s", failed, out)
	}
	write("d", alteration{file: "cases/071*", at: "expect.events_stored", to: 3})
	out, failed = play()
	if !failed || !strings.Contains(out, "2 pass, 1 fail, 1 not supported") || !strings.Contains(out, "events_stored is 2, want 3") {
		t.Errorf("failed %v:\n%s", failed, out)
	}
}
