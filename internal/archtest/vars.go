package archtest

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// findInits looks for init functions outside tests.
func findInits(t *Tree, _ *Policy) []Finding {
	return t.inspect(false, func(_ *pkg, f *file, n ast.Node) []Finding {
		if d, ok := n.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "init" {
			return []Finding{t.at(f, d.Pos(), "init runs before anyone can say otherwise; make it a function that is called")}
		}
		return nil
	})
}

// findVars looks for package variables that code changes: those that could not
// serve as they are declared, and every write, wherever it is. What is left are
// sentinels, compiled patterns, embedded files and tables.
func findVars(t *Tree, _ *Policy) []Finding {
	var out []Finding
	t.eachFile(false, func(p *pkg, f *file) {
		for _, d := range f.ast.Decls {
			if gd, ok := d.(*ast.GenDecl); ok && gd.Tok == token.VAR {
				out = append(out, t.declared(p, f, gd)...)
			}
		}
	})
	return append(out, t.inspect(true, t.written)...)
}

// declared finds the variables of gd that only a later write makes useful.
func (t *Tree) declared(p *pkg, f *file, gd *ast.GenDecl) []Finding {
	var out []Finding
	for _, s := range gd.Specs {
		spec, ok := s.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, name := range spec.Names {
			var why string
			switch {
			case name.Name == "_" || embedded(gd.Doc) || embedded(spec.Doc):
			case len(spec.Values) == 0:
				why = "has no value, so some code must set it"
			case i < len(spec.Values):
				why = p.changeable(spec.Values[i])
			}
			if why == "" {
				continue
			}
			found := t.at(f, name.Pos(), "package variable %s %s", name.Name, why)
			found.Name = name.Name
			out = append(out, found)
		}
	}
	return out
}

// embedded reports whether a go:embed directive is in doc.
func embedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed ")
	})
}

// changeable says why a variable with this value is one that changes, or "".
func (p *pkg) changeable(value ast.Expr) string {
	if u, ok := value.(*ast.UnaryExpr); ok && u.Op == token.AND {
		value = u.X
	}
	switch v := value.(type) {
	case *ast.CompositeLit:
		if from, name, ok := p.selector(v.Type); ok && (from == "sync" || from == "sync/atomic") {
			return "is a " + from + "." + name + ", which exists to be changed"
		}
	case *ast.CallExpr:
		if id, ok := v.Fun.(*ast.Ident); ok && (id.Name == "make" || id.Name == "new") {
			return "starts empty, so some code must fill it"
		}
		if from, name, ok := p.selector(v.Fun); ok && from == "time" && readsClock(name) {
			return "holds the time at which the program started"
		}
	}
	return ""
}

// written finds a write to a package variable, of this package or another one.
func (t *Tree) written(p *pkg, f *file, n ast.Node) []Finding {
	var targets []ast.Expr
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			targets = n.Lhs
		}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			targets = []ast.Expr{n.Key, n.Value}
		}
	case *ast.IncDecStmt:
		targets = []ast.Expr{n.X}
	case *ast.UnaryExpr:
		if _, literal := n.X.(*ast.CompositeLit); n.Op == token.AND && !literal {
			targets = []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		if p.changesFirst(n.Fun) && len(n.Args) > 0 {
			targets = n.Args[:1]
		}
	}
	var out []Finding
	for _, target := range targets {
		if name, ok := t.global(p, target); ok {
			found := t.at(f, target.Pos(), "package variable %s is changed, or its address taken", name)
			found.Name = name
			out = append(out, found)
		}
	}
	return out
}

// changesFirst reports whether the function changes what its first argument
// holds.
func (p *pkg) changesFirst(fun ast.Expr) bool {
	if id, ok := fun.(*ast.Ident); ok {
		return id.Name == "delete" || id.Name == "clear" || id.Name == "copy"
	}
	from, name, ok := p.selector(fun)
	if !ok {
		return false
	}
	switch from {
	case "sort":
		return name != "Search" && !strings.HasSuffix(name, "AreSorted") && !strings.HasPrefix(name, "Search")
	case "slices":
		return name == "Reverse" || name == "Delete" || name == "DeleteFunc" || strings.HasPrefix(name, "Compact") ||
			name == "Sort" || name == "SortFunc" || name == "SortStableFunc"
	case "maps":
		return name == "Copy" || name == "DeleteFunc"
	}
	return false
}

// global returns the name of the package variable that e is, or is a part of.
// The variables of tests do not count.
func (t *Tree) global(p *pkg, e ast.Expr) (string, bool) {
	for {
		if from, name, ok := p.selector(e); ok {
			return from + "." + name, true
		}
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.Ident:
			v, ok := p.uses[x].(*types.Var)
			if !ok || p.scope == nil || v.Parent() != p.scope {
				return "", false
			}
			return x.Name, !strings.HasSuffix(t.fset.Position(v.Pos()).Filename, "_test.go")
		default:
			return "", false
		}
	}
}
