package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/onceward/onceward"
)

var (
	// errRefused is a refusal of the guard: a row or a held fact is not what it
	// was when it was read.
	errRefused = errors.New("a row was written by somebody else since it was read")
	// errNoConnection says that the pool gave none.
	errNoConnection = errors.New("no connection to the server")
	// errNotCommitted says that the server rolled back what was to be committed.
	errNotCommitted = errors.New("the server rolled the transaction back")
)

// SQLSTATE codes that mean something to us.
const (
	codePlanChanged          = "0A000"
	codeDivisionByZero       = "22012"
	codeReadOnly             = "25006"
	codeIdleInTransaction    = "25P03"
	codeUniqueViolation      = "23505"
	codeNoSuchStatement      = "26000"
	codeSerializationFailure = "40001"
	codeDeadlock             = "40P01"
	codeInsufficientRight    = "42501"
	codeStatementExists      = "42P05"
	codeLockNotAvailable     = "55P03"
	codeQueryCanceled        = "57014"
)

// translate is where the driver's errors become the store's. ctx is the
// caller's, without deadlines of ours. unknown says that a commit may have been
// sent and was not answered.
func (s *Store) translate(ctx context.Context, op string, err error, unknown bool) error {
	var server *pgconn.PgError
	isServer := errors.As(err, &server)
	switch {
	case err == nil:
		return nil
	case unknown:
		return fmt.Errorf("postgres: %s: %w: %w", op, onceward.ErrUnknownOutcome, err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("postgres: %s: %w: %w: %w", op, onceward.ErrUnavailable, ctx.Err(), err)
	case ctx.Err() != nil:
		return fmt.Errorf("postgres: %s: %w: %w", op, ctx.Err(), err)
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("postgres: %s: %w", op, onceward.ErrNotFound)
	case isServer && (server.Code == codeNoSuchStatement || server.Code == codeStatementExists):
		return fmt.Errorf("postgres: %s: a pooler gives each transaction another session; set default_query_exec_mode=cache_describe in the address: %w", op, err)
	case isServer && server.Code == codeInsufficientRight && op == opMigrate:
		return fmt.Errorf("postgres: %s: the role may not create tables: grant it CREATE on schema %q, or apply what `onceward migrate --print` shows as another role and grant this one the tables: %w", op, s.names.schema, err)
	case isConnection(err), isServer && isUnavailable(server.Code), s.isRetryable(err):
		return fmt.Errorf("postgres: %s: %w: %w", op, onceward.ErrUnavailable, err)
	}
	return fmt.Errorf("postgres: %s: %w", op, err)
}

const opMigrate = "migrate"

// isRetryable reports whether the same transaction, begun anew, may succeed. An
// event's id and a job's identity are the batch's own: they clash again. Claims,
// rows and facts are what another transaction may just have written.
func (s *Store) isRetryable(err error) bool {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return errors.Is(err, errRefused)
	}
	switch server.Code {
	case codeSerializationFailure, codeDeadlock:
		return true
	case codeUniqueViolation:
		return server.ConstraintName != s.names.prefix+"events_pkey" && server.ConstraintName != s.names.prefix+"jobs_pkey"
	}
	return false
}

// isSpoilt reports whether a code means that the connection is of no more use,
// though the server lives.
func isSpoilt(code string) bool {
	return code == codeReadOnly || code == codeNoSuchStatement || code == codePlanChanged
}

// isUnavailable reports whether a code means that the server cannot work now:
// connection trouble, out of resources, shutting down, read-only, or a time limit
// that passed.
func isUnavailable(code string) bool {
	switch code {
	case codeLockNotAvailable, codeQueryCanceled, codeReadOnly, codeIdleInTransaction:
		return true
	}
	for _, class := range []string{"08", "53", "57P", "58"} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	return false
}

// isConnection reports whether the connection failed, could not be made, or did
// not answer before a deadline of the store's own.
func isConnection(err error) bool {
	var network net.Error
	var connect *pgconn.ConnectError
	if errors.As(err, &network) || errors.As(err, &connect) || pgconn.Timeout(err) {
		return true
	}
	for _, known := range []error{
		errNoConnection, errNotCommitted, context.DeadlineExceeded,
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}
