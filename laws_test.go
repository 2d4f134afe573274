package onceward_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/onceward/onceward"
)

// The laws of docs/fold.md, each with a generator as dense in ties, nulls,
// hints, epochs and former values as the one it describes: sets of four facts
// with clocks of four ticks. Laws 2 and 10 are about commits and stand in
// plan_test.go; law 12 is internal/storetest's.

// lawSets is how many sets each law is tried on, unless -rapid.checks says.
const lawSets = "1000"

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given && !testing.Short() {
		if err := flag.Set("rapid.checks", lawSets); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

var lawStates = [][][]string{
	{{"queued"}, {"running"}, {"partial"}, {"succeeded", "failed"}},
	{{"incomplete"}, {"trialing", "active", "past_due"}, {"canceled"}, {"expired"}},
	{{"created"}, {"failed"}, {"paid"}, {"refunded"}},
}

var lawTerminal = [][]string{{"succeeded", "failed"}, {"canceled", "expired"}, nil}

var lawOrders = [][]onceward.Component{
	{onceward.Rank}, {onceward.Time}, {onceward.Time, onceward.Rank}, {onceward.Rank, onceward.Time},
	{onceward.Sequence, onceward.Rank}, {onceward.Time, onceward.Rank, onceward.Sequence},
}

var lawFields = map[string]onceward.Mode{"m": onceward.Max, "s": onceward.Sum, "p": onceward.Map}

// derivePaid is a derivation such as a payment's: it reads a field and the
// status, and sees nothing else.
func derivePaid(f onceward.Folded) onceward.Derived {
	d := onceward.Derived{Fields: []onceward.NamedValue{{Name: "double", Value: f.Field("s")}}}
	b := f.Field("b") // over a field that facts tell too: at times the same value, at times another
	if b.IsZero() || b.IsNull() {
		b = f.Field("a")
	}
	d.Fields = append(d.Fields, onceward.NamedValue{Name: "b", Value: b})
	d.From = map[string][]string{"double": {"s"}, "b": {"b", "a"}, onceward.StatusPart: {"a", onceward.StatusPart}}
	if n, ok := f.Field("a").Int64(); ok && n == 3 && f.Status != "" {
		d.Status, d.Why = "derived", "a == 3"
	}
	return d
}

func drawKind(t *rapid.T) *onceward.Kind {
	i := rapid.IntRange(0, len(lawStates)-1).Draw(t, "states")
	k := onceward.Kind{Name: "thing", States: lawStates[i], Terminal: lawTerminal[i], Fields: lawFields}
	k.Order = rapid.SampledFrom(lawOrders).Draw(t, "order")
	if rapid.Bool().Draw(t, "derives") {
		k.Derive = derivePaid
	}
	kind, err := onceward.NewKind(k)
	if err != nil {
		t.Fatal(err)
	}
	return kind
}

func sometimes(t *rapid.T, percent int, label string) bool {
	return rapid.IntRange(0, 99).Draw(t, label) < percent
}

func drawOpt(t *rapid.T, percent int, label string) onceward.Opt {
	if !sometimes(t, percent, label+"?") {
		return onceward.Opt{}
	}
	return onceward.Some(rapid.Int64Range(1, 4).Draw(t, label))
}

func drawValue(t *rapid.T, label string) onceward.Value {
	if n := rapid.Int64Range(0, 3).Draw(t, label); n > 0 {
		return onceward.Int(n)
	}
	return onceward.Null
}

func drawFact(t *rapid.T, k *onceward.Kind) onceward.Fact {
	f := onceward.Fact{
		Rule: "r", Kind: k.Name, Key: "1",
		Epoch: drawOpt(t, 20, "epoch"), Time: drawOpt(t, 90, "time"), Sequence: drawOpt(t, 80, "sequence"),
		Hint: sometimes(t, 10, "hint"),
	}
	if sometimes(t, 70, "has status") {
		f.Status = rapid.SampledFrom(slices.Concat(k.States...)).Draw(t, "status")
	}
	for _, name := range []string{"a", "b", "m", "s", "p"} {
		if !sometimes(t, 45, "tells "+name) {
			continue
		}
		p := onceward.Part{Field: name, Value: drawValue(t, name)}
		if lawFields[name].Keyed() {
			p.By = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "by")
		}
		f.Fields = append(f.Fields, p)
		if name != "m" && sometimes(t, 30, "was") {
			f.Was = append(f.Was, onceward.Part{Field: name, By: p.By, Value: drawValue(t, "former "+name)})
		}
	}
	if f.Status != "" && sometimes(t, 30, "was status") {
		f.Was = append(f.Was, onceward.Part{Field: onceward.StatusPart, Value: onceward.String(rapid.SampledFrom(slices.Concat(k.States...)).Draw(t, "former status"))})
	}
	return f
}

