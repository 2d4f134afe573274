package provider_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider"
)

// notHere are rows that cases expect and no provider file makes, with the reason.
// The rest of such a case is checked all the same.
var notHere = map[string]string{
	"007 order/cart_1":             "an order of the application's own, joined to the payment by a rule that a user writes for its cart",
	"041 order/ord_1":              "an order of the application's own",
	"044 account/cus_1":            "a view over the subscriptions of one customer",
	"061 report/days":              "a report over rows",
	"068 comment/1":                "comments are no business entity here; the event is kept and unmapped",
	"071 event/evt_1":              "the event is kept and unmapped",
	"077 event/evt_1":              "the event is kept and unmapped",
	"097 event/evt_1":              "the event is kept and unmapped",
	"109 event/evt_00000000000000": "both test events are kept, each under its digest",
	"118 meter/mtr_1":              "an event that only names an object; fetching waits for the catalogue",
}

// caseFile is one failure case from the field.
type caseFile struct {
	ID, Provider string
	Setup        struct{ Secrets map[string]string }
	Steps        []caseStep
	Expect       struct {
		HTTP     []string
		Stored   int `json:"events_stored"`
		Entity   map[string]any
		Entities []map[string]any
	}
}

type caseStep struct {
	Op, Method, Path string
	AtMS             int64 `json:"at_ms"`
	MS               int64
	Headers          map[string]string
	Body             *string
	BodyB64          string `json:"body_b64"`
	Sign             struct {
		Secret     string
		SecretUsed *string `json:"secret_used"`
		Offset     int64   `json:"t_offset_s"`
		Corrupt    bool
	}
}

// TestCases plays the cases of the catalogue's senders: what is accepted, how many
// events there are, and the rows that their facts fold to, in every order.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.json")
	if err != nil || len(files) < 44 {
		t.Fatalf("%d cases, %v; there are 44", len(files), err)
	}
	unused := maps.Clone(notHere)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c caseFile
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			play := newCasePlay(t, &c)
			play.run()
			play.check(unused)
		})
	}
	for name, why := range unused {
		t.Errorf("no case expects %s (%s)", name, why)
	}
}

type casePlay struct {
	t        *testing.T
	c        *caseFile
	p        *provider.Provider
	arrivals []arrival // events that were accepted, each once
	outcomes []string
}

// arrival is one event and the address it came to: two addresses are two sources.
type arrival struct {
	source string
	event  onceward.Event
	facts  []onceward.Fact
}

func newCasePlay(t *testing.T, c *caseFile) *casePlay {
	t.Helper()
	var secrets []string
	for _, name := range slices.Sorted(maps.Keys(c.Setup.Secrets)) {
		secret := c.Setup.Secrets[name]
		if trimmed := strings.TrimSpace(secret); trimmed != secret {
			// Blanks around a secret are refused, with a hint, and not trimmed.
			_, err := provider.Compile(provider.SourceConfig{Name: "test", Provider: c.Provider, Secrets: []string{secret}})
			if err == nil || !strings.Contains(err.Error(), "white space") || strings.Contains(err.Error(), trimmed) {
				t.Errorf("a secret with blanks around: %v", err)
			}
			secret = trimmed
		}
		secrets = append(secrets, secret)
	}
	p, err := provider.Compile(provider.SourceConfig{Name: "test", Provider: c.Provider, Secrets: secrets})
	if err != nil {
		t.Fatal(err)
	}
	return &casePlay{t: t, c: c, p: p}
}

// run delivers every step at its time.
func (play *casePlay) run() {
	now := time.Unix(1_790_000_000, 0)
	claimed := map[string]bool{}
	for _, step := range play.c.Steps {
		if step.Op != "" {
			now = now.Add(time.Duration(step.MS) * time.Millisecond)
			continue
		}
		at := now.Add(time.Duration(step.AtMS) * time.Millisecond)
		r := play.request(&step)
		if !play.deliver(at, &step, r) {
			play.outcomes = append(play.outcomes, "401")
			continue
		}
		play.outcomes = append(play.outcomes, "2xx")
		for _, reading := range play.p.Read(r) {
			reading.Event.Source = step.Path
			if claim := reading.Event.ClaimID().String(); !claimed[claim] {
				claimed[claim] = true
				play.arrivals = append(play.arrivals, arrival{step.Path, reading.Event, reading.Facts})
			}
		}
	}
}

func (play *casePlay) request(step *caseStep) *provider.Request {
	play.t.Helper()
	r := &provider.Request{Method: step.Method, URL: "https://inbox.example" + step.Path, Header: http.Header{}}
	for name, value := range step.Headers {
		if value != "{{signature}}" {
			r.Header.Set(name, value)
		}
	}
	if step.BodyB64 != "" {
		body, err := base64.StdEncoding.DecodeString(step.BodyB64)
		if err != nil {
			play.t.Fatal(err)
		}
		r.Body = body
	} else if step.Body != nil {
		r.Body = []byte(*step.Body)
	}
	return r
}

