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
