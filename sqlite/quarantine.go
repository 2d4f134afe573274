package sqlite

import (
	"context"

	"github.com/onceward/onceward"
)

// Quarantine implements [onceward.Inbox].
func (s *Store) Quarantine(ctx context.Context, rejections []onceward.Rejection, limits onceward.QuarantineLimits) error {
	if len(rejections) == 0 {
		return nil
	}
	return translate("quarantine", s.use(ctx, func(c *session) error {
		return c.transact(ctx, func() error {
			sources := map[string]bool{}
			for i := range rejections {
				if err := c.putRejection(&rejections[i]); err != nil {
					return err
				}
				sources[rejections[i].Source] = true
			}
			for source := range sources {
				if err := c.trimQuarantine(source, limits); err != nil {
					return err
				}
			}
			return nil
		})
	}))
}

func (c *session) putRejection(r *onceward.Rejection) error {
	d := &r.Delivery
	headers := encodeHeader(d.Header)
	size := int64(len(d.Body) + len(headers) + len(d.Target) + len(r.Reason) + len(d.Method) + len(d.Remote)) // all that a sender can make long
	_, err := c.exec(`insert into onceward_quarantine (source, at, reason, bytes, method, target, remote, headers, body) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.Source, micros(d.At), r.Reason, size, d.Method, d.Target, d.Remote, headers, notNil(d.Body))
	if err != nil {
		return err
	}
	_, err = c.exec(`insert into onceward_quarantine_size (source, count, bytes) values (?, 1, ?)
		on conflict (source) do update set count = count + 1, bytes = bytes + excluded.bytes`, r.Source, size)
	return err
}

// trimQuarantine takes the oldest of a source out until the others fit.
func (c *session) trimQuarantine(source string, limits onceward.QuarantineLimits) error {
	var count, bytes int64
	err := c.query(func(row []value) { count, bytes = row[0].(int64), row[1].(int64) },
		`select count, bytes from onceward_quarantine_size where source = ?`, source)
	if err != nil {
		return err
	}
	for count > 0 && (count > int64(limits.Count) || bytes > limits.Bytes) {
		err := c.query(func(row []value) { bytes -= row[0].(int64) },
			`delete from onceward_quarantine where id = (select min(id) from onceward_quarantine where source = ?) returning bytes`, source)
		if err != nil {
			return err
		}
		count--
	}
	return c.must(`update onceward_quarantine_size set count = ?, bytes = ? where source = ?`, count, bytes, source)
}

// Rejections implements [onceward.Reader].
func (s *Store) Rejections(ctx context.Context, source string, limit int) ([]onceward.Rejection, error) {
	var rejections []onceward.Rejection
	query, args := `select id, source, at, reason, method, target, remote, headers, body from onceward_quarantine order by id desc limit ?`, []any{limitOf(limit)}
	if source != "" {
		query, args = `select id, source, at, reason, method, target, remote, headers, body from onceward_quarantine where source = ? order by id desc limit ?`, []any{source, limitOf(limit)}
	}
	err := s.read(ctx, func(scan func(...any) error) error {
		var r onceward.Rejection
		var at int64
		var headers []byte
		if err := scan(&r.ID, &r.Source, &at, &r.Reason, &r.Delivery.Method, &r.Delivery.Target, &r.Delivery.Remote, &headers, &r.Delivery.Body); err != nil {
			return err
		}
		r.Delivery.At, r.Delivery.Header = fromMicros(at), decodeHeader(headers)
		rejections = append(rejections, r)
		return nil
	}, query, args...)
	return rejections, translate("list the quarantine", err)
}
