package onceward

import (
	"encoding/json"
	"slices"
	"strings"
)

// Row is the state of one entity: the fold of its facts. The zero Row is that of
// an entity about which nothing has been told. A Row is not safe for concurrent
// use.
type Row struct {
	// Status is what the row shows: the derived status, else the told one.
	Status string
	// Told is the status that the senders' facts give.
	Told string
	// Why says which condition derived the status; it is not stored.
	Why string
	// Epoch is the attempt or period the row is about, if its facts name one.
	Epoch Opt
	// Version counts the applied facts; it never goes down.
	Version int64
	// Revision is the mapping that made the row.
	Revision int64
	// Reached are the statuses, folded or derived, that the row has had in its
	// epoch, in the order it had them.
	Reached []string

	status  mark
	parts   []rowPart    // sorted by field, then by
	derived []NamedValue // sorted by name, as read back
	inherit []string     // what is derived from a tie, sorted
	local   []NamedValue // sorted by name
}

type rowPart struct {
	field, by string
	mode      Mode
	value     Value
	mark
}

func (p *rowPart) compare(field, by string) int {
	if c := strings.Compare(p.field, field); c != 0 {
		return c
	}
	return strings.Compare(p.by, by)
}

func (r *Row) find(field, by string) (int, bool) {
	return slices.BinarySearchFunc(r.parts, Part{Field: field, By: by}, func(p rowPart, q Part) int {
		return p.compare(q.Field, q.By)
	})
}

// Tie lists the parts where arrival had to decide, sorted: status first, then
// fields, one `by` as field.by; and what was derived from one of them.
func (r *Row) Tie() []string {
	var tie []string
	if r.status.tie {
		tie = append(tie, StatusPart)
	}
	for i := range r.parts {
		if p := &r.parts[i]; p.tie {
			tie = append(tie, PartName(p.field, p.by, p.mode.Keyed()))
		}
	}
	for _, name := range r.inherit {
		if !slices.Contains(tie, name) {
			tie = append(tie, name)
		}
	}
	slices.SortFunc(tie, func(a, b string) int {
		switch {
		case a == b:
			return 0
		case a == StatusPart:
			return -1
		case b == StatusPart:
			return 1
		}
		return strings.Compare(a, b)
	})
	return tie
}

// told returns a field's value as its facts give it, before derivation.
func (r *Row) told(name string) Value {
	i, _ := r.find(name, "")
	if i >= len(r.parts) || r.parts[i].field != name {
		return Value{}
	}
	end := i
	for end < len(r.parts) && r.parts[end].field == name {
		end++
	}
	group := r.parts[i:end]
	switch group[0].mode {
	case Sum:
		values := make([]Value, len(group))
		for j := range group {
			values[j] = group[j].value
		}
		return sumValues(values)
	case Map:
		b := []byte{'{'}
		for j := range group {
			if j > 0 {
				b = append(b, ',')
			}
			b = appendQuoted(b, group[j].by)
			b = append(b, ':')
			b = append(b, group[j].value.json...)
		}
		return Value{string(append(b, '}'))}
	default:
		return group[0].value
	}
}

// Field returns what the row shows for a field: the derived value, else the
// folded one, else the zero Value.
func (r *Row) Field(name string) Value {
	for _, d := range r.derived {
		if d.Name == name {
			return d.Value
		}
	}
	return r.told(name)
}

// Fields lists what the row shows, sorted by name, without the local fields.
func (r *Row) Fields() []NamedValue {
	fields := make([]NamedValue, 0, len(r.parts)+len(r.derived))
	derived := r.derived
	for i := range r.parts { // both lists are sorted
		name := r.parts[i].field
		if i > 0 && r.parts[i-1].field == name {
			continue
		}
		for len(derived) > 0 && derived[0].Name < name {
			fields, derived = append(fields, derived[0]), derived[1:]
		}
		if len(derived) > 0 && derived[0].Name == name {
			continue // it stands in the told one's place
		}
		fields = append(fields, NamedValue{name, r.told(name)})
	}
	return append(fields, derived...)
}

