package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/internal/pgtest"
)

func TestMain(m *testing.M) {
	if _, is := os.LookupEnv(serverVariable); is {
		os.Exit(run(context.Background(), nil, os.Stdout, os.Stderr)) // until its input ends
	}
	os.Exit(pgtest.Main(m))
}

// TestTables runs the whole program, as short as it goes, and reads its tables.
func TestTables(t *testing.T) {
	var out, errs bytes.Buffer
	args := []string{"-quick", "-reps", "1", "-length", "50ms", "-store", "sqlite", "-conns", "1,8", "-dir", t.TempDir()}
	if code := run(t.Context(), args, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	for _, want := range []string{
		"# Benchmark results", "Quick run", "`go run ./bench -quick -reps 1", "| sqlite-derived ", "| sqlite-duplicates ", "| sqlite-hot ",
		"rate of duplicates, of first arrivals", "median at 1 connection, of a synced append of 4 KiB",
		"p99 of a commit of 32 rows, of its median", "modernc.org/sqlite",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the tables lack %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "postgres") {
		t.Errorf("the tables have what was not measured:\n%s", out.String())
	}
}

// TestJSON runs every variant on both stores and reads the lines.
func TestJSON(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-json", "-reps", "1", "-length", "60ms", "-conns", "4", "-dir", t.TempDir()}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	lines := json.NewDecoder(&out)
	lines.DisallowUnknownFields()
	for _, v := range variants() {
		var l line
		if err := lines.Decode(&l); err != nil {
			t.Fatalf("before %s: %v", v.Name, err)
		}
		if l.Name != v.Name || l.Conns != 4 || l.RPS <= 0 || l.P50 <= 0 || l.P99 < l.P50 || l.RSS <= 0 || l.Runs != 1 || l.Refused != 0 {
			t.Errorf("%s: %+v", v.Name, l)
		}
		if v.Program == "onceward" && l.Jobs < 0.9 {
			t.Errorf("%s: %.2f jobs per event; nearly every event should make one", v.Name, l.Jobs)
		}
	}
	if lines.More() {
		t.Errorf("there is more than one line a variant: %s", out.String())
	}
}

// TestStartAndGrowth measures both over very few events.
func TestStartAndGrowth(t *testing.T) {
	o, err := parseOptions([]string{"-json", "-only", "append", "-reps", "1", "-start", "-stored", "600", "-growth", "-dir", t.TempDir()}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	o.from, o.grown, o.length = 400, 1200, 10*time.Millisecond
	var out, errs bytes.Buffer
	if err := measure(t.Context(), o, &out, &errs); err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for lines := json.NewDecoder(&out); lines.More(); {
		var f figure
		if err := lines.Decode(&f); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(f.Name, "exponent") && f.Value <= 0 {
			t.Errorf("%+v", f)
		}
		names[f.Name]++
	}
	for name, want := range map[string]int{
		"start to ready, 600 events stored": 2, "start to ready after a crash, 600 events stored": 2,
		"growth of the time per event to 1200 stored, random ids: exponent": 2,
		"growth of the time per event to 1200 stored, rising ids: exponent": 2,
	} {
		if names[name] != want {
			t.Errorf("%q is there %d times, want %d: %v", name, names[name], want, names)
		}
	}
}

// TestUsage says what to write instead.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"-conns 1,many":     "as 1,16,64,256",
		"-store mysql":      "write some of sqlite,postgres",
		"-only fast":        "no such name",
		"-reps 0":           "from 1 to 1000",
		"-length 1h":        "10ms to 5m",
		"-stored -1":        "positive",
		"-growth -grown 10": "at least twice",
		"all":               "is no option",
	} {
		var errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(args), &errs, &errs); code != 2 || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit code %d, %q, want %q in it", args, code, errs.String(), want)
		}
	}
}

// TestWhereResultsGo keeps parts and short runs from being taken for results.
func TestWhereResultsGo(t *testing.T) {
	for args, want := range map[string]string{
		"":                    resultsFile,
		"-growth -start":      resultsFile,
		"-quick":              "",
		"-json":               "",
		"-store sqlite":       "",
		"-only ceiling":       "",
		"-quick -out x.md":    "x.md",
		"-conns 1 -out other": "other",
	} {
		o, err := parseOptions(strings.Fields(args), os.Stderr)
		if err != nil || o.out != want {
			t.Errorf("%q: %q, %v; want %q", args, o.out, err, want)
		}
	}
}
