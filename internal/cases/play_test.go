package cases

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/cli/config"
	"github.com/onceward/onceward/provider"
)

// play is one case on its way on one store.
type play struct {
	verdict

	c       *fieldCase
	lib     *library
	shelf   *shelf
	layout  *layout
	conf    *config.Config
	prefix  string
	suffix  string
	effects map[string]effect
	host    host
	closing func() error // nil if the host closes the store
	gone    []string     // retired secrets
	down    bool         // the store is

	// reference is how the rows ended, nil if they depend on the order.
	reference []string
	conflicts int // of the events, in the same play

	answers []answer
	sent    map[string]bool // bodies
	tables  []string        // as snapshot_tables saw them

	mu     sync.Mutex // over all below
	counts map[string]int64
	done   map[string]time.Time // when the work of an event was done, by its key
}

// notBuilt are the parts that cases call for and that are not there yet. spoils says
// that what is missing may change rows and effects.
var notBuilt = map[string]struct {
	why    string
	spoils bool
}{
	"import_batch":       {"import_batch: events from a list call of the sender cannot be imported yet", true},
	"rebuild":            {"rebuild: rows cannot be made anew from stored events yet", false},
	"reprocess":          {"reprocess: the work of a stored event cannot be done again yet", false},
	"deploy_handler":     {"deploy_handler: stored events cannot be given to a new handler yet", true},
	"run_unhandled":      {"run_unhandled: stored events cannot be given to a new handler yet", true},
	"stub_verify":        {"stub_verify: a sender that is asked whether a delivery is its own is not there yet", true},
	"setup.stub_fetch":   {"stub_fetch: fetching what an event only names is not there yet", true},
	"setup.stub_verify":  {"stub_verify: a sender that is asked whether a delivery is its own is not there yet", false},
	"effect_once":        {"effects that are had once although their process dies before it has noted them are not there yet", true},
	"setup.stub_refused": {"stub_verify: a sender that is asked whether a delivery is its own is not there yet", true},
}

func (v *verdict) notBuilt(part string) {
	missing := notBuilt[part]
	v.lacks(missing.why)
	v.spoilt = v.spoilt || missing.spoils
}

// newPlay makes a play of a case. name tells it from all others on the same store.
func newPlay(c *fieldCase, lib *library, s *shelf, name string) *play {
	return &play{
		verdict: verdict{excepted: map[int]bool{}},
		c:       c, lib: lib, shelf: s, prefix: name + "-", suffix: "." + name,
		sent: map[string]bool{}, counts: map[string]int64{}, done: map[string]time.Time{},
	}
}

// playOut plays a case in the order told, judges it, and plays it in other orders.
func playOut(c *fieldCase, lib *library, s *shelf, name string) *verdict {
	p := newPlay(c, lib, s, name)
	p.note(p.play())
	if p.reference != nil {
		p.playOrders(p.reference)
	}
	return &p.verdict
}

// play plays the case once, in the order told, and judges it.
func (p *play) play() (err error) {
	for _, what := range p.c.Unknown {
		p.lacks(what)
	}
	if len(p.c.Unknown) > 0 {
		p.spoilt = true
		return nil // what is not understood is not played
	}
	if len(p.c.Setup.StubFetch) > 0 {
		p.notBuilt("setup.stub_fetch")
	}
	if text := string(p.c.Setup.StubVerify); text != "" && text != "null" {
		part := "setup.stub_refused"
		if text == `"VERIFIED"` {
			part = "setup.stub_verify"
		}
		p.notBuilt(part)
	}
	if p.layout, err = lay(p.c, p.lib, nil); err != nil {
		return err
	}
	if p.conf, err = p.layout.read(p.lib); err != nil {
		return p.refused(err)
	}
	p.chooseEffects()
	if p.host, err = p.start(); err != nil {
		return err
	}
	err = p.steps()
	if err == nil {
		err = p.host.drain()
	}
	if err == nil {
		p.judge(context.Background())
	}
	if err == nil && p.c.fixed() == "" {
		var v *view
		if v, err = p.look(context.Background()); err == nil {
			p.reference, p.conflicts = v.state(), v.conflicts()
		}
	}
	if p.closing != nil {
		err = errors.Join(err, p.closing())
	}
	return errors.Join(err, p.host.close())
}

