package expr

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/onceward/onceward/provider/internal/tree"
)

// ErrTooCostly is the cause of an Error whose evaluation was stopped because it did too much.
var ErrTooCostly = errors.New("the expression was stopped because it does too much")

// Error is one fault of an expression, found when it is compiled or when it is evaluated.
type Error struct {
	Offset int    // in bytes, in the source
	Msg    string // what is wrong; it holds nothing of the values
	Hint   string // the likely fix, "" if none is known

	cause error
}

// Error returns the message and the hint.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Msg
	}
	return e.Msg + "; " + e.Hint
}

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.cause }

// fault returns an error whose place the node that meets it fills in.
func fault(msg, hint string) *Error {
	return &Error{Offset: -1, Msg: msg, Hint: hint}
}

// placed returns err with the place filled in, if it has none.
func placed(err error, offset int) error {
	if err == nil {
		return nil
	}
	if e := (*Error)(nil); errors.As(err, &e) && e.Offset < 0 {
		e.Offset = offset
	}
	return err
}

// join returns the errors as one, in the order of the source; nil if there are none.
func join(errs []*Error) error {
	slices.SortStableFunc(errs, func(a, b *Error) int { return cmp.Compare(a.Offset, b.Offset) })
	errs = slices.CompactFunc(errs, func(a, b *Error) bool { return a.Offset == b.Offset && a.Msg == b.Msg })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	all := make([]error, len(errs))
	for i, e := range errs {
		all[i] = e
	}
	return errors.Join(all...)
}

// describe returns what v is, with its article, for messages.
func describe(v tree.Value) string {
	if v.Kind() == tree.Number {
		if _, whole := v.Int64(); whole {
			return "a whole number"
		}
		return "a decimal number"
	}
	return article(v.Kind().String())
}

func article(noun string) string {
	switch {
	case noun == "null":
		return noun
	case strings.ContainsRune("aeio", rune(noun[0])):
		return "an " + noun
	}
	return "a " + noun
}

// nearest returns the candidate that word was probably meant to be, "" if there is none.
func nearest(word string, candidates []string) string {
	best, least := "", utf8.RuneCountInString(word)/3
	for _, c := range candidates {
		if strings.EqualFold(c, word) {
			return c
		}
		if d := distance(word, c); d > 0 && d <= least && (best == "" || d < least) {
			best, least = c, d
		}
	}
	return best
}

// distance returns how many letters must be put in, left out, changed or swapped with the next to make b of a.
func distance(a, b string) int {
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		row[0] = i + 1
		for j := range y {
			same := 1
			if x[i] == y[j] {
				same = 0
			}
			row[j+1] = min(last[j]+same, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
