package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/onceward/onceward"
)

// world is a database with one handle, and what a case needs to write into it.
type world struct {
	t       testing.TB
	harness Harness
	db      Database
	store   onceward.Store
	source  string
	mapping *onceward.Mapping
	// handlers are those of each batch.
	handlers []onceward.Handler
	ids      atomic.Int64
}

// began is the time of everything that a case does not date.
var began = time.Date(2026, time.March, 4, 5, 6, 7, 890123000, time.UTC)

func newWorld(t testing.TB, h Harness) *world {
	t.Helper()
	w := &world{t: t, harness: h, db: h.Fresh(t), source: "acme"}
	w.store = w.open()
	w.mapping = newMapping(t, w.source, 1)
	w.ids.Store(1 << 40)
	return w
}

func (w *world) open() onceward.Store {
	w.t.Helper()
	s := w.db.Open(w.t)
	w.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.t.Errorf("close: %v", err)
		}
	})
	return s
}

// buildMapping returns a mapping with two kinds: a job, whose callbacks carry no
// clock, and a payment, with clock and fields of every mode.
func buildMapping(source string, revision int64) (*onceward.Mapping, error) {
	job, err := onceward.NewKind(onceward.Kind{
		Name:     "job",
		States:   [][]string{{"queued"}, {"text"}, {"partial"}, {"succeeded", "failed"}},
		Terminal: []string{"succeeded", "failed"},
		Order:    []onceward.Component{onceward.Rank},
	})
	if err != nil {
		return nil, err
	}
	payment, err := onceward.NewKind(onceward.Kind{
		Name:   "payment",
		States: [][]string{{"created"}, {"failed"}, {"paid"}, {"refunded"}},
		Order:  []onceward.Component{onceward.Time, onceward.Rank},
		Fields: map[string]onceward.Mode{"peak": onceward.Max, "refunds": onceward.Sum, "notes": onceward.Map},
	})
	if err != nil {
		return nil, err
	}
	return &onceward.Mapping{
		Source: source, Hash: fmt.Sprintf("hash-%d", revision), Revision: revision,
		Kinds: map[string]*onceward.Kind{"job": job, "payment": payment},
	}, nil
}