// refused is a configuration that is refused at the start. That is right where a
// secret has blanks around it: the case is played on with the secret mended.
func (p *play) refused(err error) error {
	mended := *p.c
	mended.Setup.Secrets = maps.Clone(p.c.Setup.Secrets)
	changed := false
	for name, secret := range mended.Setup.Secrets {
		if trimmed := strings.TrimSpace(secret); trimmed != secret && trimmed != "" {
			mended.Setup.Secrets[name], changed = trimmed, true
		}
	}
	if !changed {
		return fmt.Errorf("the configuration is refused: %w", err)
	}
	p.c = &mended
	return p.play()
}

func (p *play) chooseEffects() {
	p.effects = map[string]effect{}
	known, looked := effects(), checks()
	kinds := kindsOf(p.conf)
	for name := range p.c.Expect.Effects {
		e, ok := known[name]
		if !ok {
			e, ok = named(name, kinds, p.c.mainKind())
		}
		switch _, check := looked[name]; {
		case check:
		case !ok:
			p.lacks("the effect " + name)
		default:
			p.effects[name] = e
		}
	}
	if p.c.wants("needs_review") {
		p.effects["review"] = review
	}
	if len(p.effects) == 0 && (p.c.Setup.FailHandler > 0 || p.c.Setup.HandlerDelay > 0) {
		p.effects["handled"] = known["handled"]
	}
}

// mainKind is the kind of the row that the case is about.
func (c *fieldCase) mainKind() string {
	name, _ := c.Expect.Entity["key"].(string)
	kind, _, _ := strings.Cut(name, "/")
	return ourKind(kind)
}

// wants reports whether some row of the case has a member of a name.
func (c *fieldCase) wants(member string) bool {
	return slices.ContainsFunc(append(c.Expect.Entities, c.Expect.Entity), func(w wantedRow) bool {
		_, ok := w[member]
		return ok
	})
}

func (p *play) start() (host, error) {
	cfg := hostConfig{
		c: p.c, lib: p.lib, layout: p.layout, prefix: p.prefix, suffix: p.suffix, effects: p.effects, open: p.shelf.open, had: p.had,
	}
	if slices.ContainsFunc(p.c.Steps, func(s step) bool { return s.Op == "kill_9" || s.Op == "arm_crash" }) {
		return startRemote(cfg, p.shelf.dir, p.shelf.location)
	}
	return startLocal(cfg)
}

// had notes an effect.
func (p *play) had(name string, c onceward.Change, at time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[name]++
	p.done[c.Event.Key] = at
	return nil
}

func (p *play) counted(name string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[name]
}

// moment is one thing of the timeline: deliveries that start at once, or an op.
type moment struct {
	atMS       int64
	deliveries []int // steps
	op         *step
}

// timeline orders the steps. What begins a transaction of the application is done
// when that transaction ends.
func timeline(steps []step) []moment {
	var all []moment
	groups := map[string]int{}
	for i := range steps {
		s := &steps[i]
		m := moment{atMS: s.AtMS}
		switch {
		case s.Op == "local_tx_begin":
			m.atMS, m.op = s.AtMS+s.CommitAfterMS, s
		case s.Op != "":
			m.op = s
		case s.group() != "":
			if at, ok := groups[s.group()]; ok {
				all[at].deliveries = append(all[at].deliveries, i)
				continue
			}
			groups[s.group()] = len(all)
			m.deliveries = []int{i}
		default:
			m.deliveries = []int{i}
		}
		all = append(all, m)
	}
	slices.SortStableFunc(all, func(a, b moment) int { return cmp.Compare(a.atMS, b.atMS) })
	return all
}

// restful is how long a gap must be for work to be done in it.
const restful = 1000

