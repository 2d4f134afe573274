package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ceilingHandler is the least that a receiver of webhooks does: it reads the body,
// checks its HMAC, and answers 200.
func ceilingHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := receive(w, r); err != nil {
			http.Error(w, "the delivery is not accepted", http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
}

var errSignature = errors.New("the signature does not match")

// receive reads the body of a request and checks it as Stripe's documentation says.
func receive(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	const most = 1 << 20
	if r.ContentLength < 0 || r.ContentLength > most {
		return nil, http.ErrContentLength
	}
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(http.MaxBytesReader(w, r.Body, most), body); err != nil {
		return nil, err
	}
	return body, checkSignature(r.Header.Get("Stripe-Signature"), body, time.Now())
}

func checkSignature(header string, body []byte, now time.Time) error {
	var at string
	var signatures []string
	for part := range strings.SplitSeq(header, ",") {
		switch name, value, _ := strings.Cut(part, "="); name {
		case "t":
			at = value
		case "v1":
			signatures = append(signatures, value)
		}
	}
	const tolerance = 5 * 60
	made, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Unix()-made > tolerance || made-now.Unix() > tolerance {
		return errSignature
	}
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, at)
	_, _ = mac.Write([]byte("."))
	_, _ = mac.Write(body)
	sum := mac.Sum(nil)
	for _, s := range signatures {
		if told, err := hex.DecodeString(s); err == nil && hmac.Equal(told, sum) {
			return nil
		}
	}
	return errSignature
}
