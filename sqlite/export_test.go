package sqlite

import "context"

// Waits returns how often the store has waited for another process's or
// handle's lock.
func (s *Store) Waits() int64 { return s.waits.Load() }

// Script runs statements on the writing connection.
func (s *Store) Script(text string) error {
	return s.use(context.Background(), func(c *session) error { return c.script(text) })
}

// Setting reads a pragma of the writing connection.
func (s *Store) Setting(name string) (v any, err error) {
	err = s.use(context.Background(), func(c *session) error {
		defer c.forget()
		return c.query(func(row []value) { v = row[0] }, "pragma "+name)
	})
	return v, err
}

// LogPages returns how many pages the write-ahead log holds.
func (s *Store) LogPages() (n int64, err error) {
	err = s.use(context.Background(), func(c *session) error {
		return c.query(func(row []value) { n = row[1].(int64) }, "pragma wal_checkpoint(noop)")
	})
	return n, err
}
