// Package sqlite keeps an inbox in one SQLite file, with nothing to install. It
// implements [onceward.Store] over modernc.org/sqlite, which is SQLite itself,
// translated to Go.
//
// One connection writes, in transactions that are begun immediately and synced
// before they return (WAL, synchronous=FULL, asserted when the store is opened);
// others read, each for the time of one short statement. Several processes may
// have one file open, and all of them may write; they wait for each other, so
// one writing process is best.
//
// The tables begin with a prefix and live beside the application's own, which
// are never touched. The view onceward_entities is for people and their SQL:
//
//	source, account, mode, kind, key    what the row is about
//	status, told                        as shown, and as the senders told it
//	version                             how many facts have changed it
//	tie                                 parts that the senders' clocks left open
//	data                                the fields, a JSON object
//	created, updated                    RFC 3339 in UTC
//
// All times are rounded down to the microsecond.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	modernc "modernc.org/sqlite"

	"github.com/onceward/onceward"
)

// Config says how a store uses its database. The zero Config is a good one.
type Config struct {
	// Prefix begins the name of every table, index and view of the store: a small
	// letter, then small letters, digits and _. The default is onceward_.
	Prefix string
	// CacheBytes bounds the page cache of the writing connection, where it is the
	// store's own. The default is 16 MiB.
	CacheBytes int64
	// BusyTimeout is how long to wait for another process that writes before the
	// store is unavailable. The default is 10 s.
	BusyTimeout time.Duration
	// ReadConns is how many connections may read at once; New takes the user's
	// pool as it is. The default is 4.
	ReadConns int
	// WALLimit is the size in bytes of the write-ahead log beyond which the
	// writer empties it between two batches. At half of it the log is moved into the
	// file beside the writer: earlier would write pages that change often more often,
	// later makes the writer's part longer. The default is 32 MiB.
	WALLimit int64
	// ReadOnly opens a database that exists, and has this program's schema, for
	// reading alone. Nothing is created or migrated; what writes is
	// ErrUnavailable.
	ReadOnly bool
}

func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = defaultPrefix
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = 16 << 20
	}
	if c.BusyTimeout == 0 {
		c.BusyTimeout = 10 * time.Second
	}
	if c.ReadConns == 0 {
		c.ReadConns = 4
	}
	if c.WALLimit == 0 {
		c.WALLimit = 32 << 20
	}
	return c
}

func (c Config) check() error {
	if err := checkPrefix(c.Prefix); err != nil {
		return err
	}
	if c.CacheBytes < 0 || c.BusyTimeout < 0 || c.ReadConns < 0 || c.WALLimit < 0 {
		return errors.New("sqlite: a number in Config is negative; leave it 0 for the default")
	}
	return nil
}

// Store is an [onceward.Store] in a SQLite database. It is safe for concurrent
// use.
type Store struct {
	cfg    Config
	writer *writer // nil if read only
	reads  *sql.DB // nil if everything goes through the writer's connection
	// ownsReads says that reads is the store's to close.
	ownsReads bool
	closed    atomic.Bool
	waits     atomic.Int64
}

var _ onceward.Store = (*Store)(nil)

// memory is the path of a database that lives in memory.
const memory = ":memory:"

// Open opens the database in the file at path, makes it if there is none, and
// brings its schema up to date. The path ":memory:" gives a database of its own
// in memory, for tests. A schema that a newer program made is ErrSchemaNewer; a
// file that cannot be opened or written is ErrUnavailable.
func Open(path string) (*Store, error) { return OpenConfig(path, Config{}) }

// OpenConfig is Open with a configuration.
func OpenConfig(path string, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if path == "" || strings.HasPrefix(path, "file:") {
		return nil, fmt.Errorf("sqlite: open %q: write the path of a file, as app.db; for a URI open the database yourself and hand it to New", path)
	}
	if path == memory && cfg.ReadOnly {
		return nil, errors.New("sqlite: open: a database in memory begins empty, so it cannot be read only")
	}
	s, err := open(path, cfg)
	if err != nil {
		return nil, translate("open "+path, err)
	}
	return s, nil
}

