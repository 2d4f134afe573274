package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/cli/screen"
	"github.com/onceward/onceward/internal/server/v1"
)

func eventsCommand(a *app) *cobra.Command {
	c := group(&cobra.Command{
		Use:     "events",
		Aliases: []string{"event"},
		Short:   "the events: each kept once, with its bytes",
	})
	c.AddCommand(eventsList(a), eventsShow(a))
	return c
}

func eventsList(a *app) *cobra.Command {
	var f listFlags
	c := &cobra.Command{
		Use:   "list [--source S] [--type T] [--limit N]",
		Short: "list events, newest first",
		Args:  args(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return a.listEvents(c.Context(), f) },
	}
	c.Flags().StringVar(&f.source, "source", "", "only of this source")
	c.Flags().StringVar(&f.typ, "type", "", "only of this type; * is any run of characters, as charge.*")
	f.limited(c)
	a.complete(c, "source", a.completeSources)
	return c
}

func (a *app) listEvents(ctx context.Context, f listFlags) error {
	return a.reading(ctx, func(_ *setup, store onceward.Reader) error {
		events, err := store.Events(ctx, onceward.EventQuery{Source: f.source, Type: f.typ, Limit: f.limit + 1})
		if err != nil {
			return err
		}
		shown := events[:min(f.limit, len(events))]
		if a.json {
			out := v1.Events{Events: []v1.Event{}}
			for i := range shown {
				out.Events = append(out.Events, v1.EventOf(&shown[i]))
			}
			return a.printJSON(out)
		}
		if len(shown) == 0 {
			return a.print("%s", f.nothing("events", "event"))
		}
		t := &screen.Table{Most: []int{0, 0, 12, 22}, Whole: !isTerminal(a.Stdout)}
		key := keyTail
		if t.Whole {
			key = screen.Clean
		}
		t.Add("received UTC", "id", "source", "type", "key", "")
		for i := range shown {
			e := &shown[i]
			t.Add(received(e, &shown[len(shown)-1], a.Now()), fmt.Sprint(e.ID), e.Source, eventType(e), key(e.Key), eventSummary(e))
		}
		if len(events) > f.limit {
			t.Add("...", "", "", "", "", "more: --limit, or filter")
		}
		return t.Write(a.Stdout, "")
	})
}

// received is when an event came; the day is left out where all came today.
func received(e, oldest *onceward.StoredEvent, now time.Time) string {
	if e.Delivery == nil {
		return "-"
	}
	at := e.Delivery.At.UTC()
	if oldest.Delivery != nil && oldest.Delivery.At.UTC().Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format("Jan 02 15:04")
}

// keyTail is the end of a key, by which keys differ.
func keyTail(key string) string {
	const most = 16
	r := []rune(screen.Clean(key))
	if len(r) <= most {
		return string(r)
	}
	return "…" + string(r[len(r)-most+1:])
}

func eventType(e *onceward.StoredEvent) string {
	switch {
	case e.Type != "":
		return e.Type
	case e.Origin == onceward.Registered:
		return "registered"
	}
	return "-"
}

// eventSummary says what is worth knowing of an event beside its name.
func eventSummary(e *onceward.StoredEvent) string {
	var words []string
	if e.Outcome == onceward.Conflict {
		words = append(words, "conflict")
	}
	switch {
	case e.Facts == 0:
		words = append(words, "unmapped")
	case e.Held > 0:
		words = append(words, fmt.Sprintf("%d of %d held", e.Held, e.Facts))
	case e.Facts == 1:
		words = append(words, "1 fact")
	default:
		words = append(words, fmt.Sprintf("%d facts", e.Facts))
	}
	if e.Repeats > 0 {
		words = append(words, fmt.Sprintf("+%d", e.Repeats))
	}
	return strings.Join(words, " ")
}

