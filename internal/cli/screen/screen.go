// Package screen lays text out for a terminal: columns that fit into 100
// characters, colour that only repeats what words say, and texts of senders made
// harmless.
package screen

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Width is the most characters that a line holds.
const Width = 100

// Clean returns s with everything that could move a terminal's cursor or turn
// its text around written as an escape: a sender's text is shown, never obeyed.
func Clean(s string) string {
	harmless := true
	for _, r := range s {
		if !printable(r) {
			harmless = false
			break
		}
	}
	if harmless {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case printable(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func printable(r rune) bool {
	return r != utf8.RuneError && unicode.IsPrint(r) && !unicode.Is(unicode.Bidi_Control, r)
}

// Cut returns s in at most n characters, the last of them … if something had to
// go. Text of more than one column a character is not measured.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	if n <= 0 {
		return ""
	}
	return string([]rune(s)[:n-1]) + "…"
}

// Wrap splits s at blanks into lines of at most n characters; a longer word is
// cut.
func Wrap(s string, n int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		word = Cut(word, n)
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= n:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// Table is rows of cells in columns. The zero Table is empty and ready.
type Table struct {
	// Most bounds the characters of each column; 0 or a missing entry is no bound.
	// The last column takes what is left of the line.
	Most []int
	// Whole says that nothing is cut, neither cells nor lines: for output that no
	// terminal shows.
	Whole bool
	rows  [][]string
}

// Add appends a row. Cells are cleaned.
func (t *Table) Add(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = Clean(c)
		if !t.Whole && i < len(t.Most) && t.Most[i] > 0 {
			row[i] = Cut(row[i], t.Most[i])
		}
	}
	t.rows = append(t.rows, row)
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// gap is what stands between two columns.
const gap = "  "

// widths are those of the columns, in characters.
func (t *Table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	return widths
}

// Wide is how many characters the rows take without an indent, before they are
// cut.
func (t *Table) Wide() int {
	widths := t.widths()
	total := len(gap) * max(0, len(widths)-1)
	for _, w := range widths {
		total += w
	}
	return total
}

// Lines returns the rows, each behind the indent and, unless Whole, cut to Width.
func (t *Table) Lines(indent string) []string {
	widths := t.widths()
	lines := make([]string, len(t.rows))
	for j, row := range t.rows {
		padded := make([]string, len(row))
		for i, c := range row {
			padded[i] = c + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
		}
		lines[j] = strings.TrimRight(indent+strings.Join(padded, gap), " ")
		if !t.Whole {
			lines[j] = Cut(lines[j], Width)
		}
	}
	return lines
}

// Write writes the rows as Lines gives them.
func (t *Table) Write(w io.Writer, indent string) error {
	for _, line := range t.Lines(indent) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// Colour paints words on a terminal; the zero Colour paints nothing.
type Colour struct {
	// On says that the writer understands the escapes.
	On bool
}

// Good paints what is as it should be.
func (c Colour) Good(s string) string { return c.paint("32", s) }

// Bad paints what is not.
func (c Colour) Bad(s string) string { return c.paint("31", s) }

// Strong paints what to look at first.
func (c Colour) Strong(s string) string { return c.paint("1", s) }

func (c Colour) paint(code, s string) string {
	if !c.On || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
