package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
)

// effect is an outward effect that a case counts: the patterns of the handlers
// that have it, as an application would register them, and when one run of such a
// handler has the effect. Without do, every run has it.
type effect struct {
	patterns []string
	do       func(ctx context.Context, a *run, c onceward.Change) (bool, error)
}

// run is one run of a handler. What it remembers counts if the run succeeds.
type run struct {
	*application
	before map[string]string // what it has changed in the memory
}

// effects are those of the cases, by name. An effect that is not here is read from
// its name by named, or is not supported.
func effects() map[string]effect {
	paid := effect{patterns: []string{"payment.paid"}}
	return map[string]effect{
		"order_completed":  paid,
		"order_note":       paid,
		"credited":         paid,
		"receipt_email":    paid,
		"order_paid_mail":  paid,
		"order_mail":       {patterns: []string{"order.paid", "payment.paid"}},
		"credits_granted":  {patterns: []string{"invoice.paid"}},
		"access_extended":  {patterns: []string{"invoice.paid"}},
		"welcome_email":    {patterns: []string{"subscription.active"}},
		"credit_allocated": {patterns: []string{"job.succeeded"}},
		"success_notice":   {patterns: []string{"job.succeeded"}},
		"failure_notice":   {patterns: []string{"job.failed"}},
		"usage_counted":    {patterns: []string{"usage.counted"}},
		"rejected_email":   {patterns: []string{"seller.required", "seller.rejected"}},
		"access_kept":      {patterns: []string{"entitlement.active"}},
		"access_revoked":   {patterns: []string{"entitlement.expired", "subscription.canceled", "subscription.expired"}},
		"dispute_lost_mail": {patterns: []string{
			"dispute.lost",
		}},
		"dispute_won_mail":     {patterns: []string{"dispute.won"}},
		"plan_ended_mail":      {patterns: []string{"account.inactive"}},
		"credits_zeroed":       {patterns: []string{"account.inactive"}},
		"payment_failed_email": {patterns: []string{"payment.failed"}},
		"payment_failed_mail":  {patterns: []string{"payment.failed", "checkout.failed"}},
		"order_cancelled":      {patterns: []string{"payment.failed", "payment.canceled", "payment.refunded", "payment.charged_back"}},
		"delivered_counted":    {patterns: []string{"message.delivered"}},
		"suspended":            {patterns: []string{"subscription.unpaid"}},

		"order_created":    {[]string{"order.paid"}, func(_ context.Context, _ *run, c onceward.Change) (bool, error) { return !hasLocal(c), nil }},
		"payment_attached": {[]string{"order.paid"}, func(_ context.Context, _ *run, c onceward.Change) (bool, error) { return hasLocal(c), nil }},

		"access_granted":     {[]string{"subscription.active", "checkout.paid"}, accessGranted},
		"reactivated":        {[]string{"subscription"}, moved([]string{"unpaid", "past_due", "paused"}, "active")},
		"status_change_mail": {[]string{"payment"}, moved(nil, "")},
		"fulfilment_started": {[]string{"payment.paid"}, moved(nil, "paid")}, // a payment that was lost to a dispute is shown so, though its sender tells paid
		"access_restored":    {[]string{"payment"}, moved([]string{"disputed", "charged_back", "refunded", "partially_refunded"}, "paid")},
		"clawback":           {[]string{"dispute.needs_response", "dispute.under_review", "dispute.lost"}, clawback},
		"clawback_reversed":  {[]string{"dispute.won"}, moved([]string{"needs_response", "under_review", "lost"}, "won")},
		"stock_change":       {[]string{"order"}, stockChange},
		"refund_mail":        {[]string{"payment"}, refundMail},
		"will_end_email":     {[]string{"subscription"}, willEnd(true)},
		"resumed_email":      {[]string{"subscription"}, willEnd(false)},
		"unattached_alert":   {[]string{"payment.paid"}, func(_ context.Context, _ *run, c onceward.Change) (bool, error) { return !attached(c.Value), nil }},
		"revoke_or_review":   {[]string{"payment.failed"}, revokeOrReview},

		"handled":      {[]string{"event:*"}, handled},
		"handled_live": {[]string{"event:*"}, func(_ context.Context, _ *run, c onceward.Change) (bool, error) { return c.Scope.Mode == "live", nil }},
	}
}

// checks are effects that hang on no change: somebody looks at the rows now and
// then. Each counts the rows that call for it.
func checks() map[string]func(rows []shownRow) int {
	return map[string]func([]shownRow) int{
		// Jobs that never ended.
		"stuck_alert": func(rows []shownRow) (n int) {
			for _, r := range rows {
				if r.Kind == "job" && r.kind != nil && !r.kind.IsTerminal(r.Status) {
					n++
				}
			}
			return n
		},
	}
}

// outward are the last words of an effect's name that say how it is felt.
var outward = []string{"mail", "email", "notice", "alert", "effect", "notification"}

