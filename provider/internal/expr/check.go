package expr

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// check visits the parsed expression: it notes what the expression reads, and which names and functions there are not.
func (c *compiler) check(e ast.Expr, within string) {
	switch e.Kind() {
	case ast.LiteralKind:
		c.checkLiteral(e)
	case ast.IdentKind, ast.SelectKind:
		c.checkRead(e, within)
	case ast.CallKind:
		c.checkCall(e, within)
	case ast.ListKind:
		c.checkAll(e.AsList().Elements(), "")
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			c.checkKey(entry.AsMapEntry().Key())
			c.check(entry.AsMapEntry().Value(), "")
		}
	case ast.ComprehensionKind:
		c.checkMacro(e)
	default:
		c.fail(e, "an expression cannot make messages", `an object is written {"name": value}`)
	}
}

func (c *compiler) checkAll(list []ast.Expr, within string) {
	for _, e := range list {
		c.check(e, within)
	}
}

func (c *compiler) checkLiteral(e ast.Expr) {
	switch e.AsLiteral().(type) {
	case types.Bytes:
		c.fail(e, "there are no bytes apart from texts", `write "…" without the b`)
	case types.Uint:
		c.fail(e, "there are no unsigned numbers", "leave the u out")
	}
}

func (c *compiler) checkKey(key ast.Expr) {
	if key.Kind() == ast.LiteralKind {
		if _, ok := key.AsLiteral().(types.String); !ok {
			c.fail(key, "the names of an object's members are texts", `write {"name": value}`)
		}
	}
	c.check(key, "")
}

// checkRead notes the path that e reads, as far as it is written out, and checks its name.
func (c *compiler) checkRead(e ast.Expr, within string) {
	root, parts := e, []string(nil)
	for {
		operand, part, ok := member(root)
		if !ok {
			break
		}
		root, parts = operand, append(parts, part)
	}
	if root.Kind() != ast.IdentKind {
		c.check(root, "")
		return
	}
	name := root.AsIdent()
	if slices.Contains(c.scope, name) {
		return
	}
	if !c.names.Has(name) {
		c.undeclared(root)
		return
	}
	slices.Reverse(parts)
	c.reads = append(c.reads, Read{Parts: append([]string{name}, parts...), Within: within, Offset: c.offset(root)})
}

// member takes the last member or written-out index off a path.
func member(e ast.Expr) (operand ast.Expr, part string, ok bool) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().Operand(), e.AsSelect().FieldName(), true
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || call.Args()[1].Kind() != ast.LiteralKind {
			return nil, "", false
		}
		switch index := call.Args()[1].AsLiteral().(type) {
		case types.String:
			return call.Args()[0], string(index), true
		case types.Int:
			if index >= 0 && index <= 1<<31-1 {
				return call.Args()[0], strconv.FormatInt(int64(index), 10), true
			}
		}
	}
	return nil, "", false
}

// undeclared reports a name that is not there, with what was probably meant.
func (c *compiler) undeclared(e ast.Expr) {
	name := e.AsIdent()
	msg := fmt.Sprintf("undeclared reference to '%s'", name)
	bare := strings.TrimPrefix(name, ".")
	near := nearest(bare, append(c.names.sorted(), c.scope...))
	fn := functions()[functionKey{name: name}]
	switch {
	case c.afterHyphen(e):
		c.fail(e, msg, `a member whose name has a "-" in it is written body["a-b"]`)
	case near != "":
		c.fail(e, msg, fmt.Sprintf("did you mean %q?", near))
	case fn != nil:
		c.fail(e, msg, "the function is called "+fn.use)
	case c.names.Has("body"):
		c.fail(e, msg, fmt.Sprintf("a member of the body is written body.%s", bare))
	default:
		c.fail(e, msg, c.listNames())
	}
}

// afterHyphen reports whether e follows a member and a hyphen without a space, as in body.a-b.
func (c *compiler) afterHyphen(e ast.Expr) bool {
	at := c.offset(e)
	return at >= 2 && c.src[at-1] == '-' && identifier.MatchString("x"+c.src[at-2:at-1])
}

