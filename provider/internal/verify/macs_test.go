package verify

import (
	"crypto"
	"sync"
	"testing"
)

// TestMACsAreLent: a MAC that has been used before, and those that are used at one
// time, are each of their own message.
func TestMACsAreLent(t *testing.T) {
	m := &macs{hash: crypto.SHA256, secret: []byte("s")}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, body := range []string{"one", "two", "", "one"} {
				var msg message
				msg.add([]byte(body))
				other, good := mustHex(t, mac("x", body)), mustHex(t, mac("s", body))
				if m.made(msg, [][]byte{other, good[:31], nil}) || !m.made(msg, [][]byte{other, good}) {
					t.Errorf("%q is not told from a forgery", body)
				}
			}
		})
	}
	wg.Wait()
}
