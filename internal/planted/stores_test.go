package planted

const (
	sqliteGuard   = "where id = ? and version = ? and facts = ?"
	postgresGuard = "r.version = u.was_version and r.facts = u.was_facts"
	claimQuery    = "		p.scan(s.sql.claim, in, v.readClaimed)\n"
	lockPass      = "	rows := txn.Entities()\n	if len(rows) > 0 {\n"
)

// storePlants change the statements of the stores.
func storePlants() []plant {
	return append(guardPlants(), otherStorePlants()...)
}

// unguardedPostgres takes everything away that keeps a row from being written on top
// of what somebody else has written: the lock before the reading, the version in the
// WHERE, and the number of the fact, which the database draws then.
func unguardedPostgres() []edit {
	const numbered = "ord, against, decided, told) select u.entity, " +
		"(select coalesce(max(f.seq), 0) from {facts} f where f.entity = u.entity) + row_number() over (partition by u.entity order by u.seq), " +
		"u.event, u.place, u.verdict, u.version, u.revision, u.status_from, u.status_to, u.ord, u.against, u.decided, u.told " +
		"from ({input}) as u (entity, seq, event, place, verdict, version, revision, status_from, status_to, ord, against, decided, told)`,"
	return []edit{
		{"postgres/commit.go", "order by r.id for no key update of r`", "order by r.id`"},
		{"postgres/commit.go", postgresGuard, "true"},
		{"postgres/commit.go", "ord, against, decided, told) {input}`,", numbered},
	}
}

// unguardedSQLite is the same, where the lock is the whole file's: rows are read
// before it is taken.
func unguardedSQLite() []edit {
	const table = "map[onceward.ID]onceward.EntityRow"
	return append(beforeTheLock(table, "Entity"),
		edit{
			"sqlite/commit.go", "	found := onceward.EntityRow{ID: id}\n",
			"	if row, ok := v.early[id]; ok {\n		return row, nil\n	}\n	found := onceward.EntityRow{ID: id}\n",
		},
		edit{"sqlite/write.go", sqliteGuard, "where id = ? and ? >= 0 and ? >= 0"},
		edit{"sqlite/write.go", "?) on conflict (id) do nothing`", "?) on conflict (id) do update set status = excluded.status`"},
		edit{
			"sqlite/write.go", "patch)\n		values (?, ?, ",
			"patch)\n		values (?1, (select coalesce(max(f.seq), ?2 * 0) + 1 from onceward_facts f where f.entity = ?1), ",
		},
	)
}

// beforeTheLock makes SQLite's view ask one of its methods about every row of a batch
// before the lock is taken, and keep the answers.
func beforeTheLock(table, method string) []edit {
	const commit = "sqlite/commit.go"
	return []edit{
		{commit, "			return c.transact(ctx, func() error { return c.take(ctx, b) })\n", `			early, before := ` + table + `{}, &view{ctx: ctx, c: c}
			for _, e := range onceward.NewTxn(b).Entities() {
				read, err := before.` + method + `(e.ID)
				if err != nil {
					return err
				}
				early[e.ID] = read
			}
			return c.transact(ctx, func() error { return c.take(ctx, b, early) })
`},
		{commit, "take(ctx context.Context, b *onceward.Batch) error {", "take(ctx context.Context, b *onceward.Batch, early " + table + ") error {"},
		{commit, "v := &view{ctx: ctx, c: c, ", "v := &view{early: early, ctx: ctx, c: c, "},
		{commit, "type view struct {\n", "type view struct {\n	early " + table + "\n"},
	}
}

const (
	factsInTurn = "	var facts []onceward.Fact\n"
	factsEarly  = "	if v.early != nil {\n		return v.early[id], nil\n	}\n" + factsInTurn
)

// earlyFactsSQLite makes a refold read the facts of before the lock, as a statement
// does that waits for the row and refolds in one.
func earlyFactsSQLite() []edit {
	return append(beforeTheLock("map[onceward.ID][]onceward.Fact", "Facts"), edit{"sqlite/commit.go", factsInTurn, factsEarly})
}

func earlyFactsPostgres() []edit {
	return []edit{
		{"postgres/commit.go", lockPass, lockPass + `		v.early = map[onceward.ID][]onceward.Fact{}
		for _, r := range rows {
			p.scan(s.sql.readFacts, p.ids([]onceward.ID{r.ID}), v.readEarly(r.ID))
		}
`},
		{"postgres/view.go", "type view struct {\n", "type view struct {\n	early map[onceward.ID][]onceward.Fact\n"},
		{"postgres/view.go", factsInTurn, factsEarly},
		{"postgres/view.go", "// Facts implements onceward.View", `func (v *view) readEarly(id onceward.ID) func(a *answer) {
	return func(a *answer) {
		for a.next() {
			var f onceward.Fact
			if json.Unmarshal(a.bytes(), &f) == nil {
				v.early[id] = append(v.early[id], f)
			}
		}
	}
}

// Facts implements onceward.View`},
	}
}

