package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	store, err := sqlite.OpenConfig(path, sqlite.Config{ReadOnly: mode == Read})
	if err != nil {
		return nil, err
	}
	return store, nil
}

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
