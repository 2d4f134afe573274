package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/onceward/onceward"
)

// view is what a commit has read after its locks. What the first round trip did
// not read it asks for when Plan does, in the same transaction. What it is asked
// for once ctx has ended is ctx's error, so that a batch that takes too long ends.
type view struct {
	ctx   context.Context
	conn  *pgx.Conn
	store *Store
	batch *onceward.Batch
	txn   *onceward.Txn

	claims   map[onceward.ID]claim
	variants map[variant]onceward.Claim
	noted    map[variant]bool // inserted by this transaction
	asked    bool             // whether the variants of the other arrivals were read
	rows     map[onceward.ID]onceward.EntityRow
	held     map[onceward.TakeUp]int // what HeldFacts returned
}

type claim struct {
	onceward.Claim
	inserted bool // by this transaction
}

type variant struct {
	claim  onceward.ID
	digest onceward.Digest
}

var _ onceward.View = (*view)(nil)

// Claim implements onceward.View.
func (v *view) Claim(id onceward.ID) (c onceward.Claim, inserted bool) {
	found := v.claims[id]
	return found.Claim, found.inserted
}

// Variant implements onceward.View. The first call for an arrival that is no
// resolution reads what is known of all of them.
func (v *view) Variant(id onceward.ID, d onceward.Digest) (c onceward.Claim, inserted, known bool, err error) {
	if err := v.ctx.Err(); err != nil {
		return c, false, false, err
	}
	key := variant{id, d}
	if c, known = v.variants[key]; !known && !v.asked {
		if err := v.askVariants(); err != nil {
			return c, false, false, err
		}
		v.asked = true
		c, known = v.variants[key]
	}
	return c, v.noted[key], known, nil
}

func (v *view) askVariants() error {
	var differing []variant
	for _, a := range v.batch.Arrivals {
		id := a.Event.ClaimID()
		if c, ok := v.claims[id]; ok && c.Digest != a.Event.Digest && a.Resolution == onceward.Unresolved {
			differing = append(differing, variant{id, a.Event.Digest})
		}
	}
	return v.ask(v.store.sql.readVariants, len(differing), func(in input) {
		in.uuids(func(i int) [16]byte { return differing[i].claim })
		in.uuids(func(i int) [16]byte { return differing[i].digest })
	}, v.readVariants)
}

// ask runs one statement, in a round trip of its own.
func (v *view) ask(q query, rows int, fill func(in input), scan func(*answer)) error {
	p := pipeline{named: v.store.named}
	in := p.input(rows)
	fill(in)
	p.scan(q, in, scan)
	return p.run(v.ctx, v.conn)
}

// Entity implements onceward.View.
func (v *view) Entity(id onceward.ID) (onceward.EntityRow, error) {
	if err := v.ctx.Err(); err != nil {
		return onceward.EntityRow{}, err
	}
	row, ok := v.rows[id]
	if !ok {
		return row, fmt.Errorf("row %s was locked and is not there", id)
	}
	return row, nil
}

// Facts implements onceward.View, in a round trip of its own.
func (v *view) Facts(id onceward.ID) ([]onceward.Fact, error) {
	if err := v.ctx.Err(); err != nil {
		return nil, err
	}
	var facts []onceward.Fact
	var broken error
	err := v.ask(v.store.sql.readFacts, 1, func(in input) {
		in.uuids(func(int) [16]byte { return id })
	}, func(a *answer) {
		for a.next() && broken == nil {
			var f onceward.Fact
			broken = json.Unmarshal(a.bytes(), &f)
			facts = append(facts, f)
		}
	})
	if err == nil && broken != nil {
		err = fmt.Errorf("a stored fact of %s: %w", id, broken)
	}
	return facts, err
}

// HeldFacts implements onceward.View, in a round trip of its own. Nothing locks
// what it counts; the statement that takes the facts up wants to delete as many.
func (v *view) HeldFacts(eventID, below int64) (int, error) {
	if err := v.ctx.Err(); err != nil {
		return 0, err
	}
	var n int
	err := v.ask(v.store.sql.countHeld, 1, func(in input) {
		in.bigints(func(int) int64 { return eventID })
		in.bigint(below)
	}, func(a *answer) {
		for a.next() {
			n = int(a.bigint())
		}
	})
	if err != nil {
		return 0, err
	}
	if v.held == nil {
		v.held = map[onceward.TakeUp]int{}
	}
	v.held[onceward.TakeUp{EventID: eventID, Below: below}] = n
	return n, nil
}

func (v *view) readClaimed(a *answer) {
	wanted := v.txn.Claims()
	v.claims = make(map[onceward.ID]claim, len(wanted))
	for a.next() {
		if a.bigint() == int64(len(wanted)) {
			for _, c := range wanted { // readClaims will find nothing to add
				v.claims[c.ID] = claim{c, true}
			}
			continue
		}
		a.uuids(func(id [16]byte) { v.claims[id] = claim{inserted: true} })
	}
}

func (v *view) readClaims(a *answer) {
	if v.claims == nil {
		v.claims = map[onceward.ID]claim{}
	}
	for a.next() {
		c := onceward.Claim{ID: a.uuid(), EventID: a.bigint(), Digest: a.uuid()}
		v.claims[c.ID] = claim{c, v.claims[c.ID].inserted}
	}
}

func (v *view) readNoted(a *answer) {
	v.noted = map[variant]bool{}
	for a.next() {
		v.noted[variant{a.uuid(), a.uuid()}] = true
	}
}

func (v *view) readVariants(a *answer) {
	if v.variants == nil {
		v.variants = map[variant]onceward.Claim{}
	}
	for a.next() {
		c := onceward.Claim{ID: a.uuid(), Digest: a.uuid(), EventID: a.bigint(), Outcome: onceward.Outcome(a.smallint())}
		v.variants[variant{c.ID, c.Digest}] = c
	}
}

func (v *view) readRows(a *answer) {
	rows := v.txn.Entities()
	v.rows = make(map[onceward.ID]onceward.EntityRow, len(rows))
	for _, e := range rows {
		v.rows[e.ID] = e
	}
	read := 0
	for a.next() {
		id := onceward.ID(a.uuid())
		status, told, version, revision, facts := a.text(), a.text(), a.bigint(), a.bigint(), a.bigint()
		data, state := a.bytes(), a.bytes()
		e, ok := v.rows[id]
		if !ok {
			a.fail(fmt.Errorf("row %s was not asked for", id))
			return
		}
		row, err := onceward.DecodeRow(status, told, version, revision, data, state)
		if err != nil {
			a.fail(fmt.Errorf("row of %s: %w", e.Ref, err))
			return
		}
		e.Row, e.Facts = row, facts
		v.rows[id] = e
		read++
	}
	if read != len(rows) {
		a.fail(fmt.Errorf("%d rows were locked and %d read: %w", len(rows), read, errRefused))
	}
}
