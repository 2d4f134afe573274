package onceward

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Txn is the part of a commit that every store shares: what to claim and to
// lock, in which order, and, once that has been read, what to write. A store
// calls [NewTxn] once per attempt, in this order:
//
//  1. insert the Claims, then the Variants, that do not exist yet, in the order
//     given, so that batches of several processes cannot deadlock;
//  2. create and lock the rows of Entities, in the order given, in one pass;
//  3. read claims, variants and rows, in statements after those that locked;
//  4. call Plan, and write all that it says in the same transaction, each row
//     under the guard of RowWrite.
type Txn struct {
	batch    *Batch
	claims   []Claim
	variants []Claim
	entities []EntityRow
	claimOf  []ID   // of each arrival
	about    [][]ID // of each arrival, the entities of its facts; zero where a fact names none
}

// Claim is a row of the dedupe ledger: an identity, the event that took it and
// the digest of its bytes.
type Claim struct {
	ID      ID
	EventID int64
	Digest  Digest
	// Source is the event's, set on what is to be inserted only.
	Source string
	// Outcome is that of a variant: Duplicate or Conflict. Claims have none.
	Outcome Outcome
}

// EntityRow is a row as it was read under its lock, or, without Row, one to be
// locked.
type EntityRow struct {
	ID  ID
	Ref Ref
	// Row is the stored row, with Version 0 if it has just been created.
	Row *Row
	// Facts is the number of the newest fact stored about it, 0 if none.
	Facts int64
}

// View is what a transaction has read after its locks.
type View interface {
	// Claim returns the ledger's row, and whether this transaction inserted it.
	Claim(id ID) (c Claim, inserted bool)
	// Variant returns what is known of a claim's other digest, if anything, and
	// whether this transaction inserted it.
	Variant(id ID, d Digest) (v Claim, inserted, known bool, err error)
	// Entity returns a row; for one that does not exist its Row may be nil.
	Entity(id ID) (EntityRow, error)
	// Facts returns the facts of an entity that are not held, in order of arrival.
	Facts(id ID) ([]Fact, error)
	// HeldFacts counts the held facts of a stored event that a revision lower than
	// below left behind.
	HeldFacts(eventID, below int64) (int, error)
}

// Writes is what a transaction must write, all of it.
type Writes struct {
	Events []EventWrite
	// Rows are to be written where id, version and number of facts are still
	// what they were; unless every one was, the transaction must fail in the
	// database.
	Rows  []RowWrite
	Facts []FactWrite
	Jobs  []Job
	// Repeats are further deliveries, to be appended.
	Repeats []RepeatWrite
	// TakenUp are held facts to be deleted, before Facts are inserted.
	TakenUp []TakeUp
	// Unborn are rows that this transaction locked and does not write: those that
	// it created are to be deleted again.
	Unborn []ID
}

// TakeUp names held facts that are to be deleted: those of an event that a
// revision lower than Below left behind.
type TakeUp struct {
	EventID, Below int64
}

// EventWrite is an event to be inserted.
type EventWrite struct {
	*Event
	Outcome  Outcome
	Of       int64 // the first event of the key, unless Outcome is New
	Revision int64
	// BodyOf is the event of the same delivery that carries the body, 0 if this
	// one does.
	BodyOf int64
}

// RowWrite is a row to be written under its guard.
type RowWrite struct {
	ID  ID
	Ref Ref
	// WasVersion and WasFacts are the guard. WasFacts 0 means a row that holds
	// nothing yet, or does not exist.
	WasVersion, WasFacts int64
	Row                  *Row
	Facts                int64
	// Data and Tie are what the methods of Row give, made once.
	Data json.RawMessage
	Tie  []string
}

// FactWrite is a fact to be inserted.
type FactWrite struct {
	// Entity is the row's ID, or the claim's for a held fact that names no
	// entity. Seq is its number there, from 1.
	Entity   ID
	Seq      int64
	EventID  int64
	Fact     *Fact
	Verdict  Verdict
	Version  int64
	Revision int64
	From, To string
	Order    Order
	Against  Order
	Decided  string
}

