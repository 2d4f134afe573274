package storetest

import (
	"fmt"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/onceward/onceward"
)

// The histories are about a family of two rows and a few event keys, each of
// which may come with either of two bodies.
const (
	familyRows = 2
	familyKeys = 6
	ranks      = 12 // statuses of the rows
)

// input is one operation on a family.
type input struct {
	op op
	// told are the arrivals of a tell, in one commit, or the one of a resolve.
	told []said
	// row is the one that a look is at.
	row int
}

type op uint8

const (
	tell    op = iota // events, in one commit
	resolve           // the answer to the outcome Differs of one event
	look              // at one row
	lookAll           // at all rows, at one moment
)

// said is one arrival of a key, with one of its bodies.
type said struct {
	key, body int
	id        int64
}

// facts are what a key's body tells, as pairs of a row and a rank: of every third
// key both bodies tell the same, of every third one both rows are told.
func (s said) facts() [][2]int {
	switch s.key % 3 {
	case 0:
		return [][2]int{{s.key % familyRows, s.key * 5 % ranks}}
	case 1:
		rank := (s.key*5 + s.body*3) % ranks
		return [][2]int{{0, rank}, {1, rank}}
	}
	return [][2]int{{s.key % familyRows, (s.key*5 + s.body*3) % ranks}}
}

// resolution is what a comparison of the key's two bodies comes to.
func (s said) resolution() onceward.Resolution {
	if s.key%3 == 0 {
		return onceward.ResolvedDuplicate
	}
	return onceward.ResolvedConflict
}

// output is what an operation gave.
type output struct {
	fate fate
	told [2]becomes
	rows [familyRows]rowState
}

// fate says what is known of the commit of a tell or a resolve.
type fate uint8

const (
	settled fate = iota
	refused      // nothing of it is kept
	unknown      // all or nothing of it is kept, from any moment after its call on
)

// becomes is what became of one arrival.
type becomes struct {
	outcome onceward.Outcome
	stored  int64
	results [familyRows]result
}

type result struct {
	verdict onceward.Verdict
	version int64
	rank    int
}

// family is the state of the model.
type family struct {
	keys [familyKeys]keyState
	rows [familyRows]rowState
}

// keyState is who claimed a key, and what is noted about its other body.
type keyState struct {
	owner   int64
	body    int
	noted   onceward.Outcome
	notedBy int64
}

type rowState struct {
	version, facts int64
	rank           int
}

// newborn is a family whose rows are there, with one fact of the lowest status.
func newborn() family {
	var f family
	for i := range f.rows {
		f.rows[i] = rowState{version: 1, facts: 1}
	}
	return f
}

// after is the sequential truth: what one operation does and gives.
func (f family) after(in input) (family, output) {
	var out output
	switch in.op {
	case look:
		out.rows[in.row] = f.rows[in.row]
	case lookAll:
		out.rows = f.rows
	case resolve:
		out.told[0] = f.note(in.told[0])
	default:
		for i, s := range in.told {
			out.told[i] = f.tell(s)
		}
	}
	return f, out
}

func (f *family) tell(s said) becomes {
	key := &f.keys[s.key]
	switch {
	case key.owner == 0:
		key.owner, key.body = s.id, s.body
		b := becomes{outcome: onceward.New, stored: s.id}
		for i, fact := range s.facts() {
			b.results[i] = f.rows[fact[0]].add(fact[1])
		}
		return b
	case key.body == s.body:
		return becomes{outcome: onceward.Duplicate, stored: key.owner}
	case key.noted == onceward.Undecided:
		return becomes{outcome: onceward.Differs, stored: key.owner}
	}
	return key.other()
}

// note is the first to say what the key's other body is, or is told so.
func (f *family) note(s said) becomes {
	key := &f.keys[s.key]
	if key.noted == onceward.Undecided {
		key.noted, key.notedBy = onceward.Duplicate, s.id
		if s.resolution() == onceward.ResolvedConflict {
			key.noted = onceward.Conflict
		}
	}
	return key.other()
}

// other is what becomes of the body that is not the claim's.
func (k keyState) other() becomes {
	if k.noted == onceward.Conflict {
		return becomes{outcome: onceward.Conflict, stored: k.notedBy}
	}
	return becomes{outcome: onceward.Duplicate, stored: k.owner}
}

func (r *rowState) add(rank int) result {
	r.facts++
	verdict := onceward.Stale
	switch {
	case rank > r.rank:
		verdict = onceward.Applied
		r.version++
		r.rank = rank
	case rank == r.rank:
		verdict = onceward.Same
	}
	return result{verdict, r.version, r.rank}
}

// split takes apart what is not one moment of an operation. That bytes differ is a
// reading within the call, from which nothing follows but the caller's comparison: a
// commit that takes other events in decides about those later, under their locks.
func split(operation porcupine.Operation) []porcupine.Operation {
	in, out := operation.Input.(input), operation.Output.(output)
	if in.op != tell || out.fate != settled {
		return []porcupine.Operation{operation}
	}
	var parts []porcupine.Operation
	rest, became := input{op: tell}, output{}
	for i, s := range in.told {
		if b := out.told[i]; b.outcome == onceward.Differs {
			part := operation
			part.Input, part.Output = input{op: tell, told: []said{s}}, output{told: [2]becomes{b}}
			parts = append(parts, part)
			continue
		}
		became.told[len(rest.told)] = out.told[i]
		rest.told = append(rest.told, s)
	}
	if len(rest.told) > 0 {
		operation.Input, operation.Output = rest, became
		parts = append(parts, operation)
	}
	return parts
}

// describe writes an operation for people: k2b1#7 is event 7, key 2 with body 1.
func describe(in input, out output) string {
	var b strings.Builder
	switch in.op {
	case look:
		fmt.Fprintf(&b, "look at row %d: %+v", in.row, out.rows[in.row])
	case lookAll:
		fmt.Fprintf(&b, "look at all: %+v", out.rows)
	default:
		fmt.Fprintf(&b, "%s, %s:", []string{tell: "tell", resolve: "resolve"}[in.op], []string{"settled", "refused", "unknown"}[out.fate])
		for i, s := range in.told {
			fmt.Fprintf(&b, " k%db%d#%d %v of #%d", s.key, s.body, s.id, out.told[i].outcome, out.told[i].stored)
			for _, r := range out.told[i].results {
				if r.verdict != 0 {
					fmt.Fprintf(&b, " %v %d at %d", r.verdict, r.rank, r.version)
				}
			}
		}
	}
	return b.String()
}

// linearModel is the model of a family for porcupine. A commit of unknown outcome
// is one that may be explained as kept or as not kept.
func linearModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{newborn()} },
		Step: func(state, in, out any) []any {
			s := state.(family)
			next, want := s.after(in.(input))
			switch got := out.(output); {
			case got.fate == unknown && next == s:
				return []any{s}
			case got.fate == unknown:
				return []any{s, next}
			case got.fate == refused:
				return []any{s}
			case got == want:
				return []any{next}
			}
			return nil
		},
		Equal:             func(a, b any) bool { return a == b },
		DescribeOperation: func(in, out any) string { return describe(in.(input), out.(output)) },
	}
	return model.ToModel()
}
