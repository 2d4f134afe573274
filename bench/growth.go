package main

import (
	"context"
	"errors"
)

const (
	// growthFrom is the number of stored events from which on growth is measured.
	growthFrom = 100_000
	// growthRows is how many rows a commit has meanwhile.
	growthRows = 128
	// growthEntities is how many entities the events are about: with few, what would
	// grow are their histories.
	growthEntities = 100_000
)

// growth is how the time per event grows with what is stored.
type growth struct {
	store    string
	inOrder  bool      // whether the ids of events rise with time
	stored   []float64 // at these numbers of stored events
	micros   []float64 // an event took so long
	cpu      []float64 // and so much CPU time, PostgreSQL's included
	exponent float64   // of the curve that fits micros best
	others   []float64 // the share of the machine that other processes used meanwhile
}

// growths measures the growth on each store, with random and with rising ids.
func (b *bench) growths(ctx context.Context) error {
	for _, store := range b.o.stores {
		for _, inOrder := range []bool{false, true} {
			g, err := b.grow(ctx, store, inOrder)
			if err != nil {
				return err
			}
			b.extras.growths = append(b.extras.growths, g)
		}
	}
	return nil
}

func (b *bench) grow(ctx context.Context, store string, inOrder bool) (g growth, err error) {
	g = growth{store: store, inOrder: inOrder}
	db, err := b.newDatabase(store)
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, db.drop()) }()
	d, err := openDirect(ctx, db.url, growthEntities, uint64(b.made))
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, d.store.Close()) }()
	d.sender.inOrder = inOrder
	if store == inPostgres {
		d.watched.postmaster = b.postgres.postmaster
	}
	err = b.curve(ctx, d, &g)
	g.exponent = slope(g.stored, g.micros)
	return g, err
}

// curve takes the points of a curve.
func (b *bench) curve(ctx context.Context, d *direct, g *growth) error {
	stored, window := 0, b.o.from/2 // a point of the curve is taken over so many events
	for _, at := range growthPoints(b.o.from, b.o.grown) {
		if _, err := d.fill(ctx, at-window-stored, growthRows); err != nil {
			return err
		}
		var took spent
		others, err := b.beside(g.store, func() (err error) {
			took, err = d.fill(ctx, window, growthRows)
			return err
		})
		if err != nil {
			return err
		}
		stored = at
		g.stored = append(g.stored, float64(at))
		g.micros = append(g.micros, micros(took.took)/float64(window))
		g.cpu = append(g.cpu, micros(took.cpu)/float64(window))
		g.others = append(g.others, others)
		b.tell("%s in order %t: %d stored, %.1f µs an event, %.1f of CPU, others %.0f %%", g.store, g.inOrder, at, micros(took.took)/float64(window), micros(took.cpu)/float64(window), 100*others)
	}
	return nil
}

// growthPoints are the numbers of stored events at which growth is measured: from
// the first, each a half more than the one before, to the last.
func growthPoints(first, last int) []int {
	var points []int
	for at := first; at < last*3/4; at = at * 3 / 2 {
		points = append(points, at)
	}
	return append(points, last)
}