func drawFacts(t *rapid.T, k *onceward.Kind) []onceward.Fact {
	n := rapid.IntRange(1, 4).Draw(t, "facts")
	facts := make([]onceward.Fact, n)
	for i := range facts {
		facts[i] = drawFact(t, k)
		if i > 0 && sometimes(t, 50, "same tick") { // what ties are made of
			f, g := &facts[i], facts[rapid.IntRange(0, i-1).Draw(t, "tick of")]
			f.Epoch, f.Time, f.Sequence, f.Hint = g.Epoch, g.Time, g.Sequence, g.Hint
			if sometimes(t, 40, "replaces it") {
				f.Was = append(slices.Clone(g.Fields), onceward.Part{Field: onceward.StatusPart, Value: onceward.String(g.Status)})
			}
		}
	}
	return facts
}

// orders yields every order of n things.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, rest := range orders(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(rest), at, n-1))
		}
	}
	return all
}

func permute(facts []onceward.Fact, order []int) []onceward.Fact {
	out := make([]onceward.Fact, len(order))
	for i, j := range order {
		out[i] = facts[j]
	}
	return out
}

// view is a row taken apart into what the laws compare: every part and its
// value, and which parts are ties.
type view struct {
	values map[string]string
	tie    map[string]bool
}

func viewOf(r *onceward.Row) view {
	v := view{values: map[string]string{}, tie: map[string]bool{}}
	if r.Told != "" {
		v.values[onceward.StatusPart] = r.Told
	}
	for _, p := range onceward.PartsOf(r) {
		v.values[p.Name] = p.Value.JSON()
	}
	for _, name := range r.Tie() {
		v.tie[name] = true
	}
	return v
}

// without leaves out the parts that a tie marks.
func (v view) without(tie map[string]bool) map[string]string {
	out := map[string]string{}
	for name, value := range v.values {
		if !tie[name] {
			out[name] = value
		}
	}
	return out
}

// derivedView is what a row shows beside the parts: the status and each field.
func derivedView(r *onceward.Row) view {
	v := view{values: map[string]string{onceward.StatusPart: r.Status}, tie: map[string]bool{}}
	for _, f := range r.Fields() {
		v.values[f.Name] = f.Value.JSON()
	}
	for _, name := range r.Tie() {
		field, _, _ := strings.Cut(name, ".") // a field is open where one `by` of it is
		v.tie[field] = true
	}
	return v
}

// TestLaw1Derived: what is derived depends on arrival only where it says so.
func TestLaw1Derived(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKind(t)
		k.Derive = derivePaid
		facts := drawFacts(t, k)
		first := derivedView(onceward.Fold(k, facts))
		for _, order := range orders(len(facts)) {
			v := derivedView(onceward.Fold(k, permute(facts, order)))
			if diff := cmp.Diff(first.tie, v.tie); diff != "" {
				t.Fatalf("order %v has other ties:\n%s", order, diff)
			}
			if diff := cmp.Diff(first.without(first.tie), v.without(first.tie)); diff != "" {
				t.Fatalf("order %v shows another row outside tie:\n%s", order, diff)
			}
		}
	})
}

func TestLaw1PermutationAndWhatTieMarks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKind(t)
		facts := drawFacts(t, k)
		first := viewOf(onceward.Fold(k, facts))
		seen := map[string]map[string]bool{}
		for _, order := range orders(len(facts)) {
			v := viewOf(onceward.Fold(k, permute(facts, order)))
			if diff := cmp.Diff(first.tie, v.tie); diff != "" {
				t.Fatalf("order %v has other ties:\n%s", order, diff)
			}
			if diff := cmp.Diff(first.without(first.tie), v.without(first.tie)); diff != "" {
				t.Fatalf("order %v gives another row outside tie:\n%s", order, diff)
			}
			for name := range v.tie {
				if seen[name] == nil {
					seen[name] = map[string]bool{}
				}
				seen[name][v.values[name]] = true
			}
		}
		for name, values := range seen { // the other direction: what tie marks of the told, arrival does decide
			if _, told := first.values[name]; told && k.Derive == nil && len(values) < 2 {
				t.Fatalf("%s is marked a tie, but every order gives %v", name, values)
			}
		}
	})
}

