package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/onceward/onceward"
)

const (
	// tailRows is how many rows a commit has whose tail is measured.
	tailRows = 32
	// leastCommits is how many commits a 99th percentile wants.
	leastCommits = 100
)

// tail is how long commits of tailRows rows take, in milliseconds.
type tail struct{ p50, p99, worst, others float64 }

// tails measures the tail of commits on each store: what checkpoints add to it.
func (b *bench) tails(ctx context.Context) error {
	if !b.o.wantsExtra(ofTail) {
		return nil
	}
	if b.extras.tails == nil {
		b.extras.tails = map[string][]tail{}
	}
	for _, store := range b.o.stores {
		t, err := b.calmTail(ctx, store)
		if err != nil {
			return err
		}
		b.extras.tails[store] = append(b.extras.tails[store], t)
	}
	return nil
}

// calmTail measures one tail, again if the machine was busy.
func (b *bench) calmTail(ctx context.Context, store string) (tail, error) {
	for try := 1; ; try++ {
		if err := b.quiet(ctx); err != nil {
			return tail{}, err
		}
		t, err := b.tail(ctx, store, max(leastCommits, int(b.o.length/(4*time.Millisecond))))
		if err != nil || t.others <= busy || try == tries || b.again == 0 {
			return t, err
		}
		b.again--
	}
}

func (b *bench) tail(ctx context.Context, store string, commits int) (t tail, err error) {
	db, err := b.newDatabase(store)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, db.drop()) }()
	d, err := openDirect(ctx, db.url, spread, uint64(b.made))
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, d.store.Close()) }()
	if _, err := d.fill(ctx, 10*tailRows, tailRows); err != nil { // statements are prepared, the log begins
		return t, err
	}
	// Made beforehand, or what moves the log would have the time in between to itself.
	batches := make([]*onceward.Batch, commits)
	for i := range batches {
		batches[i] = d.batch(tailRows)
	}
	delays := make([]time.Duration, commits)
	t.others, err = b.beside(store, func() (err error) {
		for i := range delays {
			if delays[i], err = d.commit(ctx, batches[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return t, err
	}
	slices.Sort(delays)
	t.p50, t.p99, t.worst = millis(percentile(delays, 0.5)), millis(percentile(delays, 0.99)), millis(delays[commits-1])
	b.tell("%-20s commits of %d: p50 %.2f p99 %.2f worst %.2f ms  others %2.0f %%", store, tailRows, t.p50, t.p99, t.worst, 100*t.others)
	return t, nil
}
