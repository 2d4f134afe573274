package inbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider"
)

// takeUpPage is how many events are taken up in one submission.
const takeUpPage = 64

// keepUp looks which mappings are the newest and takes up what older ones left
// held. What fails is tried again the next time.
func (in *Inbox) keepUp(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(in.sources)) {
		s := in.sources[name]
		before := s.behind()
		if err := in.refresh(ctx, s); err != nil {
			in.log.Warn("the newest mapping is not known", "source", name, "error", err)
			continue
		}
		switch why := s.behind(); {
		case why != "" && before == "":
			in.log.Warn("another process has a newer mapping; facts are held from now on", "source", name, "why", why)
		case why != "":
		default:
			n, err := in.takeUp(ctx, s)
			if err != nil && ctx.Err() == nil {
				in.log.Warn("held facts are not all taken up yet", "source", name, "error", err)
			}
			if n > 0 {
				in.log.Info("took up the held facts of an older mapping", "source", name, "events", n)
			}
		}
	}
}

// refresh asks for the newest revision of a source's mapping.
func (in *Inbox) refresh(ctx context.Context, s *source) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	_, newest, err := in.store.Register(ctx, s.name, s.mapping.Hash, s.doc, in.cfg.Now())
	if err != nil {
		return err
	}
	s.newest.Store(newest)
	return nil
}

// takeUp reads the events anew whose facts were held under older mappings. An event
// that cannot be taken up is logged and left; when the store is down it ends.
func (in *Inbox) takeUp(ctx context.Context, s *source) (taken int, err error) {
	for after := int64(0); ; {
		ids, err := in.store.HeldEvents(ctx, s.name, s.mapping.Revision, after, takeUpPage)
		if err != nil || len(ids) == 0 {
			return taken, err
		}
		after = ids[len(ids)-1]
		var arrivals []*onceward.Arrival
		var size int64
		for _, id := range ids {
			a, err := in.retaken(ctx, s, id)
			switch {
			case err == nil:
				arrivals, size = append(arrivals, a), size+int64(len(a.Event.Delivery.Body))
			case isLater(err):
				return taken, err
			default:
				in.log.Error("held facts cannot be taken up", "source", s.name, "event", id, "error", err)
			}
		}
		n, err := in.submitRetaken(ctx, s, arrivals, size)
		taken += n
		if err != nil {
			return taken, err
		}
	}
}

func (in *Inbox) submitRetaken(ctx context.Context, s *source, arrivals []*onceward.Arrival, size int64) (taken int, err error) {
	if len(arrivals) == 0 {
		return 0, nil
	}
	results, err := in.committer.Submit(ctx, arrivals, size)
	if err != nil {
		return 0, err
	}
	for i, r := range results {
		switch {
		case r.Err == nil:
			taken++
			in.observeFacts(s.name, r.Facts)
		case isLater(r.Err):
			return taken, r.Err
		default:
			in.log.Error("held facts cannot be taken up", "source", s.name, "event", arrivals[i].Retake, "error", r.Err)
		}
	}
	return taken, nil
}

// retaken makes the arrival that replaces the held facts of a stored event. What
// the event has told already, in facts that are not held, is not told again.
func (in *Inbox) retaken(ctx context.Context, s *source, id int64) (*onceward.Arrival, error) {
	stored, err := in.store.Event(ctx, id)
	if err != nil {
		return nil, err
	}
	told, err := in.store.EventFacts(ctx, id)
	if err != nil {
		return nil, err
	}
	facts := slices.DeleteFunc(in.readStored(s, &stored.Event).Facts, func(f onceward.Fact) bool {
		return slices.ContainsFunc(told, func(t onceward.StoredFact) bool {
			return t.Verdict != onceward.Held && t.Rule == f.Rule && t.Kind == f.Kind && t.Key == f.Key
		})
	})
	return &onceward.Arrival{Event: &stored.Event, Facts: facts, Mapping: s.mapping, Retake: id}, nil
}

// readStored reads a kept event with today's rules.
func (in *Inbox) readStored(s *source, e *onceward.Event) provider.Reading {
	if e.Origin == onceward.Registered {
		return provider.Reading{Event: *e, Facts: s.readRegistration(e)}
	}
	readings := s.read(&provider.Request{
		Method: e.Delivery.Method, URL: in.addresses.stored(e.Delivery), Header: e.Delivery.Header, Body: e.Delivery.Body,
	})
	if e.Item >= len(readings) {
		return provider.Reading{Event: *e, Facts: []onceward.Fact{{Held: fmt.Sprintf("the delivery has no event %d any more; it holds %d", e.Item+1, len(readings))}}}
	}
	return readings[e.Item]
}

// resolve compares an event with the stored one of the same key and other bytes:
// both are read with today's rules, and from what is kept of them.
func (in *Inbox) resolve(ctx context.Context, a *onceward.Arrival) (onceward.Resolution, error) {
	s := in.sources[a.Event.Source]
	stored, err := in.store.Event(ctx, a.StoredID)
	if err != nil {
		return onceward.Unresolved, err
	}
	if stored.Delivery == nil {
		return onceward.Unresolved, errors.New("its body is not kept")
	}
	mine, theirs := in.readStored(s, a.Event), in.readStored(s, &stored.Event)
	if mine.Event.Type == theirs.Event.Type && onceward.SameFacts(mine.Facts, theirs.Facts) {
		return onceward.ResolvedDuplicate, nil
	}
	return onceward.ResolvedConflict, nil
}
