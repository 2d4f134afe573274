package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onceward/onceward"
)

// defaultLimit is the most that a list returns if its query does not say.
const defaultLimit = 100

// eventColumns are read by scanEvent. b is the event whose row carries the body
// of e's delivery. Lists leave the body out; its length costs no reading of it.
const (
	eventColumns = `select e.id, e.at, e.source, e.account, e.mode, e.origin, e.key, e.type, e.time, e.item, e.digest, e.unsigned, e.digest_key,
			e.method, e.target, e.remote, b.headers, coalesce(octet_length(b.body), 0), e.outcome, e."of", e.revision,
			f.facts, f.held, r.repeats`
	eventTables = ` from {events} e
		join {events} b on b.id = case e.body_of when 0 then e.id else e.body_of end
		cross join lateral (select count(*) as facts, count(*) filter (where verdict = 4) as held from {facts} where event = e.id) f
		cross join lateral (select count(*) as repeats from {repeats} where event = e.id) r`
)

// Event implements onceward.Reader.
func (s *Store) Event(ctx context.Context, id int64) (*onceward.StoredEvent, error) {
	var found *onceward.StoredEvent
	err := s.read(ctx, "read an event", eventColumns+`, b.body`+eventTables+` where e.id = $1`, func(rows pgx.Rows) (err error) {
		var body []byte
		found, err = scanEvent(rows, &body)
		if err == nil {
			found.Delivery.Body = body
		}
		return err
	}, id)
	if err == nil && found == nil {
		err = fmt.Errorf("postgres: event %d: %w", id, onceward.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Events implements onceward.Reader.
func (s *Store) Events(ctx context.Context, q onceward.EventQuery) ([]onceward.StoredEvent, error) {
	where := newWhere()
	if q.Source != "" {
		where.and("e.source = ", q.Source)
	}
	if q.Type != "" {
		where.and(`e.type like `, likePattern(q.Type))
	}
	if q.Before != 0 {
		where.and("e.id < ", q.Before)
	}
	var found []onceward.StoredEvent
	// The page first, and then what belongs to its events: however the server
	// plans the rest, it is for so many events only.
	sql := `with page as materialized (select e.id from {events} e` + where.text() + ` order by e.id desc limit ` + where.arg(limit(q.Limit)) + `) ` +
		eventColumns + eventTables + ` join page on page.id = e.id order by e.id desc`
	err := s.read(ctx, "list events", sql, func(rows pgx.Rows) error {
		e, err := scanEvent(rows)
		if err == nil {
			found = append(found, *e)
		}
		return err
	}, where.args...)
	return found, err
}

// scanEvent reads eventColumns and what further columns follow.
func scanEvent(rows pgx.Rows, further ...any) (*onceward.StoredEvent, error) {
	var e onceward.StoredEvent
	var d onceward.Delivery
	var origin, outcome int16
	var sent pgtype.Int8
	var digest pgtype.UUID
	var target, headers []byte
	to := append([]any{&e.ID, &d.At, &e.Source, &e.Scope.Account, &e.Scope.Mode, &origin, &e.Key, &e.Type, &sent, &e.Item, &digest, &e.Unsigned, &e.DigestKey,
		&d.Method, &target, &d.Remote, &headers, &e.BodySize, &outcome, &e.Of, &e.Revision,
		&e.Facts, &e.Held, &e.Repeats}, further...)
	if err := rows.Scan(to...); err != nil {
		return nil, err
	}
	e.Origin, e.Outcome, e.Digest = onceward.Origin(origin), onceward.Outcome(outcome), onceward.Digest(digest.Bytes)
	if sent.Valid {
		e.Time = onceward.Some(sent.Int64)
	}
	var err error
	if d.Header, err = decodeHeader(headers); err != nil {
		return nil, fmt.Errorf("event %d: %w", e.ID, err)
	}
	d.At, d.Target = d.At.UTC(), string(target)
	e.Delivery = &d
	return &e, nil
}

const factColumns = `select f.entity, f.seq, f.event, f.place, f.verdict, f.version, f.revision, f.status_from, f.status_to, f.ord, f.against, f.decided, f.told,
		e.source, e.account, e.mode, e.key, e.type, e.at
	from {facts} f join {events} e on e.id = f.event`

// factChunk is how many facts one statement reads.
const factChunk = 1000

// factPlace is where a list of facts goes on.
type factPlace struct {
	place  int32
	entity pgtype.UUID
	seq    int64
}

// History implements onceward.Reader.
func (s *Store) History(ctx context.Context, ref onceward.Ref) ([]onceward.StoredFact, error) {
	id := uuid(ref.ID())
	return s.factList(ctx, "read a history", factColumns+` where f.entity = $1 and f.seq > $2 order by f.seq limit $3`,
		func(after factPlace) []any { return []any{id, after.seq, factChunk} })
}

// EventFacts implements onceward.Reader. The facts are in the order told.
func (s *Store) EventFacts(ctx context.Context, eventID int64) ([]onceward.StoredFact, error) {
	return s.factList(ctx, "read the facts of an event", factColumns+`
		where f.event = $1 and (f.place, f.entity, f.seq) > ($2, $3, $4) order by f.place, f.entity, f.seq limit $5`,
		func(after factPlace) []any { return []any{eventID, after.place, after.entity, after.seq, factChunk} })
}

// factList runs a statement, whose arguments say where to go on, until it has
// read them all.
func (s *Store) factList(ctx context.Context, op, sql string, args func(after factPlace) []any) ([]onceward.StoredFact, error) {
	var found []onceward.StoredFact
	at := factPlace{place: -1, entity: uuid(onceward.ID{})}
	for {
		looked := 0
		err := s.read(ctx, op, sql, func(rows pgx.Rows) error {
			f, err := scanFact(rows, &at)
			looked++
			found = append(found, f)
			return err
		}, args(at)...)
		if err != nil {
			return nil, err
		}
		if looked < factChunk {
			return found, nil
		}
	}
}

func scanFact(rows pgx.Rows, at *factPlace) (onceward.StoredFact, error) {
	var f onceward.StoredFact
	var verdict int16
	var ordered, against, told []byte
	var received time.Time
	if err := rows.Scan(&at.entity, &at.seq, &f.EventID, &at.place, &verdict, &f.Version, &f.Revision, &f.From, &f.To, &ordered, &against, &f.Decided, &told,
		&f.Ref.Source, &f.Ref.Scope.Account, &f.Ref.Scope.Mode, &f.EventKey, &f.EventType, &received); err != nil {
		return f, err
	}
	f.Seq = at.seq
	if err := json.Unmarshal(told, &f.Fact); err != nil {
		return f, fmt.Errorf("fact %d of %x: %w", f.Seq, at.entity.Bytes, err)
	}
	f.Ref.Kind, f.Ref.Key = f.Fact.Kind, f.Fact.Key
	f.Verdict, f.Order, f.Against, f.At = onceward.Verdict(verdict), onceward.Order(ordered), onceward.Order(against), received.UTC()
	return f, nil
}

// HeldEvents implements onceward.Reader. It steps through the revisions that
// left something behind, so that what today's mapping holds is never looked at.
func (s *Store) HeldEvents(ctx context.Context, source string, below, after int64, most int) ([]int64, error) {
	var found []int64
	err := s.read(ctx, "list held events", `with recursive old (revision) as (
			(select revision from {facts} where verdict = 4 and revision < $2 order by revision limit 1)
			union all
			select (select f.revision from {facts} f where f.verdict = 4 and f.revision > old.revision and f.revision < $2 order by f.revision limit 1)
			from old where old.revision is not null)
		select distinct h.event from old cross join lateral (
			select distinct f.event from {facts} f join {events} e on e.id = f.event
			where f.verdict = 4 and f.revision = old.revision and f.event > $3 and e.source = $1 order by f.event limit $4) h
		order by h.event limit $4`, func(rows pgx.Rows) error {
		var id int64
		err := rows.Scan(&id)
		found = append(found, id)
		return err
	}, source, below, after, limit(most))
	return found, err
}

func limit(n int) int64 {
	if n <= 0 {
		return defaultLimit
	}
	return int64(n)
}

// likePattern is a word in which * is any run of characters, as LIKE has it.
func likePattern(word string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`).Replace(word)
}

// where collects the conditions of a list, and its arguments.
type where struct {
	conditions []string
	args       []any
}

func newWhere() *where { return &where{} }

// arg adds an argument and returns its place.
func (w *where) arg(value any) string {
	w.args = append(w.args, value)
	return fmt.Sprintf("$%d", len(w.args))
}

func (w *where) and(condition string, value any) {
	w.conditions = append(w.conditions, condition+w.arg(value))
}

func (w *where) text() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " where " + strings.Join(w.conditions, " and ")
}
