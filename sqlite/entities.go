package sqlite

import (
	"context"
	"encoding/json"

	"github.com/onceward/onceward"
)

const entityColumns = `source, account, mode, kind, key, status, told, version, revision, data, state, created, updated,
	(select count(*) from onceward_facts f where f.entity = onceward_rows.id)`

func scanEntity(scan func(...any) error) (*onceward.Entity, error) {
	var e onceward.Entity
	var data string
	var created, updated int64
	err := scan(&e.Source, &e.Scope.Account, &e.Scope.Mode, &e.Kind, &e.Key, &e.Status, &e.Told, &e.Version, &e.Revision, &data, &e.State,
		&created, &updated, &e.Facts)
	if err != nil {
		return nil, err
	}
	e.Data, e.Created, e.Updated = json.RawMessage(data), fromMicros(created), fromMicros(updated)
	row, err := onceward.DecodeRow(e.Status, e.Told, e.Version, e.Revision, e.Data, e.State)
	if err != nil {
		return nil, err
	}
	e.Epoch, e.Tie = row.Epoch, row.Tie()
	return &e, nil
}

// Entity implements [onceward.Reader].
func (s *Store) Entity(ctx context.Context, ref onceward.Ref) (*onceward.Entity, error) {
	var found *onceward.Entity
	id := ref.ID()
	err := s.read(ctx, func(scan func(...any) error) (err error) {
		found, err = scanEntity(scan)
		return err
	}, `select `+entityColumns+` from onceward_rows where id = ? and version > 0`, id[:])
	if err == nil && found == nil {
		err = onceward.ErrNotFound
	}
	return found, translate("read an entity", err)
}

// Entities implements [onceward.Reader].
func (s *Store) Entities(ctx context.Context, q onceward.EntityQuery) ([]onceward.Entity, error) {
	ids, err := s.rowIDs(ctx, q)
	if err != nil {
		return nil, translate("list entities", err)
	}
	var entities []onceward.Entity
	for len(ids) > 0 && err == nil {
		n := min(len(ids), chunk)
		err = s.read(ctx, func(scan func(...any) error) error {
			e, err := scanEntity(scan)
			if err == nil {
				entities = append(entities, *e)
			}
			return err
		}, `select `+entityColumns+` from onceward_rows where rowid in (select value from json_each(?1)) and (?2 = '' or status = ?2)
			order by source, kind, key, account, mode`, list(ids[:n]), q.Status)
		ids = ids[n:]
	}
	return entities, translate("list entities", err)
}

// rowIDs finds a page's rows. Sources and kinds are few, so it steps from one
// pair of them to the next and looks into each that is wanted, with the index
// whatever the query leaves out.
func (s *Store) rowIDs(ctx context.Context, q onceward.EntityQuery) ([]int64, error) {
	var ids []int64
	limit := limitOf(q.Limit)
	at := q.After
	if at.Source < q.Source {
		at = onceward.Ref{Source: q.Source}
	}
	for {
		var err error
		if at.Kind != "" && (q.Source == "" || q.Source == at.Source) && (q.Kind == "" || q.Kind == at.Kind) {
			if ids, err = s.rowIDsBehind(ctx, q, at, ids, limit); err != nil || len(ids) == limit {
				return ids, err
			}
		}
		next := onceward.Ref{}
		err = s.read(ctx, func(scan func(...any) error) error { return scan(&next.Source, &next.Kind) },
			`select source, kind from onceward_rows where (source, kind) > (?, ?) order by source, kind limit 1`, at.Source, at.Kind)
		if err != nil || next.Kind == "" || q.Source != "" && next.Source != q.Source {
			return ids, err
		}
		at = next
	}
}

// rowIDsBehind adds those of one source and kind that come behind at.
func (s *Store) rowIDsBehind(ctx context.Context, q onceward.EntityQuery, at onceward.Ref, ids []int64, limit int) ([]int64, error) {
	step := limit
	if q.Status != "" {
		step = chunk
	}
	query, args := `select rowid, key, account, mode, status, version from onceward_rows
		where source = ? and kind = ? and (key, account, mode) > (?, ?, ?) order by key, account, mode limit ?`, []any{}
	if q.Key != "" {
		query, args = `select rowid, key, account, mode, status, version from onceward_rows
			where source = ? and kind = ? and key = ? and (key, account, mode) > (?, ?, ?) order by account, mode limit ?`, []any{q.Key}
	}
	for {
		looked := 0
		err := s.read(ctx, func(scan func(...any) error) error {
			var id, version int64
			var status string
			if err := scan(&id, &at.Key, &at.Scope.Account, &at.Scope.Mode, &status, &version); err != nil {
				return err
			}
			looked++
			if len(ids) < limit && version > 0 && (q.Status == "" || q.Status == status) {
				ids = append(ids, id)
			}
			return nil
		}, query, append(append([]any{at.Source, at.Kind}, args...), at.Key, at.Scope.Account, at.Scope.Mode, step)...)
		if err != nil || looked < step || len(ids) == limit {
			return ids, err
		}
	}
}
