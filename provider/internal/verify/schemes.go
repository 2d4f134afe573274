package verify

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"hash"
	"math/big"
	"slices"
)

// usableKeys returns the keys that an entry can check signatures with.
func usableKeys(keys []publicKey, e *entry) []publicKey {
	scheme := e.scheme
	if scheme == SchemeStandardWebhooks {
		scheme = SchemeEd25519
	}
	var usable []publicKey
	for _, k := range keys {
		if algorithmFits(k.alg, scheme, e.hash) && kindFits(k.key, scheme) {
			usable = append(usable, k)
		}
	}
	return usable
}

func kindFits(key crypto.PublicKey, scheme string) bool {
	switch key.(type) {
	case ed25519.PublicKey:
		return scheme == SchemeEd25519
	case *ecdsa.PublicKey:
		return scheme == SchemeECDSA
	case *rsa.PublicKey:
		return scheme == SchemeRSA
	}
	return false
}

// algorithmFits compares the `alg` of a JWK with the entry; a key that does not say
// fits.
func algorithmFits(alg, scheme string, h crypto.Hash) bool {
	if alg == "" {
		return true
	}
	switch scheme {
	case SchemeEd25519:
		return alg == "EdDSA" || alg == "Ed25519"
	case SchemeECDSA:
		return h == crypto.SHA256 && alg == "ES256" || h == crypto.SHA512 && alg == "ES512"
	case SchemeRSA:
		return h == crypto.SHA256 && alg == "RS256" || h == crypto.SHA512 && alg == "RS512" || h == crypto.SHA1 && alg == "RS1"
	}
	return false
}

// errBudget is the rejection of a delivery that asks for too much work.
func errBudget() *Rejected {
	return reject(ReasonMalformed, "verifying it takes more work than one delivery may cost: too many signatures, items or alternatives")
}

// match returns the first key that made one of the signatures over the message.
func (e *entry) match(c *call, m message, signatures [][]byte, keys []key) (found key, ok bool, rej *Rejected) {
	if !asymmetric(e.scheme) {
		return e.matchShared(c, m, signatures, keys)
	}
	if !c.budget.hash(m.size) {
		return key{}, false, errBudget()
	}
	signed := e.signedBytes(m)
	for _, k := range keys {
		for _, signature := range signatures {
			if !c.budget.key() {
				return key{}, false, errBudget()
			}
			if verifyPublic(k.public.key, e.hash, signed, signature) {
				return k, true, nil
			}
		}
	}
	return key{}, false, nil
}

func (e *entry) matchShared(c *call, m message, signatures [][]byte, keys []key) (key, bool, *Rejected) {
	for _, k := range keys {
		if !c.budget.hash(m.size) {
			return key{}, false, errBudget()
		}
		if k.macs != nil {
			if k.macs.made(m, signatures) {
				return k, true, nil
			}
			continue
		}
		want := e.sum(m, k.shared)
		for _, signature := range signatures {
			if hmac.Equal(want, signature) {
				return k, true, nil
			}
		}
	}
	return key{}, false, nil
}

// sum is what the sender's signature must be: a MAC, or the hash of a text with
// the secret in it.
func (e *entry) sum(m message, secret []byte) []byte {
	var h hash.Hash
	if e.scheme == SchemeHMAC {
		h = hmac.New(e.hash.New, secret)
	} else {
		h = e.hash.New()
	}
	m.writeTo(h, secret)
	return h.Sum(nil)
}

// signedBytes is what a public-key signature is made over: the hash of the message,
// or the message itself with an ed25519 that does not hash first.
func (e *entry) signedBytes(m message) []byte {
	if e.hash == 0 {
		return m.bytes()
	}
	h := e.hash.New()
	m.writeTo(h, nil)
	return h.Sum(nil)
}

// verifyPublic checks one signature. ECDSA signatures are DER, or r and s side by
// side in the width of the curve.
func verifyPublic(public crypto.PublicKey, h crypto.Hash, signed, signature []byte) bool {
	switch k := public.(type) {
	case ed25519.PublicKey:
		return len(signature) == ed25519.SignatureSize && ed25519.Verify(k, signed, signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(k, h, signed, signature) == nil
	case *ecdsa.PublicKey:
		if ecdsa.VerifyASN1(k, signed, signature) {
			return true
		}
		size := (k.Curve.Params().BitSize + 7) / 8
		if len(signature) != 2*size {
			return false
		}
		r, s := new(big.Int).SetBytes(signature[:size]), new(big.Int).SetBytes(signature[size:])
		return ecdsa.Verify(k, signed, r, s)
	}
	return false
}

// sameText compares two texts in a time that depends on neither's content nor on
// whether their lengths agree.
func sameText(a, b []byte) bool {
	x, y := sha256.Sum256(a), sha256.Sum256(b)
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// matchText returns the first key that is one of the texts.
func matchText(texts []string, keys []key) (key, bool) {
	for _, k := range keys {
		if slices.ContainsFunc(texts, func(text string) bool { return sameText([]byte(text), k.shared) }) {
			return k, true
		}
	}
	return key{}, false
}

// standardShared and standardPublic are the two signatures of Standard Webhooks, v1
// and v1a, as entries of the schemes they are.
func standardShared() *entry {
	return &entry{scheme: SchemeHMAC, hash: crypto.SHA256, encoding: encodingBase64}
}

func standardPublic() *entry {
	return &entry{scheme: SchemeEd25519, encoding: encodingBase64}
}
