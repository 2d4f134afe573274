package expr

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Needs returns names without which the condition is false: where one of them is missing or null, to evaluate it gives
// false and no error, so that nobody has to. It finds those that the first comparison of the condition reads, and not all
// there may be.
func (p *Program) Needs() []string { return p.needs }

// needsOf finds the names that the first comparison of a condition compares: of a && b it is a's, since its being false
// decides before b is looked at.
func (c *compiler) needsOf(e ast.Expr) []string {
	for c.isCall(e, operators.LogicalAnd) {
		e = e.AsCall().Args()[0]
	}
	var names []string
	for _, operator := range []string{operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.Equals} {
		if !c.isCall(e, operator) {
			continue
		}
		literal := false // other than null
		for _, arg := range e.AsCall().Args() {
			switch arg.Kind() {
			case ast.IdentKind:
				names = append(names, arg.AsIdent())
			case ast.LiteralKind:
				literal = arg.AsLiteral() != types.NullValue
			default:
				return nil // what else it is may fail
			}
		}
		if operator == operators.Equals && !literal { // two nulls are equal
			return nil
		}
	}
	return names
}

func (c *compiler) isCall(e ast.Expr, operator string) bool {
	return e.Kind() == ast.CallKind && !e.AsCall().IsMemberFunction() && e.AsCall().FunctionName() == operator
}
