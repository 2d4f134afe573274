package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/sqlite"
)

// The engine, package inbox, does this for each delivery; a store can be used
// without it as well.
func Example() {
	store, err := sqlite.Open(":memory:") // or a file: app.db
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	kind, err := onceward.NewKind(onceward.Kind{Name: "job", States: [][]string{{"queued"}, {"partial"}, {"succeeded"}}, Order: []onceward.Component{onceward.Rank}})
	if err != nil {
		log.Fatal(err)
	}
	mapping := &onceward.Mapping{Source: "music", Revision: 1, Kinds: map[string]*onceward.Kind{"job": kind}}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, status := range []string{"succeeded", "partial", "partial"} { // out of order, and one of them twice
		body := []byte(`{"task":"t1","status":"` + status + `"}`)
		a := &onceward.Arrival{
			Event: &onceward.Event{
				ID: int64(i + 1), Source: "music", Key: "t1:" + status, Digest: onceward.DigestOf(body),
				Delivery: &onceward.Delivery{At: now, Method: "POST", Target: "/in/music", Body: body},
			},
			Facts:   []onceward.Fact{{Rule: "callback", Kind: "job", Key: "t1", Status: status}},
			Mapping: mapping,
		}
		if err := store.Commit(context.Background(), &onceward.Batch{Arrivals: []*onceward.Arrival{a}, Now: now}); err != nil {
			log.Fatal(err) // nothing was acknowledged, so the sender tries again
		}
		fmt.Print(a.Outcome)
		for _, r := range a.Results {
			fmt.Printf(", %v: %s at version %d", r.Verdict, r.Status, r.Version)
		}
		fmt.Println()
	}
	// Output:
	// new, applied: succeeded at version 1
	// new, stale: succeeded at version 1
	// duplicate
}
