package expr

import (
	"math"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"github.com/onceward/onceward/provider/internal/tree"
)

// op is a binary operator; it sees nulls.
type op func(f *frame, a, b tree.Value) (tree.Value, error)

// binaryOps holds the operators that always need both sides.
var binaryOps = map[string]op{
	operators.Equals:        equals(true),
	operators.NotEquals:     equals(false),
	operators.Less:          compares("<", func(c int) bool { return c < 0 }),
	operators.LessEquals:    compares("<=", func(c int) bool { return c <= 0 }),
	operators.Greater:       compares(">", func(c int) bool { return c > 0 }),
	operators.GreaterEquals: compares(">=", func(c int) bool { return c >= 0 }),
	operators.Add:           add,
	operators.Subtract:      arithmetic("-", subtract),
	operators.Multiply:      arithmetic("*", multiply),
	operators.Divide:        arithmetic("/", divide),
	operators.Modulo:        arithmetic("%", modulo),
	operators.In:            in,
	operators.Index:         index,
}

func binary(left, right node, do op, offset int) node {
	return func(f *frame) (tree.Value, error) {
		a, err := left(f)
		if err != nil {
			return a, err
		}
		b, err := right(f)
		if err != nil {
			return b, err
		}
		v, err := do(f, a, b)
		return v, placed(err, offset)
	}
}

func unary(operand node, do func(tree.Value) (tree.Value, error), offset int) node {
	return func(f *frame) (tree.Value, error) {
		v, err := operand(f)
		if err != nil {
			return v, err
		}
		v, err = do(v)
		return v, placed(err, offset)
	}
}

// equals compares anything with anything; null equals null and what is missing.
func equals(want bool) op {
	return func(f *frame, a, b tree.Value) (tree.Value, error) {
		if err := f.chargeEqual(a, b); err != nil {
			return tree.Value{}, err
		}
		return tree.BoolOf(tree.Equal(a, b) == want), nil
	}
}

// compares orders two numbers, texts, truth values or instants.
func compares(sign string, holds func(c int) bool) op {
	return func(f *frame, a, b tree.Value) (tree.Value, error) {
		if a.IsNull() || b.IsNull() {
			return tree.BoolOf(false), nil
		}
		c, ok := tree.Compare(a, b)
		if !ok {
			return tree.Value{}, mismatch(sign, a, b)
		}
		return tree.BoolOf(holds(c)), f.chargeEqual(a, b)
	}
}

// mismatch says that an operator does not take these two.
func mismatch(sign string, a, b tree.Value) error {
	hint := ""
	for _, pair := range [][2]tree.Value{{a, b}, {b, a}} {
		if pair[0].Kind() == tree.Number && pair[1].Kind() == tree.String {
			hint = "int(x) reads a whole number from a text, string(x) gives the text of a number"
		}
	}
	return fault(sign+" does not take "+describe(a)+" and "+describe(b), hint)
}

// arithmetic is an operator on whole numbers, exact to 64 bits.
func arithmetic(sign string, do func(a, b int64) (int64, string)) op {
	return func(_ *frame, a, b tree.Value) (tree.Value, error) {
		if a.IsNull() || b.IsNull() {
			return tree.NullValue(), nil
		}
		x, ok := a.Int64()
		y, both := b.Int64()
		if !ok || !both {
			return tree.Value{}, notWhole(sign, a, b)
		}
		n, wrong := do(x, y)
		if wrong != "" {
			return tree.Value{}, fault(wrong, "")
		}
		return tree.IntOf(n), nil
	}
}

// notWhole says why there is no arithmetic on a and b.
func notWhole(sign string, a, b tree.Value) error {
	if a.Kind() == tree.Number && b.Kind() == tree.Number {
		return fault("there is arithmetic on whole numbers of 64 bits only", "minor(x, currency) turns a decimal into minor units")
	}
	return mismatch(sign, a, b)
}

const overflow = "the result does not fit 64 bits"

func plus(a, b int64) (int64, string) {
	if n := a + b; (n > a) == (b > 0) {
		return n, ""
	}
	return 0, overflow
}

func subtract(a, b int64) (int64, string) {
	if n := a - b; (n < a) == (b > 0) {
		return n, ""
	}
	return 0, overflow
}

func multiply(a, b int64) (int64, string) {
	if a == 0 || b == 0 {
		return 0, ""
	}
	n := a * b
	if n/b != a || a == -1 && b == math.MinInt64 || b == -1 && a == math.MinInt64 {
		return 0, overflow
	}
	return n, ""
}

func divide(a, b int64) (int64, string) {
	switch {
	case b == 0:
		return 0, "there is no division by 0"
	case a == math.MinInt64 && b == -1:
		return 0, overflow
	}
	return a / b, ""
}

func modulo(a, b int64) (int64, string) {
	switch {
	case b == 0:
		return 0, "there is no division by 0"
	case a == math.MinInt64 && b == -1: // CEL has it so
		return 0, overflow
	}
	return a % b, ""
}

