package onceward

// ShownPart is a part of a row as the laws see it.
type ShownPart struct {
	Name  string
	Value Value
}

// PartsOf lists the told parts of a row, one `by` of a field each, without the
// status.
func PartsOf(r *Row) []ShownPart {
	var parts []ShownPart
	for i := range r.parts {
		p := &r.parts[i]
		parts = append(parts, ShownPart{PartName(p.field, p.by, p.mode.Keyed()), p.value})
	}
	return parts
}

// FactJSON is a fact in the form that encoding/json reads and writes.
func FactJSON(f Fact) any {
	number := func(o Opt) *int64 {
		if !o.Set {
			return nil
		}
		return &o.N
	}
	tuples := func(parts []Part) (all []partTuple) {
		for _, p := range parts {
			all = append(all, partTuple{String(p.Field), String(p.By), p.Value})
		}
		return all
	}
	return factJSON{
		Rule: f.Rule, Kind: f.Kind, Key: f.Key, Epoch: number(f.Epoch), Sequence: number(f.Sequence), Time: number(f.Time),
		Hint: f.Hint, Status: f.Status, Fields: tuples(f.Fields), Was: tuples(f.Was), Local: tuples(f.Local), Held: f.Held, Notes: f.Notes,
	}
}

// SplitObject is how the stored fields of a row are read, if they have the form that
// Data gives.
var SplitObject = splitObject
