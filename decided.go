package onceward

// decided finds the part by which a fact is best explained, and what decided it.
func (r *Row) decided(k *Kind, f *Fact, told factOrders, before *Row, v Verdict) (order, against Order, word string) {
	if k.tellsStatus(f) {
		order, against = told.status, before.status.order
		return order, against, decidedBy(k, order, against, v != Applied && r.Told == f.Status, r.status.tie, true)
	}
	order = told.field
	for _, p := range f.Fields {
		i, ok := before.find(p.Field, p.By)
		j, now := r.find(p.Field, p.By)
		if !ok {
			if now {
				return order, "", "first"
			}
			continue
		}
		was := &before.parts[i]
		if was.mode == Max {
			if now && !r.parts[j].value.Equal(was.value) {
				return order, "", "max"
			}
			continue
		}
		changed := !now || !r.parts[j].value.Equal(was.value) || r.parts[j].tie != was.tie
		if v == Applied && changed || v == Stale && order < was.order || v == Same {
			tie := now && r.parts[j].tie
			same := v != Applied && was.value.Equal(p.Value)
			return order, was.order, decidedBy(k, order, was.order, same, tie, false)
		}
	}
	if len(f.Local) > 0 {
		return order, "", "local"
	}
	return order, "", "same"
}

func decidedBy(k *Kind, order, against Order, same, tie, status bool) string {
	switch {
	case against == "":
		return "first"
	case order != against:
		return k.Decider(order, against, status)
	case tie:
		return "tie"
	case same:
		return "same"
	default:
		return "was"
	}
}
