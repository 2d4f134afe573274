package onceward_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/onceward/onceward"
)

// ledger is the strictest transaction there can be: it applies what Plan says
// to maps, one commit at a time, and panics where a database would refuse.
type ledger struct {
	claims   map[onceward.ID]onceward.Claim
	variants map[string]onceward.Claim
	rows     map[onceward.ID]storedRow
	facts    map[onceward.ID][]onceward.FactWrite
	events   []onceward.EventWrite
	jobs     []onceward.Job
	repeats  []onceward.RepeatWrite

	newClaims, newVariants map[string]bool
}

type storedRow struct {
	ref                      onceward.Ref
	status, told             string
	version, revision, facts int64
	data, state              []byte
}

func newLedger() *ledger {
	return &ledger{claims: map[onceward.ID]onceward.Claim{}, variants: map[string]onceward.Claim{}, rows: map[onceward.ID]storedRow{}, facts: map[onceward.ID][]onceward.FactWrite{}}
}

func (l *ledger) Claim(id onceward.ID) (onceward.Claim, bool) {
	return l.claims[id], l.newClaims[id.String()]
}

func (l *ledger) Variant(id onceward.ID, d onceward.Digest) (v onceward.Claim, inserted, known bool, err error) {
	v, known = l.variants[id.String()+d.String()]
	return v, l.newVariants[id.String()+d.String()], known, nil
}

func (l *ledger) Entity(id onceward.ID) (onceward.EntityRow, error) {
	s, ok := l.rows[id]
	if !ok {
		return onceward.EntityRow{ID: id}, nil
	}
	row, err := onceward.DecodeRow(s.status, s.told, s.version, s.revision, s.data, s.state)
	return onceward.EntityRow{ID: id, Ref: s.ref, Row: row, Facts: s.facts}, err
}

func (l *ledger) Facts(id onceward.ID) ([]onceward.Fact, error) {
	var facts []onceward.Fact
	for _, w := range l.facts[id] {
		if w.Verdict != onceward.Held {
			facts = append(facts, *w.Fact)
		}
	}
	return facts, nil
}

func (l *ledger) HeldFacts(event, below int64) (int, error) {
	n := 0
	for _, facts := range l.facts {
		for _, w := range facts {
			if w.EventID == event && w.Verdict == onceward.Held && w.Revision < below {
				n++
			}
		}
	}
	return n, nil
}

// inOrder panics where two processes that insert and lock as a commit says could
// wait for each other: unless each list is sorted, and has everything once.
func inOrder(txn *onceward.Txn) {
	ascend := func(what string, n int, name func(i int) string) {
		for i := 1; i < n; i++ {
			if name(i-1) >= name(i) {
				panic(what + " are not sorted, or one stands twice")
			}
		}
	}
	claims, lookups, variants, entities := txn.Claims(), txn.Lookups(), txn.Variants(), txn.Entities()
	ascend("claims", len(claims), func(i int) string { return claims[i].ID.String() })
	ascend("lookups", len(lookups), func(i int) string { return lookups[i].String() })
	ascend("variants", len(variants), func(i int) string { return variants[i].ID.String() + variants[i].Digest.String() })
	ascend("rows", len(entities), func(i int) string { return entities[i].ID.String() })
}

