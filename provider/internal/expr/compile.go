package expr

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/checker"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/onceward/onceward/provider/internal/tree"
)

// compiler makes a Program of one expression.
type compiler struct {
	src   string
	names Names
	ast   *ast.AST
	info  *ast.SourceInfo
	scope []string // the variables of the list macros around, outermost first; the index is the slot
	slots int
	depth int // how many arguments are on the stack where the node being built runs
	stack int // the most there may be
	built int // how many nodes have been built, by which the body of a loop is weighed
	reads []Read
	errs  []*Error
}

// Compile compiles an expression that gives a value. The error is an *Error, or several joined.
func Compile(src string, names Names) (*Program, error) {
	return compile(src, names, false)
}

// CompileCondition compiles an expression that gives a truth value: a comparison, a test, or such joined by &&, || and !. A
// bare member is an *Error, because what it holds is only known when an event comes.
func CompileCondition(src string, names Names) (*Program, error) {
	return compile(src, names, true)
}

func compile(src string, names Names, condition bool) (*Program, error) {
	c := &compiler{src: src, names: names}
	if strings.TrimSpace(src) == "" {
		return nil, &Error{Msg: "the expression is empty", Hint: "a member of the body is written body.id"}
	}
	if !utf8.ValidString(src) {
		return nil, &Error{Msg: "the expression is not UTF-8"}
	}
	source := common.NewTextSource(src)
	if !c.parse(source) {
		return nil, join(c.errs)
	}
	if c.check(c.ast.Expr(), ""); len(c.errs) > 0 {
		return nil, join(c.errs)
	}
	if c.checkTypes(source); len(c.errs) > 0 {
		return nil, join(c.errs)
	}
	root := c.ast.Expr()
	if condition {
		c.needTruth(root)
	}
	p := &Program{src: src, run: c.build(root)}
	if len(c.errs) > 0 {
		return nil, join(c.errs)
	}
	slices.SortStableFunc(c.reads, func(a, b Read) int { return cmp.Compare(a.Offset, b.Offset) })
	p.slots, p.stack, p.reads, p.needs = c.slots, c.stack, c.reads, c.needsOf(root)
	if plain, parts := c.plainPath(root); plain != nil && plain.slot < 0 {
		p.path, p.parts = plain, parts
	}
	if root.Kind() == ast.LiteralKind {
		v := c.literal(root)
		p.literal = &v
	}
	return p, nil
}

// parse reads the source into c.ast.
func (c *compiler) parse(source common.Source) bool {
	parser, err := newParser()
	if err != nil {
		c.impossible(err)
		return false
	}
	parsed, issues := parser.Parse(source)
	for _, e := range issues.GetErrors() {
		c.syntaxError(source, e)
	}
	if len(c.errs) > 0 {
		return false
	}
	c.ast, c.info = parsed, parsed.SourceInfo()
	return true
}

// impossible reports what no expression can cause.
func (c *compiler) impossible(err error) {
	c.errs = append(c.errs, &Error{Msg: "expressions cannot be compiled: " + err.Error(), cause: err})
}

var (
	keywordMember = regexp.MustCompile(`^\.\s*(in|true|false|null)\b`)
	digits        = regexp.MustCompile(`^-?(0x)?[0-9]+$`)
	firstWord     = regexp.MustCompile(`^[A-Za-z_0-9-]*`)
)

// syntaxError reports what CEL's parser found first; after that its errors say little.
func (c *compiler) syntaxError(source common.Source, e *common.Error) {
	if len(c.errs) > 0 {
		return
	}
	at := len(c.src)
	if offset, ok := source.LocationOffset(e.Location); ok {
		at = c.byteOffset(offset)
	}
	msg, hint := strings.TrimPrefix(e.Message, "Syntax error: "), ""
	before, rest := strings.TrimRight(c.src[:at], " \t\r\n"), c.src[at:]
	if strings.HasSuffix(before, ".") {
		rest = "." + rest
	}
	word := firstWord.FindString(rest)
	member := keywordMember.FindStringSubmatch(rest)
	switch {
	case member != nil:
		hint = fmt.Sprintf("a member called %s is written body[%q]", member[1], member[1])
	case strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "=="):
		hint = "equality is written =="
	case word == "and" || word == "or" || word == "not":
		hint = "and is written &&, or is written ||, not is written !"
	case slices.Contains(reserved, word):
		hint = "CEL keeps this word for itself; as a member it is written body." + word
	case digits.MatchString(word):
		hint = "whole numbers have 64 bits; a longer one is written as a text"
	case strings.TrimSpace(rest) == "" && strings.HasPrefix(msg, "mismatched"):
		msg = "the expression ends too early"
	}
	c.errs = append(c.errs, &Error{Offset: at, Msg: msg, Hint: hint})
}

