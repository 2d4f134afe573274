package verify

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustFormat(t *testing.T, text, separator string) *format {
	t.Helper()
	f, flt := parseFormat(text, separator, true)
	if flt != nil {
		t.Fatalf("parseFormat(%q): %v", text, flt)
	}
	return f
}

// found is what a value holds: each signature, with the holes beside it.
func found(t *testing.T, f *format, value string) ([]string, string) {
	t.Helper()
	candidates, err := f.read(value)
	if err != nil {
		return nil, err.Error()
	}
	var out []string
	for _, c := range candidates {
		text := c.signature
		for i, name := range f.holes {
			if name != holeSignature {
				text += " " + name + "=" + c.holes[i]
			}
		}
		out = append(out, text)
	}
	return out, ""
}

func TestFormatRead(t *testing.T) {
	stripe, alg := "t={timestamp},v1={signature}", "alg=RS256; kid={kid}; signature={signature}"
	tests := []struct {
		name, format, separator, value string
		want                           []string
		err                            string
	}{
		{"bare", "{signature}", ",", "abc", []string{"abc"}, ""},
		{"bare, repeated", "{signature}", ",", "abc,def", []string{"abc", "def"}, ""},
		{"prefix", "sha256={signature}", ",", "sha256=abc", []string{"abc"}, ""},
		{"prefix missing", "sha256={signature}", ",", "abc", nil, ""},
		{"prefix in other case", "sha256={signature}", ",", "SHA256=abc", nil, ""},
		{"order of writing", stripe, ",", "t=1,v1=a", []string{"a timestamp=1"}, ""},
		{"other order", stripe, ",", "v1=a,t=1", []string{"a timestamp=1"}, ""},
		{"several signatures", stripe, ",", "t=1,v1=a,v1=b", []string{"a timestamp=1", "b timestamp=1"}, ""},
		{"the time stands between", stripe, ",", "v1=a,t=1,v1=b", []string{"a timestamp=1", "b timestamp=1"}, ""},
		{"unknown pieces are skipped", stripe, ",", "t=1,v0=x,v1=a,z", []string{"a timestamp=1"}, ""},
		{"no signature", stripe, ",", "t=1,v0=x", nil, ""},
		{"no time is empty", stripe, ",", "v1=a", []string{"a timestamp="}, ""},
		{"the same time twice", stripe, ",", "t=1,t=1,v1=a", []string{"a timestamp=1"}, ""},
		{"two times", stripe, ",", "t=1,t=2,v1=a", nil, "holds two different values for {timestamp}"},
		{"blanks around pieces", stripe, ",", " t=1 ,\tv1=a ", []string{"a timestamp=1"}, ""},
		{"empty signature", stripe, ",", "t=1,v1=", []string{" timestamp=1"}, ""},
		{"fixed piece", alg, ";", "alg=RS256; kid=k; signature=s", []string{"s kid=k"}, ""},
		{"fixed piece elsewhere", alg, ";", "signature=s;kid=k;alg=RS256", []string{"s kid=k"}, ""},
		{"fixed piece differs", alg, ";", "alg=none; kid=k; signature=s", nil, "has no piece alg=RS256"},
		{"fixed piece missing", alg, ";", "kid=k; signature=s", nil, "has no piece alg=RS256"},
		{"longer beginning first", "{timestamp},v1={signature}", ",", "v1=a,7", []string{"a timestamp=7"}, ""},
		{"holes in the signature's piece are its own", "{key}|{signature}", "&", "a|1&b|2", []string{"1 key=a", "2 key=b"}, ""},
		{"text after a hole", "<{signature}>", ",", "<a>,<b,c>", []string{"a"}, ""},
		{"blank separator", "v1:{signature}", " ", "v1:a  v1:b", []string{"a", "b"}, ""},
		{"long separator", "{signature}", "; ", "a; b", []string{"a", "b"}, ""},
		{"the hole takes the separator's letters of another", "{signature}", ";", "a,b", []string{"a,b"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := found(t, mustFormat(t, tt.format, tt.separator), tt.value)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != tt.err {
				t.Errorf("error %q, want %q; %s", err, tt.err, diff)
			}
		})
	}
}

func TestFormatLimits(t *testing.T) {
	f := mustFormat(t, "v={signature}", ",")
	at := strings.Repeat("x,", maxPieces-1) + "v=a"
	if got, err := found(t, f, at); err != "" || len(got) != 1 {
		t.Errorf("%d pieces: %v, %s", maxPieces, got, err)
	}
	if _, err := found(t, f, "x,"+at); err == "" {
		t.Errorf("%d pieces were read", maxPieces+1)
	}
	long := "v=" + strings.Repeat("a", maxValueBytes-2)
	if got, err := found(t, f, long); err != "" || len(got) != 1 {
		t.Errorf("%d bytes: %s", len(long), err)
	}
	if _, err := found(t, f, long+"a"); err == "" {
		t.Errorf("%d bytes were read", len(long)+1)
	}
}

func TestFormatFaults(t *testing.T) {
	tests := []struct {
		format, separator string
		offset            int
		msg               string
	}{
		{"t={timestamp,v1={signature}", ",", 2, "not closed"},
		{"t={timestamp},v1={signature", ",", 17, "not closed"},
		{"t={timestamp}", ",", 0, "{signature} must stand"},
		{"", ",", 0, "empty"},
		{"a={signature},", ",", 14, "empty"},
		{"a={signature},b={signature}", ",", 16, "stands twice"},
		{"t={body.x},v1={signature}", ",", 2, "is a name"},
		{"t={},v1={signature}", ",", 2, "is a name"},
		{"{a}{signature}", ",", 3, "text between"},
		{"{signature},{timestamp}", ",", 12, "cannot be told apart"},
		{"v={a},  v={signature}", ",", 8, "cannot be told apart"},
	}
	for _, tt := range tests {
		_, flt := parseFormat(tt.format, tt.separator, true)
		if flt == nil || flt.offset != tt.offset || !strings.Contains(flt.msg, tt.msg) {
			t.Errorf("%q: %+v, want %q at %d", tt.format, flt, tt.msg, tt.offset)
		}
	}
}

func TestFormatRender(t *testing.T) {
	for _, text := range []string{"{signature}", "t={timestamp},v1={signature}", "a;b={kid};<{signature}>"} {
		f := mustFormat(t, text, ";")
		value := f.render(map[string]string{"signature": "s", "timestamp": "1", "kid": "k"})
		want := strings.NewReplacer("{signature}", "s", "{timestamp}", "1", "{kid}", "k").Replace(text)
		if value != want {
			t.Errorf("render(%q) = %q, want %q", text, value, want)
		}
		candidates, err := f.read(value)
		if err != nil || len(candidates) != 1 || candidates[0].signature != "s" {
			t.Errorf("%q reads back as %v, %v", value, candidates, err)
		}
	}
}
