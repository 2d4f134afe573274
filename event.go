package onceward

import (
	"time"
)

// Delivery is one arrival over HTTP, repeats included, or one registration by
// the application. It is immutable once it has been made.
type Delivery struct {
	// At is when it was received, by the inbox's clock.
	At time.Time
	// Method and Target are the request line's: POST and path with query, with
	// secrets that travel in the query masked.
	Method, Target string
	// Remote is the address of the sender, as trusted proxies tell it.
	Remote string
	// Header is as Go canonicalises the names, values of one name in order,
	// secrets masked.
	Header map[string][]string
	// Body is exactly as it came on the wire.
	Body []byte
}

// Origin says who made an event.
type Origin uint8

// The origins of an event. They are part of its identity, so that a sender
// cannot use the key of a registration.
const (
	// Sent came from the provider.
	Sent Origin = iota
	// Registered was written by the application: a job it has just started, or
	// local fields.
	Registered
)

// Event is the deduplicated fact of something having been told: unique per
// source, scope, origin and key, for ever.
type Event struct {
	// ID is a time-ordered positive number, made by the inbox.
	ID     int64
	Source string
	Scope  Scope
	Origin Origin
	// Key is the provider's own id, or what stands for it.
	Key string
	// Type is the sender's word for what happened, "" if there is none.
	Type string
	// Time is the sender's instant in nanoseconds.
	Time Opt
	// Item is the position of the event in a delivery that carried many, else 0.
	Item int
	// Digest is over the bytes of the item, or of the body.
	Digest Digest
	// Unsigned says that the sender's signature does not cover the body.
	Unsigned bool
	// DigestKey says that the key had to be the digest because all parts of the
	// configured key were empty or doubled.
	DigestKey bool
	// Delivery is the arrival that told it first.
	Delivery *Delivery
}

// ClaimID returns the store's name of the event's identity.
func (e *Event) ClaimID() ID {
	origin := "sent"
	if e.Origin == Registered {
		origin = "registered"
	}
	return hashID("event", origin, e.Source, e.Scope.Account, e.Scope.Mode, e.Key)
}

// Outcome says what became of a delivery's event.
type Outcome uint8

// The outcomes. All but Rejected are acknowledged.
const (
	// Undecided is the zero Outcome: nothing is known yet.
	Undecided Outcome = iota
	// New was stored.
	New
	// Duplicate had been stored before; nothing changed.
	Duplicate
	// Conflict has the key of a stored event and other facts; both bodies are
	// kept, this one is applied to nothing.
	Conflict
	// Rejected was not verified.
	Rejected
	// Differs has the key of a stored event and other bytes that no earlier
	// repeat had. The store kept nothing of it: the caller must compare the
	// facts of both and commit it again with a Resolution.
	Differs
)

// String returns the word of the outcome.
func (o Outcome) String() string {
	return [...]string{"undecided", "new", "duplicate", "conflict", "rejected", "differs"}[o]
}

// Verdict says what a fact did to its row.
type Verdict uint8

// The verdicts.
const (
	// Applied changed the row.
	Applied Verdict = iota + 1
	// Stale changed nothing, and some part of it is older than what the row shows.
	Stale
	// Same told nothing new.
	Same
	// Held could not be computed; it waits for a mapping that can.
	Held
)

// String returns the word of the verdict.
func (v Verdict) String() string {
	if v < Applied || v > Held {
		return "undecided"
	}
	return [...]string{"applied", "stale", "same", "held"}[v-Applied]
}

// ParseVerdict reads the word that String writes.
func ParseVerdict(word string) (Verdict, bool) {
	for v := Applied; v <= Held; v++ {
		if v.String() == word {
			return v, true
		}
	}
	return 0, false
}

// FactResult is what became of one fact.
type FactResult struct {
	Ref     Ref
	Verdict Verdict
	// Version and Status are the row's after the fact.
	Version int64
	Status  string
	// Held is the reason if the verdict is Held.
	Held string
}

// Resolution is a caller's answer to the outcome Differs.
type Resolution uint8

// The resolutions.
const (
	// Unresolved is the usual case: the claim decides.
	Unresolved Resolution = iota
	// ResolvedDuplicate says that the other bytes tell the same facts. The digest
	// is noted; the body is kept too if there are no facts.
	ResolvedDuplicate
	// ResolvedConflict says that they tell others. The body is kept.
	ResolvedConflict
)

// Repeat is a further delivery of an event that is already known.
type Repeat struct {
	At     time.Time
	Remote string
}

// Arrival is one event on its way into the store, with what it says. The
// caller fills in the first part; Commit fills in the second and only then
// returns.
type Arrival struct {
	Event *Event
	// Facts are what the event says, extracted before the commit.
	Facts []Fact
	// Mapping is the revision that made the facts.
	Mapping *Mapping
	// Resolution answers an earlier outcome Differs of the same event.
	Resolution Resolution
	// Repeats are deliveries of the same key and bytes that joined this one
	// while it waited.
	Repeats []Repeat
	// Retake, if not 0, is the id of a stored event whose held facts are to be
	// taken up: nothing is claimed or stored, its held facts are replaced by
	// Facts.
	Retake int64

	// Outcome says what became of the event.
	Outcome Outcome
	// StoredID is the id of the stored event: this one if Outcome is New or
	// Conflict, the first one if Duplicate, the one it differs from if Differs.
	StoredID int64
	// Results are in the order of Facts; empty unless Outcome is New.
	Results []FactResult
}

// Batch is what one commit takes in.
type Batch struct {
	// Arrivals are in order of arrival; facts are folded in this order.
	Arrivals []*Arrival
	// Handlers are the names of the handlers and destinations that jobs are made
	// for.
	Handlers []Handler
	// Now is the time of the commit, for created and updated.
	Now time.Time
}
