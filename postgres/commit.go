package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onceward/onceward"
)

// commitSQL are the statements of a commit, with the names in them.
type commitSQL struct {
	claim, readClaims, note, readVariants  query
	lockRows, createRows                   query
	readFacts, countHeld                   query
	insertEvents, updateRows, takeUp       query
	insertFacts, insertJobs, insertRepeats query
	deleteUnborn                           query
}

const (
	claimInto  = `insert into {claims} (id, event, digest, source) {input} on conflict (id) do nothing`
	claimTypes = "uuid bigint uuid text"
)

func newCommitSQL(n names) commitSQL {
	return commitSQL{
		// The setting says how many are ours, to the statement that follows.
		claim: query{
			one: n.form(claimInto+` returning 1::bigint, array[id], set_config('onceward.claimed', '1', true)`, claimTypes, plain),
			many: n.form(`with mine as (`+claimInto+` returning id)
				select count(*), array_agg(id), set_config('onceward.claimed', count(*)::text, true) from mine`, claimTypes, arrays),
		},
		// Not in the statement that claims: that one does not see what it waited
		// for. Where all are ours there is nothing to read, and nothing is looked for.
		readClaims: n.query(`select c.id, c.event, c.digest from ({input}) as u (id) join {claims} c on c.id = u.id
			where coalesce(nullif(current_setting('onceward.claimed', true), '')::bigint, 0) < $2::bigint`, "uuid"),
		note: n.query(`insert into {variants} (claim, digest, event, outcome) {input}
			on conflict (claim, digest) do nothing returning claim, digest`, "uuid uuid bigint smallint"),
		readVariants: n.query(`select v.claim, v.digest, v.event, v.outcome
			from ({input}) as u (claim, digest)
			join {variants} v on v.claim = u.claim and v.digest = u.digest`, "uuid uuid"),
		// The missing rows are born, empty; those that exist are looked up, which
		// costs less than to be refused. Who waits here, for a row that another is
		// just creating, has no lock yet on one that exists; who waits for such a
		// lock, in the next statement, waits for one who is past this statement. Both
		// go by the ids, so nobody waits in a circle.
		createRows: n.query(`insert into {rows} (id, source, account, mode, kind, key, created, updated)
			select u.*, $7::timestamptz, $7::timestamptz from ({input}) as u (id, source, account, mode, kind, key)
			where not exists (select from {rows} r where r.id = u.id)
			on conflict (id) do nothing`, "uuid text text text text text"),
		// Locked and read at once, as they are under the lock.
		lockRows: n.query(`select r.id, r.status, r.told, r.version, r.revision, r.facts, r.data, r.state
			from ({input}) as u (id) join {rows} r on r.id = u.id order by r.id for no key update of r`, "uuid"),
		readFacts: n.query(`select told from {facts} where entity = $1::uuid and verdict <> 4 order by seq`, "uuid"),
		countHeld: n.query(`select count(*) from {facts} where event = $1::bigint and verdict = 4 and revision < $2::bigint`, "bigint"),
		insertEvents: n.query(`insert into {events} (id, at, source, account, mode, origin, key, type, time, item, digest, unsigned, digest_key,
				method, target, remote, headers, body, body_of, outcome, "of", revision) {input}`,
			`bigint timestamptz text text text smallint text text bigint integer uuid boolean boolean
				text bytea text bytea bytea bigint smallint bigint bigint`),
		updateRows: n.query(`with written as (
				update {rows} r set status = u.status, told = u.told, version = u.version, revision = u.revision, facts = u.facts,
					tie = u.tie, data = u.data, state = u.state,
					updated = case when u.version > u.was_version then greatest(r.updated, $12::timestamptz) else r.updated end
				from ({input}) as u (id, was_version, was_facts, status, told, version, revision, facts, tie, data, state)
				where r.id = u.id and r.version = u.was_version and r.facts = u.was_facts
				returning 1)
			select 1 / (case when count(*) = $13::bigint then 1 else 0 end) from written`,
			"uuid bigint bigint text text bigint bigint bigint text text bytea"),
		takeUp: n.query(`with taken as (
				delete from {facts} f using ({input}) as u (event, below)
				where f.event = u.event and f.verdict = 4 and f.revision < u.below
				returning 1)
			select 1 / (case when count(*) = $3::bigint then 1 else 0 end) from taken`, "bigint bigint"),
		insertFacts: n.query(`insert into {facts} (entity, seq, event, place, verdict, version, revision, status_from, status_to,
				ord, against, decided, told) {input}`,
			"uuid bigint bigint integer smallint bigint bigint text text bytea bytea text text"),
		insertJobs: n.query(`insert into {jobs} (handler, lane, version, change, due) {input}`, "text uuid bigint text timestamptz"),
		insertRepeats: n.query(`insert into {repeats} (event, claim, digest, at, remote)
			select * from ({input}) as u (event, claim, digest, at, remote)
			where not exists (select from {repeats} r where r.event = u.event limit 1 offset $6::bigint)`, "bigint uuid uuid timestamptz text"),
		deleteUnborn: n.query(`delete from {rows} r using ({input}) as u (id) where r.id = u.id and r.facts = 0`, "uuid"),
	}
}

