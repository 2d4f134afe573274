package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onceward/onceward"
)

// commitSQL are the statements of a commit, with the names in them.
type commitSQL struct {
	claim, readClaims, note, readVariants    string
	lockRows, readRows, readFacts, countHeld string
	insertEvents, updateRows, takeUp         string
	insertFacts, insertJobs, insertRepeats   string
	deleteUnborn                             string
}

func newCommitSQL(n names) commitSQL {
	return commitSQL{
		claim: n.sql(`insert into {claims} (id, event, digest, source)
			select * from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::text[])
			on conflict (id) do nothing returning id`),
		readClaims: n.sql(`select id, event, digest from {claims} where id = any($1::uuid[])`),
		note: n.sql(`insert into {variants} (claim, digest, event, outcome)
			select * from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::smallint[])
			on conflict (claim, digest) do nothing returning claim, digest`),
		readVariants: n.sql(`select v.claim, v.digest, v.event, v.outcome
			from unnest($1::uuid[], $2::uuid[]) as u (claim, digest)
			join {variants} v on v.claim = u.claim and v.digest = u.digest`),
		// One pass over missing and existing rows: the missing are born, empty, and
		// the existing are locked and left as they are. Two passes would deadlock.
		lockRows: n.sql(`insert into {rows} as r (id, source, account, mode, kind, key, created, updated)
			select u.*, $7::timestamptz, $7::timestamptz
			from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) as u
			on conflict (id) do update set version = r.version where false`),
		// Not in the statement that locks: that one sees the rows as they were
		// before it waited.
		readRows: n.sql(`select id, status, told, version, revision, facts, data::text, state
			from {rows} where id = any($1::uuid[])`),
		readFacts: n.sql(`select told::text from {facts} where entity = $1 and verdict <> 4 order by seq`),
		countHeld: n.sql(`select count(*) from {facts} where event = $1 and verdict = 4 and revision < $2`),
		insertEvents: n.sql(`insert into {events} (id, at, source, account, mode, origin, key, type, time, item, digest, unsigned, digest_key,
				method, target, remote, headers, body, body_of, outcome, "of", revision)
			select * from unnest($1::bigint[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::text[], $8::text[],
				$9::bigint[], $10::integer[], $11::uuid[], $12::boolean[], $13::boolean[], $14::text[], $15::bytea[], $16::text[],
				$17::bytea[], $18::bytea[], $19::bigint[], $20::smallint[], $21::bigint[], $22::bigint[])`),
		updateRows: n.sql(`with written as (
				update {rows} r set status = u.status, told = u.told, version = u.version, revision = u.revision, facts = u.facts,
					tie = u.tie, data = u.data::json, state = u.state,
					updated = case when u.version > u.was_version then $12::timestamptz else r.updated end
				from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
					$9::text[], $10::text[], $11::bytea[])
					as u (id, was_version, was_facts, status, told, version, revision, facts, tie, data, state)
				where r.id = u.id and r.version = u.was_version and r.facts = u.was_facts
				returning 1)
			select 1 / (case when count(*) = $13::bigint then 1 else 0 end) from written`),
		takeUp: n.sql(`with taken as (
				delete from {facts} f using unnest($1::bigint[], $2::bigint[]) as u (event, below)
				where f.event = u.event and f.verdict = 4 and f.revision < u.below
				returning 1)
			select 1 / (case when count(*) = $3::bigint then 1 else 0 end) from taken`),
		insertFacts: n.sql(`insert into {facts} (entity, seq, event, place, verdict, version, revision, status_from, status_to,
				ord, against, decided, told)
			select entity, seq, event, place, verdict, version, revision, status_from, status_to, ord, against, decided, told::json
			from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::integer[], $5::smallint[], $6::bigint[], $7::bigint[], $8::text[], $9::text[],
				$10::bytea[], $11::bytea[], $12::text[], $13::text[])
				as u (entity, seq, event, place, verdict, version, revision, status_from, status_to, ord, against, decided, told)`),
		insertJobs: n.sql(`insert into {jobs} (handler, lane, version, change, due)
			select handler, lane, version, change::json, due
			from unnest($1::text[], $2::uuid[], $3::bigint[], $4::text[], $5::timestamptz[]) as u (handler, lane, version, change, due)`),
		insertRepeats: n.sql(`insert into {repeats} (event, claim, digest, at, remote)
			select * from unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::text[]) as u (event, claim, digest, at, remote)
			where not exists (select from {repeats} r where r.event = u.event limit 1 offset $6)`),
		deleteUnborn: n.sql(`delete from {rows} where id = any($1::uuid[]) and facts = 0`),
	}
}

