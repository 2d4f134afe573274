package provider

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Masked stands where a secret stood.
const Masked = "***"

// shortSecret is the length below which a secret is masked only where it stands
// alone: it could be a part of any word.
const shortSecret = 8

// masking says what of a request is a secret. It is immutable.
type masking struct {
	headers []string // canonical; a trailing * stands for all that begin so
	query   []string
	values  []string
}

// newMasking gathers the places where tokens travel, and the secrets themselves,
// in case one travels elsewhere.
func (c *compiler) newMasking(in inputs) masking {
	m := masking{
		headers: append([]string{"Authorization", "Proxy-Authorization", "Cookie"}, c.maskHeaders...),
		query:   c.maskQuery,
	}
	if c.p.verifier != nil {
		headers, query := c.p.verifier.Credentials()
		m.headers = append(m.headers, headers...)
		m.query = append(m.query, query...)
	}
	for _, secret := range in.secrets {
		m.add(secret)
		if _, password, ok := strings.Cut(secret, ":"); ok {
			m.add(password)
		}
	}
	for name, p := range c.params {
		if p.Secret {
			m.add(in.params[name])
		}
	}
	return m
}

func (m *masking) add(secret string) {
	if secret = strings.TrimSpace(secret); secret != "" {
		m.values = append(m.values, secret)
	}
}

// Mask returns a copy of a header and a target (an address, or a path with query)
// as they may be stored: what travels as a secret, by its place or because it is
// one of the source's secrets, is replaced by [Masked]; all else is as it was.
// Signatures are kept. A token in a body cannot be masked, since bodies are kept
// as they came.
func (p *Provider) Mask(header http.Header, target string) (http.Header, string) {
	masked := header.Clone()
	for name, values := range masked {
		named := p.masking.header(name)
		for i, value := range values {
			if named || p.masking.holds(value) {
				values[i] = Masked
			}
		}
	}
	return masked, p.masking.target(target)
}

func (m *masking) header(name string) bool {
	return slices.ContainsFunc(m.headers, func(h string) bool {
		if begin, some := strings.CutSuffix(h, "*"); some {
			return strings.HasPrefix(name, begin)
		}
		return h == name
	})
}

// holds reports whether a value holds one of the secrets.
func (m *masking) holds(value string) bool {
	return slices.ContainsFunc(m.values, func(secret string) bool {
		return value == secret || len(secret) >= shortSecret && strings.Contains(value, secret)
	})
}

func (m *masking) target(target string) string {
	address, query, has := strings.Cut(target, "?")
	if scheme, rest, ok := strings.Cut(address, "://"); ok {
		host, path, slash := strings.Cut(rest, "/")
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			host = Masked + host[at:]
		}
		address = scheme + "://" + host
		if slash {
			address += "/" + path
		}
	}
	address = m.path(address)
	if !has {
		return address
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(name)
		if err != nil {
			plain = name
		}
		text, err := url.QueryUnescape(value)
		if err != nil {
			text = value
		}
		switch {
		case m.holds(plain):
			pairs[i] = Masked
		case slices.Contains(m.query, plain) || m.holds(text):
			pairs[i] = name + "=" + Masked
		}
	}
	return address + "?" + strings.Join(pairs, "&")
}

// path masks the secrets in the segments of an address, also where they are
// written with escapes.
func (m *masking) path(address string) string {
	for _, secret := range m.values {
		if len(secret) >= shortSecret {
			address = strings.ReplaceAll(address, secret, Masked)
		}
	}
	start := 0 // of the path
	if scheme := strings.Index(address, "://"); scheme >= 0 {
		start = scheme + len("://")
		if slash := strings.IndexByte(address[start:], '/'); slash >= 0 {
			start += slash
		} else {
			start = len(address)
		}
	}
	segments := strings.Split(address[start:], "/")
	for i, segment := range segments {
		if m.holds(unescapedPath(segment)) {
			segments[i] = Masked
		}
	}
	path := strings.Join(segments, "/")
	if m.holds(unescapedPath(path)) { // one with a slash in it
		path = "/" + Masked
	}
	return address[:start] + path
}

// unescapedPath resolves the escapes of a path; what is not escaped rightly stays.
func unescapedPath(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	if text, err := url.PathUnescape(s); err == nil {
		return text
	}
	return s
}
