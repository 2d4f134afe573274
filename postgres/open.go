package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onceward/onceward"
)

// Store is an onceward.Store in PostgreSQL. It is safe for concurrent use. Its
// methods return errors that wrap onceward.ErrUnavailable when the server cannot
// be reached, is shutting down, read-only, full or slow, and
// onceward.ErrUnknownOutcome when the connection broke before a commit was
// answered.
type Store struct {
	pool     *pgxpool.Pool
	ownsPool bool
	config   Config
	names    names
	sql      commitSQL
	warnings []string
	jitter   func() float64 // from 0 to 1
	retried  atomic.Int64   // transactions begun anew

	// What only tests set, before they use the store: between is called between
	// the two round trips of a commit, first changes what the first one sends.
	between func()
	first   func(p *pipeline, claims []onceward.ID, rows []onceward.EntityRow)

	named     bool      // statements are prepared under names
	pipelines sync.Pool // of *pipeline
}

var _ onceward.Store = (*Store)(nil)

// Open connects to the database at dsn, a URL as in
// postgres://user:password@host:5432/database or key=value pairs, and brings the
// tables up to date. Several hosts may be named, with
// target_session_attrs=read-write, so that the store follows a failover. The
// error wraps onceward.ErrUnavailable if the server cannot be reached, and
// onceward.ErrSchemaNewer if a newer program made the tables.
func Open(ctx context.Context, dsn string) (*Store, error) {
	return OpenConfig(ctx, dsn, Config{})
}

// OpenConfig is Open with a Config. The pool has Lanes + 4 connections at most,
// unless pool_max_conns in the address says otherwise.
func OpenConfig(ctx context.Context, dsn string, cfg Config) (*Store, error) {
	pc, err := parseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("postgres: open: %w", err)
	}
	// So that commits find a connection beside reads and workers.
	if spare := int32(max(cfg.Lanes, 2)) + 4; pc.MaxConns < spare && !strings.Contains(dsn, "pool_max_conns") {
		pc.MaxConns = spare
	}
	return openPool(ctx, pc, cfg)
}

// openPool opens a store on a pool of its own.
func openPool(ctx context.Context, pc *pgxpool.Config, cfg Config) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("postgres: open: %w", err)
	}
	s, err := newStore(ctx, pc, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.migrate(ctx); err != nil {
		s.pool.Close()
		return nil, s.translate(ctx, opMigrate, err, false)
	}
	return s, nil
}

// newStore makes the pool, and makes it anew where a pooler in between gives
// each transaction another session: named statements would be missing there, or
// be there already.
func newStore(ctx context.Context, pc *pgxpool.Config, cfg Config) (*Store, error) {
	pc = pc.Copy()
	loseDead(pc)
	for {
		pool, err := pgxpool.NewWithConfig(ctx, pc)
		if err != nil {
			return nil, fmt.Errorf("postgres: open: %w", err)
		}
		s := makeStore(pool, cfg)
		s.ownsPool = true
		found, err := s.look(ctx)
		if err != nil {
			pool.Close()
			return nil, s.translate(ctx, "open", err, false)
		}
		if found.pooler && pc.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
			pool.Close()
			pc = pc.Copy()
			pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
			continue
		}
		return s, nil
	}
}

func makeStore(pool *pgxpool.Pool, cfg Config) *Store {
	s := &Store{pool: pool, config: cfg, jitter: rand.Float64}
	s.named = pool.Config().ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
	return s
}

// New makes a store on a pool that the program has open, and brings the tables
// up to date. Close leaves the pool open. Behind a pooler in transaction mode
// the pool must not prepare statements; Warnings says so if it does.
func New(ctx context.Context, pool *pgxpool.Pool, cfg Config) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("postgres: new: %w", err)
	}
	s := makeStore(pool, cfg)
	found, err := s.look(ctx)
	if err != nil {
		return nil, s.translate(ctx, "new", err, false)
	}
	if found.pooler && pool.Config().ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		s.warnings = append(s.warnings, "there is a connection pooler before the server, and the pool prepares statements: if the pooler gives each transaction another session, set default_query_exec_mode=cache_describe in the pool's address")
	}
	if err := s.migrate(ctx); err != nil {
		return nil, s.translate(ctx, opMigrate, err, false)
	}
	return s, nil
}

