package inbox

import "context"

// KeepUp does what the background does every half minute.
func (in *Inbox) KeepUp(ctx context.Context) { in.keepUp(ctx) }

// UpkeepEvery is how often that is.
const UpkeepEvery = upkeepEvery

// NewIDMaker and Next are for the test of ids.
var NewIDMaker = newIDMaker

func (m *idMaker) Next() int64 { return m.next() }

// NewAddresses is for the test of addresses.
func NewAddresses(public string, cfg Config) addresses { return addresses{public, cfg.TrustedProxies} }

// Untold is for the test of what is told again.
var Untold = untold

var (
	AddressClient = addresses.client
	AddressURL    = addresses.url
)

// Dropped is how many rejections were dropped and not logged yet.
func (in *Inbox) Dropped() int {
	in.quarantine.mu.Lock()
	defer in.quarantine.mu.Unlock()
	return in.quarantine.dropped
}

// MostRejections bounds what waits for the quarantine.
const MostRejections = mostRejections
