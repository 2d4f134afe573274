package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// report prints what was found, and writes the file of results if one is wanted.
func (b *bench) report(stdout io.Writer, began time.Time) error {
	if b.o.json {
		if err := b.printJSON(stdout); err != nil {
			return err
		}
		if b.o.out == "" {
			return nil
		}
	}
	m, err := b.machine(began)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	b.write(&text, m)
	if !b.o.json {
		if _, err := stdout.Write(text.Bytes()); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	if b.o.out == "" {
		return nil
	}
	if err := os.WriteFile(b.o.out, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// write writes the report: Markdown that reads well in a terminal too.
func (b *bench) write(out *bytes.Buffer, machine [][]string) {
	fmt.Fprintf(out, "# Benchmark results\n\n")
	if b.o.quick {
		fmt.Fprintf(out, "**Quick run: short and few repetitions. Not to be quoted.**\n\n")
	}
	fmt.Fprintf(out, "Made by `%s`. README.md in this folder says how it measures.\n\n", b.o.command)
	writeTable(out, machine)
	if rows := b.loadRows(); len(rows) > 1 {
		fmt.Fprintf(out, "\n## Load\n\nMedians of the repetitions that count, with the least and the greatest. CPU is in microseconds\nper event: of the server, of PostgreSQL, of the load generator. Memory is the most the server had.\n\n")
		writeTable(out, rows)
	}
	figures := b.figures()
	if len(figures) > 0 {
		fmt.Fprintf(out, "\n## Goals\n\n")
		writeTable(out, goalRows(figures))
	}
	if len(b.extras.growths) > 0 {
		fmt.Fprintf(out, "\n## Growth\n\nMicroseconds that an event takes in commits of %d, and in brackets its CPU time, at so many\nstored events.\n\n", growthRows)
		writeTable(out, growthRowsOf(b.extras.growths))
	}
	fmt.Fprintf(out, "\n%s\n", b.noise())
}

// machine says what was measured on, and with what.
func (b *bench) machine(began time.Time) ([][]string, error) {
	cpu, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return nil, fmt.Errorf("read what the machine is: %w", err)
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return nil, fmt.Errorf("read what the machine is: %w", err)
	}
	rows := [][]string{
		{"what", "value"},
		{"date", began.UTC().Format("2006-01-02 15:04 UTC") + ", took " + time.Since(began).Round(time.Second).String()},
		{"machine", fmt.Sprintf("%d cores, %s", runtime.NumCPU(), modelOf(string(cpu)))},
		{"kernel", "Linux " + strings.TrimSpace(string(kernel))},
		{"Go", strings.TrimPrefix(runtime.Version(), "go")},
		{"SQLite", "modernc.org/sqlite " + moduleVersion("modernc.org/sqlite") + ", WAL, synchronous=FULL"},
	}
	if b.postgres != nil {
		rows = append(rows, []string{"PostgreSQL", b.postgres.version + ", " + b.postgres.settings + ", pgx " + moduleVersion("github.com/jackc/pgx/v5")})
	}
	return append(rows, []string{"load", fmt.Sprintf("closed loop, keep-alive, on the same cores; bodies of %d bytes; %d entities; %d repetitions of %v", bodySize, spread, b.o.reps, b.o.length)}), nil
}

func modelOf(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "of unknown version"
}

// loadRows is the table of loads.
func (b *bench) loadRows() [][]string {
	rows := [][]string{{"name", "conns", "events/s", "min–max", "of ceiling", "p50 ms", "p99 ms", "CPU µs", "PostgreSQL µs", "generator µs", "MB", "jobs/event", "clean", "discarded", "refused"}}
	for _, o := range b.o.chosen() {
		s := b.results[key(o.variant, o.conns)]
		if s == nil {
			continue
		}
		l := newLine(o, s)
		share := ""
		if top := b.results[key(variant{Name: "ceiling"}, o.conns)]; top != nil && o.Name != "ceiling" {
			share = fmt.Sprintf("%.1f %%", 100*l.RPS/top.middle(rps))
		}
		rows = append(rows, []string{
			o.Name, fmt.Sprint(o.conns), fmt.Sprintf("%.0f", l.RPS), fmt.Sprintf("%.0f–%.0f", l.RPSMin, l.RPSMax), share,
			fmt.Sprintf("%.2f", l.P50), fmt.Sprintf("%.2f", l.P99), fmt.Sprintf("%.1f", l.CPU), some(l.StoreCPU, "%.1f"), fmt.Sprintf("%.1f", l.SenderCPU),
			fmt.Sprintf("%.0f", l.RSS), some(l.Jobs, "%.2f"), cleanText(s), fmt.Sprint(s.discarded), fmt.Sprint(l.Refused),
		})
	}
	return rows
}

func some(x float64, format string) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf(format, x)
}

// cleanText says how many repetitions count, and marks a figure of a busy machine.
func cleanText(s *series) string {
	if s.isNoisy() {
		return fmt.Sprintf("%d, noisy", len(s.clean))
	}
	return fmt.Sprint(len(s.clean))
}

func goalRows(figures []figure) [][]string {
	rows := [][]string{{"what", "of", "goal", "measured", "min–max", "verdict"}}
	for _, f := range figures {
		verdict := f.verdict()
		if f.Noisy {
			verdict += " (noisy)"
		}
		rows = append(rows, []string{f.Name, f.Of, f.goal(), f.write(f.Value), f.write(f.Min) + "–" + f.write(f.Max), verdict})
	}
	return rows
}

func growthRowsOf(list []growth) [][]string {
	head := []string{"stored"}
	for _, g := range list {
		ids := "random ids"
		if g.inOrder {
			ids = "rising ids"
		}
		head = append(head, g.store+", "+ids)
	}
	rows := [][]string{head}
	for i := range list[0].stored {
		row := []string{fmt.Sprintf("%.0f", list[0].stored[i])}
		for _, g := range list {
			row = append(row, fmt.Sprintf("%.1f (%.1f)", g.micros[i], g.cpu[i]))
		}
		rows = append(rows, row)
	}
	return rows
}

// noise says how far other processes disturbed the run.
func (b *bench) noise() string {
	discarded, noisy := 0, 0
	for _, s := range b.results {
		discarded += s.discarded
		if s.isNoisy() {
			noisy++
		}
	}
	return fmt.Sprintf("%d repetitions were discarded and measured again because other processes used more than %.0f %% of the machine;\n"+
		"%d of %d lines stand on a busy machine all the same, and say so.", discarded, 100*busy, noisy, len(b.results))
}

// writeTable writes a Markdown table with columns of equal width; the first row is
// its head.
func writeTable(out *bytes.Buffer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for n, row := range rows {
		for i, cell := range row {
			fmt.Fprintf(out, "| %s%s ", cell, strings.Repeat(" ", widths[i]-len([]rune(cell))))
		}
		out.WriteString("|\n")
		if n == 0 {
			for _, w := range widths {
				fmt.Fprintf(out, "|%s", strings.Repeat("-", w+2))
			}
			out.WriteString("|\n")
		}
	}
}