// Commit implements onceward.Inbox in two round trips: claim, lock and read; then
// write and commit. Only a repeat with other bytes, a tick that stored facts must
// decide, a mapping's change and the taking up of held facts need further ones.
func (s *Store) Commit(ctx context.Context, b *onceward.Batch) error {
	if len(b.Arrivals) == 0 {
		return nil
	}
	p := s.pipeline()
	defer s.keep(p)
	err := s.transact(ctx, "commit", func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		txn := onceward.NewTxn(b)
		v := &view{ctx: ctx, conn: conn, store: s, batch: b, txn: txn}
		p.reset()
		if err := s.claimAndLock(ctx, conn, p, b, txn, v); err != nil {
			return false, err
		}
		if s.between != nil {
			s.between()
		}
		writes, err := txn.Plan(v)
		if err != nil {
			return false, err
		}
		p.reset()
		if err := s.writing(p, b, writes, v); err != nil || len(p.statements) == 0 {
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
// rows given, which are sorted: claims, variants, the entity rows that are missing,
// and then all of them.
func (s *Store) claimAndLock(ctx context.Context, conn *pgx.Conn, p *pipeline, b *onceward.Batch, txn *onceward.Txn, v *view) error {
	s.begin(p)
	if claims := txn.Claims(); len(claims) > 0 {
		in := p.input(len(claims))
		in.uuids(func(i int) [16]byte { return claims[i].ID })
		in.bigints(func(i int) int64 { return claims[i].EventID })
		in.uuids(func(i int) [16]byte { return claims[i].Digest })
		in.texts(func(i int) string { return text(claims[i].Source) })
		p.scan(s.sql.claim, in, v.readClaimed)
	}
	lookups := txn.Lookups()
	if len(lookups) > 0 {
		in := p.ids(lookups)
		in.bigint(int64(len(lookups)))
		p.scan(s.sql.readClaims, in, v.readClaims)
	}
	if variants := txn.Variants(); len(variants) > 0 {
		in := p.input(len(variants))
		in.uuids(func(i int) [16]byte { return variants[i].ID })
		in.uuids(func(i int) [16]byte { return variants[i].Digest })
		in.bigints(func(i int) int64 { return variants[i].EventID })
		in.smallints(func(i int) int { return int(variants[i].Outcome) })
		p.scan(s.sql.note, in, v.readNoted)
		in = p.input(len(variants))
		in.uuids(func(i int) [16]byte { return variants[i].ID })
		in.uuids(func(i int) [16]byte { return variants[i].Digest })
		p.scan(s.sql.readVariants, in, v.readVariants)
	}
	rows := txn.Entities()
	if len(rows) > 0 {
		in := p.input(len(rows))
		in.uuids(func(i int) [16]byte { return rows[i].ID })
		in.texts(func(i int) string { return rows[i].Ref.Source })
		in.texts(func(i int) string { return rows[i].Ref.Scope.Account })
		in.texts(func(i int) string { return rows[i].Ref.Scope.Mode })
		in.texts(func(i int) string { return rows[i].Ref.Kind })
		in.texts(func(i int) string { return rows[i].Ref.Key })
		in.time(b.Now)
		p.send(s.sql.createRows, in)
		in = p.input(len(rows))
		in.uuids(func(i int) [16]byte { return rows[i].ID })
		p.scan(s.sql.lockRows, in, v.readRows)
	}
	if s.first != nil {
		s.first(p, lookups, rows)
	}
	return p.run(ctx, conn)
}

// ids are the rows of a statement that wants ids only.
func (p *pipeline) ids(ids []onceward.ID) input {
	in := p.input(len(ids))
	in.uuids(func(i int) [16]byte { return ids[i] })
	return in
}

func uuid[T ~[16]byte](id T) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }
