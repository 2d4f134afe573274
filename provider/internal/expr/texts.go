package expr

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/onceward/onceward/provider/internal/tree"
)

// textTest returns a test of two texts.
func textTest(holds func(s, t string) bool) impl {
	return func(f *frame, args []tree.Value) (tree.Value, error) {
		s, t, err := twoTexts(args)
		if err != nil {
			return tree.Value{}, err
		}
		return tree.BoolOf(holds(s, t)), f.chargeText(len(s) + len(t))
	}
}

// twoTexts returns the first two arguments.
func twoTexts(args []tree.Value) (s, t string, err error) {
	if s, err = textArg(args[0]); err != nil {
		return "", "", err
	}
	t, err = textArg(args[1])
	return s, t, err
}

// pattern is a regular expression and how long it takes to match a byte.
type pattern struct {
	re    *regexp.Regexp
	steps int
}

// compilePattern compiles a regular expression of RE2's syntax.
func compilePattern(text string) (pattern, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		hint := "the syntax is RE2's, without look-around and back references"
		return pattern{}, fault("the pattern of matches is not a regular expression", hint)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return pattern{}, fault("the pattern of matches is not a regular expression", "")
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return pattern{}, fault("the pattern of matches is not a regular expression", "")
	}
	return pattern{re: re, steps: len(prog.Inst)}, nil
}

// match runs a pattern over the first argument.
func (p pattern) match(f *frame, v tree.Value) (tree.Value, error) {
	s, err := textArg(v)
	if err != nil {
		return tree.Value{}, err
	}
	if err := f.charge((len(s) + 16) * p.steps / 32); err != nil {
		return tree.Value{}, err
	}
	return tree.BoolOf(p.re.MatchString(s)), nil
}

// prepareMatches compiles a literal pattern once.
func prepareMatches(args []*tree.Value) (impl, error) {
	if args[1] == nil || args[1].Kind() != tree.String {
		return matchesDynamic, nil
	}
	text, _ := args[1].Text()
	p, err := compilePattern(text)
	if err != nil {
		return nil, err
	}
	return func(f *frame, args []tree.Value) (tree.Value, error) { return p.match(f, args[0]) }, nil
}

// matchesDynamic compiles a pattern that is only known now, which is dear.
func matchesDynamic(f *frame, args []tree.Value) (tree.Value, error) {
	_, text, err := twoTexts(args)
	if err != nil {
		return tree.Value{}, err
	}
	if len(text) > 1000 {
		return tree.Value{}, fault("the pattern of matches is longer than 1000 bytes", "")
	}
	if err := f.charge(costLimit / 50); err != nil {
		return tree.Value{}, err
	}
	p, err := compilePattern(text)
	if err != nil {
		return tree.Value{}, err
	}
	return p.match(f, args[0])
}

// charAt gives the character at an index, "" just behind the last.
func charAt(f *frame, args []tree.Value) (tree.Value, error) {
	s, err := textArg(args[0])
	if err != nil {
		return tree.Value{}, err
	}
	i, err := intArg(args[1])
	if err != nil {
		return tree.Value{}, err
	}
	r := []rune(s)
	switch {
	case i == int64(len(r)):
		return madeText(f, 4*len(r), "")
	case i < 0 || i > int64(len(r)):
		return tree.Value{}, fault("the index is outside the text", "")
	}
	return madeText(f, 4*len(r), string(r[i]))
}

// search is what indexOf and lastIndexOf have in common: their texts as characters, and where to begin, at most at the end.
func search(f *frame, args []tree.Value, last bool) (s, t []rune, from int, err error) {
	a, b, err := twoTexts(args)
	if err != nil {
		return nil, nil, 0, err
	}
	s, t = []rune(a), []rune(b)
	if last {
		from = len(s) - len(t)
	}
	if len(args) == 3 {
		n, err := intArg(args[2])
		switch {
		case err != nil:
			return nil, nil, 0, err
		case n < 0:
			return nil, nil, 0, fault("the index is less than 0", "")
		case n >= int64(len(s)) && len(t) > 0: // CEL finds nothing from the end on, backwards too
			return nil, t, 0, nil
		}
		from = int(min(n, int64(len(s))))
	}
	return s, t, from, f.charge(len(s) * (1 + len(t)/16))
}

