package demo

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

// plot is what happens to a sale.
type plot uint8

const (
	paid plot = iota
	refunded
	partlyRefunded
	chargedBack
	disputeWon
	refused
	waiting
)

// event is one thing that a sender tells, with what a handler of the usual kind
// would take from it.
type event struct {
	name   string
	source string
	header http.Header
	body   []byte
	// refund says that it takes money back.
	refund bool
}

// sale is one sale of the script with the end that it must have.
type sale struct {
	source, key string
	amount      int64 // in centavos
	plot        plot
	// status is what the row must show, revenue what the sale brings in the end, in
	// centavos.
	status  string
	revenue int64
	// events in the order in which they happened.
	events []event
	// backwards says that money goes back before the payment is heard of.
	backwards bool
}

// delivery is one call of a sender.
type delivery struct {
	*event
	// lost says that the answer does not come back, so that the sender calls again.
	lost bool
}

// dayStart is when the first sale of the script happens.
func dayStart() time.Time { return time.Date(2026, time.January, 15, 9, 0, 0, 0, time.UTC) }

// sources of the day, in the order in which they are named.
func daySources() []string { return []string{"stripe", "kiwify", "hotmart", "pagarme"} }

// plots gives each source its ten sales.
func plots(source string) []plot {
	switch source {
	case "stripe":
		return []plot{paid, paid, paid, paid, refunded, refunded, partlyRefunded, chargedBack, disputeWon, waiting}
	case "kiwify":
		return []plot{paid, paid, paid, paid, paid, refunded, refunded, chargedBack, refused, waiting}
	case "hotmart":
		return []plot{paid, paid, paid, paid, paid, refunded, refunded, chargedBack, refused, waiting}
	default:
		return []plot{paid, paid, paid, paid, refunded, refunded, partlyRefunded, chargedBack, refused, waiting}
	}
}

// script writes the day: the same for the same seed.
func script(rng *rand.Rand) []*sale {
	prices := []int64{1990, 2700, 3790, 4990, 6700, 9700, 12990, 19700, 29700}
	var sales []*sale
	for _, source := range daySources() {
		for i, p := range plots(source) {
			s := &sale{source: source, plot: p, amount: prices[rng.IntN(len(prices))]}
			start := dayStart().Add(time.Duration(rng.IntN(10*60)) * time.Minute)
			back := s.amount / 4
			switch source {
			case "stripe":
				stripeSale(s, i, start, back)
			case "kiwify":
				kiwifySale(s, i, start)
			case "hotmart":
				hotmartSale(s, i, start)
			default:
				pagarmeSale(s, i, start, back)
			}
			s.settle(back)
			sales = append(sales, s)
		}
	}
	return sales
}

// settle says how the sale must end.
func (s *sale) settle(back int64) {
	switch s.plot {
	case paid:
		s.status, s.revenue = "paid", s.amount
	case disputeWon:
		s.status, s.revenue = "paid", s.amount
	case refunded:
		s.status = "refunded"
		s.backwards = true
	case partlyRefunded:
		s.status, s.revenue = "partially_refunded", s.amount-back
		s.backwards = true
	case chargedBack:
		s.status = "charged_back"
	case refused:
		s.status = "failed"
		if s.source == "hotmart" { // a boleto that nobody paid
			s.status = "expired"
		}
	case waiting:
		s.status = "pending"
	}
}

// deliveries says in which order the calls of a sale come: each event two to five
// times, mostly in order, sometimes not, some answers lost and each lost one
// followed by another call.
func (s *sale) deliveries(rng *rand.Rand) []delivery {
	type call struct {
		delivery
		at float64
	}
	var calls []call
	for i := range s.events {
		e := &s.events[i]
		for copy := range 2 + rng.IntN(4) {
			at := float64(i) + 2*rng.Float64() + float64(copy)*rng.Float64()
			if s.backwards && e.refund && copy == 0 {
				at = -1 // the first news of this sale is that it was refunded
			}
			calls = append(calls, call{delivery{event: e, lost: rng.IntN(4) == 0}, at})
		}
	}
	slices.SortStableFunc(calls, func(a, b call) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	list := make([]delivery, len(calls))
	for i, c := range calls {
		list[i] = c.delivery
		again := slices.ContainsFunc(calls[i+1:], func(d call) bool { return d.event == c.event })
		list[i].lost = c.lost && again
	}
	return list
}

func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }

// tell adds an event.
func (s *sale) tell(name string, refund bool, format string, args ...any) {
	s.events = append(s.events, event{
		name: name, source: s.source, header: jsonHeader(), body: fmt.Appendf(nil, format, args...), refund: refund,
	})
}