// incremental adds facts one by one, the row stored and read back in between,
// and checks it against the definition after each.
func incremental(t *rapid.T, k *onceward.Kind, facts []onceward.Fact) *onceward.Row {
	row := &onceward.Row{}
	for i := range facts {
		f, before := facts[i], *row
		step, err := row.Add(k, &f, false, func() ([]onceward.Fact, error) { return slices.Clone(facts[:i]), nil })
		if err != nil {
			t.Fatal(err)
		}
		want := onceward.Fold(k, facts[:i+1])
		if diff := cmp.Diff(rowText(want), rowText(row)); diff != "" {
			t.Fatalf("after fact %d the incremental row differs (-definition +incremental):\n%s", i, diff)
		}
		if want.Reached = row.Reached; !bytes.Equal(want.EncodeState(), row.EncodeState()) {
			t.Fatalf("after fact %d the incremental row has other marks:\n%x\n%x", i, want.EncodeState(), row.EncodeState())
		}
		checkStep(t, step, row, &before)
		stored, err := onceward.DecodeRow(row.Status, row.Told, row.Version, row.Revision, row.Data(), row.EncodeState())
		if err != nil {
			t.Fatalf("after fact %d: %v", i, err)
		}
		if diff := cmp.Diff(fullText(row), fullText(stored)); diff != "" {
			t.Fatalf("after fact %d the stored row differs (-row +stored):\n%s", i, diff)
		}
		row = stored
	}
	return row
}

// checkStep wants what a step says of itself to agree with the rows before and after
// it: the version counts what was applied, and each status is reached once in an
// epoch.
func checkStep(t *rapid.T, step onceward.Step, row, before *onceward.Row) {
	version, reached := before.Version, before.Reached
	if step.Verdict == onceward.Applied {
		version++
	}
	if before.Epoch.Set && before.Epoch != row.Epoch {
		reached = nil
	}
	reached = slices.Concat(reached, step.Reached)
	switch {
	case row.Version != version:
		t.Fatalf("a fact that was %v made the version %d, want %d", step.Verdict, row.Version, version)
	case !slices.Equal(row.Reached, reached) || len(slices.Compact(slices.Sorted(slices.Values(reached)))) != len(reached):
		t.Fatalf("the row had reached %v, now %v, and the step says it was %v", before.Reached, row.Reached, step.Reached)
	case step.Verdict == 0 || step.Decided == "":
		t.Fatalf("a step without a verdict or what decided it: %+v", step)
	case step.Changed != (step.Verdict == onceward.Applied):
		t.Fatalf("changed %v, yet verdict %v", step.Changed, step.Verdict)
	case len(step.Reached) > 0 && step.Verdict != onceward.Applied:
		t.Fatalf("a fact that changed nothing reached %v", step.Reached)
	case step.To != row.Status:
		t.Fatalf("the step ends in %q, the row in %q", step.To, row.Status)
	}
}

func rowText(r *onceward.Row) string {
	return fmt.Sprintf("status %s told %s epoch %v tie %v data %s", r.Status, r.Told, r.Epoch, r.Tie(), r.Data())
}

func fullText(r *onceward.Row) string {
	return fmt.Sprintf("%s version %d revision %d reached %v state %x", rowText(r), r.Version, r.Revision, r.Reached, r.EncodeState())
}

func TestLaw3IncrementalIsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKind(t)
		facts := drawFacts(t, k)
		for _, order := range orders(len(facts)) {
			incremental(t, k, permute(facts, order))
		}
	})
}

