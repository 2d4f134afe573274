package postgres

import (
	"fmt"
	"time"
)

// DefaultPrefix is what the names of the tables begin with unless told.
const DefaultPrefix = "onceward_"

// Config says how a store behaves. The zero Config is a good one.
type Config struct {
	// Schema is where the tables are; it is created if it is missing. Default: the
	// connection's current schema.
	Schema string
	// Prefix is what the names of the tables, and of the view, begin with: a-z,
	// 0-9 and _. Default: "onceward_".
	Prefix string
	// Lanes is how many Commits at once the inbox should have under way. More than
	// the default make smaller batches, not more events. Default: 2.
	Lanes int
	// StatementTimeout is how long one statement of a commit may take. Default: 5 s.
	StatementTimeout time.Duration
	// LockTimeout is how long a commit waits for another one that has claimed the
	// same event or locked the same row. Default: 3 s.
	LockTimeout time.Duration
	// IdleInTransaction is how long a commit may hold its locks between its two
	// round trips before the server ends it, as when the machine freezes. Keep it
	// under LockTimeout. Default: 2 s.
	IdleInTransaction time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.Lanes == 0 {
		c.Lanes = 2
	}
	if c.Lanes < 0 {
		return c, fmt.Errorf("Lanes is %d; use 1 to 4, or 0 for the default", c.Lanes)
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		or    time.Duration
	}{
		{"StatementTimeout", &c.StatementTimeout, 5 * time.Second},
		{"LockTimeout", &c.LockTimeout, 3 * time.Second},
		{"IdleInTransaction", &c.IdleInTransaction, 2 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.or
		}
		if *d.value < time.Millisecond {
			return c, fmt.Errorf("%s is %v; use a millisecond or more, or 0 for the default", d.name, *d.value)
		}
	}
	return c, nil
}

// budget is how long one try of a transaction may take in all before the client
// gives up on a server that does not answer.
func (c Config) budget() time.Duration {
	return c.StatementTimeout + c.LockTimeout + c.IdleInTransaction
}
