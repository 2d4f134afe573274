package cases

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/onceward/onceward/internal/pgtest"
)

// TestMain runs the tests with one PostgreSQL for all, or, in a process that a
// case has started to kill it, the server of that case. It wants no goroutine to
// be left behind.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(childVariable); ok {
		os.Exit(childMain(text))
	}
	// Plays wait for workers more than they work. A -parallel of the command line counts.
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(pgtest.Main(leakless{m}))
}

// leakless is a test run that fails if it leaves a goroutine behind.
type leakless struct{ m *testing.M }

// Run implements what pgtest.Main wants.
func (l leakless) Run() int {
	before := goleak.IgnoreCurrent() // among others, one that waits for the end of the database
	code := l.m.Run()
	if code == 0 {
		if err := goleak.Find(before); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}
