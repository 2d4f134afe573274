package onceward

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The stored state of a row is what its columns do not say: the order of each
// part, the marks, and the values that Data does not show as they were told.
// Its form, all numbers as unsigned varints unless said otherwise:
//
//	byte     1, the form's version
//	epoch    0, or 1 and the epoch as a signed varint
//	reached  count, then texts
//	orders   count, then texts; the orders of the parts, each once
//	status   order's index plus 1 (0: none), flags
//	parts    count, then field, by, mode, order's index plus 1, flags, value
//	inherit  count, then texts; what is derived from a tie
//
// A text is its length and its bytes. Flags are 1 contested, 2 tie, 4 the value
// stands in Data under the field's name and is left out here, 8 a former value is
// told, 16 all facts of the tick are terminal.
const stateVersion = 1

const (
	flagContested = 1 << iota
	flagTie
	flagInData
	flagFormer
	flagSink
)

var errState = errors.New("the stored state of a row cannot be read: it was cut or written by a newer program")

// EncodeState returns what a store keeps of a row beside its columns status,
// told, version, revision and data.
func (r *Row) EncodeState() []byte {
	b := append(make([]byte, 0, 64+32*len(r.parts)), stateVersion)
	if r.Epoch.Set {
		b = binary.AppendVarint(append(b, 1), r.Epoch.N)
	} else {
		b = append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Reached)))
	for _, s := range r.Reached {
		b = appendText(b, s)
	}
	var few [4]Order // hardly ever more
	orders := r.appendOrders(few[:0])
	b = binary.AppendUvarint(b, uint64(len(orders)))
	for _, o := range orders {
		b = appendText(b, string(o))
	}
	index := func(o Order) uint64 { return uint64(slices.Index(orders, o) + 1) }
	b = append(binary.AppendUvarint(b, index(r.status.order)), r.status.flags())
	b = binary.AppendUvarint(b, uint64(len(r.parts)))
	for i := range r.parts {
		p := &r.parts[i]
		b = appendText(appendText(b, p.field), p.by)
		b = binary.AppendUvarint(append(b, byte(p.mode)), index(p.order))
		flags := p.flags()
		inData := !p.mode.Keyed() && !slices.ContainsFunc(r.derived, func(d NamedValue) bool { return d.Name == p.field })
		if inData {
			b = append(b, flags|flagInData)
			continue
		}
		b = appendText(append(b, flags), p.value.json)
	}
	b = binary.AppendUvarint(b, uint64(len(r.inherit)))
	for _, name := range r.inherit {
		b = appendText(b, name)
	}
	return b
}

// appendOrders appends the orders of the parts, each once.
func (r *Row) appendOrders(orders []Order) []Order {
	if r.status.order != "" {
		orders = append(orders, r.status.order)
	}
	for i := range r.parts {
		if o := r.parts[i].order; o != "" && !slices.Contains(orders, o) {
			orders = append(orders, o)
		}
	}
	return orders
}

