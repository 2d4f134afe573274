package verify

import (
	"crypto/ed25519"
	"encoding/base64"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/onceward/onceward/provider/internal/expr"
)

// group is the signatures that stand in the same surroundings, and so sign one
// message.
type group struct {
	holes      []string
	signatures [][]byte
}

// checkSigned checks the schemes that sign `signed`.
func (e *entry) checkSigned(c *call, in expr.Input, values []string) (Accepted, *Rejected) {
	candidates, rej := e.read(values)
	if rej != nil {
		return Accepted{}, rej
	}
	groups := e.groups(candidates)
	if len(groups) == 0 {
		return Accepted{}, reject(ReasonMalformed, "the %s holds no signature in %s", e.location.name(), e.encoding)
	}
	v := e.newValues(c.r, in, c.budget)
	if e.timestamp != nil {
		if v.timestamp, rej = e.toldTime(in); rej != nil {
			return Accepted{}, rej
		}
	}
	var worst *Rejected
	for _, g := range groups {
		v.holes = g.holes
		if hole := e.format.hole(holeTimestamp); e.timestamp == nil && hole >= 0 {
			v.timestamp = g.holes[hole]
		}
		accepted, rej := e.checkGroup(c, g, v)
		if rej == nil {
			return accepted, nil
		}
		worst = furthest(worst, rej)
	}
	return Accepted{}, worst
}

// groups decodes the signatures and puts together those with equal surroundings. A
// signature that cannot be decoded fits no key, so it is left out.
func (e *entry) groups(candidates []candidate) []group {
	var groups []group
	for _, cand := range candidates {
		signature, err := e.encoding.decode(cand.signature)
		if err != nil || len(signature) == 0 {
			continue
		}
		i := slices.IndexFunc(groups, func(g group) bool { return slices.Equal(g.holes, cand.holes) })
		if i < 0 {
			groups = append(groups, group{holes: cand.holes})
			i = len(groups) - 1
		}
		groups[i].signatures = append(groups[i].signatures, signature)
	}
	return groups
}

// toldTime is the text of the entry's `timestamp`.
func (e *entry) toldTime(in expr.Input) (string, *Rejected) {
	v, err := eval(e.timestamp, in)
	if err != nil {
		return "", reject(ReasonUnreadable, "timestamp: %s", err)
	}
	text, ok := timestampText(v)
	if !ok {
		return "", reject(ReasonMalformed, "%s is no timestamp", e.timestamp.Source())
	}
	return text, nil
}

// instant reads a timestamp. With a tolerance it must be there and readable.
func (e *entry) instant(text string) (time.Time, *Rejected) {
	at, _, ok := parseInstant(text)
	switch {
	case ok:
		return at, nil
	case e.tolerance == 0:
		return time.Time{}, nil
	case text == "":
		return time.Time{}, reject(ReasonMissing, "no timestamp at %s", e.timestampName())
	}
	return time.Time{}, reject(ReasonMalformed, "the timestamp at %s is not Unix seconds, milliseconds or RFC 3339", e.timestampName())
}

// timestampName says where the timestamp is, for people.
func (e *entry) timestampName() string {
	if e.timestamp != nil {
		return e.timestamp.Source()
	}
	return "{" + holeTimestamp + "} in the " + e.location.name()
}

// timed reports whether the entry says when a delivery was signed.
func (e *entry) timed() bool { return e.timestamp != nil || e.format.hole(holeTimestamp) >= 0 }

// checkGroup tries every alternative of `signed` with every key. The time is
// judged last, so that an expired or future delivery is known to be genuine.
func (e *entry) checkGroup(c *call, g group, v values) (Accepted, *Rejected) {
	var at time.Time
	if e.timed() {
		var rej *Rejected
		if at, rej = e.instant(v.timestamp); rej != nil {
			return Accepted{}, rej
		}
	}
	kid := ""
	if hole := e.format.hole(holeKid); hole >= 0 {
		kid = g.holes[hole]
	}
	keys := e.keys(c.v, c.secrets, kid)
	if len(keys) == 0 {
		return Accepted{}, e.noKey(kid)
	}
	var failed *Rejected
	tried := false
	for _, t := range e.signed {
		found, ok, rej := e.tryTemplate(c, t, g, keys, v)
		switch {
		case ok:
			if rej := withinTolerance(c.now, at, e.tolerance); e.timed() && rej != nil {
				return Accepted{}, rej
			}
			return Accepted{Secret: found.secret, SignedAt: at, BodySigned: t.body}, nil
		case c.budget.spent():
			return Accepted{}, rej
		case rej == nil:
			tried = true
		}
		failed = furthest(failed, rej)
	}
	if tried {
		return Accepted{}, e.differs()
	}
	return Accepted{}, failed
}