// checkTypes runs CEL's type checker.
func (c *compiler) checkTypes(source common.Source) {
	env, err := newEnv(c.names.sorted())
	if err != nil {
		c.impossible(err)
		return
	}
	checked, issues := checker.Check(c.ast, source, env)
	c.ast = checked
	list := issues.GetErrors()
	if len(list) == 0 {
		return
	}
	nodes, wanted := make(map[int64]ast.Expr), make(map[int64]string)
	ast.PostOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		nodes[e.ID()] = e
		c.noteWanted(e, wanted)
	}))
	for _, issue := range list {
		e, ok := nodes[issue.ExprID]
		if !ok {
			c.errs = append(c.errs, &Error{Msg: issue.Message})
			continue
		}
		c.typeError(e, issue.Message, wanted)
	}
}

// noteWanted notes for the parts of e that must be of some kind what that is.
func (c *compiler) noteWanted(e ast.Expr, wanted map[int64]string) {
	switch e.Kind() {
	case ast.ComprehensionKind:
		m := c.macro(e)
		wanted[m.list.ID()] = "a list or an object"
		if m.condition != nil {
			wanted[m.condition.ID()] = "a truth value"
		}
	case ast.CallKind:
		switch e.AsCall().FunctionName() {
		case operators.LogicalAnd, operators.LogicalOr:
			for _, arg := range e.AsCall().Args() {
				wanted[arg.ID()] = "a truth value"
			}
		case operators.LogicalNot, operators.Conditional:
			wanted[e.AsCall().Args()[0].ID()] = "a truth value"
		}
	}
}

// typeError reports an operator or function whose arguments are not what it takes, or a part that is not what is wanted.
func (c *compiler) typeError(e ast.Expr, message string, wanted map[int64]string) {
	if what := wanted[e.ID()]; what != "" && c.ast.GetType(e.ID()).Kind() != types.ErrorKind {
		c.failAt(c.start(e), what+" is needed, not "+article(typeWord(c.ast.GetType(e.ID()))), "")
		return
	}
	switch e.Kind() {
	case ast.CallKind:
	case ast.SelectKind:
		operand := c.ast.GetType(e.AsSelect().Operand().ID())
		c.fail(e, article(typeWord(operand))+" has no members", "")
		return
	default:
		c.fail(e, message, "")
		return
	}
	call := e.AsCall()
	name, args := call.FunctionName(), call.Args()
	if condition := args; name == operators.Conditional || name == operators.LogicalNot {
		c.typeError(condition[0], message, wanted)
		return
	}
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	c.notTaken(e, name, args)
}

// notTaken reports that an operator or function does not take these arguments.
func (c *compiler) notTaken(e ast.Expr, name string, args []ast.Expr) {
	var kinds []string
	decimal := false
	for _, arg := range args {
		t := c.ast.GetType(arg.ID())
		decimal = decimal || t.Kind() == types.DoubleKind
		kinds = append(kinds, article(typeWord(t)))
	}
	hint := ""
	switch fn := functions()[functionKey{name, e.AsCall().IsMemberFunction()}]; {
	case fn != nil:
		hint = "it is written " + fn.use
	case decimal:
		hint = "minor(x, currency) turns a decimal into minor units"
	}
	if name == operators.Index {
		name = "[ ]"
	} else if display, ok := operators.FindReverse(name); ok {
		name = display
	}
	c.fail(e, fmt.Sprintf("%s does not take %s", name, strings.Join(kinds, " and ")), hint)
}

