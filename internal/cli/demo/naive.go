package demo

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// naive are two handlers of the usual kind behind one address, as tutorials have
// them: one books every call, one keeps what the last call said. Neither knows
// duplicates nor order. Both get every delivery.
type naive struct {
	mu sync.Mutex // over all below
	// booked is what the first has added up, in centavos.
	booked int64
	// sales maps a sale to what the second has of it, tasks a song to its status.
	sales map[string]lastCall
	tasks map[string]string
	calls int
}

// lastCall is what the last call about a sale said.
type lastCall struct {
	paid   bool
	amount int64
}

func newNaive() *naive {
	return &naive{sales: map[string]lastCall{}, tasks: map[string]string{}}
}

// ServeHTTP takes a delivery under /SOURCE.
func (n *naive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "cut off", http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls++
	switch r.URL.Path {
	case "/music":
		n.song(body)
	case "/stripe":
		n.stripe(body)
	case "/kiwify":
		n.kiwify(body)
	case "/hotmart":
		n.hotmart(body)
	case "/pagarme":
		n.pagarme(body)
	}
	w.WriteHeader(http.StatusOK)
}

func (n *naive) song(body []byte) {
	var in struct {
		Data struct {
			Task   string `json:"task_id"`
			Status string `json:"callbackType"`
		}
	}
	words := map[string]string{"text": "running", "first": "partial", "complete": "succeeded"}
	if json.Unmarshal(body, &in) == nil {
		n.tasks[in.Data.Task] = words[in.Data.Status]
	}
}

func (n *naive) stripe(body []byte) {
	var in struct {
		Type string
		Data struct {
			Object struct {
				ID       string
				Intent   string `json:"payment_intent"`
				Amount   int64
				Refunded int64 `json:"amount_refunded"`
				Status   string
			}
		}
	}
	if json.Unmarshal(body, &in) != nil {
		return
	}
	o := in.Data.Object
	switch in.Type {
	case "payment_intent.created", "payment_intent.processing":
		n.simple(o.ID, false, false, o.Amount)
	case "payment_intent.succeeded":
		n.simple(o.ID, true, false, o.Amount)
	case "charge.refunded":
		n.partly(o.Intent, o.Amount, o.Refunded)
	case "charge.dispute.closed":
		if o.Status == "lost" {
			n.simple(o.Intent, false, true, o.Amount)
		}
	}
}

func (n *naive) kiwify(body []byte) {
	var in struct {
		Order       string `json:"order_id"`
		Status      string `json:"order_status"`
		Commissions struct {
			Amount int64 `json:"charge_amount"`
		}
	}
	if json.Unmarshal(body, &in) == nil {
		n.simple(in.Order, in.Status == "paid", in.Status == "refunded" || in.Status == "chargedback", in.Commissions.Amount)
	}
}

func (n *naive) hotmart(body []byte) {
	var in struct {
		Event string
		Data  struct {
			Purchase struct {
				Transaction string
				Price       struct{ Value float64 }
			}
		}
	}
	if json.Unmarshal(body, &in) != nil {
		return
	}
	p := in.Data.Purchase
	n.simple(p.Transaction, in.Event == "PURCHASE_APPROVED" || in.Event == "PURCHASE_COMPLETE",
		in.Event == "PURCHASE_REFUNDED" || in.Event == "PURCHASE_CHARGEBACK", int64(p.Price.Value*100+0.5))
}

func (n *naive) pagarme(body []byte) {
	var in struct {
		Type string
		Data struct {
			ID       string
			Amount   int64
			Canceled int64 `json:"canceled_amount"`
		}
	}
	if json.Unmarshal(body, &in) != nil {
		return
	}
	switch in.Type {
	case "charge.pending", "charge.payment_failed":
		n.simple(in.Data.ID, false, false, in.Data.Amount)
	case "charge.paid":
		n.simple(in.Data.ID, true, false, in.Data.Amount)
	case "charge.refunded", "charge.partial_canceled":
		n.partly(in.Data.ID, in.Data.Amount, in.Data.Canceled)
	case "charge.chargedback":
		n.simple(in.Data.ID, false, true, in.Data.Amount)
	}
}

// simple books a call: what was paid is added, what goes back is taken away.
func (n *naive) simple(sale string, paid, back bool, amount int64) {
	switch {
	case paid:
		n.booked += amount
		n.sales[sale] = lastCall{paid: true, amount: amount}
	case back:
		n.booked -= amount
		n.sales[sale] = lastCall{}
	default:
		n.sales[sale] = lastCall{amount: amount}
	}
}

// partly books that a part goes back, or all of it.
func (n *naive) partly(sale string, amount, back int64) {
	n.booked -= back
	n.sales[sale] = lastCall{paid: true, amount: amount - back}
}

// figures returns what the two handlers would report as revenue, in centavos, and
// what the second shows of a song.
func (n *naive) figures(task string) (everyCall, last int64, song string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.sales {
		if s.paid {
			last += s.amount
		}
	}
	return n.booked, last, n.tasks[task]
}
