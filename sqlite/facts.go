package sqlite

import (
	"context"

	"github.com/onceward/onceward"
)

const factColumns = `f.seq, f.event, f.rule, f.kind, f.key, f.status, f.verdict, f.version, f.revision, f."from", f."to", f.ord, f.against, f.decided, f.patch,
	e.source, e.account, e.mode, e.key, e.type, e.at`

func scanFact(scan func(...any) error, more ...any) (onceward.StoredFact, error) {
	var f onceward.StoredFact
	var order, against []byte
	var told string
	var at int64
	err := scan(append([]any{&f.Seq, &f.EventID, &f.Rule, &f.Fact.Kind, &f.Fact.Key, &f.Status, &f.Verdict, &f.Version, &f.Revision, &f.From, &f.To, &order, &against, &f.Decided, &told,
		&f.Ref.Source, &f.Ref.Scope.Account, &f.Ref.Scope.Mode, &f.EventKey, &f.EventType, &at}, more...)...)
	if err != nil {
		return f, err
	}
	f.Order, f.Against = onceward.Order(order), onceward.Order(against)
	f.Ref.Kind, f.Ref.Key, f.At = f.Fact.Kind, f.Fact.Key, fromMicros(at)
	return f, decodePatch(told, &f.Fact)
}

// History implements [onceward.Reader].
func (s *Store) History(ctx context.Context, ref onceward.Ref) ([]onceward.StoredFact, error) {
	id := ref.ID()
	var facts []onceward.StoredFact
	after := int64(0)
	for {
		looked := 0
		err := s.read(ctx, func(scan func(...any) error) error {
			f, err := scanFact(scan)
			if err != nil {
				return err
			}
			looked++
			after = f.Seq
			facts = append(facts, f)
			return nil
		}, `select `+factColumns+` from onceward_facts f join onceward_events e on e.id = f.event
			where f.entity = ? and f.seq > ? order by f.seq limit ?`, id[:], after, chunk)
		if err != nil || looked < chunk {
			return facts, translate("read a history", err)
		}
	}
}

// EventFacts implements [onceward.Reader].
func (s *Store) EventFacts(ctx context.Context, eventID int64) ([]onceward.StoredFact, error) {
	var facts []onceward.StoredFact
	after := int64(0)
	for {
		looked := 0
		err := s.read(ctx, func(scan func(...any) error) error {
			f, err := scanFact(scan, &after)
			if err != nil {
				return err
			}
			looked++
			facts = append(facts, f)
			return nil
		}, `select `+factColumns+`, f.rowid from onceward_facts f join onceward_events e on e.id = f.event
			where f.event = ? and f.rowid > ? order by f.rowid limit ?`, eventID, after, chunk)
		if err != nil || looked < chunk {
			return facts, translate("read the facts of an event", err)
		}
	}
}
