package provider

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/verify"
)

// Request is one delivery over HTTP, as it came. Its fields are not changed once
// it has been given to a Provider, except by Sign. A Request may be used by one
// goroutine at a time; what was read of it is kept for the next call.
type Request struct {
	Method string
	// URL is the public absolute address with its query, as the sender knows it.
	// Schemes that sign the address need it exactly so.
	URL    string
	Header http.Header
	// Body is exactly as it came on the wire.
	Body []byte

	read *delivery
}

// Accepted says what a delivery was accepted by.
type Accepted = verify.Accepted

// Rejected says why a delivery was not accepted. Its Reason is a stable label and
// its text never holds a secret or a part of the body.
type Rejected = verify.Rejected

// Reason says in one stable word why a delivery was rejected; see [Reasons].
type Reason = verify.Reason

// Reasons lists all reasons.
func Reasons() []Reason { return verify.Reasons() }

// ErrNotSignable says that a request cannot be signed as was asked: the signature
// belongs into the body, or the secret is the public half of a key that only the
// sender has.
var ErrNotSignable = verify.ErrNotSignable

// delivery is what one Provider has read of a Request.
type delivery struct {
	p        *Provider
	r        *verify.Request
	body     content
	parsed   bool
	accepted *Accepted
}

// delivery returns what p has read of r so far.
func (p *Provider) delivery(r *Request) *delivery {
	if r.read == nil || r.read.p != p {
		r.read = &delivery{p: p, r: &verify.Request{Method: r.Method, URL: r.URL, Header: r.Header, Raw: r.Body, Query: queryOf(r.URL)}}
		r.read.r.Items = r.read.itemInputs
	}
	return r.read
}

// queryOf reads the query of an address; what cannot be read is left out.
func queryOf(address string) url.Values {
	address, _, _ = strings.Cut(address, "#")
	_, query, has := strings.Cut(address, "?")
	if !has {
		return nil
	}
	values, _ := url.ParseQuery(query) // gives what it could read
	return values
}

// pathOf returns the path of an address, "" if it is none.
func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.EscapedPath()
}

// Verify checks a delivery as of now, over its bytes as they came. The error is a
// *Rejected.
func (p *Provider) Verify(now time.Time, r *Request) (*Accepted, error) {
	d := p.delivery(r)
	accepted, err := p.verifier.Verify(now, d.r, d.env(), p.secrets)
	if err != nil {
		return nil, err
	}
	d.accepted = &accepted
	return &accepted, nil
}

// itemInputs gives the names for each item of a split body, for signatures that
// stand in the items.
func (d *delivery) itemInputs() ([]expr.Input, error) {
	items, reason := d.items()
	if reason != "" {
		return nil, errors.New(reason)
	}
	inputs := make([]expr.Input, len(items))
	for i, it := range items {
		e := d.env()
		e.setItem(it)
		inputs[i] = e
	}
	return inputs, nil
}

// Answer is what a handshake is answered with, under status 200.
type Answer struct {
	Body        []byte
	ContentType string
}

// Challenge answers a request if it is the handshake by which a sender asks
// whether somebody listens; is says whether it was one. A POST is one only if it
// verifies: it is checked here, as of now, unless Verify has accepted it before.
// Nothing of a handshake is stored. The error says that the answer could not be
// made.
func (p *Provider) Challenge(now time.Time, r *Request) (answer *Answer, is bool, err error) {
	if p.challenge == nil || r.Method != p.challenge.Method() {
		return nil, false, nil
	}
	d := p.delivery(r)
	if r.Method == http.MethodPost && d.accepted == nil {
		if _, _ = p.Verify(now, r); d.accepted == nil {
			return nil, false, nil // it will be rejected as any other delivery
		}
	}
	secrets := p.secrets
	if d.accepted != nil && d.accepted.Secret >= 0 { // while two are live, the sender expects its own
		secrets = secrets[d.accepted.Secret : d.accepted.Secret+1]
	}
	body, contentType, is, err := p.challenge.Answer(r.Method, d.env(), secrets)
	if err != nil || !is {
		return nil, false, err
	}
	return &Answer{Body: body, ContentType: contentType}, true, nil
}

// HandshakeMethod returns the method of the handshake, "" if this sender has none.
func (p *Provider) HandshakeMethod() string {
	if p.challenge == nil {
		return ""
	}
	return p.challenge.Method()
}

// Sign makes a request that Verify accepts as of now: it sets the headers or the
// query that carry the signature or token. Signing is what the sender signs with,
// as [Secret].Signing; "" is the source's first secret. The error wraps
// [ErrNotSignable] if it cannot be done.
func (p *Provider) Sign(now time.Time, r *Request, signing string) error {
	var by verify.Signer
	switch {
	case signing != "":
		signer, err := p.verifier.ParseSigner(signing)
		if err != nil {
			return fmt.Errorf("sign for %s: %w", p.name, err)
		}
		by = signer
	case len(p.secrets) > 0:
		by = p.secrets[0]
	default:
		by = verify.Secret{}
	}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if len(p.idHeaders) > 0 && r.Header.Get(p.idHeaders[0]) == "" {
		r.Header.Set(p.idHeaders[0], "msg_"+digestText(r.Body)[:24])
	}
	r.read = nil
	d := p.delivery(r)
	names := d.env()
	names.volatile = true
	err := p.verifier.Sign(now, d.r, names, by)
	r.URL, r.Header, r.read = d.r.URL, d.r.Header, nil
	if err != nil {
		return fmt.Errorf("sign for %s: %w", p.name, err)
	}
	return nil
}
