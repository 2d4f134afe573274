package onceward

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Value is a JSON value as a sender told it: compact JSON text, numbers with
// their digits as told, so that 64-bit identifiers and decimals survive. It is
// immutable and comparable only through [Value.Equal]. The zero Value means
// that nothing was told, which is not the same as [Null].
type Value struct{ json string }

// Null is the JSON null: told, and told to be nothing.
var Null = Value{"null"}

// String returns the Value of a text. Bytes that are not UTF-8 become U+FFFD.
func String(s string) Value {
	return Value{string(appendQuoted(nil, s))}
}

// appendQuoted appends the JSON string of a text.
func appendQuoted(dst []byte, s string) []byte {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			plain = false
			break
		}
	}
	if plain {
		dst = append(dst, '"')
		dst = append(dst, s...)
		return append(dst, '"')
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // a Go string always marshals
		panic(err)
	}
	return append(dst, bytes.TrimRight(buf.Bytes(), "\n")...)
}

// Int returns the Value of a whole number.
func Int(n int64) Value { return Value{strconv.FormatInt(n, 10)} }

// Bool returns the Value of a truth value.
func Bool(b bool) Value { return Value{strconv.FormatBool(b)} }

// JSON returns the Value that the JSON text stands for. Bytes inside a string
// that are not UTF-8 become U+FFFD. It fails when the text is not one whole JSON
// value.
func JSON(text []byte) (Value, error) {
	var buf bytes.Buffer
	if err := json.Compact(&buf, text); err != nil {
		return Value{}, fmt.Errorf("value: %w", err)
	}
	return Value{strings.ToValidUTF8(buf.String(), "\uFFFD")}, nil
}

// TrustedJSON returns the Value of text that the caller knows to be one whole,
// compact JSON value, such as one read back from a store. It checks nothing.
func TrustedJSON(text string) Value { return Value{text} }

// IsZero reports whether nothing was told.
func (v Value) IsZero() bool { return v.json == "" }

// IsNull reports whether v is the JSON null.
func (v Value) IsNull() bool { return v.json == "null" }

// JSON returns the compact JSON text, "" for the zero Value.
func (v Value) JSON() string { return v.json }

// Text returns the text of a JSON string, unescaped, and whether v is one.
func (v Value) Text() (string, bool) {
	if len(v.json) < 2 || v.json[0] != '"' {
		return "", false
	}
	inner := v.json[1 : len(v.json)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return inner, true
	}
	var s string
	if err := json.Unmarshal([]byte(v.json), &s); err != nil {
		return "", false
	}
	return s, true
}

// Int64 returns the whole number that v is, and whether it is one that fits in
// 64 bits. 3.0 and 3e0 are whole numbers too.
func (v Value) Int64() (int64, bool) {
	if !v.isNumber() {
		return 0, false
	}
	if n, err := strconv.ParseInt(v.json, 10, 64); err == nil {
		return n, true
	}
	d := parseDecimal(v.json)
	return d.int64()
}

// Bool returns the truth value that v is, and whether it is one.
func (v Value) Bool() (value, ok bool) {
	return v.json == "true", v.json == "true" || v.json == "false"
}

func (v Value) isNumber() bool {
	return v.json != "" && (v.json[0] == '-' || v.json[0] >= '0' && v.json[0] <= '9')
}

// String returns the value for people: the text of a string, else its JSON.
func (v Value) String() string {
	if s, ok := v.Text(); ok {
		return s
	}
	return v.json
}

// MarshalJSON returns the JSON text; the zero Value is written as null.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.json == "" {
		return []byte("null"), nil
	}
	return []byte(v.json), nil
}

// UnmarshalJSON sets v to the JSON text it is given.
func (v *Value) UnmarshalJSON(text []byte) error {
	u, err := JSON(text)
	if err != nil {
		return err
	}
	*v = u
	return nil
}

// Equal reports whether two values are the same. Numbers are compared as
// numbers, so 49.90 equals 49.9, and texts without regard to how they were
// escaped; lists and objects by their compact JSON.
func (v Value) Equal(w Value) bool {
	if v.json == w.json {
		return true
	}
	if v.isNumber() && w.isNumber() {
		return parseDecimal(v.json).compare(parseDecimal(w.json)) == 0
	}
	a, isText := v.Text()
	b, alsoText := w.Text()
	return isText && alsoText && a == b
}

// key returns a text that two values share if, and only if, they are Equal.
func (v Value) key() string {
	if v.isNumber() {
		d := parseDecimal(v.json)
		return fmt.Sprintf("%t %s %d", d.negative, d.digits, d.exponent)
	}
	if text, ok := v.Text(); ok {
		return "\"" + text
	}
	return v.json
}

// Compare orders any two values, for fields of mode max: nothing, null, truth
// values, numbers (as numbers), texts, then lists and objects by their text.
func (v Value) Compare(w Value) int {
	if c := v.class() - w.class(); c != 0 {
		return c
	}
	if v.isNumber() {
		return parseDecimal(v.json).compare(parseDecimal(w.json))
	}
	if a, ok := v.Text(); ok {
		b, _ := w.Text()
		return strings.Compare(a, b)
	}
	return strings.Compare(v.json, w.json)
}

func (v Value) class() int {
	if v.json == "" {
		return 0
	}
	switch v.json[0] {
	case 'n':
		return 1
	case 't', 'f':
		return 2
	case '"':
		return 4
	case '[':
		return 5
	case '{':
		return 6
	default:
		return 3
	}
}

// sumValues adds whole numbers exactly; what is not a whole number counts as
// nothing, and the language refuses it before it gets here.
func sumValues(values []Value) Value {
	var small int64
	var large *big.Int
	for _, v := range values {
		n, ok := v.Int64()
		if !ok {
			continue
		}
		if large == nil {
			sum := small + n
			if (sum > small) == (n > 0) {
				small = sum
				continue
			}
			large = big.NewInt(small)
		}
		large.Add(large, big.NewInt(n))
	}
	if large != nil {
		return Value{large.String()}
	}
	return Int(small)
}
