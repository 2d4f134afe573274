package provider

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider/internal/expr"
	"github.com/onceward/onceward/provider/internal/tree"
)

// maxKeyBytes bounds a key. A longer key of an event is replaced by the digest, a
// longer key of an entity holds the fact.
const maxKeyBytes = 1024

// Reading is one event of a delivery and what it says.
type Reading struct {
	// Event has its identity: Scope, Key, Type, Time, Item, Digest, Unsigned and
	// DigestKey. ID, Source, Origin and Delivery are the caller's to set.
	Event onceward.Event
	// Facts are in the order of the rules. Those that could not be computed are
	// held, with the reason.
	Facts []onceward.Fact
}

// Read splits a delivery into its events, identifies each and extracts its facts.
// It is pure and does not fail: a body that cannot be read is one event under its
// digest, whose held fact says why, or under its key if headers and the query alone
// say it. Where members of the body are doubled, all
// facts are held, and an event whose key or scope depends on one of them is kept
// under its digest. Unsigned is what Verify found of the same request, else what can be said
// of all.
func (p *Provider) Read(r *Request) []Reading {
	d := p.delivery(r)
	items, reason := d.items()
	unsigned := p.BodyUnsigned()
	if d.accepted != nil {
		unsigned = !d.accepted.BodySigned
	}
	readings := make([]Reading, len(items))
	for i := range items {
		e := d.env()
		if p.split != nil {
			e.setItem(items[i])
		}
		readings[i] = e.read(reason)
		readings[i].Event.Item = i
		readings[i].Event.Unsigned = unsigned
	}
	return readings
}

// held says why the facts of an event are held, and whether its type is certain
// all the same.
type held struct {
	reason  string
	typeToo bool
}

// because keeps the first reason.
func (h *held) because(reason string, typeToo bool) {
	if h.reason == "" {
		h.reason = reason
	}
	h.typeToo = h.typeToo || typeToo
}

// read identifies the event of e's item and extracts its facts; reason says that
// the body or its split could not be read.
func (e *env) read(reason string) Reading {
	p := e.d.p
	var h held
	if reason != "" {
		h.because(reason, true)
	}
	doubled := e.doubled()
	if len(doubled) > 0 {
		h.because(fmt.Sprintf("the body holds the member %s twice, so readers may disagree about it", quotePath(doubled[0])), touched(p.event.typePaths, doubled))
	}
	ev := onceward.Event{}
	e.identifyType(&ev, &h)
	e.identifyTime(&ev, &h)
	scoped := e.identifyScope(&ev, &h)
	e.identifyKey(&ev, scoped && p.event.certain(reason != "", doubled))
	sum := e.sum()
	copy(ev.Digest[:], sum[:])
	return Reading{ev, e.facts(&ev, &h)}
}

func quotePath(path string) string {
	if path == "" {
		return "of more than a hundred names"
	}
	const most = 80
	if len(path) > most {
		path = path[:most] + "…"
	}
	return fmt.Sprintf("%q", onceward.CleanText(path))
}

// doubled lists the doubled members that concern the event: all of the body's. Of
// a split body the paths of the item's own are told below the item too, since keys
// name them so.
func (e *env) doubled() []string {
	all := e.d.content().doubled
	if len(all) == 0 || e.item == nil || e.d.p.split == nil {
		return all
	}
	own, err := tree.Parse(e.item.bytes)
	if err != nil { // the bytes of a part of a body that was read
		return append(slices.Clip(all), "")
	}
	return append(slices.Clip(all), own.Doubled...)
}

func touched(paths []memberPath, doubled []string) bool {
	for _, path := range paths {
		if slices.ContainsFunc(doubled, path.touches) {
			return true
		}
	}
	return false
}

