package cli

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider"
)

// crashLie is a store that tells what is not so, where it has a lie.
type crashLie struct {
	onceward.Reader
	entity  func(*onceward.Entity)
	history func([]onceward.StoredFact) []onceward.StoredFact
	jobs    []onceward.Job
}

// Entity implements onceward.Reader.
func (c *crashLie) Entity(ctx context.Context, ref onceward.Ref) (*onceward.Entity, error) {
	e, err := c.Reader.Entity(ctx, ref)
	if err == nil && c.entity != nil {
		c.entity(e)
	}
	return e, err
}

// History implements onceward.Reader.
func (c *crashLie) History(ctx context.Context, ref onceward.Ref) ([]onceward.StoredFact, error) {
	facts, err := c.Reader.History(ctx, ref)
	if err == nil && c.history != nil {
		facts = c.history(facts)
	}
	return facts, err
}

// Jobs is that of onceward.Work; there are none but the lies.
func (c *crashLie) Jobs(context.Context, int) ([]onceward.Job, error) { return c.jobs, nil }

// doAll notes all work that follows from the store as done and settled by a process.
func doAll(t *testing.T, l *crashLedger, store onceward.Reader, kind *onceward.Kind, work *crashWork) map[crashJob]bool {
	t.Helper()
	j := newJudgement(l, kind, work)
	if err := j.look(t.Context(), &crashLie{Reader: store}); err != nil {
		t.Fatal(err)
	}
	for job := range j.wanted {
		work.note(1, crashLine{Did: &job})
		work.note(1, crashLine{Settled: []crashJob{job}})
	}
	return j.wanted
}