// checkEquality refuses to compare what can never be equal.
func (c *compiler) checkEquality(e ast.Expr) {
	a, b := c.equalityKind(e.AsCall().Args()[0]), c.equalityKind(e.AsCall().Args()[1])
	if a != b && a != types.DynKind && b != types.DynKind {
		c.notTaken(e, e.AsCall().FunctionName(), e.AsCall().Args())
	}
}

// equalityKind returns the kind of e's type; a number is a number, and what may be null or anything is anything.
func (c *compiler) equalityKind(e ast.Expr) types.Kind {
	switch k := c.ast.GetType(e.ID()).Kind(); k {
	case types.DoubleKind:
		return types.IntKind
	case types.BoolKind, types.IntKind, types.StringKind, types.TimestampKind, types.ListKind, types.MapKind:
		return k
	}
	return types.DynKind
}

// typeWord names a type.
func typeWord(t *types.Type) string {
	switch t.Kind() {
	case types.BoolKind:
		return tree.Bool.String()
	case types.IntKind:
		return "whole number"
	case types.DoubleKind:
		return "decimal number"
	case types.StringKind:
		return tree.String.String()
	case types.TimestampKind:
		return tree.Time.String()
	case types.ListKind:
		return tree.List.String()
	case types.MapKind:
		return tree.Object.String()
	case types.NullTypeKind:
		return tree.Null.String()
	}
	return "value"
}

// needTruth checks that e gives a truth value whatever the event holds.
func (c *compiler) needTruth(e ast.Expr) {
	t := c.ast.GetType(e.ID())
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Conditional {
		for _, branch := range e.AsCall().Args()[1:] {
			if branch.Kind() != ast.LiteralKind || branch.AsLiteral() != types.NullValue {
				c.needTruth(branch)
			}
		}
		return
	}
	switch {
	case t.Kind() == types.BoolKind:
	case t.Kind() == types.DynKind:
		c.failAt(c.start(e), "a truth value is needed", "compare: "+c.text(e)+" == true")
	default:
		c.failAt(c.start(e), "a truth value is needed, not "+article(typeWord(t)), "compare it with something")
	}
}

// text writes e for a hint, if it is a path, else an x.
func (c *compiler) text(e ast.Expr) string {
	if e.Kind() == ast.IdentKind {
		return e.AsIdent()
	}
	operand, part, ok := member(e)
	switch {
	case !ok:
		return "x"
	case e.Kind() == ast.SelectKind:
		return c.text(operand) + "." + part
	}
	if _, index := e.AsCall().Args()[1].AsLiteral().(types.Int); index {
		return c.text(operand) + "[" + part + "]"
	}
	return fmt.Sprintf("%s[%q]", c.text(operand), part)
}

func (c *compiler) fail(e ast.Expr, msg, hint string) {
	c.failAt(c.offset(e), msg, hint)
}

func (c *compiler) failAt(offset int, msg, hint string) {
	c.errs = append(c.errs, &Error{Offset: offset, Msg: msg, Hint: hint})
}

// start returns where the path that e ends begins.
func (c *compiler) start(e ast.Expr) int {
	for {
		operand, _, ok := member(e)
		if !ok {
			return c.offset(e)
		}
		e = operand
	}
}

// offset returns where e begins, in bytes; of an operator, where its sign stands.
func (c *compiler) offset(e ast.Expr) int {
	where, ok := c.info.GetOffsetRange(e.ID())
	if !ok {
		return 0
	}
	at := c.byteOffset(where.Start)
	if e.Kind() == ast.CallKind && at < len(c.src) && c.src[at] == '(' { // of a call, the parenthesis
		before := strings.TrimRight(c.src[:at], " \t\r\n")
		if name := e.AsCall().FunctionName(); strings.HasSuffix(before, name) {
			return len(before) - len(name)
		}
	}
	return at
}

// byteOffset turns an offset in characters into one in bytes.
func (c *compiler) byteOffset(characters int32) int {
	at := 0
	for ; characters > 0 && at < len(c.src); characters-- {
		_, n := utf8.DecodeRuneInString(c.src[at:])
		at += n
	}
	return at
}
