// Package why says in words why an entity is in its state: its status and the
// fact or the condition that gave it, and each fact in order of arrival with its
// order, its verdict and what decided it. It is what `entities show` prints.
package why

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/cli/screen"
	"github.com/onceward/onceward/internal/server/v1"
)

// Story is what there is to tell about an entity.
type Story struct {
	v1.History
	// Repeats maps an event's id to how often it was delivered again.
	Repeats map[string]int64
	// All shows every fact; else the newest ones.
	All bool
}

// shownFacts is how many facts are shown unless all are asked for.
const shownFacts = 12

// Lines returns the story as lines for a terminal.
func (s Story) Lines(colour screen.Colour) []string {
	lines := append(s.head(colour), s.fields()...)
	lines = append(lines, s.because()...)
	if len(s.Facts) == 0 {
		return lines
	}
	lines = append(lines, "")
	return append(lines, s.table()...)
}

// head is kind and key, the status, where it belongs and how often it changed: in
// columns, or closer, or on two lines, as it fits.
func (s Story) head(colour screen.Colour) []string {
	e := s.Entity
	name := screen.Cut(screen.Clean(e.Kind+" "+e.Key), screen.Width)
	where := e.Source
	if e.Scope.Scope != "" {
		where += ", " + scopeWords(e.Scope)
	}
	where = screen.Clean(where)
	status := screen.Clean(e.Status)
	if status == "" {
		status = "no status yet"
	}
	changes := fmt.Sprintf("%d changes", e.Version)
	if e.Version == 1 {
		changes = "1 change"
	}
	columns := fmt.Sprintf("%-38s  %-18s  %-22s  %s", name, status, where, changes)
	if utf8.RuneCountInString(columns) <= screen.Width {
		return []string{strings.Replace(columns, "  "+status+" ", "  "+colour.Strong(status)+" ", 1)}
	}
	const apart = "   "
	closer := strings.Join([]string{name, colour.Strong(status), where, changes}, apart)
	if utf8.RuneCountInString(name+status+where+changes)+3*len(apart) <= screen.Width {
		return []string{closer}
	}
	where = screen.Cut(where, screen.Width-2-len(status+changes)-2*len(apart))
	return []string{name, "  " + strings.Join([]string{colour.Strong(status), where, changes}, apart)}
}

func scopeWords(s v1.Scope) string {
	switch {
	case s.Account == "":
		return s.Mode
	case s.Mode == "":
		return "account " + s.Account
	}
	return "account " + s.Account + ", " + s.Mode
}

// fields are the row's, several on a line.
func (s Story) fields() []string {
	var lines []string
	line := indent
	for _, f := range screen.Fields(s.Entity.Data) {
		cell := f.Name + " " + f.Value
		if len([]rune(line))+3+len([]rune(cell)) > screen.Width && line != indent {
			lines, line = append(lines, line), indent
		}
		if line != indent {
			line += "   "
		}
		line += cell
	}
	if line != indent {
		lines = append(lines, line)
	}
	return lines
}

// because says which condition or which fact gave the status, and what a tie
// means.
func (s Story) because() []string {
	e := s.Entity
	var reasons []string
	told := e.Told
	if told == "" {
		told = e.Status
	}
	if s.Why != "" {
		condition := strings.TrimPrefix(s.Why, e.Status+": ")
		reasons = append(reasons, fmt.Sprintf("%s: %s   (kind %s, derive)", e.Status, condition, e.Kind))
		if where := s.where(condition); where != "" {
			reasons = append(reasons, "where "+where)
		}
	}
	if f := s.bySeq(s.Telling); f != nil {
		said := fmt.Sprintf("%s, said by %s %s (rule %s)", told, eventName(f), s.tail(f), f.Rule)
		if s.Why != "" {
			said = "before that: " + said
		}
		reasons = append(reasons, said)
	}
	if e.Epoch != nil {
		reasons = append(reasons, fmt.Sprintf("epoch %d: facts of lower ones count no more", *e.Epoch))
	}
	if len(e.Tie) > 0 {
		reasons = append(reasons, fmt.Sprintf("tie in %s: the sender's clock cannot tell facts about it apart, so the order of arrival decided", strings.Join(e.Tie, ", ")))
	}
	var lines []string
	lead := "  why   "
	for _, reason := range reasons {
		for i, line := range screen.Wrap(screen.Clean(reason), screen.Width-len(lead)-2) {
			if i > 0 {
				line = "  " + line
			}
			lines = append(lines, lead+line)
			lead = "        "
		}
	}
	return lines
}

