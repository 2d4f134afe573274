package main

import (
	"fmt"
	"slices"
	"strings"
)

// goals are what one store should reach.
type goals struct {
	ceiling    map[int][2]float64 // of the ceiling at so many connections: goal and aim
	cpu        float64            // times the ceiling's, at 256
	ack        float64            // times a synced append, at one connection
	byHand     map[int]float64    // times the better handler written by hand
	rss        float64            // MB at 256
	random     float64            // exponent of growth, random ids
	rising     float64            // the same, ids that rise with time
	duplicates float64            // times the rate of first arrivals
	hot        float64            // of the rate of spread events
	ready      float64            // ms from start to ready
	tail       float64            // 99th percentile of a commit, times its median
}

// goalsOf returns the goals that the project has set itself for a store.
func goalsOf(store string) goals {
	g := goals{
		ceiling: map[int][2]float64{256: {0.28, 0.35}, 64: {0.22, 0}, 16: {0.16, 0}},
		cpu:     4, ack: 3, byHand: map[int]float64{256: 2.7, 16: 1.5}, rss: 80, random: 0.25, rising: 0.05,
		duplicates: 1, hot: 0.5, ready: 200, tail: 5,
	}
	if store == inPostgres {
		g.ceiling = map[int][2]float64{256: {0.24, 0.30}, 64: {0.17, 0}, 16: {0.12, 0}}
		g.cpu, g.ack, g.rss, g.rising = 5, 4, 60, 0.25
		g.byHand = map[int]float64{256: 2.2, 16: 1.0}
	}
	return g
}

// collector gathers figures that could be measured.
type collector struct {
	b    *bench
	list []figure
}

func (c *collector) add(f figure, known bool) {
	if known {
		c.list = append(c.list, f)
	}
}

// of returns the runs of a variant at a number of connections, nil if there are none.
func (c *collector) of(name string, conns int) *series {
	return c.b.results[key(variant{Name: name}, conns)]
}

// compare adds the quotient of two series, if there are both.
func (c *collector) compare(f figure, of, to *series, by func(sample) float64) {
	if of != nil && to != nil {
		f.Noisy = of.isNoisy() || to.isNoisy()
		c.add(f.ratio(of.points(by), to.points(by)))
	}
}

// figures returns all figures that were measured, in the order of the table.
func (b *bench) figures() []figure {
	c := &collector{b: b}
	for _, v := range variants() {
		if v.Program == "onceward" {
			c.variant(v, goalsOf(v.Store))
		}
	}
	for _, store := range b.o.stores {
		c.repeatsAndHot(store, goalsOf(store))
	}
	return append(c.list, b.further()...)
}

// variant adds the figures of one line of the table of goals.
func (c *collector) variant(v variant, g goals) {
	conns := []int{256, 64, 16}
	for _, n := range conns {
		f := figure{Name: fmt.Sprintf("rate at %d connections, of the ceiling", n), Of: v.Name, Goal: g.ceiling[n][0], Aim: g.ceiling[n][1], Unit: "%"}
		c.compare(f, c.of(v.Name, n), c.of("ceiling", n), rps)
	}
	f := figure{Name: "CPU per event at 256 connections, of the ceiling's", Of: v.Name, Goal: g.cpu, Less: true, Unit: "times"}
	if v.Store == inPostgres {
		f.Name = "CPU per event at 256 connections, PostgreSQL's included, of the ceiling's"
	}
	c.compare(f, c.of(v.Name, 256), c.of("ceiling", 256), allCPU)
	for _, n := range conns {
		f := figure{Name: fmt.Sprintf("p99 at %d connections, of the ceiling's p50 at 256", n), Of: v.Name, Unit: "times"}
		if s, to := c.of(v.Name, n), c.of("ceiling", 256); s != nil && to != nil {
			f.Noisy = s.isNoisy() || to.isNoisy()
			c.add(f.ratio(s.points(p99), to.points(p50)))
		}
	}
	if s := c.of(v.Name, 1); s != nil {
		f := figure{Name: "median at 1 connection, of a synced append of 4 KiB", Of: v.Name, Goal: g.ack, Less: true, Unit: "times", Noisy: s.isNoisy()}
		c.add(f.ratio(s.points(p50), listed(c.b.extras.appends)))
	}
	for _, n := range []int{256, 16} {
		f := figure{Name: fmt.Sprintf("rate at %d connections, of the better handler written by hand", n), Of: v.Name, Goal: g.byHand[n], Unit: "times"}
		c.compare(f, c.of(v.Name, n), c.better(n), rps)
	}
	if s := c.of(v.Name, 256); s != nil {
		f := figure{Name: "memory at 256 connections", Of: v.Name, Goal: g.rss, Less: true, Unit: "MB", Noisy: s.isNoisy()}
		c.add(f.plain(s.values(peakRSS)))
	}
}

