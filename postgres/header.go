package postgres

import (
	"encoding/binary"
	"errors"
	"slices"
)

// Headers are kept as they came, bytes that are no text included: the number of
// names, then for each, sorted, the name, the number of its values and the
// values. Numbers are unsigned varints; a text is its length and its bytes.

var errHeader = errors.New("stored headers cannot be read: they were cut or written by a newer program")

func encodeHeader(h map[string][]string) []byte {
	if h == nil {
		return nil
	}
	return appendHeader(nil, h)
}

func appendHeader(b []byte, h map[string][]string) []byte {
	b = binary.AppendUvarint(b, uint64(len(h)))
	var few [16]string // most senders send fewer
	names := few[:0]
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b = appendBytes(b, name)
		b = binary.AppendUvarint(b, uint64(len(h[name])))
		for _, value := range h[name] {
			b = appendBytes(b, value)
		}
	}
	return b
}

func appendBytes(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func decodeHeader(b []byte) (map[string][]string, error) {
	if b == nil {
		return nil, nil
	}
	r := headerReader{rest: b}
	h := map[string][]string{}
	for n := r.number(); n > 0; n-- {
		name := r.text()
		values := []string{}
		for m := r.number(); m > 0; m-- {
			values = append(values, r.text())
		}
		h[name] = values
	}
	if r.failed || len(r.rest) > 0 {
		return nil, errHeader
	}
	return h, nil
}

// headerReader reads stored headers; once something is missing, failed is set
// and everything further reads as nothing.
type headerReader struct {
	rest   []byte
	failed bool
}

// number reads a count or a length, neither of which is more than what follows.
func (r *headerReader) number() int {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > uint64(len(r.rest)-size) {
		r.failed, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return int(n)
}

func (r *headerReader) text() string {
	n := r.number()
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}
