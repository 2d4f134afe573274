package verify

import (
	"fmt"
	"slices"
	"strings"
)

const (
	holeSignature = "signature"
	holeTimestamp = "timestamp"
	holeKid       = "kid"
)

// format is a compiled `format`: how a value holds signatures and what goes with
// them. It is immutable.
type format struct {
	separator string
	split     bool     // whether a value is cut at the separator
	comma     string   // what stands at the commas of a value; "" if it has none
	pieces    []piece  // as written
	tries     []int    // positions of pieces, in the order in which they are tried
	holes     []string // names, in the order of the text; pieces refer to them by position
}

// piece is one piece of a format: literals[0] hole literals[1] hole ... literals[n].
type piece struct {
	text     string
	literals []string
	holes    []int
}

// fault is a place in one text of the file, what is wrong there, and the likely fix.
type fault struct {
	offset    int
	msg, hint string
}

// parseFormat compiles the text of `format`. A value is cut at the separator if
// split says so; otherwise it is one piece.
func parseFormat(text, separator string, split bool) (*format, *fault) {
	f := &format{separator: separator, split: split}
	texts := []string{text}
	if split {
		texts = strings.Split(text, separator)
	}
	offset := 0
	for _, t := range texts {
		trimmed := trimBlank(t)
		if trimmed == "" {
			return nil, &fault{offset, "a piece of the format is empty", ""}
		}
		p, flt := f.parsePiece(trimmed)
		if flt != nil {
			flt.offset += offset + strings.Index(t, trimmed)
			return nil, flt
		}
		f.pieces = append(f.pieces, p)
		offset += len(t) + len(separator)
	}
	if f.hole(holeSignature) < 0 {
		return nil, &fault{0, fmt.Sprintf("{%s} must stand in the format", holeSignature), "as in sha256={signature}"}
	}
	if a, b, ok := f.orderTries(); !ok {
		return nil, &fault{strings.LastIndex(text, b.text), fmt.Sprintf("the pieces %s and %s cannot be told apart", a.text, b.text), "pieces may come in any order, so each needs a beginning of its own, as in t={timestamp}"}
	}
	switch {
	case split && strings.Contains(separator, ","):
		f.comma = separator
	case strings.Contains(text, ","):
		f.comma = ","
	}
	return f, nil
}

// orderTries puts the piece with the longest beginning first, so that
// `v1={signature}` is not taken by a bare `{timestamp}` beside it. It returns two
// pieces that no order can tell apart, if there are any.
func (f *format) orderTries() (a, b piece, ok bool) {
	for i := range f.pieces {
		f.tries = append(f.tries, i)
	}
	slices.SortStableFunc(f.tries, func(i, j int) int {
		return len(f.pieces[j].literals[0]) - len(f.pieces[i].literals[0])
	})
	for i, a := range f.pieces {
		for _, b := range f.pieces[i+1:] {
			if len(a.holes) > 0 && len(b.holes) > 0 && a.literals[0] == b.literals[0] {
				return a, b, false
			}
		}
	}
	return piece{}, piece{}, true
}

func (f *format) parsePiece(text string) (piece, *fault) {
	p := piece{text: text}
	rest := text
	for {
		open := strings.IndexByte(rest, '{')
		if open < 0 {
			break
		}
		at := len(text) - len(rest) + open
		length := strings.IndexByte(rest[open:], '}')
		if length < 0 {
			return p, &fault{at, "this hole is not closed; a } is missing", ""}
		}
		name := strings.TrimSpace(rest[open+1 : open+length])
		if !isHoleName(name) {
			return p, &fault{at, fmt.Sprintf("a hole of the format is a name, as in {%s}", holeSignature), "expressions stand in `signed`"}
		}
		if len(p.holes) > 0 && open == 0 {
			return p, &fault{at, "two holes need a text between them", ""}
		}
		if slices.Contains(f.holes, name) {
			return p, &fault{at, fmt.Sprintf("the hole {%s} stands twice", name), "repeated pieces of a value are read without that"}
		}
		p.literals = append(p.literals, rest[:open])
		p.holes = append(p.holes, len(f.holes))
		f.holes = append(f.holes, name)
		rest = rest[open+length+1:]
	}
	p.literals = append(p.literals, rest)
	return p, nil
}

