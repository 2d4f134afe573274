package sqlite

import (
	"context"
	"errors"

	"github.com/onceward/onceward"
)

// guardAttempts is how often a batch is tried whose rows were written by
// somebody else after they had been read. Under the database's write lock that
// takes a program that goes around SQLite's locks.
const guardAttempts = 3

// Commit implements [onceward.Inbox].
func (s *Store) Commit(ctx context.Context, b *onceward.Batch) error {
	err := errGuard
	for attempt := 0; attempt < guardAttempts && errors.Is(err, errGuard); attempt++ {
		err = s.use(ctx, func(c *session) error {
			return c.transact(ctx, func() error { return c.take(ctx, b) })
		})
	}
	if err != nil {
		for _, a := range b.Arrivals { // nobody is to take a plan for what became of it
			a.Outcome, a.StoredID, a.Results = onceward.Undecided, 0, nil
		}
	}
	return translate("commit", err)
}

// take does the whole of a batch inside a transaction.
func (c *session) take(ctx context.Context, b *onceward.Batch) error {
	txn := onceward.NewTxn(b)
	v := &view{ctx: ctx, c: c, claims: map[onceward.ID]seen{}, variants: map[variant]bool{}}
	if err := v.claim(txn); err != nil {
		return err
	}
	if err := v.note(txn); err != nil {
		return err
	}
	writes, err := txn.Plan(v)
	if err != nil {
		return err
	}
	return c.write(b, writes)
}

// view is what a transaction sees. The write lock of the database is every
// row's, so rows are read when the plan asks for them. What it is asked for once
// ctx has ended is ctx's error, so that a batch that takes too long ends.
type view struct {
	ctx      context.Context
	c        *session
	claims   map[onceward.ID]seen
	variants map[variant]bool // those that this transaction inserted
}

var _ onceward.View = (*view)(nil)

// seen is a claim, and whether this transaction inserted it.
type seen struct {
	onceward.Claim
	inserted bool
}

type variant struct {
	claim  onceward.ID
	digest onceward.Digest
}

// claim inserts the batch's claims and reads those that were there.
func (v *view) claim(txn *onceward.Txn) error {
	claims := txn.Claims()
	for i := range claims {
		n, err := v.c.exec(`insert into onceward_claims (id, event, digest, source) values (?, ?, ?, ?) on conflict (id) do nothing`,
			claims[i].ID[:], claims[i].EventID, claims[i].Digest[:], claims[i].Source)
		if err != nil {
			return err
		}
		if n == 1 {
			v.claims[claims[i].ID] = seen{claims[i], true}
		}
	}
	for _, id := range txn.Lookups() {
		if v.claims[id].inserted {
			continue
		}
		claim := onceward.Claim{ID: id}
		err := v.c.query(func(row []value) {
			claim.EventID = row[0].(int64)
			copy(claim.Digest[:], row[1].([]byte))
		}, `select event, digest from onceward_claims where id = ?`, id[:])
		if err != nil {
			return err
		}
		v.claims[id] = seen{claim, false}
	}
	return nil
}

// note inserts what the batch says of other bytes under known claims.
func (v *view) note(txn *onceward.Txn) error {
	variants := txn.Variants()
	for i := range variants {
		n, err := v.c.exec(`insert into onceward_variants (claim, digest, event, outcome) values (?, ?, ?, ?) on conflict (claim, digest) do nothing`,
			variants[i].ID[:], variants[i].Digest[:], variants[i].EventID, int64(variants[i].Outcome))
		if err != nil {
			return err
		}
		if n == 1 {
			v.variants[variant{variants[i].ID, variants[i].Digest}] = true
		}
	}
	return nil
}

// Claim implements [onceward.View].
func (v *view) Claim(id onceward.ID) (onceward.Claim, bool) {
	s := v.claims[id]
	return s.Claim, s.inserted
}

// Variant implements [onceward.View].
func (v *view) Variant(id onceward.ID, d onceward.Digest) (noted onceward.Claim, inserted, known bool, err error) {
	if err := v.ctx.Err(); err != nil {
		return noted, false, false, err
	}
	noted = onceward.Claim{ID: id, Digest: d}
	err = v.c.query(func(row []value) {
		known = true
		noted.EventID, noted.Outcome = row[0].(int64), onceward.Outcome(row[1].(int64))
	}, `select event, outcome from onceward_variants where claim = ? and digest = ?`, id[:], d[:])
	return noted, v.variants[variant{id, d}], known, err
}

// Entity implements [onceward.View].
func (v *view) Entity(id onceward.ID) (onceward.EntityRow, error) {
	found := onceward.EntityRow{ID: id}
	if err := v.ctx.Err(); err != nil {
		return found, err
	}
	var decodeErr error
	err := v.c.query(func(row []value) {
		found.Facts = row[6].(int64)
		found.Row, decodeErr = onceward.DecodeRow(row[0].(string), row[1].(string), row[2].(int64), row[3].(int64), []byte(row[4].(string)), blob(row[5]))
	}, `select status, told, version, revision, data, state, facts from onceward_rows where id = ?`, id[:])
	return found, errors.Join(err, decodeErr)
}

// blob is a column's bytes; the driver gives nil for an empty one.
func blob(v value) []byte {
	b, _ := v.([]byte)
	return b
}

// Facts implements [onceward.View].
func (v *view) Facts(id onceward.ID) ([]onceward.Fact, error) {
	if err := v.ctx.Err(); err != nil {
		return nil, err
	}
	var facts []onceward.Fact
	var decodeErr error
	err := v.c.query(func(row []value) {
		f := onceward.Fact{Rule: row[0].(string), Kind: row[1].(string), Key: row[2].(string), Status: row[3].(string)}
		if err := decodePatch(row[4].(string), &f); err != nil {
			decodeErr = err
		}
		facts = append(facts, f)
	}, `select rule, kind, key, status, patch from onceward_facts where entity = ? and verdict <> 4 order by seq`, id[:])
	return facts, errors.Join(err, decodeErr)
}

// HeldFacts implements [onceward.View].
func (v *view) HeldFacts(event, below int64) (int, error) {
	if err := v.ctx.Err(); err != nil {
		return 0, err
	}
	held := 0
	err := v.c.query(func(row []value) { held = int(row[0].(int64)) },
		`select count(*) from onceward_facts where event = ? and verdict = 4 and revision < ?`, event, below)
	return held, err
}
