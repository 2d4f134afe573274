package planted

// The texts that several plants of a row begin with.
const (
	newerStatus = "case order > r.status.order:"
	newerPart   = "case order > part.order:"
	maxPart     = "	case mode == Max:\n"
)

// foldPlants change what a row is: the definition, and the way that adds one fact.
func foldPlants() []plant { return append(orderPlants(), tickPlants()...) }

// orderPlants change which of two facts is the newer.
func orderPlants() []plant {
	return []plant{
		{
			guard: ">= for >", name: "a fact of equal order begins the tick anew",
			why:   "the last to arrive is shown and nothing says that the sender's clock could not decide (FOLD law 1)",
			edits: []edit{{"fold.go", "t.order > tick[0].order:", "t.order >= tick[0].order:"}},
			by:    []catch{laws("TestFoldVectors", "TestLaw1PermutationAndWhatTieMarks")},
		},
		{
			guard: ">= for >", name: "a status of equal order replaces the one shown",
			why:   "one at a time gives another row than all at once (FOLD law 3)",
			edits: []edit{{"row.go", newerStatus, "case order >= r.status.order:"}},
			by:    []catch{laws("TestLaw3IncrementalIsDefinition", "TestIncrementalOnVectors"), storetest("sqlite", "converges")},
		},
		{
			guard: ">= for >", name: "a field of equal order replaces the one shown",
			why:   "one at a time gives another row than all at once (FOLD law 3)",
			edits: []edit{{"row.go", newerPart, "case order >= part.order:"}},
			by:    []catch{laws("TestLaw3IncrementalIsDefinition", "TestIncrementalOnVectors")},
		},
		{
			guard: "terminal decided by arrival", name: "the terminal status that came first stays whatever its order",
			why:   "of two terminals the sender's clock names the newer, not the network (FOLD laws 1 and 3)",
			edits: []edit{{"row.go", newerStatus, "case order > r.status.order && !k.IsTerminal(r.Told):"}},
			by:    []catch{laws("TestLaw3IncrementalIsDefinition", "TestIncrementalOnVectors")},
		},
		{
			guard: "terminal decided by arrival", name: "a terminal status does not outrank the others",
			why:   "a callback that is late, or has a newer clock, moves a finished job on (FOLD law 6)",
			edits: []edit{{"fact.go", "b = appendFlag(b, k.terminal[f.Status])", "b = appendFlag(b, false)"}},
			by:    []catch{laws("TestFoldVectors", "TestLaw6Sink")},
		},
		{
			guard: "hint decided by arrival", name: "a hint fills in only what is empty when it comes",
			why: "of two hints the first to arrive stays, and not the newer (FOLD laws 1 and 3)",
			edits: []edit{
				{"row.go", newerStatus, `case order > r.status.order && (!f.Hint || r.Told == ""):`},
				{"row.go", newerPart, "case order > part.order && !f.Hint:"},
			},
			by: []catch{laws("TestLaw3IncrementalIsDefinition", "TestIncrementalOnVectors")},
		},
		{
			guard: "hint decided by arrival", name: "a hint counts as firm",
			why:   "an old copy inside another event overwrites what the thing itself has told (FOLD law 5)",
			edits: []edit{{"fact.go", "	if f.Hint {\n", "	if f.Hint && f.Status == StatusPart {\n"}},
			by:    []catch{laws("TestFoldVectors", "TestLaw5Hint")},
		},
		{
			guard: "status-less fact lifts the status's order", name: "a fact without a status makes the shown one newer",
			why: "a status that comes late is taken for old, though no newer one was told (FOLD law 3)",
			edits: []edit{
				{
					"row.go", "	if k.tellsStatus(f) {\n		switch order := told.status; {\n",
					"	if order := k.StatusOrder(f); !k.tellsStatus(f) && order > r.status.order {\n		r.status.order = order\n	}\n" +
						"	if k.tellsStatus(f) {\n		switch order := told.status; {\n",
				},
				{
					"fold.go", "	for _, part := range partsTold(k, current) {\n",
					"	for _, f := range current {\n		r.status.order = max(r.status.order, k.StatusOrder(f))\n	}\n	for _, part := range partsTold(k, current) {\n",
				},
			},
			by: []catch{laws("TestLaw3IncrementalIsDefinition", "TestIncrementalOnVectors"), storetest("sqlite", "converges")},
		},
	}
}