// RepeatWrite is a further delivery of a known event.
type RepeatWrite struct {
	Claim   ID
	EventID int64
	Digest  Digest
	Repeat
}

// NewTxn prepares a commit. It resets the results of the arrivals, and cleans
// the texts that go into columns; see CleanText.
func NewTxn(b *Batch) *Txn {
	n, facts := len(b.Arrivals), 0
	for _, a := range b.Arrivals {
		facts += len(a.Facts)
	}
	t := &Txn{
		batch: b, claims: make([]Claim, 0, n), entities: make([]EntityRow, 0, facts),
		claimOf: make([]ID, n), about: make([][]ID, n),
	}
	ids := make([]ID, facts)
	for i, a := range b.Arrivals {
		a.Outcome, a.StoredID, a.Results = Undecided, 0, nil
		clean(a)
		t.claimOf[i] = a.Event.ClaimID()
		t.about[i], ids = ids[:len(a.Facts)], ids[len(a.Facts):]
		if a.Retake == 0 {
			c := Claim{ID: t.claimOf[i], EventID: a.Event.ID, Digest: a.Event.Digest, Source: a.Event.Source}
			if a.Resolution == Unresolved {
				t.claims = append(t.claims, c)
			} else {
				c.Outcome = a.Resolution.outcome()
				t.variants = append(t.variants, c)
			}
		}
		if a.Resolution != Unresolved && a.Retake == 0 {
			continue
		}
		for j := range a.Facts {
			if ref, ok := a.ref(j); ok {
				t.about[i][j] = ref.ID()
				t.entities = append(t.entities, EntityRow{ID: t.about[i][j], Ref: ref})
			}
		}
	}
	byID := func(a, b Claim) int { return a.ID.Compare(b.ID) }
	slices.SortStableFunc(t.claims, byID) // stable: the first arrival of a key claims it
	t.claims = slices.CompactFunc(t.claims, func(a, b Claim) bool { return a.ID == b.ID })
	byDigest := func(a, b Claim) int {
		if c := a.ID.Compare(b.ID); c != 0 {
			return c
		}
		return ID(a.Digest).Compare(ID(b.Digest))
	}
	slices.SortStableFunc(t.variants, byDigest)
	t.variants = slices.CompactFunc(t.variants, func(a, b Claim) bool { return byDigest(a, b) == 0 })
	slices.SortFunc(t.entities, func(a, b EntityRow) int { return a.ID.Compare(b.ID) })
	t.entities = slices.CompactFunc(t.entities, func(a, b EntityRow) bool { return a.ID == b.ID })
	return t
}

func clean(a *Arrival) {
	e := a.Event
	e.Key, e.Type = CleanText(e.Key), CleanText(e.Type)
	e.Scope = Scope{CleanText(e.Scope.Account), CleanText(e.Scope.Mode)}
	for i := range a.Facts {
		f := &a.Facts[i]
		f.Rule, f.Kind, f.Key = CleanText(f.Rule), CleanText(f.Kind), CleanText(f.Key)
		f.Status, f.Held = CleanText(f.Status), CleanText(f.Held)
	}
}

func (r Resolution) outcome() Outcome {
	if r == ResolvedConflict {
		return Conflict
	}
	return Duplicate
}

// ref returns the entity that fact i is about; a held fact may name none.
func (a *Arrival) ref(i int) (Ref, bool) {
	f := &a.Facts[i]
	return Ref{a.Event.Source, a.Event.Scope, f.Kind, f.Key}, f.Kind != "" && f.Key != ""
}

// Claims lists the identities to claim, sorted, each once.
func (t *Txn) Claims() []Claim { return t.claims }

// Lookups lists the identities whose claims must be read, sorted, each once:
// those of Claims and those that arrivals with a Resolution name.
func (t *Txn) Lookups() []ID {
	ids := make([]ID, 0, len(t.claimOf))
	for i, a := range t.batch.Arrivals {
		if a.Retake == 0 {
			ids = append(ids, t.claimOf[i])
		}
	}
	slices.SortFunc(ids, ID.Compare)
	return slices.Compact(ids)
}

// Variants lists the other digests to note, sorted, each once.
func (t *Txn) Variants() []Claim { return t.variants }

