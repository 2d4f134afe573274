package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const commit = "commit"

// begin opens a transaction with the settings that a commit relies on. READ
// COMMITTED is pinned: each statement must see what those that made it wait have
// committed. The rest is local to the transaction, so that it holds behind a
// pooler and does not stay with the session:
//   - without sequential scans, hash and merge joins a plan that was made while
//     the tables were empty is still right when they are large;
//   - a commit is flushed before it is answered, whatever the database's default;
//   - nothing holds locks for long, not even a process that has stopped.
func (s *Store) begin(p *pipeline) {
	p.add("begin isolation level read committed")
	in := p.input(1)
	in.text(milliseconds(s.config.StatementTimeout))
	in.text(milliseconds(s.config.LockTimeout))
	in.text(milliseconds(s.config.IdleInTransaction))
	p.send(query{one: `select set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
		set_config('synchronous_commit', case current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end, true),
		set_config('statement_timeout', $1::text, true), set_config('lock_timeout', $2::text, true),
		set_config('idle_in_transaction_session_timeout', $3::text, true)`}, in)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }

// runCommit runs the last pipeline of a transaction, whose last statement is the
// commit, and says whether its outcome is unknown if it fails. The driver's own
// word for what is safe to try again is not asked: it also calls a connection
// safe that was lost while the answer was awaited.
func (p *pipeline) runCommit(ctx context.Context, conn *pgx.Conn) (unknown bool, err error) {
	if conn.IsClosed() {
		return false, pgconn.ErrConnClosed
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if err := p.prepare(ctx, conn); err != nil {
		return false, err
	}
	answered, err := p.exchange(ctx, conn)
	if err == nil {
		return false, nil
	}
	var server *pgconn.PgError
	switch {
	case errors.As(err, &server):
		// An error of a statement is an answer. But a session that was ended while
		// it committed may have done so.
		return answered >= len(p.statements)-1 && !isPlain(server), err
	case errors.Is(err, errRefused), errors.Is(err, errNotCommitted):
		return false, err
	}
	return true, err
}

// isPlain reports whether the session lives on after the error.
func isPlain(err *pgconn.PgError) bool {
	if err.SeverityUnlocalized != "" {
		return err.SeverityUnlocalized == "ERROR"
	}
	return err.Severity == "ERROR"
}

// rollback ends a transaction that failed, on a connection that may be lost. It
// does so even if ctx has ended, and drops the connection rather than wait.
func rollback(ctx context.Context, conn *pgx.Conn) {
	if !conn.IsClosed() && !conn.PgConn().IsBusy() {
		if conn.PgConn().TxStatus() == 'I' {
			return
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if _, err := conn.Exec(limited, "rollback"); err == nil {
			return
		}
	}
	drop(ctx, conn)
}

// drop closes a connection that is of no use any more; the pool makes another.
func drop(ctx context.Context, conn *pgx.Conn) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = conn.Close(limited) // whatever it says, it is closed
	hangUp(conn)
}

// hangUp ends what is left of a connection that is closed: the driver would go on
// reading from it for 15 seconds, and keep the pool's place for as long.
func hangUp(conn *pgx.Conn) { _ = conn.PgConn().Conn().Close() }

func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoConnection, err)
	}
	return conn, nil
}

// tries is how often a transaction is begun that others got in the way of.
const tries = 6

// transact runs a transaction, anew while others get in its way, and translates
// its error. try says whether the outcome is unknown.
func (s *Store) transact(ctx context.Context, op string, try func(ctx context.Context, conn *pgx.Conn) (unknown bool, err error)) error {
	for n := 1; ; n++ {
		unknown, err := s.once(ctx, try)
		if n == tries || unknown || !s.isRetryable(err) {
			return s.translate(ctx, op, err, unknown)
		}
		s.retried.Add(1)
		if !s.pause(ctx, n) {
			return s.translate(ctx, op, err, false)
		}
	}
}

func (s *Store) once(ctx context.Context, try func(ctx context.Context, conn *pgx.Conn) (unknown bool, err error)) (unknown bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.budget())
	defer cancel()
	conn, err := s.acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	defer rollback(ctx, conn.Conn())
	unknown, err = try(ctx, conn.Conn())
	var server *pgconn.PgError
	if unknown || errors.As(err, &server) && isSpoilt(server.Code) {
		// Whatever is left on this connection is not to be mistaken for an answer
		// to somebody else; a server that has become a standby is to be left, since
		// the address may name the new primary; and statements that the server has
		// lost or finds changed are prepared anew on another connection.
		drop(ctx, conn.Conn())
	}
	return unknown, err
}

// pause waits before try n+1, longer each time, for as long as ctx lasts.
func (s *Store) pause(ctx context.Context, n int) bool {
	timer := time.NewTimer(time.Duration(s.jitter() * float64(int64(5*time.Millisecond)<<n)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// write runs statements as one transaction, in one round trip.
func (s *Store) write(ctx context.Context, op string, fill func(p *pipeline)) error {
	return s.transact(ctx, op, func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		p := s.pipeline()
		defer s.keep(p)
		s.begin(p)
		fill(p)
		p.add(commit)
		return p.runCommit(ctx, conn)
	})
}

// read runs one query outside any transaction and hands its rows to each.
func (s *Store) read(ctx context.Context, op, sql string, each func(pgx.Rows) error, args ...any) error {
	return s.translate(ctx, op, s.readRows(ctx, sql, each, args...), false)
}

func (s *Store) readRows(ctx context.Context, sql string, each func(pgx.Rows) error, args ...any) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, s.names.sql(sql), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
