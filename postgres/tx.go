package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// statement is one step of a pipeline.
type statement struct {
	sql  string
	args []any
	// read takes the rows; nil drops them.
	read func(pgx.Rows) error
	// guard says that a division by zero here is a refusal; see errRefused.
	guard bool
}

// pipeline is sent in one go and answered in one round trip. What follows a
// statement that fails is not executed, a commit neither.
type pipeline []statement

func (p *pipeline) add(sql string, args ...any) {
	*p = append(*p, statement{sql: sql, args: args})
}

func (p *pipeline) query(sql string, read func(pgx.Rows) error, args ...any) {
	*p = append(*p, statement{sql: sql, args: args, read: read})
}

func (p *pipeline) guarded(sql string, args ...any) {
	*p = append(*p, statement{sql: sql, args: args, guard: true})
}

// run executes the pipeline. On an error it returns how many statements were
// answered before.
func (p pipeline) run(ctx context.Context, conn *pgx.Conn) (answered int, err error) {
	var b pgx.Batch
	for _, s := range p {
		b.Queue(s.sql, s.args...)
	}
	results := conn.SendBatch(ctx, &b)
	for i, s := range p {
		if err := s.answer(results); err != nil {
			_ = results.Close() // what it says is that it follows from err
			return i, err
		}
	}
	return len(p), results.Close()
}

func (s statement) answer(results pgx.BatchResults) error {
	rows, err := results.Query()
	if err != nil {
		return s.refusal(err)
	}
	defer rows.Close()
	if s.read != nil {
		if err := s.read(rows); err != nil {
			return s.refusal(err)
		}
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return s.refusal(err)
	}
	if s.sql == commit && rows.CommandTag().String() != "COMMIT" {
		return errNotCommitted
	}
	return nil
}

// refusal recognises the guard by which statement it is that failed: dividing by
// zero is all that it can do wrong.
func (s statement) refusal(err error) error {
	var server *pgconn.PgError
	if s.guard && errors.As(err, &server) && server.Code == codeDivisionByZero {
		return errRefused
	}
	return err
}

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
	ms := func(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
	p.add(`select set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
		set_config('synchronous_commit', case current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end, true),
		set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true),
		set_config('idle_in_transaction_session_timeout', $3, true)`,
		ms(s.config.StatementTimeout), ms(s.config.LockTimeout), ms(s.config.IdleInTransaction))
}

// runCommit runs the last pipeline of a transaction, whose last statement is the
// commit, and says whether its outcome is unknown if it fails. The driver's own
// word for what is safe to try again is not asked: it also calls a connection
// safe that was lost while the answer was awaited.
func (p pipeline) runCommit(ctx context.Context, conn *pgx.Conn) (unknown bool, err error) {
	if conn.IsClosed() {
		return false, pgconn.ErrConnClosed
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	answered, err := p.run(ctx, conn)
	if err == nil {
		return false, nil
	}
	var server *pgconn.PgError
	switch {
	case errors.As(err, &server):
		// An error of a statement is an answer. But a session that was ended while
		// it committed may have done so.
		return answered >= len(p)-1 && !isPlain(server), err
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
// The driver would go on reading from it for 15 seconds, and keep the pool's
// place for as long.
func drop(ctx context.Context, conn *pgx.Conn) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = conn.Close(limited) // whatever it says, it is closed
	_ = conn.PgConn().Conn().Close()
}

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
	if unknown || errors.As(err, &server) && server.Code == codeReadOnly {
		// Whatever is left on this connection is not to be mistaken for an answer
		// to somebody else; and a server that has become a standby is to be left,
		// since the address may name the new primary.
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
		var p pipeline
		s.begin(&p)
		fill(&p)
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