func (l *ledger) commit(b *onceward.Batch) error {
	txn := onceward.NewTxn(b)
	inOrder(txn)
	l.newClaims, l.newVariants = map[string]bool{}, map[string]bool{}
	for _, c := range txn.Claims() {
		if _, taken := l.claims[c.ID]; !taken {
			l.claims[c.ID], l.newClaims[c.ID.String()] = c, true
		}
	}
	for _, v := range txn.Variants() {
		key := v.ID.String() + v.Digest.String()
		if _, known := l.variants[key]; !known {
			l.variants[key], l.newVariants[key] = v, true
		}
	}
	w, err := txn.Plan(l)
	if err != nil {
		return err
	}
	for _, up := range w.TakenUp {
		for entity, facts := range l.facts {
			l.facts[entity] = slices.DeleteFunc(facts, func(f onceward.FactWrite) bool {
				return f.EventID == up.EventID && f.Verdict == onceward.Held && f.Revision < up.Below
			})
		}
	}
	for _, r := range w.Rows {
		if s := l.rows[r.ID]; s.version != r.WasVersion || s.facts != r.WasFacts {
			panic("the guard refuses a row that nobody else has written")
		}
		if string(r.Data) != string(r.Row.Data()) || !slices.Equal(r.Tie, r.Row.Tie()) {
			panic(fmt.Sprintf("written is %s, tie %v; the row shows %s, tie %v", r.Data, r.Tie, r.Row.Data(), r.Row.Tie()))
		}
		l.rows[r.ID] = storedRow{r.Ref, r.Row.Status, r.Row.Told, r.Row.Version, r.Row.Revision, r.Facts, r.Data, r.Row.EncodeState()}
	}
	for _, f := range w.Facts {
		if slices.ContainsFunc(l.facts[f.Entity], func(g onceward.FactWrite) bool { return g.Seq == f.Seq }) {
			panic("two facts of one number at one entity")
		}
		kept := *f.Fact
		f.Fact = &kept
		l.facts[f.Entity] = append(l.facts[f.Entity], f)
	}
	l.events = append(l.events, w.Events...)
	l.jobs = append(l.jobs, w.Jobs...)
	l.repeats = append(l.repeats, w.Repeats...)
	return nil
}

var songKind = mustKind(onceward.Kind{
	Name: "job", States: [][]string{{"queued"}, {"running"}, {"partial"}, {"succeeded", "failed"}},
	Terminal: []string{"succeeded", "failed"}, Order: []onceward.Component{onceward.Rank},
})

func mustKind(k onceward.Kind) *onceward.Kind {
	kind, err := onceward.NewKind(k)
	if err != nil {
		panic(err)
	}
	return kind
}

func mapping(revision int64, kinds ...*onceward.Kind) *onceward.Mapping {
	m := &onceward.Mapping{Source: "music", Revision: revision, Kinds: map[string]*onceward.Kind{}}
	for _, k := range kinds {
		m.Kinds[k.Name] = k
	}
	return m
}

var nextEvent int64

func arrive(key, body string, facts ...onceward.Fact) *onceward.Arrival {
	nextEvent++
	return &onceward.Arrival{
		Event: &onceward.Event{
			ID: nextEvent, Source: "music", Key: key, Type: "callback", Digest: onceward.DigestOf([]byte(body)),
			Delivery: &onceward.Delivery{At: time.Unix(nextEvent, 0).UTC(), Body: []byte(body)},
		},
		Facts: facts, Mapping: mapping(1, songKind),
	}
}

func song(status string) onceward.Fact {
	return onceward.Fact{Rule: "song", Kind: "job", Key: "1", Status: status}
}

var songRef = onceward.Ref{Source: "music", Kind: "job", Key: "1"}

func handlers(t testing.TB, names ...string) []onceward.Handler {
	t.Helper()
	var hs []onceward.Handler
	for _, name := range names {
		h, err := onceward.ParseHandler(name)
		if err != nil {
			t.Fatal(err)
		}
		hs = append(hs, h)
	}
	return hs
}

func commit(t testing.TB, l *ledger, arrivals ...*onceward.Arrival) {
	t.Helper()
	b := &onceward.Batch{Arrivals: arrivals, Handlers: handlers(t, "job.succeeded", "job", "event:call*"), Now: time.Unix(1, 0)}
	if err := l.commit(b); err != nil {
		t.Fatal(err)
	}
}

func outcomes(arrivals ...*onceward.Arrival) string {
	text := ""
	for _, a := range arrivals {
		text += fmt.Sprintf("%v", a.Outcome)
		for _, r := range a.Results {
			text += fmt.Sprintf(" %v@%d %s", r.Verdict, r.Version, r.Status)
		}
		text += "; "
	}
	return text
}

