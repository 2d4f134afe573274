package verify

import (
	"strconv"
	"strings"
	"time"

	"github.com/onceward/onceward/provider/internal/tree"
)

// Unix times are told apart by size: seconds below the year 5138, milliseconds
// from March 1973.
const (
	minMillis = 100_000_000_000
	endMillis = 100_000_000_000_000
)

type timeForm uint8

const (
	formSeconds timeForm = iota
	formMillis
	formRFC3339
)

// parseInstant reads a timestamp: Unix seconds or milliseconds as plain digits, or
// RFC 3339.
func parseInstant(text string) (time.Time, timeForm, bool) {
	if text != "" && strings.Trim(text, "0123456789") == "" {
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil || n >= endMillis:
			return time.Time{}, 0, false
		case n >= minMillis:
			return time.UnixMilli(n).UTC(), formMillis, true
		}
		return time.Unix(n, 0).UTC(), formSeconds, true
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, 0, false
	}
	return t.UTC(), formRFC3339, true
}

// formatInstant writes t in a form.
func formatInstant(t time.Time, form timeForm) string {
	switch form {
	case formMillis:
		return strconv.FormatInt(t.UnixMilli(), 10)
	case formRFC3339:
		return t.UTC().Format(time.RFC3339)
	default:
		return strconv.FormatInt(t.Unix(), 10)
	}
}

// timestampText is the text of an expression's value as it goes into `signed`.
func timestampText(v tree.Value) (string, bool) {
	if v.IsNull() {
		return "", true
	}
	return v.Text()
}

// withinTolerance checks when something was signed against now; exactly the
// tolerance is within it. A tolerance of 0 is no check.
func withinTolerance(now, signed time.Time, tolerance time.Duration) *Rejected {
	if tolerance == 0 {
		return nil
	}
	at := signed.UTC().Format(time.RFC3339)
	// Compared as instants: a difference far from now would not fit a Duration.
	if signed.Before(now.Add(-tolerance)) {
		return reject(ReasonExpired, "signed at %s, which is longer ago than the tolerance of %s; resend it, or mend this machine's clock", at, tolerance)
	}
	if signed.After(now.Add(tolerance)) {
		return reject(ReasonFuture, "signed at %s, which is further ahead than the tolerance of %s; mend this machine's clock", at, tolerance)
	}
	return nil
}
