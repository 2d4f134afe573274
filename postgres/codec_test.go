package postgres_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/postgres"
)

// words are texts of every kind that JSON treats in its own way.
var words = rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[a-z]{1,8}`), rapid.String(),
	rapid.SampledFrom([]string{"a\"b", `a\b`, "a\nb", "a\x00b", "<&>", "\u2028", "\x7f", "é", "a\xffb", "\U0001F600"}))

func optional(t *rapid.T) onceward.Opt {
	if rapid.Bool().Draw(t, "set") {
		return onceward.Some(rapid.Int64().Draw(t, "number"))
	}
	return onceward.Opt{}
}

// TestFactText compares the text of a fact with what encoding/json gives.
func TestFactText(t *testing.T) {
	values := rapid.OneOf(rapid.Map(words, onceward.String), rapid.Map(rapid.Int64(), onceward.Int),
		rapid.SampledFrom([]onceward.Value{{}, onceward.Null, onceward.Bool(true), onceward.TrustedJSON(`{"a":[1.50,"<"]}`)}))
	parts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) onceward.Part {
		return onceward.Part{Field: words.Draw(t, "field"), By: words.Draw(t, "by"), Value: values.Draw(t, "value")}
	}), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		f := onceward.Fact{
			Rule: words.Draw(t, "rule"), Kind: words.Draw(t, "kind"), Key: words.Draw(t, "key"),
			Epoch: optional(t), Sequence: optional(t), Time: optional(t), Hint: rapid.Bool().Draw(t, "hint"), Status: words.Draw(t, "status"),
			Fields: parts.Draw(t, "fields"), Was: parts.Draw(t, "was"), Local: parts.Draw(t, "local"),
			Held: words.Draw(t, "held"), Notes: rapid.SliceOfN(words, 0, 3).Draw(t, "notes"),
		}
		want, err := f.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if got := postgres.AppendFact([]byte("x"), &f); string(got) != "x"+string(want) {
			t.Fatalf("the text is\n%s, want\n%s", got[1:], want)
		}
	})
}

// TestChangeText compares the text of a change with what encoding/json gives.
func TestChangeText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(words, 0, 3)
		c := onceward.Change{
			Source: words.Draw(t, "source"), Scope: onceward.Scope{Account: words.Draw(t, "account"), Mode: words.Draw(t, "mode")},
			Kind: words.Draw(t, "kind"), Key: words.Draw(t, "key"), Version: rapid.Int64().Draw(t, "version"),
			From: words.Draw(t, "from"), To: words.Draw(t, "to"), Told: words.Draw(t, "told"), Reached: list.Draw(t, "reached"),
			Epoch: optional(t), Tie: list.Draw(t, "tie"),
			Event: onceward.EventRef{ID: rapid.Int64().Draw(t, "id"), Key: words.Draw(t, "event"), Type: words.Draw(t, "type")},
			Time:  time.Unix(0, rapid.Int64().Draw(t, "time")).In(time.FixedZone("", 60*rapid.IntRange(-700, 700).Draw(t, "zone"))),
			Data:  rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage("{}"), json.RawMessage(`{"a":[1.50,"<"]}`)}).Draw(t, "data"),
		}
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(c); err != nil {
			t.Fatal(err)
		}
		got, err := postgres.AppendChange([]byte("x"), &c)
		if err != nil || string(got)+"\n" != "x"+want.String() {
			t.Fatalf("the text is\n%s, %v, want\n%s", got[1:], err, want.Bytes())
		}
	})
	// What encoding/json refuses is an error here too, and no text.
	c := onceward.Change{Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}
	if b, err := postgres.AppendChange([]byte("x"), &c); err == nil || string(b) != "x" {
		t.Errorf("a year of five digits becomes %s, %v", b, err)
	}
}
