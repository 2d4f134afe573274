package sqlite

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/onceward/onceward"
)

// anyText is text of any bytes, dense in those that mean something here.
var anyText = rapid.OneOf(
	rapid.StringOf(rapid.SampledFrom([]rune{'a', ':', ' ', '\\', '\n', '\r', 'n', 'c', 0, 'ä', '"', '<'})),
	rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) }),
)

func TestHeaderCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := rapid.MapOf(anyText, rapid.SliceOfN(anyText, 1, 3)).Draw(t, "header")
		if diff := cmp.Diff(h, decodeHeader(encodeHeader(h)), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the header came back as (-want +got):\n%s", diff)
		}
	})
	got := string(encodeHeader(map[string][]string{"X-B": {"2", "1"}, "X-A": {""}}))
	if want := "X-A: \nX-B: 2\nX-B: 1\n"; got != want {
		t.Errorf("%q, want %q: readable as it stands", got, want)
	}
}

func TestPatchCodec(t *testing.T) {
	values := rapid.SampledFrom([]onceward.Value{
		onceward.Null, onceward.Int(-7), onceward.TrustedJSON("12345678901234567890.10"), onceward.TrustedJSON(`{"a":[1,null]}`), onceward.String("ä\u0000\"<"), onceward.Bool(true),
	})
	text := rapid.StringOf(rapid.SampledFrom([]rune{'a', '"', '\\', 0, 'ä', '<', '\u2028'}))
	parts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) onceward.Part {
		return onceward.Part{Field: text.Draw(t, "field"), By: text.Draw(t, "by"), Value: values.Draw(t, "value")}
	}), 0, 3)
	opt := rapid.Custom(func(t *rapid.T) onceward.Opt {
		if rapid.Bool().Draw(t, "set") {
			return onceward.Some(rapid.Int64().Draw(t, "n"))
		}
		return onceward.Opt{}
	})
	rapid.Check(t, func(t *rapid.T) {
		want := onceward.Fact{
			Epoch: opt.Draw(t, "epoch"), Sequence: opt.Draw(t, "sequence"), Time: opt.Draw(t, "time"), Hint: rapid.Bool().Draw(t, "hint"),
			Fields: parts.Draw(t, "fields"), Was: parts.Draw(t, "was"), Local: parts.Draw(t, "local"),
			Held: text.Draw(t, "held"), Notes: rapid.SliceOfN(text, 0, 2).Draw(t, "notes"),
		}
		encoded := encodePatch(&want)
		if !json.Valid([]byte(encoded)) {
			t.Fatalf("not JSON: %s", encoded)
		}
		var got onceward.Fact
		if err := decodePatch(encoded, &got); err != nil {
			t.Fatal(err)
		}
		sameValue := cmp.Comparer(func(a, b onceward.Value) bool { return a.JSON() == b.JSON() })
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), sameValue); diff != "" {
			t.Errorf("the fact came back as (-want +got):\n%s", diff)
		}
	})
}

func TestErrorText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringN(0, 2500, -1).Draw(t, "text")
		got := errorText(s)
		clean := onceward.CleanText(s)
		if len(got) > 2000 || len(clean) <= 2000 && got != clean || clean[:len(got)] != got || got != onceward.CleanText(got) {
			t.Errorf("%d bytes of %d are kept, or they are not its beginning", len(got), len(clean))
		}
	})
}