func eventsShow(a *app) *cobra.Command {
	var raw, headers bool
	c := &cobra.Command{
		Use:   "show ID [--raw | --headers]",
		Short: "show an event and what it tells; --raw writes its bytes as they came",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			id, err := strconv.ParseInt(given[0], 10, 64)
			if err != nil || id <= 0 {
				return usage("%q is no event's id; `onceward events list` shows them", given[0])
			}
			if raw && headers {
				return usage("--raw and --headers are two outputs; ask for one")
			}
			return a.showEvent(c.Context(), id, raw, headers)
		},
	}
	c.Flags().BoolVar(&raw, "raw", false, "write the body to standard output, byte for byte")
	c.Flags().BoolVar(&headers, "headers", false, "write the headers, secrets masked")
	c.ValidArgsFunction = a.completeEvents
	return c
}

func (a *app) showEvent(ctx context.Context, id int64, raw, headers bool) error {
	return a.reading(ctx, func(s *setup, store onceward.Reader) error {
		e, err := store.Event(ctx, id)
		if errors.Is(err, onceward.ErrNotFound) {
			return fmt.Errorf("there is no event %d; `onceward events list` shows those there are", id)
		}
		if err != nil {
			return err
		}
		switch {
		case raw:
			_, err = a.Stdout.Write(e.Delivery.Body)
			return err
		case headers:
			_, err = a.Stdout.Write(v1.HeaderLines(e.Delivery))
			return err
		}
		facts, err := store.EventFacts(ctx, id)
		if err != nil {
			return err
		}
		out := v1.EventDetail{Event: v1.EventOf(e), Method: e.Delivery.Method, Target: e.Delivery.Target, Tells: []v1.Fact{}}
		for i := range facts {
			out.Tells = append(out.Tells, v1.FactOf(&facts[i], s.kind(e.Source, facts[i].Kind)))
		}
		if a.json {
			return a.printJSON(out)
		}
		return a.printLines(eventLines(&out, !isTerminal(a.Stdout)))
	})
}

// eventLines show an event for a terminal, or whole.
func eventLines(e *v1.EventDetail, whole bool) []string {
	where := e.Source
	if e.Scope.Scope != "" {
		where += ", " + e.Scope.Scope
	}
	typ := e.Type
	if typ == "" {
		typ = "event"
	}
	head := fmt.Sprintf("%s %s", typ, e.Key)
	lines := []string{screen.Clean(head)}
	if !whole {
		lines[0] = screen.Cut(lines[0], screen.Width)
	}
	t := &screen.Table{Whole: whole}
	t.Add("id", e.ID)
	t.Add("source", where)
	again := ""
	if e.Repeats > 0 {
		again = ", then " + plural(e.Repeats, "duplicate")
	}
	t.Add("received", e.Received.Format("2006-01-02 15:04:05.000")+" UTC from "+dash(e.Remote)+again)
	if e.Time != nil {
		t.Add("time", e.Time.Format("2006-01-02 15:04:05.999")+" UTC, by the sender's clock")
	}
	t.Add("came to", e.Method+" "+e.Target)
	t.Add("outcome", outcomeWords(e))
	t.Add("body", fmt.Sprintf("%d bytes%s   onceward events show %s --raw", e.Bytes, unsignedWord(e.Unsigned), e.ID))
	lines = append(lines, t.Lines("  ")...)
	if len(e.Tells) == 0 {
		return append(lines, "", "  it tells nothing: no rule of "+e.Source+" reads it (unmapped)")
	}
	lines = append(lines, "")
	facts := &screen.Table{Most: []int{14, 12, 34, 16, 8}, Whole: whole}
	facts.Add("rule", "kind", "key", "said", "verdict", "")
	for _, f := range e.Tells {
		note := f.Held
		if note == "" && f.From != f.To {
			note = dash(f.From) + " -> " + f.To
		}
		facts.Add(dash(f.Rule), dash(f.Kind), dash(f.Key), dash(f.Status), f.Verdict, note)
	}
	return append(lines, facts.Lines("  ")...)
}

func outcomeWords(e *v1.EventDetail) string {
	if e.Of == "" {
		return e.Outcome
	}
	return e.Outcome + " of " + e.Of + ": the same key, and other facts; applied to nothing"
}

func unsignedWord(unsigned bool) string {
	if unsigned {
		return ", not covered by the signature"
	}
	return ""
}

func plural(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