func TestLaw4Twin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKind(t)
		facts := drawFacts(t, k)
		before := viewOf(onceward.Fold(k, facts))
		twin := rapid.SampledFrom(facts).Draw(t, "twin")
		at := rapid.IntRange(0, len(facts)).Draw(t, "at")
		after := viewOf(onceward.Fold(k, slices.Insert(slices.Clone(facts), at, twin)))
		if diff := cmp.Diff(before.tie, after.tie); diff != "" {
			t.Fatalf("a twin changed the ties:\n%s", diff)
		}
		if diff := cmp.Diff(before.without(before.tie), after.without(before.tie)); diff != "" {
			t.Fatalf("a twin changed the row:\n%s", diff)
		}
	})
}

// inEpoch reports whether a fact counts in the epoch of the row.
func inEpoch(f onceward.Fact, r *onceward.Row) bool { return !f.Epoch.Set || f.Epoch == r.Epoch }

// told lists the facts of the row's epoch that tell a part.
func told(facts []onceward.Fact, r *onceward.Row, part string) []onceward.Fact {
	var out []onceward.Fact
	for _, f := range facts {
		if inEpoch(f, r) && tells(f, part) {
			out = append(out, f)
		}
	}
	return out
}

func tells(f onceward.Fact, part string) bool {
	if part == onceward.StatusPart {
		return f.Status != ""
	}
	return slices.ContainsFunc(f.Fields, func(p onceward.Part) bool {
		return onceward.PartName(p.Field, p.By, lawFields[p.Field].Keyed()) == part
	})
}

func firm(k *onceward.Kind, f onceward.Fact) bool {
	if f.Hint {
		return false
	}
	switch k.Order[0] {
	case onceward.Time:
		return f.Time.Set
	case onceward.Sequence:
		return f.Sequence.Set
	default:
		return f.Status != ""
	}
}

func TestLaw5Hint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKind(t)
		facts := drawFacts(t, k)
		row := onceward.Fold(k, facts)
		hint := drawFact(t, k)
		hint.Hint, hint.Epoch = true, row.Epoch
		before, after := viewOf(row), viewOf(onceward.Fold(k, append(slices.Clone(facts), hint)))
		for part, value := range before.values {
			same := func(f onceward.Fact) bool { return firm(k, f) && (!row.Epoch.Set || f.Epoch == row.Epoch) }
			if part == "m" || part == onceward.StatusPart && k.IsTerminal(hint.Status) || !slices.ContainsFunc(told(facts, row, part), same) {
				continue
			}
			if after.values[part] != value {
				t.Fatalf("a hint moved %s from %s to %s, which a firm fact had set", part, value, after.values[part])
			}
		}
	})
}

func TestLaw6Sink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKind(t)
		facts := drawFacts(t, k)
		row := onceward.Fold(k, facts)
		more := drawFact(t, k)
		if more.Epoch.Set && row.Epoch.Set && more.Epoch.N > row.Epoch.N || more.Epoch.Set && !row.Epoch.Set {
			more.Epoch = row.Epoch
		}
		after := onceward.Fold(k, append(slices.Clone(facts), more))
		epochTold := told(facts, row, onceward.StatusPart)
		inOwn := slices.ContainsFunc(epochTold, func(f onceward.Fact) bool { return k.IsTerminal(f.Status) && f.Epoch == row.Epoch })
		if inOwn && !k.IsTerminal(after.Told) {
			t.Fatalf("%q moved a row of terminal status %q to %q", more.Status, row.Told, after.Told)
		}
	})
}

func TestLaw7AbsentAndOlder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKind(t)
		facts := drawFacts(t, k)
		row := onceward.Fold(k, facts)
		more := drawFact(t, k)
		more.Epoch = row.Epoch
		before, after := viewOf(row), viewOf(onceward.Fold(k, append(slices.Clone(facts), more)))
		for part, value := range before.values {
			absent := !tells(more, part)
			order, newest := k.FieldOrder(&more), onceward.Order("")
			if part == onceward.StatusPart {
				order = k.StatusOrder(&more)
			}
			for _, f := range told(facts, row, part) {
				o := k.FieldOrder(&f)
				if part == onceward.StatusPart {
					o = k.StatusOrder(&f)
				}
				newest = max(newest, o)
			}
			older := part != "m" && order < newest
			if (absent || older) && after.values[part] != value {
				t.Fatalf("%s moved from %s to %s (absent %v, older %v)", part, value, after.values[part], absent, older)
			}
		}
	})
}

