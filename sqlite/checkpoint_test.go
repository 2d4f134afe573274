package sqlite_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/onceward/onceward"
)

// TestLogBeginsAnew writes without a pause and wants the write-ahead log to begin
// anew all the same, again and again, without the writer's having to cut it.
func TestLogBeginsAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	s := open(t, path)
	defer s.Close()
	mapping, err := newMapping()
	if err != nil {
		t.Fatal(err)
	}
	const (
		size    = 64
		most    = 4000 // batches; about 60 begin the log anew
		restart = 3
	)
	body := bytes.Repeat([]byte("0123456789abcdef"), 256)
	inLog, restarts, written := int64(0), 0, int64(0)
	for n := int64(0); restarts < restart; n++ {
		if n == most {
			t.Fatalf("the log began anew %d times in %d batches, and holds %d pages", restarts, most, inLog)
		}
		batch := &onceward.Batch{Now: noon}
		for i := range int64(size) {
			batch.Arrivals = append(batch.Arrivals, arrival(mapping, 1+n*size+i, body, noon))
		}
		if err := s.Commit(context.Background(), batch); err != nil {
			t.Fatal(err)
		}
		written += size
		pages, err := s.LogPages()
		if err != nil {
			t.Fatal(err)
		}
		if pages < inLog {
			restarts++
		}
		inLog = pages
	}
	log, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if log.Size() == 0 || log.Size() > 32<<20 {
		t.Errorf("the log has %d bytes; it should have begun anew in place, below its limit of 32 MiB", log.Size())
	}
	if stats, err := s.Stats(context.Background()); err != nil || stats.Events != written {
		t.Errorf("%d events are stored of %d, %v", stats.Events, written, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); !os.IsNotExist(err) {
		t.Errorf("the log is still there after Close: %v", err)
	}
	again := open(t, path)
	defer again.Close()
	if stats, err := again.Stats(context.Background()); err != nil || stats.Events != written {
		t.Errorf("%d events are in the file of %d, %v", stats.Events, written, err)
	}
}
