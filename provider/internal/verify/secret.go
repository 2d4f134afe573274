package verify

import (
	"crypto/ed25519"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

const (
	prefixShared  = "whsec_"
	prefixPublic  = "whpk_"
	prefixPrivate = "whsk_"
	// The length of a Standard Webhooks secret in bytes.
	minShared = 24
	maxShared = 64
)

// ErrEmptySecret says that a secret is empty. With it anybody could sign.
var ErrEmptySecret = errors.New("the secret is empty; anybody could sign with it")

// ErrSecretSpace says that white space stands around a secret.
var ErrSecretSpace = errors.New("white space stands around the secret; remove it, also a line end at the end of a file")

// ErrSecretForm says that a secret is of no use to any entry of the Verifier.
var ErrSecretForm = errors.New("the secret cannot be used")

// ErrNoSecret says that a source lists no secret that its verification needs.
var ErrNoSecret = errors.New("a secret is missing")

// Secret is one live secret of a source, parsed for one [Verifier]: a shared
// secret, a token, `user:pass`, or public keys. It is immutable and safe for
// concurrent use. No formatting verb, marshaller or logger prints what it holds.
type Secret struct {
	// hold returns the material. It is a function because package fmt, given a
	// struct that keeps a Secret in an unexported field and a verb that does not
	// suit it, follows pointers; of a function it prints an address.
	hold func() *material
}

// material is what a secret was parsed into.
type material struct {
	owner *Verifier
	per   []credential // by entry
}

// credential is what one secret gives to one entry; nothing where it is of no use.
type credential struct {
	shared [][]byte // keys of a MAC or hash, tokens, user:pass; any of them
	macs   []*macs  // for each of shared, where they are keys of a MAC
	public []publicKey
}

const masked = "secret(masked)"

// String returns a constant.
func (Secret) String() string { return masked }

// GoString returns a constant.
func (Secret) GoString() string { return masked }

// Format writes a constant for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(masked)) }

// LogValue returns a constant.
func (Secret) LogValue() slog.Value { return slog.StringValue(masked) }

// MarshalText returns a constant.
func (Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }

// ParseSecret parses the text of one secret for v. An empty text is
// [ErrEmptySecret], white space around it [ErrSecretSpace] (PEM and key sets may
// end in a line end), and a text that no entry of v can use is [ErrSecretForm],
// each with what to do next. No error holds any part of the text.
//
// For standard-webhooks a secret is whsec_ and base64 of 24 to 64 bytes, or whpk_
// and base64 of an Ed25519 public key. One without a prefix is used as the bytes
// it is and, where it is base64 of 24 to 64 bytes, also decoded: senders differ,
// and neither reading weakens the other. For ed25519, ecdsa and rsa it is one or
// more public keys: PEM (a certificate counts as the key in it), base64 of an SPKI,
// base64 or hex of a raw Ed25519 key, a JWK, a JWK set or a list of JWKs.
func (v *Verifier) ParseSecret(text string) (Secret, error) {
	if strings.TrimSpace(text) == "" {
		return Secret{}, ErrEmptySecret
	}
	if trimmed := strings.TrimSpace(text); trimmed != text {
		if !looksLikeKeys(trimmed) {
			return Secret{}, ErrSecretSpace
		}
		text = trimmed
	}
	m := &material{owner: v, per: make([]credential, len(v.entries))}
	var reasons []error
	usable := false
	for i, e := range v.entries {
		c, err := e.parseSecret(text)
		if err != nil {
			reasons = append(reasons, fmt.Errorf("scheme %s: %w", e.scheme, err))
			continue
		}
		c.macs = e.macsOf(c.shared)
		m.per[i] = c
		usable = true
	}
	if !usable {
		return Secret{}, fmt.Errorf("%w: %w", ErrSecretForm, errors.Join(reasons...))
	}
	return Secret{func() *material { return m }}, nil
}

// looksLikeKeys reports whether a text is PEM or JSON, which come in files that end
// in a line end.
func looksLikeKeys(text string) bool {
	if strings.HasPrefix(text, "-----BEGIN") {
		return true
	}
	_, err := parsePublicKeys(text)
	return err == nil && strings.ContainsAny(text[:1], "{[")
}

func (e *entry) parseSecret(text string) (credential, error) {
	switch {
	case e.scheme == SchemeNone:
		return credential{}, errors.New("nothing is verified, so a secret has no use; leave it out")
	case asymmetric(e.scheme):
		return e.parsePublic(text)
	case e.scheme == SchemeStandardWebhooks:
		return parseStandard(text)
	case e.scheme == SchemeBasic && !strings.Contains(text, ":"):
		return credential{}, errors.New("the secret is written user:pass")
	}
	switch e.secretAs {
	case "hex":
		key, err := hex.DecodeString(text)
		if err != nil {
			return credential{}, errors.New("secret_as is hex and the secret is not; copy it whole")
		}
		return credential{shared: [][]byte{key}}, nil
	case "sha1":
		sum := sha1.Sum([]byte(text))
		return credential{shared: [][]byte{sum[:]}}, nil
	}
	return credential{shared: [][]byte{[]byte(text)}}, nil
}

func (e *entry) parsePublic(text string) (credential, error) {
	keys, err := parsePublicKeys(text)
	if err != nil {
		return credential{}, err
	}
	if keys = usableKeys(keys, e); len(keys) == 0 {
		return credential{}, errors.New("the key is of another kind")
	}
	return credential{public: keys}, nil
}

func parseStandard(text string) (credential, error) {
	switch {
	case strings.HasPrefix(text, prefixPrivate):
		return credential{}, errPrivate
	case strings.HasPrefix(text, prefixPublic):
		key, err := standardBase64(strings.TrimPrefix(text, prefixPublic))
		if err != nil || len(key) != ed25519.PublicKeySize {
			return credential{}, fmt.Errorf("after %s stand %d bytes of base64; copy the whole key", prefixPublic, ed25519.PublicKeySize)
		}
		return credential{public: []publicKey{{key: ed25519.PublicKey(key)}}}, nil
	case strings.HasPrefix(text, prefixShared):
		key, err := standardBase64(strings.TrimPrefix(text, prefixShared))
		if err != nil || len(key) < minShared || len(key) > maxShared {
			return credential{}, fmt.Errorf("after %s stand %d to %d bytes of base64; copy the whole secret", prefixShared, minShared, maxShared)
		}
		return credential{shared: [][]byte{key}}, nil
	}
	c := credential{shared: [][]byte{[]byte(text)}}
	if key, err := standardBase64(text); err == nil && len(key) >= minShared && len(key) <= maxShared {
		c.shared = [][]byte{key, []byte(text)}
	}
	return c, nil
}

// standardBase64 reads base64 strictly, with its padding or without any.
func standardBase64(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, errNotEncoded
	}
	if strings.HasSuffix(text, "=") || len(text)%4 == 0 {
		return base64.StdEncoding.Strict().DecodeString(text)
	}
	return base64.RawStdEncoding.Strict().DecodeString(text)
}