func (p *play) steps() error {
	moments := timeline(p.c.Steps)
	answers := map[int]answer{}
	for i, m := range moments {
		if err := p.host.at(m.atMS); err != nil {
			return err
		}
		if m.op != nil {
			if err := p.host.rest(); err != nil {
				return err
			}
			if err := p.do(m.op); err != nil {
				return err
			}
			continue
		}
		if err := p.deliver(m, answers); err != nil {
			return err
		}
		if i+1 < len(moments) && moments[i+1].atMS-m.atMS >= restful {
			if err := p.host.rest(); err != nil {
				return err
			}
		}
	}
	for i := range p.c.Steps {
		if p.c.Steps[i].Op == "" {
			p.answers = append(p.answers, answers[i])
		}
	}
	return nil
}

// deliver sends the deliveries of a moment, all at once. The store having failed
// before, it waits until the inbox takes deliveries again, as time does.
func (p *play) deliver(m moment, answers map[int]answer) error {
	var mu sync.Mutex
	var all sync.WaitGroup
	var failed error
	s := &signer{secrets: p.secrets(), now: time.Unix(baseTime, 0).Add(time.Duration(m.atMS) * time.Millisecond)}
	for _, i := range m.deliveries {
		r, err := prepare(&p.c.Steps[i].delivery, s)
		if err != nil {
			return err
		}
		p.sent[string(r.body)] = true
		all.Go(func() {
			w := &wire{address: p.host.public()}
			defer w.close()
			a, err := w.send(r)
			mu.Lock()
			defer mu.Unlock()
			answers[i] = a
			if err != nil {
				failed = fmt.Errorf("delivery %d: %w", i+1, err)
			}
		})
	}
	all.Wait()
	if failed != nil {
		return failed
	}
	for _, i := range m.deliveries {
		if a := answers[i]; a.status/100 == 5 && !p.down {
			return p.host.ready()
		}
	}
	return nil
}

// secrets are those that deliveries are signed with.
func (p *play) secrets() map[string]string {
	secrets := map[string]string{}
	for name := range p.c.Setup.Secrets {
		secrets[name] = p.layout.env["SECRET_"+name]
	}
	return secrets
}

// do does an op.
func (p *play) do(s *step) error {
	switch s.Op {
	case "restart_all":
		return p.host.restart(p.layout, p.gone)
	case "retire_secret":
		if _, ok := p.c.Setup.Secrets[s.Name]; !ok {
			return unsupported("retire_secret of " + s.Name + ", which setup.secrets does not have")
		}
		p.gone = append(p.gone, s.Name)
		l, err := lay(p.c, p.lib, p.gone)
		if err != nil {
			return err
		}
		return p.host.restart(l, p.gone)
	case "kill_9":
		return p.host.kill()
	case "arm_crash":
		point, err := crashPoint(s.Point)
		if err != nil {
			return err
		}
		if point == "before_settle" {
			p.notBuilt("effect_once")
		}
		return p.host.fault(fault{Crash: point})
	case "pause_workers":
		return p.host.pause()
	case "resume_workers":
		return p.host.resume()
	case "advance_clock":
		return p.host.advance(s.MS)
	case "store_down":
		p.down = true
		return p.host.fault(fault{Down: true})
	case "store_up":
		p.down = false
		if err := p.host.fault(fault{}); err != nil {
			return err
		}
		return p.host.ready()
	case "fail_next_store_write":
		return p.host.fault(fault{Next: max(1, s.Count)})
	case "local_write", "local_tx_begin":
		return p.write(s)
	case "snapshot_tables":
		return p.snapshot()
	case "compare_tables":
		return p.compare()
	}
	p.notBuilt(s.Op)
	return nil
}

// crashPoints are where a process can be made to die.
var crashPoints = map[string][]string{
	"before_commit": {"before_commit", "before_store", "before_write", "before_insert", "before_persist"},
	"after_commit": {
		"after_commit", "after_store", "after_write", "after_insert", "before_ack", "before_answer", "before_response", "before_enqueue",
		"after_store_before_ack", "after_commit_before_ack", "after_insert_before_ack", "after_store_before_enqueue", "after_commit_before_enqueue",
	},
	"after_claim": {"after_claim", "after_lease", "after_ack", "after_response", "before_handler", "before_effect", "before_work"},
	"before_settle": {
		"before_settle", "after_effect", "after_handler", "before_done", "before_mark_done", "after_effect_before_done",
		"after_effect_before_mark", "after_effect_before_commit", "after_handler_before_done",
	},
}

