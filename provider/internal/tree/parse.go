package tree

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxDepth is how deep lists and objects may be nested in a body.
const MaxDepth = 512

// A text may hold bytesPerValue times fewer values than bytes, and minValues in any case: what reads it costs a multiple of
// its values, and it is read before anybody knows who sent it.
const (
	minValues     = 200_000
	bytesPerValue = 6
)

// maxDoubled is how many doubled members a Document lists.
const maxDoubled = 100

// Document is a parsed body.
type Document struct {
	Root Value
	// Doubled holds the paths, their parts joined by points, of members that stand more than once in their object: of
	// each the first counts here, while another reader may take the last. At most 100 are listed; if there are more,
	// the last entry is "", the path of the whole body.
	Doubled []string
}

// SyntaxError says where and why a text cannot be read.
type SyntaxError struct {
	Offset int64  // in bytes
	Reason string // holds nothing of the text
}

// Error returns the reason and the place.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s, at byte %d", e.Reason, e.Offset)
}

// Parse reads one JSON text (RFC 8259, strictly). A byte order mark before it is skipped; bytes that are not UTF-8 inside
// strings do not fail it, they become U+FFFD in the text and stay as they are in Raw; lists and objects nested deeper
// than MaxDepth do, and so do more than 200,000 values and names of members, if they are more than one in 6 bytes. Any
// failure is a *SyntaxError. The data is copied.
func Parse(data []byte) (Document, error) {
	return ParseText(string(data))
}

// ParseText is Parse of a text.
func ParseText(text string) (Document, error) {
	if int64(len(text)) > math.MaxInt32 {
		return Document{}, &SyntaxError{Reason: "the text is longer than 2 GiB"}
	}
	p := parser{src: text, nodes: make([]node, 0, len(text)/12+8), most: max(minValues, len(text)/bytesPerValue)}
	if strings.HasPrefix(text, "\ufeff") {
		p.pos = len("\ufeff")
	}
	if err := p.value(); err != nil {
		return Document{}, err
	}
	p.space()
	if p.pos < len(p.src) {
		return Document{}, p.fail("more text follows the value")
	}
	c := &container{src: text, nodes: p.nodes}
	return Document{Root: c.value(0), Doubled: c.doubledPaths(p.doubled)}, nil
}

// parser makes the nodes of one text in one pass.
type parser struct {
	src     string
	pos     int
	depth   int
	nodes   []node
	most    int      // nodes
	doubled []uint32 // name nodes that stood in their object before
	table   []uint32 // scratch of findDoubled
}

func (p *parser) fail(reason string) *SyntaxError {
	return &SyntaxError{Offset: int64(p.pos), Reason: reason}
}

// unexpected says what should stand here.
func (p *parser) unexpected(wanted string) *SyntaxError {
	if p.pos >= len(p.src) {
		return p.fail("the text ends where " + wanted + " should follow")
	}
	return p.fail(wanted + " should stand here")
}

func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\n', '\t', '\r':
			p.pos++
		default:
			return
		}
	}
}

// value reads white space and a value.
func (p *parser) value() *SyntaxError {
	p.space()
	if p.pos >= len(p.src) {
		return p.unexpected("a value")
	}
	if len(p.nodes) >= p.most {
		return p.fail("the text holds too many values for its size")
	}
	switch c := p.src[p.pos]; c {
	case '"':
		return p.text()
	case '{':
		return p.object()
	case '[':
		return p.list()
	case 't':
		return p.word("true", Bool)
	case 'f':
		return p.word("false", Bool)
	case 'n':
		return p.word("null", Null)
	default:
		if c != '-' && (c < '0' || c > '9') {
			return p.unexpected("a value")
		}
		return p.number()
	}
}

// leaf adds a node without anything in it, that ends here.
func (p *parser) leaf(start int, kind Kind, coded bool) {
	p.nodes = append(p.nodes, node{
		start: uint32(start), end: uint32(p.pos), next: uint32(len(p.nodes) + 1), kind: kind, coded: coded,
	})
}

func (p *parser) word(word string, kind Kind) *SyntaxError {
	if !strings.HasPrefix(p.src[p.pos:], word) {
		return p.unexpected("a value")
	}
	start := p.pos
	p.pos += len(word)
	p.leaf(start, kind, false)
	return nil
}

func (p *parser) number() *SyntaxError {
	end, reason := scanNumber(p.src, p.pos)
	start := p.pos
	p.pos = end
	if reason != "" {
		return p.unexpected(reason)
	}
	p.leaf(start, Number, false)
	return nil
}

// open adds the node of a list or an object, to be closed when its end is known.
func (p *parser) open(kind Kind) (at int, err *SyntaxError) {
	if p.depth++; p.depth > MaxDepth {
		return 0, p.fail(fmt.Sprintf("lists and objects are nested deeper than %d", MaxDepth))
	}
	at = len(p.nodes)
	p.nodes = append(p.nodes, node{start: uint32(p.pos), kind: kind})
	p.pos++
	p.space()
	return at, nil
}

func (p *parser) close(at int, size uint32) {
	p.depth--
	p.pos++
	n := &p.nodes[at]
	n.end, n.next, n.size = uint32(p.pos), uint32(len(p.nodes)), size
}