// tryTemplate tries one alternative of `signed`, with the address in each form.
func (e *entry) tryTemplate(c *call, t template, g group, keys []key, v values) (key, bool, *Rejected) {
	if t.has(partDecoded) {
		var rej *Rejected
		if v.decoded, rej = c.decodedBody(); rej != nil {
			return key{}, false, rej
		}
	}
	addresses := []string{c.r.URL}
	if t.has(partURL) {
		addresses = addressVariants(c.r.URL)
	}
	for _, v.url = range addresses {
		m, rej := t.build(v)
		if rej != nil {
			return key{}, false, rej
		}
		if found, ok, rej := e.match(c, m, g.signatures, keys); ok || rej != nil {
			return found, ok, rej
		}
	}
	return key{}, false, nil
}

func (e *entry) differs() *Rejected {
	if asymmetric(e.scheme) {
		return reject(ReasonDiffers, "no key of this source made the signature in the %s: another key, or bytes changed on the way", e.location.name())
	}
	return reject(ReasonDiffers, "no secret of this source made the signature in the %s: another secret, or bytes changed on the way", e.location.name())
}

func (e *entry) noKey(kid string) *Rejected {
	if kid != "" {
		return reject(ReasonKeyUnknown, "the key that the sender names is not among this source's keys; add its new public key")
	}
	return reject(ReasonKeyUnknown, "this source has nothing to check it with; list under `secrets` %s", e.secretNeeded())
}

// checkToken compares a token with the secrets.
func (e *entry) checkToken(c *call, values []string) (Accepted, *Rejected) {
	candidates, rej := e.read(values)
	if rej != nil {
		return Accepted{}, rej
	}
	var tokens []string
	for _, cand := range candidates {
		if cand.signature != "" {
			tokens = append(tokens, cand.signature)
		}
	}
	if len(tokens) == 0 {
		return Accepted{}, reject(ReasonMissing, "the %s holds an empty token", e.location.name())
	}
	return e.checkTexts(c, tokens)
}

func (e *entry) checkTexts(c *call, texts []string) (Accepted, *Rejected) {
	keys := e.keys(c.v, c.secrets, "")
	if len(keys) == 0 {
		return Accepted{}, e.noKey("")
	}
	found, ok := matchText(texts, keys)
	if !ok {
		return Accepted{}, reject(ReasonDiffers, "the %s is none of this source's secrets", e.location.name())
	}
	return Accepted{Secret: found.secret}, nil
}

// checkBasic compares the credentials of HTTP Basic authentication.
func (e *entry) checkBasic(c *call, values []string) (Accepted, *Rejected) {
	var texts []string
	for _, value := range values {
		scheme, text, _ := strings.Cut(value, " ")
		if !strings.EqualFold(scheme, "Basic") || len(value) > maxValueBytes {
			continue
		}
		if b, err := base64.StdEncoding.Strict().DecodeString(trimBlank(text)); err == nil && len(b) > 0 {
			texts = append(texts, string(b))
		}
	}
	if len(texts) == 0 {
		return Accepted{}, reject(ReasonMalformed, "the %s is not HTTP Basic authentication", e.location.name())
	}
	return e.checkTexts(c, texts)
}

// checkStandard checks Standard Webhooks: the headers under the entry's own prefix,
// then those under webhook-, each as a whole.
func (e *entry) checkStandard(c *call) (Accepted, *Rejected) {
	var worst *Rejected
	for _, prefix := range e.prefixes {
		accepted, rej := e.checkStandardUnder(c, prefix)
		if rej == nil {
			return accepted, nil
		}
		worst = furthest(worst, rej)
	}
	return Accepted{}, worst
}

