package postgres

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// query is a statement about rows that a batch has, in two forms: for one row its
// columns are plain parameters, for several each column is an array.
type query struct{ one, many string }

// query makes both forms of a statement, in which {input} stands for the select of
// the rows. Their types are given in order; other parameters come after them.
//
// Arrays are taken apart in the select list, which hands rows on one by one. In
// FROM each array would be copied out first, at three times the cost.
func (n names) query(sql, types string) query {
	return query{n.form(sql, types, plain), n.form(sql, types, arrays)}
}

// How a form has a column, by number and type.
const plain, arrays = "$%d::%s", "unnest($%d::%s[])"

func (n names) form(sql, types, column string) string {
	var columns []string
	for i, t := range strings.Fields(types) {
		columns = append(columns, fmt.Sprintf(column, i+1, t))
	}
	return n.sql(strings.Replace(sql, "{input}", "select "+strings.Join(columns, ", "), 1))
}

// of returns the form for so many rows.
func (q query) of(rows int) string {
	if rows == 1 {
		return q.one
	}
	return q.many
}

// params are parameters as the protocol has them in binary form, those of all
// statements of a pipeline in one piece of memory.
type params struct {
	buf  []byte
	each []param
}

// param is where a parameter stands. One of no length below 0 is null.
type param struct {
	oid      uint32
	from, to int
}

// value returns a parameter, valid until another one is added.
func (p *params) value(i int) []byte {
	at := p.each[i]
	if at.to < at.from {
		return nil
	}
	return p.buf[at.from:at.to:at.to]
}

// input adds the parameters of one statement: the columns of its rows, each with
// a function that returns the value of row i, and then what else it has.
type input struct {
	params *params
	rows   int
	first  int // where its parameters begin
}

func (p *params) input(rows int) input { return input{p, rows, len(p.each)} }

// begin starts a column, or a plain parameter if there is one row.
func (in input) begin(element, array uint32) {
	p := in.params
	if in.rows == 1 {
		p.each = append(p.each, param{oid: element, from: len(p.buf) + 4}) // behind its length
		return
	}
	p.each = append(p.each, param{oid: array, from: len(p.buf)})
	if in.rows == 0 {
		p.buf = append(p.buf, make([]byte, 8)...) // no dimensions, no nulls
		p.buf = binary.BigEndian.AppendUint32(p.buf, element)
		return
	}
	for _, n := range [...]uint32{1, 0, element, uint32(in.rows), 1} { // dimensions, nulls, type, length, lower bound
		p.buf = binary.BigEndian.AppendUint32(p.buf, n)
	}
}

func (in input) end() { in.params.each[len(in.params.each)-1].to = len(in.params.buf) }

func (in input) uuids(get func(i int) [16]byte) {
	in.begin(pgtype.UUIDOID, pgtype.UUIDArrayOID)
	for i := range in.rows {
		id := get(i)
		in.params.buf = append(binary.BigEndian.AppendUint32(in.params.buf, 16), id[:]...)
	}
	in.end()
}

func (in input) bigints(get func(i int) int64) {
	in.begin(pgtype.Int8OID, pgtype.Int8ArrayOID)
	for i := range in.rows {
		in.params.addBigint(get(i))
	}
	in.end()
}

func (p *params) addBigint(n int64) {
	p.buf = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(p.buf, 8), uint64(n))
}

func (in input) integers(get func(i int) int) {
	in.begin(pgtype.Int4OID, pgtype.Int4ArrayOID)
	for i := range in.rows {
		in.params.buf = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(in.params.buf, 4), uint32(int32(get(i))))
	}
	in.end()
}

func (in input) smallints(get func(i int) int) {
	in.begin(pgtype.Int2OID, pgtype.Int2ArrayOID)
	for i := range in.rows {
		in.params.buf = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(in.params.buf, 2), uint16(int16(get(i))))
	}
	in.end()
}

func (in input) booleans(get func(i int) bool) {
	in.begin(pgtype.BoolOID, pgtype.BoolArrayOID)
	for i := range in.rows {
		b := byte(0)
		if get(i) {
			b = 1
		}
		in.params.buf = append(binary.BigEndian.AppendUint32(in.params.buf, 1), b)
	}
	in.end()
}

func (in input) texts(get func(i int) string) {
	in.begin(pgtype.TextOID, pgtype.TextArrayOID)
	for i := range in.rows {
		s := get(i)
		in.params.buf = append(binary.BigEndian.AppendUint32(in.params.buf, uint32(len(s))), s...)
	}
	in.end()
}

// byteas adds bytes, each by appending them, or false for null.
func (in input) byteas(appendTo func(b []byte, i int) (_ []byte, ok bool)) {
	in.begin(pgtype.ByteaOID, pgtype.ByteaArrayOID)
	p := in.params
	for i := range in.rows {
		at := len(p.buf)
		b, ok := appendTo(append(p.buf, 0, 0, 0, 0), i)
		length := uint32(len(b) - at - 4)
		if !ok {
			length = ^uint32(0)
		}
		p.buf = b
		binary.BigEndian.PutUint32(p.buf[at:], length)
		if !ok && in.rows == 1 {
			p.each[len(p.each)-1].to = -1
			return
		}
	}
	in.end()
}

// optionals adds numbers that may be null.
func (in input) optionals(get func(i int) (n int64, ok bool)) {
	in.begin(pgtype.Int8OID, pgtype.Int8ArrayOID)
	for i := range in.rows {
		n, ok := get(i)
		if ok {
			in.params.addBigint(n)
			continue
		}
		in.params.buf = binary.BigEndian.AppendUint32(in.params.buf, ^uint32(0))
		if in.rows == 1 {
			in.params.each[len(in.params.each)-1].to = -1
			return
		}
	}
	in.end()
}

// epoch is what the server counts its microseconds from, in Unix seconds.
const epoch = 946684800

func (in input) times(get func(i int) time.Time) {
	in.begin(pgtype.TimestamptzOID, pgtype.TimestamptzArrayOID)
	for i := range in.rows {
		t := get(i)
		in.params.addBigint((t.Unix()-epoch)*1e6 + int64(t.Nanosecond()/1000))
	}
	in.end()
}

// The plain parameters that follow the columns.

func (in input) bigint(n int64) {
	input{in.params, 1, 0}.bigints(func(int) int64 { return n })
}

func (in input) time(t time.Time) {
	input{in.params, 1, 0}.times(func(int) time.Time { return t })
}

func (in input) text(s string) {
	input{in.params, 1, 0}.texts(func(int) string { return s })
}
