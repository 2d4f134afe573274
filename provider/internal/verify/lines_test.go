package verify

import (
	"strconv"
	"strings"
	"testing"
)

// headerLines is a header once for each line.
func headerLines(name string, lines []string) (headers []string) {
	for _, line := range lines {
		headers = append(headers, name, line)
	}
	return headers
}

// TestLinesOfAStandardHeader: where a proxy cut the header at its commas or put
// lines together with commas, the signatures are found all the same.
func TestLinesOfAStandardHeader(t *testing.T) {
	v := mustCompile(t, Config{Scheme: SchemeStandardWebhooks})
	ts := strconv.FormatInt(testTime.Unix(), 10)
	good := encodingBase64.encode(mustHex(t, mac("s", "m1."+ts+".body")))
	bad := encodingBase64.encode(mustHex(t, mac("x", "m1."+ts+".body")))
	tests := []struct {
		name  string
		lines []string
		want  Reason
	}{
		{"cut at the comma", []string{"v1", good}, ""},
		{"two cut at the commas", []string{"v1", bad + " v1", good}, ""},
		{"two lines cut at the commas", []string{"v1", bad, "v1", good}, ""},
		{"a whole line and one that is cut", []string{"v1," + bad, "v1", good}, ""},
		{"put together by commas", []string{"v1," + bad + ",v1," + good}, ""},
		{"put together by commas and blanks", []string{"v1," + bad + ", v1," + good}, ""},
		{"the signature alone", []string{good}, ReasonMalformed},
		{"the signature before its version", []string{good, "v1"}, ReasonMalformed},
		{"after another version", []string{"v1", "v9", good}, ReasonMalformed},
		{"the signature of another version", []string{"v9", good, "v1", bad}, ReasonDiffers},
		{"cut, of another secret", []string{"v1", bad}, ReasonDiffers},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := append(headerLines("webhook-signature", tt.lines), "webhook-id", "m1", "webhook-timestamp", ts)
			if got := verdict(t, v, newRequest("body", h...), "s"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestLinesOfAFormat: the pieces of a value are found on several lines of its header.
func TestLinesOfAFormat(t *testing.T) {
	ts := strconv.FormatInt(testTime.Unix(), 10)
	good, bad := mac("s", ts+".body"), mac("x", ts+".body")
	timed := Config{Scheme: SchemeHMAC, Header: "X-Signature", Format: "t={timestamp},v1={signature}", Signed: []string{"{timestamp}.{raw}"}}
	semicolon := timed
	semicolon.Format, semicolon.Separator = "t={timestamp};v1={signature}", ";"
	inside := Config{Scheme: SchemeHMAC, Header: "X-Signature", Format: "v1,{signature}", Separator: ";", Signed: []string{ts + ".{raw}"}}
	many := []string{"t=" + ts}
	for range maxValues - 2 {
		many = append(many, "v1="+bad)
	}
	long := strings.Repeat("x", maxValueBytes/2)
	tests := []struct {
		name  string
		cfg   Config
		lines []string
		want  Reason
	}{
		{"one line", timed, []string{"t=" + ts + ",v1=" + good}, ""},
		{"cut at the comma", timed, []string{"t=" + ts, "v1=" + good}, ""},
		{"in the other order", timed, []string{"v1=" + good, "t=" + ts}, ""},
		{"two signatures", timed, []string{"t=" + ts, "v1=" + bad, "v1=" + good}, ""},
		{"cut at one comma of two", timed, []string{"t=" + ts + ",v1=" + bad, "v1=" + good}, ""},
		{"each line whole", timed, []string{"t=1,v1=" + bad, "t=" + ts + ",v1=" + good}, ""},
		{"of another secret", timed, []string{"t=" + ts, "v1=" + bad}, ReasonDiffers},
		{"two times for one signature", timed, []string{"t=" + ts, "t=1", "v1=" + good}, ReasonMissing},
		{"no time", timed, []string{"v1=" + bad, "v1=" + good}, ReasonMissing},
		{"within the bound on signatures", timed, []string{many[0], many[1], "v1=" + good}, ""},
		{"a comma within the piece", inside, []string{"v1", good}, ""},
		{"as long as one value may be together", timed, []string{"t=" + ts, "v1=" + good, strings.Repeat("x", maxValueBytes-len("t="+ts+",v1="+good+","))}, ""},
		{"longer together than one value may be", timed, []string{"t=" + ts, "v1=" + good, long, long}, ReasonMissing},
		{"no comma in the value", semicolon, []string{"t=" + ts, "v1=" + good}, ReasonMissing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := mustCompile(t, tt.cfg)
			if tt.want == ReasonMissing {
				tt.cfg.Tolerance = "5m"
				v = mustCompile(t, tt.cfg)
			}
			r := newRequest("body", headerLines("X-Signature", tt.lines)...)
			if got := verdict(t, v, r, "s"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	t.Run("bound on signatures", func(t *testing.T) {
		v := mustCompile(t, timed)
		e := v.entries[0]
		found, rej := e.read(append(many, "v1="+good))
		if rej != nil || len(found) > maxSignatures {
			t.Errorf("%d signatures, %v; want at most %d", len(found), rej, maxSignatures)
		}
	})
}
