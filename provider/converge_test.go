package provider_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider"
)

// rowsOfSamples are the rows that each provider's samples must end in, worked out
// by hand from what the samples say: kind, key, status, and what of the fields
// matters. There is one payment for each sale. Amounts are minor units.
var rowsOfSamples = map[string]map[string]string{
	"stripe": {
		"payment pi_3MadeUpIntent0001":       `refunded amount=4990 captured=4990 refunded=4990 currency="BRL" dispute="won" order="A-1"`,
		"refund re_3MadeUpRefund0001":        `pending amount=1000 currency="BRL" payment="pi_3MadeUpIntent0001"`,
		"dispute du_1MadeUpDispute01":        `won amount=3990 currency="BRL" payment="pi_3MadeUpIntent0001"`,
		"subscription sub_1MadeUpSub0001":    `active cancel_at_period_end=false customer="cus_MadeUp0001"`,
		"checkout cs_test_MadeUpSession0001": `paid amount=4990 currency="BRL" payment="pi_3MadeUpIntent0002" reference="A-2"`,
	},
	"kiwify": {
		"payment 0b1c2d3e-0000-4000-8000-00000000a001":      `refunded amount=4990 captured=4990 refunded=4990 fee=549 net=4441 currency="BRL"`,
		"payment 0b1c2d3e-0000-4000-8000-00000000a002":      `pending amount=4990 refunded= currency="BRL"`,
		"payment 0b1c2d3e-0000-4000-8000-00000000a003":      `failed amount=4990 refunded= currency="BRL"`,
		"payment 0b1c2d3e-0000-4000-8000-00000000a004":      `charged_back amount=4990 captured=4990 refunded= currency="BRL"`,
		"payment 0b1c2d3e-0000-4000-8000-00000000a005":      `paid amount=4990 captured=4990 refunded= subscription="0b1c2d3e-0000-4000-8000-00000000d001"`,
		"subscription 0b1c2d3e-0000-4000-8000-00000000d001": `canceled next_payment="2026-02-01T00:00:00.000Z"`,
		"cart madeupcart0000001":                            `abandoned email="cliente@example.com"`,
	},
	"hotmart": {
		"payment HP0000000001":             `charged_back amount=4990 captured=4990 refunded= currency="BRL"`,
		"payment HP0000000002":             `refunded amount=4990 captured=4990 refunded=4990 currency="BRL"`,
		"payment HP0000000003":             `failed amount=4990 refunded=`,
		"payment HP0000000004":             `pending amount=4990 refunded= subscription="MADEUP01" recurrence=3`,
		"payment HP0000000005":             `expired amount=4990 refunded=`,
		"subscription MADEUP01":            `canceled plan=1`,
		"cart cliente@example.com:1000001": `abandoned product=1000001`,
	},
	"pagarme": {
		"payment ch_MadeUp0000000001": `refunded amount=4990 captured=4990 refunded=4990 currency="BRL" order="or_MadeUp0000000001"`,
		"payment ch_MadeUp0000000002": `failed amount=4990 refunded= order="or_MadeUp0000000001"`,
		"payment ch_MadeUp0000000003": `charged_back amount=4990 captured=4990 refunded= order="or_MadeUp0000000001"`,
		"order or_MadeUp0000000001":   `paid amount=4990 currency="BRL" code="A-1"`,
	},
	"pagarme-v4": {
		"payment 1000001": `refunded amount=4990 captured=4990 refunded=4990 currency="BRL"`,
	},
	"replicate": {
		"job madeup0prediction00000001": `succeeded output=["https://files.example/out-0.png"] predict_time=4.0`,
		"job madeup0prediction00000002": `failed error="made up failure"`,
		"job madeup0prediction00000003": `canceled model="acme/made-up-model"`,
	},
	"fal": {
		"job aaaaaaaa-0000-4000-8000-000000000001": `succeeded`,
		"job aaaaaaaa-0000-4000-8000-000000000002": `failed error="Invalid status code: 422"`,
		"job aaaaaaaa-0000-4000-8000-000000000003": `succeeded`,
	},
	"sunoapi": {
		"job madeuptask0001": `succeeded tracks=2`,
		"job madeuptask0002": `failed error="Audio generation failed." code=501`,
		"job madeuptask0003": `failed error="Lyrics contained copyrighted material." code=400`,
	},
	"kie": {
		"job madeuptask0001": `succeeded tracks=2`,
		"job madeuptask0002": `failed error="Audio generation failed." code=501`,
		"job madeuptask0003": `failed error="Lyrics contained copyrighted material." code=400`,
	},
	"github": {
		"job 9007199254740993":   `succeeded attempt=2 branch="main" name="CI" repository="acme/made-up"`,
		"pull_request 100000005": `merged number=5 draft=false title="Make it up & <ship> it"`,
	},
	"standard-webhooks": {},
}

