package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/cli/screen"
)

// Tally counts what the senders sent and what the store kept of it.
type Tally struct {
	// Sent is counted by the senders, the rest by the store.
	Sent      int `json:"sent"`
	Kept      int `json:"kept"`
	Duplicate int `json:"duplicate"`
	Applied   int `json:"applied"`
	Stale     int `json:"stale"`
	Same      int `json:"same"`
	// Held and Conflicts are always 0 where all is well.
	Held      int `json:"held"`
	Conflicts int `json:"conflicts"`
}

// Song is what came of the song.
type Song struct {
	Tally
	// Naive and Status are what the handler that overwrites shows, and what
	// Onceward shows.
	Naive  string `json:"naive"`
	Status string `json:"status"`
	Tracks int    `json:"tracks"`
	User   string `json:"user"`
}

// Day is what came of the day.
type Day struct {
	Tally
	Sales     int `json:"sales"`
	Backwards int `json:"backwards"`
	// All in centavos: what the two naive handlers report, what the store says and
	// what the script says.
	EveryCall int64 `json:"every_call"`
	LastCall  int64 `json:"last_call"`
	Revenue   int64 `json:"revenue"`
	Script    int64 `json:"script"`
}

// Result is both stories, and where they do not agree with the script.
type Result struct {
	Song   Song     `json:"song"`
	Day    Day      `json:"day"`
	Faults []string `json:"faults"`
}

// count reads everything back from the store and compares it with the script.
func (p *player) count(ctx context.Context, sales []*sale) (*Result, error) {
	r := &Result{Faults: []string{}}
	var err error
	if r.Song.Tally, err = p.tally(ctx, "music"); err != nil {
		return nil, err
	}
	if err := p.countSong(ctx, &r.Song); err != nil {
		return nil, err
	}
	for _, source := range daySources() {
		t, err := p.tally(ctx, source)
		if err != nil {
			return nil, err
		}
		r.Day.add(t)
	}
	if err := p.countDay(ctx, r, sales); err != nil {
		return nil, err
	}
	r.Day.EveryCall, r.Day.LastCall, r.Song.Naive = p.naive.figures(musicTask)
	r.compare(sales)
	return r, nil
}

func (t *Tally) add(o Tally) {
	t.Sent, t.Kept, t.Duplicate = t.Sent+o.Sent, t.Kept+o.Kept, t.Duplicate+o.Duplicate
	t.Applied, t.Stale, t.Same = t.Applied+o.Applied, t.Stale+o.Stale, t.Same+o.Same
	t.Held, t.Conflicts = t.Held+o.Held, t.Conflicts+o.Conflicts
}

// tally counts the events of a source that its sender sent, and their facts.
func (p *player) tally(ctx context.Context, source string) (Tally, error) {
	t := Tally{Sent: p.sent[source]}
	q := onceward.EventQuery{Source: source}
	for {
		events, err := p.Store.Events(ctx, q)
		if err != nil {
			return t, fmt.Errorf("read the events of %s: %w", source, err)
		}
		if len(events) == 0 {
			return t, nil
		}
		for i := range events {
			q.Before = events[i].ID
			if err := p.tallyEvent(ctx, &t, &events[i]); err != nil {
				return t, err
			}
		}
	}
}

func (p *player) tallyEvent(ctx context.Context, t *Tally, e *onceward.StoredEvent) error {
	if e.Origin != onceward.Sent {
		return nil // the registration, which no sender sent
	}
	if e.Outcome != onceward.New {
		t.Conflicts++
	}
	t.Kept++
	t.Duplicate += int(e.Repeats)
	facts, err := p.Store.EventFacts(ctx, e.ID)
	if err != nil {
		return fmt.Errorf("read the facts of event %d: %w", e.ID, err)
	}
	for _, f := range facts {
		switch f.Verdict {
		case onceward.Applied:
			t.Applied++
		case onceward.Stale:
			t.Stale++
		case onceward.Same:
			t.Same++
		default:
			t.Held++
		}
	}
	return nil
}

func (p *player) countSong(ctx context.Context, s *Song) error {
	row, err := p.Store.Entity(ctx, onceward.Ref{Source: "music", Kind: "job", Key: musicTask})
	if err != nil {
		return fmt.Errorf("read the song: %w", err)
	}
	var data struct {
		Output []json.RawMessage
		Local  struct{ User string }
	}
	if err := json.Unmarshal(row.Data, &data); err != nil {
		return fmt.Errorf("read the song's fields: %w", err)
	}
	s.Status, s.Tracks, s.User = row.Status, len(data.Output), data.Local.User
	return nil
}

