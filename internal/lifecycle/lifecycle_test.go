package lifecycle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/pgtest"
	"github.com/onceward/onceward/postgres"
	"github.com/onceward/onceward/provider"
	"github.com/onceward/onceward/sqlite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// orders is how many seeded orders each lifecycle is played in on each store.
// ONCEWARD_CONVERGE=all plays as many as there are permutations, and 40,320
// where there are more.
func orders(events int) int {
	switch {
	case os.Getenv("ONCEWARD_CONVERGE") == "all":
	case testing.Short(): // beside the long run, as under the race detector
		return 50
	default:
		return 500
	}
	n := 1
	for i := 2; i <= min(events, 8); i++ {
		n *= i
	}
	return n
}

// heard is one sample as the provider reads it.
type heard struct {
	readings []provider.Reading
	delivery *onceward.Delivery
}

func listen(t *testing.T, name string) ([]heard, *provider.Provider) {
	t.Helper()
	p, err := provider.Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []heard
	for _, s := range provider.Samples(name) {
		all = append(all, heard{p.Read(s.Request()), &onceward.Delivery{At: s.Now, Method: s.Method, Body: s.Body}})
	}
	if len(all) == 0 {
		t.Fatalf("%s has no samples", name)
	}
	return all, p
}

// play delivers every sample twice in an order and with cuts that chance
// chooses, as a source of its own, and returns the rows as the store has them.
func play(t *testing.T, store onceward.Store, source string, all []heard, p *provider.Provider, chance *rand.Rand, nextID *int64) []string {
	t.Helper()
	ctx := context.Background()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	revision, _, err := store.Register(ctx, source, p.Hash(), p.Doc(), now)
	if err != nil {
		t.Fatal(err)
	}
	mapping := &onceward.Mapping{Source: source, Hash: p.Hash(), Revision: revision, Kinds: p.Kinds()}
	twice := append(slices.Clone(all), all...)
	chance.Shuffle(len(twice), func(i, j int) { twice[i], twice[j] = twice[j], twice[i] })
	events := map[string]bool{}
	for len(twice) > 0 {
		n := min(1+chance.IntN(16), len(twice))
		batch := &onceward.Batch{Now: now}
		for _, h := range twice[:n] {
			for _, r := range h.readings {
				*nextID++
				event := r.Event
				event.ID, event.Source, event.Delivery = *nextID, source, h.delivery
				batch.Arrivals = append(batch.Arrivals, &onceward.Arrival{Event: &event, Facts: slices.Clone(r.Facts), Mapping: mapping})
			}
		}
		if err := store.Commit(ctx, batch); err != nil {
			t.Fatal(err)
		}
		for _, a := range batch.Arrivals {
			key := a.Event.Scope.String() + " " + a.Event.Key
			if (a.Outcome == onceward.New) == events[key] {
				t.Fatalf("%s: %v for the event %s", source, a.Outcome, key)
			}
			events[key] = true
		}
		twice = twice[n:]
	}
	return rows(t, store, source)
}

// rows reads a source's rows back: status, told, fields and ties, which are
// state, and not version, which is a story of arrival.
func rows(t *testing.T, store onceward.Store, source string) []string {
	t.Helper()
	entities, err := store.Entities(context.Background(), onceward.EntityQuery{Source: source, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, e := range entities {
		out = append(out, fmt.Sprintf("%s %s [%s] %s told %s tie %v %s", e.Kind, e.Key, e.Scope, e.Status, e.Told, e.Tie, e.Data))
	}
	return out
}

// TestEveryOrderOnEachStore also demands that both stores end in the same rows,
// and that they are the ones written down in testdata, where a person checked
// them: one row per sale, job and subscription.
func TestEveryOrderOnEachStore(t *testing.T) {
	lite, err := sqlite.Open(":memory:") // what is on disk is another suite's; here tens of thousands of syncs would only take time
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lite.Close() })
	pg, err := postgres.Open(t.Context(), pgtest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pg.Close() })
	for _, name := range provider.Catalog() {
		t.Run(name, func(t *testing.T) {
			all, p := listen(t, name)
			want := written(t, name)
			for store, s := range map[string]onceward.Store{"sqlite": lite, "postgres": pg} {
				t.Run(store, func(t *testing.T) {
					nextID := int64(slices.Index(provider.Catalog(), name)) << 32
					for seed := range orders(len(all)) {
						source := name + "-" + strconv.Itoa(seed)
						got := play(t, s, source, all, p, rand.New(rand.NewPCG(uint64(seed), 7)), &nextID)
						if diff := cmp.Diff(want, got); diff != "" {
							t.Fatalf("order of seed %d ends in other rows than testdata/%s.rows (-want +got):\n%s", seed, name, diff)
						}
					}
				})
			}
		})
	}
}

func written(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".rows"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}
