package provider

import (
	"strings"
	"testing"
)

// TestNamesThatAreNoText: ids that differ only in what is no text stay apart:
// the events are kept under their digests, and the facts are held.
func TestNamesThatAreNoText(t *testing.T) {
	p, err := Builtin("stripe")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for _, odd := range []string{`\ud800`, `\ud801`, `\udc00`, "\xe9", "\xe8", "\uFFFD", `\u0000`} {
		body := `{"id":"evt_` + odd + `","created":1767225600,"type":"payment_intent.succeeded","data":{"object":{"id":"pi_` + odd +
			`","object":"payment_intent","amount":100,"currency":"brl","status":"succeeded"}}}`
		readings := p.Read(&Request{Method: "POST", Body: []byte(body)})
		if len(readings) != 1 {
			t.Fatalf("%q: %d events", odd, len(readings))
		}
		r := readings[0]
		if other, twice := keys[r.Event.Key]; twice || !r.Event.DigestKey {
			t.Errorf("%q: the key %q is that of %q too", odd, r.Event.Key, other)
		}
		keys[r.Event.Key] = odd
		for _, f := range r.Facts {
			if f.Held == "" || f.Key != "" || !strings.Contains(f.Held, "no text") {
				t.Errorf("%q: a fact about %q, held %q", odd, f.Key, f.Held)
			}
		}
	}
}
