package onceward_test

import (
	"fmt"
	"time"

	"github.com/onceward/onceward"
)

// A job calls back three times, in the wrong order; the row ends the same.
func ExampleFold() {
	song, err := onceward.NewKind(onceward.Kind{
		Name:     "job",
		States:   [][]string{{"queued"}, {"running"}, {"partial"}, {"succeeded", "failed"}},
		Terminal: []string{"succeeded", "failed"},
		Order:    []onceward.Component{onceward.Rank}, // its callbacks carry no clock
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	output := func(url string) []onceward.Part {
		return []onceward.Part{{Field: "output", Value: onceward.String(url)}}
	}
	row := onceward.Fold(song, []onceward.Fact{
		{Status: "succeeded", Fields: output("whole.mp3")},
		{Status: "partial", Fields: output("half.mp3")}, // stale: it changes nothing
		{Status: "running"},
	})
	fmt.Println(row.Status, string(row.Data()), row.Tie())
	// Output: succeeded {"output":"whole.mp3"} []
}

// A sale is refunded and the clock of the sender goes by the second: facts it
// cannot tell apart are marked, until a later one settles the part.
func ExampleRow_Add() {
	sale, err := onceward.NewKind(onceward.Kind{
		Name:   "sale",
		States: [][]string{{"pending"}, {"paid", "disputed"}},
		Order:  []onceward.Component{onceward.Time},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	at := func(second int64, status string) onceward.Fact {
		return onceward.Fact{Status: status, Time: onceward.Instant(time.Unix(second, 0))}
	}
	var row onceward.Row
	var stored []onceward.Fact
	for _, fact := range []onceward.Fact{at(2, "paid"), at(1, "pending"), at(2, "disputed"), at(3, "paid")} {
		step, err := row.Add(sale, &fact, false, func() ([]onceward.Fact, error) { return stored, nil })
		if err != nil {
			fmt.Println(err)
			return
		}
		stored = append(stored, fact)
		fmt.Println(step.Verdict, step.From, "->", step.To, "by", step.Decided, row.Tie())
	}
	// Output:
	// applied  -> paid by first []
	// stale paid -> paid by time []
	// applied paid -> disputed by tie [status]
	// applied disputed -> paid by time []
}
