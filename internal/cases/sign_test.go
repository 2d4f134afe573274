package cases

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// unsupported says that a case asks for something that this package does not know.
type unsupported string

func (u unsupported) Error() string { return string(u) }

// signer makes the signature of one delivery. It shares no code with what checks
// them.
type signer struct {
	secrets map[string]string
	now     time.Time
	prefix  string // put before the path of every address, "" for none
}

// sent is what is known of a delivery when it is signed.
type sent struct {
	method, path string
	headers      []headerLine
	body         []byte
	sign         *signing
}

// seconds is the signed time as text.
func (s *signer) seconds(by *signing) string {
	if by == nil {
		return strconv.FormatInt(s.now.Unix(), 10)
	}
	if len(by.RawTime) > 0 {
		var text string
		if json.Unmarshal(by.RawTime, &text) == nil {
			return text
		}
		return string(by.RawTime)
	}
	return strconv.FormatInt(s.now.Unix()+by.OffsetS, 10)
}

// keys lists the secrets to sign with, in order.
func (s *signer) keys(by *signing) ([]string, error) {
	switch {
	case by.SecretUsed != nil:
		return []string{*by.SecretUsed}, nil
	case len(by.Secrets) == 0 && by.Secret != "":
		by = &signing{Secrets: []string{by.Secret}}
	case len(by.Secrets) == 0:
		return nil, unsupported("a signature without a secret")
	}
	var keys []string
	for _, name := range by.Secrets {
		key, ok := s.secrets[name]
		if !ok {
			return nil, unsupported("secret " + name + ", which setup.secrets does not have")
		}
		keys = append(keys, strings.TrimSpace(key))
	}
	return keys, nil
}

// over returns the bytes that are signed in place of the body.
func (s *signer) over(d *sent) ([]byte, error) {
	switch {
	case d.sign.OverB64 != nil:
		return base64.StdEncoding.DecodeString(*d.sign.OverB64)
	case d.sign.Over != nil && *d.sign.Over == "decoded":
		return decoded(d.header("Content-Encoding"), d.body)
	case d.sign.Over != nil:
		return []byte(*d.sign.Over), nil
	}
	return d.body, nil
}

func (d *sent) header(name string) string {
	for _, line := range d.headers {
		if strings.EqualFold(line.name, name) {
			return line.value
		}
	}
	return ""
}