func TestPlanFoldsInOrderOfArrival(t *testing.T) {
	l := newLedger()
	arrivals := []*onceward.Arrival{
		arrive("first", "f", song("partial")), arrive("complete", "c", song("succeeded")),
		arrive("first", "f", song("partial")), arrive("text", "t", song("running")),
	}
	commit(t, l, arrivals...)
	want := "new applied@1 partial; new applied@2 succeeded; duplicate; new stale@2 succeeded; "
	if got := outcomes(arrivals...); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var jobs []string
	for _, j := range l.jobs {
		jobs = append(jobs, fmt.Sprintf("%s@%d", j.Handler, j.Version))
	}
	wantJobs := []string{"event:call*@0", "job@1", "event:call*@0", "job.succeeded@2", "job@2", "event:call*@0"}
	if diff := cmp.Diff(wantJobs, jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if len(l.repeats) != 1 || l.repeats[0].EventID != arrivals[0].Event.ID {
		t.Errorf("repeats %+v, want one of event %d", l.repeats, arrivals[0].Event.ID)
	}
}

// TestPlanAnotherTextOfAValue tells a value in another form: nothing has changed, also
// for the next fact, and the row keeps the newest text.
func TestPlanAnotherTextOfAValue(t *testing.T) {
	kind := mustKind(onceward.Kind{
		Name: "job", States: [][]string{{"queued"}, {"running"}}, Order: []onceward.Component{onceward.Time, onceward.Rank},
		Fields: map[string]onceward.Mode{"x": onceward.Map},
	})
	l := newLedger()
	var arrivals []*onceward.Arrival
	for i, text := range []string{"49.90", "49.9", "49.9"} {
		a := arrive(fmt.Sprint(i), text, onceward.Fact{
			Rule: "song", Kind: "job", Key: "1", Status: "running", Time: onceward.Some(int64(i)),
			Fields: []onceward.Part{{Field: "x", By: "k", Value: mustJSON(t, []byte(text))}},
		})
		a.Mapping = mapping(1, kind)
		arrivals = append(arrivals, a)
	}
	commit(t, l, arrivals[:2]...)
	commit(t, l, arrivals[2])
	if got, want := outcomes(arrivals...), "new applied@1 running; new same@1 running; new same@1 running; "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if data := string(l.rows[songRef.ID()].data); data != `{"x":{"k":49.9}}` {
		t.Errorf("the row shows %s", data)
	}
}

func TestPlanOtherBytes(t *testing.T) {
	l := newLedger()
	first := arrive("k", "one", song("partial"))
	commit(t, l, first)
	other := arrive("k", "two", song("succeeded"))
	commit(t, l, other)
	if other.Outcome != onceward.Differs || other.StoredID != first.Event.ID {
		t.Fatalf("%v of %d, want differs of %d", other.Outcome, other.StoredID, first.Event.ID)
	}
	if len(l.events) != 1 || l.rows[songRef.ID()].status != "partial" {
		t.Fatal("something of an undecided arrival was kept")
	}
	other.Resolution = onceward.ResolvedConflict
	commit(t, l, other)
	if other.Outcome != onceward.Conflict || other.StoredID != other.Event.ID || len(l.events) != 2 {
		t.Fatalf("%v of %d, %d bodies", other.Outcome, other.StoredID, len(l.events))
	}
	if l.rows[songRef.ID()].status != "partial" {
		t.Error("a conflict was applied")
	}
	again := arrive("k", "two", song("succeeded"))
	commit(t, l, again)
	if again.Outcome != onceward.Conflict || again.StoredID != other.Event.ID || len(l.events) != 2 {
		t.Errorf("the conflict again: %v of %d, %d bodies", again.Outcome, again.StoredID, len(l.events))
	}
	count := arrive("k", "three", song("partial"))
	count.Resolution = onceward.ResolvedDuplicate
	commit(t, l, count)
	if count.Outcome != onceward.Duplicate || count.StoredID != first.Event.ID || len(l.events) != 2 {
		t.Errorf("other bytes, same facts: %v of %d, %d bodies", count.Outcome, count.StoredID, len(l.events))
	}
	count = arrive("k", "three", song("partial"))
	commit(t, l, count)
	if count.Outcome != onceward.Duplicate || count.StoredID != first.Event.ID {
		t.Errorf("a noted digest: %v of %d", count.Outcome, count.StoredID)
	}
}

func TestPlanKeepsOtherBytesThatSayNothing(t *testing.T) {
	l := newLedger()
	first, other := arrive("k", "one"), arrive("k", "two")
	commit(t, l, first)
	other.Resolution = onceward.ResolvedDuplicate
	commit(t, l, other)
	if len(l.events) != 2 || l.events[1].Outcome != onceward.Duplicate || l.events[1].Of != first.Event.ID {
		t.Errorf("%d bodies; the second must be kept for a type learned later", len(l.events))
	}
}

func TestPlanHeldAndTakenUp(t *testing.T) {
	l := newLedger()
	broken := arrive("k", "one", onceward.Fact{Rule: "song", Kind: "job", Key: "1", Held: `"cooking" is not a state`}, onceward.Fact{Rule: "song", Held: "no key"})
	commit(t, l, broken)
	if got, want := outcomes(broken), "new held@0  held@0 ; "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if s := l.rows[songRef.ID()]; s.version != 0 || s.facts != 1 {
		t.Errorf("row %+v, want version 0 with one fact", s)
	}
	retake := func() *onceward.Arrival {
		a := arrive("k", "one", song("running"), song("partial"))
		a.Retake, a.Mapping = broken.Event.ID, mapping(2, songKind)
		return a
	}
	one, two := retake(), retake()
	commit(t, l, one)
	commit(t, l, two)
	if got, want := outcomes(one, two), "new applied@1 running applied@2 partial; duplicate; "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if held, _ := l.HeldFacts(broken.Event.ID, 9); held != 0 || len(l.facts[songRef.ID()]) != 2 || len(l.events) != 1 {
		t.Errorf("%d held, %d facts, %d events", held, len(l.facts[songRef.ID()]), len(l.events))
	}
}

// TestPlanStillHeld: of two that take an event up under one revision the second
// finds nothing to do, although a fact is held still.
func TestPlanStillHeld(t *testing.T) {
	l := newLedger()
	broken := arrive("k", "one", onceward.Fact{Rule: "song", Kind: "job", Key: "1", Held: "no status"}, onceward.Fact{Rule: "song", Held: "no key"})
	commit(t, l, broken)
	retake := func(revision int64) *onceward.Arrival {
		a := arrive("k", "one", song("running"), onceward.Fact{Rule: "song", Held: "no key"})
		a.Retake, a.Mapping = broken.Event.ID, mapping(revision, songKind)
		return a
	}
	one, two := retake(2), retake(2)
	commit(t, l, one)
	commit(t, l, two)
	if got, want := outcomes(one, two), "new applied@1 running held@0 ; duplicate; "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if under2, under3 := held(t, l, broken, 2), held(t, l, broken, 3); len(l.facts[songRef.ID()]) != 1 || under2 != 0 || under3 != 1 {
		t.Errorf("%d facts about the song, %d held under 2, %d under 3; want 1, 0, 1", len(l.facts[songRef.ID()]), under2, under3)
	}
}

func held(t *testing.T, l *ledger, a *onceward.Arrival, below int64) int {
	t.Helper()
	n, err := l.HeldFacts(a.Event.ID, below)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPlanRevisions(t *testing.T) {
	l := newLedger()
	commit(t, l, arrive("1", "1", song("partial")), arrive("2", "2", song("succeeded")))
	longer := mustKind(onceward.Kind{
		Name: "job", States: [][]string{{"queued"}, {"warming"}, {"succeeded"}, {"partial"}, {"delivered"}, {"running"}},
		Order: []onceward.Component{onceward.Rank},
	})
	newer := arrive("3", "3", song("warming"))
	newer.Mapping = mapping(2, longer)
	commit(t, l, newer)
	if got, want := outcomes(newer), "new applied@3 partial; "; got != want {
		t.Errorf("got %s, want %s: the row is made anew by the newest mapping", got, want)
	}
	older := arrive("4", "4", song("running"))
	commit(t, l, older)
	if got := outcomes(older); got != "new held@3 partial; " {
		t.Errorf("an older mapping: %s, want held", got)
	}
	if s := l.rows[songRef.ID()]; s.revision != 2 || s.status != "partial" || s.facts != 4 {
		t.Errorf("row %+v", s)
	}
}

func TestPlanOneBodyForASplitDelivery(t *testing.T) {
	l := newLedger()
	a, b, c := arrive("a", "a"), arrive("b", "b"), arrive("c", "c")
	b.Event.Delivery, c.Event.Delivery = a.Event.Delivery, a.Event.Delivery
	known := arrive("a", "a")
	commit(t, l, known)
	commit(t, l, a, b, c)
	if got := outcomes(a, b, c); got != "duplicate; new; new; " {
		t.Fatal(got)
	}
	if w := l.events[1:]; w[0].BodyOf != 0 || w[1].BodyOf != b.Event.ID {
		t.Errorf("bodies of %d and %d, want the first new one to carry it", w[0].BodyOf, w[1].BodyOf)
	}
}

func TestPlanReachesAStatusOnceInAnEpoch(t *testing.T) {
	kind := mustKind(onceward.Kind{
		Name: "payment", States: [][]string{{"pending"}, {"failed"}, {"paid"}},
		Order: []onceward.Component{onceward.Time, onceward.Rank},
		Derive: func(f onceward.Folded) onceward.Derived {
			if n, ok := f.Field("refunded").Int64(); ok && n > 0 {
				return onceward.Derived{Status: "refunded"}
			}
			return onceward.Derived{}
		},
	})
	row := &onceward.Row{}
	var facts []onceward.Fact
	for _, step := range []struct {
		fact onceward.Fact
		want string
	}{
		{onceward.Fact{Epoch: onceward.Some(1), Time: onceward.Some(5), Fields: []onceward.Part{{Field: "refunded", Value: onceward.Int(9)}}}, "applied [refunded]"},
		{onceward.Fact{Epoch: onceward.Some(1), Time: onceward.Some(2), Status: "paid"}, "applied [paid]"},
		{onceward.Fact{Epoch: onceward.Some(1), Time: onceward.Some(3), Status: "failed"}, "applied [failed]"},
		{onceward.Fact{Epoch: onceward.Some(1), Time: onceward.Some(4), Status: "paid"}, "applied []"},
		{onceward.Fact{Epoch: onceward.Some(1), Time: onceward.Some(1), Status: "pending"}, "stale []"},
		{onceward.Fact{Epoch: onceward.Some(2), Time: onceward.Some(9), Status: "paid"}, "applied [paid]"},
	} {
		got, err := row.Add(kind, &step.fact, false, func() ([]onceward.Fact, error) { return facts, nil })
		if err != nil {
			t.Fatal(err)
		}
		facts = append(facts, step.fact)
		if text := fmt.Sprintf("%v %v", got.Verdict, got.Reached); text != step.want {
			t.Errorf("%+v: %s, want %s", step.fact, text, step.want)
		}
	}
}

// TestPlanOneBatchManyConflicts: the same other bytes under one key of two
// sources are two conflicts, and both bodies are kept.
func TestPlanOneBatchManyConflicts(t *testing.T) {
	l := newLedger()
	var others []*onceward.Arrival
	for _, source := range []string{"music", "film"} {
		first, other := arrive("k", "one", song("partial")), arrive("k", "two", song("succeeded"))
		first.Event.Source, other.Event.Source = source, source
		other.Resolution = onceward.ResolvedConflict
		commit(t, l, first)
		others = append(others, other)
	}
	commit(t, l, others...)
	kept := 0
	for _, w := range l.events {
		if w.Outcome == onceward.Conflict {
			kept++
		}
	}
	if got := outcomes(others...); got != "conflict; conflict; " || kept != 2 {
		t.Errorf("%s with %d bodies kept, want two conflicts and both", got, kept)
	}
}

// text is all that a ledger holds which duplicates may not change.
func (l *ledger) text() string {
	var lines []string
	for id, s := range l.rows {
		lines = append(lines, fmt.Sprintf("%v %s %s %d %d %s %x", id, s.status, s.told, s.version, s.facts, s.data, s.state))
	}
	for _, j := range l.jobs {
		lines = append(lines, fmt.Sprintf("%s@%d %s %v %s", j.Handler, j.Version, j.Change.To, j.Change.Reached, j.Change.Data))
	}
	slices.Sort(lines)
	return fmt.Sprintf("%d events\n%s", len(l.events), strings.Join(lines, "\n"))
}

// aboutSeveral spreads facts over entities.
func aboutSeveral(t *rapid.T, facts []onceward.Fact) []onceward.Fact {
	for i := range facts {
		facts[i].Key = rapid.SampledFrom([]string{"1", "1", "2", "3"}).Draw(t, "key")
	}
	return facts
}

// TestLaw2Duplication: an event again, anywhere, changes nothing.
func TestLaw2Duplication(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := mapping(1, drawKind(t))
		var events [][]onceward.Fact
		for range rapid.IntRange(1, 5).Draw(t, "events") {
			events = append(events, aboutSeveral(t, drawFacts(t, m.Kinds["thing"])))
		}
		run := func(order []int) string {
			l := newLedger()
			for _, n := range order {
				a := arrive(fmt.Sprint(n), fmt.Sprint(n), slices.Clone(events[n])...)
				a.Mapping = m
				h, _ := onceward.ParseHandler("thing")
				if err := l.commit(&onceward.Batch{Arrivals: []*onceward.Arrival{a}, Handlers: []onceward.Handler{h}}); err != nil {
					t.Fatal(err)
				}
			}
			return l.text()
		}
		once := slices.Collect(indices(len(events)))
		doubled := slices.Clone(once)
		for range rapid.IntRange(1, 6).Draw(t, "duplicates") {
			n := rapid.IntRange(0, len(doubled)-1).Draw(t, "of")
			at := rapid.IntRange(slices.Index(doubled, doubled[n])+1, len(doubled)).Draw(t, "at")
			doubled = slices.Insert(doubled, at, doubled[n])
		}
		if diff := cmp.Diff(run(once), run(doubled)); diff != "" {
			t.Fatalf("%v is not %v:\n%s", doubled, once, diff)
		}
	})
}

