package panics_test

import (
	"strings"
	"testing"

	"github.com/onceward/onceward/inbox/internal/panics"
)

func thrower(what any) { panic(what) }

func TestAPanicIsOneLineAndItsStackHasNoArguments(t *testing.T) {
	for _, test := range []struct{ thrown, want string }{
		{"nil map", "panic: nil map"},
		{"first\nsecond: user@example.com", "panic: first"},
		{strings.Repeat("é", 300), "panic: " + strings.Repeat("é", 100) + "…"},
	} {
		var got *panics.Error
		func() {
			defer func() { got = panics.New(recover()) }()
			thrower(test.thrown)
		}()
		if got.Error() != test.want {
			t.Errorf("the error is %q, want %q", got.Error(), test.want)
		}
		if !strings.Contains(got.Stack(), "panics_test.thrower ") || strings.Contains(got.Stack(), "0x") || strings.Contains(got.Stack(), "example.com") {
			t.Errorf("the stack is:\n%s", got.Stack())
		}
	}
}
