package onceward_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/onceward/onceward"
)

// words are texts of every kind that JSON treats in its own way.
var words = rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[a-z]{1,8}`), rapid.String(),
	rapid.SampledFrom([]string{"a\"b", `a\b`, "a\nb", "a\x00b", "<&>", "\u2028", "\x7f", "é", "a\xffb", "\U0001F600"}))

func drawnOpt(t *rapid.T) onceward.Opt {
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
			Epoch: drawnOpt(t), Sequence: drawnOpt(t), Time: drawnOpt(t), Hint: rapid.Bool().Draw(t, "hint"), Status: words.Draw(t, "status"),
			Fields: parts.Draw(t, "fields"), Was: parts.Draw(t, "was"), Local: parts.Draw(t, "local"),
			Held: words.Draw(t, "held"), Notes: rapid.SliceOfN(words, 0, 3).Draw(t, "notes"),
		}
		if got, want := f.AppendJSON([]byte("x")), encoded(t, onceward.FactJSON(f)); string(got) != "x"+want {
			t.Fatalf("the text is\n%s, want\n%s", got[1:], want)
		}
	})
}

// TestNothingNewIsLeftOut wants whoever adds a field to write it in AppendJSON too.
func TestNothingNewIsLeftOut(t *testing.T) {
	for _, known := range []struct {
		of     any
		fields int
	}{{onceward.Fact{}, 13}, {onceward.Change{}, 14}, {onceward.EventRef{}, 3}, {onceward.Scope{}, 2}, {onceward.Part{}, 3}} {
		if n := reflect.TypeOf(known.of).NumField(); n != known.fields {
			t.Errorf("%T has %d fields; AppendJSON and its tests know %d", known.of, n, known.fields)
		}
	}
}

// encoded is what encoding/json makes of a value, without escapes for HTML.
func encoded(t *rapid.T, v any) string {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// TestChangeText compares the text of a change with what encoding/json gives.
func TestChangeText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(words, 0, 3)
		c := onceward.Change{
			Source: words.Draw(t, "source"), Scope: onceward.Scope{Account: words.Draw(t, "account"), Mode: words.Draw(t, "mode")},
			Kind: words.Draw(t, "kind"), Key: words.Draw(t, "key"), Version: rapid.Int64().Draw(t, "version"),
			From: words.Draw(t, "from"), To: words.Draw(t, "to"), Told: words.Draw(t, "told"), Reached: list.Draw(t, "reached"),
			Epoch: drawnOpt(t), Tie: list.Draw(t, "tie"),
			Event: onceward.EventRef{ID: rapid.Int64().Draw(t, "id"), Key: words.Draw(t, "event"), Type: words.Draw(t, "type")},
			Time:  time.Unix(0, rapid.Int64().Draw(t, "time")).In(time.FixedZone("", 60*rapid.IntRange(-700, 700).Draw(t, "zone"))),
			Data:  rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage("{}"), json.RawMessage(`{"a":[1.50,"<"]}`)}).Draw(t, "data"),
		}
		want := encoded(t, c)
		if got, err := c.AppendJSON([]byte("x")); err != nil || string(got) != "x"+want {
			t.Fatalf("the text is\n%s, %v, want\n%s", got[1:], err, want)
		}
	})
	// What encoding/json refuses is an error here too, and no text.
	c := onceward.Change{Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}
	if b, err := c.AppendJSON([]byte("x")); err == nil || string(b) != "x" {
		t.Errorf("a year of five digits becomes %s, %v", b, err)
	}
}
