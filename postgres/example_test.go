package postgres_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/onceward/onceward/postgres"
)

func ExampleOpen() {
	store, err := postgres.Open(context.Background(), os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	for _, w := range store.Warnings() {
		log.Print(w)
	}
}

// The SQL for an operator who makes the tables by hand.
func ExampleMigrations() {
	steps, err := postgres.Migrations("hooks", "")
	if err != nil {
		log.Fatal(err)
	}
	first := steps[0]
	fmt.Println(first.Version, first.Name)
	for line := range strings.Lines(first.SQL) {
		if strings.HasPrefix(line, "create view") {
			fmt.Print(line)
		}
	}
	// Output:
	// 1 tables
	// create view "hooks"."onceward_entities" as
}
