package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/cli/screen"
)

// view is what is in the store after a play: the rows and events of its sources.
type view struct {
	reader  onceward.Reader
	sources []string
	rows    []shownRow
	events  []onceward.StoredEvent
	jobs    []onceward.Job
}

// shownRow is a row with its fields taken apart.
type shownRow struct {
	onceward.Entity
	kind   *onceward.Kind
	fields map[string]any // numbers keep their digits
}

const page = 1000

// look reads everything that the sources of a play have. suffix is that of its
// handlers.
func look(ctx context.Context, reader onceward.Reader, jobs onceward.Work, sources map[string]map[string]*onceward.Kind, suffix string) (*view, error) {
	v := &view{reader: reader}
	for source, kinds := range sources {
		v.sources = append(v.sources, source)
		if err := v.readRows(ctx, source, kinds); err != nil {
			return nil, err
		}
		if err := v.readEvents(ctx, source); err != nil {
			return nil, err
		}
	}
	if jobs == nil {
		return v, nil
	}
	all, err := jobs.Jobs(ctx, 10*page)
	if err != nil {
		return nil, err
	}
	v.jobs = slices.DeleteFunc(all, func(j onceward.Job) bool { return !strings.HasSuffix(j.Handler, suffix) })
	return v, nil
}

func (v *view) readRows(ctx context.Context, source string, kinds map[string]*onceward.Kind) error {
	for q := (onceward.EntityQuery{Source: source, Limit: page}); ; {
		entities, err := v.reader.Entities(ctx, q)
		if err != nil {
			return err
		}
		for _, e := range entities {
			row := shownRow{Entity: e, kind: kinds[e.Kind]}
			if err := decodeExact(e.Data, &row.fields); err != nil {
				return err
			}
			v.rows = append(v.rows, row)
			q.After = e.Ref
		}
		if len(entities) < page {
			return nil
		}
	}
}

func (v *view) readEvents(ctx context.Context, source string) error {
	for q := (onceward.EventQuery{Source: source, Limit: page}); ; {
		events, err := v.reader.Events(ctx, q)
		if err != nil {
			return err
		}
		v.events = append(v.events, events...)
		if len(events) < page {
			return nil
		}
		q.Before = events[len(events)-1].ID
	}
}

// words are words of the cases for which we have others.
var words = map[string]string{
	"cancelled": "canceled", "expire": "expired", "partially-refunded": "partially_refunded", "chargeback": "charged_back",
}

// kindWords are kinds of the cases for which we have other words.
var kindWords = map[string]string{"mail": "message", "run": "job"}

func ourWord(word string) string {
	if ours, ok := words[word]; ok {
		return ours
	}
	return word
}

func ourKind(word string) string {
	if ours, ok := kindWords[word]; ok {
		return ours
	}
	return word
}

// fieldWords are the fields of the cases for which we have other names.
var fieldWords = map[string]string{
	"amount_minor": "amount", "gross_minor": "captured", "captured_minor": "captured", "refunded_minor": "refunded", "fee_minor": "fee",
	"version": "object_version", // the row has a version of its own
}

// find returns the rows that a case calls kind/key or kind/account/key, by the key
// or by the number that people know the thing by.
func (v *view) find(name string) []shownRow {
	kind, rest, _ := strings.Cut(name, "/")
	account, key, scoped := strings.Cut(rest, "/")
	composed := onceward.ComposeKey(strings.Split(rest, "/")...)
	var found []shownRow
	live := false
	for _, r := range v.rows {
		plain := r.Key == rest || r.Key == composed || r.fields["number"] == json.Number(rest)
		inScope := scoped && r.Key == key && (r.Scope.Account == account || r.Scope.Mode == account)
		if r.Kind == ourKind(kind) && (plain || inScope) {
			found = append(found, r)
			live = live || r.Scope.Mode == "live"
		}
	}
	// Who names no mode means the live one, where there are both.
	return slices.DeleteFunc(found, func(r shownRow) bool { return live && !scoped && r.Scope.Mode == "test" })
}

