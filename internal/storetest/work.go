package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward"
)

func sortJobs(jobs []onceward.Job) { slices.SortFunc(jobs, compareJobs) }

func (w *world) claimJobs(s onceward.Store, handlers []string, limit int, now time.Time) []onceward.Job {
	w.t.Helper()
	jobs, err := s.Claim(context.Background(), handlers, limit, now, time.Minute)
	if err != nil {
		w.t.Fatalf("claim: %v", err)
	}
	return jobs
}

// testClaimJobs leases jobs to workers, each to one.
func testClaimJobs(t *testing.T, h Harness) {
	t.Run("what is due, and no more", func(t *testing.T) {
		w := newWorld(t, h)
		w.handle("job", "payment")
		w.commit(w.arrival("e1", told("j1", "text"), told("j2", "text"), told("j3", "text"), paid("p1", "paid", 1)))
		if got := w.claimJobs(w.store, []string{"job"}, 10, began.Add(-time.Second)); len(got) != 0 {
			t.Errorf("%d jobs are claimed before they are due", len(got))
		}
		if got := w.claimJobs(w.store, nil, 10, began); len(got) != 0 {
			t.Errorf("%d jobs are claimed for no handler", len(got))
		}
		before := w.jobs()
		first := w.claimJobs(w.store, []string{"job"}, 2, began)
		rest := w.claimJobs(w.store, []string{"nobody", "job"}, 10, began)
		if len(first) != 2 || len(rest) != 1 {
			t.Fatalf("%d and %d jobs are claimed, want 2 and 1", len(first), len(rest))
		}
		claimed := slices.Concat(first, rest)
		sortJobs(claimed)
		for i := range before {
			if before[i].Handler == "job" {
				before[i].Attempts, before[i].Token, before[i].Due = 1, 1, began.Add(time.Minute)
			}
		}
		equal(t, "the claimed", slices.DeleteFunc(slices.Clone(before), func(j onceward.Job) bool { return j.Handler != "job" }), claimed)
		equal(t, "the list", before, w.jobs())
	})
	t.Run("by workers at once", func(t *testing.T) {
		w := newWorld(t, h)
		w.handle("job", "job#b")
		var arrivals []*onceward.Arrival
		for i := range 100 {
			arrivals = append(arrivals, w.arrival(fmt.Sprintf("e%d", i), told(fmt.Sprintf("j%d", i), "text")))
		}
		w.commit(arrivals...)
		stores := w.handleSet(2)
		got := make([][]onceward.Job, 8)
		atOnce(t, len(got), func(i int) error {
			for {
				jobs, err := stores[i%2].Claim(context.Background(), []string{"job", "job#b"}, 7, began, time.Minute)
				if err != nil || len(jobs) == 0 {
					return err
				}
				if len(jobs) > 7 {
					return fmt.Errorf("%d jobs, want at most 7", len(jobs))
				}
				got[i] = append(got[i], jobs...)
			}
		})
		all := slices.Concat(got...)
		sortJobs(all)
		equal(t, "the claimed", w.jobs(), all)
		if len(all) != 200 {
			t.Errorf("%d jobs are claimed, want 200", len(all))
		}
	})
	t.Run("the longest due first", func(t *testing.T) {
		w := newWorld(t, h)
		w.handle("job", "job#b")
		var want []string
		for i := range 6 {
			b := w.batch(w.arrival(fmt.Sprintf("e%d", i), told(fmt.Sprintf("j%d", i), "text")))
			b.Now = began.Add(time.Duration(i) * time.Second)
			b.Handlers = b.Handlers[i%2 : i%2+1]
			if err := w.store.Commit(context.Background(), b); err != nil {
				t.Fatal(err)
			}
			want = append(want, fmt.Sprintf("j%d", i))
		}
		var got []string
		for _, j := range w.claimJobs(w.store, []string{"job#b", "job"}, 4, began.Add(time.Hour)) {
			got = append(got, j.Change.Key)
		}
		equal(t, "the claimed", want[:4], got)
	})
}

// testLeaseExpires claims a job again when its lease is over.
func testLeaseExpires(t *testing.T, h Harness) {
	w := newWorld(t, h)
	w.handle("job")
	w.tell("e1", "j1", "text")
	claim := func(now time.Time) []onceward.Job { return w.claimJobs(w.store, []string{"job"}, 10, now) }
	first := claim(began)
	if again := claim(began.Add(59 * time.Second)); len(first) != 1 || len(again) != 0 {
		t.Fatalf("%d, then %d jobs are claimed; want 1, and none while it is leased", len(first), len(again))
	}
	second := claim(began.Add(time.Minute))
	if len(second) != 1 || second[0].Token <= first[0].Token || second[0].Attempts != 2 {
		t.Fatalf("after the lease: %+v; want the job with a higher token and 2 attempts", second)
	}
	err := w.store.Settle(context.Background(), []onceward.Settlement{settle(first[0])}, began)
	if !errors.Is(err, onceward.ErrStaleToken) {
		t.Errorf("settle by the first worker: %v, want ErrStaleToken", err)
	}
	if n := len(w.jobs()); n != 1 {
		t.Errorf("%d jobs, want 1: the loser of the lease changes nothing", n)
	}
	if err := w.store.Settle(context.Background(), []onceward.Settlement{settle(second[0])}, began); err != nil {
		t.Errorf("settle by the second worker: %v", err)
	}
	if n := len(w.jobs()); n != 0 {
		t.Errorf("%d jobs, want none", n)
	}
}

