package verify

import (
	"bytes"
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
	"math/big"
	"slices"
	"strings"
)

// publicKey is one key that can check signatures.
type publicKey struct {
	kid string // "" if the set does not name it
	alg string // of a JWK, "" if not said
	key crypto.PublicKey
}

// errNotKey says that a text is no public key in any form that is read.
var errNotKey = errors.New("not a public key; PEM, base64, hex and JWK are read")

// errPrivate says that a text holds a private key.
var errPrivate = errors.New("this is a private key; the receiver needs only the public half, and the private one should be considered known")

// parsePublicKeys reads public keys: PEM (a certificate is taken for the key in it,
// its dates and chain are not looked at), base64 of an SPKI or of a raw Ed25519 key,
// hex of a raw Ed25519 key, a JWK, a JWK set or a list of JWKs. Keys of a set that
// are not for signatures, or of a kind not known here, are left out. No error holds
// key material.
func parsePublicKeys(text string) ([]publicKey, error) {
	text = strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
		return parseJWKs([]byte(text))
	case strings.HasPrefix(text, "-----BEGIN"):
		return parsePEM([]byte(text))
	}
	if b, err := hex.DecodeString(text); err == nil && len(b) == ed25519.PublicKeySize {
		return []publicKey{{key: ed25519.PublicKey(b)}}, nil
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		b, err := enc.Strict().DecodeString(text)
		if err != nil {
			continue
		}
		if len(b) == ed25519.PublicKeySize {
			return []publicKey{{key: ed25519.PublicKey(b)}}, nil
		}
		return parseSPKI(b)
	}
	return nil, errNotKey
}

func parsePEM(text []byte) ([]publicKey, error) {
	var keys []publicKey
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		var found []publicKey
		var err error
		switch {
		case strings.Contains(block.Type, "PRIVATE"):
			return nil, errPrivate
		case block.Type == "CERTIFICATE":
			cert, certErr := x509.ParseCertificate(block.Bytes)
			if certErr != nil {
				return nil, fmt.Errorf("the certificate cannot be read: %w", errNotKey)
			}
			found, err = checkedKey(cert.PublicKey)
		case block.Type == "RSA PUBLIC KEY":
			key, rsaErr := x509.ParsePKCS1PublicKey(block.Bytes)
			if rsaErr != nil {
				return nil, errNotKey
			}
			found, err = checkedKey(key)
		default:
			found, err = parseSPKI(block.Bytes)
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, found...)
	}
	if len(bytes.TrimSpace(text)) > 0 || len(keys) == 0 {
		return nil, fmt.Errorf("the PEM text is cut off or holds something else: %w", errNotKey)
	}
	if len(keys) > maxKeys {
		return nil, fmt.Errorf("more than %d keys", maxKeys)
	}
	return keys, nil
}

func parseSPKI(der []byte) ([]publicKey, error) {
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errNotKey
	}
	return checkedKey(key)
}

// checkedKey refuses keys that nobody should rely on.
func checkedKey(key crypto.PublicKey) ([]publicKey, error) {
	switch k := key.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if curveName(k.Curve) == "" {
			return nil, errors.New("the curve of the ECDSA key is not supported; P-256, P-384 and P-521 are")
		}
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return nil, fmt.Errorf("an RSA key of %d bits is refused; it must have %d to %d", bits, minRSABits, maxRSABits)
		}
		if k.E < 3 || k.E%2 == 0 {
			return nil, errors.New("the exponent of the RSA key is refused")
		}
	default:
		return nil, errors.New("this kind of key is not supported; Ed25519, ECDSA and RSA are")
	}
	return []publicKey{{key: key}}, nil
}

func curveName(c elliptic.Curve) string {
	switch c {
	case elliptic.P256():
		return "P-256"
	case elliptic.P384():
		return "P-384"
	case elliptic.P521():
		return "P-521"
	}
	return ""
}

// jwk is a JSON web key as far as it is read (RFC 7517, 7518 section 6, 8037).
type jwk struct {
	Kty    string          `json:"kty"`
	Use    string          `json:"use,omitempty"`
	KeyOps []string        `json:"key_ops,omitempty"`
	Alg    string          `json:"alg,omitempty"`
	Kid    string          `json:"kid,omitempty"`
	Crv    string          `json:"crv,omitempty"`
	X      string          `json:"x,omitempty"`
	Y      string          `json:"y,omitempty"`
	N      string          `json:"n,omitempty"`
	E      string          `json:"e,omitempty"`
	D      json.RawMessage `json:"d,omitempty"`
}

type jwkSet struct {
	Keys []jwk `json:"keys"`
}

