// Package planted proves that the tests of this module see a wrong guard. It has
// no code beside its tests.
//
// A plant is a small change to the real source, of the kind that people make: the
// version is dropped from the WHERE, a `>` becomes `>=`, the sender is answered
// before the commit. The list is in the files of this package. Each plant names the
// general suites that have to fail on it: the laws of Fold and Plan, the conformance
// suite of the stores, the races, the faults, the committer's own tests. None of
// these tests was made for a plant, and production code knows nothing of them.
//
// The plants are tried with a build tag, which takes from one to three minutes:
//
//	go test -count=1 -tags planted -v ./internal/planted
//
// Each changed file is written to a temporary folder and given to `go test` as an
// overlay, so that the tree is never touched. It has to compile, and a test of the
// suite named has to fail. Before that the same tests have to pass on the code as it
// is. The run ends with a table: the plant, what caught it, and how long that took.
//
// Without the tag only the list is checked: what a plant replaces still stands in
// its file, once, and the tests that it names exist. So the list follows the code.
package planted
