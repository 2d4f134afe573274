package cases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider"
)

// verdict is what came of a case.
type verdict struct {
	// wrong is what differed, missing what is not supported.
	wrong, missing []string
	// spoilt says that what is not supported may have changed events, rows and
	// effects, so that they are not compared.
	spoilt bool
	// spoiltEffects says so of the effects alone.
	spoiltEffects bool
	// excepted are the exceptions that were needed, by their place.
	excepted map[int]bool
}

func (v *verdict) fail(format string, args ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

func (v *verdict) lacks(what string) {
	if !slices.Contains(v.missing, what) {
		v.missing = append(v.missing, what)
	}
}

// note takes an error in: a thing that is not supported, or a failure.
func (v *verdict) note(err error) {
	var missing unsupported
	switch {
	case err == nil:
	case errors.As(err, &missing):
		v.lacks(string(missing))
	default:
		v.fail("%v", err)
	}
}

func (v *verdict) word() string {
	switch {
	case len(v.wrong) > 0:
		return "fail"
	case len(v.missing) > 0:
		return "not supported"
	}
	return "pass"
}

// judge compares what a play has left behind with what its case wants.
func (p *play) judge(ctx context.Context) {
	v, err := p.look(ctx)
	if err != nil {
		p.fail("%v", err)
		return
	}
	p.judgeAnswers()
	p.note(p.judgeBytes(ctx, v))
	if p.spoilt {
		return
	}
	p.judgeStored(v)
	p.note(p.judgeRows(ctx, v))
	if !p.spoiltEffects {
		p.judgeEffects(v)
	}
	for _, check := range noted[caseNumber(p.c.ID)] {
		p.note(check(ctx, p, v))
	}
	p.judgeCounts(ctx, v)
}

// statusFits compares an answer with a word as 2xx, 401|400, conn_reset.
func statusFits(a answer, want string) (bool, error) {
	for word := range strings.SplitSeq(want, "|") {
		word = strings.TrimSpace(word)
		class := len(word) == 3 && strings.HasSuffix(word, "xx") && word[0] >= '1' && word[0] <= '5'
		exact := len(word) == 3 && strings.Trim(word, "0123456789") == ""
		switch {
		case word == "conn_reset":
		case !class && !exact:
			return false, unsupported("the answer " + word)
		}
		got := a.String()
		if word == got || class && !a.reset && got[0] == word[0] {
			return true, nil
		}
	}
	return false, nil
}

func (p *play) judgeAnswers() {
	want := p.c.Expect.HTTP
	if want == nil {
		return // the case does not say
	}
	if len(want) != len(p.answers) {
		p.fail("%d answers, want %d", len(p.answers), len(want))
		return
	}
	var methods []string
	for i := range p.c.Steps {
		if p.c.Steps[i].Op == "" {
			methods = append(methods, p.c.Steps[i].Method)
		}
	}
	for i, a := range p.answers {
		fits, err := statusFits(a, want[i])
		p.note(err)
		if !fits && err == nil {
			if what := fmt.Sprintf("http[%d]", i); !p.isException(what, a.String(), methods[i]) {
				p.fail("%s is %s, want %s", what, a, want[i])
			}
		}
		if !a.reset && a.status/100 == 3 {
			p.fail("delivery %d was redirected", i+1)
		}
		if limit := p.c.Expect.MaxAckMS; limit > 0 && a.took.Milliseconds() > limit {
			p.fail("delivery %d was answered after %v, want %d ms at most", i+1, a.took, limit)
		}
	}
}

// differs notes a difference, unless it is an exception.
func (p *play) differs(what, got, want string) {
	if p.isException(what, got, "") {
		return
	}
	p.fail("%s is %s, want %s", what, got, want)
}

// judgeStored counts the events that were sent and kept. A repeat whose other bytes
// are kept beside is none.
func (p *play) judgeStored(v *view) {
	n := int64(0)
	for _, e := range v.events {
		if e.Origin == onceward.Sent && e.Outcome != onceward.Duplicate {
			n++
		}
	}
	want, err := readCount(p.c.Expect.Stored)
	switch {
	case len(p.c.Expect.Stored) == 0: // the case does not say
	case err != nil:
		p.lacks("expect.events_stored: " + err.Error())
	case !want.has(n):
		p.differs("events_stored", fmt.Sprint(n), want.String())
	}
}

// judgeBytes wants each kept body to be one that was sent.
func (p *play) judgeBytes(ctx context.Context, v *view) error {
	for _, e := range v.events {
		if e.Origin != onceward.Sent {
			continue
		}
		whole, err := v.reader.Event(ctx, e.ID)
		if err != nil {
			return err
		}
		if !p.sent[string(whole.Delivery.Body)] {
			p.fail("the body of event %s is not one that was sent", e.Key)
		}
	}
	return nil
}

// judgeRows compares the wanted rows.
func (p *play) judgeRows(ctx context.Context, v *view) error {
	for _, want := range append([]wantedRow{p.c.Expect.Entity}, p.c.Expect.Entities...) {
		if len(want) == 0 {
			continue
		}
		name, ok := want["key"].(string)
		if !ok {
			return unsupported("a row without a key")
		}
		kind, id, _ := strings.Cut(name, "/")
		var err error
		switch kind {
		case "none":
		case "event":
			err = p.judgeEvent(ctx, v, id, want)
		case "report":
			err = p.judgeReport(ctx, v, want)
		default:
			err = p.judgeRow(ctx, v, name, want)
		}
		p.note(err)
	}
	for _, line := range p.c.Expect.Report {
		p.note(p.judgeReport(ctx, v, line))
	}
	return nil
}

func (p *play) judgeReport(ctx context.Context, v *view, want wantedRow) error {
	wrong, err := v.report(ctx, want)
	p.wrong = append(p.wrong, wrong...)
	return err
}

// judgeRow compares one row, in each source that has it.
func (p *play) judgeRow(ctx context.Context, v *view, name string, want wantedRow) error {
	rows := v.find(name)
	if len(rows) == 0 {
		kind, _, _ := strings.Cut(name, "/")
		if err := p.unread(ctx, v, kind); err != nil {
			p.spoiltEffects = true
			return err
		}
		p.differs(name, "no row", "one")
	}
	for _, row := range rows {
		for _, member := range slices.Sorted(maps.Keys(want)) {
			what := name + " " + member
			switch member {
			case "key":
			case "status":
				word := fmt.Sprint(want["status"])
				status, err := v.status(ctx, row)
				if err != nil {
					return err
				}
				switch {
				case word == "n/a" || word == "none" || statusIs(status, word):
				case !isWord(row.kind, word):
					p.lacks(fmt.Sprintf("the status %s of a %s, which has no such state", word, row.Kind))
				default:
					p.differs(what, status, word)
				}
			default:
				got, err := v.member(ctx, row, member)
				p.note(err)
				if err == nil && !same(member, got, want[member]) {
					p.differs(what, fmt.Sprint(got), fmt.Sprint(want[member]))
				}
			}
		}
	}
	return nil
}

// isWord reports whether a kind has a state that a case may mean by a word.
func isWord(k *onceward.Kind, word string) bool {
	return k == nil || slices.ContainsFunc(strings.Split(word, "_or_"), func(w string) bool { return hasStatus(k, ourWord(w)) })
}

// unread says why there can be no row of a kind: no source has the kind, or the
// events came from a sender that is described here, not in the catalogue, and the
// description has no rule for them.
func (p *play) unread(ctx context.Context, v *view, kind string) error {
	if kindsOf(p.conf)[ourKind(kind)] == nil {
		return unsupported("the kind " + kind + ", which no source of the case has")
	}
	for _, s := range p.layout.sources {
		if slices.Contains(provider.Catalog(), s.file()) {
			return nil
		}
	}
	for _, e := range v.events {
		facts, err := v.reader.EventFacts(ctx, e.ID)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(facts, func(f onceward.StoredFact) bool { return f.Kind == ourKind(kind) || f.Kind == "" }) {
			return nil
		}
	}
	return unsupported("a " + kind + " of these events, for which testdata/sources has no rule")
}

// judgeEvent compares what became of an event.
func (p *play) judgeEvent(ctx context.Context, v *view, id string, want wantedRow) error {
	for member := range want {
		if member != "key" && member != "status" {
			p.lacks("the event's " + member)
		}
	}
	found, err := v.event(ctx, id)
	if err != nil {
		return err
	}
	word := fmt.Sprint(want["status"])
	if len(found) == 0 {
		p.differs("event/"+id, "not kept", word)
	}
	for _, e := range found {
		is, err := v.eventIs(ctx, e, word)
		if errors.Is(err, errNoWord) {
			return unsupported("the status " + word + " of an event")
		}
		if !is {
			p.differs("event/"+id+" status", fmt.Sprintf("%d facts, %d held, %s", e.Facts, e.Held, e.Outcome), word)
		}
	}
	return nil
}

func (p *play) judgeEffects(v *view) {
	for _, name := range slices.Sorted(maps.Keys(p.c.Expect.Effects)) {
		want, err := readCount(p.c.Expect.Effects[name])
		if err != nil {
			p.lacks("side_effects." + name + ": " + err.Error())
			continue
		}
		var got int64
		if check, is := checks()[name]; is {
			got = int64(check(v.rows))
		} else if _, known := p.effects[name]; known {
			got = p.counted(name)
		} else {
			continue // it was noted when the play began
		}
		if !want.has(got) {
			p.differs("side_effects."+name, fmt.Sprint(got), want.String())
		}
	}
}

// judgeCounts compares the remaining numbers of a case.
func (p *play) judgeCounts(ctx context.Context, v *view) {
	e := &p.c.Expect
	held, dead, deliveries := int64(0), int64(0), int64(0)
	for _, stored := range v.events {
		if stored.Held > 0 && stored.Origin == onceward.Sent {
			held++
		}
		if stored.Origin == onceward.Sent && stored.Outcome != onceward.Duplicate { // a repeat, whose other bytes are kept as well
			deliveries += 1 + stored.Repeats
		}
	}
	for _, j := range v.jobs {
		if j.Dead {
			dead++
		}
	}
	for _, c := range []struct {
		name string
		want any
		got  func() (int64, error)
	}{
		{"quarantined", e.Quarantined, func() (int64, error) { return held, nil }}, // listed for a person, in our words: held
		{"dead", e.Dead, func() (int64, error) { return dead, nil }},
		{"deliveries_logged", e.Deliveries, func() (int64, error) { return deliveries, nil }},
		{"rejected", e.Rejected, func() (int64, error) { return p.rejections(ctx, v) }},
	} {
		if c.want == nil {
			continue
		}
		want, err := readCount(c.want)
		if err != nil {
			p.lacks("expect." + c.name + ": " + err.Error())
			continue
		}
		got, err := c.got()
		p.note(err)
		if err == nil && !want.has(got) {
			p.differs(c.name, fmt.Sprint(got), want.String())
		}
	}
	for id, limit := range e.MaxWaitMS {
		if waited, done := p.waited(v, id); !done || waited.Milliseconds() > limit {
			p.fail("the work of %s was done %v after %v, want %d ms at most", id, done, waited, limit)
		}
	}
}

// rejections counts what is in the quarantine, once it is all written.
func (p *play) rejections(ctx context.Context, v *view) (n int64, err error) {
	refused := int64(0)
	for _, a := range p.answers {
		if a.status == 401 {
			refused++
		}
	}
	err = await("the quarantine is written", func() (bool, error) {
		n = 0
		for _, source := range v.sources {
			list, err := v.reader.Rejections(ctx, source, page)
			if err != nil {
				return false, err
			}
			n += int64(len(list))
		}
		return n >= refused, nil
	})
	return n, err
}
