package v1

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/onceward/onceward"
)

func testKind(t *testing.T) *onceward.Kind {
	t.Helper()
	k, err := onceward.NewKind(onceward.Kind{
		Name: "job", States: [][]string{{"queued"}, {"running"}, {"done"}}, Terminal: []string{"done"},
		Order: []onceward.Component{onceward.Time, onceward.Rank}, Fields: map[string]onceward.Mode{"parts": onceward.Sum},
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestHeaderLines(t *testing.T) {
	d := &onceward.Delivery{Header: map[string][]string{"X-B": {"2", "1"}, "A": {"caf\xe9"}}}
	if got, want := string(HeaderLines(d)), "A: caf\xe9\r\nX-B: 2\r\nX-B: 1\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEntityOf(t *testing.T) {
	e := &onceward.Entity{Ref: onceward.Ref{Source: "s", Scope: onceward.Scope{Account: "a/b", Mode: "live"}}, Status: "paid", Told: "paid"}
	got := EntityOf(e)
	if got.Told != "" || got.Scope != (Scope{`a\/b/live`, "a/b", "live"}) || string(got.Data) != "{}" {
		t.Errorf("got %+v", got)
	}
	if e.Told = "pending"; EntityOf(e).Told != "pending" {
		t.Error("a told status that differs is left out")
	}
}

// facts are two of one entity, as a store gives them.
func facts(k *onceward.Kind) []onceward.StoredFact {
	value := func(n int64) []onceward.Part {
		return []onceward.Part{{Field: "parts", By: "x", Value: onceward.Int(n)}}
	}
	var stored []onceward.StoredFact
	for i, f := range []onceward.Fact{
		{Status: "running", Time: onceward.Some(int64(2 * time.Hour)), Fields: value(1)},
		{Status: "queued", Time: onceward.Some(int64(time.Hour)), Fields: value(7)},
	} {
		stored = append(stored, onceward.StoredFact{Fact: f, Seq: int64(i + 1), Verdict: onceward.Applied, Order: k.StatusOrder(&f)})
	}
	stored[1].Verdict, stored[1].Against, stored[1].Decided = onceward.Stale, stored[0].Order, "time"
	return stored
}

func TestHistoryOf(t *testing.T) {
	k := testKind(t)
	h := HistoryOf(&onceward.Entity{Status: "running", Told: "running"}, facts(k), k)
	if h.Telling != 1 || !slices.Equal(h.Facts[0].Changed, []string{"status", "parts"}) || h.Facts[1].Changed != nil || h.Facts[1].AgainstSeq != 1 {
		t.Errorf("got %+v", h)
	}
	if got := h.Facts[0].Fields["parts.x"]; got == nil {
		t.Errorf("the part has no by in its name: %v", h.Facts[0].Fields)
	}
	text, err := json.Marshal(h.Facts[1].Order)
	want := `[{"name":"epoch","value":null},{"name":"terminal","value":false},{"name":"firm","value":true},{"name":"time","value":"1970-01-01T01:00:00Z"},{"name":"rank","value":0}]`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
}

// TestOtherMappings: what this mapping would tell otherwise is left out, never
// guessed.
func TestOtherMappings(t *testing.T) {
	k := testKind(t)
	list := facts(k)
	list[1].Verdict = onceward.Applied // as another mapping may have had it
	h := HistoryOf(&onceward.Entity{Status: "running", Told: "running"}, list, k)
	if h.Facts[1].Changed != nil {
		t.Errorf("it says that %q changed", h.Facts[1].Changed)
	}
	list[0].Order = "an order of another shape"
	h = HistoryOf(&onceward.Entity{Status: "running"}, list, k)
	if h.Facts[0].Order != nil {
		t.Errorf("it takes apart what it cannot read: %v", h.Facts[0].Order)
	}
	h = HistoryOf(&onceward.Entity{Status: "running", State: []byte{9}}, list, nil)
	if h.Why != "" || h.Telling != 0 || h.Facts[1].Order != nil || len(h.Facts) != 2 {
		t.Errorf("without a kind it says %+v", h)
	}
	if h = HistoryOf(&onceward.Entity{Status: "running", State: []byte{9}}, list, k); h.Why != "" {
		t.Errorf("a row of a newer program is explained: %q", h.Why)
	}
}

func TestStatsNameEveryVerdict(t *testing.T) {
	got := StatsOf(&onceward.Stats{Facts: map[onceward.Verdict]int64{onceward.Held: 2}})
	if len(got.Facts) != 4 || got.Facts["held"] != 2 {
		t.Errorf("got %v", got.Facts)
	}
}