func decoded(encoding string, body []byte) ([]byte, error) {
	var r io.Reader
	var err error
	switch encoding {
	case "", "identity":
		return body, nil
	case "gzip":
		r, err = gzip.NewReader(bytes.NewReader(body))
	case "deflate":
		r, err = zlib.NewReader(bytes.NewReader(body))
	default:
		return nil, unsupported("signing over a body with Content-Encoding " + encoding)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// scheme is how a signature is written: what is signed, its encoding, and the
// value that goes into the header, from one signature for each secret.
type scheme struct {
	message func(s *signer, d *sent, over []byte, t string) []byte
	encode  func([]byte) string
	write   func(t string, signatures []string) string
}

var (
	inHex    = hex.EncodeToString
	inBase64 = base64.StdEncoding.EncodeToString
)

func theBody(_ *signer, _ *sent, over []byte, _ string) []byte { return over }

func listed(_ string, signatures []string) string { return strings.Join(signatures, ",") }

func prefixed(prefix, between string) func(string, []string) string {
	return func(_ string, signatures []string) string {
		return prefix + strings.Join(signatures, between+prefix)
	}
}

// schemes are all of the cases, each HMAC-SHA256.
func schemes() map[string]scheme {
	return map[string]scheme{
		"stripe": {
			message: func(_ *signer, _ *sent, over []byte, t string) []byte { return append([]byte(t+"."), over...) },
			encode:  inHex,
			write: func(t string, signatures []string) string {
				return "t=" + t + ",v1=" + strings.Join(signatures, ",v1=")
			},
		},
		"github":   {theBody, inHex, prefixed("sha256=", ",")},
		"shopify":  {theBody, inBase64, listed},
		"razorpay": {theBody, inHex, listed},
		"generic":  {theBody, inHex, listed},
		"standard": {
			message: func(_ *signer, d *sent, over []byte, t string) []byte {
				return append([]byte(d.header("webhook-id")+"."+t+"."), over...)
			},
			encode: inBase64, write: prefixed("v1,", " "),
		},
		"mercadopago": {
			message: mercadoManifest, encode: inHex,
			write: func(t string, signatures []string) string {
				return "ts=" + t + ",v1=" + strings.Join(signatures, ",v1=")
			},
		},
		"square": {
			message: func(s *signer, d *sent, over []byte, _ string) []byte {
				return append([]byte(strings.Replace(d.sign.URL, "/in/", s.prefix+"/in/", 1)), over...)
			},
			encode: inBase64, write: listed,
		},
		"adyen-item": {nil, inBase64, listed}, // signed item by item, in adyenBody
	}
}

// mercadoManifest is the told one, or the one of Mercado Pago's own libraries:
// pairs without a value are left out.
func mercadoManifest(_ *signer, d *sent, _ []byte, t string) []byte {
	if d.sign.Manifest != "" {
		return []byte(strings.ReplaceAll(d.sign.Manifest, "{{ts}}", t))
	}
	id := ""
	if _, query, ok := strings.Cut(d.path, "?"); ok {
		for pair := range strings.SplitSeq(query, "&") {
			if value, is := strings.CutPrefix(pair, "data.id="); is {
				id = value
			}
		}
	}
	var b strings.Builder
	for _, pair := range [][2]string{{"id", id}, {"request-id", d.header("x-request-id")}, {"ts", t}} {
		if pair[1] != "" {
			fmt.Fprintf(&b, "%s:%s;", pair[0], pair[1])
		}
	}
	return []byte(b.String())
}

// fill puts signature, time and secrets into what is sent.
func (s *signer) fill(d *sent) error {
	signature, err := s.signature(d)
	if err != nil {
		return err
	}
	for i := range d.headers {
		value := strings.ReplaceAll(d.headers[i].value, "{{timestamp}}", s.seconds(d.sign))
		if strings.Contains(value, "{{signature}}") {
			if d.sign == nil || d.sign.Scheme == "none" {
				return unsupported("{{signature}} without a scheme to sign with")
			}
			value = strings.ReplaceAll(value, "{{signature}}", signature)
		}
		for name, secret := range s.secrets {
			value = strings.ReplaceAll(value, "{{secret:"+name+"}}", strings.TrimSpace(secret))
		}
		if start := strings.Index(value, "{{"); start >= 0 {
			return unsupported("the template " + value[start:])
		}
		d.headers[i].value = value
	}
	return nil
}

// signature returns what stands for {{signature}} in a header, after it has signed
// the items of a body that carry signatures of their own.
func (s *signer) signature(d *sent) (string, error) {
	if d.sign == nil || d.sign.Scheme == "none" || d.sign.Scheme == "" {
		return "", nil
	}
	how, known := schemes()[d.sign.Scheme]
	if !known {
		return "", unsupported("scheme " + d.sign.Scheme)
	}
	keys, err := s.keys(d.sign)
	if err != nil {
		return "", err
	}
	if how.message == nil {
		return "", s.adyenBody(d, keys[0])
	}
	over, err := s.over(d)
	if err != nil {
		return "", err
	}
	t := s.seconds(d.sign)
	message := how.message(s, d, over, t)
	var signatures []string
	for _, key := range keys {
		mac := hmac.New(sha256.New, keyBytes(d.sign.Scheme, key))
		mac.Write(message)
		signatures = append(signatures, corrupted(how.encode(mac.Sum(nil)), d.sign.Corrupt))
	}
	return how.write(t, signatures), nil
}

// keyBytes is the key that a secret stands for: Standard Webhooks write it in
// base64 behind whsec_, all others mean the text.
func keyBytes(scheme, secret string) []byte {
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok && scheme == "standard" {
		if key, err := base64.StdEncoding.DecodeString(text); err == nil && len(key) >= 24 {
			return key
		}
	}
	return []byte(secret)
}

// corrupted flips one character of a signature, in the middle, where each one
// counts.
func corrupted(signature string, yes bool) string {
	if !yes {
		return signature
	}
	b := []byte(signature)
	if at := len(b) / 2; b[at] == 'a' {
		b[at] = 'b'
	} else {
		b[at] = 'a'
	}
	return string(b)
}

// adyenBody signs each item of a body and puts the signature into its place.
func (s *signer) adyenBody(d *sent, secret string) error {
	var told struct {
		Items []struct {
			Item struct {
				PSP      string `json:"pspReference"`
				Original string `json:"originalReference"`
				Account  string `json:"merchantAccountCode"`
				Merchant string `json:"merchantReference"`
				Amount   struct {
					Value    json.Number `json:"value"`
					Currency string      `json:"currency"`
				} `json:"amount"`
				Code    string `json:"eventCode"`
				Success any    `json:"success"`
			} `json:"NotificationRequestItem"`
		} `json:"notificationItems"`
	}
	if err := json.Unmarshal(d.body, &told); err != nil {
		return fmt.Errorf("sign the items of a body: %w", err)
	}
	for _, i := range told.Items {
		n := i.Item
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprint(mac, strings.Join([]string{
			n.PSP, n.Original, n.Account, n.Merchant, n.Amount.Value.String(), n.Amount.Currency, n.Code, fmt.Sprint(n.Success),
		}, ":"))
		signature := corrupted(inBase64(mac.Sum(nil)), d.sign.Corrupt)
		d.body = bytes.Replace(d.body, []byte("{{signature}}"), []byte(signature), 1)
	}
	return nil
}
