package verify

import (
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"

	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/tree"
)

// template is one compiled alternative of `signed`. It is immutable.
type template struct {
	parts []part
	// body says that the signature covers the body: the bytes or a hash of them
	// stand in it.
	body bool
}

type partKind uint8

const (
	partLiteral partKind = iota
	partRaw
	partDecoded
	partTimestamp
	partURL
	partSecret
	partHole // of the format
	partExpr
)

type part struct {
	kind partKind
	text string // of a literal
	hole int
	prog *expr.Program
	raw  bool // the expression reads the body's bytes
}

// scope is what the holes of a `signed` may name.
type scope struct {
	names     expr.Names
	format    *format // nil where there is none
	timestamp bool    // there is a source of {timestamp}
	secret    bool    // {secret} is allowed
}

// parseTemplate compiles one alternative of `signed` and returns every fault.
func parseTemplate(text string, sc scope) (template, []fault) {
	var t template
	var problems []fault
	rest := text
	for rest != "" {
		open := strings.IndexByte(rest, '{')
		if open < 0 {
			t.parts = append(t.parts, part{kind: partLiteral, text: rest})
			break
		}
		if open > 0 {
			t.parts = append(t.parts, part{kind: partLiteral, text: rest[:open]})
		}
		at := len(text) - len(rest) + open
		length := holeLength(rest[open:])
		if length < 0 {
			return t, append(problems, fault{at, "this hole is not closed; a } is missing", `a { that is meant is written {"{"}`})
		}
		p, faults := parseHole(rest[open+1:open+length-1], sc)
		for _, f := range faults {
			f.offset += at + 1
			problems = append(problems, f)
		}
		t.parts = append(t.parts, p)
		t.body = t.body || p.coversBody()
		rest = rest[open+length:]
	}
	return t, problems
}

func parseHole(text string, sc scope) (part, []fault) {
	name := strings.TrimSpace(text)
	if name != holeSignature && sc.format != nil && sc.format.hole(name) >= 0 && name != holeTimestamp {
		return part{kind: partHole, hole: sc.format.hole(name)}, nil
	}
	one := func(msg, hint string) []fault { return []fault{{0, msg, hint}} }
	switch name {
	case "":
		return part{}, one("this hole is empty", "write a name or an expression, as in {raw}")
	case "raw":
		return part{kind: partRaw}, nil
	case "decoded":
		return part{kind: partDecoded}, nil
	case "url":
		return part{kind: partURL}, nil
	case holeSignature:
		return part{}, one("a signature cannot stand in what it signs", "")
	case holeTimestamp:
		if !sc.timestamp {
			return part{}, one("{timestamp} has no source", "put a {timestamp} into `format`, or say where it is: timestamp: headers[\"X-Timestamp\"]")
		}
		return part{kind: partTimestamp}, nil
	case "secret":
		if !sc.secret {
			return part{}, one("{secret} is only for scheme hash", "with hmac the secret is the key and does not stand in the text")
		}
		return part{kind: partSecret}, nil
	}
	prog, err := expr.Compile(text, sc.names)
	if err != nil {
		return part{}, expressionProblems(err)
	}
	return part{kind: partExpr, prog: prog, raw: prog.Refers("raw")}, nil
}

// SignedReads returns the places where the holes of a `signed` read names, offsets
// counted in it. What is no expression, or none that compiles, reads nothing.
func SignedReads(text, format string, names expr.Names) []expr.Read {
	var reads []expr.Read
	for at := 0; at < len(text); {
		open := strings.IndexByte(text[at:], '{')
		if open < 0 {
			break
		}
		at += open
		length := holeLength(text[at:])
		if length < 0 {
			break
		}
		hole := text[at+1 : at+length-1]
		if prog, err := expr.Compile(hole, names); err == nil && !strings.Contains(format, "{"+strings.TrimSpace(hole)+"}") {
			for _, read := range prog.Reads() {
				read.Offset += at + 1
				reads = append(reads, read)
			}
		}
		at += length
	}
	return reads
}

// expressionProblems lists the faults of an expression, which may be joined.
func expressionProblems(err error) []fault {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		var all []fault
		for _, e := range joined.Unwrap() {
			all = append(all, expressionProblems(e)...)
		}
		return all
	}
	if e, ok := errors.AsType[*expr.Error](err); ok {
		return []fault{{e.Offset, e.Msg, e.Hint}}
	}
	return []fault{{0, err.Error(), ""}}
}

// holeLength returns the length of the hole that s begins with, braces included,
// or -1 if it is not closed. Braces within the texts of an expression do not count.
func holeLength(s string) int {
	depth := 0
	for i := 0; i < len(s); {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"', '\'':
			raw := i > 0 && s[i-1]|0x20 == 'r'
			length := textLength(s[i:], raw)
			if length < 0 {
				return -1
			}
			i += length
			continue
		}
		i++
	}
	return -1
}

// textLength returns the length of the quoted text that s begins with, quotes
// included, or -1 if it is not closed. In a raw one a backslash is itself.
func textLength(s string, raw bool) int {
	quote := s[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s, triple) {
		quote = triple
	}
	for i := len(quote); i < len(s); i++ {
		if s[i] == '\\' && !raw {
			i++
			continue
		}
		if strings.HasPrefix(s[i:], quote) {
			return i + len(quote)
		}
	}
	return -1
}