func (m mark) flags() byte {
	var f byte
	if m.contested {
		f |= flagContested
	}
	if m.tie {
		f |= flagTie
	}
	if m.former {
		f |= flagFormer
	}
	if m.sink {
		f |= flagSink
	}
	return f
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// DecodeRow rebuilds a row from its columns and its stored state. data is the
// JSON object that Data gave.
func DecodeRow(status, told string, version, revision int64, data, state []byte) (*Row, error) {
	r := &Row{Status: status, Told: told, Version: version, Revision: revision}
	if len(state) == 0 {
		return r, nil
	}
	if len(data) > 0 && !json.Valid(data) {
		return nil, errors.New("the fields of a stored row are no JSON: the database was damaged or edited by hand")
	}
	fields, err := decodeData(string(data))
	if err != nil {
		return nil, err
	}
	d := stateReader{rest: string(state)} // the texts are parts of this one
	if d.byte() != stateVersion {
		return nil, errState
	}
	if d.byte() == 1 {
		r.Epoch = Some(d.varint())
	}
	for n := d.count(); n > 0; n-- {
		r.Reached = append(r.Reached, d.text())
	}
	orders := append(make([]Order, 0, 4), "")
	for n := d.count(); n > 0; n-- {
		orders = append(orders, Order(d.text()))
	}
	r.status = d.mark(orders)
	r.parts = make([]rowPart, 0, d.peekCount())
	for n := d.count(); n > 0; n-- {
		r.parts = append(r.parts, d.part(orders, fields))
	}
	for n := d.count(); n > 0; n-- {
		r.inherit = append(r.inherit, d.text())
	}
	if d.failed || len(d.rest) > 0 {
		return nil, errState
	}
	if err := r.setDecoded(fields); err != nil {
		return nil, err
	}
	return r, nil
}

// setDecoded gives the row the fields of Data that no fact tells as they are:
// the derived ones and the application's.
func (r *Row) setDecoded(fields []NamedValue) (err error) {
	for _, f := range fields {
		if f.Name == LocalField {
			if r.local, err = decodeData(f.Value.json); err != nil {
				return err
			}
			continue
		}
		told := r.told(f.Name)
		if told.IsZero() || told.json != f.Value.json {
			r.derived = append(r.derived, f)
		}
	}
	return nil
}

// decodeData splits a JSON object into its members, sorted by name.
func decodeData(data string) ([]NamedValue, error) {
	if fields, ok := splitObject(data); ok {
		return fields, nil
	}
	if strings.TrimSpace(data) == "" {
		return nil, nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(data), &raw); err != nil {
		return nil, fmt.Errorf("the fields of a stored row: %w", err)
	}
	fields := make([]NamedValue, 0, len(raw))
	for name, text := range raw {
		v, err := JSON(text)
		if err != nil {
			return nil, fmt.Errorf("field %s of a stored row: %w", name, err)
		}
		fields = append(fields, NamedValue{name, v})
	}
	slices.SortFunc(fields, func(a, b NamedValue) int { return strings.Compare(a.Name, b.Name) })
	return fields, nil
}

// splitObject splits an object in the form that Data gives, without copying it:
// compact, members sorted (local may stand last, wherever it would sort), names without
// escapes. It reports false for any other. The text must be JSON: it only finds where
// values end.
func splitObject(data string) ([]NamedValue, bool) {
	if len(data) < 2 || data[0] != '{' || data[len(data)-1] != '}' {
		return nil, false
	}
	rest := data[1 : len(data)-1]
	if rest == "" {
		return nil, true
	}
	fields := make([]NamedValue, 0, 8)
	for {
		if rest == "" || rest[0] != '"' {
			return nil, false
		}
		end := strings.IndexByte(rest[1:], '"')
		if end < 0 {
			return nil, false
		}
		name := rest[1 : 1+end]
		rest = rest[end+2:]
		late := len(fields) > 0 && fields[len(fields)-1].Name >= name
		if strings.IndexByte(name, '\\') >= 0 || len(rest) < 2 || rest[0] != ':' ||
			late && (name != LocalField || slices.ContainsFunc(fields, func(f NamedValue) bool { return f.Name == LocalField })) {
			return nil, false
		}
		n := valueEnd(rest[1:])
		if n <= 0 {
			return nil, false
		}
		fields = append(fields, NamedValue{name, Value{rest[1 : 1+n]}})
		if rest = rest[1+n:]; rest == "" {
			return fields, true
		}
		if late {
			return nil, false // local out of order, and not the last
		}
		rest = rest[1:] // the comma at which valueEnd has stopped
	}
}

// valueEnd returns the length of the JSON value that text begins with: up to a
// comma outside of it or the end; 0 if it ends nowhere or is not compact.
func valueEnd(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if i >= len(text) {
				return 0
			}
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth < 0 {
				return 0
			}
		case c == ',' && depth == 0:
			return i
		case c <= ' ':
			return 0
		}
	}
	if depth != 0 {
		return 0
	}
	return len(text)
}

// stateReader reads a stored state; once something is missing, failed is set
// and everything further reads as nothing.
type stateReader struct {
	rest   string
	failed bool
}

func (d *stateReader) fail() { d.failed, d.rest = true, "" }

func (d *stateReader) byte() byte {
	if len(d.rest) == 0 {
		d.fail()
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *stateReader) varint() int64 {
	u := d.uvarint()
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v
}

// uvarint is binary.Uvarint over a text.
func (d *stateReader) uvarint() uint64 {
	v := uint64(0)
	for i := range min(len(d.rest), binary.MaxVarintLen64) {
		b := d.rest[i]
		if i == binary.MaxVarintLen64-1 && b > 1 {
			break // more than 64 bits
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			d.rest = d.rest[i+1:]
			return v
		}
	}
	d.fail()
	return 0
}

// count reads how many of something follow; each takes a byte at least, which
// bounds what a damaged state can ask for.
func (d *stateReader) count() int {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *stateReader) peekCount() int {
	ahead := *d
	return ahead.count()
}

func (d *stateReader) text() string {
	n := d.count()
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

func (d *stateReader) mark(orders []Order) mark {
	i := d.uvarint()
	flags := d.byte()
	if i >= uint64(len(orders)) {
		d.fail()
		return mark{}
	}
	return markOf(orders[i], flags)
}

func markOf(o Order, flags byte) mark {
	return mark{
		order: o, contested: flags&flagContested != 0, tie: flags&flagTie != 0,
		former: flags&flagFormer != 0, sink: flags&flagSink != 0,
	}
}

func (d *stateReader) part(orders []Order, fields []NamedValue) rowPart {
	p := rowPart{field: d.text(), by: d.text(), mode: Mode(d.byte())}
	i := d.uvarint()
	flags := d.byte()
	if i >= uint64(len(orders)) {
		d.fail()
		return p
	}
	p.mark = markOf(orders[i], flags)
	if flags&flagInData == 0 {
		p.value = Value{d.text()}
		return p
	}
	j := slices.IndexFunc(fields, func(f NamedValue) bool { return f.Name == p.field })
	if j < 0 {
		d.fail()
		return p
	}
	p.value = fields[j].Value
	return p
}
