package verify

import (
	"fmt"
	"slices"
)

// Reason says, in one stable word, why a delivery was rejected. The words are
// labels of metrics and part of what the API shows.
type Reason string

// The reasons, from the least to the most informative: of several entries of a
// `verify` list, the one that got furthest is reported.
const (
	// ReasonUnreadable: an expression that the check needs failed, as when a list
	// stands in the body where a text should.
	ReasonUnreadable Reason = "unreadable"
	// ReasonMissing: the request carries no signature, token or timestamp.
	ReasonMissing Reason = "missing"
	// ReasonEncoding: the Content-Encoding is not known, or the body is not what
	// it says, or too large once decoded.
	ReasonEncoding Reason = "encoding"
	// ReasonMalformed: a signature or a timestamp is there and cannot be read, or
	// a limit was passed.
	ReasonMalformed Reason = "malformed"
	// ReasonKeyUnknown: no secret or key is there to check this signature with.
	ReasonKeyUnknown Reason = "key-unknown"
	// ReasonDiffers: no secret or key of the source made this signature.
	ReasonDiffers Reason = "differs"
	// ReasonExpired: rightly signed, longer ago than the tolerance.
	ReasonExpired Reason = "expired"
	// ReasonFuture: rightly signed, further ahead than the tolerance.
	ReasonFuture Reason = "future"
	// ReasonRequire: rightly signed, and the `require` of the file does not hold.
	ReasonRequire Reason = "require"
)

// Reasons returns every reason, from the least to the most informative.
func Reasons() []Reason {
	return []Reason{
		ReasonUnreadable, ReasonMissing, ReasonEncoding, ReasonMalformed, ReasonKeyUnknown,
		ReasonDiffers, ReasonExpired, ReasonFuture, ReasonRequire,
	}
}

// rank is the position among Reasons, -1 for a reason that is none of them.
func (r Reason) rank() int { return slices.Index(Reasons(), r) }

// Rejected says why a delivery was not accepted. It is the only error that
// [Verifier.Verify] returns.
type Rejected struct {
	Reason Reason
	// Detail is one sentence for people. It names headers and parameters of the
	// file, and never holds a secret, a signature, a token or a part of the body.
	Detail string
	// Entry is the position of the entry under `verify` that is reported, from 0,
	// and Scheme its scheme.
	Entry  int
	Scheme string
}

// Error implements error.
func (r *Rejected) Error() string {
	return "verify: " + string(r.Reason) + ": " + r.Detail
}

func reject(reason Reason, format string, args ...any) *Rejected {
	return &Rejected{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// furthest returns the more informative of two rejections, the first of equals.
func furthest(a, b *Rejected) *Rejected {
	if a == nil || (b != nil && b.Reason.rank() > a.Reason.rank()) {
		return b
	}
	return a
}
