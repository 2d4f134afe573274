package onceward

import (
	"context"
	"encoding/json"
	"time"
)

// Store keeps events, rows and jobs. Package sqlite and package postgres
// implement it, and internal/storetest proves each sentence below; the case
// that does is named in brackets.
//
// All methods are safe for concurrent use, by any number of goroutines and, on
// one database, of processes [concurrent, processes]. What a method has written
// is synced to disk when it returns nil [durable]. A method that fails wraps
// ErrUnavailable, ErrUnknownOutcome or another sentinel of this package where
// one fits [errors]. The caller, not the store, decides whether to try again,
// except that serialization failures and deadlocks are retried inside
// [retries].
type Store interface {
	Inbox
	Reader
	Work
	// Close ends the store's own connections, after the work in flight. What the
	// user opened stays open; closing twice is harmless [closing].
	Close() error
}

// Inbox is the writing side of ingest.
type Inbox interface {
	// Commit takes a batch in, all of it or nothing [atomic], and fills in each
	// arrival's results. It claims each event's identity: exactly one arrival of
	// any number, in any processes, is New [claim-once]. It folds the facts of
	// new events in order of arrival, under the rows' locks, and writes each row
	// only if nobody else has written it since it was read; the statement itself
	// says so [guard]. It makes the jobs that the changes and the new events call
	// for [jobs-with-change].
	//
	// On any error the outcomes of the arrivals are Undecided and their results
	// empty [atomic]. On ErrUnknownOutcome the batch may or may not be kept; committing the same
	// arrivals again yields New or Duplicate, and one copy [unknown-commit]. On
	// any other error nothing of it is kept [atomic]. Cancelling ctx may cause
	// either; a deadline that passes before the commit is sent is ErrUnavailable,
	// and ends the folding of a large batch too [cancelled].
	Commit(ctx context.Context, b *Batch) error
	// Register returns the revision of a source's mapping, giving it the next
	// number when its hash is met for the first time, and the newest revision
	// there is. doc is kept for people; it holds no secrets [register].
	Register(ctx context.Context, source, hash string, doc []byte, now time.Time) (revision, newest int64, err error)
	// Node draws a number from 0 to 1023 that no other running process of this
	// database is likely to hold, for making event ids [node].
	Node(ctx context.Context) (int, error)
	// Quarantine keeps rejected deliveries in a ring: beyond the limits the
	// oldest of the source go [quarantine-ring].
	Quarantine(ctx context.Context, rejections []Rejection, limits QuarantineLimits) error
	// Lanes is how many Commits at once the store makes good use of.
	Lanes() int
	// Ping reports whether the store would take a commit now.
	Ping(ctx context.Context) error
}

// Reader is the reading side. Lists are in pages: a query names where to go on
// [paging]. No read holds a transaction for longer than one short statement: a
// page that a filter makes rare, and the facts of an entity or of an event, which
// are returned all, take several, and each sees what had been kept when it began.
type Reader interface {
	// Event returns one stored event, conflicts included, or ErrNotFound
	// [read-event].
	Event(ctx context.Context, id int64) (*StoredEvent, error)
	// Events lists events, newest first [read-events].
	Events(ctx context.Context, q EventQuery) ([]StoredEvent, error)
	// Entity returns one row, or ErrNotFound [read-entity].
	Entity(ctx context.Context, ref Ref) (*Entity, error)
	// Entities lists rows in the order of (source, kind, key, scope)
	// [read-entities].
	Entities(ctx context.Context, q EntityQuery) ([]Entity, error)
	// History returns the facts of an entity in order of arrival [history].
	History(ctx context.Context, ref Ref) ([]StoredFact, error)
	// EventFacts returns the facts of one event [history].
	EventFacts(ctx context.Context, eventID int64) ([]StoredFact, error)
	// HeldEvents lists the ids, above after and ascending, of a source's events
	// with held facts that a revision lower than below left behind [held].
	HeldEvents(ctx context.Context, source string, below, after int64, limit int) ([]int64, error)
	// Rejections lists the quarantine, newest first; source "" means all
	// [quarantine-ring].
	Rejections(ctx context.Context, source string, limit int) ([]Rejection, error)
	// Stats counts what there is [stats].
	Stats(ctx context.Context) (Stats, error)
}

