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
