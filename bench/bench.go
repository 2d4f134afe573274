package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"
)

// busy is the share of the machine from which on a run is discarded because other
// processes used it.
const busy = 0.15

// bench is one run of the program.
type bench struct {
	o        *options
	stderr   io.Writer
	postgres *postgresServer // nil if it is not measured
	pool     pool            // its memory is used again by each run
	rates    map[string]float64
	made     int           // databases
	waiting  time.Duration // what is left of the patience with a busy machine
	again    int           // how many repetitions may still be measured again
	results  map[string]*series
	extras   extras
}

// measure measures what the options ask for and prints it.
func measure(ctx context.Context, o *options, stdout, stderr io.Writer) (err error) {
	b := &bench{o: o, stderr: stderr, rates: map[string]float64{}, results: map[string]*series{}}
	// A machine that stays busy must not keep the program for ever.
	planned := o.reps * len(o.chosen())
	b.again, b.waiting = max(2, planned/4), time.Duration(planned)*o.length/4
	if o.start {
		b.waiting += time.Duration(2*o.reps) * o.length
	}
	if slices.Contains(o.stores, inPostgres) {
		if b.postgres, err = startPostgres(ctx, o.dir); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.postgres.close()) }()
	}
	began := time.Now()
	if err := b.rounds(ctx); err != nil {
		return err
	}
	if err := b.measureExtras(ctx); err != nil {
		return err
	}
	return b.report(stdout, began)
}

// sample is what one run has found.
type sample struct {
	rps, p50, p99      float64 // per second; milliseconds
	cpu, store, sender float64 // microseconds of CPU per event: server, PostgreSQL, generator
	rss, peak          float64 // MB of the server, at the end and at most
	others             float64 // share of the machine that other processes used
	refused            int     // answers other than 200
	first              int     // the first of these
	jobs               float64 // jobs per stored event
	rep                int     // the repetition
}

// run measures one variant once, on a database of its own.
func (b *bench) run(ctx context.Context, v variant, conns int) (s sample, err error) {
	if err := b.quiet(ctx); err != nil {
		return s, err
	}
	n, err := b.prepare(v, conns)
	if err != nil {
		return s, err
	}
	db, err := b.newDatabase(v.Store)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, db.drop()) }()
	o := order{Variant: v.Program, Store: db.url, Count: true}
	if b.o.profile != "" {
		o.Profile = filepath.Join(b.o.profile, fmt.Sprintf("%s-%d.prof", v.Name, conns))
	}
	server, err := start(ctx, o, b.stderr)
	if err != nil {
		return s, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, server.kill())
		}
	}()
	acked, err := b.send(ctx, v, conns, server, &s)
	if err != nil {
		return s, fmt.Errorf("%s: %w", v.Name, err)
	}
	if s.rss, s.peak, err = memory(server.pid()); err != nil {
		return s, err
	}
	last, err := server.stop()
	if err != nil {
		return s, err
	}
	if v.Store != nowhere {
		if err := checkStored(v, acked, n, s.refused, int(last.Events)); err != nil {
			return s, err
		}
		s.jobs = float64(last.Jobs) / float64(last.Events)
	}
	return s, nil
}

// errLost says that a server acknowledged what it has not stored.
var errLost = errors.New("what was acknowledged is not what is stored")

// checkStored compares what a server has acknowledged with what it has stored: more
// is stored only if it refused some after all.
func checkStored(v variant, acked, sent, refused, stored int) error {
	least := acked
	if v.Repeats {
		least = min(acked, sent)
	}
	if stored < least || stored > least+refused {
		return fmt.Errorf("%s: %w: %d answers were 200, %d were not, %d events are stored", v.Name, errLost, acked, refused, stored)
	}
	return nil
}

// prepare makes the requests of a run before its clock starts, and returns how
// many there are: more than will be sent, going by what the variant reached before.
func (b *bench) prepare(v variant, conns int) (int, error) {
	rate := 1.5 * b.rates[key(v, conns)]
	if rate == 0 {
		rate = []float64{8_000, 30_000, 50_000}[min(conns/16, 2)]
	}
	n := int(rate*(b.o.warm+b.o.length).Seconds()) + 4*conns
	if v.Store == nowhere {
		n = min(n, 30_000) // it does not know them again
	}
	entities := spread
	if v.Hot {
		entities = 1
	}
	s, err := newSender(v.Stream, entities, uint64(b.made))
	if err != nil {
		return 0, err
	}
	return n, b.pool.fill(s, n, time.Now())
}

// send loads the server and fills in what that shows. It returns how many requests
// were answered 200.
func (b *bench) send(ctx context.Context, v variant, conns int, server *child, s *sample) (int, error) {
	w := watched{server: server.pid()}
	if v.Store == inPostgres {
		w.postmaster = b.postgres.postmaster
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the generator makes no garbage worth a pause
	var looks []snapshot
	var failed error
	l := load{
		address: server.Public, conns: conns, pool: &b.pool, again: v.Store == nowhere || v.Repeats,
		warm: b.o.warm, length: b.o.length,
		mark: func() {
			look, err := w.look()
			failed = errors.Join(failed, err)
			looks = append(looks, look)
		},
	}
	acked := 0
	if v.Repeats { // everything is sent once before the repeats are measured
		first := l
		first.again, first.length, first.mark = false, 0, func() {}
		got, err := first.run(ctx)
		if err != nil {
			return 0, err
		}
		acked += got.acked
		s.refused += got.refused
	}
	got, err := l.run(ctx)
	if err := errors.Join(err, failed); err != nil {
		return 0, err
	}
	s.fill(got, looks[1].since(looks[0]))
	b.rates[key(v, conns)] = s.rps
	return acked + got.acked, nil
}

// fill fills in what a load and the CPU time during it show.
func (s *sample) fill(got *loaded, used snapshot) {
	n := float64(max(1, len(got.delays)))
	s.rps = got.rate()
	s.p50, s.p99 = millis(percentile(got.delays, 0.5)), millis(percentile(got.delays, 0.99))
	s.cpu, s.store, s.sender = micros(used.server)/n, micros(used.store)/n, micros(used.self)/n
	s.others = used.others(got.took)
	s.refused += got.refused
	s.first = got.first
}

// beside returns the share of the machine that others used while something ran in
// this process and in a store.
func (b *bench) beside(store string, run func() error) (float64, error) {
	w := watched{}
	if store == inPostgres {
		w.postmaster = b.postgres.postmaster
	}
	before, err := w.look()
	if err != nil {
		return 0, err
	}
	if err := run(); err != nil {
		return 0, err
	}
	after, err := w.look()
	return after.since(before).others(after.at.Sub(before.at)), err
}

// quiet waits until other processes leave the machine alone, as long as there is
// patience left.
func (b *bench) quiet(ctx context.Context) error {
	const glance = 100 * time.Millisecond
	for b.waiting > 0 {
		others, err := b.beside(nowhere, func() error { return pause(ctx, glance) })
		if err != nil || others <= busy {
			return err
		}
		b.waiting -= glance
	}
	return nil
}
