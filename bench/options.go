package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options are what the command line asks for.
type options struct {
	quick, json bool
	conns       []int
	stores      []string
	only        []string // empty for all
	out         string   // where the results are written, "" for nowhere
	command     string

	reps    int
	length  time.Duration // of what is measured of one run
	warm    time.Duration // before it
	start   bool
	stored  int // how many events the file of -start has
	growth  bool
	from    int // from how many stored events on growth is measured
	grown   int // and to how many
	dir     string
	profile string // a folder for CPU profiles, "" for none
	verbose bool
}

// The further measures, as -only names them.
const (
	ofAppend     = "append"
	ofDuplicates = "duplicates"
	ofHot        = "hot"
	ofTail       = "tail"
)

const resultsFile = "bench/RESULTS.md"

// parseOptions reads the command line. The error is the user's, and says what to
// write instead.
func parseOptions(args []string, stderr io.Writer) (*options, error) {
	o := &options{from: growthFrom, command: strings.TrimSpace("go run ./bench " + strings.Join(args, " "))}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.quick, "quick", false, "short runs and three of each: about two minutes, and figures that are not to be quoted")
	f.BoolVar(&o.json, "json", false, "print one JSON object a line in place of the tables, and write no file")
	conns := f.String("conns", "1,16,64,256", "how many connections send at the same time")
	stores := f.String("store", "sqlite,postgres", "which stores are measured")
	only := f.String("only", "", "names of variants and further measures, as sqlite,ceiling,hot; all unless told")
	f.StringVar(&o.out, "out", resultsFile, "the file that the results are written to; with -quick or -json only if it is named")
	f.IntVar(&o.reps, "reps", 5, "how many clean repetitions a figure is the median of")
	f.DurationVar(&o.length, "length", 4*time.Second, "how long one run is measured")
	f.BoolVar(&o.start, "start", false, "also measure the time from start to ready on a file of -stored events")
	f.IntVar(&o.stored, "stored", 1_000_000, "how many events -start stores first")
	f.BoolVar(&o.growth, "growth", false, "also measure how the time per event grows from 100,000 to -grown stored events")
	f.IntVar(&o.grown, "grown", 3_000_000, "how many events -growth stores")
	f.StringVar(&o.dir, "dir", "", "the folder for the databases, on the disk that is to be measured; the system's temporary one unless told")
	f.StringVar(&o.profile, "profile", "", "a folder for CPU profiles of the servers under test, one a variant and number of connections")
	f.BoolVar(&o.verbose, "v", false, "tell of each run on stderr")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("%q is no option; see go run ./bench -help", f.Arg(0))
	}
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	o.settle(given)
	var err error
	if o.conns, err = parseConns(*conns); err != nil {
		return nil, err
	}
	if o.stores, err = parseNames("-store", *stores, []string{inSQLite, inPostgres}); err != nil {
		return nil, err
	}
	if o.only, err = parseNames("-only", *only, everyName()); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	return o, nil
}

// settle sets what depends on several flags.
func (o *options) settle(given map[string]bool) {
	if o.quick {
		if !given["reps"] {
			o.reps = 3
		}
		if !given["length"] {
			o.length = 600 * time.Millisecond
		}
	}
	if (o.quick || o.json || given["only"] || given["store"] || given["conns"]) && !given["out"] {
		o.out = "" // a part is no result
	}
	o.warm = o.length / 4
}

func (o *options) check() error {
	switch {
	case o.reps < 1 || o.reps > 1000:
		return fmt.Errorf("-reps %d: write a number from 1 to 1000", o.reps)
	case o.length < 10*time.Millisecond || o.length > 5*time.Minute:
		return fmt.Errorf("-length %v: write 10ms to 5m", o.length)
	case o.stored < 1:
		return fmt.Errorf("-stored %d: write a positive number", o.stored)
	case o.growth && o.grown < 2*o.from:
		return fmt.Errorf("-grown %d: growth is measured from %d on; write at least twice that", o.grown, o.from)
	}
	return nil
}

// wants reports whether a variant or a further measure is asked for.
func (o *options) wants(name string) bool {
	return len(o.only) == 0 || slices.Contains(o.only, name)
}

// wantsExtra reports whether a further measure is asked for: with -json only by
// name, since its lines are not those of a variant.
func (o *options) wantsExtra(name string) bool {
	if o.json {
		return slices.Contains(o.only, name)
	}
	return o.wants(name)
}

func everyName() []string {
	names := []string{ofAppend, ofDuplicates, ofHot, ofTail}
	for _, v := range variants() {
		names = append(names, v.Name)
	}
	return names
}

func parseNames(flag, text string, known []string) ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%s %s: no such name; write some of %s", flag, name, strings.Join(known, ","))
		}
		names = append(names, name)
	}
	return names, nil
}

func parseConns(text string) ([]int, error) {
	var conns []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 || n > 10_000 {
			return nil, fmt.Errorf("-conns %q: write numbers from 1 to 10000, as 1,16,64,256", text)
		}
		if !slices.Contains(conns, n) {
			conns = append(conns, n)
		}
	}
	return conns, nil
}