// at reports whether c stands here.
func (p *parser) at(c byte) bool { return p.pos < len(p.src) && p.src[p.pos] == c }

func (p *parser) list() *SyntaxError {
	at, err := p.open(List)
	if err != nil {
		return err
	}
	size := uint32(0)
	for !p.at(']') || size > 0 {
		if err := p.value(); err != nil {
			return err
		}
		size++
		if p.space(); p.at(']') {
			break
		}
		if !p.at(',') {
			return p.unexpected("a comma or the end of the list")
		}
		p.pos++
	}
	p.close(at, size)
	return nil
}

func (p *parser) object() *SyntaxError {
	at, err := p.open(Object)
	if err != nil {
		return err
	}
	size := uint32(0)
	for !p.at('}') || size > 0 {
		if p.space(); !p.at('"') {
			return p.unexpected("the name of a member")
		}
		if err := p.text(); err != nil {
			return err
		}
		if p.space(); !p.at(':') {
			return p.unexpected("a colon")
		}
		p.pos++
		if err := p.value(); err != nil {
			return err
		}
		size++
		if p.space(); p.at('}') {
			break
		}
		if !p.at(',') {
			return p.unexpected("a comma or the end of the object")
		}
		p.pos++
	}
	p.close(at, size)
	p.nodes[at].size -= p.findDoubled(uint32(at), size)
	return nil
}

// text reads a string that begins here.
func (p *parser) text() *SyntaxError {
	start, i, coded, ascii := p.pos, p.pos+1, false, true
	for ; i < len(p.src); i++ {
		c := p.src[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			continue
		}
		switch {
		case c == '"':
			p.pos = i + 1
			p.leaf(start, String, coded || !ascii && !utf8.ValidString(p.src[start+1:i]))
			return nil
		case c == '\\':
			n := scanEscape(p.src[i:])
			if n == 0 {
				p.pos = i
				return p.fail("there is no such escape")
			}
			coded, i = true, i+n-1
		case c < ' ':
			p.pos = i
			return p.fail("a control character stands in a string")
		default:
			ascii = false
		}
	}
	p.pos = i
	return p.unexpected("the end of a string")
}

// scanEscape returns the length of the escape at the start of s, 0 if there is no such escape.
func scanEscape(s string) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(s) >= 6 && hexDigit(s[2])|hexDigit(s[3])|hexDigit(s[4])|hexDigit(s[5]) < 16 {
			return 6
		}
	}
	return 0
}

// scanNumber returns where the number that begins at i ends, or where and what is wanting.
func scanNumber(s string, i int) (end int, wanted string) {
	if i < len(s) && s[i] == '-' {
		i++
	}
	if i < len(s) && s[i] == '0' {
		i++
	} else if i = skipDigits(s, &wanted, i); wanted != "" {
		return i, wanted
	}
	if i < len(s) && s[i] == '.' {
		if i = skipDigits(s, &wanted, i+1); wanted != "" {
			return i, wanted
		}
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		i = skipDigits(s, &wanted, i)
	}
	return i, wanted
}

// skipDigits returns where the digits at i end; it sets wanted if there are none.
func skipDigits(s string, wanted *string, i int) int {
	start := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	if i == start {
		*wanted = "a digit"
	}
	return i
}

// seed makes the tables of findDoubled unguessable, so that no body can be made slow on purpose.
var seed = maphash.MakeSeed()

// fewNames is up to how many names of an object are compared each with each, which is sooner done than hashing them.
const fewNames = 8

// findDoubled marks the names in the object node at that stood in it before, and returns how many there are.
func (p *parser) findDoubled(at, size uint32) (doubled uint32) {
	switch {
	case size < 2:
		return 0
	case size <= fewNames:
		return p.findDoubledFew(at)
	}
	mask := uint32(1)
	for mask < 2*size {
		mask *= 2
	}
	var small [128]uint32 // enough for most, and none of the heap's
	table := small[:]
	if int(mask) > len(table) {
		if int(mask) > len(p.table) {
			p.table = make([]uint32, mask)
		}
		table = p.table[:mask]
		clear(table)
	}
	c := container{src: p.src, nodes: p.nodes}
	mask--
	for i, end := at+1, p.nodes[at].next; i < end; i = p.nodes[i+1].next {
		name := c.name(i)
		slot := uint32(maphash.String(seed, name)) & mask
		for table[slot] != 0 && c.name(table[slot]) != name {
			slot = (slot + 1) & mask
		}
		if table[slot] == 0 {
			table[slot] = i
			continue
		}
		p.again(i)
		doubled++
	}
	return doubled
}

// findDoubledFew is findDoubled for at most fewNames names.
func (p *parser) findDoubledFew(at uint32) (doubled uint32) {
	c := container{src: p.src, nodes: p.nodes}
	var names [fewNames]string
	n := 0
	for i, end := at+1, p.nodes[at].next; i < end; i = p.nodes[i+1].next {
		name := c.name(i)
		if slices.Contains(names[:n], name) {
			p.again(i)
			doubled++
			continue
		}
		names[n] = name
		n++
	}
	return doubled
}

// again notes that the name node i stood in its object before.
func (p *parser) again(i uint32) {
	p.nodes[i].again = true
	p.doubled = append(p.doubled, i)
}
