package why

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/cli/screen"
	"github.com/onceward/onceward/internal/server/v1"
)

var update = flag.Bool("update", false, "write the golden files")

// told is one fact with what there is to say about its event.
type told struct {
	event, typ string
	after      time.Duration // since the first
	fact       onceward.Fact
}

// story folds facts as a store does and returns what it would give back.
func story(t *testing.T, ref onceward.Ref, kind *onceward.Kind, facts []told) Story {
	t.Helper()
	start := time.Date(2026, time.January, 20, 12, 0, 7, 101e6, time.UTC)
	row := &onceward.Row{Revision: 1}
	var stored []onceward.StoredFact
	var before []onceward.Fact
	for i, f := range facts {
		f.fact.Kind, f.fact.Key = ref.Kind, ref.Key
		step, err := row.Add(kind, &f.fact, false, func() ([]onceward.Fact, error) { return before, nil })
		if err != nil {
			t.Fatal(err)
		}
		if step.Verdict != onceward.Held {
			before = append(before, f.fact)
		}
		stored = append(stored, onceward.StoredFact{
			Fact: f.fact, Ref: ref, Seq: int64(i + 1), EventID: int64(i + 1), EventKey: f.event, EventType: f.typ, At: start.Add(f.after),
			Verdict: step.Verdict, Version: row.Version, Revision: 1, From: step.From, To: step.To,
			Order: step.Order, Against: step.Against, Decided: step.Decided,
		})
	}
	entity := &onceward.Entity{
		Ref: ref, Status: row.Status, Told: row.Told, Version: row.Version, Revision: 1, Epoch: row.Epoch, Tie: row.Tie(),
		Data: row.Data(), Created: start, Updated: start, Facts: int64(len(stored)), State: row.EncodeState(),
	}
	return Story{History: v1.HistoryOf(entity, stored, kind), Repeats: map[string]int64{}}
}

