package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/storetest"
	"github.com/onceward/onceward/sqlite"
)

// sample is a batch that makes every statement of a commit run: new events with
// changes and held facts, a duplicate, other bytes and a taking up.
type sample struct {
	arrivals []*onceward.Arrival
	handlers []onceward.Handler
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func newSample(t testing.TB) sample {
	t.Helper()
	mapping, err := newMapping()
	if err != nil {
		t.Fatal(err)
	}
	handler, err := onceward.ParseHandler("payment")
	if err != nil {
		t.Fatal(err)
	}
	s := sample{handlers: []onceward.Handler{handler}}
	for i := range int64(4) {
		s.arrivals = append(s.arrivals, arrival(mapping, 1+i, []byte("body"), noon))
	}
	s.arrivals[0].Facts[0].Held = "no status"
	s.arrivals[1].Facts[0].Time = onceward.Some(7)
	s.arrivals[2].Facts[0].Key = s.arrivals[1].Facts[0].Key
	s.arrivals[2].Facts[0].Time = onceward.Some(7) // a tick, so that the stored facts are read
	return s
}

// prepare stores what the batch is about to meet.
func (s sample) prepare(t testing.TB, store *sqlite.Store) {
	t.Helper()
	commit(t, store, s.handlers, s.arrivals[0], s.arrivals[1])
}

// batch is what is committed under faults.
func (s sample) batch() *onceward.Batch {
	again, other, taken := *s.arrivals[1], *s.arrivals[1], *s.arrivals[0]
	otherEvent := *other.Event
	otherEvent.ID, otherEvent.Digest = 99, onceward.DigestOf([]byte("other"))
	other.Event, other.Resolution = &otherEvent, onceward.ResolvedConflict
	taken.Retake, taken.Facts = taken.Event.ID, slices.Clone(taken.Facts)
	taken.Facts[0].Held = ""
	newer := *taken.Mapping
	newer.Revision++
	taken.Mapping = &newer
	return &onceward.Batch{Arrivals: []*onceward.Arrival{s.arrivals[2], &again, &other, &taken, s.arrivals[3]}, Handlers: s.handlers, Now: noon}
}

func commit(t testing.TB, s *sqlite.Store, handlers []onceward.Handler, arrivals ...*onceward.Arrival) {
	t.Helper()
	if err := s.Commit(context.Background(), &onceward.Batch{Arrivals: arrivals, Handlers: handlers, Now: noon}); err != nil {
		t.Fatal(err)
	}
}

// TestEveryStatementFails fails each statement of each operation in turn, before
// and after its work; the commit is one of them.
func TestEveryStatementFails(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after its work %v", after), func(t *testing.T) {
			t.Parallel()
			least, stride := storetest.Least{CommitSteps: 20}, 1
			switch {
			case testing.Short():
				least.CommitSteps, stride = 5, 5
			case after: // the statement `commit` of commit, quarantine, claim and settle
				least.Kept = 4
			}
			p, path := &tap{}, filepath.Join(t.TempDir(), "app.db")
			broken, err := sqlite.New(p.open(t, path), sqlite.Config{})
			if err != nil {
				t.Fatal(err)
			}
			sound := open(t, path)
			t.Cleanup(func() {
				if err := errors.Join(broken.Close(), sound.Close()); err != nil {
					t.Error(err)
				}
			})
			storetest.FailBelow(t, storetest.Brittle{
				Broken: broken, Breaker: breaker{p, after}, Sound: sound, Err: errTapped, Stride: stride,
			}, least)
		})
	}
}

// breaker makes a tap fail before or after a statement's work.
type breaker struct {
	*tap
	after bool
}

func (b breaker) Arm(n int) { b.arm(n, b.after) }

func (b breaker) Disarm() bool {
	struck := b.struckAt() != ""
	b.arm(0, false)
	return struck
}

// snapshot is the content of every table, as text.
func snapshot(t testing.TB, s *sqlite.Store) string {
	t.Helper()
	ctx := context.Background()
	stats, err := s.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	events, err := s.Events(ctx, onceward.EventQuery{})
	if err != nil {
		t.Fatal(err)
	}
	entities, err := s.Entities(ctx, onceward.EntityQuery{})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintln(stats)
	for _, e := range events {
		text += fmt.Sprintln(e.ID, e.Outcome, e.Repeats, e.Facts, e.Held)
	}
	for _, e := range entities {
		text += fmt.Sprintln(e.Ref, e.Version, e.Facts, string(e.Data), e.Tie)
	}
	return text
}

