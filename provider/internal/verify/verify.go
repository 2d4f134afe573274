package verify

import (
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/onceward/onceward/provider/internal/expr"
)

const (
	wordLetters   = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	headerLetters = wordLetters + "-_"
)

// Request is one delivery as it came.
type Request struct {
	Method string
	// URL is the public absolute address with its query, as the sender was given
	// it: the configured one, or the one that was seen.
	URL    string
	Header http.Header
	Query  url.Values
	Raw    []byte // the body as it came on the wire
	// Items gives one Input for each item of a body that is split, in order. It is
	// asked only by an entry that reads the item, each of which must then verify.
	// Nil, the Input of the call is the only one.
	Items func() ([]expr.Input, error)
}

// Accepted says what a delivery was accepted by.
type Accepted struct {
	Entry  int    // position of the entry under `verify`, from 0
	Scheme string // of that entry
	// Secret is the position of the secret that fits, -1 where none was needed or
	// one of the published keys fits.
	Secret int
	// SignedAt is when the sender says it signed, in UTC; zero if it does not say.
	SignedAt time.Time
	// BodySigned says that what was accepted covers the body.
	BodySigned bool
}

// call is the state of one Verify.
type call struct {
	v       *Verifier
	now     time.Time
	r       *Request
	in      expr.Input
	secrets []Secret
	budget  *budget

	decoded     []byte // of r.Raw, once asked for
	decodedRej  *Rejected
	decodedDone bool
}

// Verify checks a delivery as of now. It accepts when one entry accepts. A
// rejection is a [*Rejected], that of the entry that got furthest. Every live
// secret and every signature the request carries is tried, within the limits of
// this package. In gives the values of the names in expressions; it is asked only
// for what the file's expressions read.
func (v *Verifier) Verify(now time.Time, r *Request, in expr.Input, secrets []Secret) (Accepted, error) {
	c := &call{v: v, now: now, r: r, in: in, secrets: secrets, budget: newBudget(len(r.Raw))}
	var worst *Rejected
	for _, e := range v.entries {
		accepted, rej := e.verify(c)
		if rej == nil {
			accepted.Entry, accepted.Scheme = e.index, e.scheme
			return accepted, nil
		}
		rej.Entry, rej.Scheme = e.index, e.scheme
		worst = furthest(worst, rej)
	}
	if worst == nil { // a Verifier that Compile did not make has no entries
		worst = reject(ReasonKeyUnknown, "nothing says how to verify it")
	}
	return Accepted{}, worst
}

// CoversBody reports whether every way to be accepted binds the body. If not, an
// event may be shown as `body unsigned`; [Accepted.BodySigned] tells for one.
func (v *Verifier) CoversBody() bool {
	for _, e := range v.entries {
		if e.scheme == SchemeStandardWebhooks {
			continue
		}
		if !signs(e.scheme) || slices.ContainsFunc(e.signed, func(t template) bool { return !t.body }) {
			return false
		}
	}
	return true
}

// SignsAddress reports whether a signature covers the public address, so that behind
// a proxy the address has to be configured.
func (v *Verifier) SignsAddress() bool {
	return slices.ContainsFunc(v.entries, func(e *entry) bool {
		return slices.ContainsFunc(e.signed, func(t template) bool {
			return slices.ContainsFunc(t.parts, func(p part) bool {
				return p.kind == partURL || p.prog != nil && p.prog.Refers("url")
			})
		})
	})
}

// Credentials returns the headers and query parameters that carry a secret as it
// is, for those who keep or show a request to mask. A header may end in * for all
// that begin so.
func (v *Verifier) Credentials() (headers, query []string) {
	for _, e := range v.entries {
		if e.scheme != SchemeToken && e.scheme != SchemeBasic {
			continue
		}
		if e.location.header != "" {
			headers = append(headers, e.location.header)
		}
		if e.location.query != "" {
			query = append(query, e.location.query)
		}
		if kind, name := settable(e.location.field); kind == "headers" {
			headers = append(headers, textproto.CanonicalMIMEHeaderKey(name))
		} else if kind == "query" {
			query = append(query, name)
		}
	}
	return headers, query
}

// verify runs one entry: its signature for the delivery or for every item, then
// what it requires.
func (e *entry) verify(c *call) (Accepted, *Rejected) {
	items := []expr.Input{c.in}
	if (e.itemChecked || e.itemRequired) && c.r.Items != nil {
		var err error
		if items, err = c.r.Items(); err != nil {
			return Accepted{}, reject(ReasonUnreadable, "the body cannot be split into its items")
		}
	}
	switch {
	case len(items) == 0:
		return Accepted{}, reject(ReasonMissing, "the body holds no item that could be verified")
	case len(items) > maxItems:
		return Accepted{}, reject(ReasonMalformed, "more than %d items have to be verified one by one", maxItems)
	}
	checked := items[:1]
	if e.itemChecked {
		checked = items
	}
	var accepted Accepted
	for i, in := range checked {
		if !c.budget.hash(e.checkReads * len(c.r.Raw)) {
			return Accepted{}, errBudget()
		}
		one, rej := e.check(c, in)
		if rej != nil {
			return Accepted{}, rej
		}
		if i == 0 {
			accepted = one
		}
		accepted.BodySigned = accepted.BodySigned && one.BodySigned
	}
	if e.require == nil {
		return accepted, nil
	}
	if !e.itemRequired {
		items = items[:1]
	}
	return accepted, e.checkRequired(c, items)
}