func open(path string, cfg Config) (*Store, error) {
	s := &Store{cfg: cfg}
	if path == memory {
		db, err := pool(memory, 1)
		if err != nil {
			return nil, err
		}
		return s.start(db, true)
	}
	name := fileURI(path)
	mode := ""
	if cfg.ReadOnly {
		mode = "mode=ro&"
	}
	readers, err := pool(fmt.Sprintf("%s?%s_pragma=busy_timeout(%d)&_pragma=query_only(1)", name, mode, cfg.BusyTimeout.Milliseconds()), cfg.ReadConns)
	if err != nil {
		return nil, err
	}
	s.reads, s.ownsReads = readers, true
	if cfg.ReadOnly {
		return s.startReadOnly()
	}
	_, _ = modernc.Fdatasync(true) // not everywhere; without it SQLite syncs a little more
	db, err := pool(fmt.Sprintf("%s?_pragma=busy_timeout(%d)", name, cfg.BusyTimeout.Milliseconds()), 1)
	if err != nil {
		return nil, errors.Join(err, readers.Close())
	}
	if s, err = s.start(db, true); err != nil {
		return nil, err
	}
	movers, err := pool(name+"?_pragma=busy_timeout(0)&_pragma=query_only(1)&_pragma=synchronous(2)&_pragma=wal_autocheckpoint(0)", 1)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.writer.checkpoints = newCheckpointer(movers, max(1, s.cfg.WALLimit/2/s.writer.pageSize))
	return s, nil
}

func pool(dsn string, size int) (*sql.DB, error) {
	connector, err := modernc.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// fileURI names a file to SQLite, whatever characters are in its path.
func fileURI(path string) string {
	path = filepath.Clean(path)
	escaped := (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
	if filepath.IsAbs(path) && !strings.HasPrefix(escaped, "/") {
		escaped = "/" + escaped // a drive letter
	}
	return "file:" + escaped
}

// New makes a store over a database that the application has open through
// modernc.org/sqlite, beside the application's own tables. It keeps one of the
// pool's connections for itself and closes it, not db, in Close. It switches the
// file to WAL, and sets synchronous=FULL on the connection it uses.
//
// A pool of one connection it borrows for each operation. While the application
// is in a transaction of its own there, every method waits for its end, or for
// that of its context: a handler that calls the store from within one waits for
// itself.
//
// Leave synchronous at FULL, or at NORMAL, on the pool's other connections. Any
// connection may move the write-ahead log, with the store's events in it, into
// the file; one with synchronous=OFF does so without syncing, so that a power
// failure may lose what was acknowledged, or damage the file.
//
// How files are synced is a setting of the whole process in modernc.org/sqlite,
// which New leaves as it is. [Open] chooses fdatasync, where there is one.
func New(db *sql.DB, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if _, ok := db.Driver().(*modernc.Driver); !ok {
		return nil, fmt.Errorf("sqlite: new: the database is open through %T; open it with the driver \"sqlite\" of modernc.org/sqlite", db.Driver())
	}
	if cfg.ReadOnly {
		return nil, errors.New("sqlite: new: ReadOnly is for OpenConfig; here the rights of the database are the application's to set")
	}
	s := &Store{cfg: cfg}
	if db.Stats().MaxOpenConnections != 1 {
		s.reads = db
	}
	s, err := s.start(db, false)
	if err != nil {
		return nil, translate("new", err)
	}
	return s, nil
}

// start prepares the writing connection and the schema.
func (s *Store) start(db *sql.DB, ownsDB bool) (*Store, error) {
	w := &writer{
		db: db, ownsDB: ownsDB, lock: make(chan struct{}, 1), shared: !ownsDB && s.reads == nil,
		walLimit: s.cfg.WALLimit, walWait: s.cfg.WALLimit,
	}
	w.session = newSession(s)
	s.writer = w
	ctx := context.Background()
	err := s.prepare(ctx)
	if err == nil {
		err = s.migrate(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// startReadOnly wants the schema to be this program's.
func (s *Store) startReadOnly() (*Store, error) {
	ctx := context.Background()
	version, err := s.readVersion(ctx)
	if err == nil {
		var steps []Migration
		if steps, err = Migrations(s.cfg.Prefix); err == nil {
			err = checkVersion(version, len(steps))
		}
		if err == nil && version < len(steps) {
			err = fmt.Errorf("the tables have version %d, this program needs %d: open it once for writing, or run the program that writes", version, len(steps))
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close waits for the work in flight and ends the store's connections. Closing
// again does nothing.
func (s *Store) Close() error {
	s.closed.Store(true)
	if s.writer == nil {
		return s.closeReads()
	}
	return s.writer.close(s.closeReads)
}

func (s *Store) closeReads() error {
	if !s.ownsReads {
		return nil
	}
	return s.reads.Close()
}

// Lanes is 1: SQLite has one writer at a time.
func (s *Store) Lanes() int { return 1 }
