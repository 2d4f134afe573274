package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider"
)

// rowsOf reads bodies with a provider of the catalogue and folds what they say in
// every order, which must give the same rows; it returns them by kind and key.
func rowsOf(t *testing.T, name string, bodies ...string) map[string]*onceward.Row {
	t.Helper()
	p, err := provider.Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	var events []told
	for _, body := range bodies {
		for _, r := range p.Read(post(body)) {
			event := told{claim: r.Event.ClaimID(), facts: map[onceward.Ref][]onceward.Fact{}}
			for _, f := range r.Facts {
				if f.Held != "" {
					t.Fatalf("%s: held: %s", body, f.Held)
				}
				ref := onceward.Ref{Source: name, Scope: r.Event.Scope, Kind: f.Kind, Key: f.Key}
				event.facts[ref] = append(event.facts[ref], f)
			}
			events = append(events, event)
		}
	}
	order := make([]int, len(events))
	for i := range order {
		order[i] = i
	}
	straight := fold(p.Kinds(), events, order, false)
	permute(order, len(order), func(order []int) bool {
		got := state(fold(p.Kinds(), events, order, false))
		if want := state(straight); got != want {
			t.Errorf("order %v:\n%s", order, cmp.Diff(want, got))
		}
		return true
	})
	rows := map[string]*onceward.Row{}
	for ref, row := range straight {
		rows[ref.Kind+" "+ref.Key] = row
	}
	return rows
}

func hotmart(at int, event, status string) string {
	return fmt.Sprintf(`{"id":"%d","creation_date":%d,"event":"%s","data":{"purchase":{"transaction":"HP1","status":"%s","price":{"value":49.90,"currency_value":"BRL"}}}}`,
		at, 1_790_000_000_000+int64(at)*86_400_000, event, status)
}

func kiwify(at int, event, status string) string {
	return fmt.Sprintf(`{"order_id":"o1","webhook_event_type":"%s","order_status":"%s","updated_at":"2026-01-%02d 10:00","Commissions":{"charge_amount":4990,"currency":"BRL"}}`,
		event, status, at)
}

func pagarme(at int, event, status, money string) string {
	return fmt.Sprintf(`{"id":"hook_%d","type":"%s","created_at":"2026-01-%02dT00:00:00Z","data":{"id":"ch_1","amount":4990,"status":"%s","currency":"BRL","updated_at":"2026-01-%02dT00:00:00Z"%s}}`,
		at, event, at, status, at, money)
}

func stripeDispute(at int, id, status string) string {
	return fmt.Sprintf(`{"id":"evt_%d","type":"charge.dispute.updated","created":%d,"data":{"object":{"object":"dispute","id":"%s","payment_intent":"pi_1","amount":1000,"currency":"brl","status":"%s"}}}`,
		at, 1_790_000_000+at, id, status)
}

const stripePaid = `{"id":"evt_0","type":"payment_intent.succeeded","created":1790000000,"data":{"object":{"object":"payment_intent","id":"pi_1","status":"succeeded","amount":4990,"amount_received":4990,"currency":"brl"}}}`

