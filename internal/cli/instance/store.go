package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/postgres"
	"github.com/onceward/onceward/sqlite"
)

// Mode says what a store is opened for.
type Mode uint8

// The modes.
const (
	// Write makes the database if it is not there, and brings its tables up to
	// date.
	Write Mode = iota
	// Read wants a database that is there.
	Read
)

// ErrNoStore says that there is no database to read.
var ErrNoStore = errors.New("there is no database yet")

// OpenStore opens what url names: sqlite:FILE or postgres://….
func OpenStore(ctx context.Context, url string, mode Mode) (onceward.Store, error) {
	path, isFile := strings.CutPrefix(url, "sqlite:")
	if !isFile {
		store, err := postgres.Open(ctx, url)
		if errors.Is(err, onceward.ErrUnavailable) {
			return nil, &unreachable{err}
		}
		if err != nil {
			return nil, err
		}
		return store, nil
	}
	if mode == Read {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s; start `onceward serve` here, or name another with --store", ErrNoStore, path)
		}
	}
	if err := CheckFile(url); err != nil {
		return nil, err
	}
	store, err := sqlite.OpenConfig(path, sqlite.Config{ReadOnly: mode == Read})
	if err != nil {
		return nil, err
	}
	return store, nil
}

// CheckFile says what to do where the path of sqlite:FILE can hold no database: its
// folder does not exist, or something else is there. Other stores pass.
func CheckFile(url string) error {
	path, isFile := strings.CutPrefix(url, "sqlite:")
	if !isFile || path == ":memory:" {
		return nil
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the folder %s does not exist; make it (mkdir -p %s), or name another with --store sqlite:FILE", dir, dir)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil // opening the store says what is wrong, if anything is
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder; name a file in it, as --store sqlite:%s", path, filepath.Join(path, "onceward.db"))
	}
	const magic = "SQLite format 3\x00"
	head := make([]byte, len(magic))
	if n, err := io.ReadFull(f, head); n > 0 && (err == nil || errors.Is(err, io.ErrUnexpectedEOF)) && string(head[:n]) != magic {
		return fmt.Errorf("%s is not an SQLite database, and nothing was changed in it; move it away, or name another file with --store sqlite:FILE", path)
	}
	return nil
}

// unreachable is a server that does not answer, with what to look at.
type unreachable struct{ err error }

// Error says each reason once: a driver tries an address with and without TLS.
func (u *unreachable) Error() string {
	var lines []string
	for line := range strings.SplitSeq(u.err.Error(), "\n") {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + "\nsee that PostgreSQL runs there, and that host, port, user and password of the store are right"
}

func (u *unreachable) Unwrap() error { return u.err }

// Migration is one step of a store's schema.
type Migration struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	SQL     string `json:"sql"`
}

// Migrations lists the steps that make a store's tables, in order, for people who
// apply them by hand, each in a transaction.
func Migrations(url string) ([]Migration, error) {
	var list []Migration
	if !strings.HasPrefix(url, "sqlite:") {
		steps, err := postgres.Migrations("public", "") // where a new database puts tables
		for _, s := range steps {
			list = append(list, Migration(s))
		}
		return list, err
	}
	steps, err := sqlite.Migrations("")
	for _, s := range steps {
		list = append(list, Migration(s))
	}
	return list, err
}

// Describe names a store for people, without what its address may hide.
func Describe(url string) string {
	if path, isFile := strings.CutPrefix(url, "sqlite:"); isFile {
		if !strings.ContainsAny(path, `/\`) {
			path = "./" + path
		}
		return path
	}
	return "PostgreSQL"
}
