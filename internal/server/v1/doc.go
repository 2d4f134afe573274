// Package v1 holds the JSON shapes of version 1 of the admin API, made from what
// a store gives. The command line prints the same shapes under --json, so a
// script may read either.
//
// Identifiers are texts, because they have 63 bits and many readers of JSON keep
// 53. Instants are RFC 3339 in UTC. A member that says nothing is left out.
package v1

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/onceward/onceward"
)

// Scope shows a scope as one text and as its parts.
type Scope struct {
	// Scope is the text form, as acct_1/live; it is what ?scope= takes.
	Scope   string `json:"scope"`
	Account string `json:"account,omitempty"`
	Mode    string `json:"mode,omitempty"`
}

// ScopeOf returns the shape of a scope.
func ScopeOf(s onceward.Scope) Scope {
	return Scope{Scope: s.String(), Account: s.Account, Mode: s.Mode}
}

// Error is the body of every answer that is not 2xx.
type Error struct {
	// Error is a sentence that says what to do.
	Error  string `json:"error"`
	Status int    `json:"status"`
	// Scopes are those that hold the key, where one had to be named.
	Scopes []string `json:"scopes,omitempty"`
}

// Event is a stored event.
type Event struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	Scope
	// Origin is sent or registered.
	Origin   string     `json:"origin"`
	Key      string     `json:"key"`
	Type     string     `json:"type"`
	Time     *time.Time `json:"time,omitempty"`
	Received time.Time  `json:"received"`
	Remote   string     `json:"remote,omitempty"`
	// Outcome is new or conflict, or duplicate for a repeat whose other bytes
	// were kept; Of is then the first event of the key.
	Outcome string `json:"outcome"`
	Of      string `json:"of,omitempty"`
	// Item is the position in a delivery that carried many events.
	Item   int    `json:"item,omitempty"`
	Digest string `json:"digest"`
	// Unsigned says that the sender's signature does not cover the body.
	Unsigned bool `json:"body_unsigned,omitempty"`
	// DigestKey says that the digest had to stand for the key.
	DigestKey bool  `json:"digest_key,omitempty"`
	Mapping   int64 `json:"mapping"`
	// Repeats counts further deliveries.
	Repeats int64 `json:"repeats"`
	// Bytes is the length of the body.
	Bytes int `json:"bytes"`
	Facts int `json:"facts"`
	Held  int `json:"held,omitempty"`
}

// EventOf returns the shape of an event.
func EventOf(e *onceward.StoredEvent) Event {
	out := Event{
		ID: id(e.ID), Source: e.Source, Scope: ScopeOf(e.Scope), Origin: "sent",
		Key: e.Key, Type: e.Type, Time: instant(e.Time), Outcome: e.Outcome.String(),
		Item: e.Item, Digest: e.Digest.String(), Unsigned: e.Unsigned, DigestKey: e.DigestKey,
		Mapping: e.Revision, Repeats: e.Repeats, Bytes: e.BodySize, Facts: e.Facts, Held: e.Held,
	}
	if e.Origin == onceward.Registered {
		out.Origin = "registered"
	}
	if e.Of != 0 {
		out.Of = id(e.Of)
	}
	if e.Delivery != nil {
		out.Received, out.Remote = e.Delivery.At.UTC(), e.Delivery.Remote
	}
	return out
}

// Events is a page of events, newest first.
type Events struct {
	Events []Event `json:"events"`
	// Next is the ?before= of the following page, "" after the last.
	Next string `json:"next,omitempty"`
}

// EventDetail is one event with what it says.
type EventDetail struct {
	Event
	Method string `json:"method,omitempty"`
	// Target is the path and query it came to, secrets masked.
	Target string `json:"target,omitempty"`
	Tells  []Fact `json:"tells"`
}

// Entity is a row.
type Entity struct {
	Source string `json:"source"`
	Scope
	Kind   string `json:"kind"`
	Key    string `json:"key"`
	Status string `json:"status"`
	// Told is the status the senders' facts give, where a derived one differs.
	Told    string `json:"told,omitempty"`
	Version int64  `json:"version"`
	// Epoch is the attempt or period the row is about.
	Epoch *int64 `json:"epoch,omitempty"`
	// Tie names the parts that the senders' clocks left open.
	Tie     []string        `json:"tie,omitempty"`
	Mapping int64           `json:"mapping"`
	Facts   int64           `json:"facts"`
	Data    json.RawMessage `json:"data"`
	Created time.Time       `json:"created"`
	Updated time.Time       `json:"updated"`
}