func TestLaw8Null(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKind(t)
		k.Order = []onceward.Component{onceward.Time, onceward.Rank}
		facts := drawFacts(t, k)
		row := onceward.Fold(k, facts)
		clear := onceward.Fact{Kind: "thing", Key: "1", Epoch: row.Epoch, Time: onceward.Some(9), Fields: []onceward.Part{{Field: "a", Value: onceward.Null}}}
		all := append(slices.Clone(facts), clear)
		for _, order := range orders(len(all)) {
			if v := onceward.Fold(k, permute(all, order)).Field("a"); !v.IsNull() {
				t.Fatalf("order %v: a is %v, though the newest fact cleared it", order, v)
			}
		}
	})
}

func TestLaw9Epoch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKind(t)
		facts := drawFacts(t, k)
		higher := drawFact(t, k)
		higher.Epoch = onceward.Some(9)
		all := append(slices.Clone(facts), higher)
		for _, order := range orders(len(all)) {
			arrived := permute(all, order)
			kept := slices.DeleteFunc(slices.Clone(arrived), func(f onceward.Fact) bool { return f.Epoch.Set && f.Epoch.N != 9 })
			if diff := cmp.Diff(rowText(onceward.Fold(k, kept)), rowText(incremental(t, k, arrived))); diff != "" {
				t.Fatalf("order %v: the row holds something of an earlier epoch:\n%s", order, diff)
			}
		}
	})
}

// TestLaw11Truth plays a true history through a clock that ticks slower than
// things happen: a creation without former values and updates with them. Once
// every event is in, in any order, each part is the truth or in tie.
func TestLaw11Truth(t *testing.T) {
	kind, err := onceward.NewKind(onceward.Kind{
		Name: "thing", States: [][]string{{"one", "two", "three"}},
		Order: []onceward.Component{onceward.Time}, Fields: lawFields,
	})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		truth := map[string]onceward.Value{onceward.StatusPart: onceward.String("one"), "a": onceward.Int(1), "b": onceward.Int(1)}
		history := []onceward.Fact{snapshot(truth, 0, nil)}
		clock := int64(0)
		for range rapid.IntRange(1, 4).Draw(t, "updates") {
			if sometimes(t, 40, "ticks") {
				clock++
			}
			was := map[string]onceward.Value{}
			for part, value := range truth {
				if !sometimes(t, 50, "changes "+part) {
					continue
				}
				next := onceward.Int(rapid.Int64Range(1, 3).Draw(t, part))
				if part == onceward.StatusPart {
					next = onceward.String(rapid.SampledFrom(kind.States[0]).Draw(t, part))
				}
				if !next.Equal(value) {
					was[part], truth[part] = value, next
				}
			}
			history = append(history, snapshot(truth, clock, was))
		}
		for _, order := range orders(len(history)) {
			v := viewOf(onceward.Fold(kind, permute(history, order)))
			for part, value := range truth {
				want := value.JSON()
				if part == onceward.StatusPart {
					want, _ = value.Text()
				}
				if !v.tie[part] && v.values[part] != want {
					t.Fatalf("order %v: %s is %s, silently, and the truth is %s", order, part, v.values[part], want)
				}
			}
		}
	})
}

func snapshot(truth map[string]onceward.Value, clock int64, was map[string]onceward.Value) onceward.Fact {
	f := onceward.Fact{Kind: "thing", Key: "1", Time: onceward.Some(clock)}
	f.Status, _ = truth[onceward.StatusPart].Text()
	for _, part := range []string{"a", "b"} {
		f.Fields = append(f.Fields, onceward.Part{Field: part, Value: truth[part]})
	}
	for part, value := range was {
		f.Was = append(f.Was, onceward.Part{Field: part, Value: value})
	}
	return f
}

// TestIncrementalOnVectors runs the published sets in many orders.
func TestIncrementalOnVectors(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	for i, v := range loadVectors(t) {
		kind := v.kind(t)
		facts := v.facts(t, kind)
		for range 24 {
			chance.Shuffle(len(facts), func(i, j int) { facts[i], facts[j] = facts[j], facts[i] })
			row := &onceward.Row{}
			for n := range facts {
				f := facts[n]
				if _, err := row.Add(kind, &f, false, func() ([]onceward.Fact, error) { return facts[:n], nil }); err != nil {
					t.Fatal(err)
				}
				if got, want := rowText(row), rowText(onceward.Fold(kind, facts[:n+1])); got != want {
					t.Fatalf("vector %d after fact %d:\n got %s\nwant %s", i, n, got, want)
				}
			}
		}
	}
}

