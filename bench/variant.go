package main

import (
	"fmt"
	"slices"
	"strings"
)

// What a server under test stores in.
const (
	nowhere    = ""
	inSQLite   = "sqlite"
	inPostgres = "postgres"
)

// variant is one server under test with what is sent to it.
type variant struct {
	Name string
	// Program is what the server is, as an order names it.
	Program string
	Store   string
	Stream  stream
	// Hot sends events about one entity only.
	Hot bool
	// Repeats sends everything once before it is measured, so that what is measured
	// are duplicates.
	Repeats bool
}

// variants lists what is measured at every number of connections, in the order of
// the table.
func variants() []variant {
	return []variant{
		{Name: "ceiling", Program: "ceiling"},
		{Name: "sqlite", Program: "onceward", Store: inSQLite},
		{Name: "sqlite-derived", Program: "onceward", Store: inSQLite, Stream: derivedStream},
		{Name: "postgres", Program: "onceward", Store: inPostgres},
		{Name: "postgres-derived", Program: "onceward", Store: inPostgres, Stream: derivedStream},
		{Name: "naive-select", Program: "naive-select", Store: inPostgres},
		{Name: "naive-upsert", Program: "naive-upsert", Store: inPostgres},
	}
}

// further lists what is measured at the greatest number of connections only.
func further(store string) []variant {
	return []variant{
		{Name: store + "-" + ofDuplicates, Program: "onceward", Store: store, Repeats: true},
		{Name: store + "-" + ofHot, Program: "onceward", Store: store, Hot: true},
	}
}

// one is a variant at a number of connections.
type one struct {
	variant
	conns int
}

func key(v variant, conns int) string { return fmt.Sprintf("%s@%d", v.Name, conns) }

// chosen returns what the options ask for, those of one number of connections
// together, so that what is compared is measured one after the other.
func (o *options) chosen() []one {
	var list []one
	most := slices.Max(o.conns)
	for _, conns := range o.conns {
		for _, v := range variants() {
			if o.measures(v.Store) && o.wants(v.Name) {
				list = append(list, one{v, conns})
			}
		}
		for _, store := range o.stores {
			for _, v := range further(store) {
				if conns == most && o.wantsExtra(strings.TrimPrefix(v.Name, store+"-")) {
					list = append(list, one{v, conns})
				}
			}
		}
	}
	return list
}

// measures reports whether a store is asked for.
func (o *options) measures(store string) bool {
	return store == nowhere || slices.Contains(o.stores, store)
}