// countDay reads every payment and compares each with the script.
func (p *player) countDay(ctx context.Context, r *Result, sales []*sale) error {
	want := map[string]*sale{}
	for _, s := range sales {
		want[s.source+" "+s.key] = s
		r.Day.Sales++
		r.Day.Script += s.revenue
		if s.backwards {
			r.Day.Backwards++
		}
	}
	q := onceward.EntityQuery{Kind: "payment"}
	for {
		rows, err := p.Store.Entities(ctx, q)
		if err != nil {
			return fmt.Errorf("read the payments: %w", err)
		}
		if len(rows) == 0 {
			break
		}
		for i := range rows {
			q.After = rows[i].Ref
			name := rows[i].Source + " " + rows[i].Key
			got, err := revenue(&rows[i])
			if err != nil {
				return err
			}
			r.Day.Revenue += got
			s := want[name]
			delete(want, name)
			switch {
			case s == nil:
				r.fault("there is a payment %s that nobody made", name)
			case rows[i].Status != s.status || got != s.revenue:
				r.fault("payment %s is %s with %d, the script says %s with %d", name, rows[i].Status, got, s.status, s.revenue)
			}
		}
	}
	for name := range want {
		r.fault("payment %s is missing", name)
	}
	return nil
}

// revenue is what a payment brings in, in centavos, as its row shows it.
func revenue(row *onceward.Entity) (int64, error) {
	var data struct {
		Amount, Captured, Refunded *int64
		Currency                   string
	}
	if err := json.Unmarshal(row.Data, &data); err != nil {
		return 0, fmt.Errorf("read the fields of %s: %w", row.Ref, err)
	}
	switch row.Status {
	case "paid", "partially_refunded", "disputed", "refunded":
	default:
		return 0, nil
	}
	var got int64
	switch {
	case data.Captured != nil:
		got = *data.Captured
	case data.Amount != nil:
		got = *data.Amount
	}
	if data.Refunded != nil {
		got -= *data.Refunded
	}
	return got, nil
}

func (r *Result) fault(format string, args ...any) {
	r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
}

// compare checks the totals.
func (r *Result) compare(sales []*sale) {
	events := 0
	for _, s := range sales {
		events += len(s.events)
	}
	for _, t := range []struct {
		name   string
		tally  Tally
		events int
	}{{"the song", r.Song.Tally, 3}, {"the day", r.Day.Tally, events}} {
		if t.tally.Kept != t.events {
			r.fault("%s: %d events kept of %d that happened", t.name, t.tally.Kept, t.events)
		}
		if t.tally.Kept+t.tally.Duplicate != t.tally.Sent {
			r.fault("%s: %d sent, but kept and duplicate are %d", t.name, t.tally.Sent, t.tally.Kept+t.tally.Duplicate)
		}
		if t.tally.Held != 0 || t.tally.Conflicts != 0 {
			r.fault("%s: %d facts held, %d conflicts", t.name, t.tally.Held, t.tally.Conflicts)
		}
	}
	if r.Song.Status != "succeeded" || r.Song.Tracks != 2 || r.Song.User != musicUser {
		r.fault("the song is %s with %d tracks for %q; it should have succeeded with 2 for %q", r.Song.Status, r.Song.Tracks, r.Song.User, musicUser)
	}
	if r.Day.Revenue != r.Day.Script {
		r.fault("the day: revenue %d, the script says %d", r.Day.Revenue, r.Day.Script)
	}
}

// Lines returns the result for a terminal.
func (r *Result) Lines(colour screen.Colour) []string {
	song, day := &r.Song, &r.Day
	money := func(n int64) string {
		text, _ := screen.Money(fmt.Sprint(n), "BRL")
		return "BRL " + text
	}
	verdict := func(right bool, yes, no string) string {
		if right {
			return colour.Good(yes)
		}
		return colour.Bad(no)
	}
	lines := []string{
		"the song   one task, three callbacks, each sent 64 times at once, `first` again after `complete`,",
		"           the task registered after its first callback",
		fmt.Sprintf("           sent %d   kept %d   duplicate %d", song.Sent, song.Kept, song.Duplicate),
		fmt.Sprintf("           a handler that overwrites shows   %-12s %s", song.Naive, verdict(song.Naive == "succeeded", "right", "wrong: the player spins for ever")),
		fmt.Sprintf("           onceward shows                    %-12s %s", song.Status, verdict(song.Status == "succeeded", "right", "wrong")),
		fmt.Sprintf("the day    %d sales from Stripe, Kiwify, Hotmart, Pagar.me; each 2 to 5 times, %d refunds come first", day.Sales, day.Backwards),
		fmt.Sprintf("           sent %d   kept %d   duplicate %d   of their facts: applied %d, stale %d, same %d", day.Sent, day.Kept, day.Duplicate, day.Applied, day.Stale, day.Same),
		fmt.Sprintf("           revenue if every call is a row    %s", money(day.EveryCall)),
		fmt.Sprintf("           revenue if the last call wins     %s", money(day.LastCall)),
		fmt.Sprintf("           revenue                           %s   %s", colour.Strong(money(day.Revenue)),
			verdict(len(r.Faults) == 0, "(checked against the script of the day)", "(it does NOT agree with the script)")),
	}
	for _, fault := range r.Faults {
		lines = append(lines, screen.Cut("fault      "+strings.TrimSpace(screen.Clean(fault)), screen.Width))
	}
	return lines
}
