package onceward

import (
	"fmt"
	"slices"
)

// Component is a part of an order.
type Component uint8

// The components that a kind's order may name.
const (
	// Sequence is the sender's version number.
	Sequence Component = iota + 1
	// Time is the sender's instant.
	Time
	// Rank is the position of the status in the kind's states.
	Rank
)

// String returns the word that provider files use.
func (c Component) String() string {
	switch c {
	case Sequence:
		return "sequence"
	case Time:
		return "time"
	case Rank:
		return "rank"
	}
	return fmt.Sprintf("Component(%d)", uint8(c))
}

// Mode says what another fact does to a field.
type Mode uint8

// The modes of a field.
const (
	// Latest replaces: the value of the greatest order stands.
	Latest Mode = iota
	// Max keeps the greatest value, whatever the orders.
	Max
	// Sum adds up the latest amount of each `by`.
	Sum
	// Map is an object: the latest value of each `by`.
	Map
)

// String returns the word that provider files use.
func (m Mode) String() string {
	switch m {
	case Latest:
		return "latest"
	case Max:
		return "max"
	case Sum:
		return "sum"
	case Map:
		return "map"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// Keyed reports whether a field of this mode is told with a `by`.
func (m Mode) Keyed() bool { return m == Sum || m == Map }

// Kind says how facts about one kind of entity are compared and folded. Make it
// with [NewKind] and do not change it afterwards; it is then safe for
// concurrent use.
type Kind struct {
	// Name is the word for the kind: payment, job, subscription.
	Name string
	// States are the statuses, lowest rank first; those in one group share a
	// rank because they may follow each other both ways.
	States [][]string
	// Terminal are the states that the sender never moves on from.
	Terminal []string
	// Order are the components, compared left to right.
	Order []Component
	// Fields maps the name of each field to its mode. A field that is not in it
	// is Latest.
	Fields map[string]Mode
	// Derive, if not nil, gives a row its derived fields and status. It must be
	// a pure function of its argument and safe for concurrent use.
	Derive func(Folded) Derived

	ranks    map[string]int
	terminal map[string]bool
}

// Folded is what a derivation may see: the status and the fields that the facts
// of one row give.
type Folded struct {
	Status string
	Field  func(name string) Value // the zero Value if no fact told it
	// Tied says that some part of the row is a tie, so that Derived.From is wanted.
	Tied bool
}

// Derived is what a derivation gives. A Status of "" keeps the folded one. Why
// says in words which condition held, for people. A field that is no JSON is left
// out, and the row's Why says so.
type Derived struct {
	Status string
	Why    string
	Fields []NamedValue
	// From maps each derived field, and StatusPart, to the fields that were read to
	// derive it (StatusPart for the folded status): where one of them is a tie, so
	// is what came of it.
	From map[string][]string
}

// NamedValue is a field and its value.
type NamedValue struct {
	Name  string
	Value Value
}

// NewKind checks k and prepares it for use. It refuses a state that stands
// twice, a terminal that is no state, and an order that is empty or names a
// component twice.
func NewKind(k Kind) (*Kind, error) {
	k.ranks = make(map[string]int)
	for rank, group := range k.States {
		for _, state := range group {
			if _, twice := k.ranks[state]; twice || state == "" {
				return nil, fmt.Errorf("kind %s: state %q stands twice or is empty", k.Name, state)
			}
			k.ranks[state] = rank
		}
	}
	k.terminal = make(map[string]bool)
	for _, state := range k.Terminal {
		if _, known := k.ranks[state]; !known {
			return nil, fmt.Errorf("kind %s: terminal %q is not one of its states", k.Name, state)
		}
		k.terminal[state] = true
	}
	if len(k.Order) == 0 {
		return nil, fmt.Errorf("kind %s: its order names no component; write [time, rank] or [rank]", k.Name)
	}
	for i, c := range k.Order {
		if slices.Contains(k.Order[:i], c) || c < Sequence || c > Rank {
			return nil, fmt.Errorf("kind %s: order names %v twice or is not a component", k.Name, c)
		}
	}
	return &k, nil
}

// Rank returns the position of a state, and whether it is one.
func (k *Kind) Rank(state string) (int, bool) {
	r, ok := k.ranks[state]
	return r, ok
}

// IsTerminal reports whether the sender never moves on from state.
func (k *Kind) IsTerminal(state string) bool { return k.terminal[state] }

// Lowest returns the first state of the lowest rank, "" if there are none: the
// status that a registration gives.
func (k *Kind) Lowest() string {
	if len(k.States) == 0 || len(k.States[0]) == 0 {
		return ""
	}
	return k.States[0][0]
}

// Mapping is one revision of how a source's events become facts: the kinds its
// rules name. The store numbers a mapping when it first meets its hash.
type Mapping struct {
	// Source is the source it belongs to.
	Source string
	// Hash tells two mappings apart.
	Hash string
	// Revision is the number that the store gave it, from 1.
	Revision int64
	// Kinds maps names to kinds.
	Kinds map[string]*Kind
}
