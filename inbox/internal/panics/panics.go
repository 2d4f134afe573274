// Package panics makes errors of recovered panics: one line for people, and apart
// from it where the panic came from. Neither the goroutine's arguments nor more
// than the first line of what was thrown is kept, for both may hold payloads.
package panics

import (
	"fmt"
	"runtime"
	"strings"
)

// longest is how many bytes of what was thrown are kept, deepest how many frames.
const (
	longest = 200
	deepest = 32
)

// Error is a recovered panic. It is immutable.
type Error struct {
	line  string
	stack string
}

// New makes the error of what recover returned. Call it in the deferred function:
// the stack is that of the panic there.
func New(thrown any) *Error {
	line, _, _ := strings.Cut(strings.TrimSpace(fmt.Sprint(thrown)), "\n")
	if len(line) > longest {
		line = strings.ToValidUTF8(line[:longest], "") + "…"
	}
	return &Error{line: line, stack: stack()}
}

// Error returns one line.
func (e *Error) Error() string { return "panic: " + e.line }

// Stack returns the calls that led to the panic, innermost first, as lines of
// function, file and line, without arguments.
func (e *Error) Stack() string { return e.stack }

func stack() string {
	var pcs [deepest]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])]) // not Callers, stack and New
	var b strings.Builder
	for {
		f, more := frames.Next()
		if f.Function != "" {
			fmt.Fprintf(&b, "%s %s:%d\n", f.Function, f.File, f.Line)
		}
		if !more {
			return b.String()
		}
	}
}
