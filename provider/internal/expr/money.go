package expr

import (
	"strings"

	"github.com/bojanz/currency"

	"github.com/onceward/onceward/provider/internal/tree"
)

// digitsOf returns how many decimals a currency has, by ISO 4217; the case of its letters does not matter.
func digitsOf(code tree.Value) (int, error) {
	text, err := textArg(code)
	if err != nil {
		return 0, err
	}
	digits, ok := currency.GetDigits(strings.ToUpper(text))
	if !ok {
		return 0, fault("there is no such currency", "currencies are written by their ISO 4217 code, like BRL")
	}
	return int(digits), nil
}

// minor is minor(x, currency).
func minor(_ *frame, args []tree.Value) (tree.Value, error) {
	digits, err := digitsOf(args[1])
	if err != nil {
		return tree.Value{}, err
	}
	return minorUnits(args[0], digits)
}

// prepareMinor looks a literal currency up once.
func prepareMinor(args []*tree.Value) (impl, error) {
	if !isText(args[1]) {
		return minor, nil
	}
	digits, err := digitsOf(*args[1])
	if err != nil {
		return nil, err
	}
	return func(_ *frame, args []tree.Value) (tree.Value, error) { return minorUnits(args[0], digits) }, nil
}

// minorUnits returns a decimal, a number or a text, in units of 10^-digits, exactly.
func minorUnits(v tree.Value, digits int) (tree.Value, error) {
	if v.Kind() != tree.Number && v.Kind() != tree.String {
		return tree.Value{}, fault("minor(x, currency) takes a number or its text, not "+describe(v), "")
	}
	text, _ := v.Text()
	n, how := tree.Scaled(text, digits)
	switch how {
	case tree.Exact:
		return tree.IntOf(n), nil
	case tree.Inexact:
		return tree.Value{}, fault("the amount has more decimals than its currency", "")
	case tree.TooLarge:
		return tree.Value{}, fault("the amount does not fit 64 bits", "")
	}
	hint := `it is written like 49.90; x.replace(",", ".") makes one of 49,90`
	return tree.Value{}, fault("the text is not a decimal number", hint)
}
