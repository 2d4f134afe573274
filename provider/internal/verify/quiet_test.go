package verify

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestErrorsHoldNothing: no rejection of any vector holds a part of the secret, of
// a header's value or of the body.
func TestErrorsHoldNothing(t *testing.T) {
	rows := vectorRows()
	rejections := 0
	for i, vec := range readVectors(t) {
		row := vec.Provider + " " + vec.Scheme
		if vec.Expect == "valid" || vec.Method != "POST" || vectorWaits[row] != "" {
			continue
		}
		s := rows[row](t, vec)
		v := mustCompile(t, s.verify...)
		texts := s.secrets
		if texts == nil {
			texts = []string{vec.Secret}
		}
		var secrets []Secret
		for _, text := range texts {
			if secret, err := v.ParseSecret(text); err == nil {
				secrets = append(secrets, secret)
			}
		}
		r := vectorRequest(t, vec)
		in := newInput(r)
		in.params = vectorParams(t, vec)
		if s.split != "" {
			r.Items = splitter(t, s.split, r, in)
		}
		_, err := v.Verify(time.Unix(vec.Now, 0), r, in, secrets)
		var rej *Rejected
		if !errors.As(err, &rej) {
			t.Errorf("vector %d: %v", i, err)
			continue
		}
		rejections++
		hidden := append([]string{vec.Body}, texts...)
		for _, value := range vec.Headers {
			hidden = append(hidden, strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(",;= ", r) })...)
		}
		hidden = append(hidden, strings.FieldsFunc(vec.Body, func(r rune) bool { return strings.ContainsRune(`{}[]":,&=`, r) })...)
		for _, text := range hidden {
			known := strings.Contains(fmt.Sprint(s.verify), text) || text == "2026-01-01T00" // the file's, the clock's
			if len(text) > 9 && !known && strings.Contains(rej.Error(), text) {
				t.Errorf("vector %d: %q holds %q", i, rej.Error(), text)
			}
		}
	}
	if rejections < 150 {
		t.Errorf("%d rejections were looked at", rejections)
	}
}

// TestConcurrent: one Verifier, one Secret and one SigningKey for all.
func TestConcurrent(t *testing.T) {
	for _, c := range signCases(t) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 5 {
					r := newRequest("body", c.headers...)
					if err := c.v.Sign(testTime, r, newInput(r), c.signer); err != nil {
						t.Error(err)
					}
					if _, err := c.verify(r, testTime); err != nil {
						t.Errorf("%s: %v", c.name, err)
					}
				}
			})
		}
		wg.Wait()
	}
}

func BenchmarkVerify(b *testing.B) {
	body := `{"data":"` + strings.Repeat("x", 1000) + `"}`
	for _, c := range signCases(b) {
		b.Run(strings.ReplaceAll(c.name, " ", "-"), func(b *testing.B) {
			r := newRequest(body, c.headers...)
			if err := c.v.Sign(testTime, r, newInput(r), c.signer); err != nil {
				b.Fatal(err)
			}
			in, secrets := newInput(r), []Secret{c.secret}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.v.Verify(testTime, r, in, secrets); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
