package verify

import (
	"crypto"
	"crypto/hmac"
	"hash"
	"sync"
)

// macs lends MACs that are keyed with one secret: to key one costs as much as a short
// body. It is safe for concurrent use.
type macs struct {
	hash   crypto.Hash
	secret []byte
	pool   sync.Pool // of *keyed
}

// keyed is one of them, with room for its sum.
type keyed struct {
	hash hash.Hash
	sum  []byte
}

// macsOf returns the MACs that an entry checks signatures with, nil if it uses none.
func (e *entry) macsOf(secrets [][]byte) []*macs {
	h := e.hash
	switch e.scheme {
	case SchemeStandardWebhooks:
		h = standardShared().hash
	case SchemeHMAC:
	default:
		return nil
	}
	all := make([]*macs, len(secrets))
	for i, secret := range secrets {
		all[i] = &macs{hash: h, secret: secret}
	}
	return all
}

// made reports whether one of the signatures is the MAC of the message.
func (m *macs) made(msg message, signatures [][]byte) bool {
	one, kept := m.pool.Get().(*keyed)
	if !kept {
		one = &keyed{hash: hmac.New(m.hash.New, m.secret)}
	}
	defer m.pool.Put(one)
	one.hash.Reset()
	msg.writeTo(one.hash, nil)
	one.sum = one.hash.Sum(one.sum[:0])
	for _, signature := range signatures {
		if hmac.Equal(one.sum, signature) {
			return true
		}
	}
	return false
}
