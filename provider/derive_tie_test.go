package provider

import (
	"slices"
	"testing"

	"github.com/onceward/onceward"
)

// TestDerivedFromATie: where the sender's clock left open what a derivation
// reads, what is derived is open too, and the row says so.
func TestDerivedFromATie(t *testing.T) {
	p, err := Builtin("stripe")
	if err != nil {
		t.Fatal(err)
	}
	kind := p.Kinds()["payment"]
	at := onceward.Some(1)
	paid := onceward.Fact{Time: at, Status: "paid", Fields: []onceward.Part{{Field: "amount", Value: onceward.Int(900)}}}
	refunded := func(by string, amount int64) onceward.Fact {
		return onceward.Fact{Time: at, Fields: []onceward.Part{{Field: "refunds", By: by, Value: onceward.Int(amount)}}}
	}
	row := onceward.Fold(kind, []onceward.Fact{paid, refunded("re_1", 900), refunded("re_1", 400)})
	want := []string{"status", "refunded", "refunds.re_1"}
	if got := row.Tie(); !slices.Equal(got, want) || row.Status != "partially_refunded" {
		t.Errorf("status %s, tie %v; want partially_refunded, %v", row.Status, got, want)
	}
	row = onceward.Fold(kind, []onceward.Fact{paid, refunded("re_1", 900), refunded("re_2", 0)})
	if got := row.Tie(); got != nil || row.Status != "refunded" {
		t.Errorf("status %s, tie %v; want refunded and none", row.Status, got)
	}
}