// TestCrashLook tells what looks at a store after each start what is not so.
func TestCrashLook(t *testing.T) {
	p, err := provider.Compile(provider.SourceConfig{
		Name: "acme", Secrets: []string{crashSecret}, Text: []byte(crashSource), At: []string{"sources", "acme"},
	})
	if err != nil {
		t.Fatal(err)
	}
	kind := p.Kinds()["order"]
	for _, c := range []struct {
		name string
		lie  func(*crashLedger, *crashWork, *crashLie, onceward.Job)
		says string // "" for no fault
	}{
		{"the truth", func(*crashLedger, *crashWork, *crashLie, onceward.Job) {}, ""},
		{"an event that was acknowledged is gone", func(l *crashLedger, _ *crashWork, _ *crashLie, _ onceward.Job) {
			l.note(&crashEvent{id: "e-9", order: "o-2", acked: true})
		}, "e-9 (acknowledged true) is stored 0 times"},
		{"an event that was not acknowledged is not there", func(l *crashLedger, _ *crashWork, _ *crashLie, _ onceward.Job) {
			l.note(&crashEvent{id: "e-9", order: "o-2"})
		}, ""},
		{"an event that nobody sent", func(l *crashLedger, _ *crashWork, _ *crashLie, _ onceward.Job) { delete(l.sent, "e-2") }, "event e-2 was never sent"},
		{"a row that is not the fold of its facts", func(_ *crashLedger, _ *crashWork, s *crashLie, _ onceward.Job) {
			s.entity = func(e *onceward.Entity) { e.Tie = []string{"amount"} }
		}, "its facts fold to"},
		{"a row of another version", func(_ *crashLedger, _ *crashWork, s *crashLie, _ onceward.Job) {
			s.entity = func(e *onceward.Entity) { e.Version++ }
		}, "were applied"},
		{"a fact that is gone", func(_ *crashLedger, _ *crashWork, s *crashLie, _ onceward.Job) {
			s.history = func(f []onceward.StoredFact) []onceward.StoredFact { return f[:len(f)-1] }
		}, "its facts fold to"},
		{"a fact that is there twice", func(_ *crashLedger, _ *crashWork, s *crashLie, _ onceward.Job) {
			s.history = func(f []onceward.StoredFact) []onceward.StoredFact { return append(f, f[0]) }
		}, "or is there twice"},
		{"a fact that says something else", func(_ *crashLedger, _ *crashWork, s *crashLie, _ onceward.Job) {
			s.history = func(f []onceward.StoredFact) []onceward.StoredFact {
				f[0].Status = "returned"
				return f
			}
		}, "is not what was sent"},
		{"work that is neither there nor done", func(_ *crashLedger, w *crashWork, _ *crashLie, _ onceward.Job) { clear(w.did) }, "is neither there nor done"},
		{"work that is there again", func(_ *crashLedger, _ *crashWork, s *crashLie, j onceward.Job) { s.jobs = []onceward.Job{j} }, "after it was settled"},
		{"work that is there before it was settled", func(_ *crashLedger, w *crashWork, s *crashLie, j onceward.Job) {
			s.jobs = []onceward.Job{j}
			clear(w.settled)
		}, ""},
		{"work that was given up", func(_ *crashLedger, w *crashWork, s *crashLie, j onceward.Job) {
			j.Dead = true
			s.jobs = []onceward.Job{j}
		}, "dead true"},
		{"work that follows from nothing", func(_ *crashLedger, _ *crashWork, s *crashLie, j onceward.Job) {
			j.Version = 77
			s.jobs = []onceward.Job{j}
		}, "that follows from nothing"},
	} {
		judged(t, func(l *crashLedger, store onceward.Reader) {
			work, s := newCrashWork(), &crashLie{Reader: store}
			doAll(t, l, store, kind, work)
			ref := onceward.Ref{Source: "acme", Kind: "order", Key: "o-1"}
			c.lie(l, work, s, onceward.Job{Handler: "order", Lane: ref.ID(), Version: 1})
			j := newJudgement(l, kind, work)
			if err := j.look(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(j.faults, func(f string) bool { return c.says != "" && strings.Contains(f, c.says) })
			if found != (c.says != "") || c.says == "" && len(j.faults) > 0 {
				t.Errorf("%s: found %q", c.name, j.faults)
			}
		})
	}
}

// TestCrashWorkJudge tells the judge of the work what is not right, and what is.
func TestCrashWorkJudge(t *testing.T) {
	job, other := crashJob{"order", "a", 1}, crashJob{"order", "a", 2}
	did := func(w *crashWork, server int, j crashJob) { w.note(server, crashLine{Did: &j}) }
	settled := func(w *crashWork, server int, j crashJob) { w.note(server, crashLine{Settled: []crashJob{j}}) }
	failed := func(w *crashWork, server int, j crashJob) { w.note(server, crashLine{Failed: []crashJob{j}}) }
	for _, c := range []struct {
		name string
		tell func(*crashWork)
		says string
	}{
		{"once", func(w *crashWork) { did(w, 1, job); settled(w, 1, job) }, ""},
		{"never", func(*crashWork) {}, "was never done"},
		{"settled and not done", func(w *crashWork) { settled(w, 1, job) }, "was never done"},
		{"what nobody wanted", func(w *crashWork) { did(w, 1, job); settled(w, 1, job); did(w, 1, other); settled(w, 1, other) }, "follows from nothing"},
		{"again after a kill", func(w *crashWork) { did(w, 1, job); w.kill(1); did(w, 2, job); settled(w, 2, job) }, ""},
		{"once, and a kill before it was told as settled", func(w *crashWork) { did(w, 1, job); w.kill(1) }, ""},
		{"again without a kill", func(w *crashWork) { did(w, 1, job); did(w, 2, job); settled(w, 2, job) }, "was not killed then"},
		{"twice in one process", func(w *crashWork) { did(w, 1, job); did(w, 1, job); settled(w, 1, job) }, "done 2 times by process 1"},
		{"again after it was settled", func(w *crashWork) { did(w, 1, job); settled(w, 1, job); w.kill(1); did(w, 2, job); settled(w, 2, job) }, "again after it was settled"},
		{"done and never settled", func(w *crashWork) { did(w, 1, job) }, "was not killed then"},
		{"again when it could not be settled", func(w *crashWork) { did(w, 1, job); failed(w, 1, job); did(w, 2, job); settled(w, 2, job) }, ""},
		{"nothing is ever settled", func(w *crashWork) {
			did(w, 2, job)
			settled(w, 2, job)
			for n := range int64(crashUnsettled + 1) {
				did(w, 1, crashJob{"order", "b", n})
			}
			w.kill(1)
		}, "they are not settled as they are done"},
	} {
		w := newCrashWork()
		c.tell(w)
		wanted := map[crashJob]bool{job: true}
		for n := range int64(crashUnsettled + 1) {
			if j := (crashJob{"order", "b", n}); len(w.did[j]) > 0 {
				wanted[j] = true
			}
		}
		faults, _ := w.judge(wanted)
		found := slices.ContainsFunc(faults, func(f string) bool { return c.says != "" && strings.Contains(f, c.says) })
		if found != (c.says != "") || c.says == "" && len(faults) > 0 {
			t.Errorf("%s: found %q", c.name, faults)
		}
	}
}
