package main

import (
	"encoding/json"
	"fmt"
)

// serverVariable tells a process that it is a server under test, and which.
const serverVariable = "ONCEWARD_BENCH_SERVER"

// order is what a server under test is told.
type order struct {
	Variant string
	// Store is where it stores: sqlite:FILE or postgres://….
	Store string
	// Count asks for what is stored, at the end.
	Count bool
	// Profile is a file for a CPU profile of the server, "" for none.
	Profile string
}

// greeting is the first line that it prints: where it listens.
type greeting struct{ Public, Admin string }

// farewell is its last line: what is stored.
type farewell struct{ Events, Jobs int64 }

func (o order) String() string {
	text, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("an order of texts cannot be written: %v", err))
	}
	return string(text)
}