// checkRequired evaluates `require` for every item.
func (e *entry) checkRequired(c *call, items []expr.Input) *Rejected {
	for _, in := range items {
		if e.require.Refers("raw") && !c.budget.hash(len(c.r.Raw)) {
			return errBudget()
		}
		holds, err := e.require.True(in)
		if err != nil {
			return reject(ReasonUnreadable, "require: %s cannot be computed: %s", e.require.Source(), err)
		}
		if !holds {
			return reject(ReasonRequire, "rightly signed, but this does not hold: %s", e.require.Source())
		}
	}
	return nil
}

// check checks the signature or token of the delivery, or of one item.
func (e *entry) check(c *call, in expr.Input) (Accepted, *Rejected) {
	switch e.scheme {
	case SchemeNone:
		return Accepted{Secret: -1}, nil
	case SchemeStandardWebhooks:
		return e.checkStandard(c)
	}
	values, rej := e.location.values(c.r, in)
	if rej != nil {
		return Accepted{}, rej
	}
	switch e.scheme {
	case SchemeBasic:
		return e.checkBasic(c, values)
	case SchemeToken:
		return e.checkToken(c, values)
	}
	return e.checkSigned(c, in, values)
}

// name says where the values are, for people.
func (l location) name() string {
	switch {
	case l.header != "":
		return "header " + l.header
	case l.query != "":
		return "query parameter " + l.query
	}
	return "value at " + l.field.Source()
}

// values returns the values at the location; at least one is not empty.
func (l location) values(r *Request, in expr.Input) ([]string, *Rejected) {
	var all []string
	switch {
	case strings.HasSuffix(l.header, "*"):
		all = headersBeginning(r.Header, strings.TrimSuffix(l.header, "*"))
	case l.header != "":
		all = r.Header.Values(l.header)
	case l.query != "":
		all = r.Query[l.query]
	default:
		text, err := evalText(l.field, in)
		if err != nil {
			return nil, reject(ReasonUnreadable, "field: %s", err)
		}
		all = []string{text}
	}
	if len(all) > maxValues {
		return nil, reject(ReasonMalformed, "more than %d times a %s", maxValues, l.name())
	}
	values := make([]string, 0, len(all))
	for _, value := range all {
		if value = trimBlank(value); value != "" {
			values = append(values, value)
		}
	}
	if len(values) == 0 {
		return nil, reject(ReasonMissing, "no %s; is a secret set at the sender, and is this its sender?", l.name())
	}
	return values, nil
}

// headersBeginning returns the values of all headers whose name begins so, in the
// order of their names.
func headersBeginning(header http.Header, prefix string) []string {
	var names []string
	for name := range header {
		if len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var values []string
	for _, name := range names {
		values = append(values, header[name]...)
	}
	return values
}

func canonicalHeader(name string) string {
	fixed := strings.TrimSuffix(name, "*")
	return textproto.CanonicalMIMEHeaderKey(fixed) + name[len(fixed):]
}

// read reads every value by the entry's format. A value that is not so written is
// passed over if another is; unreadable says what is wrong with the first.
func (e *entry) read(values []string) ([]candidate, *Rejected) {
	var all []candidate
	var unreadable *Rejected
	for _, value := range values {
		found, err := e.format.read(value)
		if err != nil {
			unreadable = furthest(unreadable, reject(ReasonMalformed, "the %s %s", e.location.name(), err))
		}
		all = append(all, found...)
	}
	all = append(all, e.readJoined(values, all)...)
	if len(all) > maxSignatures {
		return nil, reject(ReasonMalformed, "more than %d signatures", maxSignatures)
	}
	if len(all) > 0 {
		return all, nil
	}
	if unreadable == nil {
		unreadable = reject(ReasonMalformed, "the %s holds no piece of the form %s", e.location.name(), e.format.signaturePiece())
	}
	return nil, unreadable
}

// readJoined reads the lines of a header as the one value that they are to HTTP,
// for proxies cut a value at its commas. It returns what the lines do not hold each
// by itself, as far as the bound on signatures allows.
func (e *entry) readJoined(values []string, known []candidate) []candidate {
	comma := e.format.comma
	if len(values) < 2 || comma == "" || e.location.header == "" || strings.HasSuffix(e.location.header, "*") {
		return nil
	}
	size := 0
	for _, value := range values {
		size += len(value) + len(comma)
	}
	if size-len(comma) > maxValueBytes {
		return nil
	}
	found, err := e.format.read(strings.Join(values, comma))
	if err != nil {
		return nil // then the lines are no pieces of one value
	}
	var more []candidate
	for _, c := range found {
		same := func(k candidate) bool { return k.signature == c.signature && slices.Equal(k.holes, c.holes) }
		if !slices.ContainsFunc(known, same) && len(known)+len(more) < maxSignatures {
			more = append(more, c)
		}
	}
	return more
}

// signaturePiece is the piece that holds the signature, as it is written.
func (f *format) signaturePiece() string {
	signature := f.hole(holeSignature)
	for _, p := range f.pieces {
		if slices.Contains(p.holes, signature) {
			return p.text
		}
	}
	return "{signature}" // every format has one
}

// decodedBody is the body after its Content-Encoding, computed once.
func (c *call) decodedBody() ([]byte, *Rejected) {
	if !c.decodedDone {
		c.decoded, c.decodedRej = decodeBody(c.r.Header, c.r.Raw)
		c.budget.decoded(len(c.decoded))
		c.decodedDone = true
	}
	return c.decoded, c.decodedRej
}
