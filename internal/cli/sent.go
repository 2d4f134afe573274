package cli

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/onceward/onceward/internal/cli/config"
	"github.com/onceward/onceward/internal/cli/screen"
	"github.com/onceward/onceward/internal/cli/sender"
	"github.com/onceward/onceward/provider"
)

// sentReport is what became of what was sent.
type sentReport struct {
	Events     int         `json:"events"`
	Deliveries int         `json:"deliveries"`
	To         string      `json:"to"`
	Answers    []sentCount `json:"answers"`
	// Entities are those that the answers told of, which a server in development
	// mode does; else those that the deliveries are about, without a status.
	Entities []sentEntity `json:"entities"`
	// Untold are the events that changed no row for a reason to look at.
	Untold []untold `json:"untold,omitempty"`
	Seed   string   `json:"seed,omitempty"`
}

// sentCount counts equal answers.
type sentCount struct {
	Status     int    `json:"status"`
	Outcome    string `json:"outcome,omitempty"`
	Count      int    `json:"count"`
	Reason     string `json:"reason,omitempty"`
	Quarantine string `json:"quarantine,omitempty"` // of the last
}

type sentEntity struct {
	Kind    string `json:"kind"`
	Key     string `json:"key"`
	Status  string `json:"status,omitempty"`
	version int64
}

// untold is an event of which no rule reads anything, or a fact of which is held.
type untold struct {
	Event string `json:"event"`
	// Held is why, "" for an event that is unmapped.
	Held string `json:"held,omitempty"`
}

// newReport counts the answers, of which each belongs to the call of its number.
func newReport(t *target, events int, calls []*sender.Delivery, answers []sender.Answer) *sentReport {
	r := &sentReport{Events: events, Deliveries: len(answers), To: t.to, Answers: []sentCount{}, Entities: []sentEntity{}}
	for i, a := range answers {
		r.count(a)
		r.untold(t, calls[i], &a)
		for _, f := range a.Facts {
			if f.Held == "" && f.Kind != "" && f.Key != "" {
				r.entity(sentEntity{f.Kind, f.Key, f.Status, f.Version})
			}
		}
	}
	return r
}

// untold notes the events of an answer that changed nothing, each once. Only the
// development mode tells facts, so whether any rule reads a delivery is asked here.
func (r *sentReport) untold(t *target, d *sender.Delivery, a *sender.Answer) {
	for _, e := range a.Events {
		known := slices.ContainsFunc(r.Untold, func(u untold) bool { return u.Event == e.ID })
		held := slices.IndexFunc(e.Facts, func(f sender.Fact) bool { return f.Held != "" })
		switch {
		case known:
		case held >= 0:
			r.Untold = append(r.Untold, untold{e.ID, e.Facts[held].Held})
		case len(e.Facts) == 0 && !tells(t, d):
			r.Untold = append(r.Untold, untold{Event: e.ID})
		}
	}
}

// tells reports whether any rule reads a fact from a delivery.
func tells(t *target, d *sender.Delivery) bool {
	req := &provider.Request{Method: http.MethodPost, URL: d.To, Header: d.Header, Body: d.Body}
	return slices.ContainsFunc(t.provider.Read(req), func(r provider.Reading) bool { return len(r.Facts) > 0 })
}

// untoldLines say what was held or unmapped, and where to look.
func (r *sentReport) untoldLines(colour screen.Colour) []string {
	const most = 6
	var lines []string
	for _, u := range r.Untold[:min(most, len(r.Untold))] {
		said := "unmapped: no rule reads it"
		if u.Held != "" {
			said = "held: " + screen.Clean(u.Held)
		}
		for _, line := range screen.Wrap(said, screen.Width-2) {
			lines = append(lines, "  "+colour.Strong(line))
		}
		lines = append(lines, "      onceward events show "+screen.Clean(u.Event))
	}
	if more := len(r.Untold) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more   onceward events list", more))
	}
	return lines
}

func (r *sentReport) count(a sender.Answer) {
	i := slices.IndexFunc(r.Answers, func(c sentCount) bool {
		return c.Status == a.Status && c.Outcome == a.Outcome && c.Reason == a.Reason
	})
	if i < 0 {
		r.Answers = append(r.Answers, sentCount{Status: a.Status, Outcome: a.Outcome, Reason: a.Reason})
		i = len(r.Answers) - 1
	}
	r.Answers[i].Count++
	if a.Quarantine != "" {
		r.Answers[i].Quarantine = a.Quarantine
	}
}

// entity notes the newest word about an entity: versions grow, and deliveries that
// were sent at once are answered in no order.
func (r *sentReport) entity(e sentEntity) {
	i := slices.IndexFunc(r.Entities, func(o sentEntity) bool { return o.Kind == e.Kind && o.Key == e.Key })
	switch {
	case i < 0:
		r.Entities = append(r.Entities, e)
	case e.version >= r.Entities[i].version:
		r.Entities[i] = e
	}
}

func (r *sentReport) accepted() bool {
	return !slices.ContainsFunc(r.Answers, func(c sentCount) bool { return c.Status != http.StatusOK })
}

