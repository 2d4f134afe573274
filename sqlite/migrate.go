package sqlite

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

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
	// SQL is what it runs, in one transaction with the recording of Version.
	SQL string
}

// Migrations lists the steps of the schema, in order, for tables whose names
// begin with prefix ("" for the default). It fails if prefix is not one; see
// [Config].
func Migrations(prefix string) ([]Migration, error) {
	if prefix == "" {
		prefix = defaultPrefix
	}
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("sqlite: list migrations: %w", err)
	}
	list := make([]Migration, len(files))
	for i, file := range files { // Glob sorts them
		text, err := migrationFiles.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("sqlite: read migration: %w", err)
		}
		number, name, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("sqlite: migration %s should be number %d", file, i+1)
		}
		list[i] = Migration{version, strings.ReplaceAll(name, "_", " "), withPrefix(prefix, string(text))}
	}
	return list, nil
}

const defaultPrefix = "onceward_"

var prefixForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,40}$`)

func checkPrefix(prefix string) error {
	if !prefixForm.MatchString(prefix) || strings.HasPrefix(prefix, "sqlite_") {
		return fmt.Errorf("sqlite: prefix %q: write a small letter, then small letters, digits and _, as onceward_; not sqlite_", prefix)
	}
	return nil
}

// withPrefix puts a prefix in place of the default one. The statements are
// written with the default, so that they can be read and tried out as they are.
func withPrefix(prefix, query string) string {
	if prefix == defaultPrefix {
		return query
	}
	return strings.ReplaceAll(query, defaultPrefix, prefix)
}

// migrate brings the schema up to what this program knows. It takes no lock
// where there is nothing to do.
func (s *Store) migrate(ctx context.Context) error {
	steps, err := Migrations(s.cfg.Prefix)
	if err != nil {
		return err
	}
	for {
		done := false
		err := s.use(ctx, func(c *session) error {
			version := 0
			err := c.patiently(ctx, func() (err error) {
				version, err = c.schemaVersion()
				return err
			})
			if err != nil {
				return err
			}
			if err := checkVersion(version, len(steps)); err != nil || version == len(steps) {
				done = true
				return err
			}
			return c.transact(ctx, func() error { return c.migrateStep(steps) })
		})
		if err != nil || done {
			return err
		}
	}
}

func checkVersion(found, known int) error {
	if found > known {
		return fmt.Errorf("%w: the tables have version %d, this program knows %d", onceward.ErrSchemaNewer, found, known)
	}
	return nil
}

// migrateStep runs the next step, whatever another process has done meanwhile.
func (c *session) migrateStep(steps []Migration) error {
	version, err := c.schemaVersion()
	if err != nil || version >= len(steps) {
		return err
	}
	step := steps[version]
	if version == 0 {
		if err := c.script(withPrefix(c.prefix, `create table onceward_schema (version integer primary key) strict`)); err != nil {
			return fmt.Errorf("create the table of versions: %w", err)
		}
	}
	if err := c.script(step.SQL); err != nil {
		return fmt.Errorf("migration %d (%s); if the names clash with tables of yours, choose another Prefix: %w", step.Version, step.Name, err)
	}
	_, err = c.exec(`insert into onceward_schema (version) values (?)`, int64(step.Version))
	return err
}

// schemaVersion returns the number of the newest migration that was run, 0 if
// none was.
func (c *session) schemaVersion() (int, error) {
	version, found := int64(0), false
	err := c.query(func(row []value) { found = true }, `select 1 from sqlite_schema where type = 'table' and name = ?`, c.prefix+"schema")
	if err != nil || !found {
		return 0, err
	}
	err = c.query(func(row []value) { version = row[0].(int64) }, `select coalesce(max(version), 0) from onceward_schema`)
	return int(version), err
}
