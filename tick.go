package onceward

// mark is what the row knows of how a part was decided.
type mark struct {
	order Order // of the facts that decided it; "" if no fact told the part
	// contested says that facts of this order disagree, tie that nothing but
	// arrival could decide between them.
	contested, tie bool
	// former says that one of them told what it replaced, so that one more needs
	// all of them; sink that all of them have a terminal status.
	former, sink bool
}

// needsAll reports whether a fact of the same order cannot join the tick by
// itself: former values are told, and they decide between all of its facts.
func (m mark) needsAll(f *Fact, field, by string, same bool) bool {
	if same && !m.contested {
		return false
	}
	_, told := f.was(field, by)
	return m.former || told
}

// join adds a fact to the tick and reports whether its value is now shown. The
// caller has ruled out needsAll.
func (m *mark) join(k *Kind, f *Fact, field, by string, same bool) (shown bool) {
	_, former := f.was(field, by)
	m.former = m.former || former
	m.sink = m.sink && k.IsTerminal(f.Status)
	if same && !m.contested {
		return false
	}
	m.contested, m.tie = true, true
	return !m.sink // terminals are sinks for each other: the first stands
}

// newMark is the mark of a part that f alone decides.
func newMark(k *Kind, f *Fact, field, by string, order Order) mark {
	_, former := f.was(field, by)
	return mark{order: order, former: former, sink: k.IsTerminal(f.Status)}
}
