package expr

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/onceward/onceward/provider/internal/tree"
)

// build compiles e; what cannot be compiled goes to c.errs, and the node is then of no use.
func (c *compiler) build(e ast.Expr) node {
	c.built++
	if p, _ := c.plainPath(e); p != nil {
		return p.node(c.offset(e))
	}
	switch e.Kind() {
	case ast.LiteralKind:
		v := c.literal(e)
		return func(*frame) (tree.Value, error) { return v, nil }
	case ast.SelectKind:
		return c.buildSelect(e)
	case ast.CallKind:
		return c.buildCall(e)
	case ast.ListKind:
		return c.buildList(e)
	case ast.MapKind:
		return c.buildMap(e)
	case ast.ComprehensionKind:
		return c.buildMacro(e)
	}
	c.fail(e, "the expression cannot be compiled", "")
	return nil
}

// plainPath returns e as a path of a name or a macro's variable, nil if it is something else.
func (c *compiler) plainPath(e ast.Expr) (*path, []string) {
	var steps []step
	for e.Kind() != ast.IdentKind {
		operand, part, ok := member(e)
		if !ok {
			return nil, nil
		}
		s := step{name: part, index: -1}
		if e.Kind() == ast.CallKind {
			if i, ok := e.AsCall().Args()[1].AsLiteral().(types.Int); ok {
				s.index = int(i)
			}
		}
		steps, e = append(steps, s), operand
	}
	p := &path{name: e.AsIdent(), slot: c.slot(e.AsIdent())}
	parts := []string{p.name}
	for _, step := range slices.Backward(steps) {
		p.steps = append(p.steps, step)
		parts = append(parts, step.name)
	}
	return p, parts
}

// slot returns the slot of a macro's variable, -1 if name is none.
func (c *compiler) slot(name string) int {
	for i, v := range slices.Backward(c.scope) {
		if v == name {
			return i
		}
	}
	return -1
}

// literal returns the value of a literal; a decimal keeps its text from the source.
func (c *compiler) literal(e ast.Expr) tree.Value {
	switch v := e.AsLiteral().(type) {
	case types.Bool:
		return tree.BoolOf(bool(v))
	case types.Int:
		return tree.IntOf(int64(v))
	case types.String:
		return tree.StringOf(string(v))
	case types.Double:
		return c.decimal(e, float64(v))
	}
	return tree.NullValue()
}

// decimalText finds a decimal after its sign.
var decimalText = regexp.MustCompile(`^-?\s*([0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?)`)

// decimal returns a literal with a point or an exponent as it is written, so that no digit of it is lost.
func (c *compiler) decimal(e ast.Expr, value float64) tree.Value {
	text := strconv.FormatFloat(value, 'g', -1, 64)
	if found := decimalText.FindStringSubmatch(c.src[c.offset(e):]); found != nil {
		written := found[1]
		if strings.HasPrefix(written, ".") {
			written = "0" + written
		}
		if value < 0 {
			written = "-" + written
		}
		if f, err := strconv.ParseFloat(written, 64); err == nil && f == value {
			text = written
		}
	}
	v, ok := tree.NumberOf(text)
	if !ok {
		c.fail(e, "the number cannot be written so", "")
	}
	return v
}

// buildSelect compiles a member of what is computed.
func (c *compiler) buildSelect(e ast.Expr) node {
	operand, s := c.build(e.AsSelect().Operand()), step{name: e.AsSelect().FieldName(), index: -1}
	offset := c.offset(e)
	return func(f *frame) (tree.Value, error) {
		v, err := operand(f)
		if err != nil {
			return v, err
		}
		return s.read(v), placed(f.chargeRead(v, -1), offset)
	}
}

func (c *compiler) buildAll(list []ast.Expr) []node {
	nodes := make([]node, len(list))
	for i, e := range list {
		nodes[i] = c.build(e)
	}
	return nodes
}

func (c *compiler) buildList(e ast.Expr) node {
	nodes, offset := c.buildAll(e.AsList().Elements()), c.offset(e)
	if v, ok := c.literalList(e); ok {
		return func(*frame) (tree.Value, error) { return v, nil }
	}
	return func(f *frame) (tree.Value, error) {
		list := make([]tree.Value, len(nodes))
		for i, n := range nodes {
			v, err := n(f)
			if err != nil {
				return v, err
			}
			list[i] = v
		}
		v := tree.ListOf(list...)
		return v, placed(f.charge(v.Weight()), offset)
	}
}

// literalList returns a list all of whose elements are literals.
func (c *compiler) literalList(e ast.Expr) (tree.Value, bool) {
	elements := e.AsList().Elements()
	list := make([]tree.Value, len(elements))
	for i, element := range elements {
		if element.Kind() != ast.LiteralKind {
			return tree.Value{}, false
		}
		list[i] = c.literal(element)
	}
	return tree.ListOf(list...), true
}

