package onceward

import (
	"cmp"
	"strconv"
	"strings"
)

// decimal is a JSON number taken apart: digits without leading or trailing
// zeros, and the power of ten of the first digit. 0.0 has no digits. Its size
// is that of the text, so 1e999999999 costs nothing.
type decimal struct {
	negative bool
	digits   string
	exponent int64 // value is 0.DIGITS times 10 to this power
}

func parseDecimal(text string) decimal {
	var d decimal
	mantissa := text
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa = text[:i]
		d.exponent = clampExponent(text[i+1:])
	}
	if strings.HasPrefix(mantissa, "-") {
		d.negative, mantissa = true, mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d.exponent += int64(len(whole))
	digits := whole + fraction
	trimmed := strings.TrimLeft(digits, "0")
	d.exponent -= int64(len(digits) - len(trimmed))
	d.digits = strings.TrimRight(trimmed, "0")
	if d.digits == "" {
		return decimal{}
	}
	return d
}

// clampExponent reads an exponent; one beyond any sense is cut to a bound that
// still sorts above, or below, every number somebody could mean.
func clampExponent(text string) int64 {
	const bound = 1 << 40
	n, err := strconv.ParseInt(strings.TrimPrefix(text, "+"), 10, 64)
	switch {
	case err != nil && strings.HasPrefix(text, "-"), n < -bound:
		return -bound
	case err != nil, n > bound:
		return bound
	}
	return n
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

func (d decimal) compare(e decimal) int {
	if s, t := d.sign(), e.sign(); s != t || s == 0 {
		return s - t
	}
	c := cmp.Compare(d.exponent, e.exponent)
	if c == 0 {
		c = strings.Compare(d.digits, e.digits) // no trailing zeros, so prefix order is number order
	}
	if d.negative {
		return -c
	}
	return c
}

func (d decimal) int64() (int64, bool) {
	if d.digits == "" {
		return 0, true
	}
	zeros := d.exponent - int64(len(d.digits))
	if zeros < 0 || d.exponent > 19 {
		return 0, false
	}
	text := d.digits + strings.Repeat("0", int(zeros))
	if d.negative {
		text = "-" + text
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}
