package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// line is one line of -json. The first six members are always the same; a reader
// should pass over others.
type line struct {
	Name  string  `json:"name"`
	Conns int     `json:"conns"`
	RPS   float64 `json:"rps"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	RSS   float64 `json:"rss_mb"`

	// CPU, StoreCPU and SenderCPU are microseconds per event: of the server, of
	// PostgreSQL and of the load generator.
	CPU       float64 `json:"cpu_us"`
	StoreCPU  float64 `json:"store_cpu_us,omitempty"`
	SenderCPU float64 `json:"generator_cpu_us"`
	RPSMin    float64 `json:"rps_min"`
	RPSMax    float64 `json:"rps_max"`
	Jobs      float64 `json:"jobs_per_event,omitempty"`
	// Others is the share of the machine that other processes used.
	Others    float64 `json:"others"`
	Runs      int     `json:"runs"`
	Discarded int     `json:"discarded"`
	Noisy     bool    `json:"noisy"`
	// Refused counts answers other than 200, in all runs.
	Refused int `json:"refused"`
}

// printJSON prints a line for each variant at each number of connections.
func (b *bench) printJSON(out io.Writer) error {
	lines := json.NewEncoder(out)
	for _, o := range b.o.chosen() {
		if err := lines.Encode(newLine(o, b.results[key(o.variant, o.conns)])); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	for _, f := range b.further() {
		if err := lines.Encode(f); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

func newLine(o one, s *series) line {
	least, most := spreadOf(s.values(rps))
	refused := 0
	for _, x := range s.samples() {
		refused += x.refused
	}
	of := func(f func(sample) float64, digits int) float64 { return round(s.middle(f), digits) }
	return line{
		Name: o.Name, Conns: o.conns, RPS: of(rps, 0), P50: of(p50, 3), P99: of(p99, 3), RSS: of(peakRSS, 1),
		CPU: of(cpu, 1), StoreCPU: of(func(s sample) float64 { return s.store }, 1),
		SenderCPU: of(func(s sample) float64 { return s.sender }, 1), RPSMin: round(least, 0), RPSMax: round(most, 0),
		Jobs: of(func(s sample) float64 { return s.jobs }, 3), Others: of(func(s sample) float64 { return s.others }, 3),
		Runs: len(s.samples()), Discarded: s.discarded, Noisy: s.isNoisy(), Refused: refused,
	}
}

// round rounds to so many digits behind the point.
func round(x float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(x*p) / p
}
