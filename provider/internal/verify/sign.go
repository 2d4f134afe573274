package verify

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/onceward/onceward/provider/internal/expr"
)

// ErrNotSignable says that no entry can be signed as was asked: the signature
// belongs into the body, a value only the sender knows is missing, or the secret or
// key is of the wrong kind.
var ErrNotSignable = errors.New("cannot be signed")

// Signer is what a request is signed with: a [Secret] of the Verifier, or a
// [SigningKey].
type Signer interface{ signer() }

func (Secret) signer()     {}
func (SigningKey) signer() {}

// Sign makes a request valid as of now for one entry, the first that can be signed
// with by: it sets the header or the query parameter (also in r.URL) that holds the
// signature, and the one that holds the timestamp, in the unit that stands there
// already, else in Unix seconds. In must read r.Header and r.Query as they are at
// the time it is asked. A signature or token that belongs into the body cannot be
// signed; a timestamp in the body is signed as it stands. `require` is not judged.
// The error is [ErrNotSignable] or wraps what failed.
func (v *Verifier) Sign(now time.Time, r *Request, in expr.Input, by Signer) error {
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if r.Query == nil {
		r.Query = url.Values{}
	}
	var reasons []error
	for _, e := range v.entries {
		err := e.sign(v, now, r, in, by)
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrNotSignable) {
			return err
		}
		reasons = append(reasons, err)
	}
	return errors.Join(reasons...)
}

func notSignable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotSignable, fmt.Sprintf(format, args...))
}

func (e *entry) sign(v *Verifier, now time.Time, r *Request, in expr.Input, by Signer) error {
	switch e.scheme {
	case SchemeNone:
		return nil
	case SchemeStandardWebhooks:
		return e.signStandard(v, now, r, by)
	case SchemeBasic:
		text, err := e.sharedKey(v, by)
		if err != nil {
			return err
		}
		return e.location.set(r, "Basic "+base64.StdEncoding.EncodeToString(text))
	case SchemeToken:
		text, err := e.sharedKey(v, by)
		if err != nil {
			return err
		}
		return e.put(r, string(text), "", "")
	}
	if !e.location.settable() {
		return notSignable("the signature is the value at %s; a sample that is signed already can be sent as it is", e.location.field.Source())
	}
	told, err := e.setTime(now, r, in)
	if err != nil {
		return err
	}
	kid := ""
	if k, ok := by.(SigningKey); ok {
		kid = k.Kid()
	}
	signature, err := e.signMessage(v, r, in, by, told, kid)
	if err != nil {
		return err
	}
	return e.put(r, e.encoding.encode(signature), told, kid)
}

// signMessage signs the first alternative of `signed`.
func (e *entry) signMessage(v *Verifier, r *Request, in expr.Input, by Signer, told, kid string) ([]byte, error) {
	holes := make([]string, len(e.format.holes))
	for i, name := range e.format.holes {
		switch name {
		case holeTimestamp:
			holes[i] = told
		case holeKid:
			holes[i] = kid
		}
	}
	vals := e.newValues(r, in, newBudget(len(r.Raw)))
	vals.timestamp, vals.holes = told, holes
	if e.signed[0].has(partDecoded) {
		var rej *Rejected
		if vals.decoded, rej = decodeBody(r.Header, r.Raw); rej != nil {
			return nil, fmt.Errorf("sign: %w", rej)
		}
	}
	m, rej := e.signed[0].build(vals)
	if rej != nil {
		return nil, fmt.Errorf("sign: %w", rej)
	}
	return e.signWith(v, by, m)
}

func (e *entry) signWith(v *Verifier, by Signer, m message) ([]byte, error) {
	if k, ok := by.(SigningKey); ok {
		signature, fits, err := k.sign(e, m)
		if err == nil && !fits {
			err = notSignable("scheme %s does not sign with a key of this kind", e.scheme)
		}
		return signature, err
	}
	if asymmetric(e.scheme) {
		return nil, notSignable("scheme %s signs with a private key; the secret holds the public one", e.scheme)
	}
	secret, err := e.sharedKey(v, by)
	if err != nil {
		return nil, err
	}
	return e.sum(m, secret), nil
}

// sharedKey is the first key that the secret gives to this entry.
func (e *entry) sharedKey(v *Verifier, by Signer) ([]byte, error) {
	secret, ok := by.(Secret)
	if !ok {
		return nil, notSignable("scheme %s signs with a shared secret", e.scheme)
	}
	for _, k := range e.keys(v, []Secret{secret}, "") {
		if k.secret >= 0 && k.shared != nil {
			return k.shared, nil
		}
	}
	return nil, notSignable("the secret is of no use to scheme %s", e.scheme)
}

// setTime puts now where the timestamp is read, and returns its text.
func (e *entry) setTime(now time.Time, r *Request, in expr.Input) (string, error) {
	if !e.timed() {
		return "", nil
	}
	if e.timestamp == nil {
		return formatInstant(now, formSeconds), nil
	}
	kind, name := settable(e.timestamp)
	if kind == "" {
		told, rej := e.toldTime(in)
		if rej != nil {
			return "", fmt.Errorf("sign: %w", rej)
		}
		return told, nil
	}
	form := formSeconds
	if kind == "headers" {
		if _, there, ok := parseInstant(r.Header.Get(name)); ok {
			form = there
		}
		r.Header.Set(name, formatInstant(now, form))
		return r.Header.Get(name), nil
	}
	if r.Query.Has(name) {
		return r.Query.Get(name), nil // the address is fixed where it is registered
	}
	text := formatInstant(now, form)
	r.Query.Set(name, text)
	r.URL = withQuery(r.URL, name, text)
	return text, nil
}

