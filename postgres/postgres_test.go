package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/pgtest"
	"github.com/onceward/onceward/internal/storetest"
	"github.com/onceward/onceward/postgres"
)

// TestMain does a worker's part in a process that the suite has started, and
// otherwise runs the tests with one server, and wants no goroutine left behind.
func TestMain(m *testing.M) {
	if _, worker := os.LookupEnv("ONCEWARD_STORETEST_WORKER"); worker {
		storetest.Main(m, storetest.Worker{Open: openWatched, Contention: contention})
	}
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func TestConformance(t *testing.T) { storetest.Run(t, harness()) }

func harness() storetest.Harness {
	return storetest.Harness{
		Fresh:      func(t testing.TB) storetest.Database { return database(pgtest.Start(t)) },
		Precision:  time.Microsecond,
		View:       "onceward_entities",
		Contention: contention,
	}
}

// watched is a store that counts how often others got in the way of its commits.
type watched struct {
	*postgres.Store
	overlaps atomic.Int64
}

func contention(s onceward.Store) int64 {
	w := s.(*watched)
	return w.overlaps.Load() + w.Retried()
}

func openWatched(dsn string) (onceward.Store, error) {
	s, err := postgres.Open(context.Background(), dsn)
	if err != nil {
		return nil, err
	}
	w := &watched{Store: s}
	s.OnOverlap(func() { w.overlaps.Add(1) })
	return w, nil
}

func database(dsn string) storetest.Database {
	return storetest.Database{
		Location: dsn,
		Open: func(t testing.TB) onceward.Store {
			t.Helper()
			s, err := openWatched(dsn)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Exec: func(t testing.TB, statement string) {
			t.Helper()
			if err := pgtest.Exec(dsn, statement); err != nil {
				t.Fatal(err)
			}
		},
		Query: func(t testing.TB, query string) string { return ask(t, dsn, query) },
	}
}

// ask returns the rows of a query as text.
func ask(t testing.TB, dsn, query string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	results, err := conn.PgConn().Exec(ctx, query).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	var lines []string
	for _, r := range results {
		for _, row := range r.Rows {
			var columns []string
			for _, c := range row {
				columns = append(columns, string(c))
			}
			lines = append(lines, strings.Join(columns, "|"))
		}
	}
	return strings.Join(lines, "\n")
}