// settle ends a job as done.
func settle(j onceward.Job) onceward.Settlement {
	return onceward.Settlement{Handler: j.Handler, Lane: j.Lane, Version: j.Version, Token: j.Token, Done: true}
}

// testSettleToken settles jobs in each way, and refuses stale tokens.
func testSettleToken(t *testing.T, h Harness) {
	w := newWorld(t, h)
	ctx := context.Background()
	w.handle("job")
	w.commit(w.arrival("e1", told("j1", "text"), told("j2", "text"), told("j3", "text"), told("j4", "text")))
	claimed := w.claimJobs(w.store, []string{"job"}, 10, began)
	by := map[string]onceward.Job{}
	for _, j := range claimed {
		by[j.Change.Key] = j
	}
	done, dead, later, stale := settle(by["j1"]), settle(by["j2"]), settle(by["j3"]), settle(by["j4"])
	dead.Done, dead.Dead, dead.Error = false, true, "it is broken\x00\xff"
	later.Done, later.Due, later.Error = false, began.Add(time.Hour), strings.Repeat("ä", 1500)
	stale.Token--
	err := w.store.Settle(ctx, []onceward.Settlement{stale, done, dead, later}, began)
	if !errors.Is(err, onceward.ErrStaleToken) {
		t.Errorf("settle: %v, want ErrStaleToken for one of them", err)
	}
	left := map[string]onceward.Job{}
	for _, j := range w.jobs() {
		left[j.Change.Key] = j
	}
	if len(left) != 3 {
		t.Fatalf("%d jobs are left, want 3", len(left))
	}
	equal(t, "the stale one", by["j4"], left["j4"])
	if j := left["j2"]; !j.Dead || j.LastError != "it is broken\uFFFD\uFFFD" {
		t.Errorf("the dead one: dead %v, error %q", j.Dead, j.LastError)
	}
	if j := left["j3"]; j.Dead || !j.Due.Equal(began.Add(time.Hour)) || j.LastError != strings.Repeat("ä", 1000) {
		t.Errorf("the one for later: dead %v, due %v, error of %d bytes; want it due in an hour, 2000 bytes", j.Dead, j.Due, len(j.LastError))
	}
	if s := w.stats(); s.JobsPending != 2 || s.JobsDead != 1 {
		t.Errorf("stats count %d pending and %d dead, want 2 and 1", s.JobsPending, s.JobsDead)
	}
	if got := w.claimJobs(w.store, []string{"job"}, 10, began.Add(time.Hour)); len(got) != 2 {
		t.Errorf("%d jobs are due in an hour, want 2: the dead one never", len(got))
	}
	if err := w.store.Settle(ctx, []onceward.Settlement{done}, began); !errors.Is(err, onceward.ErrStaleToken) {
		t.Errorf("settle what is gone: %v, want ErrStaleToken", err)
	}
	for name, again := range map[string]onceward.Settlement{
		"done": settle(by["j2"]),
		"dead": dead,
		"due":  {Handler: dead.Handler, Lane: dead.Lane, Version: dead.Version, Token: dead.Token, Due: began},
	} {
		again.Error = "another word"
		if err := w.store.Settle(ctx, []onceward.Settlement{again}, began); !errors.Is(err, onceward.ErrStaleToken) {
			t.Errorf("settle what is dead as %s: %v, want ErrStaleToken", name, err)
		}
		if i := slices.IndexFunc(w.jobs(), func(j onceward.Job) bool { return j.Change.Key == "j2" }); i < 0 || !reflect.DeepEqual(w.jobs()[i], left["j2"]) {
			t.Errorf("settled as %s the dead job is not what it was", name)
		}
	}
}

// testBrokenJob damages a job: it is dead once it is met, the others are claimed.
func testBrokenJob(t *testing.T, h Harness) {
	w := newWorld(t, h)
	w.handle("job")
	w.commit(w.arrival("e1", told("j1", "text"), told("j2", "text"), told("j2", "partial")))
	w.db.Exec(t, "update "+strings.TrimSuffix(h.View, "entities")+`jobs set change = '{"version": "a secret"}' where version = 2`)
	for n := range 2 { // the second time the leases are over
		got := w.claimJobs(w.store, []string{"job"}, 10, began.Add(time.Duration(n)*time.Hour))
		if len(got) != 2 {
			t.Errorf("claim %d: %d jobs, want the 2 that can be read", n, len(got))
		}
		for _, j := range got {
			if j.Version != 1 {
				t.Errorf("claim %d: the damaged job is handed out", n)
			}
		}
	}
	jobs := w.jobs()
	i := slices.IndexFunc(jobs, func(j onceward.Job) bool { return j.Version == 2 })
	if len(jobs) != 3 || i < 0 || !jobs[i].Dead || !strings.Contains(jobs[i].LastError, "cannot be read") || strings.Contains(jobs[i].LastError, "secret") {
		t.Errorf("the jobs: %+v; want the damaged one dead, with its reason", jobs)
	}
	if s := w.stats(); s.JobsDead != 1 || s.JobsPending != 2 {
		t.Errorf("stats count %d dead and %d pending, want 1 and 2", s.JobsDead, s.JobsPending)
	}
}