// kinds as senders have them.
func kinds(t *testing.T) (payment, job, run, subscription *onceward.Kind) {
	t.Helper()
	kind := func(k onceward.Kind) *onceward.Kind {
		made, err := onceward.NewKind(k)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	payment = kind(onceward.Kind{
		Name: "payment", Order: []onceward.Component{onceward.Time, onceward.Rank, onceward.Sequence},
		States: [][]string{{"created"}, {"pending"}, {"failed"}, {"paid"}, {"disputed"}, {"refunded"}},
		Derive: func(f onceward.Folded) onceward.Derived {
			back := f.Field("refund_total")
			d := onceward.Derived{Fields: []onceward.NamedValue{{Name: "refunded", Value: back}}}
			if n, _ := back.Int64(); n > 0 {
				d.Status, d.Why = "refunded", "refunded: refunded > 0 && refunded >= first(captured, amount)"
			}
			return d
		},
	})
	ends := []string{"succeeded", "failed"}
	states := [][]string{{"queued"}, {"running"}, {"partial"}, ends}
	job = kind(onceward.Kind{Name: "job", Order: []onceward.Component{onceward.Rank}, States: states, Terminal: ends})
	run = kind(onceward.Kind{Name: "job", Order: []onceward.Component{onceward.Time, onceward.Rank}, States: states, Terminal: ends})
	subscription = kind(onceward.Kind{
		Name: "subscription", Order: []onceward.Component{onceward.Time, onceward.Rank},
		States: [][]string{{"incomplete"}, {"active", "past_due", "unpaid"}, {"canceled"}}, Terminal: []string{"canceled"},
	})
	return payment, job, run, subscription
}

func at(text string) onceward.Opt {
	t, err := time.Parse(time.DateTime, text)
	if err != nil {
		panic(err)
	}
	return onceward.Instant(t)
}

func field(name, value string) onceward.Part {
	v, err := onceward.JSON([]byte(value))
	if err != nil {
		panic(err)
	}
	return onceward.Part{Field: name, Value: v}
}

// stories are what the golden file shows.
func stories(t *testing.T) map[string]Story {
	t.Helper()
	payment, job, run, subscription := kinds(t)
	money := func(amount, captured, refunds string) []onceward.Part {
		return []onceward.Part{field("amount", amount), field("captured", captured), field("currency", `"BRL"`), field("refund_total", refunds)}
	}
	out := map[string]Story{}
	sale := story(t, onceward.Ref{Source: "stripe", Scope: onceward.Scope{Mode: "test"}, Kind: "payment", Key: "pi_3MadeUpIntent0001"}, payment, []told{
		{"evt_03", "charge.succeeded", 0, onceward.Fact{Rule: "charge", Status: "paid", Time: at("2026-01-01 00:01:00"), Sequence: onceward.Some(0), Fields: money("4990", "4990", "0")}},
		{"evt_01", "payment_intent.created", time.Millisecond, onceward.Fact{Rule: "intent", Status: "created", Time: at("2026-01-01 00:00:00"), Fields: []onceward.Part{field("order", `"A-1"`), field("amount", "4990")}}},
		{"evt_08", "charge.dispute.closed", 2 * time.Millisecond, onceward.Fact{Rule: "disputed-payment", Time: at("2026-01-11 00:00:00"), Fields: []onceward.Part{field("dispute", `"won"`)}}},
		{"evt_07", "charge.dispute.created", 3 * time.Millisecond, onceward.Fact{Rule: "disputed-payment", Time: at("2026-01-02 00:00:00"), Fields: []onceward.Part{field("dispute", `"open"`)}}},
		{"evt_09", "charge.refunded", 4 * time.Millisecond, onceward.Fact{Rule: "charge", Status: "paid", Time: at("2026-01-11 10:00:00"), Sequence: onceward.Some(4990), Fields: money("4990", "4990", "4990")}},
		{"evt_10", "charge.odd", 5 * time.Millisecond, onceward.Fact{Rule: "charge", Held: `status: the word "strange" is not listed`}},
	})
	sale.Repeats["1"], sale.Repeats["2"] = 8, 1
	out["a sale"] = sale
	song := func(event, status string, after time.Duration) told {
		return told{"madeuptask0001:" + event, event, after, onceward.Fact{Rule: "song", Status: status, Fields: []onceward.Part{field("output", `[{"id":"track-1","audio_url":"https://files.example/1.mp3"}]`)}}}
	}
	started := told{"3f1c", "registered", time.Second, onceward.Fact{Rule: "registration", Status: "queued", Hint: true, Local: []onceward.Part{field("user", `"user-1"`)}}}
	out["a song"] = story(t, onceward.Ref{Source: "music", Kind: "job", Key: "madeuptask0001"}, job, []told{
		song("complete", "succeeded", 0), started, song("first", "partial", 30*time.Hour), song("error", "failed", 31*time.Hour),
	})
	attempt := func(n int64, event, status, when string) told {
		return told{event, "workflow_run." + status, time.Second, onceward.Fact{Rule: "run", Epoch: onceward.Some(n), Status: status, Time: at(when)}}
	}
	out["a rerun"] = story(t, onceward.Ref{Source: "ci", Kind: "job", Key: "42"}, run, []told{
		attempt(1, "d-1", "failed", "2026-01-01 10:00:03"), attempt(2, "d-3", "running", "2026-01-01 11:00:03"), attempt(1, "d-2", "queued", "2026-01-01 10:00:01"),
	})
	var many []told
	for i := range 20 {
		many = append(many, told{fmt.Sprintf("evt_%03d", i), "customer.subscription.updated", time.Duration(i) * time.Second,
			onceward.Fact{Rule: "subscription", Status: []string{"active", "past_due"}[i%2], Time: at(fmt.Sprintf("2025-12-%02d 08:00:00", i+8))}})
	}
	many = append(many, told{"evt_999", "customer.subscription.updated", time.Minute,
		onceward.Fact{Rule: "subscription", Status: "unpaid", Time: at("2025-12-27 08:00:00")}})
	out["a long story"] = story(t, onceward.Ref{Source: "stripe", Scope: onceward.Scope{Account: "acct_1", Mode: "live"}, Kind: "subscription", Key: "sub_" + strings.Repeat("x", 60)},
		subscription, many)
	out["nobody knows the mapping"] = Story{History: v1.HistoryOf(&onceward.Entity{Ref: onceward.Ref{Source: "gone", Kind: "thing", Key: "k\x1b[2J"}, Version: 1},
		[]onceward.StoredFact{{Seq: 1, EventKey: "e", Verdict: onceward.Applied, Decided: "first", To: "new", Fact: onceward.Fact{Rule: "r\x1b[2J", Status: "new"}}}, nil)}
	return out
}

// TestLines shows each story as a golden text, no line of which is too long.
func TestLines(t *testing.T) {
	all := stories(t)
	var out strings.Builder
	for _, name := range []string{"a sale", "a song", "a rerun", "a long story", "nobody knows the mapping"} {
		lines := all[name].Lines(screen.Colour{})
		fmt.Fprintf(&out, "== %s\n%s\n\n", name, strings.Join(lines, "\n"))
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > screen.Width {
				t.Errorf("%s: a line of %d characters: %s", name, n, line)
			}
			if strings.ContainsRune(line, '\x1b') {
				t.Errorf("%s: a line obeys the sender: %q", name, line)
			}
		}
	}
	golden(t, "stories.golden", out.String())
}

func TestAllShowsEveryFact(t *testing.T) {
	s := stories(t)["a long story"]
	short := strings.Join(s.Lines(screen.Colour{}), "\n")
	s.All = true
	long := strings.Join(s.Lines(screen.Colour{}), "\n")
	if strings.Count(short, "\n  12:") != shownFacts || strings.Count(long, "\n  12:") != len(s.Facts) {
		t.Errorf("%d and %d facts are shown of %d", strings.Count(short, "\n  12:"), strings.Count(long, "\n  12:"), len(s.Facts))
	}
	if !strings.Contains(short, "--all") || strings.Contains(long, "--all") {
		t.Error("the hint at --all is missing, or stands where everything is shown")
	}
}

func TestColourOnlyRepeats(t *testing.T) {
	for name, s := range stories(t) {
		plain := strings.Join(s.Lines(screen.Colour{}), "\n")
		painted := strings.Join(s.Lines(screen.Colour{On: true}), "\n")
		for _, code := range []string{"\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[0m"} {
			painted = strings.ReplaceAll(painted, code, "")
		}
		if d := cmp.Diff(plain, painted); d != "" {
			t.Errorf("%s: colour changes words:\n%s", name, d)
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs; if that is meant, run the test with -update:\n%s", file, d)
	}
}
