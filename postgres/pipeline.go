package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// statement is one step of a pipeline. Its parameters are either args, which the
// driver encodes, or those of the pipeline from first to last.
type statement struct {
	sql         string
	args        []any
	first, last int
	// read or scan takes the rows; without either they are dropped.
	read func(pgx.Rows) error
	scan func(*answer)
	// guard says that a division by zero here is a refusal; see errRefused.
	guard bool

	prepared *pgconn.StatementDescription // if statements are named
}

// pipeline is sent in one go and answered in one round trip. What follows a
// statement that fails is not executed, a commit neither.
type pipeline struct {
	statements []statement
	params
	// named says that statements are prepared under names, once a connection.
	named bool
}

// most is how many bytes of parameters a pipeline that is kept may hold on to.
const most = 1 << 20

// pipeline returns an empty one; keep puts it back for the next who needs one.
func (s *Store) pipeline() *pipeline {
	if p, ok := s.pipelines.Get().(*pipeline); ok {
		return p
	}
	return &pipeline{named: s.named}
}

func (s *Store) keep(p *pipeline) {
	p.reset()
	if cap(p.buf) <= most {
		s.pipelines.Put(p)
	}
}

func (p *pipeline) reset() {
	clear(p.statements)
	p.statements, p.buf, p.each = p.statements[:0], p.buf[:0], p.each[:0]
}

func (p *pipeline) add(sql string, args ...any) {
	p.statements = append(p.statements, statement{sql: sql, args: args})
}

func (p *pipeline) query(sql string, read func(pgx.Rows) error, args ...any) {
	p.statements = append(p.statements, statement{sql: sql, args: args, read: read})
}

// send adds a statement whose parameters in has added, to be answered by nothing.
func (p *pipeline) send(q query, in input) { p.scan(q, in, nil) }

// scan adds a statement whose parameters in has added, and what takes its rows.
func (p *pipeline) scan(q query, in input, scan func(*answer)) {
	p.statements = append(p.statements, statement{sql: q.of(in.rows), first: in.first, last: len(p.each), scan: scan})
}

// guarded adds a statement that fails the transaction by dividing by zero.
func (p *pipeline) guarded(q query, in input) {
	p.scan(q, in, nil)
	p.statements[len(p.statements)-1].guard = true
}

// prepare prepares the statements that this connection does not know yet, in a
// round trip of its own.
func (p *pipeline) prepare(ctx context.Context, conn *pgx.Conn) error {
	if !p.named {
		return nil
	}
	known := sessionOf(conn)
	missing := 0
	for i := range p.statements {
		st := &p.statements[i]
		if st.prepared = known.prepared[st.sql]; st.prepared == nil {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	if err := known.prepare(ctx, conn, p.statements); err != nil {
		return err
	}
	for i := range p.statements {
		p.statements[i].prepared = known.prepared[p.statements[i].sql]
	}
	return nil
}

// run prepares what is missing and executes the pipeline.
func (p *pipeline) run(ctx context.Context, conn *pgx.Conn) error {
	if err := p.prepare(ctx, conn); err != nil {
		return err
	}
	_, err := p.exchange(ctx, conn)
	return err
}

// exchange is run without its preparation. On an error it returns how many
// statements were answered before.
func (p *pipeline) exchange(ctx context.Context, conn *pgx.Conn) (answered int, err error) {
	line := conn.PgConn().StartPipeline(ctx)
	if err := p.put(line, conn); err != nil {
		_ = line.Close() // closes the connection, on which half of it may be
		return 0, err
	}
	if err := line.Sync(); err != nil {
		_ = line.Close()
		return 0, err
	}
	for i := range p.statements {
		if err := p.statements[i].answer(line, conn.TypeMap()); err != nil {
			_ = line.Close() // what it says is that it follows from err
			return i, err
		}
	}
	return len(p.statements), line.Close()
}

// put hands the statements to the driver.
func (p *pipeline) put(line *pgconn.Pipeline, conn *pgx.Conn) error {
	sessionOf(conn).reserve(conn, len(p.buf)+16*len(p.each)+128*len(p.statements))
	binary := []int16{pgx.BinaryFormatCode}
	var driver pgx.ExtendedQueryBuilder
	var values [][]byte
	var oids []uint32
	for i := range p.statements {
		st := &p.statements[i]
		values, oids = values[:0], oids[:0]
		for j := st.first; j < st.last; j++ {
			values, oids = append(values, p.value(j)), append(oids, p.each[j].oid)
		}
		formats := binary
		if len(st.args) > 0 {
			if err := driver.Build(conn.TypeMap(), st.prepared, st.args); err != nil {
				return fmt.Errorf("encode the parameters of a statement: %w", err)
			}
			values, formats = driver.ParamValues, driver.ParamFormats
		}
		if p.named {
			line.SendQueryStatement(st.prepared, values, formats, binary)
		} else {
			line.SendQueryParams(st.sql, values, oids, formats, binary)
		}
	}
	return nil
}

// errUnanswered is a connection that ended in the middle of an answer.
var errUnanswered = fmt.Errorf("the server did not answer all that it was sent: %w", io.ErrUnexpectedEOF)

func (st *statement) answer(line *pgconn.Pipeline, types *pgtype.Map) error {
	results, err := line.GetResults()
	if err != nil {
		return st.refusal(err)
	}
	result, ok := results.(*pgconn.ResultReader)
	if !ok {
		return errUnanswered
	}
	a := answer{rows: result}
	switch {
	case st.scan != nil:
		st.scan(&a)
	case st.read != nil:
		a.err = st.read(pgx.RowsFromResultReader(types, result))
	}
	tag, err := result.Close()
	switch {
	case err != nil:
		return st.refusal(err)
	case a.err != nil: // after the server's own word, which may be why
		return a.err
	}
	if st.sql == commit && tag.String() != "COMMIT" {
		return errNotCommitted
	}
	return nil
}

// refusal recognises the guard by which statement it is that failed: dividing by
// zero is all that it can do wrong.
func (st *statement) refusal(err error) error {
	var server *pgconn.PgError
	if st.guard && errors.As(err, &server) && server.Code == codeDivisionByZero {
		return errRefused
	}
	return err
}
