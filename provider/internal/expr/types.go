package expr

import (
	"fmt"
	"slices"
	"sync"

	"cel.dev/cel-go/checker"
	"cel.dev/cel-go/common/containers"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/parser"
)

// The types the checker knows. What a name holds is any of them; a text or a whole number may also be null.
var (
	anyT    = types.DynType
	boolT   = types.BoolType
	intT    = types.NewNullableType(types.IntType)
	numberT = types.NewNullableType(types.DoubleType) // a literal with a point or an exponent
	textT   = types.NewNullableType(types.StringType)
	timeT   = types.TimestampType
	listT   = types.NewListType(types.DynType)
)

// signature is what a function takes, the target of a member function first, and what it gives.
type signature struct {
	result *types.Type
	args   []*types.Type
}

func sig(result *types.Type, args ...*types.Type) signature { return signature{result, args} }

func sigs(s ...signature) []signature { return s }

// upTo returns signatures of 1 to n arguments of one type.
func upTo(n int, result, arg *types.Type) []signature {
	var all []signature
	var args []*types.Type
	for range n {
		args = append(args, arg)
		all = append(all, sig(result, slices.Clip(args)...))
	}
	return all
}

// operatorSigs returns what CEL's operators take here. It differs from CEL's own in that a decimal number is compared
// only, that null may stand for any whole number or text, and that the two sides of ?: may differ.
func operatorSigs() map[string][]signature {
	a, b := types.NewTypeParamType("A"), types.NewTypeParamType("B")
	listA, mapAB := types.NewListType(a), types.NewMapType(a, b)
	equality := sigs(sig(boolT, a, b)) // checkEquality says more
	order := sigs(
		sig(boolT, intT, intT), sig(boolT, numberT, numberT), sig(boolT, intT, numberT), sig(boolT, numberT, intT),
		sig(boolT, textT, textT), sig(boolT, timeT, timeT), sig(boolT, boolT, boolT),
	)
	whole := sigs(sig(intT, intT, intT))
	return map[string][]signature{
		operators.Conditional: sigs(sig(anyT, boolT, a, b)),
		operators.LogicalAnd:  sigs(sig(boolT, boolT, boolT)),
		operators.LogicalOr:   sigs(sig(boolT, boolT, boolT)),
		operators.LogicalNot:  sigs(sig(boolT, boolT)),
		operators.Equals:      equality, operators.NotEquals: equality,
		operators.Less: order, operators.LessEquals: order, operators.Greater: order, operators.GreaterEquals: order,
		operators.Add:      sigs(sig(intT, intT, intT), sig(textT, textT, textT), sig(listA, listA, listA)),
		operators.Subtract: whole, operators.Multiply: whole, operators.Divide: whole, operators.Modulo: whole,
		operators.Negate:           sigs(sig(intT, intT)),
		operators.Index:            sigs(sig(a, listA, intT), sig(b, mapAB, a)),
		operators.In:               sigs(sig(boolT, a, listA), sig(boolT, a, mapAB)),
		operators.NotStrictlyFalse: sigs(sig(boolT, boolT)),
	}
}

// overloads returns the options that declare signatures.
func overloads(name string, member bool, all []signature) []decls.FunctionOpt {
	var opts []decls.FunctionOpt
	for i, s := range all {
		id := fmt.Sprintf("%s/%v/%d", name, member, i)
		if member {
			opts = append(opts, decls.MemberOverload(id, s.args, s.result))
		} else {
			opts = append(opts, decls.Overload(id, s.args, s.result))
		}
	}
	return opts
}

// baseEnv is the type checker's environment without names.
var baseEnv = sync.OnceValues(func() (*checker.Env, error) {
	opts := make(map[string][]decls.FunctionOpt)
	for name, all := range operatorSigs() {
		opts[name] = overloads(name, false, all)
	}
	for key, fn := range functions() {
		opts[key.name] = append(opts[key.name], overloads(key.name, key.member, fn.sigs)...)
	}
	env, err := checker.NewEnv(containers.DefaultContainer, noTypes{})
	if err != nil {
		return nil, fmt.Errorf("new type checker: %w", err)
	}
	for name, o := range opts {
		decl, err := decls.NewFunction(name, o...)
		if err != nil {
			return nil, fmt.Errorf("declare %s: %w", name, err)
		}
		if err := env.AddFunctions(decl); err != nil {
			return nil, fmt.Errorf("declare %s: %w", name, err)
		}
	}
	return env, nil
})

// newEnv returns an environment in which the names may hold anything.
func newEnv(names []string) (*checker.Env, error) {
	base, err := baseEnv()
	if err != nil {
		return nil, err
	}
	env, err := checker.NewEnv(containers.DefaultContainer, noTypes{}, checker.ValidatedDeclarations(base))
	if err != nil {
		return nil, fmt.Errorf("new type checker: %w", err)
	}
	for _, name := range names {
		if err := env.AddIdents(decls.NewVariable(name, anyT)); err != nil {
			return nil, fmt.Errorf("declare %s: %w", name, err)
		}
	}
	return env, nil
}

// newParser is CEL's parser with the four list macros; it keeps their calls, by which they are told apart.
var newParser = sync.OnceValues(func() (*parser.Parser, error) {
	return parser.NewParser(
		parser.EnablePrattParser(true), parser.PopulateMacroCalls(true), parser.ExpressionSizeCodePointLimit(20_000),
		parser.MaxExpressionNodeCount(10_000), parser.ErrorReportingLimit(10), parser.ErrorRecoveryLimit(4),
		parser.Macros(parser.AllMacro, parser.ExistsMacro, parser.FilterMacro, parser.MapMacro, parser.MapFilterMacro),
	)
})

// noTypes is a types.Provider that knows no messages and no enumerations.
type noTypes struct{}

// EnumValue implements types.Provider.
func (noTypes) EnumValue(string) ref.Val { return types.NewErr("there are no enumerations") }

// FindIdent implements types.Provider.
func (noTypes) FindIdent(string) (ref.Val, bool) { return nil, false }

// FindStructType implements types.Provider.
func (noTypes) FindStructType(string) (*types.Type, bool) { return nil, false }

// FindStructFieldNames implements types.Provider.
func (noTypes) FindStructFieldNames(string) ([]string, bool) { return nil, false }

// FindStructFieldType implements types.Provider.
func (noTypes) FindStructFieldType(_, _ string) (*types.FieldType, bool) { return nil, false }

// NewValue implements types.Provider.
func (noTypes) NewValue(string, map[string]ref.Val) ref.Val {
	return types.NewErr("there are no messages")
}
