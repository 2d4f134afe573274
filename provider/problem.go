package provider

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Problem is one fault of a provider file or of a source's configuration.
type Problem struct {
	// File is the name of the file, "" if the text had none.
	File string
	// Line and Column count from 1, columns in characters; both are 0 if the
	// problem is one of the whole.
	Line, Column int
	// Message says what is wrong, what was expected and the likely fix.
	Message string
	// Snippet is the line of the file and a caret below the place, indented, ""
	// if the line is not known or may hold a secret.
	Snippet string
}

// String returns the place and the message on one line, and the snippet below.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File + ":")
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", p.Line, p.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(p.Message)
	if p.Snippet != "" {
		b.WriteString("\n" + p.Snippet)
	}
	return b.String()
}

// Errors are all faults of what was compiled, in the order of the file. It is
// the only error of [Parse], [Builtin] and [Compile].
type Errors struct{ Problems []Problem }

// Error shows every problem with its place and snippet.
func (e *Errors) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.String()
	}
	return strings.Join(texts, "\n")
}

// source is one text that places are in.
type source struct {
	file    string
	lines   []string
	builtin bool         // from the catalogue, or the table of kinds: nothing that a user could mend
	secret  map[int]bool // lines that may hold a secret in plain text
	words   []string     // of such lines, longest first
}

func newSource(file string, text []byte, builtin bool) *source {
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	s := &source{file: file, lines: lines, builtin: builtin, secret: map[int]bool{}}
	if !builtin { // the catalogue's are no secrets
		s.findSecrets()
	}
	return s
}

// line returns a line, counted from 1.
func (s *source) line(n int) (string, bool) {
	if n < 1 || n > len(s.lines) {
		return "", false
	}
	return s.lines[n-1], true
}

// place is where something stands.
type place struct {
	src       *source
	line, col int // from 1, in characters; 0 if the whole source is meant
}

// snippetMax bounds the characters of a line that a snippet shows.
const snippetMax = 160

// problem makes a Problem of this place.
func (p place) problem(message string) Problem {
	if p.src == nil {
		return Problem{Message: message}
	}
	return Problem{File: p.src.file, Line: p.line, Column: p.col, Message: message, Snippet: p.snippet()}
}

func (p place) snippet() string {
	text, ok := p.src.line(p.line)
	if !ok || p.src.hidden(p.line, text) || strings.TrimSpace(text) == "" || !utf8.ValidString(text) {
		return ""
	}
	runes := []rune(text)
	from, lead := 0, ""
	if p.col > snippetMax {
		from, lead = p.col-snippetMax/2, "…"
	}
	to, tail := len(runes), ""
	if to-from > snippetMax {
		to, tail = from+snippetMax, "…"
	}
	const indent = "    "
	shown := indent + lead + string(runes[from:to]) + tail
	var caret strings.Builder
	caret.WriteString(indent + strings.Repeat(" ", utf8.RuneCountInString(lead)))
	for i := from; i < p.col-1; i++ {
		if i < len(runes) && runes[i] == '\t' {
			caret.WriteByte('\t') // so that the caret stays below its place
		} else {
			caret.WriteByte(' ')
		}
	}
	return shown + "\n" + caret.String() + "^"
}

// problems gathers what is wrong. It is used by one goroutine.
type problems struct {
	faults   []Problem
	warnings []Problem // in files of the user's own
	builtin  []Problem // warnings in files of the catalogue
}

func (ps *problems) add(at place, format string, args ...any) {
	ps.faults = append(ps.faults, at.problem(fmt.Sprintf(format, at.withoutSecrets(args)...)))
}

func (ps *problems) warn(at place, format string, args ...any) {
	p := at.problem(fmt.Sprintf(format, at.withoutSecrets(args)...))
	if at.src != nil && at.src.builtin {
		ps.builtin = append(ps.builtin, p)
		return
	}
	ps.warnings = append(ps.warnings, p)
}

// err returns the faults as *Errors, nil if there are none.
func (ps *problems) err() error {
	if len(ps.faults) == 0 {
		return nil
	}
	return &Errors{inOrder(ps.faults)}
}

// inOrder sorts problems by their places, files in the order in which they first
// come, and drops repetitions.
func inOrder(list []Problem) []Problem {
	files := map[string]int{}
	for _, p := range list {
		if _, known := files[p.File]; !known {
			files[p.File] = len(files)
		}
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Problem) int {
		if c := files[a.File] - files[b.File]; c != 0 {
			return c
		}
		if c := a.Line - b.Line; c != 0 {
			return c
		}
		return a.Column - b.Column
	})
	return slices.Compact(list)
}

// didYouMean returns what follows a message about a word that is not one of the
// options: the nearest of them, if one is near, and then rest, which says which
// there are.
func didYouMean(word string, options []string, rest string) string {
	best, at := "", 0
	for _, option := range options {
		limit := max(1, min((max(len(word), len(option))+1)/3, len(option)-1))
		if d := distance(strings.ToLower(word), strings.ToLower(option)); d <= limit && (best == "" || d < at) {
			best, at = option, d
		}
	}
	if best == "" {
		return "; " + rest
	}
	first, size := utf8.DecodeRuneInString(rest)
	return fmt.Sprintf("; did you mean %q? %c%s", best, unicode.ToUpper(first), rest[size:])
}

// distance counts the letters to insert, remove, replace or swap.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+differ(a[i], b[j]))
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

func differ(a, b byte) int {
	if a == b {
		return 0
	}
	return 1
}