// named reads an effect from its name, as invoice_paid_mail: it hangs on
// invoice.paid, if some source of the play has such a kind and status. A status alone
// is one of the kind that the case is about.
func named(name string, kinds map[string]*onceward.Kind, about string) (effect, bool) {
	stem := name
	for _, word := range outward {
		stem = strings.TrimSuffix(stem, "_"+word)
	}
	if stem == name {
		return effect{}, false // it does not say that it is felt at all
	}
	if k, word := kinds[about], ourWord(stem); k != nil && hasStatus(k, word) {
		return effect{patterns: []string{about + "." + word}}, true
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		status, ok := strings.CutPrefix(stem, kind+"_")
		if word := ourWord(status); ok && hasStatus(kinds[kind], word) {
			return effect{patterns: []string{kind + "." + word}}, true
		}
	}
	return effect{}, false
}

func hasStatus(k *onceward.Kind, status string) bool {
	_, ok := k.Rank(status)
	return ok
}

func hasLocal(c onceward.Change) bool { return !c.Value(onceward.LocalField).IsZero() }

// moved is had where a status changes, from one of some (any if nil) to one ("" for
// any).
func moved(from []string, to string) func(context.Context, *run, onceward.Change) (bool, error) {
	return func(_ context.Context, _ *run, c onceward.Change) (bool, error) {
		return c.From != c.To && (from == nil || slices.Contains(from, c.From)) && (to == "" || c.To == to), nil
	}
}

// accessGranted is had by a subscription, and by a checkout that is none.
func accessGranted(ctx context.Context, a *run, c onceward.Change) (bool, error) {
	if c.Kind != "checkout" {
		return true, nil
	}
	body, err := a.body(ctx, c)
	return body == nil || member(body, "data", "object", "subscription") == nil, err
}

// clawback takes a dispute's money once, whichever of its states comes first.
func clawback(_ context.Context, a *run, c onceward.Change) (bool, error) {
	return c.To != "won" && a.remember("clawback "+c.Ref().String(), "taken") == "", nil
}

// stockChange is had where an order ends without a sale.
func stockChange(_ context.Context, _ *run, c onceward.Change) (bool, error) {
	ended := []string{"canceled", "refunded", "failed"}
	return slices.Contains(ended, c.To) && !slices.Contains(ended, c.From), nil
}

// refundMail is had whenever more is refunded than the buyer has been told.
func refundMail(_ context.Context, a *run, c onceward.Change) (bool, error) {
	key, now := "refunded "+c.Ref().String(), c.Int("refunded")
	return a.atLeast(key, now), nil
}

// willEnd is had when the flag beside the status is set, or cleared again.
func willEnd(ends bool) func(context.Context, *run, onceward.Change) (bool, error) {
	return func(_ context.Context, a *run, c onceward.Change) (bool, error) {
		now, ok := c.Value("cancel_at_period_end").Bool()
		if !ok {
			return false, nil
		}
		before := a.remember(fmt.Sprintf("ends %v %s", ends, c.Ref()), fmt.Sprint(now))
		return now == ends && before != fmt.Sprint(now) && (ends || before != ""), nil
	}
}

// attached reports whether money belongs to something: a customer, an order.
func attached(field func(string) onceward.Value) bool {
	return slices.ContainsFunc([]string{"order", "customer", "invoice", "subscription"}, func(name string) bool {
		v := field(name)
		return !v.IsZero() && !v.IsNull()
	})
}

// review marks payments that a person should look at: money that came after the
// payment was given up, and money that was lost after the order was fulfilled. It is
// no effect that a case counts.
var review = effect{[]string{"payment"}, func(ctx context.Context, a *run, c onceward.Change) (bool, error) {
	if late, _ := moved([]string{"canceled", "expired"}, "paid")(ctx, a, c); late {
		return true, a.markForReview(ctx, c)
	}
	if c.To != "failed" || c.From == "failed" {
		return false, nil
	}
	return revokeOrReview(ctx, a, c)
}}

func (a *application) markForReview(ctx context.Context, c onceward.Change) error {
	_, err := a.inbox.Put(ctx, inbox.Registration{Ref: c.Ref(), Scoped: true, Local: map[string]any{"needs_review": true}})
	return err
}