// status is what the row shows. A row that no sender has told a status shows the
// application's own, if it has written one.
func (v *view) status(ctx context.Context, r shownRow) (string, error) {
	own, ok := localOf(r.Data)["status"].(string)
	if !ok {
		return r.Status, nil
	}
	history, err := v.reader.History(ctx, r.Ref)
	if err != nil {
		return "", err
	}
	for _, f := range history {
		if f.Status != "" && !f.Hint {
			return r.Status, nil
		}
	}
	return ourWord(own), nil
}

// statusIs compares a status with the word of a case, which may be two.
func statusIs(status, want string) bool {
	return slices.ContainsFunc(strings.Split(want, "_or_"), func(word string) bool { return ourWord(word) == status })
}

// member is what a row has for a name of the cases.
func (v *view) member(ctx context.Context, r shownRow, name string) (any, error) {
	switch name {
	case "net_minor":
		s, err := v.sale(ctx, r)
		return json.Number(fmt.Sprint(s.gross - s.refunds - s.lost)), err
	case "disputed_lost_minor":
		s, err := v.sale(ctx, r)
		return json.Number(fmt.Sprint(s.lost)), err
	case "order_fulfilment":
		order, _ := r.fields["order"].(string)
		for _, o := range v.find("order/" + order) {
			return localOf(o.Data)["fulfilment"], nil
		}
		return nil, nil
	case "rows":
		return json.Number(fmt.Sprint(len(v.find(r.Kind + "/" + r.Key)))), nil
	case "refund_rows":
		n := 0
		for _, o := range v.rows {
			if o.Kind == "refund" && o.Source == r.Source && o.Scope == r.Scope && o.fields["payment"] == r.Key {
				n++
			}
		}
		return json.Number(fmt.Sprint(n)), nil
	case "version_time":
		return v.statusTime(ctx, r)
	case "display":
		currency, _ := r.fields["currency"].(string)
		text, ok := screen.Money(fmt.Sprint(r.fields["amount"]), currency)
		if !ok {
			return nil, nil
		}
		return text, nil
	case "needs_review":
		return localOf(r.Data)["needs_review"] == true, nil
	case "attached":
		return attached(func(field string) onceward.Value {
			if r.fields[field] == nil {
				return onceward.Value{}
			}
			return onceward.Bool(true)
		}), nil
	}
	return v.field(r, name)
}

// field is the field of a name, of the senders or of the application.
func (v *view) field(r shownRow, name string) (any, error) {
	for _, n := range []string{name, fieldWords[name], strings.TrimSuffix(name, "_minor")} {
		if value, ok := r.fields[n]; ok {
			return value, nil
		}
	}
	if value, ok := localOf(r.Data)[name]; ok {
		return value, nil
	}
	known := fieldWords[name] != ""
	if r.kind != nil {
		_, declared := r.kind.Fields[name]
		known = known || declared
	}
	if !known {
		return nil, unsupported("the field " + name + " of a " + r.Kind + ", which no rule tells")
	}
	return nil, nil
}

// statusTime is the sender's second of the fact that gave the status.
func (v *view) statusTime(ctx context.Context, r shownRow) (any, error) {
	history, err := v.reader.History(ctx, r.Ref)
	if err != nil {
		return nil, err
	}
	var newest time.Time
	for _, f := range history {
		if t := f.Time.Time(); f.Status == r.Told && f.Time.Set && t.After(newest) {
			newest = t
		}
	}
	return json.Number(fmt.Sprint(newest.Unix())), nil
}