func newMapping(t testing.TB, source string, revision int64) *onceward.Mapping {
	t.Helper()
	m, err := buildMapping(source, revision)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// arrival is a new event of the world's source that says facts.
func (w *world) arrival(key string, facts ...onceward.Fact) *onceward.Arrival {
	return w.arrivalOf(key, fmt.Sprintf(`{"id":%q}`, key), facts...)
}

// arrivalOf is an event with the body given.
func (w *world) arrivalOf(key, body string, facts ...onceward.Fact) *onceward.Arrival {
	return &onceward.Arrival{
		Event: &onceward.Event{
			ID: w.ids.Add(1), Source: w.source, Key: key, Type: "thing.told", Digest: onceward.DigestOf([]byte(body)),
			Delivery: &onceward.Delivery{
				At: began, Method: "POST", Target: "/in/" + w.source, Remote: "203.0.113.7",
				Header: map[string][]string{"Content-Type": {"application/json"}}, Body: []byte(body),
			},
		},
		Facts: facts, Mapping: w.mapping,
	}
}

// told is a fact about a job.
func told(key, status string) onceward.Fact {
	return onceward.Fact{Rule: "callback", Kind: "job", Key: key, Status: status}
}

// paid is a fact about a payment at a second of its clock.
func paid(key, status string, second int64, fields ...onceward.Part) onceward.Fact {
	return onceward.Fact{Rule: "charge", Kind: "payment", Key: key, Status: status, Time: onceward.Some(second * 1e9), Fields: fields}
}

func field(name string, v onceward.Value) onceward.Part { return onceward.Part{Field: name, Value: v} }

func (w *world) ref(kind, key string) onceward.Ref {
	return onceward.Ref{Source: w.source, Kind: kind, Key: key}
}

func (w *world) batch(arrivals ...*onceward.Arrival) *onceward.Batch {
	return &onceward.Batch{Arrivals: arrivals, Handlers: w.handlers, Now: began}
}

// handle sets the handlers that batches make jobs for.
func (w *world) handle(names ...string) {
	w.t.Helper()
	w.handlers = nil
	for _, name := range names {
		h, err := onceward.ParseHandler(name)
		if err != nil {
			w.t.Fatal(err)
		}
		w.handlers = append(w.handlers, h)
	}
}

// commit commits through the world's handle and fails the test on any error.
func (w *world) commit(arrivals ...*onceward.Arrival) {
	w.t.Helper()
	w.commitTo(w.store, arrivals...)
}

func (w *world) commitTo(s onceward.Store, arrivals ...*onceward.Arrival) {
	w.t.Helper()
	if err := s.Commit(context.Background(), w.batch(arrivals...)); err != nil {
		w.t.Fatalf("commit: %v", err)
	}
}

// tell commits one event about a job.
func (w *world) tell(event, job, status string) *onceward.Arrival {
	w.t.Helper()
	a := w.arrival(event, told(job, status))
	w.commit(a)
	return a
}

func (w *world) entity(kind, key string) *onceward.Entity {
	w.t.Helper()
	e, err := w.store.Entity(context.Background(), w.ref(kind, key))
	if err != nil {
		w.t.Fatalf("entity %s %s: %v", kind, key, err)
	}
	return e
}

func (w *world) noEntity(kind, key string) {
	w.t.Helper()
	e, err := w.store.Entity(context.Background(), w.ref(kind, key))
	if !errors.Is(err, onceward.ErrNotFound) {
		w.t.Errorf("entity %s %s: %+v, %v; want ErrNotFound", kind, key, e, err)
	}
}

func (w *world) event(id int64) *onceward.StoredEvent {
	w.t.Helper()
	e, err := w.store.Event(context.Background(), id)
	if err != nil {
		w.t.Fatalf("event %d: %v", id, err)
	}
	return e
}

func (w *world) history(kind, key string) []onceward.StoredFact {
	w.t.Helper()
	facts, err := w.store.History(context.Background(), w.ref(kind, key))
	if err != nil {
		w.t.Fatalf("history of %s %s: %v", kind, key, err)
	}
	return facts
}

func (w *world) stats() onceward.Stats {
	w.t.Helper()
	s, err := w.store.Stats(context.Background())
	if err != nil {
		w.t.Fatalf("stats: %v", err)
	}
	return s
}

func (w *world) jobs() []onceward.Job {
	w.t.Helper()
	jobs, err := w.store.Jobs(context.Background(), 1000)
	if err != nil {
		w.t.Fatalf("jobs: %v", err)
	}
	slices.SortFunc(jobs, compareJobs)
	return jobs
}

func compareJobs(a, b onceward.Job) int {
	if c := a.Lane.Compare(b.Lane); c != 0 {
		return c
	}
	if a.Version != b.Version {
		return int(a.Version - b.Version)
	}
	return slices.Compare([]byte(a.Handler), []byte(b.Handler))
}

// outcomes lists what became of arrivals, for comparison.
func outcomes(arrivals ...*onceward.Arrival) []string {
	var words []string
	for _, a := range arrivals {
		words = append(words, a.Outcome.String())
	}
	return words
}

// verdicts lists the words and versions of an arrival's results.
func verdicts(a *onceward.Arrival) []string {
	var words []string
	for _, r := range a.Results {
		words = append(words, fmt.Sprintf("%s %s %d", r.Verdict, r.Status, r.Version))
	}
	return words
}

// equal compares two things as a store may give them back: empty and nil alike,
// JSON by its meaning, values and orders by their own equality.
func equal(t reporter, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, same()...); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

// reporter is what a failure is told to: a test, or one run of a property.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

func same() []cmp.Option {
	return []cmp.Option{
		cmpopts.EquateEmpty(),
		cmp.Comparer(func(a, b onceward.Value) bool { return a.JSON() == b.JSON() }),
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type() == reflect.TypeFor[json.RawMessage]() },
			cmp.Comparer(sameJSON)),
		cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var v, w any
	if json.Unmarshal(a, &v) != nil || json.Unmarshal(b, &w) != nil {
		return string(a) == string(b)
	}
	return reflect.DeepEqual(v, w)
}