// EntityOf returns the shape of a row.
func EntityOf(e *onceward.Entity) Entity {
	out := Entity{
		Source: e.Source, Scope: ScopeOf(e.Scope), Kind: e.Kind, Key: e.Key,
		Status: e.Status, Version: e.Version, Epoch: number(e.Epoch), Tie: e.Tie,
		Mapping: e.Revision, Facts: e.Facts, Data: e.Data,
		Created: e.Created.UTC(), Updated: e.Updated.UTC(),
	}
	if e.Told != e.Status {
		out.Told = e.Told
	}
	if len(out.Data) == 0 {
		out.Data = json.RawMessage("{}")
	}
	return out
}

// Entities is a page of rows in the order of source, kind, key and scope.
type Entities struct {
	Entities []Entity `json:"entities"`
	// Next is the ?after= of the following page, "" after the last.
	Next string `json:"next,omitempty"`
}

// Registered is the answer to a PUT of an entity.
type Registered struct {
	// Event is the id of the event that keeps the registration.
	Event string `json:"event"`
	// Outcome is new, or duplicate for an Idempotency-Key seen before.
	Outcome string `json:"outcome"`
	Entity  Entity `json:"entity"`
}

// Rejection is a delivery in quarantine.
type Rejection struct {
	// ID is as q7.
	ID       string    `json:"id"`
	Source   string    `json:"source"`
	Reason   string    `json:"reason"`
	Received time.Time `json:"received"`
	Remote   string    `json:"remote,omitempty"`
	Method   string    `json:"method"`
	Target   string    `json:"target"`
	Bytes    int       `json:"bytes"`
}

// RejectionOf returns the shape of a rejection.
func RejectionOf(r *onceward.Rejection) Rejection {
	return Rejection{
		ID: "q" + id(r.ID), Source: r.Source, Reason: r.Reason, Received: r.Delivery.At.UTC(),
		Remote: r.Delivery.Remote, Method: r.Delivery.Method, Target: r.Delivery.Target, Bytes: len(r.Delivery.Body),
	}
}

// Quarantine lists rejections, newest first.
type Quarantine struct {
	Rejections []Rejection `json:"rejections"`
}

// Stats counts what the store holds.
type Stats struct {
	Events      int64            `json:"events"`
	Repeats     int64            `json:"repeats"`
	Conflicts   int64            `json:"conflicts"`
	Entities    int64            `json:"entities"`
	Facts       map[string]int64 `json:"facts"`
	JobsPending int64            `json:"jobs_pending"`
	JobsDead    int64            `json:"jobs_dead"`
	Quarantined int64            `json:"quarantined"`
}

// StatsOf returns the shape of a store's counts; every verdict is named.
func StatsOf(s *onceward.Stats) Stats {
	out := Stats{
		Events: s.Events, Repeats: s.Repeats, Conflicts: s.Conflicts, Entities: s.Entities,
		Facts: map[string]int64{}, JobsPending: s.JobsPending, JobsDead: s.JobsDead, Quarantined: s.Quarantined,
	}
	for v := onceward.Applied; v <= onceward.Held; v++ {
		out.Facts[v.String()] = s.Facts[v]
	}
	return out
}

func id(n int64) string { return strconv.FormatInt(n, 10) }

func instant(o onceward.Opt) *time.Time {
	if !o.Set {
		return nil
	}
	t := o.Time()
	return &t
}

func number(o onceward.Opt) *int64 {
	if !o.Set {
		return nil
	}
	n := o.N
	return &n
}

// HeaderLines returns the headers of a delivery as HTTP writes them, one
// "Name: value" a line ended by CR LF, sorted by name, values of one name in
// their order.
func HeaderLines(d *onceward.Delivery) []byte {
	var out []byte
	for _, name := range slices.Sorted(maps.Keys(d.Header)) {
		for _, value := range d.Header[name] {
			out = append(append(append(append(out, name...), ": "...), value...), "\r\n"...)
		}
	}
	return out
}