// told is one sample event: its facts by the entity they are about.
type told struct {
	claim onceward.ID
	facts map[onceward.Ref][]onceward.Fact
}

// stories reads a provider's samples and puts those together that share an entity,
// directly or by way of others, each story in the order in which things happened.
func stories(t *testing.T, name string) (all [][]told, kinds map[string]*onceward.Kind) {
	t.Helper()
	p, err := provider.Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range provider.Samples(name) {
		for _, reading := range p.Read(s.Request()) {
			event := told{claim: reading.Event.ClaimID(), facts: map[onceward.Ref][]onceward.Fact{}}
			for _, f := range reading.Facts {
				ref := onceward.Ref{Source: name, Scope: reading.Event.Scope, Kind: f.Kind, Key: f.Key}
				event.facts[ref] = append(event.facts[ref], f)
			}
			if len(event.facts) > 0 {
				all = join(all, event)
			}
		}
	}
	return all, p.Kinds()
}

// join adds an event to the stories, making one of all that it belongs to.
func join(all [][]told, event told) [][]told {
	var story []told
	var others [][]told
	for _, s := range all {
		shares := slices.ContainsFunc(s, func(e told) bool {
			for ref := range e.facts {
				if _, both := event.facts[ref]; both {
					return true
				}
			}
			return false
		})
		if shares {
			story = append(story, s...)
		} else {
			others = append(others, s)
		}
	}
	return append(others, append(story, event))
}

// fold makes the rows of a story's events in an order of arrival. Every event
// comes twice: it is a duplicate, as its claim shows, or, with twins, comes under
// another key, which by the twin law changes nothing either.
func fold(kinds map[string]*onceward.Kind, story []told, order []int, twins bool) map[onceward.Ref]*onceward.Row {
	facts := map[onceward.Ref][]onceward.Fact{}
	claimed := map[onceward.ID]bool{}
	arrive := func(e told) {
		if claimed[e.claim] && !twins {
			return
		}
		claimed[e.claim] = true
		for ref, list := range e.facts {
			facts[ref] = append(facts[ref], list...)
		}
	}
	for i, n := range order {
		arrive(story[n])
		arrive(story[order[len(order)-1-i]])
	}
	rows := make(map[onceward.Ref]*onceward.Row, len(facts))
	for ref, list := range facts {
		rows[ref] = onceward.Fold(kinds[ref.Kind], list)
	}
	return rows
}

