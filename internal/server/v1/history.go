package v1

import (
	"time"

	"github.com/onceward/onceward"
)

// Component is one part of an order.
type Component struct {
	// Name is epoch, terminal, firm, time, sequence or rank.
	Name string `json:"name"`
	// Value is null if missing, an instant for time, a truth value for terminal
	// and firm, else a number.
	Value any `json:"value"`
}

// Fact is what one event said about one entity, with what became of it.
type Fact struct {
	// Seq is its number at its entity, from 1: the order of arrival.
	Seq       int64     `json:"seq"`
	Event     string    `json:"event"`
	EventKey  string    `json:"event_key"`
	EventType string    `json:"event_type"`
	Received  time.Time `json:"received"`
	Rule      string    `json:"rule,omitempty"`
	Kind      string    `json:"kind,omitempty"`
	Key       string    `json:"key,omitempty"`
	Verdict   string    `json:"verdict"`
	// Held says why the fact could not be computed.
	Held string `json:"held,omitempty"`
	// Status is what the fact said, "" for none.
	Status   string         `json:"status,omitempty"`
	Fields   map[string]any `json:"fields,omitempty"`
	Was      map[string]any `json:"was,omitempty"`
	Local    map[string]any `json:"local,omitempty"`
	Notes    []string       `json:"notes,omitempty"`
	Hint     bool           `json:"hint,omitempty"`
	Time     *time.Time     `json:"time,omitempty"`
	Sequence *int64         `json:"sequence,omitempty"`
	Epoch    *int64         `json:"epoch,omitempty"`
	// Version, From and To are the row's: its version after the fact and its
	// statuses before and after.
	Version int64  `json:"version"`
	From    string `json:"from"`
	To      string `json:"to"`
	// Order is the fact's own, Against the one it was compared with; Decided names
	// the component that decided, or tie, was, first, max, same, local.
	Order   []Component `json:"order,omitempty"`
	Against []Component `json:"against,omitempty"`
	Decided string      `json:"decided,omitempty"`
	// AgainstSeq is the fact that Against belongs to, 0 if it is not known.
	AgainstSeq int64 `json:"against_seq,omitempty"`
	// Changed names the parts of the row that are others after the fact than
	// before: status, a field, local. It is computed from the facts by the newest
	// mapping, and left out where that would tell another story than the verdict.
	Changed []string `json:"changed,omitempty"`
	Mapping int64    `json:"mapping"`
}

// FactOf returns the shape of a fact. kind takes its orders apart; without it,
// or where the orders were made by a mapping of another shape, they are left out.
func FactOf(f *onceward.StoredFact, kind *onceward.Kind) Fact {
	out := Fact{
		Seq: f.Seq, Event: id(f.EventID), EventKey: f.EventKey, EventType: f.EventType,
		Received: f.At.UTC(), Rule: f.Rule, Kind: f.Kind, Key: f.Key, Verdict: f.Verdict.String(), Held: f.Held,
		Status: f.Status, Fields: partsOf(f.Fields, kind), Was: partsOf(f.Was, kind), Local: partsOf(f.Local, nil),
		Notes: f.Notes, Hint: f.Hint, Time: instant(f.Time), Sequence: number(f.Sequence), Epoch: number(f.Epoch),
		Version: f.Version, From: f.From, To: f.To, Decided: f.Decided, Mapping: f.Revision,
	}
	out.Order, out.Against = componentsOf(f.Order, f, kind), componentsOf(f.Against, f, kind)
	return out
}

// History is an entity with the story of its facts in order of arrival.
type History struct {
	Entity Entity `json:"entity"`
	// Why says which condition derived the status, if one did.
	Why string `json:"why,omitempty"`
	// Telling is the seq of the fact that gave the told status.
	Telling int64  `json:"telling,omitempty"`
	Facts   []Fact `json:"facts"`
}

// HistoryOf returns the shape of a row and its facts. kind is that of the
// newest mapping, nil if it is not known.
func HistoryOf(e *onceward.Entity, facts []onceward.StoredFact, kind *onceward.Kind) History {
	out := History{Entity: EntityOf(e), Facts: make([]Fact, len(facts))}
	for i := range facts {
		out.Facts[i] = FactOf(&facts[i], kind)
	}
	if kind == nil {
		return out
	}
	explain(out.Facts, facts, kind)
	out.Telling = telling(e, facts, kind)
	row, err := onceward.DecodeRow(e.Status, e.Told, e.Version, e.Revision, e.Data, e.State)
	if err != nil {
		return out // a row of a newer program is shown without its reason
	}
	row.Explain(kind)
	if row.Status == e.Status {
		out.Why = row.Why
	}
	return out
}

// telling finds the fact that decided the told status: of those that say it, the
// one of the greatest order, which is the one that arrived first where several
// share it.
func telling(e *onceward.Entity, facts []onceward.StoredFact, kind *onceward.Kind) int64 {
	var seq int64
	var greatest onceward.Order
	for i := range facts {
		f := &facts[i]
		if f.Verdict == onceward.Held || f.Status == "" || f.Status != e.Told {
			continue
		}
		if o := kind.StatusOrder(&f.Fact); seq == 0 || o > greatest {
			seq, greatest = f.Seq, o
		}
	}
	return seq
}

func partsOf(parts []onceward.Part, kind *onceward.Kind) map[string]any {
	if len(parts) == 0 {
		return nil
	}
	out := map[string]any{}
	for _, p := range parts {
		keyed := p.By != "" || kind != nil && p.Field != onceward.StatusPart && kind.Fields[p.Field].Keyed()
		out[onceward.PartName(p.Field, p.By, keyed)] = p.Value
	}
	return out
}

func componentsOf(o onceward.Order, f *onceward.StoredFact, kind *onceward.Kind) []Component {
	if kind == nil || o == "" {
		return nil
	}
	ofStatus := f.Status != ""
	parts := kind.Parts(o, ofStatus)
	if parts == nil {
		parts = kind.Parts(o, !ofStatus)
	}
	var out []Component
	for _, p := range parts {
		c := Component{Name: p.Name}
		switch {
		case !p.Value.Set:
		case p.Name == "terminal" || p.Name == "firm":
			c.Value = p.Value.N == 1
		case p.Name == "time":
			c.Value = p.Value.Time().Format(time.RFC3339Nano)
		default:
			c.Value = p.Value.N
		}
		out = append(out, c)
	}
	return out
}
