package planted

const (
	addFact    = "	step, err := w.row.Add(kind, f, refold, "
	countFact  = "	w.facts++\n"
	sortRows   = "	slices.SortFunc(t.entities, func(a, b EntityRow) int { return a.ID.Compare(b.ID) })\n	t.entities = slices.CompactFunc(t.entities, func(a, b EntityRow) bool { return a.ID == b.ID })\n"
	sortClaims = "	slices.SortStableFunc(t.claims, byID) // stable: the first arrival of a key claims it\n	t.claims = slices.CompactFunc(t.claims, func(a, b Claim) bool { return a.ID == b.ID })\n"
)

// asTheyCame leaves each of a list once, and does not sort it.
func asTheyCame(list, of string) string {
	known := "known" + of
	return "	" + known + " := map[ID]bool{}\n" +
		"	" + list + " = slices.DeleteFunc(" + list + ", func(x " + of + ") bool {\n		again := " + known + "[x.ID]\n		" + known + "[x.ID] = true\n		return again\n	})\n"
}

func unsortedRows() string { return asTheyCame("t.entities", "EntityRow") }

func unsortedClaims() string { return asTheyCame("t.claims", "Claim") + "	_ = byID\n" }

// planPlants change what a commit decides to write.
func planPlants() []plant {
	return []plant{
		{
			guard: "batch squeezed into one fact", name: "of a batch only the last fact about a row is kept",
			why: "how arrivals were cut into batches decides what is kept (FOLD law 10), and a rebuild would give another row",
			edits: []edit{{
				"plan.go", countFact,
				"	if n := len(p.writes.Facts); n > 0 && p.writes.Facts[n-1].Entity == id {\n		p.writes.Facts = p.writes.Facts[:n-1]\n		w.facts--\n	}\n" + countFact,
			}},
			by: []catch{laws("TestLaw10Batching"), storetest("sqlite", "arrival-order", "batching")},
		},
		{
			guard: "batch guarded by its highest order", name: "a fact below the batch's highest order tells nothing",
			why: "what only the older fact tells is lost, depending on the batch it came in (FOLD law 10)",
			edits: []edit{{
				"plan.go", addFact,
				"	add := f\n	for n, b := range p.txn.batch.Arrivals {\n		for i := range b.Facts {\n" +
					"			if kind != nil && f.Held == \"\" && p.txn.about[n][i] == id && kind.StatusOrder(&b.Facts[i]) > kind.StatusOrder(f) {\n" +
					"				add = &Fact{Rule: f.Rule, Kind: f.Kind, Key: f.Key}\n			}\n		}\n	}\n" +
					"	step, err := w.row.Add(kind, add, refold, ",
			}},
			by: []catch{laws("TestLaw10Batching"), storetest("sqlite", "batching")},
		},
		{
			guard: "unsorted batch", name: "rows are created in the order of arrival",
			why:   "two batches that name the same rows wait for each other",
			edits: []edit{{"plan.go", sortRows, unsortedRows()}},
			by:    []catch{laws("TestLaw10Batching")},
		},
		{
			guard: "unsorted batch", name: "keys are claimed in the order of arrival",
			why:   "two batches that name the same keys wait for each other",
			edits: []edit{{"plan.go", sortClaims, unsortedClaims()}},
			by:    []catch{laws("TestLaw10Batching")},
		},
		{
			guard: "unsorted batch", name: "PostgreSQL: keys and rows are locked in the order of arrival",
			why: "two batches that name the same keys or rows wait for each other",
			edits: []edit{
				{"plan.go", sortClaims, unsortedClaims()},
				{"plan.go", sortRows, unsortedRows()},
				{"postgres/commit.go", "order by r.id for no key update of r`", "for no key update of r`"},
			},
			by: []catch{races("postgres", "TestNoDeadlocks")},
		},
		{
			guard: "orders of two mappings compared", name: "a newer mapping does not make the row anew",
			why:   "one more status in the list moves every rank, so the orders of two mappings mean different things",
			edits: []edit{{"plan.go", `refold := f.Held == "" && w.row.Revision != 0 && revision > w.row.Revision`, "refold := false"}},
			by:    []catch{laws("TestPlanRevisions"), storetest("sqlite", "revisions")},
		},
		{
			guard: "orders of two mappings compared", name: "a process with an older mapping folds all the same",
			why:   "its orders are compared with those of the newer mapping that made the row",
			edits: []edit{{"plan.go", "case revision < w.row.Revision:", "case revision < 0:"}},
			by:    []catch{laws("TestPlanRevisions"), storetest("sqlite", "revisions")},
		},
		{
			guard: "claim without event", name: "an event that no rule matched is claimed and not kept",
			why: "what is unknown today cannot be read again tomorrow (law 9)",
			edits: []edit{{
				"plan.go", "		p.event(a, EventWrite{Event: a.Event, Outcome: New, Revision: a.Mapping.Revision})\n",
				"		if len(a.Facts) > 0 {\n			p.event(a, EventWrite{Event: a.Event, Outcome: New, Revision: a.Mapping.Revision})\n		}\n",
			}},
			by: []catch{storetest("sqlite", "stats", "read-event")},
		},
		{
			guard: "more", name: "each copy of an event in a batch is new",
			why:   "the same fact is told as often as the sender repeats it (law 3)",
			edits: []edit{{"plan.go", "case inserted && !p.seen[id]:", "case inserted:"}},
			by:    []catch{laws("TestLaw10Batching"), storetest("sqlite", "claim-once")},
		},
		{
			guard: "more", name: "other bytes under a known key are a duplicate",
			why:   "a second body is dropped unseen (law 9)",
			edits: []edit{{"plan.go", "	case claim.Digest == a.Event.Digest:\n", "	case claim.Digest == a.Event.Digest || a.Event.Source != \"\":\n"}},
			by:    []catch{laws("TestPlanOtherBytes"), storetest("sqlite", "differs")},
		},
		{
			guard: "refold inside the guarded statement", name: "a refold does not see the facts of its own batch",
			why:   "the row loses what came just before (FOLD law 10)",
			edits: []edit{{"plan.go", "		w.added = append(w.added, *f)\n", ""}},
			by:    []catch{laws("TestLaw10Batching"), storetest("sqlite", "converges", "batching")},
		},
		{
			guard: "more", name: "work is made for facts that change nothing",
			why:   "a late or repeated callback runs the handler again (law 8)",
			edits: []edit{{"plan.go", "	if step.Changed {\n", "	if step.Verdict != Held {\n"}},
			by:    []catch{storetest("sqlite", "jobs-with-change")},
		},
	}
}
