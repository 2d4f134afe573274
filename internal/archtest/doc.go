// Package archtest checks the shape of a Go module: which package imports which,
// what may touch the clock or start a goroutine, how long files grow, what is
// documented. It parses the sources itself and never asks the go command, whose
// answers do not make a cached test result stale; the files that [Load] opens do.
//
// A [Policy] says what is wanted and [Check] returns each place that breaks it.
// The policy of this module is in arch_test.go at its root.
package archtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Policy is what a module wants of itself.
type Policy struct {
	// Module is the module's path, as in its go.mod.
	Module string
	// Rows has one entry per package, and no other.
	Rows []Row
	// Deps has one entry per import path from outside the module and the
	// standard library, and who may import it.
	Deps []Dep
	// Bans are imports that nothing but a test may have.
	Bans []Ban
	// Allow lists the places where a rule does not hold, each with its reason.
	// A place where the rule holds after all is a finding too.
	Allow []Place
	// MinDoc is the share of exported names, from 0 to 1, that each public
	// package must document.
	MinDoc float64
}

// Row is what one package may import.
type Row struct {
	// Dir is the package's folder below the root of the module; the root is ".".
	Dir string
	// Ours are the folders of this module it may import; "x/..." is x and all
	// below it.
	Ours []string
	// Tests are those its tests may import besides.
	Tests []string
	// Never are import paths, or "path/..." patterns, it may not import although
	// other packages may. Tests are free.
	Never []string
	// Pure says that the package may not wait for time to pass either.
	Pure bool
	// Testing packages are made of tests that others call: their functions may be
	// as long as tests.
	Testing bool
	// Public packages are for other modules: they are documented and have an
	// example with checked output.
	Public bool
}

// Dep is an import path of another module, or a "path/..." pattern.
type Dep struct {
	Path string
	// By are the folders that may import it, Tests those whose tests may. "..."
	// is every folder.
	By, Tests []string
}

// Ban is an import path, or a "path/..." pattern, and the reason against it.
type Ban struct{ Path, Why string }

// Place exempts some place from a rule.
type Place struct {
	Rule string
	// At is a file, "file:Name" for one declaration of it, or "folder/..." for a
	// folder and all below it.
	At string
	// Why is the reason, which must be given.
	Why string
}

// Finding is one place that breaks a rule.
type Finding struct {
	Rule string
	Path string // the file or folder
	Line int    // 0 where the finding is not about a line
	Name string // the declaration it is about, if any
	Text string
}

// String formats f as "file:line: rule: text".
func (f Finding) String() string {
	at := f.Path
	if f.Line > 0 {
		at = fmt.Sprintf("%s:%d", f.Path, f.Line)
	}
	return fmt.Sprintf("%s: %s: %s", at, f.Rule, f.Text)
}

// Rule is one thing that must hold.
type Rule struct {
	Name  string
	About string
	find  func(*Tree, *Policy) []Finding
}

// Rules returns every rule that [Check] applies, but for the one about the list
// of exceptions itself, which is named "allow".
func Rules() []Rule {
	return []Rule{
		{"rows", "every package has a row and every row a package", findRows},
		{"imports", "a package imports only what its row allows", findImports},
		{"deps", "other modules are imported only where listed", findDeps},
		{"bans", "some packages are imported by tests only", findBans},
		{"names", "a package is named for what it provides", findNames},
		{"comment", "a package has one comment, which starts with its name", findComments},
		{"init", "there is no init function", findInits},
		{"vars", "no code changes a package variable", findVars},
		{"globals", "nothing uses a logger, mux, client or setting of the whole process", findGlobals},
		{"clock", "time is an argument where it decides", findClock},
		{"sleep", "nothing sleeps; waits are on events", findSleeps},
		{"goroutines", "goroutines start in few places", findGoroutines},
		{"exit", "only main ends the process", findExits},
		{"errortext", "no code compares the text of an error", findErrorText},
		{"skips", "no test is skipped silently", findSkips},
		{"sql", "query text is in the stores only", findSQL},
		{"database", "no code asks which database is below", findDatabases},
		{"filesize", "files stay short", findFileSizes},
		{"funcsize", "functions stay short", findFuncSizes},
		{"docs", "exported names of public packages are documented", findDocs},
		{"examples", "each public package has an example with output", findExamples},
		{"machine", "no file names a machine, a registry or a private tool", findMachines},
	}
}

// maxSizeExceptions is how many places may be longer than the size rules allow:
// a longer list means that the ceiling is not believed in.
const maxSizeExceptions = 5

// Check returns what breaks p in t, in order of place. It is empty when all holds.
func Check(t *Tree, p *Policy) []Finding {
	used := make([]bool, len(p.Allow))
	var out []Finding
	for _, r := range Rules() {
		for _, f := range r.find(t, p) {
			f.Rule = r.Name
			if i := allowed(p, f); i >= 0 {
				used[i] = true
				continue
			}
			out = append(out, f)
		}
	}
	out = append(out, checkAllow(p, used)...)
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
	return out
}

// allowed returns the index of the place that covers f, or -1.
func allowed(p *Policy, f Finding) int {
	return slices.IndexFunc(p.Allow, func(a Place) bool {
		if a.Rule != f.Rule {
			return false
		}
		return a.At == f.Path || a.At == f.Path+":"+f.Name || under(a.At, f.Path)
	})
}

// checkAllow finds exceptions that cover nothing, that have no reason, and those
// beyond the number that is allowed.
func checkAllow(p *Policy, used []bool) []Finding {
	var out []Finding
	sizes := 0
	for i, a := range p.Allow {
		if !used[i] {
			out = append(out, Finding{Rule: "allow", Path: a.At,
				Text: fmt.Sprintf("the exception from rule %q covers nothing; take it off the list", a.Rule)})
		}
		if strings.TrimSpace(a.Why) == "" {
			out = append(out, Finding{Rule: "allow", Path: a.At, Text: "the exception has no reason"})
		}
		if a.Rule != "filesize" && a.Rule != "funcsize" {
			continue
		}
		if sizes++; sizes > maxSizeExceptions {
			out = append(out, Finding{Rule: "allow", Path: a.At,
				Text: fmt.Sprintf("more than %d exceptions from the size rules", maxSizeExceptions)})
		}
	}
	return out
}

// under reports whether pattern is "x/..." and path is x or below it, or
// pattern is "...".
func under(pattern, path string) bool {
	base, ok := strings.CutSuffix(pattern, "...")
	if !ok {
		return false
	}
	base = strings.TrimSuffix(base, "/")
	return base == "" || path == base || strings.HasPrefix(path, base+"/")
}

// matches reports whether path is one of patterns, or below one that ends in
// "/...".
func matches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return p == path || under(p, path) })
}