// state is what must not depend on arrival.
func state(rows map[onceward.Ref]*onceward.Row) string {
	var lines []string
	for ref, row := range rows {
		lines = append(lines, fmt.Sprintf("%s: %s (told %s) %s tie %v", ref, row.Status, row.Told, row.Data(), row.Tie()))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// orders yields every order of n events if there are at most 8, else as many
// seeded ones; with -short a twentieth of them.
func orders(n int) func(yield func([]int) bool) {
	const most = 40_320
	return func(yield func([]int) bool) {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		if n <= 8 && (n < 8 || !testing.Short()) {
			permute(order, n, yield)
			return
		}
		count := most
		if testing.Short() {
			count /= 20
		}
		random := rand.New(rand.NewPCG(40_320, uint64(n)))
		for range count {
			random.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
			if !yield(order) {
				return
			}
		}
	}
}

// permute yields every order of the first n, by Heap's way.
func permute(order []int, n int, yield func([]int) bool) bool {
	if n <= 1 {
		return yield(order)
	}
	for i := range n {
		if !permute(order, n-1, yield) {
			return false
		}
		if i < n-1 {
			j := 0
			if n%2 == 0 {
				j = i
			}
			order[j], order[n-1] = order[n-1], order[j]
		}
	}
	return true
}

// TestSamplesConverge plays each story of each provider in every order, every
// event twice, and wants the same rows, without a tie, as were worked out by hand.
func TestSamplesConverge(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(rowsOfSamples)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, kinds := stories(t, name)
			rows := map[onceward.Ref]*onceward.Row{}
			for _, story := range all {
				first := make([]int, len(story))
				for i := range first {
					first[i] = i
				}
				straight := fold(kinds, story, first, false)
				maps.Copy(rows, straight)
				want, played := state(straight), 0
				for order := range orders(len(story)) {
					twins := played%4 == 3 // they take longer
					if got := state(fold(kinds, story, order, twins)); got != want {
						t.Fatalf("order %v, twins %v:\n%s", order, twins, cmp.Diff(want, got))
					}
					played++
				}
				t.Logf("%d events, %d orders", len(story), played)
			}
			checkRows(t, rows, rowsOfSamples[name])
		})
	}
}

// checkRows compares rows with what was worked out by hand, and their number.
func checkRows(t *testing.T, rows map[onceward.Ref]*onceward.Row, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for ref, row := range rows {
		name := ref.Kind + " " + ref.Key
		words := strings.Fields(want[name])
		if len(row.Tie()) > 0 {
			t.Errorf("%s has ties %v", name, row.Tie())
		}
		if len(words) == 0 {
			got[name] = row.Status
			continue
		}
		// Only the fields that were worked out are compared; texts hold no blanks
		// that matter but one title and messages, so the rest is cut at them.
		shown := []string{row.Status}
		for _, field := range fieldsNamed(want[name]) {
			if field == "tracks" {
				shown = append(shown, fmt.Sprintf("tracks=%d", strings.Count(row.Field("output").JSON(), `"id":`)))
				continue
			}
			shown = append(shown, field+"="+row.Field(field).JSON())
		}
		got[name] = strings.Join(shown, " ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows differ (-want +got):\n%s", diff)
	}
}

// fieldsNamed lists the names before the = signs outside of quotes.
func fieldsNamed(text string) []string {
	var names []string
	quoted, start := false, 0
	for i, c := range text {
		switch {
		case c == '"':
			quoted = !quoted
		case c == ' ' && !quoted:
			start = i + 1
		case c == '=' && !quoted:
			names = append(names, text[start:i])
		}
	}
	return names
}

// TestLifecycle wants the samples of one entity, the one most is told about.
func TestLifecycle(t *testing.T) {
	for _, c := range []struct {
		provider, kind, first string
		events                int
	}{
		{"stripe", "payment", "01-payment_intent.created", 9},
		{"stripe", "checkout", "12-checkout.session.completed-unpaid", 2},
		{"sunoapi", "job", "01-text", 3},
		{"hotmart", "payment", "01-PURCHASE_BILLET_PRINTED", 4},
		{"pagarme", "payment", "01-order.created", 6},
		{"github", "job", "01-workflow_run.requested", 6},
	} {
		got := provider.Lifecycle(c.provider, c.kind)
		if len(got) != c.events || got[0].Name != c.first {
			t.Errorf("%s %s: %d events, want %d beginning with %s", c.provider, c.kind, len(got), c.events, c.first)
		}
	}
	if got := provider.Lifecycle("stripe", "cart"); got != nil {
		t.Errorf("a cart at Stripe: %v", got)
	}
	if got := provider.Samples("nobody"); got != nil {
		t.Errorf("samples of nobody: %v", got)
	}
}
