package storetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/onceward/onceward"
)

// checkRace holds what a race has left against what it must be: every row at its
// end without having gone back, every event, claim and fact once, and one job of
// each handler for each change, status and event that it asked for.
func (w *world) checkRace(rounds int) {
	w.t.Helper()
	wanted := raceWork{}
	completeFirst, firstComplete := 0, 0
	for r := range rounds {
		job := w.checkRaced("job", raceJob(r), "succeeded", []string{"partial", "succeeded", "text"}, wanted)
		w.checkRaced("sale", raceSale(r), "paid", []string{"paid", "pending"}, wanted)
		if at(job, "succeeded") < at(job, "partial") {
			completeFirst++
		} else {
			firstComplete++
		}
	}
	w.t.Logf("complete came before first in %d rounds, first before complete in %d", completeFirst, firstComplete)
	// A handful of rounds may go one way by chance, so of the short form none is wanted.
	if least := rounds / 100; completeFirst < least || firstComplete < least {
		w.t.Errorf("one of the two orders was won in fewer than %d of %d rounds; that is no race", least, rounds)
	}
	s, events := w.stats(), int64(raceEvents*rounds)
	if repeats := int64(rounds * (2*raceCopies - 1)); s.Events != events || s.Conflicts != 0 || s.Entities != int64(raceRows*rounds) || s.Repeats != repeats {
		w.t.Errorf("stats: %+v; want %d events, no conflict, %d rows, %d repeats", s, events, raceRows*rounds, repeats)
	}
	if facts := s.Facts[onceward.Applied] + s.Facts[onceward.Stale] + s.Facts[onceward.Same]; facts != events || s.Facts[onceward.Held] != 0 {
		w.t.Errorf("%d facts and %d held, want %d and none", facts, s.Facts[onceward.Held], events)
	}
	claims := w.db.Query(w.t, "select count(*) from "+strings.TrimSuffix(w.harness.View, "entities")+"claims")
	if claims != strconv.FormatInt(events, 10) {
		w.t.Errorf("%s claims of %d events", claims, events)
	}
	w.checkRaceWork(wanted, s)
}

// raceWork maps each job to the status and the event that it is about. Of an event
// handler's the status is "".
type raceWork map[raceJobID]raceCause

type raceJobID struct {
	handler string
	lane    onceward.ID
	version int64
}

type raceCause struct {
	to    string
	event int64
}

// at returns where in a history a status was told.
func at(facts []onceward.StoredFact, status string) int {
	return slices.IndexFunc(facts, func(f onceward.StoredFact) bool { return f.Status == status })
}

// checkRaced checks the row and the history of one entity, and adds the work that
// its changes and events make.
func (w *world) checkRaced(kind, key, end string, told []string, work raceWork) []onceward.StoredFact {
	w.t.Helper()
	w.checkHistory(kind, key)
	facts, e := w.history(kind, key), w.entity(kind, key)
	var statuses []string
	had := map[string]bool{}
	rank, version := -1, int64(0)
	for _, f := range facts {
		statuses = append(statuses, f.Status)
		event := onceward.Event{Source: w.source, Key: f.EventKey}
		work[raceJobID{"event:*", event.ClaimID(), 0}] = raceCause{"", f.EventID}
		after, _ := w.mapping.Kinds[kind].Rank(f.To)
		if after < rank {
			w.t.Fatalf("%s %s went back from %s to %s", kind, key, f.From, f.To)
		}
		rank = after
		if f.Verdict != onceward.Applied {
			continue
		}
		version = f.Version
		work[raceJobID{kind, f.Ref.ID(), f.Version}] = raceCause{f.To, f.EventID}
		if f.From == f.To {
			continue
		}
		if had[f.To] {
			w.t.Fatalf("%s %s became %s twice", kind, key, f.To)
		}
		had[f.To] = true
		work[raceJobID{kind + "." + f.To, f.Ref.ID(), f.Version}] = raceCause{f.To, f.EventID}
	}
	slices.Sort(statuses)
	if !slices.Equal(statuses, told) || e.Status != end || e.Version != version || e.Facts != int64(len(told)) {
		w.t.Fatalf("%s %s is %s at version %d of %d facts, which told %q; want %s at version %d, of %q", kind, key, e.Status, e.Version, e.Facts, statuses, end, version, told)
	}
	if kind == "sale" && string(e.Data) != `{"amount":100}` && string(e.Data) != `{"amount": 100}` {
		w.t.Fatalf("%s %s shows %s, want what paid told", kind, key, e.Data)
	}
	return facts
}

// checkRaceWork claims all jobs there are and wants them to be those wanted.
func (w *world) checkRaceWork(wanted raceWork, s onceward.Stats) {
	w.t.Helper()
	if s.JobsPending != int64(len(wanted)) || s.JobsDead != 0 {
		w.t.Errorf("%d jobs wait and %d are dead; want %d, one for each change, status and event of a handler", s.JobsPending, s.JobsDead, len(wanted))
	}
	left := len(wanted)
	done := map[raceJobID]bool{}
	for {
		jobs := w.claimJobs(w.store, raceHandlers(), 1000, began)
		if len(jobs) == 0 {
			break
		}
		for _, j := range jobs {
			id := raceJobID{j.Handler, j.Lane, j.Version}
			cause, ok := wanted[id]
			if got := (raceCause{j.Change.To, j.Change.Event.ID}); !ok || done[id] || got != cause {
				w.t.Fatalf("a job of %s at version %d of %s is of %+v; want %+v, once", j.Handler, j.Version, fmt.Sprint(j.Change.Kind, " ", j.Change.Key), got, cause)
			}
			done[id] = true
			left--
		}
	}
	if left != 0 {
		w.t.Errorf("%d jobs are missing", left)
	}
}