// tickPlants change what becomes of facts that the sender's clock cannot tell apart,
// and of what they say.
func tickPlants() []plant {
	return []plant{
		{
			guard: "amounts added without by", name: "an amount that is told again is added again",
			why:   "refund.created and refund.updated of one refund are two amounts (FOLD law 3)",
			edits: []edit{{"row.go", maxPart, "	case mode == Sum:\n		part.value = sumValues([]Value{part.value, p.Value})\n" + maxPart}},
			by:    []catch{laws("TestLaw3IncrementalIsDefinition", "TestIncrementalOnVectors"), storetest("sqlite", "converges")},
		},
		{
			guard: "amounts added without by", name: "the definition adds up every amount that was told",
			why: "the same fact under another event key changes the total (FOLD law 4)",
			edits: []edit{{
				"fold.go", "	part.value, part.mark = newest(",
				"	if part.mode == Sum {\n		part.value = Int(0)\n		for _, t := range told {\n			part.value = sumValues([]Value{part.value, t.value})\n		}\n		return part\n	}\n" +
					"	part.value, part.mark = newest(",
			}},
			by: []catch{laws("TestFoldVectors", "TestLaw4Twin")},
		},
		{
			guard: "tie not marked", name: "the definition marks no tie",
			why:   "the row depends on arrival and does not say so (law 5, FOLD law 1)",
			edits: []edit{{"fold.go", "	m.tie = true\n", ""}},
			by:    []catch{laws("TestFoldVectors", "TestLaw1PermutationAndWhatTieMarks", "TestLaw11Truth")},
		},
		{
			guard: "tie not marked", name: "a fact that joins a tick marks no tie",
			why:   "the row depends on arrival and does not say so (law 5, FOLD law 3)",
			edits: []edit{{"tick.go", "m.contested, m.tie = true, true", "m.contested = true"}},
			by:    []catch{laws("TestLaw3IncrementalIsDefinition", "TestIncrementalOnVectors"), storetest("sqlite", "converges", "arrival-order")},
		},
		{
			guard: "former value ignored", name: "what a fact says it replaced is not dropped from the tick",
			why:   "where the sender said which of two came later, the row still asks arrival (FOLD section 2)",
			edits: []edit{{"fold.go", "replaced[was.key()] = true", "replaced[StatusPart] = true"}},
			by:    []catch{laws("TestFoldVectors")},
		},
		{
			guard: "former value ignored", name: "a fact with a former value joins its tick by itself",
			why:   "former values decide between all facts of a tick, so one fact cannot join alone (FOLD law 3)",
			edits: []edit{{"tick.go", "	return m.former || told\n", "	return m.former && !told && false\n"}},
			by:    []catch{laws("TestLaw3IncrementalIsDefinition", "TestIncrementalOnVectors"), storetest("sqlite", "converges")},
		},
		{
			guard: "version restarted by a refold", name: "a refold begins at version nothing",
			why:   "the version goes down, so the guard of everybody who has read the row is wrong, and jobs of two changes share a name",
			edits: []edit{{"row.go", "r.Version, r.Revision = before.Version, before.Revision", "r.Revision = before.Revision"}},
			by:    []catch{laws("TestLaw3IncrementalIsDefinition", "TestPlanRevisions"), storetest("sqlite", "converges", "batching")},
		},
		{
			guard: "more", name: "a refold forgets which statuses were reached",
			why:   "the work of a status is done again when the row comes back to it (law 8)",
			edits: []edit{{"row.go", "		if !newEpoch {\n			r.Reached = before.Reached\n", "		if newEpoch {\n			r.Reached = nil\n"}},
			by:    []catch{laws("TestLaw3IncrementalIsDefinition")},
		},
		{
			guard: "more", name: "a fact of an earlier epoch still tells its fields",
			why:   "the last period's amounts are shown as this one's (FOLD law 9)",
			edits: []edit{{"row.go", "f.Epoch.N < r.Epoch.N {\n		return\n	}", "f.Epoch.N < r.Epoch.N {\n		f.Status = \"\"\n	}"}},
			by:    []catch{laws("TestLaw9Epoch", "TestLaw3IncrementalIsDefinition")},
		},
		{
			guard: "more", name: "a null that comes later does not clear",
			why: "what the sender has taken back is shown for ever (FOLD law 8)",
			edits: []edit{{
				"fold.go", "			if p.Field == part.field && p.By == part.by {\n",
				"			if p.Field == part.field && p.By == part.by && !p.Value.IsNull() {\n",
			}, {
				"fold.go", "	part.value, part.mark = newest(",
				"	if len(told) == 0 {\n		part.value = Null\n		return part\n	}\n	part.value, part.mark = newest(",
			}},
			by: []catch{laws("TestFoldVectors", "TestLaw8Null")},
		},
	}
}
