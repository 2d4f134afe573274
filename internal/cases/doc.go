// Package cases plays failure cases from the field: how real receivers of
// webhooks broke, each told as deliveries over HTTP, things done to the system,
// and what must be true in the end. It has no code beside its tests.
//
// Every case is played over real HTTP on both stores, with workers running, and
// then again in other orders: all orders of up to five deliveries, 120 drawn ones
// of more, with each delivery sent twice, must end in the same rows. Deliveries
// that start at once are raced many times.
//
// # Other cases
//
// The environment variable ONCEWARD_CASES names a folder of cases in the form of
// testdata/cases, to be played in place of those that are here:
//
//	ONCEWARD_CASES=DIR go test -count=1 -v -run TestCases ./internal/cases
//
// It prints a line for each case (pass, fail, not supported), with what differed
// or what is not supported, and fails if a case fails, or if there is none. What a
// case names and this package does not know is never passed over: the case is not
// supported then, and the line names it. A provider is known if the catalogue or
// testdata/sources has a file of its name; a file of the same name in DIR/sources
// goes before both. A relative DIR is taken from the root of the module.
package cases