// listNames says which names there are.
func (c *compiler) listNames() string {
	names := c.names.sorted()
	switch {
	case len(names) == 0:
		return "no names can be used here"
	case len(names) > 12:
		names = append(names[:12], "…")
	}
	return "the names here are " + strings.Join(names, ", ")
}

// checkCall checks an operator's arguments, or a function's name and number of values.
func (c *compiler) checkCall(e ast.Expr, within string) {
	call := e.AsCall()
	name := call.FunctionName()
	if _, _, ok := member(e); ok {
		c.checkRead(e, within)
		return
	}
	if _, operator := operatorSigs()[name]; operator && !call.IsMemberFunction() {
		c.checkAll(call.Args(), "")
		return
	}
	key := functionKey{name, call.IsMemberFunction()}
	args := call.Args()
	if key.member {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	fn := functions()[key]
	switch {
	case fn == nil:
		if c.unknownFunction(e, key) {
			return // what would be the variable of a macro is no name
		}
	case fn.signOnly && !c.names.sign:
		c.fail(e, name+" cannot be used here", "it is for challenge, where the source has a secret to sign with")
	case !fn.takesCount(len(args)):
		c.fail(e, fmt.Sprintf("%s does not take %s", name, values(len(call.Args()))), "it is written "+fn.use)
	}
	c.checkAll(args, name)
}

func values(n int) string {
	if n == 1 {
		return "1 value"
	}
	return strconv.Itoa(n) + " values"
}

// unknownFunction reports a function that is not there, with what was probably meant, and whether that may be a macro.
func (c *compiler) unknownFunction(e ast.Expr, key functionKey) (isMacro bool) {
	if slices.Contains(waiting, key.name) {
		c.fail(e, key.name+" is not there yet: it waits for the catalogue", "")
		return true
	}
	if use := macroUses[key.name]; use != "" {
		c.fail(e, key.name+" is not written so", "it is written "+use)
		return true
	}
	if other := functions()[functionKey{key.name, !key.member}]; other != nil {
		c.fail(e, fmt.Sprintf("%s is not written so", key.name), "it is written "+other.use)
		return false
	}
	if hint, known := unknowns[key.name]; known {
		c.fail(e, fmt.Sprintf("there is no %s()", key.name), hint)
		return true
	}
	near, use := nearestFunction(key.name)
	hint := ""
	if near != "" {
		hint = "did you mean " + use + "?"
	}
	c.fail(e, fmt.Sprintf("there is no function '%s'", key.name), hint)
	return macroUses[near] != ""
}

// nearestFunction returns the function or macro that name was probably meant to be, and how it is written.
func nearestFunction(name string) (near, use string) {
	uses := maps.Clone(macroUses)
	for key, fn := range functions() {
		uses[key.name] = fn.use
	}
	near = nearest(name, slices.Sorted(maps.Keys(uses)))
	return near, uses[near]
}

// checkMacro checks what a list macro ranges over, and its expressions with its variable.
func (c *compiler) checkMacro(e ast.Expr) {
	m := c.macro(e)
	c.check(m.list, m.name)
	c.scope = append(c.scope, m.variable)
	for _, part := range []ast.Expr{m.condition, m.value} {
		if part != nil {
			c.check(part, "")
		}
	}
	c.scope = c.scope[:len(c.scope)-1]
}

// macro is a list macro as it was written.
type macro struct {
	name      string
	variable  string
	list      ast.Expr
	condition ast.Expr // of all, exists, filter, and of map with one; else nil
	value     ast.Expr // of map; else nil
}

// macro finds the parts of a list macro in the loop that CEL's parser made of it.
func (c *compiler) macro(e ast.Expr) macro {
	loop := e.AsComprehension()
	m := macro{variable: loop.IterVar(), list: loop.IterRange()}
	if call, ok := c.info.GetMacroCall(e.ID()); ok {
		m.name = call.AsCall().FunctionName()
	}
	step := loop.LoopStep().AsCall()
	if m.name == operators.All || m.name == operators.Exists { // result && condition, result || condition
		m.condition = step.Args()[1]
		return m
	}
	if step.FunctionName() == operators.Conditional { // condition ? result + [value] : result
		m.condition, step = step.Args()[0], step.Args()[1].AsCall()
	}
	if m.name == operators.Map {
		m.value = step.Args()[1].AsList().Elements()[0]
	}
	return m
}