// Entities lists the rows to create and lock, sorted, each once.
func (t *Txn) Entities() []EntityRow { return t.entities }

// Plan decides what becomes of each arrival, folds the facts of the new ones in
// order of arrival, fills in the arrivals' results, and returns what is to be
// written.
func (t *Txn) Plan(v View) (*Writes, error) {
	n := len(t.batch.Arrivals)
	p := &planner{
		txn: t, view: v, seen: make(map[ID]bool, n), noted: map[Claim]bool{}, rows: make(map[ID]*rowWork, len(t.entities)), bodies: make(map[*Delivery]int64, n),
		writes: &Writes{Events: make([]EventWrite, 0, n), Facts: make([]FactWrite, 0, len(t.entities)), Rows: make([]RowWrite, 0, len(t.entities))},
	}
	for i, a := range t.batch.Arrivals {
		if err := p.arrival(i, a); err != nil {
			return nil, err
		}
	}
	for _, e := range t.entities {
		w := p.rows[e.ID]
		if w == nil || w.facts == w.was.Facts {
			p.writes.Unborn = append(p.writes.Unborn, e.ID)
			continue
		}
		p.writes.Rows = append(p.writes.Rows, RowWrite{
			ID: e.ID, Ref: e.Ref, WasVersion: w.wasVersion, WasFacts: w.was.Facts, Row: w.row, Facts: w.facts, Data: w.shown().data, Tie: w.shown().tie,
		})
	}
	return p.writes, nil
}

type planner struct {
	txn    *Txn
	view   View
	writes *Writes
	seen   map[ID]bool         // claims that an arrival of this batch has taken
	noted  map[Claim]bool      // variants likewise, by ID and Digest
	rows   map[ID]*rowWork     // by entity
	bodies map[*Delivery]int64 // the event that carries a delivery's body
}

func (p *planner) arrival(i int, a *Arrival) error {
	id := p.txn.claimOf[i]
	if a.Retake != 0 {
		return p.retake(i, a)
	}
	claim, inserted := p.view.Claim(id)
	a.StoredID = claim.EventID
	switch {
	case a.Resolution != Unresolved:
		return p.variant(id, a)
	case inserted && !p.seen[id]:
		p.seen[id] = true
		a.Outcome, a.StoredID = New, a.Event.ID
		p.event(a, EventWrite{Event: a.Event, Outcome: New, Revision: a.Mapping.Revision})
		p.repeats(id, a, false)
		for _, h := range p.txn.batch.Handlers {
			if h.Pattern.MatchEvent(a.Event.Type) {
				p.writes.Jobs = append(p.writes.Jobs, Job{Handler: h.Name, Lane: id, Change: a.eventChange(), Due: p.txn.batch.Now})
			}
		}
		return p.facts(i, a)
	case claim.Digest == a.Event.Digest:
		a.Outcome = Duplicate
		p.repeats(id, a, true)
		return nil
	}
	known, _, ok, err := p.view.Variant(id, a.Event.Digest)
	if err != nil {
		return err
	}
	if !ok {
		a.Outcome = Differs
		return nil
	}
	a.Outcome, a.StoredID = known.Outcome, known.EventID
	if known.Outcome == Duplicate {
		a.StoredID = claim.EventID
	}
	p.repeats(id, a, true)
	return nil
}

// variant notes a key's other bytes. Whoever noted them first keeps the body.
func (p *planner) variant(id ID, a *Arrival) error {
	noted, inserted, _, err := p.view.Variant(id, a.Event.Digest)
	if err != nil {
		return err
	}
	first := a.StoredID
	a.Outcome = noted.Outcome
	this := Claim{ID: id, Digest: a.Event.Digest}
	mine := inserted && !p.noted[this]
	p.noted[this] = true
	if noted.Outcome == Conflict {
		a.StoredID = noted.EventID
	}
	if mine && (noted.Outcome == Conflict || len(a.Facts) == 0) {
		p.event(a, EventWrite{Event: a.Event, Outcome: noted.Outcome, Of: first, Revision: a.Mapping.Revision})
	}
	p.repeats(id, a, !mine || noted.Outcome == Duplicate)
	return nil
}