// indexOf gives the index of the first place of a text at or after an index, -1 if there is none.
func indexOf(f *frame, args []tree.Value) (tree.Value, error) {
	s, t, from, err := search(f, args, false)
	if err != nil {
		return tree.Value{}, err
	}
	for i := from; i+len(t) <= len(s); i++ {
		if slices.Equal(s[i:i+len(t)], t) {
			return tree.IntOf(int64(i)), nil
		}
	}
	return tree.IntOf(-1), nil
}

// lastIndexOf gives the index of the last place of a text at or before an index, -1 if there is none.
func lastIndexOf(f *frame, args []tree.Value) (tree.Value, error) {
	s, t, from, err := search(f, args, true)
	if err != nil {
		return tree.Value{}, err
	}
	for i := min(from, len(s)-len(t)); i >= 0; i-- {
		if slices.Equal(s[i:i+len(t)], t) {
			return tree.IntOf(int64(i)), nil
		}
	}
	return tree.IntOf(-1), nil
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, s)
}

func upperASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, s)
}

// limitArg returns the argument at i, -1 (no limit) if it is not there.
func limitArg(args []tree.Value, i int) (int, error) {
	if len(args) <= i {
		return -1, nil
	}
	n, err := intArg(args[i])
	return int(max(-1, min(n, 1<<30))), err
}

// replace puts one text in the place of another.
func replace(f *frame, args []tree.Value) (tree.Value, error) {
	s, from, err := twoTexts(args)
	if err != nil {
		return tree.Value{}, err
	}
	to, err := textArg(args[2])
	if err != nil {
		return tree.Value{}, err
	}
	limit, err := limitArg(args, 3)
	if err != nil {
		return tree.Value{}, err
	}
	places := strings.Count(s, from)
	if limit >= 0 {
		places = min(places, limit)
	}
	if err := f.chargeText(len(s) + places*len(to)); err != nil { // before it is made
		return tree.Value{}, err
	}
	return tree.StringOf(strings.Replace(s, from, to, limit)), nil
}

// split gives the pieces between separators, the rest with the last piece of a limit.
func split(f *frame, args []tree.Value) (tree.Value, error) {
	s, separator, err := twoTexts(args)
	if err != nil {
		return tree.Value{}, err
	}
	limit, err := limitArg(args, 2)
	if err != nil {
		return tree.Value{}, err
	}
	if err := f.charge(len(s)/16 + strings.Count(s, separator)); err != nil {
		return tree.Value{}, err
	}
	pieces := strings.SplitN(s, separator, limit)
	list := make([]tree.Value, len(pieces))
	for i, piece := range pieces {
		list[i] = tree.StringOf(piece)
	}
	return tree.ListOf(list...), nil
}

// substring gives the characters from an index to before another.
func substring(f *frame, args []tree.Value) (tree.Value, error) {
	s, err := textArg(args[0])
	if err != nil {
		return tree.Value{}, err
	}
	r := []rune(s)
	from, to, err := span(args, len(r))
	if err != nil {
		return tree.Value{}, err
	}
	return madeText(f, 4*len(r), string(r[from:to]))
}

// span returns the from and to of args within something of length n; to may be left out.
func span(args []tree.Value, n int) (from, to int, err error) {
	a, err := intArg(args[1])
	if err != nil {
		return 0, 0, err
	}
	b := int64(n)
	if len(args) == 3 {
		if b, err = intArg(args[2]); err != nil {
			return 0, 0, err
		}
	}
	if a < 0 || b < a || b > int64(n) {
		return 0, 0, fault("the indices are outside what there is", "")
	}
	return int(a), int(b), nil
}

// reverse gives the characters of a text or the elements of a list from the last to the first.
func reverse(f *frame, args []tree.Value) (tree.Value, error) {
	if v := args[0]; v.Kind() == tree.List {
		list := slices.Collect(v.Elements())
		slices.Reverse(list)
		return tree.ListOf(list...), f.charge(len(list))
	}
	s, err := textArg(args[0])
	if err != nil {
		return tree.Value{}, err
	}
	r := []rune(s)
	slices.Reverse(r)
	return madeText(f, 4*len(r), string(r))
}