func negate(v tree.Value) (tree.Value, error) {
	if v.IsNull() {
		return tree.NullValue(), nil
	}
	n, err := intArg(v)
	if err != nil {
		return tree.Value{}, err
	}
	if n == math.MinInt64 {
		return tree.Value{}, fault(overflow, "")
	}
	return tree.IntOf(-n), nil
}

// add is the sum of whole numbers, or two texts or lists one after the other.
func add(f *frame, a, b tree.Value) (tree.Value, error) {
	switch {
	case a.IsNull() || b.IsNull():
		return tree.NullValue(), nil
	case a.Kind() == tree.String && b.Kind() == tree.String:
		s, _ := a.Text()
		t, _ := b.Text()
		if err := f.chargeText(len(s) + len(t)); err != nil {
			return tree.Value{}, err
		}
		return tree.StringOf(s + t), nil
	case a.Kind() == tree.List && b.Kind() == tree.List:
		if err := f.charge(a.Weight() + b.Weight()); err != nil {
			return tree.Value{}, err
		}
		list := make([]tree.Value, 0, a.Len()+b.Len())
		for _, part := range []tree.Value{a, b} {
			for e := range part.Elements() {
				list = append(list, e)
			}
		}
		return tree.ListOf(list...), nil
	}
	return arithmetic("+", plus)(f, a, b)
}

// in tells whether a list holds a value or an object has a member.
func in(f *frame, a, b tree.Value) (tree.Value, error) {
	if a.IsNull() || b.IsNull() {
		return tree.BoolOf(false), nil
	}
	switch b.Kind() {
	case tree.List:
		found, err := hasElement(f, b, a)
		return tree.BoolOf(found), err
	case tree.Object:
		name, err := textArg(a)
		if err != nil {
			return tree.Value{}, err
		}
		return tree.BoolOf(b.Get(name).Kind() != tree.Missing), f.chargeRead(b, -1)
	}
	return tree.Value{}, fault("in looks into a list or an object, not "+describe(b), "x.contains(y) looks into a text")
}

// inTexts is in for a list of texts that is written out.
func inTexts(texts []string) op {
	return func(f *frame, a, _ tree.Value) (tree.Value, error) {
		if a.Kind() != tree.String {
			return tree.BoolOf(false), nil // the list holds no null either
		}
		s, _ := a.Text()
		found := slices.Contains(texts, s)
		return tree.BoolOf(found), f.charge(len(texts) + len(s)/16)
	}
}

// index reads the element or member that is computed; what is not there is missing.
func index(f *frame, a, b tree.Value) (tree.Value, error) {
	if a.IsNull() || b.IsNull() {
		return tree.NullValue(), nil
	}
	if b.Kind() == tree.String {
		name, _ := b.Text()
		return a.Get(name), f.chargeRead(a, -1)
	}
	i, err := intArg(b)
	if err != nil {
		return tree.Value{}, err
	}
	if i < 0 || i > math.MaxInt32 {
		return tree.Value{}, nil
	}
	name, _ := b.Text()
	s := step{name: name, index: int(i)}
	return s.read(a), f.chargeRead(a, int(i))
}

// truth returns the truth value of a condition's result; null is false.
func truth(v tree.Value, offset int) (bool, error) {
	if v.IsNull() {
		return false, nil
	}
	b, ok := v.Bool()
	if !ok {
		return false, placed(fault("a truth value is needed, not "+describe(v), ""), offset)
	}
	return b, nil
}

// buildTruth compiles a part that must give a truth value.
func (c *compiler) buildTruth(e ast.Expr) func(f *frame) (bool, error) {
	c.needTruth(e)
	n, offset := c.build(e), c.offset(e)
	return func(f *frame) (bool, error) {
		v, err := n(f)
		if err != nil {
			return false, err
		}
		return truth(v, offset)
	}
}

// buildLogic compiles && (decided by false) and || (decided by true). As CEL has it, a side that decides does so whichever
// side it is and even if the other fails.
func (c *compiler) buildLogic(e ast.Expr, decides bool) node {
	left, right := c.buildTruth(e.AsCall().Args()[0]), c.buildTruth(e.AsCall().Args()[1])
	return func(f *frame) (tree.Value, error) {
		a, err := left(f)
		if err == nil && a == decides || f.spent() {
			return tree.BoolOf(a), err
		}
		b, err2 := right(f)
		if err2 == nil && b == decides || f.spent() {
			return tree.BoolOf(b), err2
		}
		if err == nil {
			err = err2
		}
		return tree.BoolOf(!decides), err
	}
}

func (c *compiler) buildNot(e ast.Expr) node {
	operand := c.buildTruth(e.AsCall().Args()[0])
	return func(f *frame) (tree.Value, error) {
		b, err := operand(f)
		return tree.BoolOf(!b), err
	}
}

func (c *compiler) buildConditional(e ast.Expr) node {
	args := e.AsCall().Args()
	condition, yes, no := c.buildTruth(args[0]), c.build(args[1]), c.build(args[2])
	return func(f *frame) (tree.Value, error) {
		b, err := condition(f)
		switch {
		case err != nil:
			return tree.Value{}, err
		case b:
			return yes(f)
		}
		return no(f)
	}
}
