package onceward

import (
	"encoding/json"
	"slices"
)

// rowWork is a row while the facts of a batch are folded into it.
type rowWork struct {
	was        EntityRow
	wasVersion int64
	row        *Row
	facts      int64
	stored     []Fact // those in the database, once read
	read       bool
	added      []Fact // of this batch, not held
	last       shown
}

// shown is what a row shows.
type shown struct {
	data json.RawMessage
	tie  []string
}

// shown returns what the row shows now. The jobs of a change and the row that is
// written show the same, so it is made once after each fact. A version would not tell:
// a fact that says 49.9 of what was 49.90 changes the text and nothing else.
func (w *rowWork) shown() *shown {
	if w.last.data == nil {
		w.last = shown{w.row.Data(), w.row.Tie()}
	}
	return &w.last
}

func (p *planner) work(id ID) (*rowWork, error) {
	if w := p.rows[id]; w != nil {
		return w, nil
	}
	was, err := p.view.Entity(id)
	if err != nil {
		return nil, err
	}
	w := &rowWork{was: was, row: was.Row, facts: was.Facts}
	if w.row == nil {
		w.row = &Row{}
	}
	w.wasVersion = w.row.Version
	p.rows[id] = w
	return w, nil
}

// history returns the facts of the row so far; those that the database has are
// read once a batch.
func (w *rowWork) history(v View, id ID) ([]Fact, error) {
	if !w.read {
		stored, err := v.Facts(id)
		if err != nil {
			return nil, err
		}
		w.stored, w.read = stored, true
	}
	return append(slices.Clip(w.stored), w.added...), nil
}

func (p *planner) jobs(ref Ref, id ID, a *Arrival, f *Fact, w *rowWork, step Step) {
	row := w.row
	c := Change{
		Source: ref.Source, Scope: ref.Scope, Kind: ref.Kind, Key: ref.Key,
		Version: row.Version, From: step.From, To: step.To, Told: row.Told, Reached: step.Reached,
		Epoch: row.Epoch, Event: EventRef{a.StoredID, a.Event.Key, a.Event.Type},
		Time: a.Event.Delivery.At,
	}
	if f.Time.Set {
		c.Time = f.Time.Time()
	}
	for _, h := range p.txn.batch.Handlers {
		if !h.Pattern.MatchChange(&c) {
			continue
		}
		if c.Data == nil {
			c.Data, c.Tie = w.shown().data, w.shown().tie
		}
		p.writes.Jobs = append(p.writes.Jobs, Job{Handler: h.Name, Lane: id, Version: row.Version, Change: c, Due: p.txn.batch.Now})
	}
}

// eventChange is what an `event:` handler is shown.
func (a *Arrival) eventChange() Change {
	c := Change{
		Source: a.Event.Source, Scope: a.Event.Scope,
		Event: EventRef{a.Event.ID, a.Event.Key, a.Event.Type},
		Time:  a.Event.Delivery.At, Data: json.RawMessage("{}"),
	}
	if a.Event.Time.Set {
		c.Time = a.Event.Time.Time()
	}
	return c
}