// guardPlants let two commits write one row on top of each other.
func guardPlants() []plant {
	readThenWrite := "the row is computed from a reading that others have outrun, and their facts are lost from it (law 4)"
	return []plant{
		{
			guard: "read, then write", name: "SQLite: the guard is dropped from the WHERE",
			why:   "the lock alone is left, and whatever goes around it is overwritten (law 4)",
			edits: []edit{{"sqlite/write.go", sqliteGuard, "where id = ? and ? >= 0 and ? >= 0"}},
			by:    []catch{guards("sqlite", "TestGuard")},
		},
		{
			guard: "read, then write", name: "SQLite: a write that finds no row passes",
			why:   "the refusal is not noticed, and the rest of the batch is kept without the row (law 4)",
			edits: []edit{{"sqlite/session.go", "if err == nil && n != 1 {", "if err == nil && n > 1 {"}},
			by:    []catch{guards("sqlite", "TestGuard")},
		},
		{
			guard: "read, then write", name: "SQLite: rows are read before the lock and written without a guard",
			why: readThenWrite, edits: unguardedSQLite(),
			by: []catch{storetest("sqlite", "guard", "concurrent", "converges", "linearizable")},
		},
		{
			guard: "read, then write", name: "PostgreSQL: the guard is dropped from the WHERE",
			why:   "the lock alone is left, and whatever goes around it is overwritten (law 4)",
			edits: []edit{{"postgres/commit.go", postgresGuard, "true"}},
			by:    []catch{guards("postgres", "TestRefusedGuardTakesCommitAlong")},
		},
		{
			guard: "read, then write", name: "PostgreSQL: a refusal does not fail the transaction",
			why:   "the commit that is pipelined behind it goes through, without the row (law 4)",
			edits: []edit{{"postgres/commit.go", "when count(*) = $13::bigint then", "when count(*) <= $13::bigint then"}},
			by:    []catch{guards("postgres", "TestRefusedGuardTakesCommitAlong")},
		},
		{
			guard: "read, then write", name: "PostgreSQL: rows are read without a lock and written without a guard",
			why: readThenWrite, edits: unguardedPostgres(),
			by: []catch{storetest("postgres", "guard", "concurrent", "converges", "processes")},
		},
		{
			guard: "refold inside the guarded statement", name: "SQLite: a refold reads the facts of before the lock",
			why:   "a fact that was committed while this one waited is lost from the row, and the guard does not see it",
			edits: earlyFactsSQLite(),
			by:    []catch{storetest("sqlite", "converges")},
		},
		{
			guard: "refold inside the guarded statement", name: "PostgreSQL: a refold reads the facts of before the lock",
			why:   "a fact that was committed while this one waited is lost from the row, and the guard does not see it",
			edits: earlyFactsPostgres(),
			by:    []catch{storetest("postgres", "converges")},
		},
	}
}

// otherStorePlants split what has to be one transaction, and keep less than what
// came.
func otherStorePlants() []plant {
	return []plant{
		{
			guard: "claim without event", name: "SQLite: claims are committed before the rest",
			why: "what fails after them leaves a claim that makes the retry a duplicate of nothing (law 1)",
			edits: []edit{{
				"sqlite/commit.go", "	if err := v.note(txn); err != nil {\n",
				"	if _, err := c.exec(`commit`); err != nil {\n		return err\n	}\n	if err := c.begin(ctx); err != nil {\n		return err\n	}\n	if err := v.note(txn); err != nil {\n",
			}},
			by: []catch{storetest("sqlite", "atomic"), faults("sqlite", "TestEveryStatementFails")},
		},
		{
			guard: "claim without event", name: "PostgreSQL: claims are committed before the rest",
			why:   "what fails after them leaves a claim that makes the retry a duplicate of nothing (law 1)",
			edits: []edit{{"postgres/commit.go", claimQuery, claimQuery + "		p.add(commit)\n		s.begin(p)\n"}},
			by:    []catch{storetest("postgres", "atomic"), faults("postgres", "TestLostAtTheCommit")},
		},
		{
			guard: "facts purged with their bodies", name: "SQLite: taking held facts up deletes all facts of the event",
			why:   "nothing purges yet, and this is the one statement that deletes facts: Fold never forgets (law 7)",
			edits: []edit{{"sqlite/write.go", "where event = ? and verdict = 4 and revision < ?", "where event = ? and revision < ?"}},
			by:    []catch{storetest("sqlite", "held")},
		},
		{
			guard: "facts purged with their bodies", name: "PostgreSQL: taking held facts up deletes all facts of the event",
			why: "nothing purges yet, and this is the one statement that deletes facts: Fold never forgets (law 7)",
			edits: []edit{
				{"postgres/commit.go", "where f.event = u.event and f.verdict = 4 and f.revision < u.below", "where f.event = u.event and f.revision < u.below"},
				{"postgres/commit.go", "case when count(*) = $3::bigint then", "case when count(*) >= $3::bigint then"},
			},
			by: []catch{storetest("postgres", "held")},
		},
		{
			guard: "tie not marked", name: "SQLite: a later tie is not written",
			why:   "whoever reads the view is not told that arrival decided",
			edits: []edit{{"sqlite/write.go", "tie = ?, facts = ?, data = ?", "tie = iif(? = '', '', tie), facts = ?, data = ?"}},
			by:    []catch{storetest("sqlite", "read-entity")},
		},
		{
			guard: "tie not marked", name: "PostgreSQL: a tie is not written",
			why:   "whoever reads the view is not told that arrival decided",
			edits: []edit{{"postgres/commit.go", "tie = u.tie, ", ""}},
			by:    []catch{storetest("postgres", "read-entity")},
		},
		{
			guard: "more", name: "SQLite: a refold reads the newest fact first",
			why:   "arrival decides a tie the other way round than it came (law 5)",
			edits: []edit{{"sqlite/commit.go", "verdict <> 4 order by seq`", "verdict <> 4 order by seq desc`"}},
			by:    []catch{storetest("sqlite", "converges")},
		},
		{
			guard: "more", name: "PostgreSQL: a refold reads the newest fact first",
			why:   "arrival decides a tie the other way round than it came (law 5)",
			edits: []edit{{"postgres/commit.go", "verdict <> 4 order by seq`", "verdict <> 4 order by seq desc`"}},
			by:    []catch{storetest("postgres", "converges")},
		},
	}
}
