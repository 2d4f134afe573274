package main

import (
	"context"
)

// extras are the figures that are no load over HTTP.
type extras struct {
	appends []float64          // median of 4 KiB appended and synced, ms, one a repetition
	tails   map[string][]tail  // of each store, one a repetition
	begins  map[string]started // of each store
	growths []growth
}

// measureExtras measures what has a flag of its own.
func (b *bench) measureExtras(ctx context.Context) error {
	if b.o.start {
		if err := b.starts(ctx); err != nil {
			return err
		}
	}
	if b.o.growth {
		return b.growths(ctx)
	}
	return nil
}
