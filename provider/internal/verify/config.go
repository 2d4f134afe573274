package verify

import (
	"strings"
	"time"
)

// Config is one entry of `verify` as it stands in the file, text unparsed. An
// empty text is a key that is not written.
type Config struct {
	Scheme    string
	Header    string
	Query     string
	Field     string // expression
	Format    string
	Separator string
	Signed    []string // alternatives
	Timestamp string   // expression
	Tolerance string   // duration, as in 5m
	Hash      string
	Encoding  string
	SecretAs  string
	Keys      *KeysConfig
	Require   string // condition
	Prefix    string

	// SecretsGiven says that the source that uses this entry lists secrets of its
	// own, so that keys which would have to be fetched are not needed. It is no key
	// of the file.
	SecretsGiven bool
}

// KeysConfig is `keys`: where the sender publishes its public keys.
type KeysConfig struct {
	JWKS string // address of a key set
	// Published is the key set itself, written into the file: a JWK set, a list of
	// JWKs or one JWK as JSON text, or PEM.
	Published   string
	Certificate string // expression: address of a certificate
	Hosts       []string
}

// Problem is one fault of a configuration.
type Problem struct {
	Entry  int    // position of the entry under `verify`, from 0
	Key    string // the key of the file, as in "signed" or "keys.jwks"; "" for the entry itself
	Index  int    // position in a list, as of `signed`, from 0
	Offset int    // byte offset in the text of the key
	Msg    string // what is wrong
	Hint   string // the likely fix, "" if none is known
}

// String is the message with its hint.
func (p Problem) String() string {
	if p.Hint == "" {
		return p.Msg
	}
	return p.Msg + "; " + p.Hint
}

// The schemes.
const (
	SchemeHMAC             = "hmac"
	SchemeHash             = "hash"
	SchemeEd25519          = "ed25519"
	SchemeECDSA            = "ecdsa"
	SchemeRSA              = "rsa"
	SchemeToken            = "token"
	SchemeBasic            = "basic"
	SchemeStandardWebhooks = "standard-webhooks"
	SchemeNone             = "none"
)

// Schemes returns the names of all schemes.
func Schemes() []string {
	return []string{
		SchemeHMAC, SchemeHash, SchemeEd25519, SchemeECDSA, SchemeRSA, SchemeToken, SchemeBasic,
		SchemeStandardWebhooks, SchemeNone,
	}
}

const (
	defaultTolerance = 5 * time.Minute
	defaultPrefix    = "webhook-"
	headerBasic      = "Authorization"
)

// signs reports whether a scheme makes a signature over `signed`.
func signs(scheme string) bool {
	return scheme == SchemeHMAC || scheme == SchemeHash || asymmetric(scheme)
}

// asymmetric reports whether the secrets of a scheme are public keys.
func asymmetric(scheme string) bool {
	return scheme == SchemeEd25519 || scheme == SchemeECDSA || scheme == SchemeRSA
}

// allowed says under which schemes a key of an entry means something.
func allowed(key, scheme string) bool {
	switch key {
	case "header":
		return signs(scheme) || scheme == SchemeToken || scheme == SchemeBasic
	case "query", "field", "format", "separator":
		return signs(scheme) || scheme == SchemeToken
	case "signed", "timestamp", "hash", "encoding":
		return signs(scheme)
	case "tolerance":
		return signs(scheme) || scheme == SchemeStandardWebhooks
	case "secret_as":
		return scheme == SchemeHMAC || scheme == SchemeHash
	case "keys":
		return asymmetric(scheme) || scheme == SchemeStandardWebhooks
	case "prefix":
		return scheme == SchemeStandardWebhooks
	}
	return true
}

// written lists the keys of an entry that are written and depend on the scheme.
func (c *Config) written() []string {
	var keys []string
	add := func(key string, is bool) {
		if is {
			keys = append(keys, key)
		}
	}
	add("header", c.Header != "")
	add("query", c.Query != "")
	add("field", c.Field != "")
	add("format", c.Format != "")
	add("separator", c.Separator != "")
	add("signed", len(c.Signed) > 0)
	add("timestamp", c.Timestamp != "")
	add("tolerance", c.Tolerance != "")
	add("hash", c.Hash != "")
	add("encoding", c.Encoding != "")
	add("secret_as", c.SecretAs != "")
	add("keys", c.Keys != nil)
	add("prefix", c.Prefix != "")
	return keys
}

// closest returns the word of list that is nearest to word, "" if none is near.
func closest(word string, list []string) string {
	best, at := "", 3
	for _, candidate := range list {
		if d := distance(strings.ToLower(word), candidate); d < at && d < len(candidate) {
			best, at = candidate, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
