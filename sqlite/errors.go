package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	modernc "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/onceward/onceward"
)

var (
	// errGuard says that a row was not what it was when it was read.
	errGuard = errors.New("the row was written by somebody else since it was read")
	// errInTransaction says that the application has begun a transaction by hand,
	// on a connection that its pool then handed to the store.
	errInTransaction = errors.New("the connection is in a transaction of the application's: use db.BeginTx and end it, not a statement `begin`; or give the pool more than one connection")
	// errClosed is what every method of a closed store returns.
	errClosed = fmt.Errorf("%w: the store is closed", onceward.ErrUnavailable)
	// errReadOnly is what everything that writes returns where it may not.
	errReadOnly = fmt.Errorf("%w: the store was opened for reading", onceward.ErrUnavailable)
)

// code returns SQLite's primary result code, 0 if err is not SQLite's.
func code(err error) int {
	if e, ok := errors.AsType[*modernc.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// translate wraps an error with the operation's name and, where one fits, a
// sentinel of package onceward. All errors of a Store pass through here. An
// unknown outcome is never called unavailable as well, whatever its cause.
func translate(operation string, err error) error {
	if err == nil {
		return nil
	}
	unknown := errors.Is(err, onceward.ErrUnknownOutcome)
	advice := adviceOn(err)
	switch {
	case unknown && advice != "":
		return fmt.Errorf("sqlite: %s: %w (%s)", operation, err, advice)
	case unknown:
	case advice != "":
		return fmt.Errorf("sqlite: %s: %w: %s: %w", operation, onceward.ErrUnavailable, advice, err)
	case errors.Is(err, sql.ErrConnDone), errors.Is(err, errGuard), errors.Is(err, errInTransaction), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("sqlite: %s: %w: %w", operation, onceward.ErrUnavailable, err)
	}
	return fmt.Errorf("sqlite: %s: %w", operation, err)
}

// adviceOn says what to do about what may pass by itself, "" about the rest.
func adviceOn(err error) string {
	switch code(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
		return "another process holds the database; one writing process is best"
	case lib.SQLITE_FULL:
		return "no space is left for the database; free some, nothing needs to be restarted"
	case lib.SQLITE_READONLY:
		return "the database may not be written; check the rights of the file and of its folder"
	case lib.SQLITE_CANTOPEN:
		return "the file cannot be opened; check that its folder exists and the rights of both"
	case lib.SQLITE_IOERR:
		return "the disk failed; check it and the space on it"
	case lib.SQLITE_NOMEM:
		return "no memory is left"
	}
	return ""
}
