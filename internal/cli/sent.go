package cli

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

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
	Seed     string       `json:"seed,omitempty"`
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

func newReport(t *target, events int, answers []sender.Answer) *sentReport {
	r := &sentReport{Events: events, Deliveries: len(answers), To: t.to, Answers: []sentCount{}, Entities: []sentEntity{}}
	for _, a := range answers {
		r.count(a)
		for _, f := range a.Facts {
			if f.Kind != "" && f.Key != "" {
				r.entity(sentEntity{f.Kind, f.Key, f.Status, f.Version})
			}
		}
	}
	return r
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
		err = a.printLines(r.lines(t, a.colour()))
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if !r.accepted() {
		return errNo
	}
	return nil
}

func (r *sentReport) lines(t *target, colour screen.Colour) []string {
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
			for _, said := range refusal(c) {
				for _, line := range screen.Wrap(said, screen.Width-2) {
					lines = append(lines, "  "+colour.Bad(line))
				}
			}
		}
	}
	return append(lines, r.entityLines()...)
}

// refusal says what an answer other than 200 means, a line for what came and a
// line for what follows.
func refusal(c sentCount) []string {
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
	case http.StatusServiceUnavailable:
		return []string{"503" + times + ": not now, the store is busy or down", "nothing was acknowledged, so send it again"}
	}
	return []string{fmt.Sprintf("%d%s: %s", c.Status, times, http.StatusText(c.Status))}
}

// entityLines name the entities and how to see them, beside each other where that
// fits.
func (r *sentReport) entityLines() []string {
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
	var lines []string
	for i := range shown {
		line := fmt.Sprintf("  %-*s   %s", wide, said[i], show[i])
		if len([]rune(line)) > screen.Width {
			lines = append(lines, screen.Cut("  "+said[i], screen.Width))
			line = "      " + show[i]
		}
		lines = append(lines, screen.Cut(line, screen.Width))
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
