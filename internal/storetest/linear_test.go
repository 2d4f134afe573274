package storetest

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/onceward/onceward"
)

// step is one operation of a planted history: from one moment to another, a client
// did something and was told something.
type step struct {
	from, to int64
	in       input
	out      output
}

func tells(key, body int, id int64) input { return input{op: tell, told: []said{{key, body, id}}} }
func looks(row int) input                 { return input{op: look, row: row} }

// became1 is the output of one arrival.
func became1(o onceward.Outcome, stored int64, results ...result) output {
	b := becomes{outcome: o, stored: stored}
	copy(b.results[:], results)
	return output{told: [2]becomes{b}}
}

func row0(version, facts int64, rank int) output {
	return output{rows: [familyRows]rowState{{version, facts, rank}}}
}

// TestChecker plants histories, of which nobody could say that they have another
// explanation, and their innocent siblings. Key 2 tells row 0 rank 10 with body 0
// and rank 1 with body 1; key 4 tells both rows 8, or 11.
func TestChecker(t *testing.T) {
	const whenever = 1 << 62
	applied := func(version int64, rank int) result { return result{onceward.Applied, version, rank} }
	newTen := became1(onceward.New, 1, applied(2, 10))
	dup := became1(onceward.Duplicate, 1)
	both := output{rows: [familyRows]rowState{{2, 2, 8}, {2, 2, 8}}}
	torn := output{rows: [familyRows]rowState{{2, 2, 8}, {1, 1, 0}}}
	newBoth := became1(onceward.New, 1, applied(2, 8), applied(2, 8))
	// Key 4 is claimed, its other body is noted, and row 0 is seen without key 2 before
	// a commit returns that was told that key 4 differs and key 2 is new.
	firstOfFour := became1(onceward.New, 1, applied(2, 11), applied(2, 11))
	differsAndNew := became1(onceward.Differs, 1)
	differsAndNew.told[1] = becomes{outcome: onceward.New, stored: 4, results: [familyRows]result{{onceward.Stale, 2, 11}}}
	noted := step{5, 6, input{op: resolve, told: []said{{4, 0, 2}}}, became1(onceward.Conflict, 2)}
	lateOf := func(from int64) []step {
		return []step{
			{1, 2, tells(4, 1, 1), firstOfFour}, noted, {7, 8, looks(0), row0(2, 2, 11)},
			{from, 9, input{op: tell, told: []said{{4, 0, 3}, {2, 0, 4}}}, differsAndNew},
		}
	}
	for _, c := range []struct {
		name  string
		want  porcupine.CheckResult
		steps []step
	}{
		{"one after the other", porcupine.Ok, []step{
			{1, 2, tells(2, 0, 1), newTen}, {3, 4, looks(0), row0(2, 2, 10)}, {5, 6, tells(2, 0, 2), dup},
		}},
		{"two of one event are new", porcupine.Illegal, []step{
			{1, 4, tells(2, 0, 1), newTen}, {2, 3, tells(2, 0, 2), became1(onceward.New, 2, result{onceward.Same, 2, 10})},
		}},
		{"a duplicate before the first", porcupine.Illegal, []step{{1, 2, tells(2, 0, 2), dup}, {3, 4, tells(2, 0, 1), newTen}}},
		{"a duplicate while the first is under way", porcupine.Ok, []step{{1, 4, tells(2, 0, 1), newTen}, {2, 3, tells(2, 0, 2), dup}}},
		{"a duplicate of nobody", porcupine.Illegal, []step{{1, 2, tells(2, 0, 1), newTen}, {3, 4, tells(2, 0, 2), became1(onceward.Duplicate, 2)}}},
		{"a lost update", porcupine.Illegal, []step{
			{1, 4, tells(2, 0, 1), newTen}, {2, 3, tells(4, 0, 2), became1(onceward.New, 2, applied(2, 8), applied(2, 8))},
			{5, 6, looks(0), row0(2, 3, 8)},
		}},
		{"the same without the loss", porcupine.Ok, []step{
			{1, 4, tells(2, 0, 1), became1(onceward.New, 1, applied(3, 10))}, {2, 3, tells(4, 0, 2), became1(onceward.New, 2, applied(2, 8), applied(2, 8))},
			{5, 6, looks(0), row0(3, 3, 10)},
		}},
		{"a row that goes back", porcupine.Illegal, []step{
			{1, 2, tells(2, 0, 1), newTen}, {3, 4, tells(2, 1, 2), became1(onceward.Differs, 1)}, {5, 6, looks(0), row0(3, 3, 1)},
		}},
		{"a reading of the past", porcupine.Illegal, []step{{1, 2, tells(2, 0, 1), newTen}, {3, 4, looks(0), row0(1, 1, 0)}}},
		{"a reading before its commit returns", porcupine.Ok, []step{{1, 4, tells(2, 0, 1), newTen}, {2, 3, looks(0), row0(2, 2, 10)}}},
		{"two readings in the wrong order", porcupine.Illegal, []step{
			{1, 8, tells(2, 0, 1), newTen}, {2, 3, looks(0), row0(2, 2, 10)}, {4, 5, looks(0), row0(1, 1, 0)},
		}},
		{"half of a batch is seen", porcupine.Illegal, []step{{1, 4, tells(4, 0, 1), newBoth}, {2, 3, input{op: lookAll}, torn}}},
		{"all of a batch is seen", porcupine.Ok, []step{{1, 4, tells(4, 0, 1), newBoth}, {2, 3, input{op: lookAll}, both}}},
		{"a refused commit is kept", porcupine.Illegal, []step{{1, 2, tells(2, 0, 1), output{fate: refused}}, {3, 4, tells(2, 0, 2), dup}}},
		{"an unknown commit was kept", porcupine.Ok, []step{{1, whenever, tells(2, 0, 1), output{fate: unknown}}, {3, 4, tells(2, 0, 1), dup}}},
		{"an unknown commit was not kept", porcupine.Ok, []step{{1, whenever, tells(2, 0, 1), output{fate: unknown}}, {3, 4, tells(2, 0, 1), newTen}}},
		{"an unknown commit comes late", porcupine.Ok, []step{
			{1, whenever, tells(2, 0, 1), output{fate: unknown}}, {3, 4, looks(0), row0(1, 1, 0)}, {5, 6, tells(2, 0, 2), dup},
		}},
		{"an unknown commit is kept and lost again", porcupine.Illegal, []step{
			{1, whenever, tells(2, 0, 1), output{fate: unknown}}, {3, 4, tells(2, 0, 2), dup}, {5, 6, looks(0), row0(1, 1, 0)},
		}},
		{"an unknown commit is kept before it was sent", porcupine.Illegal, []step{
			{1, 2, tells(2, 0, 2), dup}, {3, whenever, tells(2, 0, 1), output{fate: unknown}},
		}},
		{"both tries of an unknown commit are kept", porcupine.Illegal, []step{
			{1, whenever, tells(2, 0, 1), output{fate: unknown}}, {3, 4, tells(2, 0, 2), became1(onceward.New, 2, applied(2, 10))}, {5, 6, looks(0), row0(2, 3, 10)},
		}},
		{"one body is two conflicts", porcupine.Illegal, []step{
			{1, 2, tells(2, 0, 1), newTen},
			{3, 4, input{op: resolve, told: []said{{2, 1, 2}}}, became1(onceward.Conflict, 2)}, {5, 6, input{op: resolve, told: []said{{2, 1, 3}}}, became1(onceward.Conflict, 3)},
		}},
		{"a conflict, and again", porcupine.Ok, []step{
			{1, 2, tells(2, 0, 1), newTen},
			{3, 4, input{op: resolve, told: []said{{2, 1, 2}}}, became1(onceward.Conflict, 2)}, {5, 6, tells(2, 1, 3), became1(onceward.Conflict, 2)},
		}},
		{"it is noted that it differs while a commit is under way", porcupine.Ok, lateOf(4)},
		{"it was noted that it differs before a commit began", porcupine.Illegal, lateOf(7)},
	} {
		var history []porcupine.Operation
		for i, s := range c.steps {
			history = append(history, split(porcupine.Operation{ClientId: i, Input: s.in, Output: s.out, Call: s.from, Return: s.to})...)
		}
		if got := porcupine.CheckOperationsTimeout(linearModel(), history, 0); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
