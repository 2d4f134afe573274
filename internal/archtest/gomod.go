package archtest

import (
	"fmt"
	"strings"
)

// GoMod is what the guards of the dependencies need of a go.mod.
type GoMod struct {
	// Go is the version of the language that the module asks for.
	Go string
	// Toolchain is the toolchain it asks for, usually "".
	Toolchain string
	// Require maps each required module to its version.
	Require map[string]string
	// Replace has the modules that are replaced, and Exclude those of which a
	// version is excluded. Neither holds for those who import the module.
	Replace, Exclude []string
}

// ParseGoMod reads the text of a go.mod. It fails on a line that it does not
// understand, so that nothing is passed over.
func ParseGoMod(text string) (*GoMod, error) {
	m := &GoMod{Require: map[string]string{}}
	block := ""
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch {
		case words[0] == ")":
			block = ""
			continue
		case len(words) == 2 && words[1] == "(":
			block = words[0]
			continue
		case block != "":
			words = append([]string{block}, words...)
		}
		if err := m.directive(words); err != nil {
			return nil, fmt.Errorf("go.mod line %d: %w", i+1, err)
		}
	}
	return m, nil
}

// directive takes one line, as it would be outside a block.
func (m *GoMod) directive(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("%q has no argument", words[0])
	}
	switch words[0] {
	case "go":
		m.Go = words[1]
	case "toolchain":
		m.Toolchain = words[1]
	case "require":
		if len(words) != 3 {
			return fmt.Errorf("a requirement has a path and a version")
		}
		m.Require[words[1]] = words[2]
	case "replace":
		m.Replace = append(m.Replace, words[1])
	case "exclude":
		m.Exclude = append(m.Exclude, words[1])
	case "module", "retract", "tool", "ignore", "godebug":
	default:
		return fmt.Errorf("unknown directive %q", words[0])
	}
	return nil
}
