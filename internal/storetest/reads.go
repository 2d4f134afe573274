package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward"
)

// testRegister numbers mappings, each hash once.
func testRegister(t *testing.T, h Harness) {
	w := newWorld(t, h)
	ctx := context.Background()
	register := func(source, hash string, wantRevision, wantNewest int64) {
		t.Helper()
		revision, newest, err := w.store.Register(ctx, source, hash, []byte("doc of "+hash), began)
		if err != nil || revision != wantRevision || newest != wantNewest {
			t.Errorf("register %s %s: %d, %d, %v; want %d, %d", source, hash, revision, newest, err, wantRevision, wantNewest)
		}
	}
	register("a", "one", 1, 1)
	register("a", "two", 2, 2)
	register("a", "one", 1, 2)
	register("b", "two", 1, 1)
	register("a", "three", 3, 3)

	stores := w.handleSet(4)
	revisions := make([]int64, 16)
	atOnce(t, len(revisions), func(i int) (err error) {
		revisions[i], _, err = stores[i%len(stores)].Register(ctx, "c", fmt.Sprintf("hash-%d", i/2), nil, began)
		return err
	})
	for i := 0; i < len(revisions); i += 2 {
		if revisions[i] != revisions[i+1] {
			t.Errorf("one hash got the numbers %d and %d", revisions[i], revisions[i+1])
		}
	}
	slices.Sort(revisions)
	equal(t, "the numbers", []int64{1, 2, 3, 4, 5, 6, 7, 8}, slices.Compact(revisions))
}

// testNode draws numbers that differ as long as there are any left.
func testNode(t *testing.T, h Harness) {
	w := newWorld(t, h)
	stores := w.handleSet(4)
	numbers := make([]int, 64)
	atOnce(t, len(numbers), func(i int) (err error) {
		numbers[i], err = stores[i%len(stores)].Node(context.Background())
		return err
	})
	slices.Sort(numbers)
	if numbers[0] < 0 || numbers[len(numbers)-1] > 1023 {
		t.Errorf("numbers from %d to %d, want them within 0 and 1023", numbers[0], numbers[len(numbers)-1])
	}
	if n := len(slices.Compact(numbers)); n != 64 {
		t.Errorf("64 draws gave %d numbers", n)
	}
	for range 1100 {
		n, err := w.store.Node(context.Background())
		if err != nil || n < 0 || n > 1023 {
			t.Fatalf("node: %d, %v; want 0 to 1023 however many were drawn", n, err)
		}
	}
}

func (w *world) rejection(reason string, size int) onceward.Rejection {
	return onceward.Rejection{Source: w.source, Reason: reason, Delivery: onceward.Delivery{
		At: began, Method: "POST", Target: "/in/acme?token=***", Remote: "203.0.113.7", Body: make([]byte, size),
	}}
}

