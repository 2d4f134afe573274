package archtest

import (
	"fmt"
	"go/ast"
	"slices"
)

// The ceilings, in lines as an editor counts them.
const (
	maxFile     = 500
	maxTestFile = 900
	maxFunc     = 60
	maxTestFunc = 120
	maxMain     = 30
	maxFuncP90  = 40 // nine of ten functions are no longer
)

// findFileSizes looks for files above the ceiling. Generated ones are left out.
func findFileSizes(t *Tree, _ *Policy) []Finding {
	var out []Finding
	t.eachFile(true, func(_ *pkg, f *file) {
		limit := maxFile
		if f.test {
			limit = maxTestFile
		}
		if f.lines > limit && !ast.IsGenerated(f.ast) {
			out = append(out, Finding{Path: f.path, Text: fmt.Sprintf("%d lines; the ceiling is %d", f.lines, limit)})
		}
	})
	return out
}

// findFuncSizes looks for functions above the ceiling, from the signature to the
// closing brace.
func findFuncSizes(t *Tree, p *Policy) []Finding {
	var out []Finding
	var all []int
	t.eachFile(true, func(pk *pkg, f *file) {
		if ast.IsGenerated(f.ast) {
			return
		}
		row := p.row(pk.dir)
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			n := t.line(fn.End()) - t.line(fn.Name.Pos()) + 1
			limit := maxFunc
			switch {
			case f.test || row != nil && row.Testing:
				limit = maxTestFunc
			case pk.name() == "main" && fn.Name.Name == "main":
				limit = maxMain
			}
			if limit == maxFunc {
				all = append(all, n)
			}
			if n > limit {
				found := t.at(f, fn.Pos(), "func %s has %d lines; the ceiling is %d", fn.Name.Name, n, limit)
				found.Name = fn.Name.Name
				out = append(out, found)
			}
		}
	})
	slices.Sort(all)
	if i := len(all) * 9 / 10; i < len(all) && all[i] > maxFuncP90 {
		out = append(out, Finding{Path: ".",
			Text: fmt.Sprintf("one function in ten has %d lines or more; nine of ten should have at most %d", all[i], maxFuncP90)})
	}
	return out
}
