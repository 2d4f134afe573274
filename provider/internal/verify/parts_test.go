package verify

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEncodingDecode(t *testing.T) {
	tests := []struct {
		enc  encoding
		text string
		ok   bool
	}{
		{encodingHex, "00ff", true},
		{encodingHex, "00FF", true},
		{encodingHex, "0fF", false},
		{encodingHex, "0x00", false},
		{encodingHex, "00 ff", false},
		{encodingHex, "00ff\n", false},
		{encodingBase64, "+/8=", true},
		{encodingBase64, "+/8", false},
		{encodingBase64, "-_8=", false},
		{encodingBase64, "+/9=", false}, // spare bits that are not zero
		{encodingBase64, "+/\n8=", false},
		{encodingBase64, "+/\r8=", false},
		{encodingBase64, "+/8=\n", false},
		{encodingBase64, " +/8=", false},
		{encodingBase64, "+/8=x", false},
		{encodingBase64URL, "-_8", true},
		{encodingBase64URL, "-_8=", true},
		{encodingBase64URL, "-_8==", false},
		{encodingBase64URL, "+/8", false},
		{encodingBase64URL, "-_9", false},
		{encodingBase64URL, "-_\n8", false},
		{"rot13", "00", false},
	}
	for _, tt := range tests {
		b, err := tt.enc.decode(tt.text)
		if (err == nil) != tt.ok {
			t.Errorf("%s %q: %v", tt.enc, tt.text, err)
		}
		if err != nil && strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s %q: the error quotes it: %v", tt.enc, tt.text, err)
		}
		if tt.ok {
			if again, err := tt.enc.decode(tt.enc.encode(b)); err != nil || !bytes.Equal(again, b) {
				t.Errorf("%s %q does not survive encode and decode", tt.enc, tt.text)
			}
		}
	}
}

func encode(t *testing.T, coding string, body []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zlib":
		w = zlib.NewWriter(&out)
	case "flate":
		w, err = flate.NewWriter(&out, flate.BestCompression)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestDecodeBody(t *testing.T) {
	body := []byte(`{"paid":true}`)
	gz := encode(t, "gzip", body)
	tests := []struct {
		name    string
		codings []string
		raw     []byte
		ok      bool
	}{
		{"none", nil, body, true},
		{"identity", []string{"identity"}, body, true},
		{"gzip", []string{"gzip"}, gz, true},
		{"other case and name", []string{" X-GZIP "}, gz, true},
		{"deflate as zlib", []string{"deflate"}, encode(t, "zlib", body), true},
		{"deflate bare", []string{"deflate"}, encode(t, "flate", body), true},
		{"two codings, the last outermost", []string{"deflate, gzip"}, encode(t, "gzip", encode(t, "zlib", body)), true},
		{"two header lines", []string{"deflate", "gzip"}, encode(t, "gzip", encode(t, "zlib", body)), true},
		{"not gzip", []string{"gzip"}, body, false},
		{"cut off", []string{"gzip"}, gz[:len(gz)-3], false},
		{"not deflate", []string{"deflate"}, []byte("\xff\xff\xff\xff"), false},
		{"brotli", []string{"br"}, body, false},
		{"unknown", []string{"rot13"}, body, false},
		{"too many", []string{"gzip, gzip, gzip, gzip"}, gz, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, rej := decodeBody(http.Header{"Content-Encoding": tt.codings}, tt.raw)
			if !tt.ok {
				if rej == nil || rej.Reason != ReasonEncoding {
					t.Errorf("%v, want a rejection as %s", rej, ReasonEncoding)
				}
				return
			}
			if rej != nil || !bytes.Equal(got, body) {
				t.Errorf("%q, %v", got, rej)
			}
		})
	}
}

func TestDecodeBodyIsBounded(t *testing.T) {
	for _, tt := range []struct{ incompressible, zeros, limit int }{
		{0, minDecodedBytes, minDecodedBytes},
		{0, minDecodedBytes + 1, minDecodedBytes},
		{100 << 10, 2 << 20, 3 << 20}, // 32 times the 100 KiB and what the zeros take
		{100 << 10, 4 << 20, 3 << 20},
		{512 << 10, maxDecodedBytes - 512<<10, maxDecodedBytes},
		{512 << 10, maxDecodedBytes - 512<<10 + 1, maxDecodedBytes},
	} {
		body := make([]byte, tt.incompressible+tt.zeros)
		random := rand.New(rand.NewPCG(1, 2))
		for i := range tt.incompressible {
			body[i] = byte(random.Uint32())
		}
		raw := encode(t, "gzip", body)
		if limit := DecodedLimit(len(raw)); limit < tt.limit || limit > tt.limit+tt.limit/8 {
			t.Errorf("%d bytes may become %d, want about %d", len(raw), limit, tt.limit)
		}
		got, rej := decodeBody(http.Header{"Content-Encoding": {"gzip"}}, raw)
		fits := len(body) <= tt.limit
		if fits && (rej != nil || len(got) != len(body)) {
			t.Errorf("%d bytes of %d: %v", len(body), len(raw), rej)
		}
		if !fits && (rej == nil || rej.Reason != ReasonEncoding) {
			t.Errorf("%d bytes of %d: %v, want a rejection", len(body), len(raw), rej)
		}
	}
}