// put writes the signature by the entry's format to its place.
func (e *entry) put(r *Request, signature, told, kid string) error {
	holes := map[string]string{holeSignature: signature, holeTimestamp: told, holeKid: kid}
	for _, name := range e.format.holes {
		if _, known := holes[name]; !known {
			return notSignable("only the sender knows what {%s} in the format is", name)
		}
	}
	return e.location.set(r, e.format.render(holes))
}

// settable returns "headers" or "query" and the name, if that is all an expression
// reads.
func settable(prog *expr.Program) (kind, name string) {
	if prog == nil {
		return "", ""
	}
	path, plain := prog.Path()
	if plain && len(path) == 2 && (path[0] == "headers" || path[0] == "query") {
		return path[0], path[1]
	}
	return "", ""
}

func (l location) settable() bool {
	kind, _ := settable(l.field)
	return l.field == nil || kind != ""
}

// set writes a value to the location.
func (l location) set(r *Request, value string) error {
	header, query := l.header, l.query
	switch kind, name := settable(l.field); kind {
	case "headers":
		header = name
	case "query":
		query = name
	}
	switch {
	case header != "":
		if fixed, starred := strings.CutSuffix(header, "*"); starred {
			header = fixed + "1"
		}
		r.Header.Set(header, value)
	case query != "":
		r.Query.Set(query, value)
		r.URL = withQuery(r.URL, query, value)
	default:
		return notSignable("the token is the value at %s, in the body", l.field.Source())
	}
	return nil
}

func (e *entry) signStandard(v *Verifier, now time.Time, r *Request, by Signer) error {
	prefix := e.prefixes[0]
	id := r.Header.Get(prefix + "id")
	if id == "" {
		return notSignable("set the header %sid first", prefix)
	}
	told := formatInstant(now, formSeconds)
	m := standardMessage(id, told, r.Raw)
	version := "v1"
	var signature []byte
	if k, ok := by.(SigningKey); ok {
		var fits bool
		var err error
		if signature, fits, err = k.sign(standardPublic(), m); err != nil {
			return err
		} else if !fits {
			return notSignable("v1a signs with an Ed25519 key")
		}
		version = "v1a"
	} else {
		secret, err := e.sharedKey(v, by)
		if err != nil {
			return err
		}
		signature = standardShared().sum(m, secret)
	}
	r.Header.Set(prefix+"timestamp", told)
	r.Header.Set(prefix+"signature", version+","+encodingBase64.encode(signature))
	return nil
}

// SignText returns what the first entry with a shared secret would put on a text:
// its MAC in the entry's encoding. It is `sign(x)` of a challenge.
func (v *Verifier) SignText(text string, secret Secret) (string, error) {
	var m message
	m.add([]byte(text))
	reasons := []error{notSignable("no scheme of this source signs a text; hmac and standard-webhooks do")}
	for _, e := range v.entries {
		by := e
		if e.scheme == SchemeStandardWebhooks {
			by = standardShared()
		} else if e.scheme != SchemeHMAC {
			continue
		}
		key, err := e.sharedKey(v, secret)
		if err != nil {
			reasons[0] = err
			continue
		}
		return by.encoding.encode(by.sum(m, key)), nil
	}
	return "", errors.Join(reasons...)
}

// Generated is a new secret in both of its roles.
type Generated struct {
	Secret  string // what the source lists under `secrets`, for [Verifier.ParseSecret]
	Signing string // what the sender signs with, for [Verifier.ParseSigner]; the same for a shared secret
}

// Generate makes a secret for the first entry that can be signed. About random see
// [NewSigningKey].
func (v *Verifier) Generate(random io.Reader) (Generated, error) {
	for _, e := range v.entries {
		if e.scheme == SchemeNone || !e.location.settable() {
			continue
		}
		if asymmetric(e.scheme) {
			return generateKey(e.scheme, random)
		}
		secret := make([]byte, 32)
		if _, err := io.ReadFull(random, secret); err != nil {
			return Generated{}, fmt.Errorf("generate secret: %w", err)
		}
		text := hex.EncodeToString(secret)
		switch e.scheme {
		case SchemeBasic:
			text = "onceward:" + text
		case SchemeStandardWebhooks:
			text = prefixShared + base64.StdEncoding.EncodeToString(secret)
		}
		return Generated{Secret: text, Signing: text}, nil
	}
	return Generated{}, fmt.Errorf("generate secret: %w", notSignable("no entry takes a secret outside the body"))
}

func generateKey(scheme string, random io.Reader) (Generated, error) {
	k, err := NewSigningKey(scheme, random)
	if err != nil {
		return Generated{}, err
	}
	private, err := k.Text()
	if err != nil {
		return Generated{}, err
	}
	public, err := k.PublicText(scheme)
	if err != nil {
		return Generated{}, err
	}
	return Generated{Secret: public, Signing: private}, nil
}

// ParseSigner parses what a sender signs with: a private key where the text is one,
// else a secret of v.
func (v *Verifier) ParseSigner(text string) (Signer, error) {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, prefixPrivate) || strings.HasPrefix(trimmed, "-----BEGIN PRIVATE KEY") {
		return ParseSigningKey(trimmed)
	}
	return v.ParseSecret(text)
}
