package archtest

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// findRows compares the packages with the rows.
func findRows(t *Tree, p *Policy) []Finding {
	var out []Finding
	for _, pk := range t.packages {
		if p.row(pk.dir) == nil {
			out = append(out, Finding{Path: pk.dir, Text: "the package has no row in the import table"})
		}
	}
	for i, r := range p.Rows {
		if !slices.ContainsFunc(t.packages, func(pk *pkg) bool { return pk.dir == r.Dir }) {
			out = append(out, Finding{Path: r.Dir, Text: "the import table has a row, but there is no such package"})
		}
		if slices.ContainsFunc(p.Rows[:i], func(o Row) bool { return o.Dir == r.Dir }) {
			out = append(out, Finding{Path: r.Dir, Text: "the import table has two rows for one package"})
		}
	}
	return out
}

// row returns the row of dir, or nil.
func (p *Policy) row(dir string) *Row {
	for i := range p.Rows {
		if p.Rows[i].Dir == dir {
			return &p.Rows[i]
		}
	}
	return nil
}

// ours returns the folder that importPath stands for, if it is of the module.
func (p *Policy) ours(importPath string) (dir string, ok bool) {
	if importPath == p.Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, p.Module+"/")
}

// findImports holds every import against the row of its package.
func findImports(t *Tree, p *Policy) []Finding {
	var out []Finding
	t.eachFile(true, func(pk *pkg, f *file) {
		row := p.row(pk.dir)
		if row == nil {
			return // findRows tells
		}
		f.imports(func(name string, spec *ast.ImportSpec) bool {
			if dir, ok := p.ours(name); ok {
				if fine := matches(row.Ours, dir) || f.test && (dir == pk.dir || matches(row.Tests, dir)); !fine {
					out = append(out, t.at(f, spec.Pos(), "%s may not import %s", pk.dir, name))
				}
			} else if !f.test && matches(row.Never, name) {
				out = append(out, t.at(f, spec.Pos(), "%s may never import %s", pk.dir, name))
			}
			return true
		})
	})
	return out
}

// findDeps holds every import of another module against the list, and the list
// against the imports.
func findDeps(t *Tree, p *Policy) []Finding {
	var out []Finding
	used := make([]bool, len(p.Deps))
	t.eachFile(true, func(pk *pkg, f *file) {
		f.imports(func(name string, spec *ast.ImportSpec) bool {
			if _, ok := p.ours(name); ok || !foreign(name) {
				return true
			}
			i := slices.IndexFunc(p.Deps, func(d Dep) bool { return d.Path == name || under(d.Path, name) })
			if i < 0 {
				out = append(out, t.at(f, spec.Pos(), "%s is not in the list of dependencies", name))
				return true
			}
			used[i] = true
			d := p.Deps[i]
			if fine := matches(d.By, pk.dir) || f.test && matches(d.Tests, pk.dir); !fine {
				out = append(out, t.at(f, spec.Pos(), "%s may not import %s", pk.dir, name))
			}
			return true
		})
	})
	for i, d := range p.Deps {
		if !used[i] {
			out = append(out, Finding{Path: d.Path, Text: "nothing imports this dependency; take it off the list"})
		}
	}
	return out
}

// foreign reports whether importPath is of another module: the first part of a
// path of the standard library has no dot.
func foreign(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return strings.Contains(first, ".")
}

// findBans looks for imports that only tests may have.
func findBans(t *Tree, p *Policy) []Finding {
	var out []Finding
	t.eachFile(false, func(_ *pkg, f *file) {
		f.imports(func(name string, spec *ast.ImportSpec) bool {
			for _, b := range p.Bans {
				if b.Path == name || under(b.Path, name) {
					out = append(out, t.at(f, spec.Pos(), "nothing may import %s: %s", name, b.Why))
				}
			}
			return true
		})
	})
	return out
}

// vagueNames say nothing about what a package provides.
var vagueNames = []string{"base", "common", "helper", "helpers", "lib", "misc", "model", "models", "shared", "types", "util", "utils"}

// findNames looks for package names that are vague or not those of their folders.
func findNames(t *Tree, p *Policy) []Finding {
	var out []Finding
	for _, pk := range t.packages {
		name := pk.name()
		want := path.Base(pk.dir)
		if pk.dir == "." {
			want = path.Base(p.Module)
		}
		if slices.Contains(vagueNames, name) || strings.HasSuffix(name, "util") || strings.HasSuffix(name, "utils") {
			out = append(out, Finding{Path: pk.dir, Text: "the name " + name + " does not say what the package provides"})
		}
		if name != "main" && name != want {
			out = append(out, Finding{Path: pk.dir, Text: "package " + name + " is in a folder named " + want})
		}
	}
	return out
}

// findComments wants one package comment per package.
func findComments(t *Tree, _ *Policy) []Finding {
	var out []Finding
	for _, pk := range t.packages {
		if pk.testOnly() {
			continue
		}
		want := "Package " + pk.name() + " "
		if pk.name() == "main" {
			want = "Command " + path.Base(pk.dir) + " "
		}
		seen := 0
		for _, f := range pk.files {
			if f.test || f.ast.Doc == nil {
				continue
			}
			if seen++; seen > 1 {
				out = append(out, t.at(f, f.ast.Pos(), "the package has a comment in another file already"))
			}
			if got := strings.Join(strings.Fields(f.ast.Doc.Text()), " "); !strings.HasPrefix(got, want) {
				out = append(out, t.at(f, f.ast.Pos(), "the package comment does not start with %q", want))
			}
		}
		if seen == 0 {
			out = append(out, Finding{Path: pk.dir, Text: "the package has no comment"})
		}
	}
	return out
}