func (e *env) identifyType(ev *onceward.Event, h *held) {
	v, err := e.eval(e.d.p.event.typ)
	text, isText := v.Text()
	switch {
	case err != nil:
		h.because(fmt.Sprintf("event.type cannot be computed: %v", err), true)
	case v.IsNull():
	case !isText:
		h.because("event.type gives no text", true)
	default:
		ev.Type = onceward.CleanText(text)
		e.typ = ev.Type
	}
}

func (e *env) identifyTime(ev *onceward.Event, h *held) {
	t, err := e.instant(e.d.p.event.time)
	if err != nil {
		h.because(fmt.Sprintf("event.time: %v", err), false)
	}
	ev.Time = t
}

// identifyScope computes the scope and reports whether it could be: an event of an
// unknown scope may not claim a key that is another's.
func (e *env) identifyScope(ev *onceward.Event, h *held) bool {
	account, accountErr := e.scopeText(e.d.p.event.account)
	if accountErr != nil {
		h.because(fmt.Sprintf("event.scope.account: %v", accountErr), false)
	}
	mode, modeErr := e.mode(e.d.p.event.mode)
	if modeErr != nil {
		h.because(fmt.Sprintf("event.scope.mode: %v", modeErr), false)
	}
	ev.Scope = onceward.Scope{Account: account, Mode: mode}
	return accountErr == nil && modeErr == nil
}

// errNoText says that a list or an object stands where one word is needed.
var errNoText = errors.New("gives a list or an object where a text is needed")

// text evaluates an expression to a text; null is empty.
func (e *env) text(prog *expr.Program) (string, error) {
	v, err := e.eval(prog)
	if err != nil || v.IsNull() {
		return "", err
	}
	text, ok := v.Text()
	if !ok {
		return "", errNoText
	}
	return text, nil
}

// isWhole reports whether a text may be a name. NUL, bytes that are not UTF-8 and
// lone surrogates are no text: the last two are read as U+FFFD, all as the same,
// so that two names which differ in them would become one.
func isWhole(text string) bool {
	return onceward.CleanText(text) == text && !strings.ContainsRune(text, '\uFFFD')
}

func (e *env) scopeText(prog *expr.Program) (string, error) {
	text, err := e.text(prog)
	if err == nil && (len(text) > maxKeyBytes || !isWhole(text)) {
		return "", fmt.Errorf("is longer than %d bytes or holds bytes that no text has", maxKeyBytes)
	}
	return text, err
}

// mode evaluates the mode; a truth value reads as live or test.
func (e *env) mode(prog *expr.Program) (string, error) {
	v, err := e.eval(prog)
	if err != nil {
		return "", err
	}
	if live, is := v.Bool(); is {
		if live {
			return "live", nil
		}
		return "test", nil
	}
	text, err := e.scopeText(prog)
	if err == nil && strings.ContainsAny(text, `/\`) {
		return "", errors.New("holds a slash; a mode is one word, as live")
	}
	return text, err
}

// identifyKey computes the key. It falls back on the digest if all parts of the
// key are empty or if it is not certain.
func (e *env) identifyKey(ev *onceward.Event, certain bool) {
	spec := e.d.p.event.key
	if certain && len(spec.parts) > 0 {
		key, empty, err := e.key(spec)
		if err == nil && empty < len(spec.parts) && len(key) <= maxKeyBytes && isWhole(key) {
			ev.Key = key
			return
		}
	}
	sum := e.sum()
	ev.Key = hex.EncodeToString(sum[:])
	ev.DigestKey = len(spec.parts) > 0
}

// key evaluates the parts of a key and counts those that are empty.
func (e *env) key(spec keySpec) (key string, empty int, err error) {
	if !spec.composed {
		if key, err = e.text(spec.parts[0]); err == nil && key == "" {
			empty = 1
		}
		return key, empty, err
	}
	parts := make([]string, len(spec.parts))
	for i, prog := range spec.parts {
		if parts[i], err = e.text(prog); err != nil {
			return "", 0, err
		}
		if parts[i] == "" {
			empty++
		}
	}
	return onceward.ComposeKey(parts...), empty, nil
}
