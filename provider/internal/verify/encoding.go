package verify

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
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

// decodeBody undoes the Content-Encoding of a body. The result is bounded.
func decodeBody(header http.Header, raw []byte) ([]byte, *Rejected) {
	var codings []string
	for _, line := range header.Values("Content-Encoding") {
		for coding := range strings.SplitSeq(line, ",") {
			coding = strings.ToLower(trimBlank(coding))
			if coding != "" && coding != "identity" {
				codings = append(codings, coding)
			}
		}
	}
	if len(codings) > maxEncodings {
		return nil, reject(ReasonEncoding, "the body is encoded more than %d times", maxEncodings)
	}
	body := raw
	for i := len(codings) - 1; i >= 0; i-- {
		var rej *Rejected
		if body, rej = undo(codings[i], body); rej != nil {
			return nil, rej
		}
	}
	return body, nil
}

func undo(coding string, body []byte) ([]byte, *Rejected) {
	var reader io.Reader
	var err error
	switch coding {
	case "gzip", "x-gzip":
		reader, err = gzip.NewReader(bytes.NewReader(body))
	case "deflate":
		// The name means zlib; some senders write the bare stream.
		if reader, err = zlib.NewReader(bytes.NewReader(body)); errors.Is(err, zlib.ErrHeader) {
			reader, err = flate.NewReader(bytes.NewReader(body)), nil
		}
	case "br", "zstd", "compress", "x-compress":
		return nil, reject(ReasonEncoding, "Content-Encoding %s is not supported; gzip and deflate are", coding)
	default:
		return nil, reject(ReasonEncoding, "the Content-Encoding is not known; gzip and deflate are")
	}
	if err != nil {
		return nil, reject(ReasonEncoding, "the body is not what Content-Encoding says")
	}
	out, err := io.ReadAll(io.LimitReader(reader, maxDecodedBytes+1))
	if err != nil {
		return nil, reject(ReasonEncoding, "the body is not what Content-Encoding says")
	}
	if len(out) > maxDecodedBytes {
		return nil, reject(ReasonEncoding, "the decoded body is longer than %d bytes", maxDecodedBytes)
	}
	return out, nil
}
