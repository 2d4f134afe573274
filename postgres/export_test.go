package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onceward/onceward"
)

// Refused is the guard's error, Translate the boundary.
var (
	Refused   = errRefused
	Translate = (&Store{}).translate
)

// OpenPool opens a store on a pool of its own that the test has configured.
func OpenPool(ctx context.Context, pc *pgxpool.Config, cfg Config) (*Store, error) {
	return openPool(ctx, pc, cfg)
}

// ExecMode returns how the store's pool executes statements.
func (s *Store) ExecMode() pgx.QueryExecMode {
	return s.pool.Config().ConnConfig.DefaultQueryExecMode
}

// Pool returns the store's pool.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Retried returns how many transactions were begun anew.
func (s *Store) Retried() int64 { return s.retried.Load() }

// Between sets what happens between the two round trips of a commit.
func (s *Store) Between(f func()) { s.between = f }

// WithoutLocks makes commits create missing rows and lock none.
func (s *Store) WithoutLocks() {
	s.sql.lockRows = s.sql.lockRows.replace(" for no key update of r", "")
}

// WithoutRaise makes the guard refuse without an error.
func (s *Store) WithoutRaise() {
	s.sql.updateRows = s.sql.updateRows.replace("select 1 / (case when count(*) = $13::bigint then 1 else 0 end)", "select count(*), $13::bigint")
}

func (q query) replace(old, with string) query {
	if !strings.Contains(q.one, old) {
		panic("the statement has no " + old)
	}
	return query{strings.Replace(q.one, old, with, 1), strings.Replace(q.many, old, with, 1)}
}

// OnOverlap makes commits find out whether others got in between: a claim or a
// row that they read was written by a transaction which had not ended when they
// began to claim and to lock. found is called for each commit that was.
func (s *Store) OnOverlap(found func()) {
	s.first = func(p *pipeline, claims []onceward.ID, rows []onceward.EntityRow) {
		before := statement{sql: `select set_config('onceward.before', pg_current_snapshot()::text, true)`}
		p.statements = slices.Insert(p.statements, 2, before) // behind begin and the settings
		const others = ` where id = any($%::uuid[]) and xmin::text <> pg_current_xact_id_if_assigned()::text
			and not pg_visible_in_snapshot(xmin::text::xid8, current_setting('onceward.before')::pg_snapshot))`
		sql := `select exists (select from {claims}` + strings.Replace(others, "%", "1", 1) + ` or exists (select from {rows}` + strings.Replace(others, "%", "2", 1)
		ids, rowIDs := make([]pgtype.UUID, len(claims)), make([]pgtype.UUID, len(rows))
		for i, id := range claims {
			ids[i] = uuid(id)
		}
		for i, r := range rows {
			rowIDs[i] = uuid(r.ID)
		}
		p.query(s.names.sql(sql), func(r pgx.Rows) error {
			for r.Next() {
				var overlap bool
				if err := r.Scan(&overlap); err != nil {
					return err
				}
				if overlap {
					found()
				}
			}
			return nil
		}, ids, rowIDs)
	}
}

// WriteRows runs the guarded update of rows alone, in a transaction with a commit
// pipelined behind it, as a commit's second round trip has it.
func (s *Store) WriteRows(ctx context.Context, b *onceward.Batch, rows []onceward.RowWrite) error {
	for i := range rows {
		rows[i].Data, rows[i].Tie = rows[i].Row.Data(), rows[i].Row.Tie()
	}
	return s.write(ctx, "write rows", func(p *pipeline) { s.guardRows(p, b, rows) })
}

// CommitStatements returns the statements of a commit, by name, in both forms.
func (s *Store) CommitStatements() map[string]string {
	q := s.sql
	statements := map[string]string{}
	for name, q := range map[string]query{
		"claim": q.claim, "readClaims": q.readClaims, "note": q.note, "readVariants": q.readVariants, "lockRows": q.lockRows, "createRows": q.createRows,
		"readFacts": q.readFacts, "countHeld": q.countHeld, "insertEvents": q.insertEvents, "updateRows": q.updateRows, "takeUp": q.takeUp,
		"insertFacts": q.insertFacts, "insertJobs": q.insertJobs, "insertRepeats": q.insertRepeats, "deleteUnborn": q.deleteUnborn,
	} {
		statements[name], statements[name+"_one"] = q.many, q.one
	}
	return statements
}

// Begin returns the statements that open a transaction, and their arguments.
func (s *Store) Begin() (sql []string, args [][]any) {
	var p pipeline
	s.begin(&p)
	for _, st := range p.statements {
		var values []any
		for i := st.first; i < st.last; i++ {
			values = append(values, string(p.value(i)))
		}
		sql, args = append(sql, st.sql), append(args, values)
	}
	return sql, args
}

// EncodeHeader and DecodeHeader are the form in which headers are kept.
var (
	EncodeHeader = encodeHeader
	DecodeHeader = decodeHeader
)
