package onceward_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/onceward/onceward"
)

func TestValueNumbersAreExact(t *testing.T) {
	same := [][2]string{{"49.90", "49.9"}, {"1e3", "1000"}, {"0.0", "-0"}, {"10E-1", "1"}, {"9007199254740993", "9007199254740993.0"}, {"1e400", "10e399"}}
	for _, pair := range same {
		a, b := mustJSON(t, []byte(pair[0])), mustJSON(t, []byte(pair[1]))
		if !a.Equal(b) || a.Compare(b) != 0 {
			t.Errorf("%s and %s are the same number", pair[0], pair[1])
		}
	}
	if a, b := mustJSON(t, []byte(`"\u0041\/"`)), onceward.String("A/"); !a.Equal(b) || !b.Equal(a) || a.Equal(onceward.String("B/")) {
		t.Error("how a text was escaped is no part of it")
	}
	rising := []string{"-1e99", "-2", "-1.5", "0", "0.1", "0.11", "1", "9007199254740992", "9007199254740993", "1e30", "1e999999999999"}
	for i := range rising[1:] {
		a, b := mustJSON(t, []byte(rising[i])), mustJSON(t, []byte(rising[i+1]))
		if a.Compare(b) >= 0 || b.Compare(a) <= 0 || a.Equal(b) {
			t.Errorf("%s comes before %s", rising[i], rising[i+1])
		}
	}
	if n, ok := mustJSON(t, []byte("9007199254740993")).Int64(); !ok || n != 9007199254740993 {
		t.Errorf("a 64-bit id became %d", n)
	}
	for _, text := range []string{"1.5", "1e-1", "9223372036854775808", `"1"`, "null"} {
		if n, ok := mustJSON(t, []byte(text)).Int64(); ok {
			t.Errorf("%s is no whole number of 64 bits, yet gave %d", text, n)
		}
	}
}

func TestValueOrderOfKinds(t *testing.T) {
	rising := []onceward.Value{{}, onceward.Null, onceward.Bool(false), onceward.Bool(true), onceward.Int(7), onceward.String("a"), onceward.String("b\n"), mustJSON(t, []byte("[1]")), mustJSON(t, []byte("{}"))}
	for i := range rising[1:] {
		if rising[i].Compare(rising[i+1]) >= 0 {
			t.Errorf("%s must sort before %s", rising[i].JSON(), rising[i+1].JSON())
		}
	}
}

func FuzzValue(f *testing.F) {
	for _, seed := range []string{"1", "-0.10e+5", `"a\u0000b"`, `{"a":[1,2,{"b":null}]}`, "1e99999999999999999999", `"\ud800"`} {
		f.Add(seed, "2.50")
	}
	f.Add("\"\xff\"", "1")
	f.Fuzz(func(t *testing.T, a, b string) {
		v, err := onceward.JSON([]byte(a))
		if (err == nil) != json.Valid([]byte(a)) {
			t.Fatalf("%q: %v", a, err)
		}
		if err == nil && !utf8.ValidString(v.JSON()) {
			t.Fatalf("%q is not UTF-8, and a database may refuse it", v.JSON())
		}
		w, err2 := onceward.JSON([]byte(b))
		if err != nil || err2 != nil {
			return
		}
		if c, d := v.Compare(w), w.Compare(v); c != -d && (c > 0) == (d > 0) {
			t.Fatalf("compare %q, %q: %d and %d", a, b, c, d)
		}
		x, y := rational(a), rational(b)
		if x != nil && y != nil && (x.Cmp(y) > 0) != (v.Compare(w) > 0) {
			t.Fatalf("%s and %s compare wrongly", a, b)
		}
	})
}

// rational reads a JSON number of bearable size.
func rational(text string) *big.Rat {
	text = strings.TrimSpace(text)
	if len(text) > 40 || strings.ContainsAny(text, "eE") || !json.Valid([]byte(text)) || text == "" || !strings.ContainsAny(text[:1], "-0123456789") {
		return nil
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	return r
}

func FuzzText(f *testing.F) {
	f.Add("plain")
	f.Add("a:b\\c")
	f.Add("\xff\x00é")
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := onceward.String(s).Text()
		if !ok || got != strings.ToValidUTF8(s, "\uFFFD") && utf8.ValidString(s) {
			t.Fatalf("%q came back as %q", s, got)
		}
		clean := onceward.CleanText(s)
		if !utf8.ValidString(clean) || strings.ContainsRune(clean, 0) || onceward.CleanText(clean) != clean {
			t.Fatalf("%q is not clean", clean)
		}
		if utf8.ValidString(s) && !strings.Contains(s, "\x00") && clean != s {
			t.Fatalf("%q was changed to %q", s, clean)
		}
	})
}

