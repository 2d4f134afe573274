package archtest

import (
	"go/ast"
	"go/token"
	"slices"
)

// readsClock reports whether this function of package time reads the clock.
func readsClock(name string) bool { return name == "Now" || name == "Since" || name == "Until" }

// findClock looks for readings of the clock, and in pure packages for timers.
func findClock(t *Tree, p *Policy) []Finding {
	timers := []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Tick"}
	return t.inspect(false, func(pk *pkg, f *file, n ast.Node) []Finding {
		from, name, ok := pk.selector(n)
		if !ok || from != "time" {
			return nil
		}
		row := p.row(pk.dir)
		if readsClock(name) || row != nil && row.Pure && slices.Contains(timers, name) {
			return []Finding{t.at(f, n.Pos(), "time.%s; take the time as an argument or a clock from the config", name)}
		}
		return nil
	})
}

// findSleeps looks for time.Sleep, also in tests, but not in the bubble of
// testing/synctest, where it takes no time: in the arguments of a call of
// synctest.Test, or of a function of the package that makes that call.
func findSleeps(t *Tree, _ *Policy) []Finding {
	var out []Finding
	for _, p := range t.packages {
		makers := p.bubbleMakers()
		for _, f := range p.files {
			var bubbles []ast.Node
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && p.makesBubble(call, makers) {
					bubbles = append(bubbles, call)
				}
				if from, name, ok := p.selector(n); ok && from == "time" && name == "Sleep" && !within(n, bubbles) {
					out = append(out, t.at(f, n.Pos(), "time.Sleep; wait for the event, or for a timer and the context"))
				}
				return true
			})
		}
	}
	return out
}

// bubbleMakers returns the names of the functions of p that call synctest.Test.
func (p *pkg) bubbleMakers() []string {
	var names []string
	for _, f := range p.files {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && p.makesBubble(call, nil) {
					names = append(names, fn.Name.Name)
				}
				return true
			})
		}
	}
	return names
}

// makesBubble reports whether call is one of synctest.Test or of makers.
func (p *pkg) makesBubble(call *ast.CallExpr, makers []string) bool {
	if id, ok := call.Fun.(*ast.Ident); ok {
		return slices.Contains(makers, id.Name)
	}
	from, name, ok := p.selector(call.Fun)
	return ok && from == "testing/synctest" && name == "Test"
}

// within reports whether n is inside one of nodes.
func within(n ast.Node, nodes []ast.Node) bool {
	return slices.ContainsFunc(nodes, func(o ast.Node) bool { return o.Pos() <= n.Pos() && n.End() <= o.End() })
}

// findGoroutines looks for go statements, for Go methods of groups, and for
// functions of the standard library that start a goroutine.
func findGoroutines(t *Tree, _ *Policy) []Finding {
	return t.inspect(false, func(p *pkg, f *file, n ast.Node) []Finding {
		switch n := n.(type) {
		case *ast.GoStmt:
			return []Finding{t.at(f, n.Pos(), "a go statement")}
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return nil
			}
			from, name, imported := p.selector(sel)
			if imported && name == "AfterFunc" && (from == "time" || from == "context") {
				return []Finding{t.at(f, n.Pos(), "%s.AfterFunc starts a goroutine", from)}
			}
			if !imported && (sel.Sel.Name == "Go" || sel.Sel.Name == "TryGo") {
				return []Finding{t.at(f, n.Pos(), "the Go method of a group starts a goroutine")}
			}
		}
		return nil
	})
}

// findExits looks for calls that end the process, outside main packages.
func findExits(t *Tree, _ *Policy) []Finding {
	ends := map[string][]string{
		"os":      {"Exit"},
		"log":     {"Fatal", "Fatalf", "Fatalln"},
		"runtime": {"Goexit"},
		"syscall": {"Exit"},
	}
	return t.inspect(false, func(p *pkg, f *file, n ast.Node) []Finding {
		from, name, ok := p.selector(n)
		if ok && slices.Contains(ends[from], name) && p.name() != "main" {
			return []Finding{t.at(f, n.Pos(), "%s.%s; return an error and let main end the process", from, name)}
		}
		return nil
	})
}

// findGlobals looks for uses of what the whole process shares.
func findGlobals(t *Tree, _ *Policy) []Finding {
	shared := map[string][]string{
		"log/slog": {
			"Debug", "DebugContext", "Default", "Error", "ErrorContext", "Info", "InfoContext",
			"Log", "LogAttrs", "SetDefault", "SetLogLoggerLevel", "Warn", "WarnContext", "With",
		},
		"log": {"Default", "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Print", "Printf", "Println", "SetFlags", "SetOutput"},
		"net/http": {
			"DefaultClient", "DefaultServeMux", "Get", "Handle", "HandleFunc", "Head",
			"ListenAndServe", "ListenAndServeTLS", "Post", "PostForm", "Serve",
		},
		"flag": {"Arg", "Args", "Bool", "BoolVar", "CommandLine", "Duration", "Int", "NArg", "Parse", "String", "StringVar", "Var"},
		"os":   {"Args", "Chdir", "Clearenv", "Environ", "Getenv", "LookupEnv", "Setenv", "Unsetenv"},
		"github.com/prometheus/client_golang/prometheus": {
			"DefaultGatherer", "DefaultRegisterer", "MustRegister", "Register", "Unregister",
		},
		"context": {"TODO"},
	}
	return t.inspect(false, func(p *pkg, f *file, n ast.Node) []Finding {
		from, name, ok := p.selector(n)
		if ok && slices.Contains(shared[from], name) {
			return []Finding{t.at(f, n.Pos(), "%s.%s belongs to the whole process; take it as a dependency", from, name)}
		}
		return nil
	})
}

// findErrorText looks for decisions on the text of an error: a comparison of it,
// or a search in it.
func findErrorText(t *Tree, _ *Policy) []Finding {
	searches := []string{"Contains", "ContainsAny", "EqualFold", "HasPrefix", "HasSuffix", "Index"}
	return t.inspect(false, func(p *pkg, f *file, n ast.Node) []Finding {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && (isErrorText(n.X) || isErrorText(n.Y)) {
				return []Finding{t.at(f, n.Pos(), "the text of an error is compared; use errors.Is or errors.As")}
			}
		case *ast.CallExpr:
			from, name, ok := p.selector(n.Fun)
			if ok && from == "strings" && slices.Contains(searches, name) && slices.ContainsFunc(n.Args, isErrorText) {
				return []Finding{t.at(f, n.Pos(), "the text of an error is searched; use errors.Is or errors.As")}
			}
		}
		return nil
	})
}

// isErrorText reports whether e is a call of a method Error without arguments.
func isErrorText(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Error"
}
