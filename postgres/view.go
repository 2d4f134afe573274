package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

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

	claims   map[onceward.ID]onceward.Claim
	claimed  map[onceward.ID]bool // inserted by this transaction
	variants map[variant]onceward.Claim
	noted    map[variant]bool // inserted by this transaction
	asked    bool             // whether the variants of the other arrivals were read
	rows     map[onceward.ID]onceward.EntityRow
	held     map[onceward.TakeUp]int // what HeldFacts returned
}

type variant struct {
	claim  onceward.ID
	digest onceward.Digest
}

var _ onceward.View = (*view)(nil)

// Claim implements onceward.View.
func (v *view) Claim(id onceward.ID) (c onceward.Claim, inserted bool) {
	return v.claims[id], v.claimed[id]
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
	var ids, digests []pgtype.UUID
	for _, a := range v.batch.Arrivals {
		id := a.Event.ClaimID()
		if c, ok := v.claims[id]; ok && c.Digest != a.Event.Digest && a.Resolution == onceward.Unresolved {
			ids, digests = append(ids, uuid(id)), append(digests, uuid(a.Event.Digest))
		}
	}
	p := pipeline{{sql: v.store.sql.readVariants, args: []any{ids, digests}, read: v.readVariants}}
	_, err := p.run(v.ctx, v.conn)
	return err
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
	p := pipeline{{sql: v.store.sql.readFacts, args: []any{uuid(id)}, read: func(rows pgx.Rows) error {
		for rows.Next() {
			var told []byte
			if err := rows.Scan(&told); err != nil {
				return err
			}
			var f onceward.Fact
			if err := json.Unmarshal(told, &f); err != nil {
				return fmt.Errorf("a stored fact of %s: %w", id, err)
			}
			facts = append(facts, f)
		}
		return nil
	}}}
	_, err := p.run(v.ctx, v.conn)
	return facts, err
}

// HeldFacts implements onceward.View, in a round trip of its own. Nothing locks
// what it counts; the statement that takes the facts up wants to delete as many.
func (v *view) HeldFacts(eventID, below int64) (int, error) {
	if err := v.ctx.Err(); err != nil {
		return 0, err
	}
	var n int
	p := pipeline{{sql: v.store.sql.countHeld, args: []any{eventID, below}, read: func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&n); err != nil {
				return err
			}
		}
		return nil
	}}}
	if _, err := p.run(v.ctx, v.conn); err != nil {
		return 0, err
	}
	if v.held == nil {
		v.held = map[onceward.TakeUp]int{}
	}
	v.held[onceward.TakeUp{EventID: eventID, Below: below}] = n
	return n, nil
}

func (v *view) readClaimed(rows pgx.Rows) error {
	v.claimed = map[onceward.ID]bool{}
	for rows.Next() {
		var id pgtype.UUID
		if err := rows.Scan(&id); err != nil {
			return err
		}
		v.claimed[onceward.ID(id.Bytes)] = true
	}
	return nil
}

func (v *view) readClaims(rows pgx.Rows) error {
	v.claims = map[onceward.ID]onceward.Claim{}
	for rows.Next() {
		var id, digest pgtype.UUID
		var c onceward.Claim
		if err := rows.Scan(&id, &c.EventID, &digest); err != nil {
			return err
		}
		c.ID, c.Digest = onceward.ID(id.Bytes), onceward.Digest(digest.Bytes)
		v.claims[c.ID] = c
	}
	return nil
}

func (v *view) readNoted(rows pgx.Rows) error {
	v.noted = map[variant]bool{}
	for rows.Next() {
		var id, digest pgtype.UUID
		if err := rows.Scan(&id, &digest); err != nil {
			return err
		}
		v.noted[variant{onceward.ID(id.Bytes), onceward.Digest(digest.Bytes)}] = true
	}
	return nil
}

func (v *view) readVariants(rows pgx.Rows) error {
	if v.variants == nil {
		v.variants = map[variant]onceward.Claim{}
	}
	for rows.Next() {
		var id, digest pgtype.UUID
		var c onceward.Claim
		if err := rows.Scan(&id, &digest, &c.EventID, &c.Outcome); err != nil {
			return err
		}
		c.ID, c.Digest = onceward.ID(id.Bytes), onceward.Digest(digest.Bytes)
		v.variants[variant{c.ID, c.Digest}] = c
	}
	return nil
}

func (v *view) readRows(rows pgx.Rows) error {
	v.rows = map[onceward.ID]onceward.EntityRow{}
	for _, e := range v.txn.Entities() {
		v.rows[e.ID] = e
	}
	read := 0
	for rows.Next() {
		var id pgtype.UUID
		var status, told string
		var version, revision, facts int64
		var data, state []byte
		if err := rows.Scan(&id, &status, &told, &version, &revision, &facts, &data, &state); err != nil {
			return err
		}
		e, ok := v.rows[onceward.ID(id.Bytes)]
		if !ok {
			return fmt.Errorf("row %x was not asked for", id.Bytes)
		}
		row, err := onceward.DecodeRow(status, told, version, revision, data, state)
		if err != nil {
			return fmt.Errorf("row of %s: %w", e.Ref, err)
		}
		e.Row, e.Facts = row, facts
		v.rows[e.ID] = e
		read++
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if read != len(v.rows) {
		return fmt.Errorf("%d rows were locked and %d read: %w", len(v.rows), read, errRefused)
	}
	return nil
}
