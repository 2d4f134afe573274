package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// pageSize is how much one append writes.
const pageSize = 4096

// appends measures the least that a durable acknowledgement costs: 4 KiB at the end
// of a file, synced. It goes on for a tenth of a run.
func (b *bench) appends(ctx context.Context) error {
	if !b.o.wantsExtra(ofAppend) {
		return nil
	}
	if err := b.quiet(ctx); err != nil {
		return err
	}
	delays, err := appendFor(b.o.dir, b.o.length/10)
	if err != nil {
		return err
	}
	b.extras.appends = append(b.extras.appends, millis(percentile(delays, 0.5)))
	return nil
}

// appendFor appends and syncs for a while, at least ten times, and returns how long
// each took, sorted.
func appendFor(dir string, length time.Duration) (delays []time.Duration, err error) {
	f, err := os.CreateTemp(dir, "onceward-bench")
	if err != nil {
		return nil, fmt.Errorf("make a file to append to: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, pageSize)
	for begin := time.Now(); len(delays) < 10 || time.Since(begin) < length; {
		at := time.Now()
		if _, err := f.Write(page); err != nil {
			return nil, fmt.Errorf("append: %w", err)
		}
		if err := syncData(f); err != nil {
			return nil, err
		}
		delays = append(delays, time.Since(at))
	}
	slices.Sort(delays)
	return delays, nil
}
