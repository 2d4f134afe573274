package postgres

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/onceward/onceward"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Migration is one step of the schema.
type Migration struct {
	// Version is the schema's number after it, from 1.
	Version int
	// Name says what it does, in a few words.
	Name string
	// SQL is what it runs, in one transaction, the recording of Version included.
	SQL string
}

// Migrations lists the steps that make the tables of a schema, with a prefix, ""
// for the default one, in order. An operator may apply them by hand, each in a
// transaction; Open finds nothing left to do then, and needs no right to create.
func Migrations(schema, prefix string) ([]Migration, error) {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	n, err := newNames(schema, prefix)
	if err != nil {
		return nil, fmt.Errorf("postgres: migrations: %w", err)
	}
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("postgres: list migrations: %w", err)
	}
	steps := make([]Migration, len(files))
	for i, file := range files { // Glob sorts them
		text, err := migrationFiles.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("postgres: read migration: %w", err)
		}
		number, name, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("postgres: migration %s should be number %d", file, i+1)
		}
		sql := fmt.Sprintf("%s\ninsert into {schema} (version) values (%d);\n", text, version)
		steps[i] = Migration{version, strings.ReplaceAll(name, "_", " "), n.sql(sql)}
	}
	return steps, nil
}

// migrate brings the tables up to date. Several processes may do so at once.
func (s *Store) migrate(ctx context.Context) error {
	steps, err := Migrations(s.names.schema, s.names.prefix)
	if err != nil {
		return err
	}
	have, err := s.schemaVersion(ctx)
	if err != nil {
		return err
	}
	for have < len(steps) {
		if have, err = s.step(ctx, steps); err != nil {
			return err
		}
	}
	if have > len(steps) {
		return fmt.Errorf("the tables %s* of schema %q are of version %d, this program knows %d: %w", s.names.prefix, s.names.schema, have, len(steps), onceward.ErrSchemaNewer)
	}
	return nil
}

// rowQuerier is a pool or a transaction.
type rowQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func (s *Store) schemaVersion(ctx context.Context) (int, error) {
	return s.versionIn(ctx, s.pool)
}

// versionIn returns the newest step that was applied, 0 if there are no tables.
func (s *Store) versionIn(ctx context.Context, q rowQuerier) (int, error) {
	var there bool
	err := q.QueryRow(ctx, `select exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		where n.nspname = $1 and c.relname = $2)`, pgx.QueryExecModeExec, s.names.schema, s.names.prefix+"schema").Scan(&there)
	if err != nil || !there {
		return 0, err
	}
	var version int
	err = q.QueryRow(ctx, s.names.sql(`select coalesce(max(version), 0) from {schema}`), pgx.QueryExecModeExec).Scan(&version)
	return version, err
}

// step applies the next migration in a transaction of its own, unless another
// process has done so meanwhile, and returns the version there is then. The lock
// is the transaction's, since a session's would not hold behind PgBouncer.
func (s *Store) step(ctx context.Context, steps []Migration) (version int, err error) {
	conn, err := s.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return 0, err
	}
	defer rollback(ctx, conn.Conn())
	lock := fmt.Sprintf(`set local statement_timeout = 0; set local lock_timeout = 0; select pg_advisory_xact_lock(%d)`, s.lockKey("migrate"))
	if _, err := conn.Conn().PgConn().Exec(ctx, lock).ReadAll(); err != nil {
		return 0, err
	}
	if version, err = s.versionIn(ctx, tx); err != nil || version >= len(steps) {
		return version, err
	}
	next := steps[version]
	text := next.SQL
	if version == 0 {
		schema, err := s.missingSchema(ctx, tx)
		if err != nil {
			return 0, err
		}
		text = schema + text
	}
	if _, err := conn.Conn().PgConn().Exec(ctx, text).ReadAll(); err != nil {
		return 0, fmt.Errorf("migration %d (%s); if a name is taken by a table of yours, choose another Prefix or Schema: %w", next.Version, next.Name, err)
	}
	return next.Version, tx.Commit(ctx)
}

// missingSchema returns the statement that creates the schema if it is not there:
// "if not exists" would want the right to create one even if it is.
func (s *Store) missingSchema(ctx context.Context, q rowQuerier) (string, error) {
	var there bool
	err := q.QueryRow(ctx, `select exists (select from pg_catalog.pg_namespace where nspname = $1)`, pgx.QueryExecModeExec, s.names.schema).Scan(&there)
	if err != nil || there {
		return "", err
	}
	return "create schema " + pgx.Identifier{s.names.schema}.Sanitize() + ";\n", nil
}

// lockKey names an advisory lock of these tables.
func (s *Store) lockKey(purpose string) int64 {
	sum := sha256.Sum256([]byte("onceward\x00" + s.names.schema + "\x00" + s.names.prefix + "\x00" + purpose))
	return int64(binary.BigEndian.Uint64(sum[:]))
}
