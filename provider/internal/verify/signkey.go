package verify

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// SigningKey is a private key for the schemes ed25519, ecdsa, rsa and the v1a of
// standard-webhooks: the sender's half, for tests and for sending. It is immutable
// and safe for concurrent use, and nothing prints it but [SigningKey.Text].
type SigningKey struct {
	hold func() *signing // a function for the reason that it is one in Secret
}

type signing struct {
	private crypto.Signer
	kid     string
}

const maskedKey = "signing key(masked)"

// String returns a constant.
func (SigningKey) String() string { return maskedKey }

// GoString returns a constant.
func (SigningKey) GoString() string { return maskedKey }

// Format writes a constant for every verb.
func (SigningKey) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(maskedKey)) }

// LogValue returns a constant.
func (SigningKey) LogValue() slog.Value { return slog.StringValue(maskedKey) }

// MarshalText returns a constant.
func (SigningKey) MarshalText() ([]byte, error) { return []byte(maskedKey), nil }

const signingRSABits = 2048

// NewSigningKey makes a key for a scheme that signs with one. Random is read for
// Ed25519 and ECDSA (P-256); the standard library makes RSA keys from the system's
// randomness whatever it is given.
func NewSigningKey(scheme string, random io.Reader) (SigningKey, error) {
	var private crypto.Signer
	var err error
	switch scheme {
	case SchemeEd25519, SchemeStandardWebhooks:
		seed := make([]byte, ed25519.SeedSize)
		if _, err = io.ReadFull(random, seed); err == nil {
			private = ed25519.NewKeyFromSeed(seed)
		}
	case SchemeECDSA:
		private, err = newECDSA(random)
	case SchemeRSA:
		private, err = rsa.GenerateKey(random, signingRSABits)
	default:
		return SigningKey{}, fmt.Errorf("new signing key: scheme %s signs with no private key", scheme)
	}
	if err != nil {
		return SigningKey{}, fmt.Errorf("new signing key: %w", err)
	}
	return newSigningKey(private)
}

// newECDSA draws numbers until one is a private key; nearly every one is.
func newECDSA(random io.Reader) (*ecdsa.PrivateKey, error) {
	const draws = 64
	scalar := make([]byte, 32)
	for range draws {
		if _, err := io.ReadFull(random, scalar); err != nil {
			return nil, err
		}
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar); err == nil {
			return key, nil
		}
	}
	return nil, errors.New("the randomness given is none")
}

func newSigningKey(private crypto.Signer) (SigningKey, error) {
	spki, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return SigningKey{}, fmt.Errorf("signing key: %w", err)
	}
	sum := crypto.SHA256.New()
	sum.Write(spki)
	s := &signing{private: private, kid: hex.EncodeToString(sum.Sum(nil)[:8])}
	return SigningKey{func() *signing { return s }}, nil
}

// ParseSigningKey reads a private key: PKCS #8 as PEM, or whsk_ and base64 of an
// Ed25519 key. No error holds key material.
func ParseSigningKey(text string) (SigningKey, error) {
	text = strings.TrimSpace(text)
	if encoded, ok := strings.CutPrefix(text, prefixPrivate); ok {
		key, err := standardBase64(encoded)
		if err != nil || len(key) != ed25519.PrivateKeySize {
			return SigningKey{}, fmt.Errorf("parse signing key: after %s stand %d bytes of base64", prefixPrivate, ed25519.PrivateKeySize)
		}
		return newSigningKey(ed25519.NewKeyFromSeed(key[:ed25519.SeedSize]))
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != "PRIVATE KEY" {
		return SigningKey{}, errors.New("parse signing key: not a private key in PEM (PKCS #8)")
	}
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return SigningKey{}, errors.New("parse signing key: not a private key in PEM (PKCS #8)")
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return SigningKey{}, errors.New("parse signing key: this kind of key does not sign")
	}
	return newSigningKey(signer)
}

// Text returns the private key as PEM, for [ParseSigningKey]. It must be kept as
// any private key is.
func (k SigningKey) Text() (string, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.hold().private)
	if err != nil {
		return "", fmt.Errorf("write signing key: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), nil
}

// PublicText returns the public half as a source lists it under `secrets`: whpk_
// for standard-webhooks, else PEM.
func (k SigningKey) PublicText(scheme string) (string, error) {
	if public, ok := k.hold().private.Public().(ed25519.PublicKey); ok && scheme == SchemeStandardWebhooks {
		return prefixPublic + base64.StdEncoding.EncodeToString(public), nil
	}
	der, err := x509.MarshalPKIXPublicKey(k.hold().private.Public())
	if err != nil {
		return "", fmt.Errorf("write public key: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), nil
}

// JWKS returns the public half as a key set, as a sender publishes it.
func (k SigningKey) JWKS() (string, error) {
	one, err := jwkOf(k.hold().kid, k.hold().private.Public())
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(jwkSet{Keys: []jwk{one}})
	if err != nil {
		return "", fmt.Errorf("write key set: %w", err)
	}
	return string(text), nil
}

// Kid is the name of the key in its key set.
func (k SigningKey) Kid() string {
	if k.hold == nil {
		return ""
	}
	return k.hold().kid
}

// sign makes one signature the way an entry's scheme wants it; ok is false if the
// key is of another kind.
func (k SigningKey) sign(e *entry, m message) (signature []byte, ok bool, err error) {
	scheme := e.scheme
	if k.hold == nil || !kindFits(k.hold().private.Public(), scheme) {
		return nil, false, nil
	}
	h := e.hash
	if scheme == SchemeEd25519 {
		h = 0 // the key signs the bytes it is given, hashed before or not
	}
	// Without randomness ECDSA is deterministic (RFC 6979); the others always are.
	signature, err = k.hold().private.Sign(nil, e.signedBytes(m), h)
	if err != nil {
		return nil, true, fmt.Errorf("sign: %w", err)
	}
	return signature, true, nil
}
