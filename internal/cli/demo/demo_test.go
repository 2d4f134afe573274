package demo

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"log/slog"
	randv2 "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/onceward/onceward/internal/cli/screen"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// play runs the demo and hands over what it left while the server is still up.
func play(t *testing.T, seed uint64, look func(*Result, Where)) *Result {
	t.Helper()
	var result *Result
	err := Run(t.Context(), Options{
		Dir: t.TempDir(), Seed: seed, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler), Progress: t.Logf,
		Played: func(r *Result, w Where) error {
			result = r
			look(r, w)
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// counted is a Tally by SQL.
func counted(t *testing.T, db *sql.DB, sources ...string) Tally {
	t.Helper()
	in := "'" + strings.Join(sources, "','") + "'"
	one := func(query string) int {
		var n int
		if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	events := `from onceward_events e where e.origin = 0 and e.source in (` + in + `)`
	facts := func(verdict int) int {
		return one(fmt.Sprintf(`select count(*) from onceward_facts where verdict = %d and event in (select e.id %s)`, verdict, events))
	}
	return Tally{
		Kept:      one(`select count(*) ` + events),
		Duplicate: one(`select count(*) from onceward_repeats where event in (select e.id ` + events + `)`),
		Applied:   facts(1), Stale: facts(2), Same: facts(3), Held: facts(4),
		Conflicts: one(`select count(*) ` + events + ` and e.outcome <> 1`),
	}
}

// TestFigures computes every figure a second time, by SQL over the file that the
// demo left.
func TestFigures(t *testing.T) {
	play(t, 1, func(r *Result, w Where) {
		for _, fault := range r.Faults {
			t.Error(fault)
		}
		db, err := sql.Open("sqlite", "file:"+w.Store+"?mode=ro")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		song, day := counted(t, db, "music"), counted(t, db, daySources()...)
		song.Sent, day.Sent = song.Kept+song.Duplicate, day.Kept+day.Duplicate // what was sent is what came
		if r.Song.Tally != song || song.Sent != 3*connections+1 || song.Kept != 3 {
			t.Errorf("the song: the demo says %+v, the file %+v", r.Song.Tally, song)
		}
		if r.Day.Tally != day {
			t.Errorf("the day: the demo says %+v, the file %+v", r.Day.Tally, day)
		}
		var revenue, sales int64
		err = db.QueryRowContext(t.Context(), `
			select sum(case when status in ('paid', 'partially_refunded', 'disputed', 'refunded')
			                then coalesce(data ->> 'captured', data ->> 'amount') - coalesce(data ->> 'refunded', 0) else 0 end), count(*)
			from onceward_entities where kind = 'payment'`).Scan(&revenue, &sales)
		if err != nil {
			t.Fatal(err)
		}
		if r.Day.Revenue != revenue || r.Day.Sales != int(sales) || sales != 40 {
			t.Errorf("the demo says %d of %d sales, the file %d of %d", r.Day.Revenue, r.Day.Sales, revenue, sales)
		}
		var status, user string
		var tracks int
		err = db.QueryRowContext(t.Context(), `
			select status, data ->> '$.local.user', json_array_length(data, '$.output') from onceward_entities
			where source = 'music' and kind = 'job'`).Scan(&status, &user, &tracks)
		if err != nil || status != "succeeded" || user != musicUser || tracks != 2 {
			t.Errorf("the song is %q for %q with %d tracks, %v", status, user, tracks, err)
		}
		var orders string
		err = db.QueryRowContext(t.Context(), `
			select group_concat(status || ' ' || n, ', ') from (
				select status, count(*) as n from onceward_entities where source = 'pagarme' and kind = 'order' group by 1 order by 1)`).Scan(&orders)
		if want := "canceled 2, failed 1, paid 6, pending 1"; err != nil || orders != want {
			t.Errorf("the orders are %q, %v, want %q as their charges", orders, err, want)
		}
	})
}

// TestScript adds the day up from what was sold, without the code under test.
func TestScript(t *testing.T) {
	for seed := range uint64(20) {
		sales := script(randv2.New(randv2.NewPCG(seed, 0)))
		var keys []string
		var want, got int64
		for _, s := range sales {
			keys = append(keys, s.source+s.key)
			got += s.revenue
			switch s.plot {
			case paid, disputeWon:
				want += s.amount
			case partlyRefunded:
				want += s.amount - s.amount/4
			}
		}
		slices.Sort(keys)
		if len(slices.Compact(keys)) != 40 || got != want || want == 0 {
			t.Errorf("seed %d: %d sales with %d, want 40 with %d", seed, len(keys), got, want)
		}
	}
}

// TestDeliveries looks at the order in which the day is told.
func TestDeliveries(t *testing.T) {
	rng := randv2.New(randv2.NewPCG(7, 0))
	lost, reordered := 0, 0
	for _, s := range script(rng) {
		list := s.deliveries(rng)
		for i := range s.events {
			copies := 0
			for _, d := range list {
				if d.event == &s.events[i] {
					copies++
				}
			}
			if copies < 2 || copies > 5 {
				t.Errorf("%s %s: %d copies of %s", s.source, s.key, copies, s.events[i].name)
			}
		}
		for i, d := range list {
			if !d.lost {
				continue
			}
			lost++
			if !slices.ContainsFunc(list[i+1:], func(e delivery) bool { return e.event == d.event }) {
				t.Errorf("%s %s: the answer to %s is lost and nobody calls again", s.source, s.key, d.name)
			}
		}
		if s.backwards && !list[0].refund {
			t.Errorf("%s %s: it begins with %s, not with the refund", s.source, s.key, list[0].name)
		}
		if !slices.IsSortedFunc(list, func(a, b delivery) int { return slices.Index(names(s), a.name) - slices.Index(names(s), b.name) }) {
			reordered++
		}
	}
	if lost < 40 || reordered < 20 {
		t.Errorf("%d answers lost, %d sales told in another order; the day is too quiet", lost, reordered)
	}
}

func names(s *sale) []string {
	var list []string
	for _, e := range s.events {
		list = append(list, e.name)
	}
	return list
}

// TestSameSeedSameFigures plays the day twice. The song's verdicts hang on which of
// its callbacks comes first, and are left out.
func TestSameSeedSameFigures(t *testing.T) {
	nothing := func(*Result, Where) {}
	a, b := play(t, 3, nothing), play(t, 3, nothing)
	if a.Day != b.Day {
		t.Errorf("once %+v, then %+v", a.Day, b.Day)
	}
	if c := play(t, 4, nothing); a.Day == c.Day {
		t.Error("another seed gives the same day")
	}
}

// TestNaiveAreWrong is what the demo is for.
func TestNaiveAreWrong(t *testing.T) {
	r := play(t, 5, func(*Result, Where) {})
	if r.Day.EveryCall == r.Day.Script || r.Day.LastCall == r.Day.Script || r.Song.Naive == r.Song.Status {
		t.Errorf("a naive handler is right: %+v", r)
	}
}

// TestCompareFindsLies changes one figure after the other.
func TestCompareFindsLies(t *testing.T) {
	sales := script(randv2.New(randv2.NewPCG(1, 0)))
	events := 0
	for _, s := range sales {
		events += len(s.events)
	}
	right := func() *Result {
		return &Result{
			Song: Song{Tally: Tally{Sent: 193, Kept: 3, Duplicate: 190}, Status: "succeeded", Tracks: 2, User: musicUser},
			Day:  Day{Tally: Tally{Sent: events + 5, Kept: events, Duplicate: 5}, Revenue: 7, Script: 7},
		}
	}
	r := right()
	if r.compare(sales); len(r.Faults) > 0 {
		t.Fatalf("what is right has faults: %q", r.Faults)
	}
	for name, lie := range map[string]func(*Result){
		"an event too much":    func(r *Result) { r.Day.Kept, r.Day.Sent = r.Day.Kept+1, r.Day.Sent+1 },
		"a delivery too few":   func(r *Result) { r.Day.Duplicate-- },
		"a fact held":          func(r *Result) { r.Song.Held++ },
		"a conflict":           func(r *Result) { r.Day.Conflicts++ },
		"the song not over":    func(r *Result) { r.Song.Status = "partial" },
		"a track lost":         func(r *Result) { r.Song.Tracks-- },
		"the user overwritten": func(r *Result) { r.Song.User = "" },
		"a centavo":            func(r *Result) { r.Day.Revenue++ },
	} {
		r := right()
		lie(r)
		if r.compare(sales); len(r.Faults) == 0 {
			t.Errorf("%s is not found", name)
		}
	}
}

func TestLines(t *testing.T) {
	r := play(t, 1, func(*Result, Where) {})
	r.fault("%s", strings.Repeat("long ", 50))
	for _, line := range r.Lines(screen.Colour{}) {
		if n := utf8.RuneCountInString(line); n > screen.Width {
			t.Errorf("%d characters: %s", n, line)
		}
	}
}

// TestUnreachable: a demo that cannot be played is an error, not a result.
func TestUnreachable(t *testing.T) {
	signers, _, err := endpoints(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Play(context.Background(), Stage{
		Inbox: "http://127.0.0.1:1", Admin: "http://127.0.0.1:1", Sources: signers, Now: time.Now, Progress: t.Logf,
	})
	if err == nil {
		t.Error("nobody answered, and Play says nothing")
	}
}
