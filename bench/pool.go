package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"sync"
	"time"
)

// secret signs everything that is sent.
const secret = "whsec_of_the_benchmark"

// requestHead is what stands before the signature of a request, as Stripe sends
// it; requestTail what stands behind it.
const (
	requestHead = "POST /in/stripe HTTP/1.1\r\n" +
		"Host: 127.0.0.1\r\n" +
		"User-Agent: Stripe/1.0 (+https://stripe.com/docs/webhooks)\r\n" +
		"Accept: */*; q=0.5, application/json\r\n" +
		"Cache-Control: no-cache\r\n" +
		"Content-Type: application/json; charset=utf-8\r\n" +
		"Stripe-Signature: "
	requestTail = "\r\nContent-Length: 1024\r\n\r\n"
)

// pool holds signed requests, ready to be written to a connection. All have the
// same length.
type pool struct {
	bytes []byte
	size  int // of one request
	n     int
}

// request returns the bytes of the i-th request.
func (p *pool) request(i int) []byte { return p.bytes[i*p.size : (i+1)*p.size] }

// body returns the body of the i-th request.
func (p *pool) body(i int) []byte {
	r := p.request(i)
	return r[len(r)-bodySize:]
}

// fill makes the pool hold the next n requests of the sender, signed as of now.
// The memory of what it held is used again.
func (p *pool) fill(s *sender, n int, now time.Time) error {
	drafts := make([]draft, n)
	for i := range drafts {
		drafts[i] = s.next()
	}
	t := newSigner(now)
	p.size, p.n = len(requestHead)+t.length()+len(requestTail)+bodySize, n
	if need := n * p.size; cap(p.bytes) < need {
		p.bytes = make([]byte, need)
	} else {
		p.bytes = p.bytes[:need]
	}
	const parts = 4
	var wg sync.WaitGroup
	errs := make([]error, parts)
	for part := range parts {
		wg.Go(func() {
			sign, body := newSigner(now), make([]byte, 0, 2*bodySize)
			for i := part * n / parts; i < (part+1)*n/parts; i++ {
				body = drafts[i].template.append(body[:0], drafts[i].event, s.noise)
				dst := p.request(i)[:0]
				dst = append(dst, requestHead...)
				dst = sign.append(dst, body)
				dst = append(dst, requestTail...)
				if dst = append(dst, body...); len(dst) != p.size {
					errs[part] = fmt.Errorf("request %d has %d bytes in place of %d", i, len(dst), p.size)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// signer signs as Stripe does, many bodies in little time.
type signer struct {
	at  string
	mac hash.Hash
	sum []byte
}

func newSigner(now time.Time) *signer {
	return &signer{at: strconv.FormatInt(now.Unix(), 10), mac: hmac.New(sha256.New, []byte(secret))}
}

func (s *signer) length() int { return len("t=") + len(s.at) + len(",v1=") + 2*sha256.Size }

// append appends the value of the header Stripe-Signature.
func (s *signer) append(dst, body []byte) []byte {
	s.mac.Reset()
	s.mac.Write([]byte(s.at))
	s.mac.Write([]byte("."))
	s.mac.Write(body)
	s.sum = s.mac.Sum(s.sum[:0])
	dst = append(append(append(dst, "t="...), s.at...), ",v1="...)
	return hex.AppendEncode(dst, s.sum)
}