// about notes what the deliveries are about, as far as they can be read here.
func (r *sentReport) about(t *target, items []*sender.Delivery) {
	for _, d := range items {
		req := &provider.Request{Method: http.MethodPost, URL: d.To, Header: d.Header, Body: d.Body}
		for _, reading := range t.provider.Read(req) {
			for _, f := range reading.Facts {
				if f.Held == "" && f.Kind != "" && f.Key != "" {
					r.entity(sentEntity{Kind: f.Kind, Key: f.Key})
				}
			}
		}
	}
}

func (a *app) printSent(r *sentReport, t *target, items []*sender.Delivery) error {
	if len(r.Entities) == 0 && r.accepted() {
		r.about(t, items)
	}
	slices.SortStableFunc(r.Entities, func(a, b sentEntity) int { return compareKinds(a.Kind, b.Kind) })
	var err error
	if a.json {
		err = a.printJSON(r)
	} else {
		err = a.printLines(r.lines(t, a.colour(), !isTerminal(a.Stdout)))
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if !r.accepted() {
		return errNo
	}
	return nil
}

// lines show the report for a terminal, or whole.
func (r *sentReport) lines(t *target, colour screen.Colour, whole bool) []string {
	head := fmt.Sprintf("  %s, signed with %s", plural(int64(r.Events), "event"), t.secretOf)
	if r.Deliveries != r.Events {
		head = fmt.Sprintf("  %s, %s, signed with %s", plural(int64(r.Events), "event"), plurals(int64(r.Deliveries), "delivery", "deliveries"), t.secretOf)
	}
	if r.Seed != "" {
		head += ", shuffled by --seed " + r.Seed
	}
	lines := []string{screen.Cut(head, screen.Width)}
	var good []string
	for _, c := range r.Answers {
		if c.Status == http.StatusOK {
			good = append(good, fmt.Sprintf("%d %s %d", c.Status, dash(c.Outcome), c.Count))
		}
	}
	if len(good) > 0 {
		lines = append(lines, "  "+colour.Good(strings.Join(good, "   ")))
	}
	for _, c := range r.Answers {
		if c.Status != http.StatusOK {
			for _, said := range refusal(c, t) {
				for _, line := range screen.Wrap(said, screen.Width-2) {
					lines = append(lines, "  "+colour.Bad(line))
				}
			}
		}
	}
	return append(append(lines, r.untoldLines(colour)...), r.entityLines(whole)...)
}

// refusal says what an answer other than 200 means, a line for what came and a
// line for what follows.
func refusal(c sentCount, t *target) []string {
	times := ""
	if c.Count > 1 {
		times = fmt.Sprintf(" (%d times)", c.Count)
	}
	switch c.Status {
	case http.StatusUnauthorized:
		reason, kept := "the signature was not accepted", ""
		if c.Reason != "" {
			reason = screen.Clean(c.Reason)
		}
		if c.Quarantine != "" {
			kept = "; kept in quarantine as " + screen.Clean(c.Quarantine)
		}
		return []string{"401 rejected" + times + ": " + reason, "nothing was stored" + kept}
	case http.StatusNotFound:
		return []string{"404" + times + ": no source answers there; the address ends in /in/SOURCE"}
	case http.StatusRequestEntityTooLarge:
		return []string{
			fmt.Sprintf("413%s: the body is longer than max_body of source %s, %d bytes", times, t.name, t.maxBody),
			"nothing was stored; raise it in " + config.DefaultFile + ": sources: {" + t.name + ": {max_body: 4MiB}}",
		}
	case http.StatusServiceUnavailable:
		return []string{"503" + times + ": not now, the store is busy or down", "nothing was acknowledged, so send it again"}
	}
	return []string{fmt.Sprintf("%d%s: %s", c.Status, times, http.StatusText(c.Status))}
}

// entityLines name the entities and how to see them, beside each other where that
// fits.
func (r *sentReport) entityLines(whole bool) []string {
	const most = 6
	shown := r.Entities[:min(most, len(r.Entities))]
	said, show := make([]string, len(shown)), make([]string, len(shown))
	wide := 0
	for i, e := range shown {
		said[i] = screen.Clean(e.Kind + " " + e.Key)
		if e.Status != "" {
			said[i] += " is " + screen.Clean(e.Status)
		}
		show[i] = screen.Clean("onceward entities show " + e.Kind + " " + shellWord(e.Key))
		if n := len([]rune(said[i])); n+len([]rune(show[i]))+5 <= screen.Width {
			wide = max(wide, n)
		}
	}
	cut := func(line string) string {
		if whole {
			return line
		}
		return screen.Cut(line, screen.Width)
	}
	var lines []string
	for i := range shown {
		line := fmt.Sprintf("  %-*s   %s", wide, said[i], show[i])
		if len([]rune(line)) > screen.Width {
			lines = append(lines, cut("  "+said[i]))
			line = "      " + show[i]
		}
		lines = append(lines, cut(line))
	}
	if more := len(r.Entities) - len(shown); more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more   onceward entities list", more))
	}
	return lines
}

// shellWord quotes a word for a shell where it needs it.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/@%+,=") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func plurals(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
