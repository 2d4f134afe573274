package sqlite

import (
	"context"
	"database/sql"
	"math"
	"slices"

	"github.com/onceward/onceward"
)

// eventColumns are what scanEvent takes. Headers and body stand with the event
// of the delivery that carries them.
const eventColumns = `e.id, e.at, e.source, e.account, e.mode, e.origin, e.key, e.type, e.time, e.item, e.digest, e.flags, e.outcome, e."of", e.revision,
	e.method, e.target, e.remote, coalesce(e.headers, c.headers), coalesce(length(e.body), length(c.body), 0),
	(select count(*) from onceward_repeats r where r.event = e.id),
	(select count(*) from onceward_facts f where f.event = e.id),
	(select count(*) from onceward_facts f where f.event = e.id and f.verdict = 4)`

func scanEvent(scan func(...any) error, more ...any) (*onceward.StoredEvent, error) {
	var e onceward.StoredEvent
	var at, flags int64
	var time sql.NullInt64
	var digest, headers []byte
	d := &onceward.Delivery{}
	err := scan(append([]any{
		&e.ID, &at, &e.Source, &e.Scope.Account, &e.Scope.Mode, &e.Origin, &e.Key, &e.Type, &time, &e.Item, &digest, &flags, &e.Outcome, &e.Of, &e.Revision,
		&d.Method, &d.Target, &d.Remote, &headers, &e.BodySize, &e.Repeats, &e.Facts, &e.Held,
	}, more...)...)
	if err != nil {
		return nil, err
	}
	copy(e.Digest[:], digest)
	e.Time = onceward.Opt{N: time.Int64, Set: time.Valid}
	e.Unsigned, e.DigestKey = flags&flagUnsigned != 0, flags&flagDigestKey != 0
	d.At, d.Header = fromMicros(at), decodeHeader(headers)
	e.Delivery = d
	return &e, nil
}

// Event implements [onceward.Reader].
func (s *Store) Event(ctx context.Context, id int64) (*onceward.StoredEvent, error) {
	var found *onceward.StoredEvent
	err := s.read(ctx, func(scan func(...any) error) error {
		var body []byte
		e, err := scanEvent(scan, &body)
		if err != nil {
			return err
		}
		e.Delivery.Body = body
		found = e
		return nil
	}, `select `+eventColumns+`, coalesce(e.body, c.body) from onceward_events e left join onceward_events c on c.id = e.body_of where e.id = ?`, id)
	if err == nil && found == nil {
		err = onceward.ErrNotFound
	}
	return found, translate("read an event", err)
}

// Events implements [onceward.Reader].
func (s *Store) Events(ctx context.Context, q onceward.EventQuery) ([]onceward.StoredEvent, error) {
	ids, err := s.eventIDs(ctx, q)
	if err != nil {
		return nil, translate("list events", err)
	}
	var events []onceward.StoredEvent
	for len(ids) > 0 && err == nil {
		n := min(len(ids), chunk)
		err = s.read(ctx, func(scan func(...any) error) error {
			e, err := scanEvent(scan)
			if err == nil {
				events = append(events, *e)
			}
			return err
		}, `select `+eventColumns+` from onceward_events e left join onceward_events c on c.id = e.body_of
			where e.id in (select value from json_each(?)) order by e.id desc`, list(ids[:n]))
		ids = ids[n:]
	}
	return events, translate("list events", err)
}

// eventIDs finds a page's events, looking at narrow columns only.
func (s *Store) eventIDs(ctx context.Context, q onceward.EventQuery) ([]int64, error) {
	limit := limitOf(q.Limit)
	step := chunk
	if q.Source == "" && q.Type == "" {
		step = limit
	}
	var ids []int64
	last := int64(math.MaxInt64) // where to look from
	if q.Before > 0 {
		last = q.Before - 1
	}
	for {
		looked := 0
		err := s.read(ctx, func(scan func(...any) error) error {
			var id int64
			var source, word string
			if err := scan(&id, &source, &word); err != nil {
				return err
			}
			looked++
			last = id - 1
			if len(ids) < limit && (q.Source == "" || q.Source == source) && (q.Type == "" || onceward.MatchType(q.Type, word)) {
				ids = append(ids, id)
			}
			return nil
		}, `select id, source, type from onceward_events where id <= ? order by id desc limit ?`, last, step)
		if err != nil || looked < step || len(ids) == limit {
			return ids, err
		}
	}
}

// HeldEvents implements [onceward.Reader]. It steps through the revisions that
// left something behind, so that what today's mapping holds is never looked at.
func (s *Store) HeldEvents(ctx context.Context, source string, below, after int64, limit int) ([]int64, error) {
	var ids []int64
	limit = limitOf(limit)
	revision := int64(math.MinInt64)
	for {
		found := false
		err := s.read(ctx, func(scan func(...any) error) error {
			found = true
			return scan(&revision)
		}, `select revision from onceward_facts where verdict = 4 and revision > ? and revision < ? order by revision limit 1`, revision, below)
		if err == nil && found {
			ids, err = s.heldUnder(ctx, source, revision, after, limit, ids)
		}
		if err != nil {
			return nil, translate("list events with held facts", err)
		}
		if !found {
			slices.Sort(ids)
			ids = slices.Compact(ids)
			return ids[:min(limit, len(ids))], nil
		}
	}
}

// heldUnder adds the first events of a source with facts that one revision holds.
func (s *Store) heldUnder(ctx context.Context, source string, revision, after int64, limit int, ids []int64) ([]int64, error) {
	most := len(ids) + limit
	for {
		looked := 0
		err := s.read(ctx, func(scan func(...any) error) error {
			var of string
			if err := scan(&after, &of); err != nil {
				return err
			}
			looked++
			if of == source && len(ids) < most {
				ids = append(ids, after)
			}
			return nil
		}, `select h.event, e.source from (select distinct event from onceward_facts where verdict = 4 and revision = ? and event > ? order by event limit ?) h
			join onceward_events e on e.id = h.event order by h.event`, revision, after, chunk)
		if err != nil || looked < chunk || len(ids) == most {
			return ids, err
		}
	}
}