// deliver signs as the step says and reports whether it is accepted.
func (play *casePlay) deliver(at time.Time, step *caseStep, r *provider.Request) bool {
	play.t.Helper()
	secret := strings.TrimSpace(play.c.Setup.Secrets[step.Sign.Secret])
	if step.Sign.SecretUsed != nil {
		secret = *step.Sign.SecretUsed
	}
	if err := play.p.Sign(at.Add(time.Duration(step.Sign.Offset)*time.Second), r, secret); err != nil {
		play.t.Fatal(err)
	}
	if step.Sign.Corrupt {
		for name, value := range step.Headers {
			if value == "{{signature}}" {
				signature := []byte(r.Header.Get(name))
				signature[len(signature)-1] ^= 1
				r.Header.Set(name, string(signature))
			}
		}
	}
	_, err := play.p.Verify(at, r)
	return err == nil
}

// rows folds the arrivals in an order.
func (play *casePlay) rows(order []int) map[onceward.Ref]*onceward.Row {
	facts := map[onceward.Ref][]onceward.Fact{}
	for _, i := range order {
		a := play.arrivals[i]
		for _, f := range a.facts {
			ref := onceward.Ref{Source: a.source, Scope: a.event.Scope, Kind: f.Kind, Key: f.Key}
			facts[ref] = append(facts[ref], f)
		}
	}
	rows := map[onceward.Ref]*onceward.Row{}
	for ref, list := range facts {
		if ref.Kind == "" { // held, and about nothing
			play.t.Errorf("held: %s", list[0].Held)
			continue
		}
		rows[ref] = onceward.Fold(play.p.Kinds()[ref.Kind], list)
	}
	return rows
}

func (play *casePlay) check(unused map[string]string) {
	t, c := play.t, play.c
	t.Helper()
	for i, want := range c.Expect.HTTP {
		if i >= len(play.outcomes) || !strings.Contains(want, play.outcomes[i]) {
			t.Errorf("delivery %d: %v, want %s", i+1, play.outcomes, want)
		}
	}
	if len(play.arrivals) != c.Expect.Stored {
		t.Errorf("%d events, want %d", len(play.arrivals), c.Expect.Stored)
	}
	inOrder := make([]int, len(play.arrivals))
	for i := range inOrder {
		inOrder[i] = i
	}
	rows := play.rows(inOrder)
	want := state(rows)
	permute(slices.Clone(inOrder), len(inOrder), func(order []int) bool {
		got := state(play.rows(order))
		if got != want {
			t.Errorf("order %v:\n%s\nand not\n%s", order, got, want)
		}
		return got == want
	})
	for _, expected := range append(c.Expect.Entities, c.Expect.Entity) {
		key, _ := expected["key"].(string)
		name := c.ID[:3] + " " + key
		if _, known := notHere[name]; known {
			delete(unused, name)
			continue
		}
		play.checkRow(rows, key, expected)
	}
}

// checkRow finds the row that a case names kind/key or kind/account/key, in each
// of its sources.
func (play *casePlay) checkRow(rows map[onceward.Ref]*onceward.Row, name string, expected map[string]any) {
	play.t.Helper()
	parts := strings.Split(name, "/")
	found := false
	for ref, row := range rows {
		account := len(parts) == 3 && ref.Scope.Account == parts[1]
		if ref.Kind != parts[0] || ref.Key != parts[len(parts)-1] || len(parts) == 3 && !account {
			continue
		}
		found = true
		for member, value := range expected {
			play.checkMember(ref, row, member, value)
		}
	}
	if !found {
		play.t.Errorf("no row %s; there are %v", name, slices.Collect(maps.Keys(rows)))
	}
}

func (play *casePlay) checkMember(ref onceward.Ref, row *onceward.Row, member string, value any) {
	play.t.Helper()
	fields := map[string]string{
		"amount_minor": "amount", "refunded_minor": "refunded", "gross_minor": "captured", "net_minor": "captured",
		"disputed_lost_minor": "disputed_amount",
	}
	field, renamed := fields[member]
	if !renamed {
		field = member
	}
	text, err := json.Marshal(value)
	if err != nil {
		play.t.Fatal(err)
	}
	switch member {
	case "key", "version_time", "rows", "refund_rows", "display", "attached", "needs_review", "order_fulfilment", "plan_source":
		return // the key is found; the others are no fields of this row
	case "status":
		if word, _ := value.(string); row.Status != word && !strings.Contains(word, "_or_"+row.Status) {
			play.t.Errorf("%s is %s, want %s", ref, row.Status, word)
		}
		return
	}
	got := row.Field(field)
	if number, is := value.(float64); is {
		text = []byte(fmt.Sprintf("%.0f", number))
		if number == 0 && got.IsZero() {
			return
		}
	}
	want, err := onceward.JSON(text)
	if word, is := value.(string); is {
		want = onceward.String(word)
	}
	if err != nil || !got.Equal(want) {
		play.t.Errorf("%s: %s is %s, want %s", ref, field, got.JSON(), text)
	}
}