// revokeOrReview marks a payment that failed after its order was fulfilled.
func revokeOrReview(ctx context.Context, a *run, c onceward.Change) (bool, error) {
	order := c.Ref()
	order.Kind, order.Key = "order", c.String("order")
	row, err := a.inbox.Entity(ctx, order)
	if errors.Is(err, onceward.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if localOf(row.Data)["fulfilment"] != "completed" {
		return false, nil
	}
	err = a.markForReview(ctx, c)
	return err == nil, err
}

// handled is had by an event that an application can read. One that says boom is
// refused, as the cases want it.
func handled(ctx context.Context, a *run, c onceward.Change) (bool, error) {
	facts, err := a.inbox.EventFacts(ctx, c.Event.ID)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(facts, func(f onceward.StoredFact) bool { return f.Verdict == onceward.Held }) {
		return false, nil // it is listed for a person
	}
	body, err := a.body(ctx, c)
	if err != nil {
		return false, err
	}
	if member(body, "boom") == true {
		return false, errors.New("boom")
	}
	return true, nil
}

func member(v any, names ...string) any {
	for _, name := range names {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

func localOf(data json.RawMessage) map[string]any {
	var row struct {
		Local map[string]any `json:"local"`
	}
	if json.Unmarshal(data, &row) != nil {
		return nil
	}
	return row.Local
}

// application is what hangs behind the inbox: it has the effects that a case
// counts, and a memory of its own, as the tables of an application.
type application struct {
	inbox    *inbox.Inbox
	handlers map[string]effect
	clock    *clock
	delay    time.Duration // of each handler
	effect   time.Duration // of each effect
	// had is told of each effect, before the handler returns.
	had func(name string, c onceward.Change, at time.Time) error

	mu         sync.Mutex // over all below
	memory     map[string]string
	runs       int            // of all handlers
	failRuns   int            // so many runs fail at first
	failEffect map[string]int // so many runs of an effect fail at first
	failEach   int
	effectRuns map[string]int
	active     int // runs that neither sleep nor have ended
}

func newApplication(c *clock, s *setup) (*application, error) {
	a := &application{
		clock: c, delay: time.Duration(s.HandlerDelay) * time.Millisecond, effect: time.Duration(s.EffectDelayMS) * time.Millisecond,
		memory: map[string]string{}, failRuns: s.FailHandler, failEffect: map[string]int{}, effectRuns: map[string]int{},
	}
	if len(s.FailEffect) == 0 {
		return a, nil
	}
	var name string
	switch {
	case json.Unmarshal(s.FailEffect, &a.failEach) == nil:
	case json.Unmarshal(s.FailEffect, &a.failEffect) == nil:
	case json.Unmarshal(s.FailEffect, &name) == nil:
		a.failEffect = map[string]int{name: 1}
	default:
		return nil, unsupported("setup.fail_effect in this form")
	}
	return a, nil
}

// register registers the handlers of the effects by name. suffix makes them the
// play's own where others work on the same store.
func (a *application) register(in *inbox.Inbox, wanted map[string]effect, suffix string) {
	a.inbox, a.handlers = in, wanted
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		e := wanted[name]
		for _, pattern := range e.patterns {
			in.Handle(pattern+"#"+name+suffix, func(ctx context.Context, c onceward.Change) error { return a.run(ctx, name, e, c) })
		}
	}
}

// run runs a handler.
func (a *application) run(ctx context.Context, name string, e effect, c onceward.Change) (err error) {
	fails := a.begin()
	r := &run{a, map[string]string{}}
	defer func() { a.end(r, err) }()
	a.sleep(ctx, a.delay)
	if fails {
		return errors.New("the handler fails, as the case wants")
	}
	yes := true
	if e.do != nil {
		if yes, err = e.do(ctx, r, c); err != nil {
			return err
		}
	}
	if !yes {
		return nil
	}
	if a.effectFails(name) {
		return errors.New("the effect fails, as the case wants")
	}
	a.sleep(ctx, a.effect)
	return a.had(name, c, a.clock.Now())
}

// begin notes a run and says whether it is one of those that fail.
func (a *application) begin() (fails bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active++
	a.runs++
	return a.runs <= a.failRuns
}

// end takes back what a run that failed has written.
func (a *application) end(r *run, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active--
	if err != nil {
		maps.Copy(a.memory, r.before)
	}
}

func (a *application) sleep(ctx context.Context, d time.Duration) {
	a.mu.Lock()
	a.active--
	a.mu.Unlock()
	a.clock.sleep(ctx, d)
	a.mu.Lock()
	a.active++
	a.mu.Unlock()
}

func (a *application) effectFails(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.effectRuns[name]++
	return a.effectRuns[name] <= max(a.failEach, a.failEffect[name])
}

// busy is how many runs are at work.
func (a *application) busy() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.active
}

// remember sets a value of the memory and returns the one before.
func (r *run) remember(key, value string) (before string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, r.memory[key] = r.memory[key], value
	r.before[key] = before
	return before
}

// atLeast raises a number of the memory and reports whether it rose.
func (r *run) atLeast(key string, n int64) bool {
	before, err := strconv.ParseInt(r.remember(key, strconv.FormatInt(n, 10)), 10, 64)
	if err == nil && before > n {
		r.remember(key, strconv.FormatInt(before, 10))
	}
	return n > before
}

// body reads the body of the event that a change comes from, nil if it is no JSON
// object.
func (a *application) body(ctx context.Context, c onceward.Change) (any, error) {
	event, err := a.inbox.Event(ctx, c.Event.ID)
	if err != nil {
		return nil, err
	}
	if !json.Valid(event.Delivery.Body) {
		return nil, nil
	}
	var body any
	if err := json.Unmarshal(event.Delivery.Body, &body); err != nil {
		return nil, err
	}
	if list, ok := body.([]any); ok && event.Item < len(list) {
		body = list[event.Item]
	}
	return body, nil
}
