package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Tree is a module as its files tell it, whether or not it compiles.
type Tree struct {
	fset     *token.FileSet
	packages []*pkg
	texts    []text
}

// pkg is the Go files of one folder.
type pkg struct {
	dir   string // "." for the root of the module
	files []*file
	uses  map[*ast.Ident]types.Object
	scope *types.Scope // of the package itself, not of its external tests
}

// file is one Go file.
type file struct {
	path  string
	test  bool
	lines int
	ast   *ast.File
}

// text is a file of any kind that is not binary.
type text struct {
	path string
	data []byte
}

// skipDirs are folders that hold nothing of ours.
var skipDirs = []string{".git", ".tools", "dist", "vendor", "node_modules"}

// Load reads the module whose root is fsys. It fails when a Go file cannot be
// read or parsed.
func Load(fsys fs.FS) (*Tree, error) {
	t := &Tree{fset: token.NewFileSet()}
	dirs := map[string]*pkg{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(skipDirs, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		return t.add(fsys, name, dirs)
	})
	if err != nil {
		return nil, fmt.Errorf("load the module: %w", err)
	}
	for _, p := range dirs {
		t.resolve(p)
		t.packages = append(t.packages, p)
	}
	slices.SortFunc(t.packages, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return t, nil
}

// add reads one file.
func (t *Tree) add(fsys fs.FS, name string, dirs map[string]*pkg) error {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return nil // binary
	}
	t.texts = append(t.texts, text{name, data})
	if !strings.HasSuffix(name, ".go") || !ofModule(fsys, path.Dir(name)) {
		return nil
	}
	f, err := parser.ParseFile(t.fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := path.Dir(name)
	if dirs[dir] == nil {
		dirs[dir] = &pkg{dir: dir, uses: map[*ast.Ident]types.Object{}}
	}
	dirs[dir].files = append(dirs[dir].files, &file{
		path:  name,
		test:  strings.HasSuffix(name, "_test.go"),
		lines: bytes.Count(data, []byte("\n")),
		ast:   f,
	})
	return nil
}

// ofModule reports whether the Go files of dir belong to the module: the go
// command passes over testdata, over names that start with a dot or an
// underscore, and over folders with a go.mod of their own.
func ofModule(fsys fs.FS, dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		base := path.Base(dir)
		if base == "testdata" || base[0] == '.' || base[0] == '_' {
			return false
		}
		if _, err := fs.Stat(fsys, path.Join(dir, "go.mod")); err == nil {
			return false
		}
	}
	return true
}

// resolve finds what each identifier of p stands for. Imports are answered with
// empty packages, so only names of p itself, and names of imports, are known; the
// errors that this makes are of no interest.
func (t *Tree) resolve(p *pkg) {
	byName := map[string][]*ast.File{}
	for _, f := range p.files {
		byName[f.ast.Name.Name] = append(byName[f.ast.Name.Name], f.ast)
	}
	for name, files := range byName {
		conf := types.Config{
			Importer:    emptyImporter{},
			Error:       func(error) {},
			FakeImportC: true,
		}
		info := &types.Info{Uses: p.uses}
		checked, _ := conf.Check(p.dir, t.fset, files, info)
		if !strings.HasSuffix(name, "_test") {
			p.scope = checked.Scope()
		}
	}
}

// emptyImporter answers every import with a package that has only its name.
type emptyImporter struct{}

// majorVersion is the last part of an import path that names a version only.
var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// Import returns an empty package. Its name is the last part of the path that is
// no version.
func (emptyImporter) Import(importPath string) (*types.Package, error) {
	name := path.Base(importPath)
	if majorVersion.MatchString(name) {
		name = path.Base(path.Dir(importPath))
	}
	name, _, _ = strings.Cut(name, ".")
	p := types.NewPackage(importPath, name)
	p.MarkComplete()
	return p, nil
}

// line returns the line of pos.
func (t *Tree) line(pos token.Pos) int { return t.fset.Position(pos).Line }

// at makes a finding about a place in f.
func (t *Tree) at(f *file, pos token.Pos, format string, args ...any) Finding {
	return Finding{Path: f.path, Line: t.line(pos), Text: fmt.Sprintf(format, args...)}
}

// selector returns the import path and the name if e is a name of an imported
// package.
func (p *pkg) selector(e ast.Node) (importPath, name string, ok bool) {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", "", false
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", "", false
	}
	pn, ok := p.uses[id].(*types.PkgName)
	if !ok {
		return "", "", false
	}
	return pn.Imported().Path(), sel.Sel.Name, true
}

// testOnly reports whether p has no file but tests.
func (p *pkg) testOnly() bool {
	return !slices.ContainsFunc(p.files, func(f *file) bool { return !f.test })
}

// name returns the package's name, without the suffix of external tests.
func (p *pkg) name() string {
	for _, f := range p.files {
		if !f.test {
			return f.ast.Name.Name
		}
	}
	return strings.TrimSuffix(p.files[0].ast.Name.Name, "_test")
}

// imports yields the paths that f imports.
func (f *file) imports(yield func(string, *ast.ImportSpec) bool) {
	for _, spec := range f.ast.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has refused it before
		}
		if !yield(name, spec) {
			return
		}
	}
}

// eachFile calls do for every Go file, or for all but tests.
func (t *Tree) eachFile(tests bool, do func(*pkg, *file)) {
	for _, p := range t.packages {
		for _, f := range p.files {
			if tests || !f.test {
				do(p, f)
			}
		}
	}
}

// inspect calls do for every node of every Go file, or of all but tests, and
// collects what it finds.
func (t *Tree) inspect(tests bool, do func(*pkg, *file, ast.Node) []Finding) []Finding {
	var out []Finding
	t.eachFile(tests, func(p *pkg, f *file) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if n != nil {
				out = append(out, do(p, f, n)...)
			}
			return true
		})
	})
	return out
}
