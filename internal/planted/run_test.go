//go:build planted

package planted

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/onceward/onceward/internal/pgtest"
)

// TestMain runs the tests with one database server for all of them, whose address
// the programs that they start find in the environment.
func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// line is one of the table: a plant, the suite, its tests that failed and how long
// that took.
type line struct {
	plant     plant
	suite     suite
	by        []string
	took      time.Duration
	row, part int // where the plant stands in the list, and the suite in the plant
}

// TestPlants plants each wrong guard and wants the suites that it names to fail.
// The same tests have to pass on the code as it is.
func TestPlants(t *testing.T) {
	if !t.Run("as it is", baseline) {
		t.Fatal("the suites fail on the code as it is, so that they catch it would mean nothing")
	}
	var mu sync.Mutex
	var table []line
	t.Run("planted", func(t *testing.T) {
		for row, p := range plants() {
			for part, c := range p.by {
				t.Run(p.name+", "+c.suite.name, func(t *testing.T) {
					t.Parallel()
					l := line{plant: p, suite: c.suite, row: row, part: part}
					began := time.Now()
					l.by = p.try(t, c)
					l.took = time.Since(began)
					mu.Lock()
					defer mu.Unlock()
					table = append(table, l)
				})
			}
		}
	})
	slices.SortFunc(table, func(a, b line) int { return cmp.Or(a.row-b.row, a.part-b.part) })
	t.Logf("%d plants\n%s", len(plants()), layOut(t, table))
}

// layOut returns the table as text.
func layOut(t *testing.T, table []line) string {
	t.Helper()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "wrong guard\tplant\tsuite\tcaught by\tseconds")
	for _, l := range table {
		by := "NOTHING"
		if len(l.by) > 0 {
			by = strings.Join(l.by, ", ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.1f\n", l.plant.guard, l.plant.name, l.suite.name, by, l.took.Seconds())
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// baseline wants every test that a plant names to run and to pass.
func baseline(t *testing.T) {
	byDir := map[string][]string{}
	for _, p := range plants() {
		for _, c := range p.by {
			byDir[c.suite.dir] = append(byDir[c.suite.dir], c.tests...)
		}
	}
	for dir, tests := range byDir {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			tests = slices.Compact(slices.Sorted(slices.Values(tests)))
			r := runTests(t, "", dir, tests)
			for _, test := range tests {
				if r.ended[test] != "pass" {
					t.Errorf("%s of %s: %q, want pass", test, dir, r.ended[test])
				}
			}
			if r.err != nil || t.Failed() {
				t.Errorf("%v\n%s", r.err, r.output)
			}
		})
	}
}

// write writes what the plant changes beside the tree, and returns the overlay that
// tells the go command of it.
func (p plant) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	module, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	files := p.changed(t)
	if t.Failed() {
		t.FailNow()
	}
	for name, text := range files {
		at := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(module, filepath.FromSlash(name))] = at
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// try runs a suite's tests on a plant and returns those that failed, of which there
// has to be one.
func (p plant) try(t *testing.T, c catch) []string {
	t.Helper()
	r := runTests(t, p.write(t), c.suite.dir, c.tests)
	var caught []string
	for _, test := range c.tests {
		if r.ended[test] == "fail" {
			_, name, isCase := strings.Cut(test, "/")
			if !isCase {
				name = test
			}
			caught = append(caught, name)
		}
	}
	switch {
	case len(r.ended) == 0:
		t.Errorf("no test was run; does the plant compile?\n%v\n%s", r.err, r.output)
	case r.err == nil:
		t.Errorf("%q do not catch it: %s", c.tests, p.why)
	case len(caught) == 0:
		t.Errorf("%v, and none of %q has failed\n%s", r.err, c.tests, r.output)
	}
	return caught
}

// result is what became of a run.
type result struct {
	err    error             // of the go command
	ended  map[string]string // how each test that was begun has ended: pass, fail, skip
	output string            // the last of it
}

// most bounds a run of tests, which takes seconds.
const most = 2 * time.Minute

// runTests runs tests of one package, with an overlay if there is one.
func runTests(t *testing.T, overlay, dir string, tests []string) result {
	t.Helper()
	args := []string{"test", "-json", "-count=1", "-short", "-vet=off", "-timeout=" + most.String(), "-run=" + pattern(tests)}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	command := exec.CommandContext(t.Context(), "go", append(args, "./"+dir)...)
	command.Dir = root
	// A property that fails is not made smaller, and leaves no file in the tree. In
	// the short form of the tests one in five of the checks is made.
	checks := "300"
	if dir == "." {
		checks = "5000" // as many as in the long form
	}
	command.Env = append(os.Environ(), "RAPID_NOFAILFILE=true", "RAPID_SHRINKTIME=0s", "RAPID_CHECKS="+checks)
	out, err := command.Output()
	r := result{err: err, ended: map[string]string{}}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run the go command: %v", err)
	}
	if exit != nil {
		r.output = string(exit.Stderr)
	}
	r.read(t, out)
	return r
}

// pattern matches the tests and no other.
func pattern(tests []string) string {
	var all []string
	for _, test := range tests {
		var parts []string
		for part := range strings.SplitSeq(test, "/") {
			parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
		}
		all = append(all, strings.Join(parts, "/"))
	}
	return strings.Join(all, "|")
}

// read takes in what `go test -json` says. A test that was begun and has not ended
// was under way when the process ended, and has failed.
func (r *result) read(t *testing.T, out []byte) {
	t.Helper()
	var lines []string
	var begun []string
	in := json.NewDecoder(bufio.NewReader(bytes.NewReader(out)))
	for {
		var e struct{ Action, Test, Output string }
		if err := in.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("read what the go command says: %v", err)
		}
		switch {
		case e.Action == "output" || e.Action == "build-output":
			lines = append(lines, e.Output)
		case e.Test == "":
		case e.Action == "run":
			begun = append(begun, e.Test)
		case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
			r.ended[e.Test] = e.Action
		}
	}
	for _, test := range begun {
		if r.ended[test] == "" {
			r.ended[test] = "fail"
		}
	}
	r.output += strings.Join(lines[max(0, len(lines)-60):], "")
}
