package inbox_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/provider"
	"github.com/onceward/onceward/sqlite"
)

// A shop of which the catalogue knows nothing, a handler, and the same delivery
// twice.
func Example() {
	ctx := context.Background()
	store, err := sqlite.Open(":memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	in, err := inbox.New(store, inbox.Config{Sources: map[string]inbox.Source{
		"acme": {
			Secrets: []string{"a long secret"},
			Definition: []byte(`
verify: {scheme: hmac, header: X-Acme-Signature}
event: {key: body.id, type: body.type}
kinds:
  order: {states: [created, paid, shipped], order: [rank]}
facts:
  order:
    kind: order
    key: body.order
    status: body.status
    fields: {total: body.total}
`),
		},
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = in.Close(ctx) }()
	in.Handle("order.paid", func(_ context.Context, c onceward.Change) error {
		fmt.Println("order", c.Key, "is paid, total", c.Int("total"))
		return nil
	})

	body := `{"id":"evt_1","type":"order.paid","order":"A-1","status":"paid","total":4990}`
	for range 2 {
		w := httptest.NewRecorder()
		in.Source("acme").ServeHTTP(w, acmeRequest(in, body))
		fmt.Println(w.Code, strings.Contains(w.Body.String(), "new"))
	}
	if _, err := in.Work(ctx); err != nil { // Run does this in the background
		log.Fatal(err)
	}
	row, err := in.Find(ctx, "acme", "order", "A-1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(row.Status, string(row.Data))
	// Output:
	// 200 true
	// 200 false
	// order A-1 is paid, total 4990
	// paid {"total":4990}
}

// acmeRequest is what the shop would send.
func acmeRequest(in *inbox.Inbox, body string) *http.Request {
	r := &provider.Request{Method: "POST", URL: "http://example.com/hooks", Body: []byte(body)}
	if err := in.Provider("acme").Sign(now(), r, ""); err != nil {
		log.Fatal(err)
	}
	req := httptest.NewRequest(r.Method, r.URL, strings.NewReader(body))
	req.Header = r.Header
	return req
}

// A program that mounts one source where its sender's URL already is.
func ExampleInbox_Source() {
	store, err := sqlite.Open("app.db") // creates its tables, leaves yours alone
	if err != nil {
		log.Fatal(err)
	}
	in, err := inbox.New(store, inbox.Config{Sources: map[string]inbox.Source{
		"stripe": {Provider: "stripe", Secrets: []string{os.Getenv("STRIPE_WEBHOOK_SECRET")}},
	}})
	if err != nil {
		log.Fatal(err) // an empty secret says so here
	}
	http.Handle("POST /webhooks/stripe", in.Source("stripe"))
	log.Fatal(http.ListenAndServe(":8080", nil))
}

// Work that hangs on the first time a payment is paid.
func ExampleInbox_Handle() {
	in, ctx := newInbox()
	in.Handle("payment.paid", func(_ context.Context, c onceward.Change) error {
		var p struct {
			Order, Currency string
			Captured        int64
		}
		if err := c.Decode(&p); err != nil {
			return onceward.Permanent(err)
		}
		return mail(p.Order, p.Captured, p.Currency)
	})
	go func() { _ = in.Run(ctx) }() // without it jobs wait
}

// A job that the application has just started: its callback may come before or
// after.
func ExampleInbox_Put() {
	in, ctx := newInbox()
	r, err := in.Put(ctx, inbox.Registration{
		Ref:   onceward.Ref{Source: "music", Kind: "job", Key: "task_1"},
		Local: map[string]any{"user": 7},
		Key:   "start-task_1", // makes a repeat harmless
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Outcome)
}