func (p *planner) event(a *Arrival, w EventWrite) {
	if carrier, ok := p.bodies[a.Event.Delivery]; ok {
		w.BodyOf = carrier
	} else {
		p.bodies[a.Event.Delivery] = a.Event.ID
	}
	p.writes.Events = append(p.writes.Events, w)
}

// repeats notes those that joined the arrival, and the arrival itself if it is
// one.
func (p *planner) repeats(id ID, a *Arrival, itself bool) {
	event := a.StoredID
	add := func(r Repeat) {
		p.writes.Repeats = append(p.writes.Repeats, RepeatWrite{Claim: id, EventID: event, Digest: a.Event.Digest, Repeat: r})
	}
	if itself {
		add(Repeat{At: a.Event.Delivery.At, Remote: a.Event.Delivery.Remote})
	}
	for _, r := range a.Repeats {
		add(r)
	}
}

func (p *planner) retake(i int, a *Arrival) error {
	id := p.txn.claimOf[i]
	a.StoredID = a.Retake
	// A fact that is still held, under this revision, was looked at by another
	// process with the same mapping, which told the others of the event.
	take := TakeUp{a.Retake, a.Mapping.Revision}
	held, err := p.view.HeldFacts(take.EventID, take.Below)
	if err != nil {
		return err
	}
	if held == 0 || p.seen[id] { // somebody else has taken them up
		a.Outcome = Duplicate
		return nil
	}
	p.seen[id] = true
	a.Outcome = New
	p.writes.TakenUp = append(p.writes.TakenUp, take)
	return p.facts(i, a)
}

// facts takes the facts of arrival n in.
func (p *planner) facts(n int, a *Arrival) error {
	homeless := int64(0)
	a.Results = make([]FactResult, 0, len(a.Facts))
	for i := range a.Facts {
		f := &a.Facts[i]
		ref, named := a.ref(i)
		if !named {
			homeless++
			p.writes.Facts = append(p.writes.Facts, FactWrite{
				Entity: p.txn.claimOf[n], Seq: homeless, EventID: a.StoredID, Fact: f, Verdict: Held, Revision: a.Mapping.Revision,
			})
			a.Results = append(a.Results, FactResult{Ref: ref, Verdict: Held, Held: f.Held})
			continue
		}
		if err := p.fact(ref, p.txn.about[n][i], a, f); err != nil {
			// The key may be an address or a name; the event says where to look.
			return fmt.Errorf("fold a fact of event %d about a %s: %w", a.StoredID, ref.Kind, err)
		}
	}
	return nil
}

func (p *planner) fact(ref Ref, id ID, a *Arrival, f *Fact) error {
	w, err := p.work(id)
	if err != nil {
		return err
	}
	kind, revision := a.Mapping.Kinds[f.Kind], a.Mapping.Revision
	switch {
	case f.Held != "":
	case kind == nil:
		f.Held = fmt.Sprintf("the mapping has no kind %q", f.Kind)
	case revision < w.row.Revision:
		f.Held = fmt.Sprintf("made by mapping %d, the row by the newer %d; a process with the newest takes it up", revision, w.row.Revision)
	}
	refold := f.Held == "" && w.row.Revision != 0 && revision > w.row.Revision
	step, err := w.row.Add(kind, f, refold, func() ([]Fact, error) { return w.history(p.view, id) })
	if err != nil {
		return err
	}
	w.last = shown{}
	if step.Verdict != Held {
		w.added = append(w.added, *f)
		w.row.Revision = revision
	}
	w.facts++
	p.writes.Facts = append(p.writes.Facts, FactWrite{
		Entity: id, Seq: w.facts, EventID: a.StoredID, Fact: f, Verdict: step.Verdict,
		Version: w.row.Version, Revision: revision, From: step.From, To: step.To,
		Order: step.Order, Against: step.Against, Decided: step.Decided,
	})
	a.Results = append(a.Results, FactResult{Ref: ref, Verdict: step.Verdict, Version: w.row.Version, Status: w.row.Status, Held: f.Held})
	if step.Changed {
		p.jobs(ref, id, a, f, w, step)
	}
	return nil
}
