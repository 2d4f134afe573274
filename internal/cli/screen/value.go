package screen

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/bojanz/currency"
)

// Money returns a whole number of minor units as a decimal of the currency,
// grouped by thousands: Money("613770", "BRL") is "6,137.70". ok is false where
// minor is no whole number or the currency is not known.
func Money(minor, code string) (text string, ok bool) {
	n, whole := new(big.Int).SetString(minor, 10)
	digits, known := currency.GetDigits(strings.ToUpper(code))
	if !whole || !known {
		return "", false
	}
	s := new(big.Int).Abs(n).String()
	for len(s) <= int(digits) {
		s = "0" + s
	}
	head, tail := s[:len(s)-int(digits)], s[len(s)-int(digits):]
	for i := len(head) - 3; i > 0; i -= 3 {
		head = head[:i] + "," + head[i:]
	}
	if tail != "" {
		head += "." + tail
	}
	if n.Sign() < 0 {
		head = "-" + head
	}
	return head, true
}

// Field is a field of a row as people read it.
type Field struct{ Name, Value string }

// moneyFields are those that hold minor units of the row's currency.
var moneyFields = []string{"amount", "captured", "refunded", "fee", "disputed_amount", "payout"}

// Fields lists the fields of a row's data, money in its currency and first, what
// is long told by its size. local fields come last.
func Fields(data json.RawMessage) []Field {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return nil
	}
	code := Scalar(members["currency"])
	paired := false
	var out []Field
	for _, name := range moneyFields {
		text, ok := Money(string(members[name]), code)
		if !ok {
			continue
		}
		if !paired {
			text, paired = text+" "+strings.ToUpper(code), true
		}
		out = append(out, Field{name, text})
		delete(members, name)
	}
	if paired {
		delete(members, "currency")
	}
	var names []string
	for name := range members {
		if name != "local" && string(members[name]) != "null" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		out = append(out, Field{name, Scalar(members[name])})
	}
	var local map[string]json.RawMessage
	if json.Unmarshal(members["local"], &local) == nil {
		names = names[:0]
		for name := range local {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			out = append(out, Field{"local." + name, Scalar(local[name])})
		}
	}
	return out
}

// maxScalar bounds the characters of a value on the screen.
const maxScalar = 40

// Scalar returns a JSON value for people: the text of a string, a number or a
// truth value as they are, a list or object by its size, "-" for null and
// nothing.
func Scalar(v json.RawMessage) string {
	if len(v) == 0 || string(v) == "null" {
		return "-"
	}
	switch v[0] {
	case '"':
		var s string
		if json.Unmarshal(v, &s) == nil {
			return Cut(Clean(s), maxScalar)
		}
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(v, &list) == nil {
			return fmt.Sprintf("[%d, %d bytes]", len(list), len(v))
		}
	case '{':
		if len(v) <= maxScalar {
			return Clean(string(v))
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(v, &object) == nil {
			return fmt.Sprintf("{%d, %d bytes}", len(object), len(v))
		}
	}
	return Cut(Clean(string(v)), maxScalar)
}