// TestPlans wants every statement on a table of the store to find its rows by an
// index, whatever has been stored.
func TestPlans(t *testing.T) {
	p := &tap{}
	path := filepath.Join(t.TempDir(), "app.db")
	store, err := sqlite.New(p.open(t, path), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	p.arm(0, false)
	everyMethod(t, store)
	db := user(t, path)
	seen := 0
	for _, statement := range slices.Compact(slices.Sorted(slices.Values(p.statements))) {
		verb, _, _ := strings.Cut(statement, " ")
		if verb != "select" && verb != "update" && verb != "delete" || strings.Contains(statement, "sqlite_schema") {
			continue
		}
		seen++
		args := make([]any, strings.Count(statement, "?"))
		rows, err := db.Query("explain query plan "+statement, args...)
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		for rows.Next() {
			var a, b, c int
			var step string
			if err := rows.Scan(&a, &b, &c, &step); err != nil {
				t.Fatal(err)
			}
			if walks(step, statement) {
				t.Errorf("%s: %s", statement, step)
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if seen < 25 {
		t.Errorf("only %d statements were looked at", seen)
	}
}

// walks reports whether a step of a plan reads a table that grows from end to
// end, or sorts. Lists that are wanted whole, up to a limit, do the former.
func walks(step, statement string) bool {
	for _, small := range []string{"onceward_counts", "onceward_schema", "onceward_quarantine_size"} {
		if strings.Contains(step, small) {
			return false
		}
	}
	byNumber := strings.Contains(statement, "order by rowid limit") || strings.Contains(statement, "order by id desc limit")
	sorts := strings.Contains(step, "TEMP B-TREE") && !strings.Contains(statement, "json_each") // a page that was found by number
	counts := strings.HasPrefix(step, "SCAN onceward_jobs USING COVERING INDEX")                // the jobs that there are
	return strings.HasPrefix(step, "SCAN onceward_") && !byNumber && !counts || sorts
}

// everyMethod calls them all, with and without what narrows a list.
func everyMethod(t *testing.T, store *sqlite.Store) {
	t.Helper()
	ctx := context.Background()
	s := newSample(t)
	s.prepare(t, store)
	check := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(nil, store.Commit(ctx, s.batch()))
	check(store.Node(ctx))
	check(nil, store.Ping(ctx))
	_, _, err := store.Register(ctx, "acme", "hash", nil, noon)
	check(nil, err)
	check(nil, store.Quarantine(ctx, []onceward.Rejection{{Source: "acme"}, {Source: "acme"}}, onceward.QuarantineLimits{Count: 1, Bytes: 10}))
	check(store.Event(ctx, 1))
	for _, q := range []onceward.EventQuery{{}, {Source: "acme", Before: 4}, {Type: "x*"}} {
		check(store.Events(ctx, q))
	}
	ref := onceward.Ref{Source: "acme", Kind: "payment", Key: s.arrivals[1].Facts[0].Key}
	check(store.Entity(ctx, ref))
	for _, q := range []onceward.EntityQuery{{}, {Source: "acme"}, {Kind: "payment"}, {Key: "k"}, {Status: "paid"}, {After: ref}} {
		check(store.Entities(ctx, q))
	}
	check(store.History(ctx, ref))
	check(store.EventFacts(ctx, 1))
	check(store.HeldEvents(ctx, "acme", 9, 0, 1))
	check(store.Rejections(ctx, "", 1))
	check(store.Rejections(ctx, "acme", 1))
	check(store.Stats(ctx))
	jobs, err := store.Claim(ctx, []string{"payment"}, 3, noon, time.Minute)
	check(jobs, err)
	if len(jobs) != 3 {
		t.Fatalf("%d jobs are claimed, want 3", len(jobs))
	}
	var ends []onceward.Settlement
	for i, j := range jobs {
		ends = append(ends, onceward.Settlement{Handler: j.Handler, Lane: j.Lane, Version: j.Version, Token: j.Token, Done: i == 0, Dead: i == 1, Due: noon})
	}
	check(nil, store.Settle(ctx, ends, noon))
	check(store.Jobs(ctx, 3))
}