// TestLaw10Batching: any cut of a sequence of arrivals into batches gives the
// same rows, versions, verdicts, changes and jobs.
func TestLaw10Batching(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKind(t)
		m := mapping(1, k)
		var facts [][]onceward.Fact
		for range rapid.IntRange(1, 6).Draw(t, "events") {
			facts = append(facts, aboutSeveral(t, drawFacts(t, k)))
		}
		repeats := rapid.SliceOfN(rapid.IntRange(0, len(facts)-1), 0, 3).Draw(t, "repeats")
		run := func(cut func(i int) bool) string {
			l := newLedger()
			var batch []*onceward.Arrival
			text := ""
			flush := func() {
				hs := []onceward.Handler{}
				for _, name := range []string{"thing", "thing.paid", "thing.succeeded"} {
					h, _ := onceward.ParseHandler(name)
					hs = append(hs, h)
				}
				if err := l.commit(&onceward.Batch{Arrivals: batch, Handlers: hs}); err != nil {
					t.Fatal(err)
				}
				text += outcomes(batch...)
				batch = nil
			}
			for i, n := range append(slices.Collect(indices(len(facts))), repeats...) {
				a := arrive(fmt.Sprint(n), fmt.Sprint(n), slices.Clone(facts[n])...)
				a.Mapping = m
				batch = append(batch, a)
				if cut(i) {
					flush()
				}
			}
			flush()
			return text + l.text()
		}
		cuts := rapid.SliceOfN(rapid.Bool(), 9, 9).Draw(t, "cuts")
		whole := run(func(int) bool { return false })
		if diff := cmp.Diff(whole, run(func(i int) bool { return cuts[i] })); diff != "" {
			t.Fatalf("cut into batches %v:\n%s", cuts, diff)
		}
		if diff := cmp.Diff(whole, run(func(int) bool { return true })); diff != "" {
			t.Fatalf("one by one:\n%s", diff)
		}
	})
}

func indices(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}