// Local lists the fields that the application wrote, sorted by name.
func (r *Row) Local() []NamedValue { return slices.Clone(r.local) }

// LocalField is the name under which Data shows the application's own fields.
const LocalField = "local"

// Data returns the fields as one JSON object with sorted members, the
// application's under `local`.
func (r *Row) Data() json.RawMessage {
	fields := r.Fields()
	b := appendObject(make([]byte, 0, sizeOf(fields)+sizeOf(r.local)+len(LocalField)+8), fields, len(r.local) > 0)
	if len(r.local) == 0 {
		return b
	}
	b = appendQuoted(b, LocalField)
	b = append(b, ':')
	b = appendObject(b, r.local, false)
	return append(b, '}')
}

// sizeOf is about what the members take as JSON; names are hardly ever escaped.
func sizeOf(members []NamedValue) int {
	n := 2
	for _, m := range members {
		n += len(m.Name) + len(m.Value.json) + 4
	}
	return n
}

// appendObject writes the members; if open, it leaves the object open behind a
// comma for one more.
func appendObject(b []byte, members []NamedValue, open bool) []byte {
	b = append(b, '{')
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(b, m.Name)
		b = append(b, ':')
		b = append(b, m.Value.json...)
	}
	if open {
		if len(members) > 0 {
			b = append(b, ',')
		}
		return b
	}
	return append(b, '}')
}

// derive computes the derived fields and status anew.
func (r *Row) derive(k *Kind) {
	r.Status, r.Why, r.derived, r.inherit = r.Told, "", nil, nil
	if k.Derive == nil {
		return
	}
	tied := r.status.tie || slices.ContainsFunc(r.parts, func(p rowPart) bool { return p.tie })
	d := k.Derive(Folded{Status: r.Told, Field: r.told, Tied: tied})
	if d.Status != "" {
		r.Status = d.Status
	}
	r.Why = d.Why
	for _, f := range d.Fields {
		if f.Value.IsZero() {
			continue
		}
		// A derivation in Go may give any text. What is no JSON would spoil the stored
		// row, and the view with it.
		value, err := JSON([]byte(f.Value.json))
		if err != nil {
			r.Why = strings.TrimPrefix(r.Why+"; "+f.Name+" is left out: it is no JSON", "; ")
			continue
		}
		// One that says what the facts say is not derived: a row read back could not
		// tell the two apart, and would seem to have changed.
		if value.json != r.told(f.Name).json {
			r.derived = append(r.derived, NamedValue{f.Name, value})
		}
	}
	slices.SortFunc(r.derived, func(a, b NamedValue) int { return strings.Compare(a.Name, b.Name) })
	for name, read := range d.From {
		if slices.ContainsFunc(read, r.isTie) {
			r.inherit = append(r.inherit, name)
		}
	}
	slices.Sort(r.inherit)
}

// isTie reports whether a field, or one `by` of it, or the told status is a tie.
func (r *Row) isTie(name string) bool {
	if name == StatusPart {
		return r.status.tie
	}
	return slices.ContainsFunc(r.parts, func(p rowPart) bool { return p.field == name && p.tie })
}

// Explain fills in Why, which a row read back from a store lacks.
func (r *Row) Explain(k *Kind) { r.derive(k) }

// Step is what one more fact did to a row.
type Step struct {
	Verdict Verdict
	// Changed says that the status, a field or a mark is another, so that work
	// may follow. A fact that only wrote local fields is Applied and not Changed.
	Changed bool
	// From and To are the row's statuses before and after, Reached those that it
	// has for the first time in its epoch.
	From, To string
	Reached  []string
	// Order, Against and Decided tell how it was decided; see StoredFact.
	Order, Against Order
	Decided        string
}

