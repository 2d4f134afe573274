package inbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox/internal/committer"
	"github.com/onceward/onceward/provider"
)

// errAckTimeout is the cause of an answer that could not wait for its commit.
var errAckTimeout = errors.New("the commit took longer than a sender waits; the event may be stored all the same")

// arrivals makes what the committer takes of the events of one delivery.
func (in *Inbox) arrivals(s *source, d *onceward.Delivery, origin onceward.Origin, readings []provider.Reading) []*onceward.Arrival {
	behind := s.behind()
	arrivals := make([]*onceward.Arrival, len(readings))
	for i := range readings {
		e := &readings[i].Event
		e.ID, e.Source, e.Origin, e.Delivery = in.ids.next(), s.name, origin, d
		facts := readings[i].Facts
		for j := range facts {
			if behind != "" && facts[j].Held == "" {
				facts[j].Held = behind
			}
		}
		arrivals[i] = &onceward.Arrival{Event: e, Facts: facts, Mapping: s.mapping}
	}
	return arrivals
}

// submit hands a delivery to the committer and waits for it, at most as long as a
// sender does.
func (in *Inbox) submit(ctx context.Context, arrivals []*onceward.Arrival) ([]committer.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, in.cfg.AckTimeout, errAckTimeout)
	defer cancel()
	return in.committer.Submit(ctx, arrivals, footprint(arrivals[0].Event.Delivery))
}

// footprint is about what a delivery takes in memory while it waits.
func footprint(d *onceward.Delivery) int64 {
	size := len(d.Body) + len(d.Target)
	for name, values := range d.Header {
		size += len(name)
		for _, v := range values {
			size += len(v)
		}
	}
	return int64(size)
}

// worstError returns the error that decides the answer to a delivery: one after
// which trying again helps before one after which it does not.
func worstError(results []committer.Result) error {
	var worst error
	for _, r := range results {
		if r.Err != nil && (worst == nil || isLater(r.Err)) {
			worst = r.Err
		}
	}
	return worst
}

// isLater tells what a sender is answered 503 for: trying again later will help.
func isLater(err error) bool {
	for _, later := range []error{
		committer.ErrFull, committer.ErrRefusing, committer.ErrClosed,
		onceward.ErrUnavailable, onceward.ErrUnknownOutcome, onceward.ErrSchemaNewer,
		errAckTimeout, context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, later) {
			return true
		}
	}
	return false
}

func (in *Inbox) observeFacts(source string, facts []onceward.FactResult) {
	for _, f := range facts {
		in.observer.Folded(source, f.Verdict)
	}
}

// note logs what an operator should look at, without what it was about.
func (in *Inbox) note(s *source, results []committer.Result) {
	for _, r := range results {
		held := 0
		for _, f := range r.Facts {
			if f.Verdict == onceward.Held {
				held++
			}
		}
		if held > 0 {
			in.log.Warn("facts are held; the event says why", "source", s.name, "event", r.StoredID, "facts", held)
		}
		if r.Outcome == onceward.Conflict {
			in.log.Warn("an event has the key of another one and tells other facts; both are kept", "source", s.name, "event", fmt.Sprint(r.StoredID))
		}
	}
}
