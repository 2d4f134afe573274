package inbox_test

import (
	"fmt"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/provider"
)

func TestAHeldFactBesideATold(t *testing.T) {
	tickets := func(states string) string {
		return `
verify: {scheme: hmac, header: X-Signature}
event: {key: body.id}
kinds:
  ticket: {states: [` + states + `]}
facts:
  part:
    each: {piece: body.parts}
    kind: ticket
    key: body.ticket
    status: piece.status
`
	}
	with := func(states string) func(*inbox.Config) {
		return func(cfg *inbox.Config) {
			cfg.Sources["pay"] = inbox.Source{Definition: []byte(tickets(states)), Secrets: []string{secret}}
		}
	}
	w := newWorld(t, with("open, paid"))
	w.ok("pay", `{"id":"e1","ticket":"p1","parts":[{"status":"refunded"},{"status":"paid"},{"status":"refunded"}]}`)
	if s := w.stats(); s.Facts[onceward.Held] != 2 || s.Facts[onceward.Applied] != 1 {
		t.Fatalf("facts %v, want one applied and two held, of one rule about one ticket", s.Facts)
	}
	next := worldOn(t, w.below, with("open, paid, refunded"))
	next.KeepUp(ctx)
	row := next.row("pay", "ticket", "p1")
	if row.Status != "refunded" || row.Facts != 3 {
		t.Errorf("the ticket is %s after %d facts, want refunded after 3: the one told before and the two that were held", row.Status, row.Facts)
	}
	if s := next.stats(); s.Facts[onceward.Held] != 0 {
		t.Errorf("%d facts are still held", s.Facts[onceward.Held])
	}
}

// TestManyConflictsOfADeliveryAreReadOnce counts how often a mapping in Go reads.
func TestManyConflictsOfADeliveryAreReadOnce(t *testing.T) {
	const items = 200
	reads := 0
	s := mapped(t)
	s.Map = func(r *provider.Request) ([]provider.Reading, error) {
		reads++
		var all []provider.Reading
		for i := range items {
			all = append(all, provider.Reading{
				Event: onceward.Event{Key: fmt.Sprint(i)},
				Facts: []onceward.Fact{{Kind: "parcel", Key: fmt.Sprint("p", i, len(r.Body)), Status: "sent"}},
			})
		}
		return all, nil
	}
	w := newWorld(t, func(cfg *inbox.Config) { cfg.Sources["post"] = s })
	w.deliver("post", "one")
	reads = 0
	a := w.ok("post", "other")
	if len(a.Events) != items || a.Events[items-1].Outcome != "conflict" {
		t.Fatalf("%d events, the last is %+v", len(a.Events), a.Events[len(a.Events)-1])
	}
	if reads > 3 { // when it comes, when it is compared, and the stored one
		t.Errorf("%d conflicts of one delivery made it be read %d times", items, reads)
	}
}

func TestTakingUpIsBoundedByBytes(t *testing.T) {
	old := newWorld(t, nil)
	for i := range 4 {
		old.ok("shop", order(fmt.Sprint("e", i), fmt.Sprint("o", i), "packed", "09:00:00"))
	}
	next := worldOn(t, old.below, func(cfg *inbox.Config) { refine(cfg); cfg.BatchBytes = 700 })
	next.KeepUp(ctx)
	commits := next.store.Calls("Commit")
	if s := next.stats(); s.Facts[onceward.Held] != 0 || commits < 2 {
		t.Errorf("%d facts are held after %d commits; want none, and more than one commit of 700 bytes", s.Facts[onceward.Held], commits)
	}
}

func TestOneToldFactStandsForOne(t *testing.T) {
	paid, again := onceward.Fact{Rule: "a", Kind: "k", Key: "1", Status: "paid"}, onceward.Fact{Rule: "b", Kind: "k", Key: "1", Status: "paid"}
	other := onceward.Fact{Rule: "a", Kind: "k", Key: "1", Status: "open"}
	for _, test := range []struct {
		about string
		facts []onceward.Fact
		told  []onceward.StoredFact
		want  int
	}{
		{"nothing was told", []onceward.Fact{paid, other}, nil, 2},
		{"one of two that are equal", []onceward.Fact{paid, again}, []onceward.StoredFact{{Fact: paid, Verdict: onceward.Applied}}, 1},
		{"both", []onceward.Fact{paid, again}, []onceward.StoredFact{{Fact: again, Verdict: onceward.Applied}, {Fact: paid, Verdict: onceward.Same}}, 0},
		{"only held ones", []onceward.Fact{paid}, []onceward.StoredFact{{Fact: paid, Verdict: onceward.Held}}, 1},
		{"another one of the same rule and row", []onceward.Fact{other}, []onceward.StoredFact{{Fact: paid, Verdict: onceward.Applied}}, 1},
	} {
		if got := inbox.Untold(test.facts, test.told); len(got) != test.want {
			t.Errorf("%s: %d facts are to be told, want %d", test.about, len(got), test.want)
		}
	}
}