func FuzzKeysAndScopes(f *testing.F) {
	f.Add("acct_1", "live", "a:b", "")
	f.Add(`a/b\`, "", `\:`, ":")
	f.Fuzz(func(t *testing.T, account, mode, a, b string) {
		if mode == "" || !strings.ContainsAny(mode, `/\`) {
			s := onceward.Scope{Account: account, Mode: mode}
			back, err := onceward.ParseScope(s.String())
			if err != nil || back != s {
				t.Fatalf("%+v is written %q and read %+v (%v)", s, s, back, err)
			}
		}
		if a != "" && onceward.ComposeKey(a, b) == onceward.ComposeKey(a+":"+b) {
			t.Fatalf("two lists, one key: %q", onceward.ComposeKey(a, b))
		}
		r := onceward.Ref{Source: account, Kind: a, Key: b}
		moved := onceward.Ref{Source: account + a, Key: b}
		if a != "" && r.ID() == moved.ID() {
			t.Fatal("parts of a name may not run into each other")
		}
	})
}

func FuzzDecodeRow(f *testing.F) {
	row := onceward.Fold(songKind, []onceward.Fact{song("partial"), {Kind: "job", Status: "running", Fields: []onceward.Part{{Field: "a", Value: onceward.Int(1)}}}})
	f.Add(string(row.Data()), row.EncodeState())
	f.Add(`{"local":{"x":1}}`, []byte{1, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data string, state []byte) {
		r, err := onceward.DecodeRow("s", "s", 1, 1, []byte(data), state)
		if err == nil {
			_ = r.Data() // whatever a damaged state holds, it may not bring the process down
			_ = r.EncodeState()
		}
	})
}

// FuzzSplitObject compares the reading of stored fields with encoding/json's.
func FuzzSplitObject(f *testing.F) {
	for _, data := range []string{
		`{}`, `{"a":1}`, `{"a":[1,{"b":",}"}],"b":"\\","c":{"d":"\""}}`, `{"a":1,"z":2,"local":{"x":1}}`, `{"local":1,"local":2}`,
		`{"local":1,"m":2,"local":3}`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"a": 1}`, `{"\u0061":1}`, `{"a":1,"local":2,"b":3}`, `{"":"é"}`,
	} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		fields, ok := onceward.SplitObject(data)
		if !ok || !json.Valid([]byte(data)) || !utf8.ValidString(data) {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal([]byte(data), &want); err != nil || len(want) != len(fields) {
			t.Fatalf("%s: %d fields, want %d, %v", data, len(fields), len(want), err)
		}
		for _, field := range fields {
			var compact bytes.Buffer
			if err := json.Compact(&compact, want[field.Name]); err != nil || compact.String() != field.Value.JSON() {
				t.Errorf("%s: %s is %s, want %s, %v", data, field.Name, field.Value.JSON(), compact.Bytes(), err)
			}
		}
	})
}

func TestFactKeepsAllThatWasTold(t *testing.T) {
	fact := onceward.Fact{
		Rule: "r", Kind: "k", Key: "a\x00b", Epoch: onceward.Some(-1), Sequence: onceward.Some(1 << 60), Time: onceward.Some(0), Hint: true, Status: "s",
		Fields: []onceward.Part{{Field: "f", By: "x", Value: onceward.Null}, {Field: "g", Value: mustJSON(t, []byte("49.90"))}},
		Was:    []onceward.Part{{Field: onceward.StatusPart, Value: onceward.String("é")}},
		Local:  []onceward.Part{{Field: "user", Value: onceward.Int(1)}}, Held: "why", Notes: []string{"n"},
	}
	text, err := json.Marshal(fact)
	if err != nil {
		t.Fatal(err)
	}
	var back onceward.Fact
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil || !bytes.Equal(again, text) {
		t.Errorf("%s\ncame back as %s (%v)", text, again, err)
	}
	if !onceward.SameFacts([]onceward.Fact{fact}, []onceward.Fact{back}) {
		t.Error("the facts differ")
	}
}

// TestDerivedThatIsNoJSON wants a derivation in Go to spoil no row.
func TestDerivedThatIsNoJSON(t *testing.T) {
	kind := mustKind(onceward.Kind{
		Name: "job", States: [][]string{{"running"}}, Order: []onceward.Component{onceward.Rank},
		Derive: func(onceward.Folded) onceward.Derived {
			return onceward.Derived{Why: "always", Fields: []onceward.NamedValue{
				{Name: "broken", Value: onceward.TrustedJSON(`{"a":`)}, {Name: "wide", Value: onceward.TrustedJSON(`[ 1, 2 ]`)},
			}}
		},
	})
	row := onceward.Fold(kind, []onceward.Fact{song("running")})
	if got := string(row.Data()); got != `{"wide":[1,2]}` || row.Why != "always; broken is left out: it is no JSON" {
		t.Errorf("the row shows %s, why %q", got, row.Why)
	}
	back, err := onceward.DecodeRow(row.Status, row.Told, 1, 1, row.Data(), row.EncodeState())
	if err != nil || string(back.Data()) != string(row.Data()) {
		t.Errorf("it came back as %s, %v", back.Data(), err)
	}
}