// same compares what a row has with what a case wants. Nothing is no amount.
func same(name string, got, want any) bool {
	if want == nil || got == nil {
		return got == want || got == nil && strings.HasSuffix(name, "_minor") && fmt.Sprint(want) == "0"
	}
	a, aIs := new(big.Rat).SetString(fmt.Sprint(got))
	b, bIs := new(big.Rat).SetString(fmt.Sprint(want))
	_, number := want.(json.Number)
	if number && aIs && bIs {
		return a.Cmp(b) == 0
	}
	x, err := json.Marshal(got)
	y, err2 := json.Marshal(want)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}

// sale is what a payment adds to the books.
type sale struct {
	currency             string
	gross, refunds, lost int64
	at                   time.Time // the sender's time of the payment
}

// sale reads a payment as an accountant does, from its row and history. What was
// never got counts for nothing; what is lost to a dispute is subtracted.
func (v *view) sale(ctx context.Context, r shownRow) (sale, error) {
	var s sale
	s.currency, _ = r.fields["currency"].(string)
	if slices.Contains([]string{"created", "pending", "in_review", "failed", "expired", "canceled", "authorized"}, r.Status) {
		return s, nil
	}
	number := func(name string) int64 {
		n, ok := r.fields[name].(json.Number)
		whole, err := n.Int64()
		if !ok || err != nil {
			return 0
		}
		return whole
	}
	s.gross, s.refunds = number("captured"), number("refunded")
	if r.Status == "charged_back" {
		s.lost = number("disputed_amount")
	}
	history, err := v.reader.History(ctx, r.Ref)
	if err != nil {
		return s, err
	}
	for _, f := range history {
		if t := f.Time.Time(); f.Status == "paid" && f.Time.Set && (s.at.IsZero() || t.Before(s.at)) {
			s.at = t
		}
	}
	return s, nil
}

// report sums up the payments that fit a wanted line of a report, and compares.
func (v *view) report(ctx context.Context, want wantedRow) (wrong []string, err error) {
	var total sale
	currencies := map[string]bool{}
	for _, r := range v.rows {
		if r.Kind != "payment" {
			continue
		}
		s, err := v.sale(ctx, r)
		if err != nil {
			return nil, err
		}
		fits, err := s.fits(want)
		if err != nil {
			return nil, err
		}
		if fits {
			total.gross, total.refunds, total.lost = total.gross+s.gross, total.refunds+s.refunds, total.lost+s.lost
			currencies[s.currency] = true
			total.currency = s.currency
		}
	}
	if len(currencies) > 1 {
		return nil, unsupported("a report that adds different currencies")
	}
	for name, value := range want {
		got, err := total.measure(name)
		if err != nil {
			return nil, err
		}
		if got != nil && !same(name, got, value) {
			wrong = append(wrong, fmt.Sprintf("report %v: %s is %v, want %v", want, name, got, value))
		}
	}
	return wrong, nil
}

// fits reports whether a sale belongs to a line: its day in the line's zone, from
// midnight to midnight, and its currency.
func (s sale) fits(want wantedRow) (bool, error) {
	if currency, ok := want["currency"].(string); ok && currency != s.currency {
		return false, nil
	}
	day, hasDay := want["day"].(string)
	if !hasDay {
		return true, nil
	}
	name, _ := want["zone"].(string)
	zone, err := time.LoadLocation(name)
	if err != nil {
		return false, unsupported("the zone " + name)
	}
	return s.at.In(zone).Format(time.DateOnly) == day, nil
}

// measure is a sum by the name of the cases, nil if the name says which sales to
// add.
func (s sale) measure(name string) (any, error) {
	net := s.gross - s.refunds - s.lost
	sums := map[string]int64{
		"gross_minor": s.gross, "refunds_minor": s.refunds, "refunded_minor": s.refunds, "net_minor": net,
		"gross": s.gross, "refunds": s.refunds, "net": net,
	}
	sum, known := sums[name]
	switch {
	case slices.Contains([]string{"currency", "day", "zone", "key", "status"}, name):
		return nil, nil
	case !known:
		return nil, unsupported("the report's " + name)
	case strings.HasSuffix(name, "_minor"):
		return json.Number(fmt.Sprint(sum)), nil
	}
	text, ok := screen.Money(fmt.Sprint(sum), s.currency)
	if !ok {
		return nil, fmt.Errorf("a report in the currency %q", s.currency)
	}
	return strings.ReplaceAll(text, ",", ""), nil
}

