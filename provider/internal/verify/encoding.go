package verify

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
)

// encoding is how the bytes of a signature are written.
type encoding string

const (
	encodingHex       encoding = "hex"
	encodingBase64    encoding = "base64"
	encodingBase64URL encoding = "base64url"
)

var errNotEncoded = errors.New("not so encoded")

// decode reads s strictly: nothing around it, nothing within it, no spare bits.
// Hex is read in either letter case; base64 has its padding; base64url has the
// right padding or, as senders mostly write it, none.
func (e encoding) decode(s string) ([]byte, error) {
	// The decoders of the standard library pass over line ends.
	if strings.ContainsAny(s, "\r\n") {
		return nil, errNotEncoded
	}
	var b []byte
	var err error
	switch e {
	case encodingHex:
		b, err = hex.DecodeString(s)
	case encodingBase64:
		b, err = base64.StdEncoding.Strict().DecodeString(s)
	case encodingBase64URL:
		if strings.HasSuffix(s, "=") {
			b, err = base64.URLEncoding.Strict().DecodeString(s)
		} else {
			b, err = base64.RawURLEncoding.Strict().DecodeString(s)
		}
	default:
		return nil, errNotEncoded
	}
	if err != nil {
		return nil, errNotEncoded // the decoder's own error quotes the input
	}
	return b, nil
}

func (e encoding) encode(b []byte) string {
	switch e {
	case encodingBase64:
		return base64.StdEncoding.EncodeToString(b)
	case encodingBase64URL:
		return base64.RawURLEncoding.EncodeToString(b)
	default:
		return hex.EncodeToString(b)
	}
}