// Commit implements onceward.Inbox in two round trips: claim, lock and read; then
// write and commit. Only a repeat with other bytes, a tick that stored facts must
// decide, a mapping's change and the taking up of held facts need further ones.
func (s *Store) Commit(ctx context.Context, b *onceward.Batch) error {
	if len(b.Arrivals) == 0 {
		return nil
	}
	err := s.transact(ctx, "commit", func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		txn := onceward.NewTxn(b)
		v := &view{ctx: ctx, conn: conn, store: s, batch: b, txn: txn}
		if err := s.claimAndLock(ctx, conn, b, txn, v); err != nil {
			return false, err
		}
		if s.between != nil {
			s.between()
		}
		writes, err := txn.Plan(v)
		if err != nil {
			return false, err
		}
		p, err := s.writing(b, writes, v)
		if err != nil || len(p) == 0 {
			return false, err // nothing to keep: what the first trip made is rolled back
		}
		p.add(commit)
		return p.runCommit(ctx, conn)
	})
	if err != nil {
		for _, a := range b.Arrivals { // nobody is to take a plan for what became of it
			a.Outcome, a.StoredID, a.Results = onceward.Undecided, 0, nil
		}
	}
	return err
}

// claimAndLock is the first round trip. All processes lock in the order of the
// arrays, which are sorted: claims, variants, rows.
func (s *Store) claimAndLock(ctx context.Context, conn *pgx.Conn, b *onceward.Batch, txn *onceward.Txn, v *view) error {
	var p pipeline
	s.begin(&p)
	if claims := txn.Claims(); len(claims) > 0 {
		var ids, digests []pgtype.UUID
		var events []int64
		var sources []string
		for _, c := range claims {
			ids, digests = append(ids, uuid(c.ID)), append(digests, uuid(c.Digest))
			events, sources = append(events, c.EventID), append(sources, text(c.Source))
		}
		p.query(s.sql.claim, v.readClaimed, ids, events, digests, sources)
	}
	lookups := uuids(txn.Lookups())
	if len(lookups) > 0 {
		p.query(s.sql.readClaims, v.readClaims, lookups)
	}
	if variants := txn.Variants(); len(variants) > 0 {
		var ids, digests []pgtype.UUID
		var events []int64
		var outcomes []int16
		for _, c := range variants {
			ids, digests = append(ids, uuid(c.ID)), append(digests, uuid(c.Digest))
			events, outcomes = append(events, c.EventID), append(outcomes, int16(c.Outcome))
		}
		p.query(s.sql.note, v.readNoted, ids, digests, events, outcomes)
		p.query(s.sql.readVariants, v.readVariants, ids, digests)
	}
	rows := txn.Entities()
	ids := make([]pgtype.UUID, len(rows))
	if len(rows) > 0 {
		texts := make([][]string, 5)
		for i, r := range rows {
			ids[i] = uuid(r.ID)
			for j, part := range []string{r.Ref.Source, r.Ref.Scope.Account, r.Ref.Scope.Mode, r.Ref.Kind, r.Ref.Key} {
				texts[j] = append(texts[j], part)
			}
		}
		p.add(s.sql.lockRows, ids, texts[0], texts[1], texts[2], texts[3], texts[4], b.Now)
		p.query(s.sql.readRows, v.readRows, ids)
	}
	if s.first != nil {
		p = s.first(p, lookups, ids)
	}
	_, err := p.run(ctx, conn)
	return err
}

func uuid[T ~[16]byte](id T) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

func uuids(ids []onceward.ID) []pgtype.UUID {
	out := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		out[i] = uuid(id)
	}
	return out
}