// CheckSecrets reports whether v can accept a delivery at all with these secrets.
// The error is [ErrNoSecret] with what to do next.
func (v *Verifier) CheckSecrets(secrets []Secret) error {
	var missing []string
	for _, e := range v.entries {
		if e.scheme == SchemeNone || len(e.keys(v, secrets, "")) > 0 {
			return nil
		}
		missing = append(missing, e.secretNeeded())
	}
	return fmt.Errorf("%w: list under `secrets` %s", ErrNoSecret, strings.Join(missing, ", or "))
}

// secretNeeded says what a secret of this entry is.
func (e *entry) secretNeeded() string {
	switch {
	case asymmetric(e.scheme):
		return "the sender's public key"
	case e.scheme == SchemeBasic:
		return "user:pass as registered with the sender"
	case e.scheme == SchemeToken:
		return "the token that the sender shows"
	}
	return "the secret that the sender signs with"
}

// key is one key to try, and the position of the secret it is from, -1 for one of
// the published keys.
type key struct {
	secret int
	shared []byte
	macs   *macs // of shared, if it is the key of a MAC
	public publicKey
}

// keys returns what this entry has to try: the published keys, then the secrets
// that were parsed for v. With a kid, only public keys of that name, or else those
// without a name.
func (e *entry) keys(v *Verifier, secrets []Secret, kid string) []key {
	var all []key
	for _, k := range e.published {
		all = append(all, key{secret: -1, public: k})
	}
	for i, s := range secrets {
		if s.hold == nil || s.hold().owner != v {
			continue
		}
		c := s.hold().per[e.index]
		for j, shared := range c.shared {
			k := key{secret: i, shared: shared}
			if j < len(c.macs) {
				k.macs = c.macs[j]
			}
			all = append(all, k)
		}
		for _, k := range c.public {
			all = append(all, key{secret: i, public: k})
		}
	}
	if kid == "" || !asymmetric(e.scheme) {
		return all
	}
	var named, nameless []key
	for _, k := range all {
		switch k.public.kid {
		case kid:
			named = append(named, k)
		case "":
			nameless = append(nameless, k)
		}
	}
	if len(named) > 0 {
		return named
	}
	return nameless
}
