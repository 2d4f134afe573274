package faultproxy

import (
	"strings"
	"testing"
)

// tagged is a message with a tag, or without where it is 0.
func tagged(tag byte, text string) string {
	n := len(text) + 4
	m := string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + text
	if tag == 0 {
		return m
	}
	return string(tag) + m
}

// TestFramings cuts a stream that comes byte by byte.
func TestFramings(t *testing.T) {
	parse, query, sync := tagged('P', "a statement"), tagged('Q', strings.Repeat("x", 300)), tagged('S', "")
	stream := []string{tagged(0, "startup"), parse, parse, sync, query, parse, sync}
	for name, tt := range map[string]struct {
		framing Framing
		say     []string
		want    []string
	}{
		"messages": {Tagged, stream, stream},
		"answers":  {TaggedAnswers, stream[1:], stream[1:]},
		"flights":  {TaggedFlights("SQ"), stream, []string{stream[0], parse + parse + sync, query, parse + sync}},
	} {
		var got []string
		var have []byte
		for _, b := range []byte(strings.Join(tt.say, "")) {
			have = append(have, b)
			if n := tt.framing(have, len(got) == 0); n > 0 {
				got, have = append(got, string(have[:n])), append([]byte(nil), have[n:]...)
			}
		}
		if strings.Join(got, "|") != strings.Join(tt.want, "|") || len(have) > 0 {
			t.Errorf("%s: %q and %q, want %q", name, got, have, tt.want)
		}
	}
	if n := Tagged([]byte("POST / HTTP/1.1"), false); n != 0 { // a length of gigabytes is waited for
		t.Errorf("a message of another protocol has length %d", n)
	}
	if n := Tagged([]byte("S\x00\x00\x00\x00more"), false); n != 9 {
		t.Errorf("a length that cannot be: %d, want all of it", n)
	}
}
