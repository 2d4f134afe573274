package inboxtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/inbox/inboxtest"
	"github.com/onceward/onceward/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPaidOnce(t *testing.T) {
	in := inboxtest.New(t, "stripe")
	mails := 0
	in.Handle("payment.paid", func(context.Context, onceward.Change) error { mails++; return nil })
	in.EveryOrder("stripe", "payment", func() { // orders of the sample lifecycle, up to a bound, each event twice
		if got := in.Entity("payment", "pi_3MadeUpIntent0001").Status; got != "refunded" || mails != 1 {
			t.Errorf("status %s, %d mails", got, mails)
		}
		mails = 0
	})
}

// TestEveryProviderConverges plays each life cycle of the catalogue in some orders:
// whatever the first ends as, the others must.
func TestEveryProviderConverges(t *testing.T) {
	played := 0
	for _, name := range provider.Catalog() {
		if len(provider.Samples(name)) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			in := inboxtest.New(t, name)
			in.Orders, in.Seed = 8, 7
			for kind := range in.Inbox().Provider(name).Kinds() {
				if provider.Lifecycle(name, kind) == nil {
					continue
				}
				played++
				want := ""
				in.EveryOrder(name, kind, func() {
					got := rows(t, in)
					if want == "" {
						want = got
					}
					if got != want {
						t.Errorf("the rows of %s are\n%s\nand were\n%s", kind, got, want)
					}
				})
			}
		})
	}
	if played < 10 {
		t.Errorf("%d life cycles were played", played)
	}
}

