package inbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/onceward/onceward/internal/pgtest"
	"github.com/onceward/onceward/postgres"
	"github.com/onceward/onceward/sqlite"
)

// smallDisk mounts a file system of so many megabytes; narrow makes a file that
// takes all of it but half a megabyte, and widen removes that. It returns "" where
// nothing can be mounted, and says so.
func smallDisk(t *testing.T, megabytes, owner int) (dir string, narrow, widen func()) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // so that another user can enter
		t.Fatal(err)
	}
	options := fmt.Sprintf("size=%dm,uid=%d,mode=0700", megabytes, owner)
	if out, err := exec.CommandContext(context.Background(), "mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Logf("NOT RUN: a file system cannot be mounted here (%v: %s); the other ways to fill a disk were", err, out)
		return "", nil, nil
	}
	t.Cleanup(func() {
		if out, err := exec.CommandContext(context.Background(), "umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	return dir, func() {
			var disk syscall.Statfs_t
			if err := syscall.Statfs(dir, &disk); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(ballast, make([]byte, int64(disk.Bavail)*disk.Bsize-1<<19), 0o600); err != nil {
				t.Fatal(err)
			}
		}, func() {
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
		}
}

// fullDisk is a site on a file of a small file system.
func fullDisk(t *testing.T, _ *pgtest.Server) (s *site, stop, resume func()) {
	dir, narrow, widen := smallDisk(t, 8, os.Geteuid())
	if dir == "" {
		return nil, nil, nil
	}
	store, err := sqlite.Open(filepath.Join(dir, "app.db"))
	if err != nil {
		t.Fatal(err)
	}
	return newSite(t, store), narrow, widen
}

// fullServer is a site on a database whose tables are in a small file system; the
// server's log of writes is not. It has a server to itself: while the file system is
// full no checkpoint succeeds, and without one no test drops its database.
func fullServer(t *testing.T, _ *pgtest.Server) (s *site, stop, resume func()) {
	server := pgtest.New(t, pgtest.Options{})
	dir, narrow, widen := smallDisk(t, 24, dataOwner(t))
	if dir == "" {
		return nil, nil, nil
	}
	tell := func(statement string) {
		t.Helper()
		if err := pgtest.Exec(server.DSN("postgres"), statement); err != nil {
			t.Error(err)
		}
	}
	tell("create tablespace small location '" + dir + "'")
	t.Cleanup(func() { tell("drop tablespace small") })
	tell("create database filled template template0 encoding 'UTF8' tablespace small")
	t.Cleanup(func() { tell("drop database filled with (force)") })
	return newSite(t, openPostgres(t, server.DSN("filled"), postgres.Config{})), narrow, widen
}

// dataOwner returns the user as whom this package's servers run, by the folders
// that they have.
func dataOwner(t *testing.T) int {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), "pgtest*", "data"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no server has a folder: %v", err)
	}
	info, err := os.Stat(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Sys().(*syscall.Stat_t).Uid)
}
