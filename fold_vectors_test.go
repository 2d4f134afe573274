package onceward_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward"
)

// vector is one set of facts in order of arrival and the row that an
// independent reference gives for it.
type vector struct {
	Why  string
	Kind struct {
		States   []json.RawMessage
		Terminal []string
		Order    []string
		Fields   map[string]string
	}
	Facts []struct {
		Epoch, Time, Sequence *int64
		Hint                  bool
		Status                string
		Fields                map[string]json.RawMessage
		Was                   map[string]json.RawMessage
	}
	Row struct {
		Status *string
		Fields map[string]any
		Tie    []string
		Epoch  *int64
	}
}

func loadVectors(t *testing.T) []vector {
	t.Helper()
	text, err := os.ReadFile("testdata/fold.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) != 400 {
		t.Fatalf("%d vectors, want 400", len(vectors))
	}
	return vectors
}

func (v vector) kind(t *testing.T) *onceward.Kind {
	t.Helper()
	k := onceward.Kind{Name: "vector", Terminal: v.Kind.Terminal, Fields: map[string]onceward.Mode{}}
	for _, raw := range v.Kind.States {
		var one string
		var group []string
		if json.Unmarshal(raw, &one) == nil {
			group = []string{one}
		} else if err := json.Unmarshal(raw, &group); err != nil {
			t.Fatal(err)
		}
		k.States = append(k.States, group)
	}
	components := map[string]onceward.Component{"time": onceward.Time, "rank": onceward.Rank, "sequence": onceward.Sequence}
	for _, c := range v.Kind.Order {
		k.Order = append(k.Order, components[c])
	}
	modes := map[string]onceward.Mode{"latest": onceward.Latest, "max": onceward.Max, "sum": onceward.Sum, "map": onceward.Map}
	for name, mode := range v.Kind.Fields {
		k.Fields[name] = modes[mode]
	}
	kind, err := onceward.NewKind(k)
	if err != nil {
		t.Fatal(err)
	}
	return kind
}

func mustJSON(t *testing.T, text []byte) onceward.Value {
	t.Helper()
	v, err := onceward.JSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func optional(n *int64) onceward.Opt {
	if n == nil {
		return onceward.Opt{}
	}
	return onceward.Some(*n)
}

func (v vector) facts(t *testing.T, kind *onceward.Kind) []onceward.Fact {
	t.Helper()
	var facts []onceward.Fact
	for _, j := range v.Facts {
		f := onceward.Fact{Rule: "r", Kind: "vector", Key: "1", Epoch: optional(j.Epoch), Time: optional(j.Time), Sequence: optional(j.Sequence), Hint: j.Hint, Status: j.Status}
		for name, raw := range j.Fields {
			if !kind.Fields[name].Keyed() {
				f.Fields = append(f.Fields, onceward.Part{Field: name, Value: mustJSON(t, raw)})
				continue
			}
			var by map[string]json.RawMessage
			if err := json.Unmarshal(raw, &by); err != nil {
				t.Fatal(err)
			}
			for key, value := range by {
				f.Fields = append(f.Fields, onceward.Part{Field: name, By: key, Value: mustJSON(t, value)})
			}
		}
		for name, raw := range j.Was {
			p := onceward.Part{Field: name, Value: mustJSON(t, raw)}
			if len(name) > 2 && name[1] == '.' {
				p.Field, p.By = name[:1], name[2:]
			}
			f.Was = append(f.Was, p)
		}
		facts = append(facts, f)
	}
	return facts
}

// shown is what a row shows, for comparison.
type shown struct {
	Status string
	Fields map[string]any
	Tie    []string
	Epoch  onceward.Opt
}

func show(t *testing.T, r *onceward.Row) shown {
	t.Helper()
	s := shown{Status: r.Told, Tie: r.Tie(), Epoch: r.Epoch, Fields: map[string]any{}}
	if err := json.Unmarshal(r.Data(), &s.Fields); err != nil {
		t.Fatal(err)
	}
	return s
}

func (v vector) want() shown {
	want := shown{Fields: v.Row.Fields, Epoch: optional(v.Row.Epoch)}
	if v.Row.Status != nil {
		want.Status = *v.Row.Status
	}
	if want.Fields == nil {
		want.Fields = map[string]any{}
	}
	if len(v.Row.Tie) > 0 {
		want.Tie = v.Row.Tie
	}
	return want
}

var sortTie = cmp.Transformer("set", func(tie []string) map[string]bool {
	set := map[string]bool{}
	for _, part := range tie {
		set[part] = true
	}
	return set
})

func TestFoldVectors(t *testing.T) {
	for i, v := range loadVectors(t) {
		kind := v.kind(t)
		got := show(t, onceward.Fold(kind, v.facts(t, kind)))
		if diff := cmp.Diff(v.want(), got, sortTie); diff != "" {
			t.Errorf("vector %d (%s): row differs (-want +got):\n%s", i, v.Why, diff)
		}
	}
}