// TestLocalFields: local fields go by receipt, whatever the clocks say, and no
// fact of a sender can reach them.
func TestLocalFields(t *testing.T) {
	kind, err := onceward.NewKind(onceward.Kind{Name: "job", States: [][]string{{"queued"}, {"done"}}, Order: []onceward.Component{onceward.Rank}})
	if err != nil {
		t.Fatal(err)
	}
	put := func(value onceward.Value) onceward.Fact {
		return onceward.Fact{Kind: "job", Key: "1", Hint: true, Status: "queued", Local: []onceward.Part{{Field: "user", Value: value}}}
	}
	done := onceward.Fact{Kind: "job", Key: "1", Status: "done", Fields: []onceward.Part{{Field: "user", Value: onceward.Int(9)}}}
	row := &onceward.Row{}
	var arrived []onceward.Fact
	add := func(f onceward.Fact) onceward.Step {
		t.Helper()
		step, err := row.Add(kind, &f, false, func() ([]onceward.Fact, error) { return arrived, nil })
		if err != nil {
			t.Fatal(err)
		}
		arrived = append(arrived, f)
		return step
	}
	add(done)
	if step := add(put(onceward.Int(1))); step.Verdict != onceward.Applied || step.Changed {
		t.Errorf("a registration after the callback: %+v, want applied and no change", step)
	}
	add(put(onceward.Int(2)))
	if got, want := string(row.Data()), `{"user":9,"local":{"user":2}}`; got != want {
		t.Errorf("data %s, want %s", got, want)
	}
	if step := add(put(onceward.Int(2))); step.Verdict != onceward.Stale {
		t.Errorf("the same local fields again: %v, want stale: its status is older and it tells nothing new", step.Verdict)
	}
	add(put(onceward.Null))
	if got, want := string(row.Data()), `{"user":9}`; got != want || row.Status != "done" {
		t.Errorf("data %s, status %s; want %s, done", got, row.Status, want)
	}
	if !strings.Contains(rowText(onceward.Fold(kind, arrived)), string(row.Data())) {
		t.Errorf("Fold disagrees: %s", rowText(onceward.Fold(kind, arrived)))
	}
}

// TestTickSettledLate: a contested tick whose shown value is told again, now as
// a change of the other, is settled, and no longer a tie.
func TestTickSettledLate(t *testing.T) {
	kind := mustKind(onceward.Kind{Name: "thing", States: [][]string{{"on", "off"}}, Order: []onceward.Component{onceward.Time}})
	fact := func(status string, a int64, was ...onceward.Part) onceward.Fact {
		return onceward.Fact{Time: onceward.Some(1), Status: status, Fields: []onceward.Part{{Field: "a", Value: onceward.Int(a)}}, Was: was}
	}
	facts := []onceward.Fact{
		fact("on", 1), fact("off", 2),
		fact("off", 2, onceward.Part{Field: onceward.StatusPart, Value: onceward.String("on")}, onceward.Part{Field: "a", Value: onceward.Int(1)}),
	}
	row := &onceward.Row{}
	for i, want := range []string{"on [] first", "off [status a] tie", "off [] was"} {
		step, err := row.Add(kind, &facts[i], false, func() ([]onceward.Fact, error) { return facts[:i], nil })
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(row.Status, " ", row.Tie(), " ", step.Decided); got != want || step.Verdict != onceward.Applied {
			t.Errorf("after fact %d: %s (%v), want %s (applied)", i, got, step.Verdict, want)
		}
	}
}

// TestOneTickNeedsNoHistory: a job without a clock whose callbacks all tell the
// same status is one tick that grows. Adding to it may not read what came before,
// or one busy entity would slow the commits of all.
func TestOneTickNeedsNoHistory(t *testing.T) {
	row := &onceward.Row{}
	for n := range int64(100) {
		f := song("running")
		f.Fields = []onceward.Part{{Field: "progress", Value: onceward.Int(n)}}
		if _, err := row.Add(songKind, &f, false, nil); err != nil { // nil: a call would panic
			t.Fatal(err)
		}
	}
	if got, want := rowText(row), `status running told running epoch {0 false} tie [progress] data {"progress":99}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
