package onceward

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"
)

// Opt is a whole number that may be missing. The zero Opt is missing.
type Opt struct {
	N   int64
	Set bool
}

// Some returns an Opt that is n.
func Some(n int64) Opt { return Opt{n, true} }

// Instant returns t as the Opt of a time component: nanoseconds since 1970 UTC.
// Years outside 1678 to 2261 do not fit and give a missing Opt.
func Instant(t time.Time) Opt {
	if y := t.UTC().Year(); y < 1678 || y > 2261 {
		return Opt{}
	}
	return Some(t.UnixNano())
}

// Time returns the instant that an Opt of nanoseconds is.
func (o Opt) Time() time.Time {
	if !o.Set {
		return time.Time{}
	}
	return time.Unix(0, o.N).UTC()
}

// MarshalJSON writes the number, or null if it is missing.
func (o Opt) MarshalJSON() ([]byte, error) {
	if !o.Set {
		return []byte("null"), nil
	}
	return json.Marshal(o.N)
}

// UnmarshalJSON reads a whole number or null.
func (o *Opt) UnmarshalJSON(text []byte) error {
	*o = Opt{}
	if string(text) == "null" {
		return nil
	}
	if err := json.Unmarshal(text, &o.N); err != nil {
		return err
	}
	o.Set = true
	return nil
}

// StatusPart is the name of the status among the parts of a row. No field may
// be called so.
const StatusPart = "status"

// Part is one piece of a row and a value told for it: a field, one `by` of a
// sum or map field, or, in Was, the status (its Field is StatusPart).
type Part struct {
	Field string
	By    string // only for modes with a `by`
	Value Value
}

// PartName returns how a part is shown and named in a tie: status, a field, or
// field.by.
func PartName(field, by string, keyed bool) string {
	if keyed {
		return field + "." + by
	}
	return field
}

// Fact is what one event says about one entity. It keeps the word, the instant
// and the number that were told, never a rank, so that it can be folded again
// by another mapping.
type Fact struct {
	// Rule is the entry of the provider file that made the fact.
	Rule string
	// Kind and Key name the entity, within the event's source and scope. Both
	// are empty if the fact is held and they could not be computed.
	Kind, Key string
	// Epoch, Sequence and Time are the components told; Time is in nanoseconds
	// since 1970.
	Epoch, Sequence, Time Opt
	// Hint marks what may be an old copy: it creates and fills in, and never
	// overwrites what a firm fact has set.
	Hint bool
	// Status is the state told, "" for none.
	Status string
	// Fields are the parts told, without the status.
	Fields []Part
	// Was are the former values that the sender says this fact replaced, the
	// status as StatusPart.
	Was []Part
	// Local are fields that the application writes; senders cannot.
	Local []Part
	// Held, if not empty, says why the fact could not be computed. Such a fact
	// is kept and applied to nothing.
	Held string
	// Notes say which fields failed and were left out.
	Notes []string
}

// tells reports whether the fact says anything that a row shows.
func (f *Fact) tells() bool {
	return f.Status != "" || len(f.Fields) > 0 || len(f.Local) > 0
}

func (f *Fact) was(field, by string) (Value, bool) {
	for _, p := range f.Was {
		if p.Field == field && p.By == by {
			return p.Value, true
		}
	}
	return Value{}, false
}

// firm reports whether the fact may overwrite: it is not a hint, and its first
// component was told.
func (k *Kind) firm(f *Fact) bool {
	if f.Hint {
		return false
	}
	_, told := k.component(f, k.Order[0])
	return told
}

// component returns what the fact tells for c.
func (k *Kind) component(f *Fact, c Component) (int64, bool) {
	switch c {
	case Sequence:
		return f.Sequence.N, f.Sequence.Set
	case Time:
		return f.Time.N, f.Time.Set
	default:
		if f.Status == "" {
			return 0, false
		}
		r, known := k.ranks[f.Status]
		return int64(r), known
	}
}

// Order is a comparable tuple: of two facts of one entity, under one mapping,
// the one with the greater Order is the newer word. Compare with < and ==; a
// missing component sorts before everything in its place. The tuple is
// (epoch, firm, components...) for a field, and for the status
// (epoch, terminal, firm, components...).
type Order string

const orderNumber = 9 // bytes of a number: a presence byte and eight of value

