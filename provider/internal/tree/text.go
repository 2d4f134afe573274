package tree

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decode returns the text of the inside of a JSON string: escapes resolved, half a surrogate pair and each byte that is
// not UTF-8 replaced by U+FFFD. The escapes must have been scanned before.
func decode(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '\\':
			r, n := decodeEscape(s[i:])
			b.WriteRune(r)
			i += n
		case c < utf8.RuneSelf:
			b.WriteByte(c)
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			b.WriteRune(r)
			i += n
		}
	}
	return b.String()
}

// decodeEscape returns the rune that the escape at the start of s stands for, and how many bytes the escape takes.
func decodeEscape(s string) (rune, int) {
	switch s[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r := hex4(s[2:])
		if utf16.IsSurrogate(r) {
			if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
				if pair := utf16.DecodeRune(r, hex4(s[8:])); pair != utf8.RuneError {
					return pair, 12
				}
			}
			return utf8.RuneError, 6
		}
		return r, 6
	}
	return rune(s[1]), 2 // a quote, a slash or a backslash
}

// hex4 returns the number that the first four hexadecimal digits of s write.
func hex4(s string) rune {
	var r rune
	for i := range 4 {
		r = r<<4 | rune(hexDigit(s[i]))
	}
	return r
}

// hexDigit returns the value of a hexadecimal digit, or 255.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// validText returns s with each byte that is not UTF-8 replaced by U+FFFD, as decode does it.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends s as a JSON string.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s { // a byte that is not UTF-8 comes out as U+FFFD
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r >= ' ':
			dst = utf8.AppendRune(dst, r)
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, `\u00`...)
			dst = append(dst, hexDigits[r>>4], hexDigits[r&15])
		}
	}
	return append(dst, '"')
}

// AppendJSON appends v to dst as compact JSON and returns it: members in the order of the source, numbers with their
// own text, a doubled member once, a Time as text, what is missing as null.
func (v Value) AppendJSON(dst []byte) []byte {
	switch v.kind {
	case Missing, Null:
		return append(dst, "null"...)
	case Bool, Number:
		text, _ := v.Text()
		return append(dst, text...)
	case String, Time:
		text, _ := v.Text()
		return appendQuoted(dst, text)
	case List:
		dst = append(dst, '[')
		first := true
		for e := range v.Elements() {
			if !first {
				dst = append(dst, ',')
			}
			dst, first = e.AppendJSON(dst), false
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	first := true
	for name, m := range v.Members() {
		if !first {
			dst = append(dst, ',')
		}
		dst = append(appendQuoted(dst, name), ':')
		dst, first = m.AppendJSON(dst), false
	}
	return append(dst, '}')
}
