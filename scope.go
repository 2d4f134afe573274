package onceward

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// Scope tells apart what one source may hold under the same key: the sender's
// account and its mode ("live", "test"), where the sender has them. It is part
// of every key. The zero Scope is that of senders without accounts and modes.
type Scope struct {
	Account string `json:"account,omitempty"`
	Mode    string `json:"mode,omitempty"`
}

// String returns the text form: "acct_1/live", "acct_1", "/live" or "". A slash
// or backslash in the account is escaped with a backslash.
func (s Scope) String() string {
	account := scopeEscaper.Replace(s.Account)
	if s.Mode == "" {
		return account
	}
	return account + "/" + s.Mode
}

var scopeEscaper = strings.NewReplacer(`\`, `\\`, `/`, `\/`)

// ParseScope reads the text form that [Scope.String] writes.
func ParseScope(text string) (Scope, error) {
	var account strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			i++
			if i == len(text) {
				return Scope{}, fmt.Errorf("scope %q ends in a backslash; the form is ACCOUNT/MODE", text)
			}
			account.WriteByte(text[i])
		case '/':
			mode := text[i+1:]
			if mode == "" || strings.ContainsAny(mode, `/\`) {
				return Scope{}, fmt.Errorf("scope %q: the form is ACCOUNT/MODE, as acct_1/live or /test", text)
			}
			return Scope{Account: account.String(), Mode: mode}, nil
		default:
			account.WriteByte(c)
		}
	}
	return Scope{Account: account.String()}, nil
}

// Ref names an entity.
type Ref struct {
	Source string `json:"source"`
	Scope  Scope  `json:"scope"`
	Kind   string `json:"kind"`
	Key    string `json:"key"`
}

// String returns "kind key (source, scope)" for people.
func (r Ref) String() string {
	if s := r.Scope.String(); s != "" {
		return fmt.Sprintf("%s %s (%s, %s)", r.Kind, r.Key, r.Source, s)
	}
	return fmt.Sprintf("%s %s (%s)", r.Kind, r.Key, r.Source)
}

// ComposeKey makes one text of the parts of a composed key: joined by ":", with
// ":" and "\" inside a part escaped by "\". Two different lists never give the
// same text.
func ComposeKey(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, p := range parts {
		escaped[i] = keyEscaper.Replace(p)
	}
	return strings.Join(escaped, ":")
}

var keyEscaper = strings.NewReplacer(`\`, `\\`, `:`, `\:`)

// ID is the fixed-width name of an entity or of an event's claim in a store:
// the first 16 bytes of a SHA-256 over its length-prefixed parts, so that no
// two different tuples collide short of breaking the hash.
type ID [16]byte

// String returns the ID in hexadecimal.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Compare orders IDs by their bytes, the order in which stores lock.
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// ID returns the store's name of the entity.
func (r Ref) ID() ID {
	return hashID("entity", r.Source, r.Scope.Account, r.Scope.Mode, r.Kind, r.Key)
}

func hashID(parts ...string) ID {
	b := make([]byte, 0, 256) // on the stack, unless the parts are longer
	for _, p := range parts {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(p))), p...)
	}
	sum := sha256.Sum256(b)
	return ID(sum[:16])
}

// Digest is the first 16 bytes of the SHA-256 of an event's bytes, by which two
// deliveries of one key are told apart.
type Digest [16]byte

// DigestOf returns the digest of bytes.
func DigestOf(b []byte) Digest {
	sum := sha256.Sum256(b)
	return Digest(sum[:16])
}

// String returns the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }
