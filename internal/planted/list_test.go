package planted

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// plant is one wrong guard.
type plant struct {
	// guard is which of the wrong guards it is; see wrongGuards.
	guard string
	// name says what the changed code does.
	name string
	// why says which promise that breaks.
	why string
	// edits are the changes, one after the other.
	edits []edit
	// by are the suites that have to catch it, each of them.
	by []catch
}

// edit is a change to one file.
type edit struct {
	// file is below the root of the module.
	file string
	// old has to stand in the file once.
	old, new string
}

// catch is a suite, and its tests that are run on a plant. One of them, or of their
// subtests, has to fail.
type catch struct {
	suite suite
	tests []string
}

// suite is a general suite of tests.
type suite struct {
	name string
	// dir is the folder of the package whose tests it is made of.
	dir string
	// tests matches the names of those that belong to it.
	tests string
}

func laws(tests ...string) catch {
	return catch{suite{"laws", ".", `Test(Law\d+|Plan|FoldVectors$|IncrementalOnVectors$)`}, tests}
}

// storetest is the conformance suite, on one store; its races between processes
// and its search for histories that no order explains are in it.
func storetest(store string, cases ...string) catch {
	top := map[string]string{"sqlite": "TestStore", "postgres": "TestConformance"}[store]
	tests := make([]string, len(cases))
	for i, c := range cases {
		tests[i] = top + "/" + c
	}
	return catch{suite{"storetest on " + store, store, "^" + top + "/[a-z-]+$"}, tests}
}

// guards are a store's own tests of the statement that writes a row: with the locks
// out of the way, or with something that writes the row between reading and writing.
// Where two writers meet, the number of the fact is a second guard, and the lock a
// third: a race sees that one is missing only when all are.
func guards(store string, tests ...string) catch {
	return catch{suite{"guards of " + store, store, `^Test(Guard|GuardWithoutLocks|RefusedGuardTakesCommitAlong)$`}, tests}
}

// races are those that the conformance suite cannot know of: with the database's own
// count of deadlocks.
func races(store string, tests ...string) catch {
	return catch{suite{"races of " + store, store, `^TestNoDeadlocks$`}, tests}
}

// faults break what is below: each statement and each round trip of a store, each
// call that the engine makes of one.
func faults(of string, tests ...string) catch {
	return catch{suite{"faults of " + of, of, `^Test(EveryStatementFails|LostBeforeTheCommit|LostAtTheCommit|Faults/[a-z_,]+)$`}, tests}
}

func committer(tests ...string) catch {
	return catch{suite{"committer", "inbox/internal/committer", `^Test[A-Z]`}, tests}
}

// wrongGuards are the mistakes that have to be planted at least once.
func wrongGuards() []string {
	return []string{
		"read, then write",
		">= for >",
		"ack before commit",
		"claim without event",
		"refold inside the guarded statement",
		"terminal decided by arrival",
		"hint decided by arrival",
		"status-less fact lifts the status's order",
		"amounts added without by",
		"tie not marked",
		"former value ignored",
		"batch squeezed into one fact",
		"batch guarded by its highest order",
		"unsorted batch",
		"facts purged with their bodies",
		"orders of two mappings compared",
		"version restarted by a refold",
		"more",
	}
}

func plants() []plant {
	return slices.Concat(foldPlants(), planPlants(), storePlants(), ackPlants())
}

// root is the folder of the module.
const root = "../.."

// read returns a file of the module.
func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// changed returns the files of a plant as it changes them. What an edit replaces has
// to stand there once: the list follows the code.
func (p plant) changed(t testing.TB) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, e := range p.edits {
		text, ok := files[e.file]
		if !ok {
			text = read(t, e.file)
		}
		if n := strings.Count(text, e.old); n != 1 {
			t.Errorf("%s: the text that is replaced stands %d times in %s, want once; change the plant with the code:\n%s", p.name, n, e.file, e.old)
		}
		files[e.file] = strings.Replace(text, e.old, e.new, 1)
		if files[e.file] == text {
			t.Errorf("%s: nothing changes in %s", p.name, e.file)
		}
	}
	return files
}

// TestPlantsFitTheCode wants each plant to be a change to the code as it is now.
func TestPlantsFitTheCode(t *testing.T) {
	for _, p := range plants() {
		for name := range p.changed(t) {
			if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/") {
				t.Errorf("%s: %s is no code of the product", p.name, name)
			}
		}
	}
}

// TestListOfPlants wants the list to be whole: every wrong guard, each plant with a
// name of its own, a reason, and tests of general suites that exist.
func TestListOfPlants(t *testing.T) {
	names, guards := map[string]bool{}, map[string]bool{}
	for _, p := range plants() {
		if names[p.name] || p.name == "" || p.why == "" || len(p.edits) == 0 || len(p.by) == 0 {
			t.Errorf("plant %q stands twice, or lacks a name, a reason, an edit or a suite", p.name)
		}
		names[p.name], guards[p.guard] = true, true
		if !slices.Contains(wrongGuards(), p.guard) {
			t.Errorf("plant %q is of %q, which is none of the wrong guards", p.name, p.guard)
		}
		for _, c := range p.by {
			if len(c.tests) == 0 {
				t.Errorf("plant %q names no test of suite %s", p.name, c.suite.name)
			}
			for _, test := range c.tests {
				if !regexp.MustCompile(c.suite.tests).MatchString(test) || !exists(t, c.suite.dir, test) {
					t.Errorf("plant %q: %s is no test of suite %s", p.name, test, c.suite.name)
				}
			}
		}
	}
	for _, g := range wrongGuards() {
		if !guards[g] {
			t.Errorf("nothing is planted of %q", g)
		}
	}
}

// exists reports whether a package has a test, and, if a case of it is named, whether
// the package or the conformance suite has one of that name.
func exists(t testing.TB, dir, test string) bool {
	t.Helper()
	top, name, isCase := strings.Cut(test, "/")
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, "internal/storetest/storetest.go")
	for _, file := range files {
		more, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text += string(more)
	}
	named := strings.Contains(text, `"`+name+`"`) || strings.Contains(text, `"`+strings.ReplaceAll(name, "_", " ")+`"`)
	return strings.Contains(text, "func "+top+"(t *testing.T)") && (!isCase || named)
}
