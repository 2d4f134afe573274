package tree_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/onceward/onceward/provider/internal/tree"
)

func TestParseForm(t *testing.T) {
	for text, want := range map[string]string{
		``:                          `{}`,
		`&&`:                        `{}`,
		`a=1&b=x+y%20z%C3%A9&c`:     `{"a":"1","b":"x y zé","c":""}`,
		`a[b]=1`:                    `{"a":{"b":"1"}}`,
		`a%5Bb%5D[c]=1&a[b][d]=2`:   `{"a":{"b":{"c":"1","d":"2"}}}`,
		`a=1&a=2`:                   `{"a":"1"}`,
		`a[b]=1&a[b]=2`:             `{"a":{"b":"1"}}`,
		`a=1&a[b]=2`:                `{"a":"1"}`,
		`a[b]=2&a=1`:                `{"a":{"b":"2"}}`,
		`a[]=1&a[]=2&a[b]=3`:        `{"a":["1","2"]}`,
		`a[b]=3&a[]=1`:              `{"a":{"b":"3"}}`,
		`a[][b]=1&a[][c]=2`:         `{"a":[{"b":"1"},{"c":"2"}]}`,
		`a[0]=x&a[1]=y`:             `{"a":{"0":"x","1":"y"}}`,
		`a[b=1&a]b=2&a[b]c=3&[d]=4`: `{"a[b":"1","a]b":"2","a[b]c":"3","[d]":"4"}`,
		`a[b[c]]=1&a[]]=2&a[b]]=3`:  `{"a[b[c]]":"1","a[]]":"2","a[b]]":"3"}`,
		`=x&=y`:                     `{"":"x"}`,
		`a=b=c`:                     `{"a":"b=c"}`,
		`a;b=1`:                     `{"a;b":"1"}`,
		`a=%ff%00`:                  `{"a":"` + "\ufffd" + `\u0000"}`,
		"a=\xff\xfe":                `{"a":"` + "\ufffd\ufffd" + `"}`,
		`payload=%7B%22a%22%3A1%7D`: `{"payload":"{\"a\":1}"}`,
	} {
		doc, err := tree.ParseForm([]byte(text))
		if err != nil {
			t.Errorf("ParseForm(%q): %v", text, err)
		} else if got := js(doc.Root); got != want {
			t.Errorf("ParseForm(%q) is %s, want %s", text, got, want)
		} else if doc.Doubled != nil || doc.Root.Raw() != nil {
			t.Errorf("ParseForm(%q) has doubled members or raw bytes", text)
		}
	}
}

func TestParseFormErrors(t *testing.T) {
	for text, want := range map[string]string{
		`a=%`:        "a value has a % without two hexadecimal digits, at byte 2",
		`a=1&bc=%4x`: "a value has a % without two hexadecimal digits, at byte 7",
		`a=1&b%zz=1`: "a name has a % without two hexadecimal digits, at byte 4",
		"a" + strings.Repeat("[b]", tree.MaxDepth) + "=1": "a name has more than 512 brackets, at byte 0",
	} {
		_, err := tree.ParseForm([]byte(text))
		var syntax *tree.SyntaxError
		if !errors.As(err, &syntax) || err.Error() != want {
			t.Errorf("ParseForm(%.30q): %v, want %s", text, err, want)
		}
	}
}

// FuzzParseForm compares with net/url, which knows no brackets, takes a semicolon for an error and goes on after one.
func FuzzParseForm(f *testing.F) {
	for _, s := range []string{"a=1&b[c]=2&b[]=3", "a[b][c]=%41&a[b]=1&a=2", "x+y=%zz", "[]=1&[a]=2&a[=3", "a[][b]=1&a[][]=2"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := tree.ParseForm(data)
		if err != nil {
			var syntax *tree.SyntaxError
			if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > int64(len(data)) {
				t.Fatalf("bad error %v", err)
			}
		}
		again, err2 := tree.Parse(doc.Root.AppendJSON(nil))
		if err == nil && (err2 != nil || !tree.Equal(again.Root, doc.Root)) {
			t.Fatalf("%s is not the form: %v", js(doc.Root), err2)
		}
		if strings.Contains(string(data), ";") {
			return
		}
		values, wantErr := url.ParseQuery(string(data))
		if (err == nil) != (wantErr == nil) && !strings.Contains(string(data), "[") && !strings.Contains(strings.ToLower(string(data)), "%5b") {
			t.Fatalf("net/url says %v, ParseForm: %v", wantErr, err)
		}
		if err != nil {
			return
		}
		for name, list := range values {
			v := doc.Root.Get(name)
			if v.Kind() != tree.String || !utf8.ValidString(name) || sharesName(values, name) {
				continue
			}
			if got, _ := v.Text(); got != string([]rune(list[0])) {
				t.Fatalf("%q is %q, want %q", name, got, list[0])
			}
		}
	})
}

// sharesName reports whether another name becomes the same text once it is valid UTF-8.
func sharesName(values url.Values, name string) bool {
	for other := range values {
		if other != name && string([]rune(other)) == string([]rune(name)) {
			return true
		}
	}
	return false
}
