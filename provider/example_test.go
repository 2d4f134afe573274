package provider_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider"
)

const acme = `
verify: {scheme: hmac, header: X-Acme-Signature}
event: {key: body.id, type: body.type, time: body.created_at}
kinds:
  order: {states: [created, paid, shipped, [delivered, returned]]}
facts:
  order:
    types: order.*
    kind: order
    key: body.data.order.id
    time: body.data.order.updated_at
    status: body.data.order.status
    fields: {total: body.data.order.total, currency: body.data.order.currency}
`

// A sender nobody has heard of, described where it is used.
func ExampleParse() {
	p, err := provider.Parse("acme", []byte(acme), provider.Options{Secrets: []string{"acme-secret"}})
	if err != nil {
		fmt.Println(err) // all that is wrong, each with its place
		return
	}
	r := &provider.Request{
		Method: "POST", URL: "https://inbox.example/in/acme", Header: http.Header{},
		Body: []byte(`{"id":"e1","type":"order.paid","created_at":"2026-01-01T12:00:01Z","data":{"order":
			{"id":"A-7","status":"paid","total":4990,"currency":"brl","updated_at":"2026-01-01T12:00:00Z"}}}`),
	}
	now := time.Date(2026, 1, 1, 12, 0, 2, 0, time.UTC)
	if err := p.Sign(now, r, ""); err != nil { // as the sender does
		fmt.Println(err)
		return
	}
	if _, err := p.Verify(now, r); err != nil {
		fmt.Println(err)
		return
	}
	for _, reading := range p.Read(r) {
		fmt.Println("event", reading.Event.Key, reading.Event.Type)
		for _, f := range reading.Facts {
			fmt.Println("fact ", f.Kind, f.Key, f.Status, f.Time.Time().Format(time.TimeOnly))
			row := onceward.Fold(p.Kinds()[f.Kind], []onceward.Fact{f})
			fmt.Println("row  ", row.Status, string(row.Data()))
		}
	}
	// Output:
	// event e1 order.paid
	// fact  order A-7 paid 12:00:00
	// row   paid {"currency":"BRL","total":4990}
}

// Every fault is reported at once, with its place and the likely fix.
func ExampleParse_errors() {
	_, err := provider.Parse("acme", []byte(`verify: {scheme: hmac, header: X-Acme-Signature}
event: {key: id, tipe: body.type}
facts:
  sale:
    kind: payment
    key: body.data.id
    status: refundet
`), provider.Options{})
	fmt.Println(err)
	// Output:
	// acme.yaml:2:14: undeclared reference to 'id'; a member of the body is written body.id
	//     event: {key: id, tipe: body.type}
	//                  ^
	// acme.yaml:2:18: unknown key "tipe" in event; did you mean "type"? The keys are key, type, time, scope, was
	//     event: {key: id, tipe: body.type}
	//                      ^
	// acme.yaml:7:13: "refundet" is not a state of payment; did you mean "refunded"? Its states are created, pending, in_review, failed, expired, canceled, authorized, paid, partially_refunded, disputed, refunded, charged_back
	//         status: refundet
	//                 ^
}

// A configured source lays its own keys over a file of the catalogue.
func ExampleCompile() {
	p, err := provider.Compile(provider.SourceConfig{
		Name:    "shop",
		Secrets: []string{"whsec_made_up"},
		File:    "onceward.yaml",
		At:      []string{"sources", "shop"},
		Text: []byte(`
sources:
  shop:
    provider: stripe
    secrets: [$STRIPE_SECRET]
    kinds:
      plan: none
    facts:
      plan: none # we sell no plans
      order: {when: 'o.metadata.order != null', kind: order, key: o.metadata.order, status: created}
`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, plan := p.Kinds()["plan"]
	_, order := p.Kinds()["order"]
	fmt.Println(p.Title(), "plan:", plan, "order:", order)
	// Output:
	// Stripe plan: false order: true
}

// The samples of the catalogue are deliveries to try things with.
func ExampleLifecycle() {
	for _, s := range provider.Lifecycle("stripe", "payment") {
		fmt.Println(s.Name)
	}
	// Output:
	// 01-payment_intent.created
	// 02-payment_intent.processing
	// 03-charge.succeeded
	// 04-payment_intent.succeeded
	// 05-charge.refunded-partial
	// 06-refund.created
	// 07-charge.dispute.created
	// 08-charge.dispute.closed-won
	// 09-charge.refunded-full
}
