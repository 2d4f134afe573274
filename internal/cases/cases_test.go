package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// foreign is the environment variable that names a folder of cases to play in place
// of those that are here.
const foreign = "ONCEWARD_CASES"

// TestCases plays the cases of the field on both stores; see the package comment.
func TestCases(t *testing.T) {
	if dir := os.Getenv(foreign); dir != "" {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join("..", "..", dir) // from the root of the module, where people are
		}
		playAll(t, dir, newLibrary(filepath.Join(dir, "sources"), ownSources), nil)
		return
	}
	playAll(t, "testdata/cases", newLibrary(ownSources), func(t *testing.T, s *summary) {
		for id, w := range waiting {
			if s.whole && !slices.ContainsFunc(s.cases, func(c *fieldCase) bool { return caseNumber(c.ID) == id }) {
				t.Errorf("there is no case %s, which is said to wait for %s", id, w.why)
			}
		}
		for i, e := range exceptions {
			if s.whole && !s.excepted[i] {
				t.Errorf("the exception %s%s %s is not needed any more: no play ended so", e.id, e.method, e.what)
			}
		}
	})
}

// TestOwnCases plays cases that are made for what the cases of the field leave out.
func TestOwnCases(t *testing.T) {
	playAll(t, "testdata/own", newLibrary(ownSources), func(*testing.T, *summary) {})
}

// summary is what came of all cases of a folder.
type summary struct {
	mu       sync.Mutex
	cases    []*fieldCase
	verdicts map[string]*verdict // by case, of both stores
	excepted map[int]bool
	whole    bool // every case was played on both stores
	plays    int
}

// add takes the verdict of one play in.
func (s *summary) add(name, store string, v *verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plays++
	all := s.verdicts[name]
	if all == nil {
		all = &verdict{}
		s.verdicts[name] = all
	}
	for _, w := range v.wrong {
		all.wrong = append(all.wrong, store+": "+w)
	}
	for _, m := range v.missing {
		all.lacks(m)
	}
	for i := range v.excepted {
		s.excepted[i] = true
	}
}

// playAll plays every case of a folder on both stores. With last, the cases are our
// own: each must pass, or stand in the list of those that wait. Without, whoever
// asked is told what came of each, and the test fails if one of them fails.
func playAll(t *testing.T, dir string, lib *library, last func(*testing.T, *summary)) {
	cases, err := readCases(dir)
	if err != nil {
		t.Fatal(err)
	}
	kinds := storeKinds(t)
	s := &summary{cases: cases, verdicts: map[string]*verdict{}, excepted: map[int]bool{}}
	t.Cleanup(func() {
		s.whole = s.plays == len(cases)*len(kinds)
		t.Log(s.table())
		if last != nil {
			last(t, s)
		}
	})
	for i, c := range cases {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			for _, k := range kinds {
				t.Run(k.name, func(t *testing.T) {
					t.Parallel()
					v := playOut(c, lib, k.shelf(t, c.lasts()), fmt.Sprintf("%s%d", k.name[:1], i))
					s.add(c.file, k.name, v)
					v.demand(t, c, last == nil)
				})
			}
		})
	}
}

// demand fails the test if the verdict is not what it must be.
func (v *verdict) demand(t *testing.T, c *fieldCase, foreign bool) {
	t.Helper()
	w, waits := waiting[caseNumber(c.ID)]
	word := v.word()
	switch {
	case foreign && word != "fail":
	case word == "fail" && (foreign || !waits || !w.fails):
		t.Errorf("%s\n  %s", c.Title, strings.Join(v.wrong, "\n  "))
	case foreign:
	case word == "not supported" && !waits:
		t.Errorf("not supported, and not in the list of those that wait:\n  %s", strings.Join(v.missing, "\n  "))
	case word == "pass" && waits:
		t.Errorf("it passes, and stands in the list of those that wait for %s; take it off", w.why)
	}
}

// table is a line for each case, with what differed below it.
func (s *summary) table() string {
	var b strings.Builder
	totals := map[string]int{}
	for _, c := range s.cases {
		v := s.verdicts[c.file]
		if v == nil {
			continue // it was not asked for
		}
		totals[v.word()]++
		fmt.Fprintf(&b, "\n%-14s %s", v.word(), c.file)
		for _, line := range slices.Concat(v.wrong, v.missing) {
			fmt.Fprintf(&b, "\n%15s%s", "", strings.ReplaceAll(line, "\n", "\n"+strings.Repeat(" ", 17)))
		}
	}
	fmt.Fprintf(&b, "\n%d pass, %d fail, %d not supported", totals["pass"], totals["fail"], totals["not supported"])
	return b.String()
}
