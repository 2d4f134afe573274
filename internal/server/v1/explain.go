package v1

import (
	"slices"

	"github.com/onceward/onceward"
)

// explain folds the facts once more, in order of arrival, to say what each of
// them changed and which earlier fact it was compared with. What disagrees with
// the verdict that was recorded, as facts of an older mapping may, is left out.
func explain(out []Fact, facts []onceward.StoredFact, kind *onceward.Kind) {
	row := &onceward.Row{}
	var before []onceward.Fact
	for i := range facts {
		f := &facts[i]
		if f.Verdict == onceward.Held {
			continue
		}
		out[i].AgainstSeq = bearer(facts[:i], f, kind)
		was := shown(row)
		step, err := row.Add(kind, &f.Fact, false, func() ([]onceward.Fact, error) { return before, nil })
		if err != nil { // history cannot fail here
			return
		}
		before = append(slices.Clip(before), f.Fact)
		if step.Verdict == f.Verdict && f.Verdict == onceward.Applied {
			out[i].Changed = changed(was, shown(row))
		}
	}
}

// bearer finds the fact whose order f was compared with.
func bearer(earlier []onceward.StoredFact, f *onceward.StoredFact, kind *onceward.Kind) int64 {
	if f.Against == "" {
		return 0
	}
	for i := len(earlier) - 1; i >= 0; i-- {
		e := &earlier[i]
		if e.Verdict == onceward.Held {
			continue
		}
		if f.Status != "" && e.Status != "" && kind.StatusOrder(&e.Fact) == f.Against ||
			f.Status == "" && kind.FieldOrder(&e.Fact) == f.Against {
			return e.Seq
		}
	}
	return 0
}

// shown lists what a row shows, the status first.
func shown(row *onceward.Row) []onceward.NamedValue {
	list := []onceward.NamedValue{{Name: onceward.StatusPart, Value: onceward.String(row.Status)}}
	list = append(list, row.Fields()...)
	for _, l := range row.Local() {
		list = append(list, onceward.NamedValue{Name: onceward.LocalField + "." + l.Name, Value: l.Value})
	}
	return list
}

// changed names the parts that differ, in the order of now, then those that are
// gone.
func changed(was, now []onceward.NamedValue) []string {
	var names []string
	value := func(list []onceward.NamedValue, name string) onceward.Value {
		i := slices.IndexFunc(list, func(v onceward.NamedValue) bool { return v.Name == name })
		if i < 0 {
			return onceward.Value{}
		}
		return list[i].Value
	}
	for _, v := range now {
		if !value(was, v.Name).Equal(v.Value) {
			names = append(names, v.Name)
		}
	}
	for _, v := range was {
		if value(now, v.Name).IsZero() {
			names = append(names, v.Name)
		}
	}
	return names
}