func isHoleName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// hole returns the position of a hole, -1 if the format has none of this name.
func (f *format) hole(name string) int { return slices.Index(f.holes, name) }

// match reads one piece of a value into holes and reports whether it is of this
// form. A hole ends at the first place where the text after it stands.
func (p piece) match(value string, holes []string) bool {
	rest, ok := strings.CutPrefix(value, p.literals[0])
	if !ok {
		return false
	}
	for i, hole := range p.holes {
		literal := p.literals[i+1]
		if i == len(p.holes)-1 {
			if rest, ok = strings.CutSuffix(rest, literal); ok {
				holes[hole] = rest
			}
			return ok
		}
		end := strings.Index(rest, literal)
		if end < 0 {
			return false
		}
		holes[hole] = rest[:end]
		rest = rest[end+len(literal):]
	}
	return rest == ""
}

// candidate is one signature as text with what stands beside it, by hole.
type candidate struct {
	signature string
	holes     []string
}

// read takes a value apart. Pieces may come in any order, repeat and be unknown.
// A hole that shares its piece with the signature belongs to that signature, any
// other to all of them; a hole that is not there is empty. The error is a sentence
// about the format, without any part of the value.
func (f *format) read(value string) ([]candidate, error) {
	if len(value) > maxValueBytes {
		return nil, fmt.Errorf("is longer than %d bytes", maxValueBytes)
	}
	if f.split && strings.Count(value, f.separator) >= maxPieces {
		return nil, fmt.Errorf("has more than %d pieces", maxPieces)
	}
	signature := f.hole(holeSignature)
	shared, holes := make([]string, len(f.holes)), make([]string, len(f.holes))
	marks := make([]bool, len(f.holes)+len(f.pieces))
	given, seen := marks[:len(f.holes)], marks[len(f.holes):]
	var found []candidate
	var own []int // the holes in the signature's piece
	for rest, more := value, true; more; {
		part := rest
		if more = f.split; more {
			part, rest, more = strings.Cut(rest, f.separator)
		}
		part = trimBlank(part)
		i := f.fitting(part, holes)
		if i < 0 {
			continue
		}
		seen[i] = true
		if p := f.pieces[i]; slices.Contains(p.holes, signature) {
			found = append(found, candidate{holes[signature], slices.Clone(holes)})
			own = p.holes
			continue
		}
		for _, hole := range f.pieces[i].holes {
			if given[hole] && shared[hole] != holes[hole] {
				return nil, fmt.Errorf("holds two different values for {%s}", f.holes[hole])
			}
			shared[hole], given[hole] = holes[hole], true
		}
	}
	for i, p := range f.pieces {
		if !seen[i] && len(p.holes) == 0 {
			return nil, fmt.Errorf("has no piece %s", p.text)
		}
	}
	for _, c := range found {
		for hole := range c.holes {
			if !slices.Contains(own, hole) {
				c.holes[hole] = shared[hole]
			}
		}
		c.holes[signature] = "" // so that signatures with equal surroundings share one message
	}
	return found, nil
}

// fitting returns the position of the piece that a part of a value is of, and reads
// the part into holes; -1 if it is of none.
func (f *format) fitting(part string, holes []string) int {
	for _, i := range f.tries {
		if f.pieces[i].match(part, holes) {
			return i
		}
	}
	return -1
}

// render writes a value of this form; every hole must be in values.
func (f *format) render(values map[string]string) string {
	var out []string
	for _, p := range f.pieces {
		var b strings.Builder
		b.WriteString(p.literals[0])
		for i, hole := range p.holes {
			b.WriteString(values[f.holes[hole]])
			b.WriteString(p.literals[i+1])
		}
		out = append(out, b.String())
	}
	return strings.Join(out, f.separator)
}

// trimBlank removes spaces and tabs around a piece. A separator that is itself
// blank leaves empty pieces, which no format has.
func trimBlank(s string) string { return strings.Trim(s, " \t") }