func (e *entry) checkStandardUnder(c *call, prefix string) (Accepted, *Rejected) {
	id := c.r.Header.Get(prefix + "id")
	told := c.r.Header.Get(prefix + "timestamp")
	lines := c.r.Header.Values(prefix + "signature")
	switch {
	case len(lines) == 0:
		return Accepted{}, reject(ReasonMissing, "no header %ssignature; is this its sender?", prefix)
	case id == "":
		return Accepted{}, reject(ReasonMissing, "no header %sid", prefix)
	case strings.Contains(id, "."):
		return Accepted{}, reject(ReasonMalformed, "the header %sid holds a dot, which would make the signed text ambiguous", prefix)
	case len(lines) > maxValues:
		return Accepted{}, reject(ReasonMalformed, "more than %d times a header %ssignature", maxValues, prefix)
	}
	at, form, ok := parseInstant(told)
	switch {
	case told == "":
		return Accepted{}, reject(ReasonMissing, "no header %stimestamp", prefix)
	case !ok || form != formSeconds:
		return Accepted{}, reject(ReasonMalformed, "the header %stimestamp is not Unix seconds", prefix)
	}
	shared, public, rej := standardSignatures(lines, prefix)
	if rej != nil {
		return Accepted{}, rej
	}
	keys := e.keys(c.v, c.secrets, "")
	if len(keys) == 0 {
		return Accepted{}, e.noKey("")
	}
	found, ok, rej := matchStandard(c, standardMessage(id, told, c.r.Raw), shared, public, keys)
	switch {
	case rej != nil:
		return Accepted{}, rej
	case !ok:
		return Accepted{}, reject(ReasonDiffers, "no secret of this source made a signature in the header %ssignature: another secret, or bytes changed on the way", prefix)
	}
	if rej := withinTolerance(c.now, at, e.tolerance); rej != nil {
		return Accepted{}, rej
	}
	return Accepted{Secret: found.secret, SignedAt: at, BodySigned: true}, nil
}

func standardMessage(id, timestamp string, body []byte) message {
	var m message
	m.add([]byte(id + "." + timestamp + "."))
	m.add(body)
	return m
}

// standardSignatures sorts the signatures by version: v1 is made with a shared
// secret, v1a with a private key. Other versions, and what cannot be read, are
// passed over as the specification wants it. A comma stands between a version and
// its signature, and also where proxies put lines of a header together and cut them
// apart, so a signature is what follows its version, whatever lines they came on.
func standardSignatures(lines []string, prefix string) (shared, public [][]byte, rej *Rejected) {
	version := ""
	for _, line := range lines {
		if len(line) > maxValueBytes {
			return nil, nil, reject(ReasonMalformed, "the header %ssignature is longer than %d bytes", prefix, maxValueBytes)
		}
		for word := range strings.FieldsFuncSeq(line, isCommaOrBlank) {
			of := version
			version = word
			if of != "v1" && of != "v1a" {
				continue
			}
			signature, err := encodingBase64.decode(word)
			if err != nil || len(signature) == 0 {
				continue
			}
			version = ""
			switch {
			case of == "v1":
				shared = append(shared, signature)
			case len(signature) == ed25519.SignatureSize:
				public = append(public, signature)
			}
		}
	}
	if len(shared)+len(public) > maxSignatures {
		return nil, nil, reject(ReasonMalformed, "more than %d signatures", maxSignatures)
	}
	if len(shared)+len(public) == 0 {
		return nil, nil, reject(ReasonMalformed, "the header %ssignature holds no signature of version v1 or v1a", prefix)
	}
	return shared, public, nil
}

func isCommaOrBlank(r rune) bool { return r == ',' || unicode.IsSpace(r) }

// matchStandard tries shared secrets on v1 and public keys on v1a, never across.
func matchStandard(c *call, m message, shared, public [][]byte, keys []key) (key, bool, *Rejected) {
	var secrets, publics []key
	for _, k := range keys {
		if k.shared != nil {
			secrets = append(secrets, k)
		} else {
			publics = append(publics, k)
		}
	}
	if len(shared) > 0 {
		if found, ok, rej := standardShared().match(c, m, shared, secrets); ok || rej != nil {
			return found, ok, rej
		}
	}
	if len(public) > 0 {
		return standardPublic().match(c, m, public, publics)
	}
	return key{}, false, nil
}