// Add folds one more fact into the row, which must be the fold of the stored
// facts under the same kind, and raises the version if the fact is applied.
// refold makes it start from the stored facts in any case, as after a change of
// mapping. history returns the stored facts of the entity in order of arrival,
// without f and without held ones; it is called only where former values decide
// inside a tick, a higher epoch begins, or refold is true. If it fails, the row is spoilt.
func (r *Row) Add(k *Kind, f *Fact, refold bool, history func() ([]Fact, error)) (Step, error) {
	if f.Held != "" {
		return Step{Verdict: Held, From: r.Status, To: r.Status}, nil
	}
	before := *r
	before.parts = slices.Clone(r.parts)
	before.local = slices.Clone(r.local)
	step := Step{From: r.Status}
	told := ordersOf(k, f)
	older := r.older(k, f, told)
	newEpoch := f.Epoch.Set && r.Epoch.Set && f.Epoch.N > r.Epoch.N
	switch {
	case refold || newEpoch || r.needsRefold(k, f, told):
		facts, err := history()
		if err != nil {
			return Step{}, err
		}
		*r = *Fold(k, append(slices.Clip(facts), *f))
		r.Version, r.Revision = before.Version, before.Revision
		if !newEpoch {
			r.Reached = before.Reached
		}
	default:
		r.merge(k, f, told)
		r.derive(k)
	}
	step.To = r.Status
	step.Changed = !r.shows(&before)
	step.Reached = r.reach(&before, newEpoch)
	switch {
	case step.Changed || !sameNamed(r.local, before.local):
		step.Verdict = Applied
		r.Version++
	case older:
		step.Verdict = Stale
	default:
		step.Verdict = Same
	}
	step.Order, step.Against, step.Decided = r.decided(k, f, told, &before, step.Verdict)
	return step, nil
}

// factOrders are the orders of one fact: making one takes memory, and Add asks
// for them again and again.
type factOrders struct{ status, field Order }

func ordersOf(k *Kind, f *Fact) factOrders {
	o := factOrders{field: k.FieldOrder(f)}
	if k.tellsStatus(f) {
		o.status = k.StatusOrder(f)
	}
	return o
}

// older reports whether some part of the fact is older than what the row shows.
func (r *Row) older(k *Kind, f *Fact, told factOrders) bool {
	if f.Epoch.Set && r.Epoch.Set && f.Epoch.N < r.Epoch.N {
		return f.tells()
	}
	if k.tellsStatus(f) && told.status < r.status.order {
		return true
	}
	for _, p := range f.Fields {
		if k.mode(p) == Max {
			continue
		}
		if i, ok := r.find(p.Field, p.By); ok && told.field < r.parts[i].order {
			return true
		}
	}
	return false
}

func (k *Kind) mode(p Part) Mode { return k.Fields[p.Field] }

func (k *Kind) tellsStatus(f *Fact) bool {
	_, known := k.ranks[f.Status]
	return known
}

// tellsPart reports whether p is a part under this kind: a `by` where the mode
// wants one, and none elsewhere. A fact of another mapping may differ.
func (k *Kind) tellsPart(p Part) bool {
	return k.mode(p).Keyed() || p.By == ""
}

// needsRefold reports whether the fact belongs to a tick in which former values
// decide, so that all facts of the tick are needed.
func (r *Row) needsRefold(k *Kind, f *Fact, told factOrders) bool {
	if f.Epoch.Set && r.Epoch.Set && f.Epoch.N < r.Epoch.N {
		return false
	}
	if k.tellsStatus(f) && told.status == r.status.order && r.status.needsAll(f, StatusPart, "", r.Told == f.Status) {
		return true
	}
	for i, p := range f.Fields {
		if !k.tellsPart(p) || k.mode(p) == Max {
			continue
		}
		if toldTwice(f.Fields, i) {
			return true
		}
		j, ok := r.find(p.Field, p.By)
		if ok && r.parts[j].order == told.field && r.parts[j].needsAll(f, p.Field, p.By, r.parts[j].value.Equal(p.Value)) {
			return true
		}
	}
	return false
}