// literalTexts returns the texts of a list that holds nothing else and is written out; nil for anything else.
func (c *compiler) literalTexts(e ast.Expr) []string {
	if e.Kind() != ast.ListKind {
		return nil
	}
	var texts []string
	for _, element := range e.AsList().Elements() {
		if element.Kind() != ast.LiteralKind {
			return nil
		}
		text, ok := element.AsLiteral().(types.String)
		if !ok {
			return nil
		}
		texts = append(texts, string(text))
	}
	return texts
}

func (c *compiler) buildMap(e ast.Expr) node {
	var keys, contents []ast.Expr
	for _, entry := range e.AsMap().Entries() {
		keys = append(keys, entry.AsMapEntry().Key())
		contents = append(contents, entry.AsMapEntry().Value())
	}
	names, nodes, offset := c.buildAll(keys), c.buildAll(contents), c.offset(e)
	return func(f *frame) (tree.Value, error) {
		members := make([]tree.Member, len(nodes))
		for i, n := range nodes {
			key, err := names[i](f)
			if err != nil {
				return key, err
			}
			name, err := textArg(key)
			if err != nil {
				return key, placed(err, offset)
			}
			v, err := n(f)
			if err != nil {
				return v, err
			}
			if v.Kind() == tree.Missing {
				v = tree.NullValue()
			}
			members[i] = tree.Member{Name: name, Value: v}
		}
		v := tree.ObjectOf(members...)
		if v.Len() < len(members) {
			return v, placed(fault("a name stands twice in the object", ""), offset)
		}
		return v, placed(f.charge(v.Weight()), offset)
	}
}

// buildCall compiles an operator or a function.
func (c *compiler) buildCall(e ast.Expr) node {
	call := e.AsCall()
	args := call.Args()
	if !call.IsMemberFunction() {
		switch call.FunctionName() {
		case operators.LogicalAnd, operators.LogicalOr:
			return c.buildLogic(e, call.FunctionName() == operators.LogicalOr)
		case operators.LogicalNot:
			return c.buildNot(e)
		case operators.Conditional:
			return c.buildConditional(e)
		case operators.Negate:
			return unary(c.build(args[0]), negate, c.offset(e))
		case operators.Equals, operators.NotEquals:
			c.checkEquality(e)
		}
		if op, ok := binaryOps[call.FunctionName()]; ok {
			left, right := c.build(args[0]), c.build(args[1])
			if words := c.literalTexts(args[1]); words != nil && call.FunctionName() == operators.In {
				op = inTexts(words)
			}
			return binary(left, right, op, c.offset(e))
		}
	} else {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	fn := functions()[functionKey{call.FunctionName(), call.IsMemberFunction()}]
	if fn == nil {
		c.fail(e, "the expression cannot be compiled", "")
		return nil
	}
	return c.buildFunction(e, fn, args)
}

// buildArgs compiles the arguments of a function, and notes how deep the stack becomes.
func (c *compiler) buildArgs(args []ast.Expr) []node {
	nodes, base := make([]node, len(args)), c.depth
	for i, arg := range args {
		nodes[i] = c.build(arg)
		c.depth++
		c.stack = max(c.stack, c.depth)
	}
	c.depth = base
	return nodes
}

// buildFunction compiles the call of a function.
func (c *compiler) buildFunction(e ast.Expr, fn *function, args []ast.Expr) node {
	run, nodes, offset := fn.run, c.buildArgs(args), c.offset(e)
	if fn.prepare != nil {
		literals := make([]*tree.Value, len(args))
		for i, arg := range args {
			if arg.Kind() == ast.LiteralKind {
				v := c.literal(arg)
				literals[i] = &v
			}
		}
		prepared, err := fn.prepare(literals)
		if wrong := (*Error)(nil); errors.As(err, &wrong) {
			c.fail(e, wrong.Msg, wrong.Hint)
			return nil
		}
		run = prepared
	}
	rule, given := fn.nulls, tree.NullValue()
	if rule == untrue {
		given = tree.BoolOf(false)
	}
	return func(f *frame) (tree.Value, error) {
		base, null := len(f.stack), false
		for _, n := range nodes {
			v, err := n(f)
			if err != nil {
				f.stack = f.stack[:base]
				return v, err
			}
			null = null || v.IsNull()
			f.stack = append(f.stack, v)
		}
		v, err := given, error(nil)
		if !null || rule == takes {
			v, err = run(f, f.stack[base:])
		}
		f.stack = f.stack[:base]
		return v, placed(err, offset)
	}
}
