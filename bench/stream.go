package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/onceward/onceward/provider"
)

// stream is what kind of events are sent.
type stream uint8

const (
	// plainStream is about subscriptions, whose status is what the sender tells.
	plainStream stream = iota
	// derivedStream is about payments, whose status is derived from what intents,
	// charges and refunds tell.
	derivedStream
)

const (
	// spread is how many entities events are about, in random order.
	spread = 20_000
	// clockStart is when the first event of each entity was made, in Unix seconds;
	// each further one is a second later. It keeps its ten digits.
	clockStart = "1767225600"
)

// life is what becomes of each entity: its samples, in this order. When they are
// over it begins again, with another entity if that is what an end means.
type life struct {
	samples []string
	names   map[string]blank // the ids in them
	ends    bool
}

func (s stream) life() life {
	if s == derivedStream {
		return life{
			samples: []string{
				"01-payment_intent.created", "02-payment_intent.processing", "03-charge.succeeded",
				"05-charge.refunded-partial", "09-charge.refunded-full",
			},
			names: map[string]blank{"pi_3MadeUpIntent0001": entityID, "ch_3MadeUpCharge0001": chargeID},
			ends:  true,
		}
	}
	return life{
		samples: []string{"10-customer.subscription.updated-past_due", "11-customer.subscription.updated-active-again"},
		names:   map[string]blank{"sub_1MadeUpSub0001": entityID},
	}
}

// sender makes the events of a stream. It is for one goroutine.
type sender struct {
	life      life
	templates []*template
	noise     []byte
	chance    *rand.Rand
	told      []uint32 // how many events of each entity were made
	inOrder   bool     // whether the ids of events rise with time, as some senders' do
	made      uint64
}

// newSender returns a sender of events about so many entities. Senders of one
// seed send the same.
func newSender(s stream, entities int, seed uint64) (*sender, error) {
	chance := rand.New(rand.NewPCG(seed, 4))
	out := &sender{life: s.life(), chance: chance, noise: newNoise(chance), told: make([]uint32, entities)}
	samples := provider.Samples("stripe")
	for _, name := range out.life.samples {
		i := slices.IndexFunc(samples, func(s provider.Sample) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("the catalogue has no sample %s of stripe", name)
		}
		t, err := newTemplate(samples[i], out.life.names)
		if err != nil {
			return nil, err
		}
		out.templates = append(out.templates, t)
	}
	return out, nil
}

// draft is an event that is decided on and not yet written.
type draft struct {
	template *template
	event
}

// next decides on the next event.
func (s *sender) next() draft {
	entity := s.chance.IntN(len(s.told))
	k := int(s.told[entity])
	s.told[entity]++
	s.made++
	generation := 0
	if s.life.ends {
		generation = k / len(s.templates)
	}
	d := draft{template: s.templates[k%len(s.templates)]}
	d.id = id{s.chance.Uint64(), s.chance.Uint64()}
	if s.inOrder {
		d.id.high = s.made
	}
	d.entity = id{scatter(uint64(entity)), uint64(generation)}
	start, _ := strconv.ParseInt(clockStart, 10, 64)
	d.created = start + int64(k)
	return d
}

// scatter spreads numbers out, so that the ids of entities are in no order.
func scatter(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// kinds are the kinds that the streams are about.
func kinds() []string { return []string{"subscription", "payment"} }

// String names the stream.
func (s stream) String() string {
	return strings.TrimSuffix([]string{"plain", "derived"}[s], " ")
}
