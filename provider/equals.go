package provider

import (
	"regexp"
	"strings"

	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/tree"
)

// Most conditions of rules compare one member with a text, and all rules of a file
// the same member. It is read once for an event, and the texts are compared with
// it, which decides for most rules what their expression would.

// sameText is such a condition.
type sameText struct {
	read int // the place in Provider.compared
	text string
}

// compared is one member that conditions compare with texts.
type compared struct {
	source string
	prog   *expr.Program
}

var sameTextForm = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_.]*)\s*==\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*$`)

// sameText returns what a condition compares, nil if it does anything else.
func (c *compiler) sameText(condition string) *sameText {
	m := sameTextForm.FindStringSubmatch(condition)
	if m == nil {
		return nil
	}
	s := &sameText{text: m[2] + m[3], read: -1}
	for i, known := range c.p.compared {
		if known.source == m[1] {
			s.read = i
		}
	}
	if s.read < 0 {
		prog, err := expr.Compile(m[1], c.names) // without the name of an each, which differs between elements
		if err != nil {
			return nil
		}
		if _, plain := prog.Path(); !plain {
			return nil
		}
		s.read = len(c.p.compared)
		c.p.compared = append(c.p.compared, compared{strings.Clone(m[1]), prog})
	}
	return s
}

// comparedValue is what was read of a compared member.
type comparedValue struct {
	text string
	is   bool // it is a text
	done bool
	err  error
}

// same evaluates the condition.
func (e *env) same(s *sameText) (bool, error) {
	if e.compared == nil {
		e.compared = make([]comparedValue, len(e.d.p.compared))
	}
	v := &e.compared[s.read]
	if !v.done {
		value, err := e.eval(e.d.p.compared[s.read].prog)
		v.err, v.done = err, true
		if v.is = value.Kind() == tree.String; v.is {
			v.text, _ = value.Text()
		}
	}
	return v.is && v.text == s.text, v.err
}