func crashPoint(point string) (string, error) {
	for ours, names := range crashPoints {
		if slices.Contains(names, strings.ReplaceAll(strings.ToLower(point), "-", "_")) {
			return ours, nil
		}
	}
	return "", unsupported("arm_crash " + point)
}

// write writes fields of the application.
func (p *play) write(s *step) error {
	ref, fields, err := p.ownRow(s)
	if err != nil {
		return err
	}
	return p.host.put(ref, fields)
}

// ownRow is the row that the application writes to, and its fields as JSON: a row
// that has no key names it by a member of its kind.
func (p *play) ownRow(s *step) (ref onceward.Ref, fields string, err error) {
	rest := map[string]json.RawMessage{}
	var kind, key string
	for name, raw := range s.Row {
		var text string
		_ = json.Unmarshal(raw, &text) // a text, or a field like any other
		switch {
		case name == "key":
			kind, key, _ = strings.Cut(text, "/")
		case s.Row["key"] == nil && kindsOf(p.conf)[name] != nil:
			kind, key = name, text
		default:
			rest[name] = raw
		}
	}
	if key == "" {
		return ref, "", unsupported("local_write of a row of " + s.Table + " that names no row")
	}
	text, err := json.Marshal(rest)
	if err != nil {
		return ref, "", err
	}
	for i := range p.conf.Sources {
		source := &p.conf.Sources[i]
		if source.Provider.Kinds()[ourKind(kind)] == nil {
			continue
		}
		scope, err := p.scope(source)
		return onceward.Ref{Source: p.prefix + source.Name, Scope: scope, Kind: ourKind(kind), Key: key}, string(text), err
	}
	return ref, "", unsupported("local_write of a " + kind + ", which no source of the case has")
}

// scope is that of the first event of a source that has one: the application knows
// whose account it works with.
func (p *play) scope(source *config.Source) (onceward.Scope, error) {
	for i := range p.c.Steps {
		d := &p.c.Steps[i].delivery
		if p.c.Steps[i].Op != "" {
			continue
		}
		if name, rest, ok := d.endpoint(); !ok || strings.TrimSuffix("/in/"+name+"/"+rest, "/") != source.Path {
			continue
		}
		r, err := prepare(d, &signer{secrets: p.secrets(), now: time.Unix(baseTime, 0)})
		if err != nil {
			return onceward.Scope{}, err
		}
		header := map[string][]string{}
		for _, line := range r.headers {
			header[line.name] = append(header[line.name], line.value)
		}
		for _, reading := range source.Provider.Read(&provider.Request{Method: d.Method, URL: "http://localhost" + d.Path, Header: header, Body: r.body}) {
			if reading.Event.Scope != (onceward.Scope{}) {
				return reading.Event.Scope, nil
			}
		}
	}
	return onceward.Scope{}, nil
}

func (p *play) look(ctx context.Context) (*view, error) {
	sources := map[string]map[string]*onceward.Kind{}
	for _, s := range p.conf.Sources {
		sources[p.prefix+s.Name] = s.Provider.Kinds()
	}
	if p.shelf.store == nil { // another process serves
		if _, err := p.shelf.open(); err != nil {
			return nil, err
		}
		p.closing = p.shelf.store.Close
	}
	return look(ctx, p.shelf.store, p.shelf.store, sources, p.suffix)
}

// snapshot remembers all rows, compare wants them to be the same.
func (p *play) snapshot() error {
	v, err := p.look(context.Background())
	if err != nil {
		return err
	}
	p.tables = v.state()
	return nil
}

func (p *play) compare() error {
	before := p.tables
	if err := p.snapshot(); err != nil {
		return err
	}
	if !slices.Equal(before, p.tables) {
		p.fail("compare_tables: the rows are\n%s\nand were\n%s", strings.Join(p.tables, "\n"), strings.Join(before, "\n"))
	}
	return nil
}

// waited is how long the work of an event took, from its arrival, by the clock of
// the case.
func (p *play) waited(v *view, key string) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range v.events {
		if at, done := p.done[key]; done && e.Key == key {
			return at.Sub(e.Delivery.At), true
		}
	}
	return 0, false
}
