package onceward

import (
	"errors"
	"fmt"
	"time"
)

// What callers branch on. A store wraps its own errors with one of these; any
// other error of a store means that the store is at fault and nothing of the
// call was kept.
var (
	// ErrNotFound says that there is no such event, entity or job.
	ErrNotFound = errors.New("not found")
	// ErrUnknownOutcome says that a commit was sent and its outcome is not
	// known: the connection broke before the answer. The work may or may not be
	// kept, so nobody may be told that it is; doing it again is safe.
	ErrUnknownOutcome = errors.New("the outcome of the commit is unknown")
	// ErrUnavailable says that the store cannot take work right now: it is down,
	// locked, full or read-only. Trying later may help.
	ErrUnavailable = errors.New("the store is not available")
	// ErrSchemaNewer says that the tables were made by a newer program.
	ErrSchemaNewer = errors.New("the schema is newer than this program; start a newer one")
	// ErrStaleToken says that a job's lease was lost: another worker has it.
	ErrStaleToken = errors.New("the lease of the job has passed to another worker")
	// ErrAmbiguous says that a key names rows of several scopes.
	ErrAmbiguous = errors.New("the key names rows of several scopes; name the scope")
)

// Permanent marks err as one that no further attempt can mend: the job is dead
// at once instead of being tried again. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// IsPermanent reports whether err, or an error it wraps, came from [Permanent].
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

// RetryAfter asks that the job be tried again no earlier than after d, in place
// of the usual backoff. RetryAfter(d, nil) is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{d, err}
}

type retryAfterError struct {
	after time.Duration
	err   error
}

func (e *retryAfterError) Error() string { return fmt.Sprintf("%v (again after %v)", e.err, e.after) }
func (e *retryAfterError) Unwrap() error { return e.err }

// RetryDelay returns the delay that [RetryAfter] put on err, if it did.
func RetryDelay(err error) (time.Duration, bool) {
	if r, ok := errors.AsType[*retryAfterError](err); ok {
		return r.after, true
	}
	return 0, false
}
