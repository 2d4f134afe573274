package inbox_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onceward/onceward/internal/pgtest"
	"github.com/onceward/onceward/postgres"
	"github.com/onceward/onceward/sqlite"
)

// stoppable makes a site whose store can be stopped from writing, and let go on. A
// nil site is one that this machine cannot have, which has been said.
type stoppable func(t *testing.T, server *pgtest.Server) (s *site, stop, resume func())

// storesThatCannotWrite delivers to stores that take nothing for a while, or
// have no room: what is not kept is not acknowledged, what was kept can be read, and
// the same inbox goes on as soon as the store does.
func storesThatCannotWrite(t *testing.T, server *pgtest.Server) {
	for name, make := range map[string]stoppable{
		"a file that may not grow":       fullFile,
		"a file that may not be written": lockedFile,
		"a file on a full disk":          fullDisk,
		"a server on a full disk":        fullServer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if s, stop, resume := make(t, server); s != nil {
				deliverUntilRefused(t, s, stop, resume)
			}
		})
	}
}

// large is a body of 2 kB about an order.
func large(key string) string {
	return strings.Replace(order("e"+key, key, "paid", "10:00:00"), `"total"`, `"note":"`+strings.Repeat("x", 2000)+`","total"`, 1)
}

func deliverUntilRefused(t *testing.T, s *site, stop, resume func()) {
	t.Helper()
	var keys []string
	acked := map[string]int64{}
	status := http.StatusOK
	for status == http.StatusOK {
		key := fmt.Sprint("o", len(keys))
		if keys = append(keys, key); len(keys) == 20 {
			stop()
		}
		a, err := s.try(large(key))
		if err != nil {
			t.Fatal(err)
		}
		if status = a.status; status == http.StatusOK {
			acked[key] = a.id
		}
		if len(keys) > 20_000 {
			t.Fatal("the store takes everything")
		}
	}
	for range 3 {
		key := fmt.Sprint("o", len(keys))
		keys = append(keys, key)
		if a, err := s.try(large(key)); err != nil || a.status != http.StatusServiceUnavailable {
			t.Errorf("answered %d, %v while the store takes nothing", a.status, err)
		}
	}
	for key, id := range acked {
		if e, err := s.below.Event(ctx, id); err != nil || e.Key != "e"+key {
			t.Fatalf("acknowledged event %d of %s cannot be read: %v", id, key, err)
		}
	}
	resume()
	for _, key := range keys {
		a, _, err := s.until(large(key), recoverWithin)
		id, taken := acked[key]
		if err != nil || a.outcome != "new" && a.outcome != "duplicate" || taken && (a.outcome != "duplicate" || a.id != id) {
			t.Fatalf("%s, which was taken: %v, is then %+v, %v", key, taken, a, err)
		}
	}
	t.Logf("%d events were taken, then %d were not", len(acked), len(keys)-len(acked))
	s.wantOnce(t, keys...)
}

// fileSite is a site on a file, over a pool of one connection, whose settings can be
// changed while the store uses it.
func fileSite(t *testing.T) (s *site, set func(setting string, value int)) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "app.db"))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	store, err := sqlite.New(db, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return newSite(t, store), func(setting string, value int) {
		t.Helper()
		if _, err := db.Exec(fmt.Sprintf("pragma %s = %d", setting, value)); err != nil {
			t.Fatal(err)
		}
	}
}

func fullFile(t *testing.T, _ *pgtest.Server) (s *site, stop, resume func()) {
	s, set := fileSite(t)
	return s, func() { set("max_page_count", 200) }, func() { set("max_page_count", 1<<30) }
}

func lockedFile(t *testing.T, _ *pgtest.Server) (s *site, stop, resume func()) {
	s, set := fileSite(t)
	return s, func() { set("query_only", 1) }, func() { set("query_only", 0) }
}

// readOnlyServer is a site on a server that is told to take no writes, as one that
// has become a standby.
func readOnlyServer(t *testing.T, server *pgtest.Server) (s *site, stop, resume func()) {
	s = newSite(t, openPostgres(t, server.Database(t), postgres.Config{}))
	tell := func(value string) func() {
		return func() {
			for _, statement := range []string{"alter system set default_transaction_read_only = " + value, "select pg_reload_conf()"} {
				if err := pgtest.Exec(server.DSN("postgres"), statement); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return s, tell("on"), tell("off")
}
