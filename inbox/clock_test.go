package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/pgtest"
)

// clockThatSteps moves the clock of an inbox back, and ahead, where something
// depends on it.
func clockThatSteps(t *testing.T, server *pgtest.Server) {
	onEachStore(t, server, func(t *testing.T, open opener) {
		store := open(t)
		defer func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}()
		for _, test := range []struct {
			about string
			run   func(t *testing.T, store onceward.Store)
		}{
			{"ids stay unique and in order", idsInOrder},
			{"two processes with one number and one time", idsThatClash},
			{"a signature is judged at its receipt", judgedAtReceipt},
			{"a lease ends with the clock", leasesByTheClock},
			{"the clock goes back during an attempt", backDuringAnAttempt},
			{"the clock goes ahead during an attempt", aheadDuringAnAttempt},
			{"a failed job is due by the clock there is", dueByTheClock},
			{"the times of a row", timesOfARow},
			{"a row is the same whatever the clock", rowWhateverTheClock},
		} {
			t.Run(test.about, func(t *testing.T) { test.run(t, store) })
		}
	})
}

// idsInOrder steps the clock at chance before each delivery.
func idsInOrder(t *testing.T, store onceward.Store) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	steps := []time.Duration{-48 * time.Hour, -time.Hour, -time.Millisecond, -1, 0, 1, time.Millisecond, time.Hour}
	all := map[int64]string{}
	var w *world
	for process := range 3 { // the clock goes back between two processes as well
		w = worldOn(t, store, nil)
		w.clock.advance(-time.Duration(process) * time.Hour)
		last := int64(0)
		for n := range 40 {
			w.clock.advance(steps[chance.IntN(len(steps))])
			key := fmt.Sprintf("ids-%d-%d", process, n)
			a := w.ok("shop", order(key, key, "paid", "10:00:00"))
			id := mustID(t, a)
			if id <= last || all[id] != "" {
				t.Fatalf("event %s has id %d after %d, and %q has it", key, id, last, all[id])
			}
			last, all[id] = id, key
			e, err := store.Event(ctx, id)
			if err != nil || e.Key != key || !e.Delivery.At.Equal(w.clock.Now().Truncate(time.Microsecond)) {
				t.Fatalf("event %d is %+v of %v, %v; the clock shows %v", id, e, e.Delivery.At, err, w.clock.Now())
			}
		}
		if err := w.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func mustID(t testing.TB, a answer) int64 {
	t.Helper()
	var id int64
	if _, err := fmt.Sscan(a.Event, &id); err != nil || id <= 0 {
		t.Fatalf("the answer names event %q", a.Event)
	}
	return id
}

// numbered is a store whose processes all get the same number, as when more than a
// thousand started in between.
type numbered struct{ onceward.Store }

func (numbered) Node(context.Context) (int, error) { return 7, nil }

// idsThatClash starts a second process with the number and the time of the first:
// an event whose id another has is not acknowledged and harms none, and the repeat,
// which has another id, is taken.
func idsThatClash(t *testing.T, store onceward.Store) {
	first, second := worldOn(t, numbered{store}, nil), worldOn(t, numbered{store}, nil)
	first.clock.advance(1000 * time.Hour) // where no other test has been
	second.clock.advance(1000 * time.Hour)
	want := first.ok("shop", order("clash1", "clash1", "paid", "10:00:00"))
	body := order("clash2", "clash2", "paid", "10:00:00")
	refused := 0
	for {
		rec := second.deliver("shop", body)
		if rec.Code == http.StatusOK {
			a := decode(t, rec)
			if a.Outcome != "new" || a.Event == want.Event {
				t.Errorf("in the end it is %+v", a)
			}
			break
		}
		if rec.Code < 500 {
			t.Fatalf("answered %d", rec.Code)
		}
		if _, err := store.Entity(ctx, onceward.Ref{Source: "shop", Kind: "order", Key: "clash2"}); !errors.Is(err, onceward.ErrNotFound) {
			t.Errorf("something is kept of what was answered %d: %v", rec.Code, err)
		}
		if refused++; refused > 10 {
			t.Fatal("it is never taken")
		}
	}
	if refused == 0 {
		t.Error("the ids did not clash; the test shows nothing")
	}
	if again := first.ok("shop", order("clash1", "clash1", "paid", "10:00:00")); again.Outcome != "duplicate" || again.Event != want.Event {
		t.Errorf("the event that had the id first is then %+v", again)
	}
}

// stepping is a body during whose reading the clock steps.
type stepping struct {
	io.Reader
	clock *clock
	by    time.Duration
}

func (s *stepping) Read(p []byte) (int, error) {
	s.clock.advance(s.by)
	s.by = 0
	return s.Reader.Read(p)
}

// timed signs the time along with the body.
const timed = `
verify: {scheme: hmac, header: X-Signature, format: "t={timestamp},v1={signature}", signed: "{timestamp}.{raw}", tolerance: 5m}
event: {key: body.id, type: body.type}
`

// judgedAtReceipt delivers at, before and after the time that was signed, and steps
// the clock while the body comes.
func judgedAtReceipt(t *testing.T, store onceward.Store) {
	w := worldOn(t, store, func(cfg *inbox.Config) {
		cfg.Sources["timed"] = inbox.Source{Definition: []byte(timed), Secrets: []string{secret}}
	})
	for i, test := range []struct {
		about         string
		before, while time.Duration // by how much the clock steps after signing, and while the body comes
		want          int
	}{
		{"no step", 0, 0, 200},
		{"back within the tolerance", -4 * time.Minute, 0, 200},
		{"back beyond it", -10 * time.Minute, 0, 401},
		{"ahead beyond it", 10 * time.Minute, 0, 401},
		{"back while the body comes", 0, -time.Hour, 200},
		{"ahead while the body comes", 0, time.Hour, 200},
		{"right again when the body has come", -time.Hour, time.Hour, 401},
	} {
		body := fmt.Sprintf(`{"id":"timed%d","type":"x"}`, i)
		r := w.signed("timed", body)
		w.clock.advance(test.before)
		receipt := w.clock.Now()
		r.Body = io.NopCloser(&stepping{strings.NewReader(body), w.clock, test.while})
		rec := w.serve(r)
		if rec.Code != test.want {
			t.Errorf("%s: answered %d, want %d: %s", test.about, rec.Code, test.want, rec.Body)
			continue
		}
		if rec.Code == http.StatusOK {
			e, err := store.Event(ctx, mustID(t, decode(t, rec)))
			if err != nil || !e.Delivery.At.Equal(receipt) {
				t.Errorf("%s: received at %v, want %v: %v", test.about, e.Delivery.At, receipt, err)
			}
		}
		w.clock.advance(-test.before - test.while)
	}
}

// worker is a world whose jobs are done by hand, with a kind of event to itself.
func worker(t *testing.T, store onceward.Store, name string, do inbox.HandlerFunc) *world {
	t.Helper()
	w := worldOn(t, store, func(cfg *inbox.Config) { cfg.Jobs.Timeout = time.Minute })
	w.Handle("order#"+name, do)
	return w
}

func (w *world) work(want int) {
	w.t.Helper()
	n, err := w.Work(ctx)
	if err != nil && !errors.Is(err, onceward.ErrStaleToken) {
		w.t.Fatal(err)
	}
	if n != want {
		w.t.Errorf("%d attempts at %v, want %d", n, w.clock.Now(), want)
	}
}

// leaseOf is what a claim of Work lasts with a time limit of a minute.
const leaseOf = time.Minute + 15*time.Second

// leasesByTheClock lets a worker die with a lease, and the clock go back: the job is
// tried again neither before the lease is over nor later than the clock takes to
// come back.
func leasesByTheClock(t *testing.T, store onceward.Store) {
	w := worker(t, store, "lease", func(context.Context, onceward.Change) error { return nil })
	w.ok("shop", order("lease", "lease", "paid", "10:00:00"))
	if jobs, err := store.Claim(ctx, []string{"order#lease"}, 1, w.clock.Now(), leaseOf); err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs claimed, %v", len(jobs), err)
	}
	w.work(0)
	w.clock.advance(-time.Hour)
	w.work(0)
	w.clock.advance(time.Hour + leaseOf - time.Second)
	w.work(0)
	w.clock.advance(time.Second)
	w.work(1)
	w.clock.advance(-2 * time.Hour)
	w.work(0)
}