// better returns the runs of the handler written by hand that did better.
func (c *collector) better(conns int) *series {
	one, other := c.of("naive-select", conns), c.of("naive-upsert", conns)
	if one == nil || other != nil && other.middle(rps) > one.middle(rps) {
		return other
	}
	return one
}

// repeatsAndHot adds what is compared with the same store's first arrivals about
// many entities.
func (c *collector) repeatsAndHot(store string, g goals) {
	most := slices.Max(c.b.o.conns)
	usual := c.of(store, most)
	repeats, hot := c.of(store+"-"+ofDuplicates, most), c.of(store+"-"+ofHot, most)
	name := fmt.Sprintf("at %d connections, ", most)
	c.compare(figure{Name: name + "rate of duplicates, of first arrivals", Of: store, Goal: g.duplicates, Unit: "times"}, repeats, usual, rps)
	c.compare(figure{Name: name + "CPU per duplicate, of a first arrival's", Of: store, Goal: g.duplicates, Less: true, Unit: "times"}, repeats, usual, allCPU)
	c.compare(figure{Name: name + "rate of events about one entity, of events about many", Of: store, Goal: g.hot, Unit: "times"}, hot, usual, rps)
}

// further returns the figures that are no load over HTTP.
func (b *bench) further() []figure {
	c := &collector{b: b}
	c.add(figure{Name: "4 KiB appended and synced, median", Of: "the disk", Unit: "ms"}.plain(b.extras.appends))
	for _, store := range b.o.stores {
		g := goalsOf(store)
		var p50s, p99s []float64
		noisy := 0
		for _, t := range b.extras.tails[store] {
			p50s, p99s = append(p50s, t.p50), append(p99s, t.p99)
			if t.others > busy {
				noisy++
			}
		}
		f := figure{Name: fmt.Sprintf("p99 of a commit of %d rows, of its median", tailRows), Of: store, Goal: g.tail, Less: true, Unit: "times", Noisy: 2*noisy >= len(p50s)}
		c.add(f.ratio(listed(p99s), listed(p50s)))
		c.add(figure{Name: fmt.Sprintf("median of a commit of %d rows", tailRows), Of: store, Unit: "ms", Noisy: f.Noisy}.plain(p50s))
		s := b.extras.begins[store]
		c.add(figure{Name: fmt.Sprintf("start to ready, %d events stored", s.stored), Of: store, Goal: g.ready, Less: true, Unit: "ms"}.plain(s.clean))
		c.add(figure{Name: fmt.Sprintf("start to ready after a crash, %d events stored", s.stored), Of: store, Goal: g.ready, Less: true, Unit: "ms"}.plain(s.crashed))
	}
	for _, g := range b.extras.growths {
		f := figure{Name: fmt.Sprintf("growth of the time per event to %.0f stored, random ids: exponent", g.stored[len(g.stored)-1]), Of: g.store, Goal: goalsOf(g.store).random, Less: true, Noisy: slices.Max(g.others) > busy}
		if g.inOrder {
			f.Name = fmt.Sprintf("growth of the time per event to %.0f stored, rising ids: exponent", g.stored[len(g.stored)-1])
			f.Goal = goalsOf(g.store).rising
		}
		c.add(f.plain([]float64{g.exponent}))
		f.Name, f.Goal = strings.Replace(f.Name, "time per event", "CPU time per event", 1), 0
		c.add(f.plain([]float64{slope(g.stored, g.cpu)}))
	}
	return c.list
}
