package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/onceward/onceward"
)

// encodeHeader writes a header as it would stand in a request, a line a value
// and names sorted: "Name: value\n". What would end a name or a line is escaped
// with a backslash, so that any bytes come back as they were.
func encodeHeader(h map[string][]string) []byte {
	names, size := make([]string, 0, 32), 0 // with room for what most senders have
	for name, values := range h {
		names = append(names, name)
		for _, v := range values {
			size += len(name) + len(v) + len(": \n")
		}
	}
	slices.Sort(names)
	b := make([]byte, 0, size)
	for _, name := range names {
		for _, v := range h[name] {
			b = append(append(b, headerNameEscaper.Replace(name)...), ": "...)
			b = append(append(b, headerValueEscaper.Replace(v)...), '\n')
		}
	}
	return b
}

var (
	headerNameEscaper  = strings.NewReplacer("\\", `\\`, "\n", `\n`, "\r", `\r`, ":", `\c`)
	headerValueEscaper = strings.NewReplacer("\\", `\\`, "\n", `\n`, "\r", `\r`)
	headerUnescaper    = strings.NewReplacer(`\\`, "\\", `\n`, "\n", `\r`, "\r", `\c`, ":")
)

func decodeHeader(text []byte) map[string][]string {
	var h map[string][]string
	for line := range bytes.Lines(text) {
		name, v, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), ": ")
		if h == nil {
			h = map[string][]string{}
		}
		name = headerUnescaper.Replace(name)
		h[name] = append(h[name], headerUnescaper.Replace(v))
	}
	return h
}

// encodePatch writes what a fact tells beyond its rule, kind, key and status, as
// JSON: numbers as they are, a part as [field, value] or [field, value, by].
func encodePatch(f *onceward.Fact) string {
	b := append(make([]byte, 0, 64+48*len(f.Fields)), '{')
	member := func(name string) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), `":`...)
	}
	number := func(name string, o onceward.Opt) {
		if o.Set {
			member(name)
			b = strconv.AppendInt(b, o.N, 10)
		}
	}
	parts := func(name string, list []onceward.Part) {
		if len(list) > 0 {
			member(name)
			b = appendParts(b, list)
		}
	}
	number("epoch", f.Epoch)
	number("sequence", f.Sequence)
	number("time", f.Time)
	if f.Hint {
		member("hint")
		b = append(b, "true"...)
	}
	parts("fields", f.Fields)
	parts("was", f.Was)
	parts("local", f.Local)
	if f.Held != "" {
		member("held")
		b = appendText(b, f.Held)
	}
	if len(f.Notes) > 0 {
		member("notes")
		for i, note := range f.Notes {
			b = appendText(append(b, "[,"[min(i, 1)]), note)
		}
		b = append(b, ']')
	}
	return string(append(b, '}'))
}

func appendParts(b []byte, list []onceward.Part) []byte {
	for i, p := range list {
		b = append(b, "[,"[min(i, 1)], '[')
		b = append(appendText(b, p.Field), ',')
		b = append(b, p.Value.JSON()...)
		if p.By != "" {
			b = appendText(append(b, ','), p.By)
		}
		b = append(b, ']')
	}
	return append(b, ']')
}

func appendText(b []byte, s string) []byte { return append(b, onceward.String(s).JSON()...) }

type patch struct {
	Epoch    onceward.Opt       `json:"epoch"`
	Sequence onceward.Opt       `json:"sequence"`
	Time     onceward.Opt       `json:"time"`
	Hint     bool               `json:"hint"`
	Fields   [][]onceward.Value `json:"fields"`
	Was      [][]onceward.Value `json:"was"`
	Local    [][]onceward.Value `json:"local"`
	Held     string             `json:"held"`
	Notes    []string           `json:"notes"`
}

// decodePatch fills in what encodePatch wrote.
func decodePatch(text string, f *onceward.Fact) error {
	var p patch
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return fmt.Errorf("read a stored fact: %w", err)
	}
	f.Epoch, f.Sequence, f.Time, f.Hint, f.Held, f.Notes = p.Epoch, p.Sequence, p.Time, p.Hint, p.Held, p.Notes
	f.Fields, f.Was, f.Local = decodeParts(p.Fields), decodeParts(p.Was), decodeParts(p.Local)
	return nil
}

func decodeParts(list [][]onceward.Value) []onceward.Part {
	if len(list) == 0 {
		return nil
	}
	parts := make([]onceward.Part, 0, len(list))
	for _, p := range list {
		if len(p) < 2 {
			continue
		}
		part := onceward.Part{Value: p[1]}
		part.Field, _ = p[0].Text()
		if len(p) > 2 {
			part.By, _ = p[2].Text()
		}
		parts = append(parts, part)
	}
	return parts
}
