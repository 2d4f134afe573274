package archtest

import (
	"go/ast"
	"slices"
)

// findSkips looks for tests that skip themselves. A skip may depend on
// testing.Short, which a person has asked for, or on the operating system; in a
// fuzz target or a property it says that an input is of no interest.
func findSkips(t *Tree, _ *Policy) []Finding {
	var out []Finding
	t.eachFile(true, func(p *pkg, f *file) {
		var fine []ast.Node
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.IfStmt:
				if p.askedFor(n.Cond) {
					fine = append(fine, n.Body)
				}
			case *ast.FuncLit:
				if p.isProperty(n.Type) {
					fine = append(fine, n)
				}
			case *ast.FuncDecl:
				if p.isProperty(n.Type) {
					fine = append(fine, n)
				}
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if ok && sel.Sel.Name == "Fuzz" {
					fine = append(fine, n)
				}
				skip := ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name)
				if skip && p.testingVar(f, sel.X) && !within(n, fine) {
					out = append(out, t.at(f, n.Pos(), "a test that skips itself tests nothing; make it fail, or ask testing.Short"))
				}
			}
			return true
		})
	})
	return out
}

// askedFor reports whether cond asks for testing.Short or for the system.
func (p *pkg) askedFor(cond ast.Expr) bool {
	asked := false
	ast.Inspect(cond, func(n ast.Node) bool {
		from, name, ok := p.selector(n)
		asked = asked || ok && (from == "testing" && name == "Short" || from == "runtime" && name == "GOOS")
		return true
	})
	return asked
}

// isProperty reports whether a function draws its input from rapid.
func (p *pkg) isProperty(ft *ast.FuncType) bool {
	if ft.Params == nil || len(ft.Params.List) == 0 {
		return false
	}
	star, ok := ft.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	from, name, ok := p.selector(star.X)
	return ok && from == "pgregory.net/rapid" && name == "T"
}

// testingVar reports whether e could be a test: in a file that imports testing,
// any value by one of its usual names.
func (p *pkg) testingVar(f *file, e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	if !ok || !slices.Contains([]string{"t", "tb", "b", "f", "rt"}, id.Name) {
		return false
	}
	imported := false
	f.imports(func(name string, _ *ast.ImportSpec) bool {
		imported = imported || name == "testing" || name == "pgregory.net/rapid"
		return true
	})
	return imported
}