// Work is the durable queue.
type Work interface {
	// Claim leases due jobs of the named handlers: at most limit, none of which
	// another worker holds, until now plus lease [claim-jobs]. now is the caller's
	// clock, so processes on several machines must agree about it: one that is
	// ahead takes leases over early, by as much as it is ahead. Nothing is settled
	// twice then, but a job may be tried twice at once. An expired lease
	// can be claimed anew, with a higher token [lease-expires]. A job whose change
	// cannot be decoded is dead from then on, and stops no other [broken-job].
	Claim(ctx context.Context, handlers []string, limit int, now time.Time, lease time.Duration) ([]Job, error)
	// Settle ends tries. A settlement whose token is not the newest, or whose job
	// is dead, changes nothing and is reported by ErrStaleToken after the others were settled
	// [settle-token].
	Settle(ctx context.Context, settlements []Settlement, now time.Time) error
	// Jobs lists unfinished and dead jobs, for people [claim-jobs].
	Jobs(ctx context.Context, limit int) ([]Job, error)
}

// MaxRepeats is how many further deliveries of one event are kept, so that a
// sender who repeats one for ever does not fill the disk. A batch, or several at
// once, may pass it by as many as they have [repeats].
const MaxRepeats = 1000

// StoredEvent is an event read back.
type StoredEvent struct {
	Event
	// Outcome is New, Conflict, or Duplicate for a repeat whose other bytes were
	// kept because nothing could be read from either.
	Outcome Outcome
	// Of is the id of the first event of the key, if Outcome is not New.
	Of int64
	// Revision is the mapping that read it.
	Revision int64
	// Repeats counts further deliveries that are kept; see MaxRepeats.
	Repeats int64
	// BodySize is the length of the body in bytes; lists leave the body out.
	BodySize int
	// Facts counts the facts, Held those of them that are held.
	Facts, Held int
}

// EventQuery chooses events.
type EventQuery struct {
	Source string // "" for all
	Type   string // "" for all; * is any run of characters
	// Before is the id to go on below, 0 for the newest.
	Before int64
	// Limit is the most to return; 0 means 100.
	Limit int
}

// Entity is a row read back.
type Entity struct {
	Ref
	Status string
	// Told is the status the senders' facts give, beside a derived Status.
	Told    string
	Version int64
	// Revision is the mapping that made the row.
	Revision int64
	Epoch    Opt
	Tie      []string
	// Data is the fields as one JSON object; `local` holds the application's.
	Data             json.RawMessage
	Created, Updated time.Time
	// Facts counts the facts stored about it, of any verdict.
	Facts int64
	// State is the row as it is folded further; see DecodeRow.
	State []byte
}

// EntityQuery chooses rows.
type EntityQuery struct {
	Source, Kind, Key, Status string // "" for all
	// After is the row to go on behind; the zero Ref for the first.
	After Ref
	// Limit is the most to return; 0 means 100.
	Limit int
}

// StoredFact is a fact read back.
type StoredFact struct {
	Fact
	Ref Ref
	// Seq is its number at its entity, from 1: the order of arrival.
	Seq     int64
	EventID int64
	// EventKey and EventType are the event's, At when it was received.
	EventKey, EventType string
	At                  time.Time
	Verdict             Verdict
	// Version is the row's after the fact.
	Version  int64
	Revision int64
	// From and To are the statuses of the row before and after.
	From, To string
	// Order is the fact's, Against the one it was compared with, both of the
	// status if it told one, else of its fields.
	Order, Against Order
	// Decided names the component that decided: epoch, terminal, firm, time,
	// sequence, rank; or tie, was, first, max, same, local.
	Decided string
}

// Rejection is a delivery that was not verified.
type Rejection struct {
	// ID is made by the store, from 1.
	ID       int64
	Source   string
	Reason   string
	Delivery Delivery
}

// QuarantineLimits bound what is kept per source.
type QuarantineLimits struct {
	Count int
	// Bytes bounds body, header, target, method, address and reason together.
	Bytes int64
}

// Stats counts what a store holds.
type Stats struct {
	// Events counts those of outcome New, Repeats further deliveries that are kept.
	Events, Repeats, Conflicts int64
	Entities                   int64
	// Facts maps verdicts to how many facts have it.
	Facts map[Verdict]int64
	// JobsPending counts unfinished jobs, JobsDead those given up.
	JobsPending, JobsDead int64
	Quarantined           int64
}