// backDuringAnAttempt steps the clock back while a handler runs.
func backDuringAnAttempt(t *testing.T, store onceward.Store) {
	var w *world
	w = worker(t, store, "back", func(context.Context, onceward.Change) error {
		w.clock.advance(-time.Hour)
		return nil
	})
	w.ok("shop", order("back", "back", "paid", "10:00:00"))
	w.work(1)
	w.clock.advance(2 * time.Hour)
	w.work(0)
}

// aheadDuringAnAttempt steps the clock ahead while a handler runs: its lease is over
// for another worker, who does the job too, and it is settled once.
func aheadDuringAnAttempt(t *testing.T, store onceward.Store) {
	var w, other *world
	runs := 0
	do := func(context.Context, onceward.Change) error {
		if runs++; runs == 1 {
			w.clock.advance(2 * time.Hour)
			other.clock.advance(2 * time.Hour)
			other.work(1)
		}
		return nil
	}
	w, other = worker(t, store, "ahead", do), worker(t, store, "ahead", do)
	w.ok("shop", order("ahead", "ahead", "paid", "10:00:00"))
	w.work(1)
	w.work(0)
	jobs, err := store.Jobs(ctx, 1000)
	if err != nil || slices.ContainsFunc(jobs, func(j onceward.Job) bool { return j.Handler == "order#ahead" }) || runs != 2 {
		t.Errorf("after %d runs there are %d jobs, %v", runs, len(jobs), err)
	}
}