// event returns the events that a case calls by an id of the sender. One that is
// kept under its digest is found by the id that its bytes hold.
func (v *view) event(ctx context.Context, id string) ([]onceward.StoredEvent, error) {
	var found []onceward.StoredEvent
	for _, e := range v.events {
		if e.Origin != onceward.Sent {
			continue
		}
		if e.Key == id {
			found = append(found, e)
			continue
		}
		if len(e.Key) != 64 && !e.DigestKey {
			continue
		}
		whole, err := v.reader.Event(ctx, e.ID)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(whole.Delivery.Body, []byte(id)) {
			found = append(found, e)
		}
	}
	return found, nil
}

var errNoWord = errors.New("no word for an event")

// eventIs reports whether an event is in the state that a word of the cases names.
func (v *view) eventIs(ctx context.Context, e onceward.StoredEvent, word string) (bool, error) {
	switch word {
	case "superseded", "stale":
		facts, err := v.reader.EventFacts(ctx, e.ID)
		newer := slices.ContainsFunc(facts, func(f onceward.StoredFact) bool {
			return f.Verdict != onceward.Stale && f.Verdict != onceward.Same
		})
		return len(facts) > 0 && !newer, err
	case "stored", "received", "kept":
		return true, nil
	case "unhandled", "unmapped", "not_ours", "ignored":
		return e.Facts == 0 && e.Outcome != onceward.Conflict, nil
	case "held", "quarantined", "undecodable":
		return e.Held > 0, nil
	case "test":
		return e.Scope.Mode == "test", nil
	case "conflict":
		return e.Outcome == onceward.Conflict, nil
	case "done", "processed", "handled":
		return e.Held == 0 && !v.works(e, func(onceward.Job) bool { return true }), nil
	case "dead", "failed":
		return v.works(e, func(j onceward.Job) bool { return j.Dead }), nil
	case "pending":
		return v.works(e, func(j onceward.Job) bool { return !j.Dead }), nil
	}
	return false, errNoWord
}

func (v *view) works(e onceward.StoredEvent, which func(onceward.Job) bool) bool {
	return slices.ContainsFunc(v.jobs, func(j onceward.Job) bool { return j.Change.Event.ID == e.ID && which(j) })
}

// state is all rows as text: what law 5 says does not depend on arrival. The value
// of a part that the senders' clocks left open is left out, its mark is not.
func (v *view) state() []string {
	var out []string
	for _, r := range v.rows {
		out = append(out, r.state())
	}
	slices.Sort(out)
	return out
}

func (r shownRow) state() string {
	fields := map[string]any{}
	for name, value := range r.fields {
		if own, ok := value.(map[string]any); ok && name == onceward.LocalField {
			own = maps.Clone(own)
			delete(own, "needs_review") // written by a handler, and handlers hear what arrives
			if len(own) == 0 {
				continue
			}
			value = own
		}
		if keyed, ok := value.(map[string]any); ok {
			shown := map[string]any{}
			for by, one := range keyed {
				shown[by] = r.open(name+"."+by, one)
			}
			value = shown
		}
		fields[name] = r.open(name, value)
	}
	data, err := json.Marshal(fields)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return fmt.Sprintf("%s %s [%s] in %s: %v, told %v, epoch %d, tie %v, %s", r.Kind, r.Key, r.Scope, r.Source,
		r.open(onceward.StatusPart, r.Status), r.open(onceward.StatusPart, r.Told), r.Epoch.N, r.Tie, data)
}

func (r shownRow) open(part string, value any) any {
	if slices.Contains(r.Tie, part) {
		return "(tie)"
	}
	return value
}
