package archtest

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/token"
)

// findDocs looks for exported names of public packages that have no comment:
// functions, types and their methods, constants and variables. Fields are left to the eye of the reader, since a comment that
// repeats a name is worse than none. It is silent about a package that documents
// the share that the policy wants.
func findDocs(t *Tree, p *Policy) []Finding {
	var out []Finding
	for _, pk := range t.packages {
		row := p.row(pk.dir)
		if row == nil || !row.Public {
			continue
		}
		var all int
		var bare []Finding
		for _, f := range pk.files {
			if f.test {
				continue
			}
			exported(f.ast, func(name string, at ast.Node, documented bool) {
				if all++; !documented {
					found := t.at(f, at.Pos(), "%s is exported and has no comment", name)
					found.Name = name
					bare = append(bare, found)
				}
			})
		}
		if share := float64(all-len(bare)) / float64(max(all, 1)); share < p.MinDoc {
			out = append(out, bare...)
		}
	}
	return out
}

// exported calls do for each exported name of f.
func exported(f *ast.File, do func(name string, at ast.Node, documented bool)) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if recv := receiver(d); d.Name.IsExported() && (d.Recv == nil || ast.IsExported(recv)) {
				name := d.Name.Name
				if recv != "" {
					name = recv + "." + name
				}
				do(name, d, d.Doc != nil)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				exportedSpec(d, s, do)
			}
		}
	}
}

// exportedSpec calls do for the exported names of s. The comment of a group
// covers its constants and variables, but not its types.
func exportedSpec(d *ast.GenDecl, s ast.Spec, do func(string, ast.Node, bool)) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, id := range s.Names {
			if id.IsExported() {
				do(id.Name, id, d.Doc != nil || s.Doc != nil || s.Comment != nil)
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		do(s.Name.Name, s, s.Doc != nil || d.Doc != nil && d.Lparen == token.NoPos)
		if iface, ok := s.Type.(*ast.InterfaceType); ok {
			for _, m := range iface.Methods.List {
				for _, id := range m.Names {
					if id.IsExported() {
						do(s.Name.Name+"."+id.Name, id, m.Doc != nil || m.Comment != nil)
					}
				}
			}
		}
	}
}

// receiver returns the name of the type that d is a method of, or "".
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// findExamples wants an example with checked output of each public package.
func findExamples(t *Tree, p *Policy) []Finding {
	var out []Finding
	for _, pk := range t.packages {
		row := p.row(pk.dir)
		if row == nil || !row.Public || pk.hasExample() {
			continue
		}
		out = append(out, Finding{Path: pk.dir, Text: "the package is public and has no example with an // Output: comment"})
	}
	return out
}

// hasExample reports whether a test of p is an example that go test runs.
func (p *pkg) hasExample() bool {
	for _, f := range p.files {
		if !f.test {
			continue
		}
		for _, e := range doc.Examples(f.ast) {
			if e.Output != "" || e.EmptyOutput {
				return true
			}
		}
	}
	return false
}

// Size returns how many packages and how many Go files t has, for a test to see
// that it has read something.
func (t *Tree) Size() (packages, files int) {
	for _, p := range t.packages {
		files += len(p.files)
	}
	return len(t.packages), files
}

// String says what t is.
func (t *Tree) String() string {
	packages, files := t.Size()
	return fmt.Sprintf("%d packages, %d Go files", packages, files)
}
