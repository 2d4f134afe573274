package inbox

import (
	"encoding/binary"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// The form of an event's id: milliseconds since idEpoch, the node's number, and a
// counter for what one node makes in one millisecond. It lasts until 2069, and
// ids sort by the time of receipt.
const (
	nodeBits    = 10
	counterBits = 12
	lastCounter = 1<<counterBits - 1
)

// idEpoch returns the instant of which ids count: 2000-01-01 UTC.
func idEpoch() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// idMaker makes the ids of events. Each is greater than the one before, whatever
// the clock does; when it stands still or one millisecond is full, ids run ahead
// of it.
type idMaker struct {
	now  func() time.Time
	node int64

	mu      sync.Mutex
	millis  int64 // of the last id
	counter int64
}

func newIDMaker(now func() time.Time, node int) *idMaker {
	return &idMaker{now: now, node: int64(node) & (1<<nodeBits - 1)}
}

// next returns a new id, which is positive.
func (m *idMaker) next() int64 {
	millis := m.now().Sub(idEpoch()).Milliseconds()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case millis > m.millis:
		m.millis, m.counter = millis, 0
	case m.counter == lastCounter:
		m.millis, m.counter = m.millis+1, 0
	default:
		m.counter++
	}
	return m.millis<<(nodeBits+counterBits) | m.node<<counterBits | m.counter
}

// chance is the inbox's randomness, all of it drawn from one reader. It is safe
// for concurrent use.
type chance struct {
	mu   sync.Mutex
	from io.Reader
	rng  *rand.Rand
}

// newChance reads a seed; keys are read from the reader itself.
func newChance(from io.Reader) (*chance, error) {
	var seed [16]byte
	if _, err := io.ReadFull(from, seed[:]); err != nil {
		return nil, err
	}
	return &chance{from: from, rng: rand.New(rand.NewPCG(
		binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:])))}, nil
}

// upTo returns a duration above 0, and at most limit.
func (c *chance) upTo(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.rng.Int64N(int64(limit))) + 1
}

// key returns a text of 128 bits that nobody can guess.
func (c *chance) key() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b [16]byte
	if _, err := io.ReadFull(c.from, b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}
