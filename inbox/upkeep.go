package inbox

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox/internal/committer"
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
		n, err := in.takeUpAll(ctx, s, ids)
		taken += n
		if err != nil {
			return taken, err
		}
	}
}

// takeUpAll takes up the events of one page, in submissions that fit in a batch.
func (in *Inbox) takeUpAll(ctx context.Context, s *source, ids []int64) (taken int, err error) {
	var arrivals []*onceward.Arrival
	var size int64
	submit := func() error {
		n, err := in.submitRetaken(ctx, s, arrivals, size)
		taken += n
		arrivals, size = nil, 0
		return err
	}
	for _, id := range ids {
		a, err := in.retaken(ctx, s, id)
		switch {
		case err == nil:
		case isLater(err):
			return taken, err
		default:
			in.log.Error("held facts cannot be taken up", "source", s.name, "event", id, "error", err)
			continue
		}
		one := footprint(a.Event.Delivery)
		if len(arrivals) > 0 && size+one > in.cfg.BatchBytes {
			if err := submit(); err != nil {
				return taken, err
			}
		}
		arrivals, size = append(arrivals, a), size+one
	}
	return taken, submit()
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
	facts := untold(in.readStored(s, &stored.Event).Facts, told)
	return &onceward.Arrival{Event: &stored.Event, Facts: facts, Mapping: s.mapping, Retake: id}, nil
}

// untold returns the facts that are not among those told: each told one that is not
// held stands for one that says the same, and for no other. So nothing that was
// held is lost, whatever other facts the event told about the same row.
func untold(facts []onceward.Fact, told []onceward.StoredFact) []onceward.Fact {
	told = slices.DeleteFunc(slices.Clone(told), func(t onceward.StoredFact) bool { return t.Verdict == onceward.Held })
	return slices.DeleteFunc(facts, func(f onceward.Fact) bool {
		f.Key = onceward.CleanText(f.Key) // as it is stored
		i := slices.IndexFunc(told, func(t onceward.StoredFact) bool {
			return onceward.SameFacts([]onceward.Fact{f}, []onceward.Fact{t.Fact})
		})
		if i >= 0 {
			told = slices.Delete(told, i, i+1)
		}
		return i >= 0
	})
}

// readStored reads a kept event with today's rules.
func (in *Inbox) readStored(s *source, e *onceward.Event) provider.Reading {
	var once readOnce
	return once.read(in, s, e)
}

func (in *Inbox) readDelivery(s *source, d *onceward.Delivery) []provider.Reading {
	return s.read(&provider.Request{Method: d.Method, URL: in.addresses.stored(d), Header: d.Header, Body: d.Body})
}

// pick returns the reading of an event of a delivery.
func pick(readings []provider.Reading, e *onceward.Event) provider.Reading {
	if e.Item >= len(readings) {
		return provider.Reading{Event: *e, Facts: []onceward.Fact{{Held: fmt.Sprintf("the delivery has no event %d any more; it holds %d", e.Item+1, len(readings))}}}
	}
	return readings[e.Item]
}

// resolve compares the events of one delivery with the stored ones of the same key
// and other bytes: both are read with today's rules, and from what is kept of them.
// A delivery is read once, whatever number of events it holds; so is a stored one
// whose events come one after the other.
func (in *Inbox) resolve(ctx context.Context, arrivals []*onceward.Arrival) []committer.Comparison {
	s := in.sources[arrivals[0].Event.Source]
	all := make([]committer.Comparison, len(arrivals))
	var mine, theirs readOnce
	for i, a := range arrivals {
		stored, err := in.store.Event(ctx, a.StoredID)
		if err != nil {
			all[i].Err = err
			continue
		}
		m, t := mine.read(in, s, a.Event), theirs.read(in, s, &stored.Event)
		all[i].Resolution = onceward.ResolvedConflict
		if m.Event.Type == t.Event.Type && onceward.SameFacts(m.Facts, t.Facts) {
			all[i].Resolution = onceward.ResolvedDuplicate
		}
	}
	return all
}

// readOnce reads the events of a delivery that are asked for one after the other.
// The zero value has read nothing.
type readOnce struct {
	delivery *onceward.Delivery
	readings []provider.Reading
}

func (r *readOnce) read(in *Inbox, s *source, e *onceward.Event) provider.Reading {
	if e.Origin == onceward.Registered {
		return provider.Reading{Event: *e, Facts: s.readRegistration(e)}
	}
	if r.delivery == nil || !sameRequest(r.delivery, e.Delivery) {
		r.delivery, r.readings = e.Delivery, in.readDelivery(s, e.Delivery)
	}
	return pick(r.readings, e)
}

// sameRequest reports whether two deliveries are read alike.
func sameRequest(a, b *onceward.Delivery) bool {
	return a == b || a.Method == b.Method && a.Target == b.Target &&
		maps.EqualFunc(a.Header, b.Header, slices.Equal) && bytes.Equal(a.Body, b.Body)
}