// TestWhatIsToldLaterForgetsNothing: an event that says nothing of money given back,
// or of another dispute, leaves what was said of it.
func TestWhatIsToldLaterForgetsNothing(t *testing.T) {
	approved, complete := hotmart(1, "PURCHASE_APPROVED", "APPROVED"), hotmart(9, "PURCHASE_COMPLETE", "COMPLETE")
	for _, c := range []struct {
		name, provider, row string
		bodies              []string
		want                string // status, refunded, dispute, disputed_amount
	}{
		{"not refunded", "hotmart", "payment HP1", []string{approved, complete}, "paid   "},
		{"partly", "hotmart", "payment HP1", []string{approved, hotmart(2, "PURCHASE_REFUNDED", "PARTIALLY_REFUNDED")}, "partially_refunded   "},
		{"partly, then the guarantee ends", "hotmart", "payment HP1", []string{approved, hotmart(2, "PURCHASE_REFUNDED", "PARTIALLY_REFUNDED"), complete}, "partially_refunded   "},
		{"partly, then charged back", "hotmart", "payment HP1", []string{approved, hotmart(2, "PURCHASE_REFUNDED", "PARTIALLY_REFUNDED"), hotmart(3, "PURCHASE_CHARGEBACK", "CHARGEBACK")}, "charged_back   "},
		{"partly, then wholly", "hotmart", "payment HP1", []string{approved, hotmart(2, "PURCHASE_REFUNDED", "PARTIALLY_REFUNDED"), hotmart(3, "PURCHASE_REFUNDED", "REFUNDED")}, "refunded 4990  "},
		{"refunded, then charged back", "hotmart", "payment HP1", []string{approved, hotmart(2, "PURCHASE_REFUNDED", "REFUNDED"), hotmart(3, "PURCHASE_CHARGEBACK", "CHARGEBACK")}, "refunded 4990  "},
		{"refunded, then charged back", "kiwify", "payment o1", []string{kiwify(1, "order_approved", "paid"), kiwify(2, "order_refunded", "refunded"), kiwify(3, "chargeback", "chargedback")}, "refunded 4990  "},
		{"not refunded", "kiwify", "payment o1", []string{kiwify(1, "order_approved", "paid"), kiwify(3, "chargeback", "chargedback")}, "charged_back   "},
		{"partly, then silence", "pagarme", "payment ch_1", []string{
			pagarme(1, "charge.paid", "paid", `,"paid_amount":4990`), pagarme(2, "charge.partial_canceled", "paid", `,"paid_amount":4990,"canceled_amount":1000`),
			pagarme(3, "charge.updated", "paid", `,"paid_amount":4990`),
		}, "partially_refunded 1000  "},
		{"one dispute lost, another won", "stripe", "payment pi_1", []string{stripePaid, stripeDispute(1, "dp_1", "lost"), stripeDispute(2, "dp_2", "won")}, `charged_back  "lost" 2000`},
		{"one dispute won, another open", "stripe", "payment pi_1", []string{stripePaid, stripeDispute(1, "dp_1", "needs_response"), stripeDispute(2, "dp_2", "won")}, `disputed  "open" 2000`},
		{"both won", "stripe", "payment pi_1", []string{stripePaid, stripeDispute(1, "dp_1", "won"), stripeDispute(2, "dp_2", "warning_closed")}, `paid  "won" 2000`},
		{"lost and then won", "stripe", "payment pi_1", []string{stripePaid, stripeDispute(1, "dp_1", "lost"), stripeDispute(2, "dp_1", "won")}, `paid  "won" 1000`},
		{"undisputed", "stripe", "payment pi_1", []string{stripePaid}, "paid   "},
	} {
		row := rowsOf(t, c.provider, c.bodies...)[c.row]
		if row == nil {
			t.Errorf("%s, %s: no row %s", c.provider, c.name, c.row)
			continue
		}
		got := fmt.Sprintf("%s %s %s %s", row.Status, row.Field("refunded").JSON(), row.Field("dispute").JSON(), row.Field("disputed_amount").JSON())
		if got != c.want || strings.Contains(row.Why, "left out") {
			t.Errorf("%s, %s: %q because %q, want %q", c.provider, c.name, got, row.Why, c.want)
		}
	}
}

// TestResends reads every sample of the catalogue as it comes a second time, at
// another hour: the same event, which says the same. Otherwise it is a conflict.
func TestResends(t *testing.T) {
	attempts := map[string]string{ // headers that are of the attempt, and what they are the next time
		"X-Fal-Webhook-Timestamp": "1790009999", "X-Webhook-Timestamp": "1790009999", "Webhook-Timestamp": "1790009999",
		"X-Fal-Webhook-Signature": "00", "X-Webhook-Signature": "AA==", "Webhook-Signature": "v1,AA==", "Stripe-Signature": "t=1790009999,v1=00",
	}
	changed := map[string]bool{}
	for _, name := range provider.Catalog() {
		p, err := provider.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range provider.Samples(name) {
			if name == "replicate" && !strings.Contains(string(s.Body), `"completed_at":"`) {
				continue // only what is completed is tried again
			}
			first, again := s.Request(), s.Request()
			again.Header = again.Header.Clone()
			for header, value := range attempts {
				if again.Header.Get(header) != "" {
					again.Header.Set(header, value)
					changed[name] = true
				}
			}
			a, b := p.Read(first), p.Read(again)
			if len(a) != len(b) {
				t.Errorf("%s/%s: %d events, then %d", name, s.Name, len(a), len(b))
				continue
			}
			for i := range a {
				if a[i].Event.Key != b[i].Event.Key || !onceward.SameFacts(a[i].Facts, b[i].Facts) {
					t.Errorf("%s/%s: a resend is a conflict:\n%s", name, s.Name, cmp.Diff(showAll(a[i]), showAll(b[i])))
				}
			}
		}
	}
	for _, name := range []string{"fal", "kie", "replicate", "stripe"} {
		if !changed[name] {
			t.Errorf("no sample of %s has a header of the attempt", name)
		}
	}
}

// TestPullRequestsOfTwoRepositories: a number is one repository's.
func TestPullRequestsOfTwoRepositories(t *testing.T) {
	p, err := provider.Builtin("github")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for body, want := range map[string]string{
		`{"action":"opened","number":5,"pull_request":{"id":900,"state":"open"},"repository":{"id":1}}`: "900",
		`{"action":"opened","number":5,"repository":{"id":1}}`:                                          "1#5",
		`{"action":"opened","number":5,"repository":{"id":2}}`:                                          "2#5",
		`{"action":"opened","number":5,"installation":{"id":1}}`:                                        "5",
	} {
		r := post(body)
		r.Header = http.Header{"X-Github-Event": {"pull_request"}, "X-Github-Delivery": {"d-1"}}
		key := p.Read(r)[0].Facts[0].Key
		if key != want || seen[key] != "" {
			t.Errorf("%s is about %q, want %q", body, key, want)
		}
		seen[key] = body
	}
}
