package inbox

import (
	"context"
	"fmt"
	"strings"

	"github.com/onceward/onceward"
)

// Entity returns one row, or an error that wraps [onceward.ErrNotFound]. The ref
// names its scope; see Find where that is not known.
func (in *Inbox) Entity(ctx context.Context, ref onceward.Ref) (*onceward.Entity, error) {
	e, err := in.store.Entity(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("read a row of %s %s: %w", ref.Source, ref.Kind, err)
	}
	return e, nil
}

// AmbiguousError says that a key names several rows. It wraps
// [onceward.ErrAmbiguous].
type AmbiguousError struct {
	// Refs are the first of the rows.
	Refs []onceward.Ref
}

// Error lists the rows.
func (e *AmbiguousError) Error() string {
	names := make([]string, len(e.Refs))
	for i, r := range e.Refs {
		names[i] = r.String()
	}
	return fmt.Sprintf("%v: %s", onceward.ErrAmbiguous, strings.Join(names, "; "))
}

// Unwrap returns [onceward.ErrAmbiguous].
func (e *AmbiguousError) Unwrap() error { return onceward.ErrAmbiguous }

// Find returns the one row of a kind and key, whatever its scope and, if source is
// "", its source. None is [onceward.ErrNotFound], several are an *AmbiguousError.
func (in *Inbox) Find(ctx context.Context, source, kind, key string) (*onceward.Entity, error) {
	const most = 10
	rows, err := in.store.Entities(ctx, onceward.EntityQuery{Source: source, Kind: kind, Key: key, Limit: most})
	switch {
	case err != nil:
		return nil, fmt.Errorf("find a row of kind %s: %w", kind, err)
	case len(rows) == 0:
		return nil, fmt.Errorf("find %s %s: %w", kind, key, onceward.ErrNotFound)
	case len(rows) == 1:
		return in.Entity(ctx, rows[0].Ref)
	}
	several := &AmbiguousError{}
	for _, row := range rows {
		several.Refs = append(several.Refs, row.Ref)
	}
	return nil, several
}

// Entities lists rows in pages; see [onceward.EntityQuery].
func (in *Inbox) Entities(ctx context.Context, q onceward.EntityQuery) ([]onceward.Entity, error) {
	return in.store.Entities(ctx, q)
}

// History returns the facts told about an entity in order of arrival, each with
// its verdict and what decided: why the row shows what it shows.
func (in *Inbox) History(ctx context.Context, ref onceward.Ref) ([]onceward.StoredFact, error) {
	facts, err := in.store.History(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("read the history of a row of %s %s: %w", ref.Source, ref.Kind, err)
	}
	return facts, nil
}

// Why says in words which condition derived the row's status, "" if none did or
// if the source or its kind is not configured here.
func (in *Inbox) Why(e *onceward.Entity) (string, error) {
	kind := in.Kind(e.Ref.Source, e.Ref.Kind)
	if kind == nil {
		return "", nil
	}
	row, err := onceward.DecodeRow(e.Status, e.Told, e.Version, e.Revision, e.Data, e.State)
	if err != nil {
		return "", fmt.Errorf("explain a row of %s %s: %w", e.Source, e.Kind, err)
	}
	row.Explain(kind)
	return row.Why, nil
}

// Event returns one stored event with its body, or an error that wraps
// [onceward.ErrNotFound].
func (in *Inbox) Event(ctx context.Context, id int64) (*onceward.StoredEvent, error) {
	e, err := in.store.Event(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read event %d: %w", id, err)
	}
	return e, nil
}

// Events lists events, newest first, in pages; see [onceward.EventQuery].
func (in *Inbox) Events(ctx context.Context, q onceward.EventQuery) ([]onceward.StoredEvent, error) {
	return in.store.Events(ctx, q)
}

// EventFacts returns what an event told.
func (in *Inbox) EventFacts(ctx context.Context, id int64) ([]onceward.StoredFact, error) {
	return in.store.EventFacts(ctx, id)
}
