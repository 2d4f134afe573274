package verify

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Decode undoes the Content-Encoding of a body that came with this header: gzip,
// deflate (zlib, or the bare stream that some senders write), or several of them,
// the last first. What is signed as {decoded} and what is parsed are both this.
//
// It works before anything is verified, so the result is bounded by what came: see
// DecodedLimit. The error is a *Rejected with [ReasonEncoding] whose Detail holds
// nothing of the body.
func Decode(header http.Header, raw []byte) ([]byte, error) {
	body, rej := decodeBody(header, raw)
	if rej != nil {
		return nil, rej
	}
	return body, nil
}

// DecodedLimit is the most bytes that a body of n bytes may have once it is decoded.
func DecodedLimit(n int) int {
	return min(max(n, minDecodedBytes/decodedFactor), maxDecodedBytes/decodedFactor) * decodedFactor
}

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
	body, limit := raw, DecodedLimit(len(raw))
	for _, coding := range slices.Backward(codings) {
		var rej *Rejected
		if body, rej = undo(coding, body, limit); rej != nil {
			return nil, rej
		}
	}
	return body, nil
}

func undo(coding string, body []byte, limit int) ([]byte, *Rejected) {
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
	out, err := io.ReadAll(io.LimitReader(reader, int64(limit)+1))
	if err != nil {
		return nil, reject(ReasonEncoding, "the body is not what Content-Encoding says")
	}
	if len(out) > limit {
		return nil, reject(ReasonEncoding, "the decoded body is longer than %d bytes, which is more than a body of its size may become", limit)
	}
	return out, nil
}
