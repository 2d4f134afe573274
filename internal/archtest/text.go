package archtest

import (
	"bytes"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// queryText is the start of a statement, as far as a query needs it to be one.
var queryText = regexp.MustCompile(`(?is)\b(?:` +
	`insert\s+into\s+\S+\s*(?:\(|values|select)` +
	`|select\s[^.!?;]*?\sfrom\s+[\w."(]+` +
	`|update\s+[\w."]+(?:\s+(?:as\s+)?\w+)?\s+set\s+[\w."]+\s*=` +
	`|delete\s+from\s+[\w."]+` +
	`|(?:create|alter|drop)\s+(?:unique\s+|temp(?:orary)?\s+)*(?:table|index|view|schema)\s` +
	`|pragma\s+\w+)`)

// findSQL looks for query text in string literals, and for files of it.
func findSQL(t *Tree, _ *Policy) []Finding {
	out := t.inspect(true, func(_ *pkg, f *file, n ast.Node) []Finding {
		s, ok := literal(n)
		if !ok {
			return nil
		}
		if found := queryText.FindString(s); found != "" {
			return []Finding{t.at(f, n.Pos(), "query text (%.40q); queries are beside the methods of a store", found)}
		}
		return nil
	})
	for _, x := range t.texts {
		if path.Ext(x.path) == ".sql" {
			out = append(out, Finding{Path: x.path, Text: "a file of queries; queries are with a store"})
		}
	}
	return out
}

// literal returns the value of a string literal.
func literal(n ast.Node) (string, bool) {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// databaseName is the name of a database or of its driver.
var databaseName = regexp.MustCompile(`(?i)sqlite|postgres|pgx|pgbouncer`)

// findDatabases looks for names of databases in code: callers of a store do not
// ask which one it is.
func findDatabases(t *Tree, _ *Policy) []Finding {
	return t.inspect(false, func(_ *pkg, f *file, n ast.Node) []Finding {
		var name string
		switch n := n.(type) {
		case *ast.File:
			name = n.Name.Name
		case *ast.Ident:
			name = n.Name
		case *ast.BasicLit:
			name, _ = literal(n)
		}
		if found := databaseName.FindString(name); found != "" {
			return []Finding{t.at(f, n.Pos(), "%s is named outside the stores", strings.ToLower(found))}
		}
		return nil
	})
}

// machineWords are what ties a file to the machine, the registry or the private
// tools of those who wrote it. Each is written in two parts, so that this file
// does not have it.
var machineWords = []struct{ text, what string }{
	{"/wor" + "k/", "a path of one machine"},
	{"/roo" + "t/", "a path of one machine"},
	{"/hom" + "e/", "a path of one machine"},
	{"proxy.go" + "lang.org", "the host of a registry"},
	{"sum.go" + "lang.org", "the host of a registry"},
	{"registry.np" + "mjs.org", "the host of a registry"},
	{"pypi" + ".org", "the host of a registry"},
	{"deb.deb" + "ian.org", "the host of a registry"},
	{"GOPRO" + "XY=", "a registry setting of one machine"},
	{"GOSUM" + "DB=", "a registry setting of one machine"},
	{"GONOSUM" + "DB=", "a registry setting of one machine"},
	{"far" + "m-", "a private tool"},
	{"issues" + " show", "a private tool"},
}

// findMachines looks through files of every kind. A word counts where it is not
// the end of a longer one, and a path where it is not a part of a longer one.
func findMachines(t *Tree, _ *Policy) []Finding {
	var out []Finding
	for _, x := range t.texts {
		for _, w := range machineWords {
			for at := 0; ; {
				i := bytes.Index(x.data[at:], []byte(w.text))
				if i < 0 {
					break
				}
				at += i
				if at == 0 || !continues(x.data[at-1], w.text) {
					line := 1 + bytes.Count(x.data[:at], []byte("\n"))
					out = append(out, Finding{Path: x.path, Line: line, Text: strconv.Quote(w.text) + " is " + w.what})
				}
				at += len(w.text)
			}
		}
	}
	return out
}

// continues reports whether c and the text that follows it are one word or path.
func continues(c byte, text string) bool {
	if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
		return true
	}
	return strings.HasPrefix(text, "/") && strings.IndexByte("_.-/*", c) >= 0
}