// dueByTheClock fails a job while the clock is right, and lets it go back: the next
// try waits for the clock, and for no longer.
func dueByTheClock(t *testing.T, store onceward.Store) {
	var w *world
	step := -time.Hour
	w = worker(t, store, "due", func(context.Context, onceward.Change) error {
		w.clock.advance(step)
		step = 0
		return errors.New("not yet")
	})
	w.ok("shop", order("due", "due", "paid", "10:00:00"))
	w.work(1) // which ends an hour before it began
	w.clock.advance(time.Second)
	w.work(1) // a second is the longest first pause
	w.clock.advance(-time.Hour)
	w.work(0)
	w.clock.advance(time.Hour + 2*time.Second)
	w.work(1)
}

// timesOfARow writes a row when it is earlier than when it was made.
func timesOfARow(t *testing.T, store onceward.Store) {
	w := worldOn(t, store, nil)
	made := w.clock.Now()
	w.ok("shop", order("times1", "times", "created", "09:00:00"))
	w.clock.advance(-time.Hour)
	w.ok("shop", order("times2", "times", "paid", "10:00:00"))
	row := w.row("shop", "order", "times")
	if !row.Created.Equal(made) || row.Updated.Before(row.Created) {
		t.Errorf("the row was made at %v and changed at %v; the clock showed %v, then an hour less", row.Created, row.Updated, made)
	}
	w.clock.advance(2 * time.Hour)
	w.ok("shop", order("times3", "times", "shipped", "11:00:00"))
	if row := w.row("shop", "order", "times"); !row.Created.Equal(made) || !row.Updated.Equal(w.clock.Now()) {
		t.Errorf("the row was made at %v and changed at %v; the clock shows %v", row.Created, row.Updated, w.clock.Now())
	}
}

// rowWhateverTheClock tells one story with a clock that runs, and with one that runs
// back.
func rowWhateverTheClock(t *testing.T, store onceward.Store) {
	tell := func(key string, step time.Duration) *onceward.Entity {
		w := worldOn(t, store, nil)
		for i, status := range []string{"paid", "created", "shipped", "paid"} {
			w.ok("shop", order(fmt.Sprint(key, i), key, status, fmt.Sprintf("%02d:00:00", 9+i%3)))
			w.deliver("club", fmt.Sprintf(`{"account":"a","live":"live","events":[{"id":"%s-%d","type":"t","job":"%s","status":"%s"}]}`,
				key, i, key, []string{"queued", "succeeded", "running", "failed"}[i]))
			w.clock.advance(step)
		}
		return w.row("shop", "order", key)
	}
	ahead, back := tell("runs", time.Minute), tell("runsback", -time.Minute)
	if ahead.Status != back.Status || ahead.Version != back.Version || string(ahead.Data) != string(back.Data) || !slices.Equal(ahead.Tie, back.Tie) {
		t.Errorf("with a clock that runs %+v, with one that runs back %+v", ahead, back)
	}
}
