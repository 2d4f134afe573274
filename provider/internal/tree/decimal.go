package tree

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"
)

// decimal is a number as 0.digits × 10^scale, exactly. Digits neither begin nor end with a zero; zero has none.
type decimal struct {
	negative bool
	digits   string
	scale    int64
	huge     *big.Int // the scale where 64 bits do not hold it for sure
}

// decimalOf reads a number that has been scanned before. It may also begin with a plus or with zeros, and have digits
// on one side of its point only.
func decimalOf(text string) decimal {
	var d decimal
	if text != "" && (text[0] == '-' || text[0] == '+') {
		d.negative, text = text[0] == '-', text[1:]
	}
	mantissa, exponent := text, ""
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], trimExponent(text[i+1:])
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	whole = strings.TrimLeft(whole, "0")
	digits := whole
	if fraction != "" {
		digits = whole + fraction
	}
	d.scale = int64(len(whole))
	if whole == "" {
		digits = strings.TrimLeft(digits, "0")
		d.scale = int64(len(digits) - len(fraction))
	}
	d.digits = strings.TrimRight(digits, "0")
	if d.digits == "" {
		return decimal{}
	}
	if len(exponent) <= 17 {
		if exponent != "" {
			n, _ := strconv.ParseInt(exponent, 10, 64) // "-" is 0
			d.scale += n
		}
		return d
	}
	d.huge, _ = new(big.Int).SetString(exponent, 10)
	d.huge.Add(d.huge, big.NewInt(d.scale))
	return d
}

// trimExponent drops what an exponent can do without: a plus and zeros in front.
func trimExponent(s string) string {
	if strings.HasPrefix(s, "-") {
		return "-" + strings.TrimLeft(s[1:], "0")
	}
	return strings.TrimLeft(strings.TrimPrefix(s, "+"), "0")
}

// compare returns -1, 0 or 1.
func (d decimal) compare(e decimal) int {
	if d.sign() != e.sign() || d.digits == "" {
		return cmp.Compare(d.sign(), e.sign())
	}
	c := d.compareScale(e)
	if c == 0 {
		c = strings.Compare(d.digits, e.digits)
	}
	return c * d.sign()
}

// sign returns -1, 0 or 1.
func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

func (d decimal) compareScale(e decimal) int {
	if d.huge == nil && e.huge == nil {
		return cmp.Compare(d.scale, e.scale)
	}
	return d.bigScale().Cmp(e.bigScale())
}

func (d decimal) bigScale() *big.Int {
	if d.huge != nil {
		return d.huge
	}
	return big.NewInt(d.scale)
}

// Scaling says how the scaling of a decimal ended.
type Scaling uint8

// The ends of Scaled.
const (
	Exact     Scaling = iota // the result is the number
	NotNumber                // the text writes no decimal number
	Inexact                  // the number has more digits after its point than places
	TooLarge                 // the result does not fit 64 bits
)

// Scaled returns the decimal number that text writes, times 10^places, as a whole number; exactly, or it says why not.
// The text may begin with a sign and with zeros and have an exponent.
func Scaled(text string, places int) (int64, Scaling) {
	if !isDecimal(text) {
		return 0, NotNumber
	}
	return decimalOf(text).whole(places)
}

// whole returns d times 10^places.
func (d decimal) whole(places int) (int64, Scaling) {
	if d.digits == "" {
		return 0, Exact
	}
	if d.huge != nil {
		if d.huge.Sign() > 0 {
			return 0, TooLarge
		}
		return 0, Inexact
	}
	length := d.scale + int64(places) // of the digits before the point
	switch {
	case length < int64(len(d.digits)):
		return 0, Inexact
	case length > 19:
		return 0, TooLarge
	}
	sign := ""
	if d.negative {
		sign = "-"
	}
	n, err := strconv.ParseInt(sign+d.digits+strings.Repeat("0", int(length)-len(d.digits)), 10, 64)
	if err != nil {
		return 0, TooLarge
	}
	return n, Exact
}

// Truncated returns the decimal number that text writes without what follows its point: Exact, or NotNumber or TooLarge.
func Truncated(text string) (int64, Scaling) {
	if !isDecimal(text) {
		return 0, NotNumber
	}
	d := decimalOf(text)
	if d.huge == nil && d.scale > 0 && d.scale < int64(len(d.digits)) {
		d.digits = d.digits[:d.scale]
	}
	n, how := d.whole(0)
	if how == Inexact { // less than 1
		return 0, Exact
	}
	return n, how
}

// isDecimal reports whether text is a sign or none, digits with at most one point among them, and an exponent or none.
func isDecimal(text string) bool {
	if text != "" && (text[0] == '-' || text[0] == '+') {
		text = text[1:]
	}
	mantissa, exponent := text, "0"
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], text[i+1:]
		if exponent != "" && (exponent[0] == '-' || exponent[0] == '+') {
			exponent = exponent[1:]
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	return whole+fraction != "" && allDigits(whole) && allDigits(fraction) && exponent != "" && allDigits(exponent)
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// wholeOf returns the whole number that a scanned number writes, if it fits 64 bits.
func wholeOf(text string) (int64, bool) {
	if n, ok := shortWhole(text); ok {
		return n, true
	}
	n, how := Scaled(text, 0)
	return n, how == Exact
}

// shortWhole reads a whole number of so few digits that it fits 64 bits for sure.
func shortWhole(text string) (n int64, ok bool) {
	digits := text
	if digits != "" && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	for i := range len(digits) {
		c := digits[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	if len(digits) < len(text) {
		n = -n
	}
	return n, true
}
