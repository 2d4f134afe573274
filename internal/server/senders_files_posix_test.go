//go:build linux || darwin

package server

import (
	"syscall"
	"testing"
)

// openFiles returns how many files this process may have open, after asking for as
// many as are wanted.
func openFiles(t *testing.T, want int) int {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if was.Cur >= uint64(want) {
		return want
	}
	for _, ask := range []syscall.Rlimit{{Cur: uint64(want), Max: max(was.Max, uint64(want))}, {Cur: was.Max, Max: was.Max}} {
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &ask) == nil { // more than the process may have is refused
			t.Cleanup(func() {
				if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil && ask.Max == was.Max {
					t.Error(err)
				}
			})
			return int(min(ask.Cur, uint64(want)))
		}
	}
	return int(was.Cur)
}