func TestAddressVariants(t *testing.T) {
	tests := map[string]string{
		"https://a.example/in?x=1":            "https://a.example:443/in?x=1",
		"http://a.example":                    "http://a.example:80",
		"https://a.example:8443/in":           "https://a.example/in",
		"https://a.example:443?x=http://b:1/": "https://a.example?x=http://b:1/",
		"https://u:p@a.example/":              "https://u:p@a.example:443/",
		"https://u:p@a.example:1/":            "https://u:p@a.example/",
		"https://[::1]/in":                    "https://[::1]:443/in",
		"https://[::1]:8443/in":               "https://[::1]/in",
		"https://a.example/%7Eß?q=a+b#f":      "https://a.example:443/%7Eß?q=a+b#f",
		"ftp://a.example/in":                  "",
		"/in?x=1":                             "",
		"https:///in":                         "",
		"":                                    "",
	}
	for address, other := range tests {
		want := []string{address}
		if other != "" {
			want = append(want, other)
		}
		if diff := cmp.Diff(want, addressVariants(address)); diff != "" {
			t.Errorf("%s: %s", address, diff)
		}
	}
}

func TestWithQuery(t *testing.T) {
	tests := map[string]string{
		"https://a.example/in":                    "https://a.example/in?signature=a%2Bb",
		"https://a.example/in?tenant=7":           "https://a.example/in?tenant=7&signature=a%2Bb",
		"https://a.example/in?signature=old&x=%7": "https://a.example/in?x=%7&signature=a%2Bb",
		"https://a.example/in#part":               "https://a.example/in?signature=a%2Bb#part",
	}
	for address, want := range tests {
		if got := withQuery(address, "signature", "a+b"); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

func TestParseInstant(t *testing.T) {
	tests := []struct {
		text string
		want time.Time
		form timeForm
	}{
		{"1767225600", testTime, formSeconds},
		{"1767225600000", testTime, formMillis},
		{"1767225600123", testTime.Add(123 * time.Millisecond), formMillis},
		{"2026-01-01T00:00:00Z", testTime, formRFC3339},
		{"2025-12-31T21:00:00-03:00", testTime, formRFC3339},
		{"2026-01-01T00:00:00.5Z", testTime.Add(time.Second / 2), formRFC3339},
		{"0", time.Unix(0, 0), formSeconds},
		{"99999999999", time.Unix(99999999999, 0), formSeconds},
		{"100000000000", time.UnixMilli(100000000000), formMillis},
		{"99999999999999", time.UnixMilli(99999999999999), formMillis},
	}
	for _, tt := range tests {
		got, form, ok := parseInstant(tt.text)
		if !ok || !got.Equal(tt.want) || form != tt.form {
			t.Errorf("%s: %v %v %v, want %v %v", tt.text, got, form, ok, tt.want, tt.form)
		}
		if ok && tt.form != formRFC3339 && formatInstant(got, form) != tt.text {
			t.Errorf("%s is written %s", tt.text, formatInstant(got, form))
		}
	}
	for _, text := range []string{"", " 1767225600", "+1767225600", "-1", "1767225600.5", "1e9", "100000000000000", "99999999999999999999", "2026-01-01", "2026-01-01T00:00:00", "now"} {
		if got, _, ok := parseInstant(text); ok {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func TestHoleLength(t *testing.T) {
	tests := map[string]int{
		`{raw}`:                5,
		`{raw} {x}`:            5,
		`{headers["a}b"]}`:     16,
		`{'}' + "}"} rest`:     11,
		`{"\"}"}`:              7,
		`{r"\"} x`:             6,
		`{'''it's }'''}`:       14,
		`{{"a": 1}.a}`:         12,
		`{raw`:                 -1,
		`{"raw}`:               -1,
		`{{raw}`:               -1,
		`{"a\`:                 -1,
		`{""}`:                 4,
		`{"""}`:                -1,
		`{"é}" + raw}`:         len(`{"é}" + raw}`),
		`{b"}"}`:               6,
		`{R'\'}`:               6,
		`{"unclosed \" quote}`: -1,
	}
	for text, want := range tests {
		if got := holeLength(text); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

func TestReasons(t *testing.T) {
	seen := map[Reason]bool{}
	for i, r := range Reasons() {
		if r.rank() != i || seen[r] || strings.ToLower(string(r)) != string(r) || strings.ContainsAny(string(r), " _") {
			t.Errorf("%q is no stable label of rank %d", r, i)
		}
		seen[r] = true
	}
	if Reason("other").rank() != -1 {
		t.Error("an unknown reason has a rank")
	}
	low, high := reject(ReasonMissing, "a"), reject(ReasonExpired, "b")
	for _, pair := range [][2]*Rejected{{low, high}, {high, low}, {nil, high}, {high, nil}, {high, reject(ReasonExpired, "later")}} {
		if got := furthest(pair[0], pair[1]); got != high {
			t.Errorf("furthest(%v, %v) = %v", pair[0], pair[1], got)
		}
	}
}