func parseJWKs(text []byte) ([]publicKey, error) {
	var list []jwk
	if text[0] == '[' {
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("the list of keys is not JSON as expected: %w", errNotKey)
		}
	} else {
		var one jwk
		var set jwkSet
		if json.Unmarshal(text, &set) != nil || json.Unmarshal(text, &one) != nil {
			return nil, fmt.Errorf("the key set is not JSON as expected: %w", errNotKey)
		}
		list = set.Keys
		if one.Kty != "" {
			list = append(list, one)
		}
	}
	if len(list) > maxKeys {
		return nil, fmt.Errorf("more than %d keys", maxKeys)
	}
	var keys []publicKey
	for _, k := range list {
		if len(k.D) > 0 || k.Kty == "oct" {
			return nil, errPrivate
		}
		if !k.forSignatures() {
			continue
		}
		found, err := k.parse()
		if err != nil {
			return nil, err
		}
		for _, key := range found {
			keys = append(keys, publicKey{kid: k.Kid, alg: k.Alg, key: key.key})
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("the key set holds no key for signatures: %w", errNotKey)
	}
	return keys, nil
}

func (k jwk) forSignatures() bool {
	if k.Use != "" && k.Use != "sig" {
		return false
	}
	return k.KeyOps == nil || slices.Contains(k.KeyOps, "verify")
}

// parse gives no key and no error for a kind or curve that is not known here.
func (k jwk) parse() ([]publicKey, error) {
	number := func(s string) ([]byte, error) {
		b, err := base64.RawURLEncoding.Strict().DecodeString(s)
		if err != nil || len(b) == 0 {
			return nil, fmt.Errorf("a member of a key is not base64url: %w", errNotKey)
		}
		return b, nil
	}
	switch {
	case k.Kty == "OKP" && k.Crv == "Ed25519":
		x, err := number(k.X)
		if err != nil || len(x) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("the x of an Ed25519 key is not %d bytes of base64url: %w", ed25519.PublicKeySize, errNotKey)
		}
		return checkedKey(ed25519.PublicKey(x))
	case k.Kty == "EC":
		return k.parseEC(number)
	case k.Kty == "RSA":
		n, err := number(k.N)
		if err != nil {
			return nil, err
		}
		e, err := number(k.E)
		if err != nil {
			return nil, err
		}
		exponent := new(big.Int).SetBytes(e)
		if exponent.BitLen() > 31 {
			return nil, errors.New("the exponent of the RSA key is refused")
		}
		return checkedKey(&rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(exponent.Int64())})
	}
	return nil, nil
}

func (k jwk) parseEC(number func(string) ([]byte, error)) ([]publicKey, error) {
	var curve elliptic.Curve
	switch k.Crv {
	case "P-256":
		curve = elliptic.P256()
	case "P-384":
		curve = elliptic.P384()
	case "P-521":
		curve = elliptic.P521()
	default:
		return nil, nil
	}
	x, err := number(k.X)
	if err != nil {
		return nil, err
	}
	y, err := number(k.Y)
	if err != nil {
		return nil, err
	}
	size := (curve.Params().BitSize + 7) / 8
	if len(x) > size || len(y) > size {
		return nil, errNotKey
	}
	point := make([]byte, 1+2*size)
	point[0] = 4 // uncompressed
	copy(point[1+size-len(x):], x)
	copy(point[1+2*size-len(y):], y)
	key, err := ecdsa.ParseUncompressedPublicKey(curve, point)
	if err != nil {
		return nil, fmt.Errorf("the point of the ECDSA key is not on its curve: %w", errNotKey)
	}
	return checkedKey(key)
}

// jwkOf writes a public key as a JWK.
func jwkOf(kid string, key crypto.PublicKey) (jwk, error) {
	text := base64.RawURLEncoding.EncodeToString
	out := jwk{Use: "sig", Kid: kid}
	switch k := key.(type) {
	case ed25519.PublicKey:
		out.Kty, out.Crv, out.X, out.Alg = "OKP", "Ed25519", text(k), "EdDSA"
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		if err != nil {
			return jwk{}, fmt.Errorf("write key: %w", err)
		}
		half := (len(point) - 1) / 2
		out.Kty, out.Crv, out.X, out.Y = "EC", curveName(k.Curve), text(point[1:1+half]), text(point[1+half:])
	case *rsa.PublicKey:
		out.Kty, out.N, out.E = "RSA", text(k.N.Bytes()), text(big.NewInt(int64(k.E)).Bytes())
	default:
		return jwk{}, errNotKey
	}
	return out, nil
}