func appendOpt(dst []byte, n int64, set bool) []byte {
	if !set {
		return append(dst, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	dst = append(dst, 1)
	return binary.BigEndian.AppendUint64(dst, uint64(n)^(1<<63)) // flips the sign: bytes sort as numbers
}

func appendFlag(dst []byte, set bool) []byte {
	if set {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// FieldOrder returns the order of the fact's fields.
func (k *Kind) FieldOrder(f *Fact) Order { return k.order(f, false) }

// StatusOrder returns the order of the fact's status.
func (k *Kind) StatusOrder(f *Fact) Order { return k.order(f, true) }

func (k *Kind) order(f *Fact, status bool) Order {
	b := make([]byte, 0, 2+orderNumber*(1+len(k.Order)))
	b = appendOpt(b, f.Epoch.N, f.Epoch.Set)
	if status {
		b = appendFlag(b, k.terminal[f.Status])
	}
	b = appendFlag(b, k.firm(f))
	for _, c := range k.Order {
		n, set := k.component(f, c)
		b = appendOpt(b, n, set)
	}
	return Order(b)
}

// OrderPart is one component of an order, taken apart for people.
type OrderPart struct {
	// Name is epoch, terminal, firm, time, sequence or rank.
	Name string
	// Value is missing, 0 or 1 for terminal and firm, nanoseconds for time.
	Value Opt
}

// Parts takes an order of this kind apart; status says whether it is one of a
// status. It returns nil for the empty order and for one of another shape.
func (k *Kind) Parts(o Order, status bool) []OrderPart {
	want := 1 + orderNumber*(1+len(k.Order))
	if status {
		want++
	}
	if len(o) != want {
		return nil
	}
	var parts []OrderPart
	rest := []byte(o)
	number := func(name string) {
		p := OrderPart{Name: name}
		if rest[0] == 1 {
			p.Value = Some(int64(binary.BigEndian.Uint64(rest[1:9]) ^ (1 << 63)))
		}
		parts, rest = append(parts, p), rest[orderNumber:]
	}
	flag := func(name string) {
		parts, rest = append(parts, OrderPart{name, Some(int64(rest[0]))}), rest[1:]
	}
	number("epoch")
	if status {
		flag("terminal")
	}
	flag("firm")
	for _, c := range k.Order {
		number(c.String())
	}
	return parts
}

// Decider returns the name of the component in which two orders first differ,
// "" if they are equal or of different shapes.
func (k *Kind) Decider(a, b Order, status bool) string {
	p, q := k.Parts(a, status), k.Parts(b, status)
	if p == nil || q == nil {
		return ""
	}
	for i := range p {
		if p[i].Value != q[i].Value {
			return p[i].Name
		}
	}
	return ""
}

type factJSON struct {
	Rule     string      `json:"rule,omitempty"`
	Kind     string      `json:"kind,omitempty"`
	Key      string      `json:"key,omitempty"`
	Epoch    *int64      `json:"epoch,omitempty"`
	Sequence *int64      `json:"sequence,omitempty"`
	Time     *int64      `json:"time,omitempty"`
	Hint     bool        `json:"hint,omitempty"`
	Status   string      `json:"status,omitempty"`
	Fields   []partTuple `json:"fields,omitempty"`
	Was      []partTuple `json:"was,omitempty"`
	Local    []partTuple `json:"local,omitempty"`
	Held     string      `json:"held,omitempty"`
	Notes    []string    `json:"notes,omitempty"`
}

type partTuple [3]Value

// MarshalJSON is AppendJSON, which stores call directly: json.Marshal escapes what
// it returns for HTML, and the values are other texts then.
func (f Fact) MarshalJSON() ([]byte, error) { return f.AppendJSON(nil), nil }

// UnmarshalJSON reads what AppendJSON writes.
func (f *Fact) UnmarshalJSON(text []byte) error {
	var j factJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("fact: %w", err)
	}
	*f = Fact{
		Rule: j.Rule, Kind: j.Kind, Key: j.Key,
		Epoch: optOf(j.Epoch), Sequence: optOf(j.Sequence), Time: optOf(j.Time),
		Hint: j.Hint, Status: j.Status,
		Fields: parts(j.Fields), Was: parts(j.Was), Local: parts(j.Local),
		Held: j.Held, Notes: j.Notes,
	}
	return nil
}

func optOf(n *int64) Opt {
	if n == nil {
		return Opt{}
	}
	return Some(*n)
}

func parts(tuples []partTuple) []Part {
	var out []Part
	for _, t := range tuples {
		field, _ := t[0].Text()
		by, _ := t[1].Text()
		out = append(out, Part{field, by, t[2]})
	}
	return out
}

// SameFacts reports whether two lists of facts say the same about the same
// entities, whatever rules and notes made them: the test that tells a duplicate
// with other bytes from a conflict.
func SameFacts(a, b []Fact) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].same(&b[i]) {
			return false
		}
	}
	return true
}

func (f *Fact) same(g *Fact) bool {
	return f.Kind == g.Kind && f.Key == g.Key && f.Epoch == g.Epoch && f.Sequence == g.Sequence &&
		f.Time == g.Time && f.Hint == g.Hint && f.Status == g.Status && f.Held == g.Held &&
		sameParts(f.Fields, g.Fields) && sameParts(f.Was, g.Was) && sameParts(f.Local, g.Local)
}

func sameParts(a, b []Part) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Field != b[i].Field || a[i].By != b[i].By || !a[i].Value.Equal(b[i].Value) {
			return false
		}
	}
	return true
}