// coversBody reports whether a signature over this part binds the body: its
// bytes, or a hash of them that nobody can find a second body for (crc32 is none).
func (p part) coversBody() bool {
	switch p.kind {
	case partRaw, partDecoded:
		return true
	case partExpr:
		if path, plain := p.prog.Path(); plain {
			return len(path) == 1 && path[0] == "raw"
		}
		for _, read := range p.prog.Reads() {
			if len(read.Parts) == 1 && read.Parts[0] == "raw" && (read.Within == "sha256" || read.Within == "sortedForm") {
				return true
			}
		}
	}
	return false
}

// has reports whether a part of this kind stands in the template.
func (t template) has(kind partKind) bool {
	for _, p := range t.parts {
		if p.kind == kind {
			return true
		}
	}
	return false
}

// message is what a signature is made over: chunks in their order.
type message struct {
	chunks []chunk
	size   int // in bytes, without secrets
}

// chunk is a piece of a message, or the place where the secret stands in it.
type chunk struct {
	bytes  []byte
	secret bool
	own    bool // the bytes are the message's, so more may be appended
}

func (m *message) add(b []byte) {
	m.chunks = append(m.chunks, chunk{bytes: b})
	m.size += len(b)
}

// addText puts short texts that follow each other into one chunk.
func (m *message) addText(text string) {
	m.size += len(text)
	if last := len(m.chunks) - 1; last >= 0 && m.chunks[last].own {
		m.chunks[last].bytes = append(m.chunks[last].bytes, text...)
		return
	}
	b := make([]byte, 0, max(len(text), 32))
	m.chunks = append(m.chunks, chunk{bytes: append(b, text...), own: true})
}

// writeTo feeds the message with a secret in its place to a hash.
func (m message) writeTo(h hash.Hash, secret []byte) {
	for _, c := range m.chunks {
		if c.secret {
			h.Write(secret)
		} else {
			h.Write(c.bytes)
		}
	}
}

// bytes returns a message that holds no secret in one piece.
func (m message) bytes() []byte {
	all := make([]byte, 0, m.size)
	for _, c := range m.chunks {
		all = append(all, c.bytes...)
	}
	return all
}

// values are what the holes of a template stand for in one delivery.
type values struct {
	raw, decoded []byte
	url          string
	timestamp    string
	holes        []string
	in           expr.Input

	budget *budget
	memo   map[*expr.Program]string // of in
}

func (e *entry) newValues(r *Request, in expr.Input, b *budget) values {
	v := values{raw: r.Raw, url: r.URL, in: in, budget: b}
	if slices.ContainsFunc(e.signed, func(t template) bool { return t.has(partExpr) }) {
		v.memo = map[*expr.Program]string{}
	}
	return v
}

// text evaluates an expression of the template, once.
func (v values) text(p part) (string, *Rejected) {
	if text, done := v.memo[p.prog]; done {
		return text, nil
	}
	if p.raw && !v.budget.hash(len(v.raw)) {
		return "", errBudget()
	}
	text, err := evalText(p.prog, v.in)
	if err != nil {
		return "", reject(ReasonUnreadable, "a hole of `signed` failed: %s", err)
	}
	v.memo[p.prog] = text
	return text, nil
}

// build fills the template in. What is missing is empty.
func (t template) build(v values) (message, *Rejected) {
	m := message{chunks: make([]chunk, 0, len(t.parts))}
	for _, p := range t.parts {
		switch p.kind {
		case partLiteral:
			m.addText(p.text)
		case partRaw:
			m.add(v.raw)
		case partDecoded:
			m.add(v.decoded)
		case partTimestamp:
			m.addText(v.timestamp)
		case partURL:
			m.addText(v.url)
		case partSecret:
			m.chunks = append(m.chunks, chunk{secret: true})
		case partHole:
			m.addText(v.holes[p.hole])
		case partExpr:
			text, rej := v.text(p)
			if rej != nil {
				return m, rej
			}
			m.addText(text)
		}
	}
	return m, nil
}

// evalText evaluates an expression to a text; null is empty.
func evalText(prog *expr.Program, in expr.Input) (string, error) {
	v, err := eval(prog, in)
	if err != nil || v.IsNull() {
		return "", err
	}
	text, ok := v.Text()
	if !ok {
		return "", fmt.Errorf("%s is a list or an object; name the member that is meant", prog.Source())
	}
	return text, nil
}

// eval evaluates an expression. An expression's error holds nothing of the values.
func eval(prog *expr.Program, in expr.Input) (tree.Value, error) {
	v, err := prog.Eval(in)
	if err != nil {
		return tree.Value{}, fmt.Errorf("%s cannot be computed: %w", prog.Source(), err)
	}
	return v, nil
}

// varies reports whether two deliveries can differ in it.
func (t template) varies() bool {
	for _, p := range t.parts {
		if p.kind != partLiteral && p.kind != partSecret {
			return true
		}
	}
	return false
}