// testQuarantineRing keeps the newest rejections of each source within limits.
func testQuarantineRing(t *testing.T, h Harness) {
	ctx := context.Background()
	reasons := func(w *world, source string, limit int) (words []string) {
		t.Helper()
		rejections, err := w.store.Rejections(ctx, source, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rejections {
			words = append(words, r.Reason)
		}
		return words
	}
	put := func(w *world, limits onceward.QuarantineLimits, rejections ...onceward.Rejection) {
		t.Helper()
		if err := w.store.Quarantine(ctx, rejections, limits); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("as it came", func(t *testing.T) {
		w := newWorld(t, h)
		r := w.rejection("signature differs", 0)
		r.Delivery.Body = []byte("\x00\xff\xfe body")
		r.Delivery.Header = map[string][]string{"X-Odd": {"a: b", "\xff\x01", ""}, "Accept": {"*/*"}}
		put(w, onceward.QuarantineLimits{Count: 10, Bytes: 1e6}, r)
		got, err := w.store.Rejections(ctx, "", 10)
		if err != nil || len(got) != 1 || got[0].ID < 1 {
			t.Fatalf("rejections: %+v, %v; want one with an id from 1", got, err)
		}
		r.ID = got[0].ID
		equal(t, "the rejection", r, got[0])
	})
	t.Run("by count", func(t *testing.T) {
		w := newWorld(t, h)
		limits := onceward.QuarantineLimits{Count: 3, Bytes: 1e6}
		other := w.rejection("other", 10)
		other.Source = "other"
		put(w, limits, other)
		put(w, limits, w.rejection("1", 10), w.rejection("2", 10))
		put(w, limits, w.rejection("3", 10), w.rejection("4", 10), w.rejection("5", 10))
		equal(t, "the kept", []string{"5", "4", "3"}, reasons(w, w.source, 10))
		equal(t, "the newest two", []string{"5", "4"}, reasons(w, w.source, 2))
		equal(t, "the other source", []string{"other"}, reasons(w, "other", 10))
		equal(t, "all", []string{"5", "4", "3", "other"}, reasons(w, "", 10))
		if n := w.stats().Quarantined; n != 4 {
			t.Errorf("stats count %d, want 4", n)
		}
	})
	t.Run("by bytes", func(t *testing.T) {
		w := newWorld(t, h)
		limits := onceward.QuarantineLimits{Count: 100, Bytes: 35_000}
		for i := range 10 {
			put(w, limits, w.rejection(fmt.Sprint(i), 10_000))
		}
		equal(t, "the kept", []string{"9", "8", "7"}, reasons(w, "", 100))
		put(w, limits, w.rejection("large", 30_000))
		equal(t, "the kept", []string{"large"}, reasons(w, "", 100))
		put(w, limits, w.rejection("too large", 40_000))
		equal(t, "the kept", []string(nil), reasons(w, "", 100))
	})
	t.Run("whatever is long", func(t *testing.T) {
		long := strings.Repeat("x", 10_000)
		for name, lengthen := range map[string]func(r *onceward.Rejection){
			"body":          func(r *onceward.Rejection) { r.Delivery.Body = []byte(long) },
			"target":        func(r *onceward.Rejection) { r.Delivery.Target += long },
			"reason":        func(r *onceward.Rejection) { r.Reason += long },
			"method":        func(r *onceward.Rejection) { r.Delivery.Method += long },
			"header":        func(r *onceward.Rejection) { r.Delivery.Header = map[string][]string{"X-Long": {long}} },
			"header's name": func(r *onceward.Rejection) { r.Delivery.Header = map[string][]string{long: {"1"}} },
		} {
			w := newWorld(t, h)
			for i := range 5 {
				r := w.rejection(fmt.Sprint(i), 1)
				lengthen(&r)
				put(w, onceward.QuarantineLimits{Count: 100, Bytes: 25_000}, r)
			}
			if got := reasons(w, "", 100); len(got) != 2 || got[0][0] != '4' || got[1][0] != '3' {
				t.Errorf("with a long %s %d rejections are kept in 25,000 bytes, want the newest 2", name, len(got))
			}
		}
	})
	t.Run("at once", func(t *testing.T) {
		w := newWorld(t, h)
		stores := w.handleSet(2)
		atOnce(t, 8, func(i int) error {
			return stores[i%2].Quarantine(ctx, []onceward.Rejection{w.rejection("a", 1), w.rejection("b", 1)}, onceward.QuarantineLimits{Count: 5, Bytes: 1e6})
		})
		if n := len(reasons(w, "", 100)); n != 5 {
			t.Errorf("%d are kept, want 5", n)
		}
	})
}

// testReadEvent reads back what was stored, byte for byte.
func testReadEvent(t *testing.T, h Harness) {
	w := newWorld(t, h)
	bodies := map[string][]byte{
		"empty": {}, "nul and bad utf-8": []byte("a\x00b\xff\xfe\xc3("), "big": slices.Repeat([]byte("0123456789\x00\xff"), 100_000),
	}
	id := int64(math.MaxInt64 - 100)
	for name, body := range bodies {
		id++
		a := w.arrivalOf("key "+name, string(body), told("j "+name, "text"))
		a.Event.ID, a.Event.Type, a.Event.Item = id, "thing."+name, 7
		a.Event.Scope = onceward.Scope{Account: "acct/1", Mode: "live"}
		a.Event.Time = onceward.Some(math.MinInt64 + 5)
		a.Event.Unsigned, a.Event.DigestKey = true, name == "big"
		a.Event.Delivery.Header = map[string][]string{"X-Many": {"b", "a", ""}, "X-Bytes": {"\xff\xfe: \t\\n"}}
		a.Event.Delivery.At = began.Add(time.Second - 1) // the last nanosecond of a second
		w.commit(a)
		a.Event.Delivery.At = a.Event.Delivery.At.Truncate(h.Precision)
		got := w.event(id)
		want := &onceward.StoredEvent{Event: *a.Event, Outcome: onceward.New, Revision: 1, BodySize: len(body), Facts: 1}
		if !bytes.Equal(got.Delivery.Body, body) {
			t.Errorf("%s: the body is not what came", name)
		}
		a.Event.Delivery.Body, got.Delivery.Body = nil, nil // too long to be compared further
		equal(t, "the event "+name, want, got)
	}
	if _, err := w.store.Event(context.Background(), 1); !errors.Is(err, onceward.ErrNotFound) {
		t.Errorf("an event that does not exist: %v, want ErrNotFound", err)
	}
	t.Run("many of one delivery", func(t *testing.T) {
		first, second := w.arrival("split 1"), w.arrival("split 2")
		second.Event.Delivery = first.Event.Delivery
		second.Event.Item = 1
		second.Event.Digest = onceward.DigestOf([]byte("second item"))
		w.commit(first, second)
		for _, a := range []*onceward.Arrival{first, second} {
			got := w.event(a.Event.ID)
			equal(t, "the event", *a.Event, got.Event)
			if got.BodySize != len(first.Event.Delivery.Body) {
				t.Errorf("body size %d, want %d", got.BodySize, len(first.Event.Delivery.Body))
			}
		}
	})
	t.Run("texts are cleaned", func(t *testing.T) {
		a := w.arrival("k\x00\xff", told("j\x00\xff", "text"))
		a.Event.Type = "t\xff"
		w.commit(a)
		got := w.event(a.Event.ID)
		equal(t, "key and type", []string{"k\uFFFD\uFFFD", "t\uFFFD"}, []string{got.Key, got.Type})
		w.entity("job", "j\uFFFD\uFFFD")
	})
}

// testReadEvents pages through events, newest first.
func testReadEvents(t *testing.T, h Harness) {
	w := newWorld(t, h)
	var want []int64
	for i := range 250 {
		a := w.arrival(fmt.Sprintf("e%d", i), told("j1", "text"))
		if i%5 == 0 {
			a.Event.Type = "rare.one"
		}
		if i%2 == 0 {
			a.Event.Source = "other"
		}
		w.commit(a)
		want = append(want, a.Event.ID)
	}
	slices.Reverse(want)
	list := func(q onceward.EventQuery) (ids []int64) {
		t.Helper()
		events, err := w.store.Events(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			ids = append(ids, e.ID)
			if e.Delivery != nil && e.Delivery.Body != nil {
				t.Error("a list carries bodies")
			}
			if e.BodySize == 0 || e.Facts != 1 {
				t.Errorf("event %d: body size %d, %d facts; want them counted", e.ID, e.BodySize, e.Facts)
			}
		}
		return ids
	}
	equal(t, "the first page", want[:100], list(onceward.EventQuery{}))
	equal(t, "the next page", want[100:120], list(onceward.EventQuery{Before: want[99], Limit: 20}))
	equal(t, "a page of all", want, list(onceward.EventQuery{Limit: 1000}))
	keep := func(f func(i int) bool) (ids []int64) {
		for i, id := range want {
			if f(249 - i) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	equal(t, "those of a source", keep(func(i int) bool { return i%2 == 0 }), list(onceward.EventQuery{Source: "other", Limit: 1000}))
	equal(t, "those of a type", keep(func(i int) bool { return i%5 == 0 }), list(onceward.EventQuery{Type: "rare.*", Limit: 1000}))
	equal(t, "those of both", keep(func(i int) bool { return i%10 == 0 })[:3], list(onceward.EventQuery{Source: "other", Type: "*.one", Limit: 3}))
	equal(t, "none", []int64(nil), list(onceward.EventQuery{Type: "rare.%"}))
}

// testReadEntity reads a row back as it is folded further.
func testReadEntity(t *testing.T, h Harness) {
	w := newWorld(t, h)
	w.noEntity("payment", "p1")
	amount, _ := onceward.JSON([]byte(`12345678901234567890.10`))
	a := w.arrival("e1", paid("p1", "paid", 5, field("amount", amount), onceward.Part{Field: "refunds", By: "r1", Value: onceward.Int(7)}, field("name", onceward.String("ä<&>\n"))))
	a.Facts[0].Epoch = onceward.Some(3)
	w.commit(a)
	e := w.entity("payment", "p1")
	want := &onceward.Entity{
		Ref: w.ref("payment", "p1"), Status: "paid", Told: "paid", Version: 1, Revision: 1, Epoch: onceward.Some(3),
		Data: []byte(`{"amount":12345678901234567890.10,"name":"ä<&>\n","refunds":7}`), Created: began, Updated: began, Facts: 1, State: e.State,
	}
	equal(t, "the row", want, e)
	if string(e.Data) != string(want.Data) {
		t.Errorf("data %s, want %s: numbers keep their digits", e.Data, want.Data)
	}
	row, err := onceward.DecodeRow(e.Status, e.Told, e.Version, e.Revision, e.Data, e.State)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the decoded row", string(e.Data), string(row.Data()))

	later := w.batch(w.arrival("e2", paid("p1", "created", 1)))
	later.Now = began.Add(time.Hour)
	tie := w.batch(w.arrival("e3", paid("p1", "refunded", 9), paid("p1", "", 9, field("amount", onceward.Int(1))), paid("p1", "", 9, field("amount", onceward.Int(2)))))
	for i := range tie.Arrivals[0].Facts {
		tie.Arrivals[0].Facts[i].Epoch = onceward.Some(3)
	}
	tie.Now = began.Add(2 * time.Hour)
	if err := w.store.Commit(context.Background(), later); err != nil {
		t.Fatal(err)
	}
	if e := w.entity("payment", "p1"); !e.Updated.Equal(began) || e.Facts != 2 {
		t.Errorf("after a stale fact: updated %v, %d facts; want %v, 2", e.Updated, e.Facts, began)
	}
	if err := w.store.Commit(context.Background(), tie); err != nil {
		t.Fatal(err)
	}
	e = w.entity("payment", "p1")
	if !e.Created.Equal(began) || !e.Updated.Equal(tie.Now) || e.Status != "refunded" {
		t.Errorf("created %v, updated %v, status %s; want %v, %v, refunded", e.Created, e.Updated, e.Status, began, tie.Now)
	}
	equal(t, "the tie", []string{"amount"}, e.Tie)
	w.checkView()
}

// testReadEntities pages through rows in the order of their names.
func testReadEntities(t *testing.T, h Harness) {
	w := newWorld(t, h)
	var want []onceward.Ref
	for _, key := range []string{"", "B", "a", "a:b", "a\\", "b", "ä", "\U0001F600", "z"} {
		for _, scope := range []onceward.Scope{{}, {Account: "x", Mode: "live"}, {Account: "x", Mode: "test"}, {Account: "y"}} {
			if key == "" {
				continue
			}
			a := w.arrival(fmt.Sprintf("%s %v", key, scope), told(key, "text"), paid(key, "paid", 1))
			a.Event.Scope = scope
			w.commit(a)
			for _, kind := range []string{"job", "payment"} {
				want = append(want, onceward.Ref{Source: w.source, Scope: scope, Kind: kind, Key: key})
			}
		}
	}
	slices.SortFunc(want, compareRefs)
	list := func(q onceward.EntityQuery) (refs []onceward.Ref) {
		t.Helper()
		entities, err := w.store.Entities(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entities {
			refs = append(refs, e.Ref)
		}
		return refs
	}
	equal(t, "all", want, list(onceward.EntityQuery{}))
	var paged []onceward.Ref
	for page := list(onceward.EntityQuery{Limit: 7}); len(page) > 0; page = list(onceward.EntityQuery{Limit: 7, After: page[len(page)-1]}) {
		paged = append(paged, page...)
	}
	equal(t, "all in pages", want, paged)
	keep := func(f func(onceward.Ref) bool) []onceward.Ref {
		return slices.DeleteFunc(slices.Clone(want), func(r onceward.Ref) bool { return !f(r) })
	}
	equal(t, "those of a key", keep(func(r onceward.Ref) bool { return r.Key == "a" }), list(onceward.EntityQuery{Key: "a"}))
	equal(t, "those of a kind", keep(func(r onceward.Ref) bool { return r.Kind == "payment" }), list(onceward.EntityQuery{Kind: "payment"}))
	equal(t, "those of a status", keep(func(r onceward.Ref) bool { return r.Kind == "payment" })[:5], list(onceward.EntityQuery{Status: "paid", Limit: 5}))
	equal(t, "those behind one", keep(func(r onceward.Ref) bool { return r.Kind == "payment" })[6:], list(onceward.EntityQuery{Status: "paid", After: keep(func(r onceward.Ref) bool { return r.Kind == "payment" })[5]}))
	equal(t, "those of another source", []onceward.Ref(nil), list(onceward.EntityQuery{Source: "nobody"}))
}

func compareRefs(a, b onceward.Ref) int {
	return slices.Compare(
		[]string{a.Source, a.Kind, a.Key, a.Scope.Account, a.Scope.Mode},
		[]string{b.Source, b.Kind, b.Key, b.Scope.Account, b.Scope.Mode})
}
