package faultproxy

import "encoding/binary"

// Tagged is the framing of protocols whose messages begin with one byte that says
// what they are and four with their length, which counts itself, the greatest byte
// first. The first message of a client has no such byte.
func Tagged(b []byte, first bool) int {
	tag := 1
	if first {
		tag = 0
	}
	if len(b) < tag+4 {
		return 0
	}
	length := tag + int(binary.BigEndian.Uint32(b[tag:]))
	if length < tag+4 { // not this protocol; whatever it is, it passes
		return len(b)
	}
	if length > len(b) {
		return 0
	}
	return length
}

// TaggedAnswers is Tagged for what servers say, where the first message is like all
// others.
func TaggedAnswers(b []byte, _ bool) int { return Tagged(b, false) }

// TaggedFlights takes tagged messages up to one of a kind in ends for one: all that
// a client says before it waits for an answer.
func TaggedFlights(ends string) Framing {
	last := [256]bool{}
	for _, tag := range []byte(ends) {
		last[tag] = true
	}
	return func(b []byte, first bool) int {
		if first {
			return Tagged(b, true)
		}
		for at := 0; at < len(b); {
			n := Tagged(b[at:], false)
			if n == 0 {
				return 0
			}
			if at += n; last[b[at-n]] {
				return at
			}
		}
		return 0
	}
}
