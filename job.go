package onceward

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Change is a fact that altered its entity: the unit that work hangs on. It
// shows the row as of its version, so that each attempt of one job sees the
// same. A Change of an `event:` handler has no entity: only Source, Scope,
// Event and Time are set.
type Change struct {
	Source string `json:"source"`
	Scope  Scope  `json:"scope"`
	Kind   string `json:"kind,omitempty"`
	Key    string `json:"key,omitempty"`
	// Version is the entity's version after the change, from 1.
	Version int64 `json:"version,omitempty"`
	// From and To are the statuses before and after; From is "" at first.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Told is the status the senders' facts give, beside a derived To.
	Told string `json:"told,omitempty"`
	// Reached are the statuses that the row, folded or derived, has for the
	// first time in its epoch.
	Reached []string `json:"reached,omitempty"`
	// Epoch is the row's attempt or period, if it has one.
	Epoch Opt `json:"epoch"`
	// Tie names the parts that the senders' clocks left open.
	Tie []string `json:"tie,omitempty"`
	// Event is the event that caused it.
	Event EventRef `json:"event"`
	// Time is the sender's time of the fact, else of the receipt.
	Time time.Time `json:"time"`
	// Data is the row's fields as one JSON object.
	Data json.RawMessage `json:"data,omitempty"`
}

// EventRef names an event.
type EventRef struct {
	ID   int64  `json:"id,string"`
	Key  string `json:"key"`
	Type string `json:"type"`
}

// Ref returns the entity that changed.
func (c Change) Ref() Ref { return Ref{c.Source, c.Scope, c.Kind, c.Key} }

// Decode puts the row's fields into v, a pointer to a struct or map, as
// encoding/json does.
func (c Change) Decode(v any) error {
	if err := json.Unmarshal(c.Data, v); err != nil {
		return fmt.Errorf("decode the fields of %s %s: %w", c.Kind, c.Key, err)
	}
	return nil
}

// Value returns a field, the zero Value if the row has none of this name.
func (c Change) Value(field string) Value {
	var fields map[string]json.RawMessage
	if json.Unmarshal(c.Data, &fields) != nil {
		return Value{}
	}
	v, err := JSON(fields[field])
	if err != nil {
		return Value{}
	}
	return v
}

// String returns a field as text: that of a JSON string, else its JSON; "" for
// null and for a field the row does not have.
func (c Change) String(field string) string {
	v := c.Value(field)
	if v.IsNull() {
		return ""
	}
	return v.String()
}

// Int returns a field as a whole number, 0 if it is none.
func (c Change) Int(field string) int64 {
	n, _ := c.Value(field).Int64()
	return n
}

// Pattern says which changes or events a handler wants:
//
//	payment.paid      a payment reached paid, once per epoch
//	payment           every change of a payment
//	event:charge.*    each new event whose type fits
//
// The zero Pattern fits nothing.
type Pattern struct {
	kind, status string
	event        string
	isEvent      bool
}

// Handler is a durable name and the pattern it stands for.
type Handler struct {
	// Name is the pattern, with "#name" behind it where several handlers share
	// one. Jobs carry it.
	Name    string
	Pattern Pattern
}

// ParseHandler reads a handler's name: PATTERN or PATTERN#NAME.
func ParseHandler(name string) (Handler, error) {
	text, suffix, has := strings.Cut(name, "#")
	fail := func(why string) (Handler, error) {
		return Handler{}, fmt.Errorf("handler %q: %s; write payment.paid, payment or event:charge.*, with #name behind it where several share one", name, why)
	}
	if has && suffix == "" {
		return fail("there is nothing after #")
	}
	if glob, ok := strings.CutPrefix(text, "event:"); ok {
		if glob == "" {
			return fail("it names no event type")
		}
		return Handler{name, Pattern{event: glob, isEvent: true}}, nil
	}
	kind, status, dotted := strings.Cut(text, ".")
	switch {
	case kind == "" || dotted && status == "":
		return fail("a kind or a status is missing")
	case strings.ContainsAny(text, " *:\t\n"):
		return fail("only event: patterns take *")
	}
	return Handler{name, Pattern{kind: kind, status: status}}, nil
}

// Kind returns the kind and the status that the pattern names; the status is ""
// where every change is meant, both for an `event:` pattern.
func (p Pattern) Kind() (kind, status string) { return p.kind, p.status }

// MatchChange reports whether the handler wants the change.
func (p Pattern) MatchChange(c *Change) bool {
	if p.isEvent || p.kind != c.Kind {
		return false
	}
	if p.status == "" {
		return true
	}
	return slices.Contains(c.Reached, p.status)
}

// MatchEvent reports whether the handler wants a new event of this type.
func (p Pattern) MatchEvent(eventType string) bool {
	return p.isEvent && MatchType(p.event, eventType)
}

// MatchType reports whether an event type fits a word in which * is any run of
// characters.
func MatchType(word, eventType string) bool {
	head, rest, starred := strings.Cut(word, "*")
	if !starred {
		return word == eventType
	}
	if !strings.HasPrefix(eventType, head) {
		return false
	}
	eventType = eventType[len(head):]
	for {
		piece, more, again := strings.Cut(rest, "*")
		if !again {
			return strings.HasSuffix(eventType, piece)
		}
		i := strings.Index(eventType, piece)
		if i < 0 {
			return false
		}
		eventType, rest = eventType[i+len(piece):], more
	}
}

// Job is work that follows a change or an event, for one handler. Its identity
// is (Handler, Lane, Version).
type Job struct {
	// Handler is the name it was made for.
	Handler string
	// Lane is the entity's ID, or the claim's of an event.
	Lane ID
	// Version is the entity's version, 0 for an event.
	Version int64
	// Change is what the handler is shown.
	Change Change
	// Attempts counts the tries that were begun.
	Attempts int
	// Due is when it may be tried next; while it is leased, when the lease ends.
	Due time.Time
	// Token fences the lease: it grows with each claim, and only the holder of
	// the newest may settle.
	Token int64
	// Dead says that no further try will be made; LastError says why.
	Dead      bool
	LastError string
}

// Settlement ends one try of a job.
type Settlement struct {
	Handler string
	Lane    ID
	Version int64
	Token   int64
	// Done ends the job. Dead ends it without success. Otherwise it is due
	// again at Due.
	Done, Dead bool
	Due        time.Time
	// Error says why it is not done, for people; at most 2,000 bytes are kept.
	Error string
}
