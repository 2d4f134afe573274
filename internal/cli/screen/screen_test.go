package screen

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCleanTakesAwayEveryControl(t *testing.T) {
	for in, want := range map[string]string{
		"order A-1, São Paulo 日本": "order A-1, São Paulo 日本",
		"\x1b[2Jgone":             `\x1b[2Jgone`,
		"a\nb\tc\r":               `a\x0ab\x09c\x0d`,
		"\u202egnp.exe":           `\u202egnp.exe`,
		"c1 \u009b31m":            `c1 \x9b31m`,
		"bad \xff utf8":           `bad \ufffd utf8`,
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestTableFitsTheLine(t *testing.T) {
	tab := Table{Most: []int{0, 8}}
	tab.Add("when", "what", "why")
	tab.Add("12:00", "charge.succeeded", strings.Repeat("long ", 40))
	tab.Add("1", "x", "\x1b[31mred")
	got := tab.Lines("  ")
	want := []string{
		"  when   what      why",
		"  12:00  charge.…  " + strings.Repeat("long ", 40)[:80] + "…",
		`  1      x         \x1b[31mred`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, line := range got {
		if n := len([]rune(line)); n > Width {
			t.Errorf("%d characters: %s", n, line)
		}
	}
}

func TestWholeTableCutsNothing(t *testing.T) {
	long := strings.Repeat("x", 3*Width)
	tab := Table{Most: []int{4}, Whole: true}
	tab.Add("charge.succeeded", long)
	if d := cmp.Diff([]string{"charge.succeeded  " + long}, tab.Lines("")); d != "" {
		t.Error(d)
	}
}

func TestWrap(t *testing.T) {
	got := Wrap("one two three averyveryverylongword end", 9)
	want := []string{"one two", "three", "averyver…", "end"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMoney(t *testing.T) {
	for _, c := range []struct{ minor, code, want string }{
		{"613770", "BRL", "6,137.70"}, {"4990", "brl", "49.90"}, {"5", "USD", "0.05"}, {"-5", "USD", "-0.05"},
		{"1234567", "JPY", "1,234,567"}, {"1234", "KWD", "1.234"}, {"0", "BRL", "0.00"},
		{"9223372036854775807", "BRL", "92,233,720,368,547,758.07"},
		{"49.90", "BRL", ""}, {"1", "XXY", ""}, {"", "BRL", ""}, {"null", "BRL", ""},
	} {
		got, ok := Money(c.minor, c.code)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("Money(%q, %q) = %q, %t, want %q", c.minor, c.code, got, ok, c.want)
		}
	}
}

func TestFields(t *testing.T) {
	data := `{"amount":4990,"captured":4990,"currency":"brl","dispute":"won","email":null,"order":"A\u001b-1",` +
		`"output":[1,2,3],"plans":{"a":1},"local":{"user":"u 1","n":12345678901234567890}}`
	var got []string
	for _, f := range Fields(json.RawMessage(data)) {
		got = append(got, fmt.Sprintf("%s=%s", f.Name, f.Value))
	}
	want := []string{"amount=49.90 BRL", "captured=49.90", "dispute=won", `order=A\x1b-1`, "output=[3, 7 bytes]", `plans={"a":1}`, "local.n=12345678901234567890", "local.user=u 1"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestColourIsOffUnlessAsked(t *testing.T) {
	if got := (Colour{}).Bad("x"); got != "x" {
		t.Errorf("got %q", got)
	}
	if got := (Colour{On: true}).Bad("x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("got %q", got)
	}
}