// toldTwice reports whether the fact tells part i again further on. The language
// cannot say that; a mapping in Go might.
func toldTwice(fields []Part, i int) bool {
	for _, q := range fields[i+1:] {
		if q.Field == fields[i].Field && q.By == fields[i].By {
			return true
		}
	}
	return false
}

// merge sets the parts in which f is newer and joins the ticks it belongs to. The
// caller has ruled out a higher epoch and what needsRefold says.
func (r *Row) merge(k *Kind, f *Fact, told factOrders) {
	r.setLocal(f)
	if f.Epoch.Set && r.Epoch.Set && f.Epoch.N < r.Epoch.N {
		return
	}
	if f.Epoch.Set {
		r.Epoch = f.Epoch
	}
	if k.tellsStatus(f) {
		switch order := told.status; {
		case order > r.status.order:
			r.Told, r.status = f.Status, newMark(k, f, StatusPart, "", order)
		case order == r.status.order && r.status.join(k, f, StatusPart, "", r.Told == f.Status):
			r.Told = f.Status
		}
	}
	for _, p := range f.Fields {
		if k.tellsPart(p) {
			r.mergePart(k, f, p, told.field)
		}
	}
}

func (r *Row) mergePart(k *Kind, f *Fact, p Part, order Order) {
	mode := k.mode(p)
	i, ok := r.find(p.Field, p.By)
	if !ok {
		part := rowPart{field: p.Field, by: p.By, mode: mode, value: p.Value}
		if mode != Max {
			part.mark = newMark(k, f, p.Field, p.By, order)
		}
		r.parts = slices.Insert(r.parts, i, part)
		return
	}
	part := &r.parts[i]
	switch {
	case mode == Max:
		if !p.Value.IsNull() && p.Value.Compare(part.value) > 0 {
			part.value = p.Value
		}
	case order > part.order:
		part.value, part.mark = p.Value, newMark(k, f, p.Field, p.By, order)
	case order == part.order && part.join(k, f, p.Field, p.By, part.value.Equal(p.Value)):
		part.value = p.Value
	}
}

func (r *Row) setLocal(f *Fact) {
	for _, p := range f.Local {
		i, ok := slices.BinarySearchFunc(r.local, p.Field, func(v NamedValue, name string) int { return strings.Compare(v.Name, name) })
		switch {
		case p.Value.IsNull() && ok:
			r.local = slices.Delete(slices.Clone(r.local), i, i+1)
		case p.Value.IsNull():
		case ok:
			r.local = slices.Clone(r.local)
			r.local[i].Value = p.Value
		default:
			r.local = slices.Insert(slices.Clone(r.local), i, NamedValue{p.Field, p.Value})
		}
	}
}

// shows reports whether two rows show the same statuses, fields and marks.
func (r *Row) shows(o *Row) bool {
	if r.Status != o.Status || r.Told != o.Told || r.Epoch != o.Epoch || r.status.tie != o.status.tie ||
		len(r.parts) != len(o.parts) || !sameNamed(r.derived, o.derived) || !slices.Equal(r.inherit, o.inherit) {
		return false
	}
	for i := range r.parts {
		p, q := &r.parts[i], &o.parts[i]
		if p.field != q.field || p.by != q.by || p.tie != q.tie || !p.value.Equal(q.value) {
			return false
		}
	}
	return true
}

func sameNamed(a, b []NamedValue) bool {
	return slices.EqualFunc(a, b, func(v, w NamedValue) bool { return v.Name == w.Name && v.Value.Equal(w.Value) })
}

// reach notes and returns the statuses that the row has for the first time in
// its epoch; a status that did not move reaches nothing.
func (r *Row) reach(before *Row, newEpoch bool) []string {
	var reached []string
	note := func(status, was string) {
		if status == "" || !newEpoch && status == was || slices.Contains(r.Reached, status) {
			return
		}
		reached = append(reached, status)
		r.Reached = append(slices.Clip(r.Reached), status)
	}
	note(r.Told, before.Told)
	note(r.Status, before.Status)
	return reached
}