// rows lists all rows with status and fields; a part that is a tie may depend on
// the order.
func rows(t *testing.T, in *inboxtest.Inbox) string {
	t.Helper()
	entities, err := in.Inbox().Entities(context.Background(), onceward.EntityQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entities {
		fmt.Fprintf(&b, "%s tie %v", e.Ref, e.Tie)
		if len(e.Tie) == 0 {
			fmt.Fprintf(&b, " %s %s", e.Status, e.Data)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	failed bool
	log    strings.Builder
}

type fatal struct{}

func (r *recorder) Helper()                         {}
func (r *recorder) Failed() bool                    { return r.failed }
func (r *recorder) Logf(format string, args ...any) { fmt.Fprintf(&r.log, format+"\n", args...) }
func (r *recorder) Errorf(format string, args ...any) {
	r.failed = true
	r.Logf(format, args...)
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(fatal{})
}

// recorded runs what may end a test and returns what it logged.
func recorded(t *testing.T, run func(r *recorder)) string {
	t.Helper()
	r := &recorder{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != (fatal{}) {
				panic(p)
			}
		}()
		run(r)
	}()
	return r.log.String()
}

func TestAFailurePrintsItsOrder(t *testing.T) {
	for _, ends := range []bool{false, true} {
		calls := 0
		log := recorded(t, func(r *recorder) {
			in := inboxtest.New(r, "sunoapi")
			in.Seed = 42
			in.EveryOrder("sunoapi", "job", func() {
				switch calls++; {
				case calls < 3:
				case ends:
					r.Fatalf("the song is wrong")
				default:
					r.Errorf("the song is wrong")
				}
			})
		})
		if calls != 3 {
			t.Errorf("check was called %d times, want that it stops at the failure", calls)
		}
		if !strings.Contains(log, "it failed in this order:\n  0") || strings.Count(log, "(again)") < 3 || !ends && !strings.Contains(log, "order 3, with Seed 42") {
			t.Errorf("it prints:\n%s", log)
		}
	}
}

// A handler that counts each call is right only if it is called once; one that
// takes the last word for the truth is found out.
func TestANaiveHandlerIsFoundOut(t *testing.T) {
	log := recorded(t, func(r *recorder) {
		in := inboxtest.New(r, "stripe")
		last := ""
		in.Handle("event:charge.*", func(_ context.Context, c onceward.Change) error { last = c.Event.Type; return nil })
		in.EveryOrder("stripe", "payment", func() {
			if last != "charge.refunded" {
				r.Errorf("the last word is %s", last)
			}
		})
	})
	if !strings.Contains(log, "in this order") {
		t.Errorf("a naive handler ends the same in every order:\n%s", log)
	}
}

func TestWhatIsNotThereIsExplained(t *testing.T) {
	for _, test := range []struct {
		about string
		run   func(in *inboxtest.Inbox)
		want  []string
	}{
		{"a row", func(in *inboxtest.Inbox) { in.Send("stripe", "charge.succeeded"); in.Entity("payment", "ch_1") }, []string{"not found", "payment pi_3MadeUpIntent0001 (stripe", "is paid"}},
		{"any row", func(in *inboxtest.Inbox) { in.Entity("payment", "ch_1") }, []string{"not found", "none"}},
		{"a kind", func(in *inboxtest.Inbox) { in.Send("stripe", "charge.succeeded"); in.Entity("paymnt", "ch_1") }, []string{"payment pi_3MadeUpIntent0001"}},
		{"a fact", func(in *inboxtest.Inbox) {
			in.Deliver("stripe", nil, []byte(`{"id":"evt_1","type":"charge.x","data":{"object":{"object":"charge","id":"ch_1","status":"exploded"}}}`))
			in.Entity("payment", "ch_1")
		}, []string{"held: charge.x evt_1, rule charge", "exploded"}},
		{"a sample", func(in *inboxtest.Inbox) { in.Send("stripe", "charge.exploded") }, []string{"03-charge.succeeded"}},
		{"a source", func(in *inboxtest.Inbox) { in.Send("strpe") }, []string{`no source "strpe"; there are stripe`}},
		{"a life cycle", func(in *inboxtest.Inbox) { in.EveryOrder("stripe", "cart", func() {}) }, []string{"no sample of stripe tells about a cart"}},
	} {
		log := recorded(t, func(r *recorder) { test.run(inboxtest.New(r, "stripe")) })
		for _, want := range test.want {
			if !strings.Contains(log, want) {
				t.Errorf("%s that is not there: the test does not say %q:\n%s", test.about, want, log)
			}
		}
	}
	if log := recorded(t, func(r *recorder) { inboxtest.New(r, "strpe") }); !strings.Contains(log, "stripe") {
		t.Errorf("a provider that is not there:\n%s", log)
	}
}

const acme = `
verify: {scheme: hmac, header: X-Acme}
event: {key: body.id, type: body.type}
kinds: {order: {states: [created, paid], order: [rank]}}
facts: {order: {kind: order, key: body.order, status: body.status}}
`

func TestASourceOfOnesOwn(t *testing.T) {
	in := inboxtest.NewConfig(t, inbox.Config{Sources: map[string]inbox.Source{"acme": {Definition: []byte(acme)}}})
	tries := 0
	in.Handle("order.paid", func(context.Context, onceward.Change) error {
		if tries++; tries == 1 {
			return errors.New("not yet")
		}
		return nil
	})
	body := []byte(`{"id":"1","type":"t","order":"o","status":"paid"}`)
	for _, want := range []string{"new", "duplicate"} {
		a := in.Deliver("acme", http.Header{"X-More": {"1"}}, body)
		if a.Status != 200 || !strings.Contains(a.Body, want) {
			t.Errorf("answered %d %s, want %s", a.Status, a.Body, want)
		}
	}
	if got := in.Entity("order", "o").Status; got != "paid" {
		t.Errorf("status %s", got)
	}
	if n := in.Work(); n != 1 || tries != 1 {
		t.Errorf("%d attempts", n)
	}
	if n := in.Work(); n != 0 {
		t.Errorf("%d attempts before the pause is over", n)
	}
	in.Advance(time.Minute)
	if n := in.Work(); n != 1 || tries != 2 {
		t.Errorf("%d attempts after the pause", n)
	}
	if log := recorded(t, func(r *recorder) {
		inboxtest.NewConfig(r, inbox.Config{Sources: map[string]inbox.Source{"acme": {Definition: []byte(acme)}}}).Send("acme")
	}); !strings.Contains(log, "no samples") {
		t.Errorf("samples of a sender that nobody knows:\n%s", log)
	}
}

func TestAmbiguousRows(t *testing.T) {
	log := recorded(t, func(r *recorder) {
		definition := strings.Replace(acme, "type: body.type", "type: body.type, scope: {mode: body.live}", 1)
		in := inboxtest.NewConfig(r, inbox.Config{Sources: map[string]inbox.Source{"acme": {Definition: []byte(definition)}}})
		for i, live := range []string{"true", "false"} {
			in.Deliver("acme", nil, fmt.Appendf(nil, `{"id":"%d","type":"t","order":"o","status":"paid","live":%s}`, i, live))
		}
		in.Entity("order", "o")
	})
	if !strings.Contains(log, "several scopes") || !strings.Contains(log, "/live") {
		t.Errorf("it says:\n%s", log)
	}
}

func TestTheEngineIsThere(t *testing.T) {
	in := inboxtest.New(t, "stripe")
	in.Send("stripe")
	why, err := in.Inbox().Why(in.Entity("payment", "pi_3MadeUpIntent0001"))
	if err != nil || !strings.Contains(why, "refunded") {
		t.Errorf("why: %q, %v", why, err)
	}
}

func TestOrders(t *testing.T) {
	for _, test := range []struct{ most, want int }{{0, 6}, {6, 6}, {5, 5}, {1, 1}} {
		calls := 0
		in := inboxtest.New(t, "kie")
		in.Orders = test.most
		in.EveryOrder("kie", "job", func() { calls++ })
		if n := len(provider.Lifecycle("kie", "job")); n != 3 {
			t.Fatalf("the life cycle has %d events; this test counts on 3", n)
		}
		if calls != test.want {
			t.Errorf("with Orders %d: %d orders, want %d", test.most, calls, test.want)
		}
	}
}
