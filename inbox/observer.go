package inbox

import (
	"log/slog"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox/internal/panics"
)

// Observer is told what the inbox does, for metrics. Its methods are called on the
// path to the acknowledgement, from many goroutines at once, and must be quick. A
// panic in one is logged and changes nothing else.
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

// guarded keeps the panics of an Observer away from the inbox.
type guarded struct {
	Observer
	log *slog.Logger
}

func (g guarded) guard() {
	if p := recover(); p != nil {
		thrown := panics.New(p)
		g.log.Error("the observer panicked", "panic", thrown, "stack", thrown.Stack())
	}
}

func (g guarded) Delivered(source string, outcome onceward.Outcome) {
	defer g.guard()
	g.Observer.Delivered(source, outcome)
}

func (g guarded) Folded(source string, verdict onceward.Verdict) {
	defer g.guard()
	g.Observer.Folded(source, verdict)
}

func (g guarded) Committed(events int, took time.Duration) {
	defer g.guard()
	g.Observer.Committed(events, took)
}

func (g guarded) Acknowledged(source string, took time.Duration) {
	defer g.guard()
	g.Observer.Acknowledged(source, took)
}
