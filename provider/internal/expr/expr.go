// Package expr compiles and evaluates the expressions of provider files.
//
// An expression is CEL over the tree of a body. CEL's own parser and type checker read it when a file is loaded; what
// they give is compiled to closures over tree.Value. CEL's evaluator is not used, because here a missing member is null
// and null flows: through operators, through the conditions of && and ?:, and through list macros, all of which CEL's
// evaluator takes for errors before a function or a decorator of ours could see them. The closures also keep the text of
// numbers, convert no part of the tree, and count what they do, so that every evaluation ends.
//
// The rules of null: a member of what is missing is missing; an operator or a function given null gives null; a test
// (<, in, startsWith, ...) given null is false; == and != compare it; a condition that is null is false.
package expr

import (
	"maps"
	"regexp"
	"slices"

	"github.com/onceward/onceward/provider/internal/tree"
)

// Names says which names an expression may use. It is immutable.
type Names struct {
	set  map[string]bool
	sign bool
}

// NewNames returns the set of these names.
func NewNames(names ...string) Names {
	return Names{}.With(names...)
}

// With returns the names of n and extra.
func (n Names) With(extra ...string) Names {
	set := maps.Clone(n.set)
	if set == nil {
		set = make(map[string]bool, len(extra))
	}
	for _, name := range extra {
		set[name] = true
	}
	return Names{set: set, sign: n.sign}
}

// WithSign returns n with the function sign allowed, as in `challenge`; the Input must then be a Signer.
func (n Names) WithSign() Names {
	n.sign = true
	return n
}

// Has reports whether name is one of n.
func (n Names) Has(name string) bool { return n.set[name] }

// sorted returns the names in alphabetical order.
func (n Names) sorted() []string { return slices.Sorted(maps.Keys(n.set)) }

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reserved holds the words that CEL keeps for itself or for languages it may be embedded in.
var reserved = []string{
	"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop", "namespace",
	"null", "package", "return", "true", "var", "void", "while",
}

// IsName reports whether s can be a name in an expression: letters, digits and underscores, no digit first, and none of
// the words CEL reserves.
func IsName(s string) bool {
	return identifier.MatchString(s) && !slices.Contains(reserved, s)
}

// Input supplies the values of names at evaluation.
type Input interface {
	// Lookup returns the value of a name, Missing where there is none. It is called each time the expression reads
	// the name.
	Lookup(name string) tree.Value
}

// Signer is an Input that can sign, for the function sign.
type Signer interface {
	// Sign returns what the source's `verify` would put on the text.
	Sign(text string) (string, error)
}

// Program is a compiled expression; it is immutable and safe for concurrent use.
type Program struct {
	src     string
	run     node
	slots   int   // how many variables of list macros are alive at once
	stack   int   // how many arguments of functions
	path    *path // of a plain dotted path
	parts   []string
	literal *tree.Value
	reads   []Read
	needs   []string
}

// Read is one place where an expression reads a name.
type Read struct {
	Parts  []string // the name, then members and indices as far as they are written out, as Program.Path has them
	Within string   // the function or list macro it is a direct argument of, "" if there is none
	Offset int      // in bytes, in the source
}

// Memory is what evaluations need while they run. One after another may use it, and one within another, as where an
// Input evaluates; it is not for concurrent use. The zero Memory is ready.
type Memory struct {
	frame  frame
	values []tree.Value
	used   int // of values, by those that are running
}

// Eval evaluates the program. A plain path gives what stands there, Missing and Null told apart; anything computed
// gives Null for what is missing. Errors are *Error and hold nothing of the values.
func (p *Program) Eval(in Input) (tree.Value, error) {
	if v, done := p.quick(in); done {
		return v, nil
	}
	return p.EvalIn(new(Memory), in)
}

// quick evaluates what needs no memory.
func (p *Program) quick(in Input) (v tree.Value, done bool) {
	switch {
	case p.path != nil:
		return p.path.walk(in.Lookup(p.path.name)), true
	case p.literal != nil:
		return *p.literal, true
	}
	return v, false
}

// EvalIn is Eval in a memory that is there already.
func (p *Program) EvalIn(m *Memory, in Input) (tree.Value, error) {
	if v, done := p.quick(in); done {
		return v, nil
	}
	outer, base := m.frame, m.used
	m.frame = frame{in: in, left: costLimit}
	if n := p.slots + p.stack; n > 0 {
		if len(m.values)-base < n {
			m.values = make([]tree.Value, max(2*base+n, 8)) // those that are running keep the one they have
		}
		own := m.values[base : base+n : base+n]
		m.frame.locals, m.frame.stack = own[:p.slots:p.slots], own[p.slots:p.slots]
		m.used += n
	}
	v, err := p.run(&m.frame)
	m.frame, m.used = outer, base
	if err != nil {
		return tree.Value{}, err
	}
	if v.Kind() == tree.Missing {
		return tree.NullValue(), nil
	}
	return v, nil
}

// Reset forgets the values of what was evaluated, so that the memory can wait for its next use without keeping bodies
// alive. Nothing may be running in it.
func (m *Memory) Reset() {
	clear(m.values)
	m.frame, m.used = frame{}, 0
}

// True evaluates a condition: true if it gives true, false if it gives false or null. Errors are as Eval's.
func (p *Program) True(in Input) (bool, error) { return p.TrueIn(new(Memory), in) }

// TrueIn is True in a memory that is there already.
func (p *Program) TrueIn(m *Memory, in Input) (bool, error) {
	v, err := p.EvalIn(m, in)
	if err != nil {
		return false, err
	}
	return truth(v, 0)
}

// Path returns the parts of a plain dotted path, its name first; an index is its decimal text. Such a program only reads
// the tree and cannot fail.
func (p *Program) Path() (parts []string, plain bool) {
	return slices.Clone(p.parts), p.path != nil
}

// IsNullLiteral reports whether the expression is the word null.
func (p *Program) IsNullLiteral() bool { return p.literal != nil && p.literal.Kind() == tree.Null }

// Literal returns the value of an expression that is one literal: a text, a number, true, false or null.
func (p *Program) Literal() (tree.Value, bool) {
	if p.literal == nil {
		return tree.Value{}, false
	}
	return *p.literal, true
}

// Source returns the text the program was compiled from.
func (p *Program) Source() string { return p.src }

// Refers reports whether the expression reads the name.
func (p *Program) Refers(name string) bool {
	return slices.ContainsFunc(p.reads, func(r Read) bool { return r.Parts[0] == name })
}

// Reads returns the places where the expression reads names, in the order of the source. A read of name["a"] is one of
// the parts name and a; a read whose member is computed, as name[other], has the parts before it only, and stands for
// all of them.
func (p *Program) Reads() []Read {
	reads := slices.Clone(p.reads)
	for i := range reads {
		reads[i].Parts = slices.Clone(reads[i].Parts)
	}
	return reads
}
