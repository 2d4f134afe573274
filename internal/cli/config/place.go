package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"

	"github.com/onceward/onceward/provider"
)

// faults gathers what is wrong with a file.
type faults struct {
	file  string
	lines []string
	list  []provider.Problem
}

func newFaults(file string, text []byte) *faults {
	return &faults{file: file, lines: strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")}
}

// add reports a fault at a node and shows its line.
func (f *faults) add(n *yaml.Node, format string, args ...any) {
	f.report(n, f.snippet(n), format, args...)
}

// addHidden reports a fault at a node whose line may hold a secret.
func (f *faults) addHidden(n *yaml.Node, format string, args ...any) {
	f.report(n, "", format, args...)
}

func (f *faults) report(n *yaml.Node, snippet, format string, args ...any) {
	f.list = append(f.list, provider.Problem{
		File: f.file, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...), Snippet: snippet,
	})
}

// snippetMax is the longest line that a snippet shows, in characters.
const snippetMax = 160

func (f *faults) snippet(n *yaml.Node) string {
	if n.Line < 1 || n.Line > len(f.lines) {
		return ""
	}
	line := f.lines[n.Line-1]
	if strings.TrimSpace(line) == "" || !utf8.ValidString(line) || utf8.RuneCountInString(line) > snippetMax {
		return ""
	}
	return "    " + line + "\n    " + strings.Repeat(" ", max(0, n.Column-1)) + "^"
}

// join adds the faults that a provider reported.
func (f *faults) join(err error) {
	if other, ok := errors.AsType[*provider.Errors](err); ok {
		f.list = append(f.list, other.Problems...)
	} else if err != nil {
		f.list = append(f.list, provider.Problem{File: f.file, Message: err.Error()})
	}
}

// err returns the faults in the order of the file, each once, as
// *provider.Errors; nil if there are none.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	var list []provider.Problem
	seen := map[provider.Problem]bool{}
	for _, p := range f.list {
		bare := p
		bare.Snippet = "" // one fault may have been found with its line hidden and with it shown
		if i := slices.IndexFunc(list, func(q provider.Problem) bool { q.Snippet = ""; return q == bare }); seen[bare] {
			if p.Snippet == "" {
				list[i].Snippet = ""
			}
			continue
		}
		seen[bare] = true
		list = append(list, p)
	}
	slices.SortStableFunc(list, func(a, b provider.Problem) int {
		switch {
		case a.File != b.File && a.File == f.file:
			return -1
		case a.File != b.File && b.File == f.file:
			return 1
		case a.File != b.File:
			return strings.Compare(a.File, b.File)
		case a.Line != b.Line:
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return &provider.Errors{Problems: list}
}

// orMean ends a message that word is not known: the option nearest to it, and
// then what there is.
func orMean(word, listed string, options []string) string {
	best, least := "", 0
	for _, option := range options {
		d := distance(strings.ToLower(word), strings.ToLower(option))
		if d <= max(1, min(len(word), len(option))/3) && (best == "" || d < least) {
			best, least = option, d
		}
	}
	if best == "" {
		return fmt.Sprintf("; %s %s", listed, strings.Join(options, ", "))
	}
	return fmt.Sprintf("; did you mean %q? %s %s", best, strings.ToUpper(listed[:1])+listed[1:], strings.Join(options, ", "))
}

// distance counts the letters to insert, to remove, to replace or to swap with
// their neighbours.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0:
				rows[i][j] = j
				continue
			case j == 0:
				rows[i][j] = i
				continue
			}
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
