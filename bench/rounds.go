package main

import (
	"context"
	"fmt"
	"slices"
)

// series are the runs of one variant at one number of connections.
type series struct {
	clean, noisy []sample
	discarded    int
}

// tries is how often one repetition is measured before it stands as it is.
const tries = 3

// rounds measures everything in turn, again and again, each time in another order.
func (b *bench) rounds(ctx context.Context) error {
	list := b.o.chosen()
	for rep := range b.o.reps {
		for _, o := range rotate(list, rep) {
			if err := b.repeat(ctx, o, rep); err != nil {
				return err
			}
		}
		if err := b.appends(ctx); err != nil {
			return err
		}
		if err := b.tails(ctx); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(b.stderr, "repetition %d of %d is done\n", rep+1, b.o.reps)
	}
	return nil
}

// rotate returns the list in the order of a repetition: it begins elsewhere, and
// every second one goes backwards.
func rotate(list []one, rep int) []one {
	if len(list) == 0 {
		return nil
	}
	at := rep * 3 % len(list)
	out := append(slices.Clone(list[at:]), list[:at]...)
	if rep%2 == 1 {
		slices.Reverse(out)
	}
	return out
}

// repeat measures one repetition of one variant, again if the machine was busy.
func (b *bench) repeat(ctx context.Context, o one, rep int) error {
	k := key(o.variant, o.conns)
	if b.results[k] == nil {
		b.results[k] = &series{}
	}
	all := b.results[k]
	for try := 1; ; try++ {
		s, err := b.run(ctx, o.variant, o.conns)
		if err != nil {
			return err
		}
		s.rep = rep
		b.tell("%d %-20s %4d connections %8.0f/s  p50 %6.2f p99 %6.2f ms  cpu %5.1f+%5.1f µs (generator %4.1f)  %3.0f MB  jobs %.2f  others %2.0f %%  refused %d",
			rep+1, o.Name, o.conns, s.rps, s.p50, s.p99, s.cpu, s.store, s.sender, s.peak, s.jobs, 100*s.others, s.refused)
		if s.others <= busy {
			all.clean = append(all.clean, s)
			return nil
		}
		if try == tries || b.again == 0 {
			all.noisy = append(all.noisy, s)
			return nil
		}
		b.again--
		all.discarded++
	}
}

// tell says on stderr what is going on, if that is wanted.
func (b *bench) tell(format string, args ...any) {
	if b.o.verbose {
		_, _ = fmt.Fprintf(b.stderr, format+"\n", args...)
	}
}

// samples returns those that count: the clean ones, unless there is none.
func (s *series) samples() []sample {
	switch {
	case s == nil:
		return nil
	case s.isNoisy():
		return s.noisy
	default:
		return s.clean
	}
}

// isNoisy reports whether the figure stands on runs on a busy machine.
func (s *series) isNoisy() bool { return len(s.clean) == 0 }

// values returns one figure of each sample that counts.
func (s *series) values(of func(sample) float64) []float64 {
	var list []float64
	for _, x := range s.samples() {
		list = append(list, of(x))
	}
	return list
}

// points returns the same, each with its repetition.
func (s *series) points(of func(sample) float64) points {
	list := points{}
	for _, x := range s.samples() {
		list[x.rep] = of(x)
	}
	return list
}

// middle returns the median of one figure.
func (s *series) middle(of func(sample) float64) float64 { return median(s.values(of)) }

// Figures of a sample, for series.
func rps(s sample) float64     { return s.rps }
func p50(s sample) float64     { return s.p50 }
func p99(s sample) float64     { return s.p99 }
func cpu(s sample) float64     { return s.cpu }
func allCPU(s sample) float64  { return s.cpu + s.store }
func peakRSS(s sample) float64 { return s.peak }