// surroundings are what a store finds out before it starts.
type surroundings struct {
	pooler bool // somebody between us and the server
}

// look asks the server what the store must know of it. It prepares nothing.
func (s *Store) look(ctx context.Context) (found surroundings, err error) {
	conn, err := s.acquire(ctx)
	if err != nil {
		return found, err
	}
	defer conn.Release()
	var schema *string
	var encoding, fsync string
	var pid int64
	var version int
	err = conn.QueryRow(ctx, `select current_schema()::text, current_setting('server_encoding'), current_setting('fsync'),
		pg_backend_pid()::bigint, current_setting('server_version_num')::integer`, pgx.QueryExecModeExec).Scan(&schema, &encoding, &fsync, &pid, &version)
	if err != nil {
		return found, err
	}
	// A pooler makes up the process number that it tells its clients.
	found.pooler = pid != int64(conn.Conn().PgConn().PID())
	if version < 120000 {
		return found, fmt.Errorf("the server is PostgreSQL %d; Onceward needs 12 or newer", version/10000)
	}
	if encoding != "UTF8" {
		return found, fmt.Errorf("the database has encoding %s, which cannot hold every text; make one with `create database ... encoding 'UTF8' template template0`", encoding)
	}
	if fsync == "off" {
		s.warnings = append(s.warnings, "the server runs with fsync=off: what it has acknowledged is lost when its machine fails; set fsync = on in postgresql.conf unless this is a test")
	}
	where := s.config.Schema
	if where == "" {
		if schema == nil {
			return found, errors.New("the connection's search_path names no schema that exists; create one, or set Config.Schema")
		}
		where = *schema
	}
	if s.names, err = newNames(where, s.config.Prefix); err != nil {
		return found, err
	}
	s.sql = newCommitSQL(s.names)
	return found, nil
}

const connectPatience = 5 * time.Second

// pingPatience is how long a connection that was idle may take to show that it
// lives, before another is tried.
const pingPatience = time.Second

// loseDead makes a pool get rid of connections that died without a word: each costs
// pingPatience, not all that a commit has, and its place in the pool is free at once.
func loseDead(pc *pgxpool.Config) {
	if pc.PingTimeout == 0 {
		pc.PingTimeout = pingPatience
	}
	first := pc.BeforeClose
	pc.BeforeClose = func(conn *pgx.Conn) {
		if first != nil {
			first(conn)
		}
		if conn.IsClosed() {
			hangUp(conn)
		}
	}
}

// parseDSN reads an address. What pgx says of one that it cannot read may quote
// it, password and all, so that is left out.
func parseDSN(dsn string) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("the address cannot be read%s; write postgres://USER:PASSWORD@HOST:5432/DATABASE, with %%XX for special characters, or key=value pairs", reason(err))
	}
	if pc.ConnConfig.ConnectTimeout == 2*time.Minute { // pgx's default
		pc.ConnConfig.ConnectTimeout = connectPatience
	}
	if pc.ConnConfig.RuntimeParams["application_name"] == "" {
		pc.ConnConfig.RuntimeParams["application_name"] = "onceward"
	}
	return pc, nil
}

// reason returns why an address cannot be read, where that quotes nothing.
func reason(err error) string {
	var parse *pgconn.ParseConfigError
	var inURL *url.Error
	if !errors.As(err, &parse) || errors.As(err, &inURL) {
		return ""
	}
	if cause := errors.Unwrap(parse); cause != nil {
		return " (" + cause.Error() + ")"
	}
	return ""
}

// Warnings says what is odd about the server, for the log: it can be used, and
// an operator should know. The texts name no secret.
func (s *Store) Warnings() []string { return append([]string(nil), s.warnings...) }

// Close ends the store's own connections, after the calls under way. A pool that
// was given to New stays open.
func (s *Store) Close() error {
	if s.ownsPool {
		s.pool.Close()
	}
	return nil
}

// Lanes returns Config.Lanes.
func (s *Store) Lanes() int { return s.config.Lanes }

// Ping reports whether the server takes a commit now, by committing a number: a
// standby, a server that is read-only or full, and one that waits for a standby
// that has gone, do not.
func (s *Store) Ping(ctx context.Context) error {
	return s.write(ctx, "ping", func(p *pipeline) {
		p.add(s.names.sql(`update {meta} set value = value + 1 where name = 'ping'`))
	})
}
