package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/storetest"
	"github.com/onceward/onceward/sqlite"
)

// diskBreaker makes the n-th write to a disk fail.
type diskBreaker struct {
	*disk
	late bool
	code int32
}

func (b diskBreaker) Arm(n int)    { b.arm(n, b.late, b.code) }
func (b diskBreaker) Disarm() bool { return b.disarm() }

// TestEveryWriteFails fails each write to the files, each sync and each change of
// length in turn, as disks do: before its work and after it, for want of room and
// for no reason.
func TestEveryWriteFails(t *testing.T) {
	d := newDisk(t, t.TempDir())
	for name, b := range map[string]diskBreaker{
		"it fails":              {d, false, lib.SQLITE_IOERR},
		"it is done, and fails": {d, true, lib.SQLITE_IOERR},
		"there is no room":      {d, false, lib.SQLITE_FULL},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			d.watch(filepath.Dir(path))
			broken, sound := open(t, path), open(t, path)
			stride := 1
			if testing.Short() {
				stride = 6
			}
			storetest.FailBelow(t, storetest.Brittle{
				Broken: broken, Breaker: b, Sound: sound, Err: onceward.ErrUnavailable, Writing: true, Stride: stride,
			}, storetest.Least{CommitSteps: 5})
			if got := queryText(t, user(t, path), "pragma integrity_check"); got != "ok" {
				t.Errorf("integrity check: %s", got)
			}
			if err := errors.Join(broken.Close(), sound.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDiskThatTakesNothing lets every write fail for a while, as those to a disk do
// that has become read-only under its users, and goes on with the same store.
func TestDiskThatTakesNothing(t *testing.T) {
	dir := t.TempDir()
	d := newDisk(t, dir)
	for _, code := range []int32{lib.SQLITE_IOERR_WRITE, lib.SQLITE_READONLY, lib.SQLITE_FULL, lib.SQLITE_IOERR_FSYNC} {
		path := filepath.Join(dir, fmt.Sprint(code, ".db"))
		s := open(t, path)
		var acknowledged []int64
		take := func(ids ...int64) {
			t.Helper()
			for _, id := range ids {
				if err := commitOne(s, id); err != nil {
					t.Fatalf("code %d: %v", code, err)
				}
				acknowledged = append(acknowledged, id)
			}
		}
		take(1, 2, 3)
		d.arm(everyStep, false, code)
		for range 5 {
			for operation, err := range map[string]error{"commit": commitOne(s, 4), "ping": s.Ping(context.Background())} {
				if !errors.Is(err, onceward.ErrUnavailable) && !errors.Is(err, onceward.ErrUnknownOutcome) {
					t.Errorf("code %d: %s: %v, want ErrUnavailable or ErrUnknownOutcome", code, operation, err)
				}
			}
			if _, err := s.Event(context.Background(), 4); !errors.Is(err, onceward.ErrNotFound) {
				t.Errorf("code %d: an event is there whose commit failed: %v", code, err)
			}
		}
		if _, err := s.Event(context.Background(), 3); err != nil {
			t.Errorf("code %d: read: %v", code, err)
		}
		if !d.disarm() {
			t.Error("nothing has failed")
		}
		take(4, 5, 6)
		wantAll(t, s, user(t, path), acknowledged)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// cutting is a power cut that was made while a store committed.
type cutting struct {
	about string
	acked int64 // events below this were acknowledged before
	sent  int64 // events from this on had not been sent
	dir   string
}

// TestPowerCut lets the power fail at steps of commits, of moving the log into the
// file and of beginning it anew: what had been acknowledged was synced, whatever is
// lost of the rest.
func TestPowerCut(t *testing.T) {
	d := newDisk(t, t.TempDir())
	for name, tt := range map[string]struct {
		limit         int64 // of the log, in bytes
		events        int64
		each, atMoves int  // one of how many steps is cut, and of those that move the log or follow on that
		moved         bool // before the store is closed
		long          bool
	}{
		"a log that is not moved once": {0, 100, 120, 120, false, false},
		"the writer cuts the log":      {1 << 20, 700, 1500, 200, true, true},
		"the log is moved beside it":   {0, 450, 3000, 60, true, true}, // 16 MiB of it are full at 410
	} {
		t.Run(name, func(t *testing.T) {
			if tt.long && testing.Short() {
				t.Log("NOT RUN: it takes some seconds, and many under the race detector")
				return
			}
			if os.Getenv("ONCEWARD_FAULTS") != "" {
				tt.each, tt.atMoves = tt.each/10, tt.atMoves/10
			}
			dir := t.TempDir()
			d.watch(dir)
			s, err := sqlite.OpenConfig(filepath.Join(dir, "app.db"), sqlite.Config{WALLimit: tt.limit})
			if err != nil {
				t.Fatal(err)
			}
			cuts := d.cutWhile(t, s, tt.events, tt.each, tt.atMoves, tt.moved)
			lost := 0
			for _, c := range cuts {
				if c.check(t) {
					lost++
				}
				if t.Failed() {
					return
				}
			}
			t.Logf("the power failed %d times, %d times while something unacknowledged was lost", len(cuts), lost)
		})
	}
}

// cutWhile commits events and closes the store, and returns what power cuts would
// have left. If the log is to be moved before that, it commits up to three quarters
// more until that begins: fewer than would make the writer cut a log of 32 MiB.
func (d *disk) cutWhile(t *testing.T, s *sqlite.Store, events int64, each, atMoves int, moved bool) (cuts []cutting) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	acked, sent, moves, after := int64(1), int64(1), 0, 0
	cut := func(step int) {
		for _, l := range []struct {
			name string
			loss loss
		}{{"all is lost", losesAll}, {"nothing is lost", losesNothing}, {"some is lost", losesSome}} {
			c := cutting{fmt.Sprintf("step %d, %s", step, l.name), acked, sent, t.TempDir()}
			restore(t, c.dir, d.powerCut(l.loss, chance))
			cuts = append(cuts, c)
		}
	}
	under := func(f func()) {
		d.mu.Lock()
		defer d.mu.Unlock()
		f()
	}
	under(func() {
		d.onStep = func(path string, step int) {
			if after--; filepath.Ext(path) == ".db" {
				moves++
				after = 50
			}
			if one := map[bool]int{true: atMoves, false: each}[after > 0]; chance.IntN(one) == 0 {
				cut(step)
			}
		}
	})
	begun := false
	for id := int64(1); id <= events || moved && !begun && id < events*7/4; id++ {
		under(func() { sent, begun = id+1, moves > 0 })
		if err := commitOne(s, id); err != nil {
			t.Fatal(err)
		}
		under(func() { acked = id + 1 })
	}
	if begun != moved {
		t.Errorf("the log was moved before the store was closed: %v, want %v", begun, moved)
	}
	if err := s.Close(); err != nil { // which moves the log into the file
		t.Fatal(err)
	}
	under(func() { d.onStep = nil })
	if len(cuts) < 3 || moves < 10 {
		t.Errorf("the power failed %d times, and the log was moved in %d steps", len(cuts), moves)
	}
	return cuts
}

// check opens what is left after a power cut. It reports whether something that had
// been sent is not there.
func (c cutting) check(t *testing.T) (lost bool) {
	t.Helper()
	path := filepath.Join(c.dir, "app.db")
	s, err := sqlite.Open(path)
	if err != nil {
		t.Errorf("%s: %v", c.about, err)
		return false
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	db := user(t, path)
	defer db.Close()
	if got := queryText(t, db, "pragma integrity_check"); got != "ok" {
		t.Errorf("%s: integrity check: %s", c.about, got)
	}
	stored := int64(0)
	for id := int64(1); id < c.sent; id++ {
		e, err := s.Event(context.Background(), id)
		switch {
		case err == nil && e.Facts == 1:
			stored++
		case id < c.acked || !errors.Is(err, onceward.ErrNotFound):
			t.Errorf("%s: event %d, acknowledged %v: %v", c.about, id, id < c.acked, err)
			return false
		}
	}
	n := fmt.Sprint(stored)
	if got := queryText(t, db, `select (select count(*) from onceward_claims), (select count(*) from onceward_events), (select count(*) from onceward_facts),
		(select coalesce(sum(version), 0) from onceward_entities), (select events from onceward_counts)`); got != n+"|"+n+"|"+n+"|"+n+"|"+n {
		t.Errorf("%s: claims, events, facts, versions, counted: %s; want %s of each", c.about, got, n)
	}
	if err := commitOne(s, 1_000_000); err != nil {
		t.Errorf("%s: the next commit: %v", c.about, err)
	}
	return stored < c.sent-1
}