// where lists the fields that a condition names, with their values.
func (s Story) where(condition string) string {
	named := strings.FieldsFunc(condition, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	fields := screen.Fields(s.Entity.Data)
	var list []string
	for _, name := range named {
		i := slices.IndexFunc(fields, func(f screen.Field) bool { return f.Name == name })
		if i < 0 {
			continue
		}
		if text := name + " " + fields[i].Value; !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, ", ")
}

// table shows the facts. What decided goes at the end of a line, or where it does
// not fit, below it.
func (s Story) table() []string {
	facts := s.Facts
	if !s.All && len(facts) > shownFacts {
		facts = facts[len(facts)-shownFacts:]
	}
	var t *screen.Table
	for event, rule := 28, 16; event >= 12; event, rule = event-2, max(8, rule-1) {
		if t = s.rows(facts, event, rule); t.Wide()+len(indent) <= screen.Width {
			break // the names of events and rules give way to the verdicts
		}
	}
	var lines []string
	rows := t.Lines(indent)
	wide := 0
	for _, row := range rows {
		wide = max(wide, utf8.RuneCountInString(row))
	}
	below := strings.Index(rows[0], "rule")
	for i, row := range rows {
		if i == 0 {
			lines = append(lines, row)
			continue
		}
		lines = append(lines, beside(row, screen.Clean(s.reason(&facts[i-1])), wide, below)...)
	}
	return append(lines, s.rest(len(s.Facts)-len(facts))...)
}

// rows are the facts, with so many characters for the names of events and rules.
func (s Story) rows(facts []v1.Fact, event, rule int) *screen.Table {
	clock, arrival := s.layouts(facts)
	columns := s.columns(facts)
	t := &screen.Table{Most: []int{0, event, 8, rule, 18}}
	t.Add(append(append([]string{"arrived UTC", "event", "", "rule", "said"}, columns...), "verdict")...)
	for i := range facts {
		f := &facts[i]
		row := []string{f.Received.Format(arrival), eventName(f), s.tail(f), dash(f.Rule), dash(f.Status)}
		for _, c := range columns {
			row = append(row, component(f, c, clock))
		}
		t.Add(append(row, f.Verdict)...)
	}
	return t
}

const indent = "  "

// beside puts a reason at the end of a row, or below it.
func beside(row, reason string, wide, below int) []string {
	if reason == "" {
		return []string{row}
	}
	inline := row + strings.Repeat(" ", wide-utf8.RuneCountInString(row)) + indent + reason
	if utf8.RuneCountInString(inline) <= screen.Width {
		return []string{inline}
	}
	lines := []string{row}
	for _, line := range screen.Wrap(reason, screen.Width-below) {
		lines = append(lines, strings.Repeat(" ", below)+line)
	}
	return lines
}

// The columns of an order.
const (
	columnEpoch    = "epoch"
	columnTime     = "time UTC"
	columnSequence = "seq"
	columnRank     = "rank"
)

// columns are the components by which these facts can be told apart.
func (s Story) columns(facts []v1.Fact) []string {
	told := func(name string) bool {
		return slices.ContainsFunc(facts, func(f v1.Fact) bool { return component(&f, name, time.DateTime) != "-" })
	}
	var names []string
	if told(columnEpoch) {
		names = append(names, columnEpoch)
	}
	if told(columnTime) {
		names = append(names, columnTime)
	}
	decided := slices.ContainsFunc(facts, func(f v1.Fact) bool { return f.Decided == "sequence" })
	if told(columnSequence) && (decided || !told(columnTime)) {
		names = append(names, columnSequence)
	}
	if told(columnRank) {
		names = append(names, columnRank)
	}
	return names
}

func component(f *v1.Fact, name, clock string) string {
	switch name {
	case columnTime:
		if f.Time != nil {
			return f.Time.Format(clock)
		}
	case columnEpoch:
		return number(f.Epoch)
	case columnSequence:
		return number(f.Sequence)
	case columnRank:
		for _, c := range f.Order {
			if c.Name == columnRank && c.Value != nil {
				return fmt.Sprint(c.Value)
			}
		}
	}
	return "-"
}

func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

// layouts choose how finely times are shown: as finely as they were told.
func (s Story) layouts(facts []v1.Fact) (clock, arrival string) {
	clock, arrival = "Jan 02 15:04", "15:04:05.000"
	var years, days []string
	for i := range facts {
		f := &facts[i]
		days = append(days, f.Received.Format(time.DateOnly))
		if f.Time == nil {
			continue
		}
		years = append(years, f.Time.Format("2006"))
		switch {
		case f.Time.Nanosecond() != 0:
			clock = "Jan 02 15:04:05.000"
		case f.Time.Second() != 0 && clock == "Jan 02 15:04":
			clock = "Jan 02 15:04:05"
		}
	}
	slices.Sort(years)
	slices.Sort(days)
	if len(slices.Compact(years)) > 1 {
		clock = "2006 " + clock
	}
	if len(slices.Compact(days)) > 1 {
		arrival = "Jan 02 15:04:05"
	}
	return clock, arrival
}

// reason says what decided a fact's verdict.
func (s Story) reason(f *v1.Fact) string {
	switch f.Verdict {
	case onceward.Held.String():
		return f.Held
	case onceward.Applied.String():
		return s.appliedReason(f)
	case onceward.Stale.String():
		by := "a newer fact"
		if other := s.bySeq(f.AgainstSeq); other != nil {
			by = s.tail(other)
		}
		switch f.Decided {
		case "terminal":
			return by + " said what is never moved on from"
		case "firm":
			return by + " is firm, this may be an old copy"
		case "epoch":
			return "of an older epoch"
		case "rank":
			return by + " ranks higher"
		case "", "same", "first":
			return "what it told is older than what the row shows"
		}
		return fmt.Sprintf("%s is newer (%s)", by, f.Decided)
	}
	return "told nothing new"
}

func (s Story) appliedReason(f *v1.Fact) string {
	var said []string
	switch {
	case f.From != f.To && f.From == "":
		said = append(said, "- -> "+f.To)
	case f.From != f.To:
		said = append(said, f.From+" -> "+f.To)
	}
	var fields []string
	for _, name := range f.Changed {
		if name == onceward.StatusPart {
			continue
		}
		fields = append(fields, name)
	}
	const most = 3
	if len(fields) > 0 && len(said) == 0 {
		list := fields[:min(most, len(fields))]
		for i, name := range list {
			if value, told := f.Fields[name]; told {
				list[i] = name + " " + scalar(value)
			}
		}
		more := ""
		if len(fields) > most {
			more = fmt.Sprintf(" and %d more", len(fields)-most)
		}
		said = append(said, strings.Join(list, ", ")+more)
	}
	if other := s.bySeq(f.AgainstSeq); other != nil && f.Status != "" && f.From == f.To && f.Status != f.To {
		said = append(said, "status older than "+s.tail(other))
	}
	switch f.Decided {
	case "tie":
		said = append(said, "a tie: no clock tells which came first")
	case "was":
		said = append(said, "by former values")
	case "terminal":
		if f.From != f.To {
			said = append(said, "never moved on from")
		}
	}
	return strings.Join(said, "; ")
}

// scalar shows a value as a field's.
func scalar(value any) string {
	text, err := json.Marshal(value)
	if err != nil { // it came from JSON
		return "-"
	}
	return screen.Scalar(text)
}

// rest says what the table leaves out.
func (s Story) rest(hidden int) []string {
	var repeats int64
	for _, n := range s.Repeats {
		repeats += n
	}
	var said []string
	if hidden > 0 {
		said = append(said, fmt.Sprintf("%d earlier", hidden))
	}
	switch {
	case repeats == 1:
		said = append(said, "1 duplicate")
	case repeats > 1:
		said = append(said, fmt.Sprintf("%d duplicates", repeats))
	}
	if len(said) == 0 {
		return nil
	}
	line := "  ...           " + strings.Join(said, ", ")
	if hidden > 0 {
		line = fmt.Sprintf("%-80s--all", line)
	}
	return []string{line}
}

func (s Story) bySeq(seq int64) *v1.Fact {
	for i := range s.Facts {
		if seq != 0 && s.Facts[i].Seq == seq {
			return &s.Facts[i]
		}
	}
	return nil
}

func eventName(f *v1.Fact) string {
	if f.EventType == "" {
		return "event"
	}
	return f.EventType
}

// tail is the end of an event's key, as long as it takes to tell the events of
// this story apart.
func (s Story) tail(f *v1.Fact) string {
	const least, most = 2, 6
	for n := least; n < most; n++ {
		if s.tellsApart(n) {
			return ".." + end(f.EventKey, n)
		}
	}
	return ".." + end(f.EventKey, most)
}

func (s Story) tellsApart(n int) bool {
	keys := map[string]string{}
	for i := range s.Facts {
		f := &s.Facts[i]
		if other, taken := keys[end(f.EventKey, n)]; taken && other != f.EventKey {
			return false
		}
		keys[end(f.EventKey, n)] = f.EventKey
	}
	return true
}

func end(s string, n int) string {
	r := []rune(s)
	return string(r[max(0, len(r)-n):])
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
