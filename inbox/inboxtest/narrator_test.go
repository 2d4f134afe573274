package inboxtest_test

import (
	"fmt"
	"io"
	"testing"
)

// narrator is a test outside of a test, for examples.
type narrator struct {
	testing.TB
	cleanups []func()
}

// end does what a test does at its end.
func (n *narrator) end() {
	for _, f := range n.cleanups {
		f()
	}
}

func (*narrator) Helper()                           {}
func (n *narrator) Cleanup(f func())                { n.cleanups = append(n.cleanups, f) }
func (*narrator) Output() io.Writer                 { return io.Discard }
func (*narrator) Failed() bool                      { return false }
func (*narrator) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (*narrator) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
