package provider

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Secrets and params stand in a source's keys as references, $NAME or file:PATH. Who
// writes one in plain text, rightly or not, must not find it in an error, so what
// stands there is found in the text itself: also where it is no YAML.

// secretKeys are the keys under which a value may be a secret.
var secretKeys = []string{"secrets", "params", "token"}

var (
	secretKey = regexp.MustCompile(`(?:^|[\s{,\[?-])["']?(secrets|params|token)["']?[ \t]*:(?:\s|$|["'\[{])`)
	reference = regexp.MustCompile(`\$\{?\w+\}?|\bfile:[^\s,\]}"']+`)
	// declared is what the params of a provider file say: no values.
	declared = regexp.MustCompile(`\b(?:required|secret):\s*(?:true|false)\b|\babout:[^,}]*`)
	memberOf = regexp.MustCompile(`["']?[\w-]+["']?[ \t]*:(?:\s|$|[{])`)
	comment  = regexp.MustCompile(`(?:^|\s)#.*$`)
	plain    = regexp.MustCompile(`[^\s,\[\]{}"'-][^\s,\[\]{}"']*`)
)

// findSecrets marks the lines where a secret may stand in plain text, so that no
// snippet shows them, and remembers their words, so that no message does.
func (s *source) findSecrets() {
	key, column := "", 0
	var o opened
	for i, line := range s.lines {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		rest := line[indent:]
		if key != "" && !o.still() && rest != "" && indent <= column && !(indent == column && strings.HasPrefix(rest, "-")) {
			key = ""
		}
		if key == "" {
			m := secretKey.FindStringSubmatchIndex(line)
			if m == nil {
				continue
			}
			key, column, o = line[m[2]:m[3]], indent, opened{}
			if dash := strings.TrimLeft(rest, "- "); strings.HasPrefix(rest, "-") {
				column += len(rest) - len(dash) // the key of an item begins behind its dash
			}
			rest = line[m[3]:]
			if colon := strings.IndexByte(rest, ':'); colon >= 0 {
				rest = rest[colon+1:]
			}
		}
		o.read(rest)
		s.hide(i+1, key, rest)
	}
}

// opened is what a value has opened and not closed: it goes on in the next line,
// however that is indented.
type opened struct {
	brackets int
	quote    bool
}

func (o *opened) read(line string) {
	line = comment.ReplaceAllString(line, "")
	o.brackets += strings.Count(line, "[") + strings.Count(line, "{") - strings.Count(line, "]") - strings.Count(line, "}")
	o.quote = o.quote != (strings.Count(line, `"`)%2 == 1)
}

func (o *opened) still() bool { return o.brackets > 0 || o.quote }

// hide marks a line if anything but references stands under the key.
func (s *source) hide(line int, key, text string) {
	left := reference.ReplaceAllString(comment.ReplaceAllString(text, ""), "")
	if key == "params" {
		left = memberOf.ReplaceAllString(declared.ReplaceAllString(left, ""), " ")
	}
	words := plain.FindAllString(left, -1)
	if len(words) == 0 {
		return
	}
	s.secret[line] = true
	s.addWords(words...)
}

// hideNode marks what stands under the keys of secrets by the meaning of the YAML: as
// it is written with escapes, or in lines of its own.
func (s *source) hideNode(n *node, key string) {
	for _, item := range n.items {
		s.hideNode(item, key)
	}
	for _, e := range n.entries {
		switch {
		case key == "" && slices.Contains(secretKeys, e.key.text):
			s.hideNode(e.value, e.key.text)
		case key == "params" && (e.key.text == "about" || e.value.text == "true" || e.value.text == "false"):
		default:
			s.hideNode(e.value, key)
		}
	}
	if key == "" || n.kind != scalarNode || n.empty || reference.ReplaceAllString(n.text, "") == "" {
		return
	}
	for line := n.at.line; line <= n.at.line+strings.Count(n.text, "\n"); line++ {
		s.secret[line] = true
	}
	s.addWords(n.text)
	s.addWords(plain.FindAllString(n.text, -1)...)
}

// addWords keeps the longest first, since a word may hold another.
func (s *source) addWords(words ...string) {
	for _, word := range words {
		// What YAML reads as a tag, an alias or a key is named without its mark.
		for _, form := range []string{word, strings.Trim(word, "!*&|>%@`:")} {
			if form != "" && !slices.Contains(s.words, form) {
				s.words = append(s.words, form)
			}
		}
	}
	slices.SortStableFunc(s.words, func(a, b string) int { return len(b) - len(a) })
}

// distinctSecret is the length from which a word is hidden in messages about any line;
// a shorter one, which may be a part of any word, is so in those about its own line.
const distinctSecret = 6

// hidden reports whether a line may hold a secret.
func (s *source) hidden(line int, text string) bool {
	return s.secret[line] || slices.ContainsFunc(s.words, func(word string) bool {
		return len(word) >= distinctSecret && strings.Contains(text, word)
	})
}

// whats are what [node.what] says, which is nothing of the text.
var whats = []string{"a list", "a map", "nothing", "a text"}

// withoutSecrets returns the arguments of a message about this place without the
// secrets of its text.
func (p place) withoutSecrets(args []any) []any {
	if p.src == nil || len(p.src.words) == 0 {
		return args
	}
	clean := slices.Clone(args)
	for i, arg := range args {
		var text string
		switch a := arg.(type) {
		case string:
			if slices.Contains(whats, a) {
				continue
			}
			text = a
		case error:
			text = a.Error()
		case fmt.Stringer:
			text = a.String()
		default:
			continue
		}
		for _, word := range p.src.words {
			if len(word) >= distinctSecret || p.src.secret[p.line] {
				text = strings.ReplaceAll(text, word, Masked)
			}
		}
		clean[i] = text
	}
	return clean
}
