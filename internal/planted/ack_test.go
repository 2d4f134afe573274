package planted

const tryStore = "	err := c.tryStore(batch)\n"

// ackPlants answer before it is on disk, or as if it were.
func ackPlants() []plant {
	return []plant{
		{
			guard: "ack before commit", name: "whoever waits is told before the store is asked",
			why: "a 2xx for what may never be kept (laws 1 and 2)",
			edits: []edit{{"inbox/internal/committer/lane.go", tryStore, `	for i, e := range batch {
		later, kept := *e, *e.arrival
		later.arrival, later.done = &kept, make(chan struct{})
		batch[i] = &later
		e.arrival.Outcome, e.arrival.StoredID = onceward.New, e.arrival.Event.ID
		close(e.done)
	}
` + tryStore}},
			by: []catch{committer("TestAnUnknownCommitIsNotAcknowledged", "TestACommitThatHangsIsUnknown"), faults("inbox", "TestFaults/every_call_of_a_store")},
		},
		{
			guard: "ack before commit", name: "an unknown outcome counts as stored",
			why:   "unknown is not yes (law 2)",
			edits: []edit{{"inbox/internal/committer/lane.go", "	case err == nil:\n		c.stored(batch)\n", "	case err == nil, errors.Is(err, onceward.ErrUnknownOutcome):\n		c.stored(batch)\n"}},
			by:    []catch{committer("TestAnUnknownCommitIsNotAcknowledged", "TestACommitThatHangsIsUnknown")},
		},
		{
			guard: "ack before commit", name: "SQLite: a batch is committed when the next one begins",
			why: "what was acknowledged is gone when the process ends before that (law 1)",
			edits: []edit{
				{"sqlite/session.go", "	_, err := c.exec(`commit`)\n	open = false\n", "	var err error\n	open = false\n"},
				{"sqlite/session.go", "		_, err := c.exec(`begin immediate`)\n", "		_, _ = c.exec(`commit`)\n		_, err := c.exec(`begin immediate`)\n"},
			},
			by: []catch{storetest("sqlite", "durable")},
		},
		{
			guard: "ack before commit", name: "PostgreSQL: a connection that is lost at the commit counts as committed",
			why:   "unknown is not yes (law 2)",
			edits: []edit{{"postgres/tx.go", "	return true, err\n}\n\n// isPlain", "	return false, nil\n}\n\n// isPlain"}},
			by:    []catch{faults("postgres", "TestLostAtTheCommit")},
		},
		{
			guard: "more", name: "PostgreSQL: a connection that is lost at the commit counts as refused",
			why:   "unknown is not no either: the batch may be kept, and its retry is a duplicate",
			edits: []edit{{"postgres/tx.go", "	return true, err\n}\n\n// isPlain", "	return false, err\n}\n\n// isPlain"}},
			by:    []catch{faults("postgres", "TestLostAtTheCommit")},
		},
		{
			guard: "more", name: "an arrival that has joined another is told the same",
			why:   "two deliveries of one event are both new (law 3)",
			edits: []edit{{"inbox/internal/committer/committer.go", "		if r.Outcome == onceward.New {\n", "		if r.Outcome == onceward.Undecided {\n"}},
			by:    []catch{committer("TestEqualArrivalsJoinTheOneThatWaits", "TestOneNewWhateverTheConcurrency")},
		},
	}
}
