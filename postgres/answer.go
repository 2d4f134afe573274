package postgres

import (
	"encoding/binary"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// answer reads the rows that a statement returned in binary form, column by
// column in their order. Once a column is not what it should be, err is set and
// everything further reads as nothing.
type answer struct {
	rows   *pgconn.ResultReader
	values [][]byte
	at     int
	err    error
}

var errAnswer = errors.New("the server's answer has another form than was asked for")

// fail makes err the outcome unless there is another already.
func (a *answer) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// next steps to the next row.
func (a *answer) next() bool {
	if a.err != nil || !a.rows.NextRow() {
		return false
	}
	a.values, a.at = a.rows.Values(), 0
	return true
}

// bytes returns a column as it is, nil if it is null; valid until the next row.
func (a *answer) bytes() []byte {
	if a.at >= len(a.values) {
		a.fail(errAnswer)
		return nil
	}
	a.at++
	return a.values[a.at-1]
}

func (a *answer) fixed(size int) []byte {
	b := a.bytes()
	if len(b) != size {
		a.fail(errAnswer)
		return make([]byte, size)
	}
	return b
}

func (a *answer) uuid() [16]byte { return [16]byte(a.fixed(16)) }

func (a *answer) bigint() int64 { return int64(binary.BigEndian.Uint64(a.fixed(8))) }

func (a *answer) smallint() int { return int(int16(binary.BigEndian.Uint16(a.fixed(2)))) }

func (a *answer) text() string { return string(a.bytes()) }

// uuids reads an array, null as an empty one.
func (a *answer) uuids(each func(id [16]byte)) {
	const header, element = 20, 4 + 16
	b := a.bytes()
	if b == nil {
		return
	}
	if len(b) < header || binary.BigEndian.Uint32(b) != 1 || len(b) != header+element*int(binary.BigEndian.Uint32(b[12:])) {
		a.fail(errAnswer)
		return
	}
	for b = b[header:]; len(b) > 0; b = b[element:] {
		each([16]byte(b[4:element]))
	}
}
