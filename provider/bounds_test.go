package provider_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/provider"
)

// packed is a text in a content coding.
func packed(t *testing.T, coding, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&out)
	if coding == "deflate" {
		bare, err := flate.NewWriter(&out, flate.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		w = bare
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestWhatNobodySignedCostsLittle verifies requests that nobody signed, where the
// check has to read the body, and counts what that allocates.
func TestWhatNobodySignedCostsLittle(t *testing.T) {
	const most = 48 << 20
	zeros := "[" + strings.Repeat("0,", 8<<20) + "0]"
	for _, c := range []struct {
		name, coding, media string
		body                []byte
	}{
		{"16 MiB in gzip", "gzip", "application/json", packed(t, "gzip", zeros)},
		{"16 MiB in deflate", "deflate", "application/json", packed(t, "deflate", zeros)},
		{"1 MiB of zeros in gzip", "gzip", "application/json", packed(t, "gzip", zeros[:1<<20-2]+"0]")},
		{"1 MiB of zeros", "", "application/json", []byte(zeros[:1<<20-2] + "0]")},
		{"1 MiB of members", "", "application/json", []byte("{" + strings.Repeat(`"":0,`, 1<<20/5) + `"":0}`)},
		{"1 MiB of a form", "", "application/x-www-form-urlencoded", []byte(strings.Repeat("a[]&", 1<<18))},
		{"1 MiB of a deep form", "", "application/x-www-form-urlencoded", []byte(strings.Repeat("a"+strings.Repeat("[][b]", 200)+"&", 1<<20/1002))},
	} {
		for _, name := range []string{"kie", "hotmart"} {
			p, err := provider.Compile(provider.SourceConfig{Name: "s", Provider: name, Secrets: []string{"shared-secret"}})
			if err != nil {
				t.Fatal(err)
			}
			r := post("")
			r.Body = c.body
			r.Header = http.Header{
				"Content-Type": {c.media}, "X-Webhook-Signature": {"AAAA"}, "X-Webhook-Timestamp": {"1790000000"},
			}
			if c.coding != "" {
				r.Header.Set("Content-Encoding", c.coding)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := p.Verify(time.Unix(1_790_000_000, 0), r); err == nil {
				t.Errorf("%s: %s is accepted", name, c.name)
			}
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > most {
				t.Errorf("%s: %s of %d bytes allocates %d MiB, want at most %d", name, c.name, len(c.body), got>>20, most>>20)
			}
		}
	}
}

// TestTooMuchIsUnreadable wants what passes a bound to be kept as an event whose fact
// is held.
func TestTooMuchIsUnreadable(t *testing.T) {
	p := parse(t, "verify: {scheme: none}\nevent: {key: body.id}\nfacts: {a: {kind: cart, key: body.id, status: open}}\n")
	for _, c := range []struct{ name, media, body, want string }{
		{"values", "application/json", `{"id":1,"x":[` + strings.Repeat("0,", 200_000) + `0]}`, "held: the body is not JSON: the text holds too many values for its size"},
		{"a form", "application/x-www-form-urlencoded", "id=1" + strings.Repeat("&a[]=1", 20_000), "held: the body is not a form: the form holds more than 20000 values"},
	} {
		r := post(c.body)
		r.Header.Set("Content-Type", c.media)
		readings := p.Read(r)
		if len(readings) != 1 || !readings[0].Event.DigestKey || !strings.HasPrefix(strings.Join(showAll(readings[0]), "; "), c.want) {
			t.Errorf("%s: %q, want %q", c.name, showAll(readings[0]), c.want)
		}
	}
	// As many values as a large body may well hold are read.
	large := `{"id":1,"x":[` + strings.Repeat(`{"amount":12345,"name":"a name"},`, 100_000) + `0]}`
	if got := showAll(one(t, p, large)); len(got) != 1 || got[0] != "cart 1 open" {
		t.Errorf("a large body: %q", got)
	}
}

// TestOneDecoder wants {decoded} and the parsed body to be the same bytes.
func TestOneDecoder(t *testing.T) {
	p, err := provider.Parse("acme", []byte("verify: {scheme: hmac, header: X-S, signed: '{decoded}'}\nevent: {key: body.id}\nfacts: {a: {kind: cart, key: body.id, status: open}}\n"), provider.Options{Secrets: []string{"k"}})
	if err != nil {
		t.Fatal(err)
	}
	text := `{"id":"e1"}`
	r := post("")
	r.Body = packed(t, "deflate", text) // the bare stream
	r.Header.Set("Content-Encoding", "deflate")
	r.Header.Set("X-S", mac("k", text))
	if _, err := p.Verify(time.Unix(1_790_000_000, 0), r); err != nil {
		t.Fatal(err)
	}
	if readings := p.Read(r); readings[0].Event.Key != "e1" || show(readings[0].Facts[0]) != "cart e1 open" {
		t.Errorf("it verifies and reads as %+v", readings[0])
	}
}
