//go:build unix

package sqlite_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/onceward/onceward"
)

// TestFullDisk lets the writes themselves fail, wherever SQLite happens to be.
func TestFullDisk(t *testing.T) {
	t.Run("files of this process may not grow", func(t *testing.T) {
		signal.Ignore(syscall.SIGXFSZ)
		defer signal.Reset(syscall.SIGXFSZ)
		var was syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			t.Fatal(err)
		}
		limit := func(size uint64) {
			t.Helper()
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: was.Max}); err != nil {
				t.Fatal(err)
			}
		}
		defer limit(was.Cur)
		fillDisk(t, t.TempDir(), func() { limit(2 << 20) }, func() { limit(was.Cur) })
	})
	t.Run("a file system of its own", func(t *testing.T) {
		dir := t.TempDir()
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", dir).CombinedOutput(); err != nil {
			t.Logf("NOT RUN: a file system cannot be mounted here (%v: %s); the other ways to fill a disk were", err, out)
			return
		}
		defer func() {
			if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
				t.Errorf("umount: %v: %s", err, out)
			}
		}()
		ballast := filepath.Join(dir, "ballast")
		fillDisk(t, dir, func() {
			if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
				t.Fatal(err)
			}
		}, func() {
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// fillDisk commits until the disk is full, makes room, and goes on with the same
// store.
func fillDisk(t *testing.T, dir string, narrow, widen func()) {
	t.Helper()
	path := filepath.Join(dir, "app.db")
	s := open(t, path)
	defer s.Close()
	db := user(t, path)
	defer db.Close()
	narrow()
	acknowledged, failed := fill(t, s, 1)
	widenOnce := func() { widen(); widen = func() {} }
	defer widenOnce()
	if len(acknowledged) < 20 {
		t.Errorf("only %d events fit", len(acknowledged))
	}
	if err := s.Ping(context.Background()); err != nil && !errors.Is(err, onceward.ErrUnavailable) && !errors.Is(err, onceward.ErrUnknownOutcome) {
		t.Errorf("ping: %v, want ErrUnavailable", err)
	}
	if _, err := s.Event(context.Background(), acknowledged[0]); err != nil {
		t.Errorf("read while the disk is full: %v", err)
	}
	widenOnce()
	// What failed last may be kept if its outcome was unknown; committing it again
	// settles that.
	for id := failed; id < failed+20; id++ {
		if err := commitOne(s, id); err != nil {
			t.Fatalf("commit when there is room again: %v", err)
		}
		acknowledged = append(acknowledged, id)
	}
	wantAll(t, s, db, acknowledged)
}
