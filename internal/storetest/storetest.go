// Package storetest is the conformance suite of onceward.Store. A store's own
// test file makes a [Harness] and hands it to [Run]; everything that the
// contract in the root package's store.go promises is proved here, each
// bracketed name there by the case of that name.
//
// The suite knows no database by name. What differs between databases is
// declared in the Harness.
package storetest

import (
	"testing"
	"time"

	"github.com/onceward/onceward"
)

// Harness is how the suite gets at one kind of store.
type Harness struct {
	// Fresh makes an empty database. It is gone when the test ends.
	Fresh func(t testing.TB) Database
	// Precision is the step to which the store rounds times down.
	Precision time.Duration
	// Contention returns how often operations through this handle have waited
	// for another handle or process, or were refused by one and had to be tried
	// again: busy retries, waits for locks, refusals of the guard. It only grows.
	Contention func(s onceward.Store) int64
	// Alone, if not empty, says why a database cannot be opened by two handles;
	// the cases that need that are skipped with this reason.
	Alone string
	// View is the name of the documented view of rows.
	View string
}

// Database is one database under test.
type Database struct {
	// Location is what the worker processes of [Main] are handed to open it.
	Location string
	// Open opens a further handle, with connections of its own. The suite closes
	// it; closing twice must be harmless.
	Open func(t testing.TB) onceward.Store
	// Exec runs a statement as a user with tables of his own would.
	Exec func(t testing.TB, statement string)
	// Query returns the rows of a query, columns joined by "|" and rows by a line
	// feed; null is the empty text.
	Query func(t testing.TB, query string) string
	// Check, if not nil, wants the database's own files to be sound.
	Check func(t testing.TB)
}

// testCase is a sentence of the contract and what proves it.
type testCase struct {
	name string
	run  func(t *testing.T, h Harness)
}

// cases lists the suite: first what store.go names in brackets, in its order,
// then what earlier prototypes broke on.
func cases() []testCase {
	return []testCase{
		{"concurrent", testConcurrent},
		{"processes", testProcesses},
		{"durable", testDurable},
		{"atomic", testAtomic},
		{"claim-once", testClaimOnce},
		{"guard", testGuard},
		{"jobs-with-change", testJobsWithChange},
		{"repeats", testRepeats},
		{"register", testRegister},
		{"node", testNode},
		{"quarantine-ring", testQuarantineRing},
		{"read-event", testReadEvent},
		{"read-events", testReadEvents},
		{"read-entity", testReadEntity},
		{"read-entities", testReadEntities},
		{"history", testHistory},
		{"held", testHeld},
		{"stats", testStats},
		{"claim-jobs", testClaimJobs},
		{"lease-expires", testLeaseExpires},
		{"settle-token", testSettleToken},
		{"broken-job", testBrokenJob},
		{"errors", testErrors},
		{"retries", testRetries},
		{"unknown-commit", testUnknownCommit},
		{"differs", testDiffers},
		{"placeholders", testPlaceholders},
		{"arrival-order", testArrivalOrder},
		{"batching", testBatching},
		{"converges", testConverges},
		{"revisions", testRevisions},
		{"cancelled", testCancelled},
		{"closing", testClosing},
		{"user-tables", testUserTables},
		{"paging", testPaging},
		{"killed", testKilled},
		{"linearizable", testLinearizable},
	}
}

// Run proves that a store keeps the contract, in one parallel subtest a case.
func Run(t *testing.T, h Harness) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, h)
		})
	}
}

// second opens another handle on the database, or skips the test where there
// can be only one.
func (w *world) second() onceward.Store {
	w.t.Helper()
	if w.harness.Alone != "" {
		w.t.Skipf("needs a second handle: %s", w.harness.Alone)
	}
	return w.open()
}
