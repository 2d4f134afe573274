package inbox

import (
	"time"

	"github.com/onceward/onceward"
)

// Observer is told what the inbox does, for metrics. Its methods are called on the
// path to the acknowledgement, from many goroutines at once, and must be quick.
type Observer interface {
	// Delivered is told of each event of a delivery that was answered: 200 if the
	// outcome is New, Duplicate or Conflict, 401 if it is Rejected, 5xx if it is
	// Undecided.
	Delivered(source string, outcome onceward.Outcome)
	// Folded is told of each fact of a new event.
	Folded(source string, verdict onceward.Verdict)
	// Committed is told of each commit: the events it took in and its duration.
	// A commit that failed counts too.
	Committed(events int, took time.Duration)
	// Acknowledged is told how long a sender waited for its 200, from the moment
	// that its headers were read.
	Acknowledged(source string, took time.Duration)
}

// blind is the Observer of an inbox that nobody watches.
type blind struct{}

func (blind) Delivered(string, onceward.Outcome) {}
func (blind) Folded(string, onceward.Verdict)    {}
func (blind) Committed(int, time.Duration)       {}
func (blind) Acknowledged(string, time.Duration) {}
