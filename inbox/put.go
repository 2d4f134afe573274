package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider"
)

// Registration asks for the row of a job that the application has just started, or
// for fields of its own on any row.
type Registration struct {
	// Ref names the row.
	Ref onceward.Ref
	// Scoped says that Ref.Scope is meant as it is, be it empty. Without it the one
	// row with this key is meant, whatever its scope.
	Scoped bool
	// Local are the application's fields; nil takes one away. Values are what
	// encoding/json writes; an onceward.Value is written as it is.
	Local map[string]any
	// Key makes repeats one event, as an Idempotency-Key does; "" for a random one.
	Key string
}

// Registered is what became of a Registration.
type Registered struct {
	Ref     onceward.Ref
	Event   int64
	Outcome onceward.Outcome
	// Fact is what it did to the row; zero for a Duplicate.
	Fact onceward.FactResult
}

// RegistrationError says why a Registration cannot be taken in: it is the caller's
// to mend. All other errors of Put are ours, and trying again may help.
type RegistrationError struct {
	status int
	text   string
}

// Error implements error.
func (e *RegistrationError) Error() string { return e.text }

// Status is the HTTP status that says the same: 400, 404, or 409 for a key that
// was used before.
func (e *RegistrationError) Status() int { return e.status }

func cannotRegister(status int, format string, args ...any) *RegistrationError {
	return &RegistrationError{status: status, text: fmt.Sprintf(format, args...)}
}

// registeredPath is where the target of a registration begins; the target is kept
// with the event and names the row when it is read again.
const registeredPath = "/v1/entities/"

// Put registers a row. It is an event like any other, stored, replayed and
// rebuilt, whose fact is a hint with the lowest status of the kind: it creates the
// row if no sender has, and never overwrites what a sender told, whichever comes
// first. When Put returns nil it is durable. The error is a *RegistrationError if
// the caller has to mend something, such as a key that was used for something else
// before (the outcome is Conflict then, and both are kept), and an *AmbiguousError
// if no scope was named and several have such a row.
func (in *Inbox) Put(ctx context.Context, reg Registration) (Registered, error) {
	s, err := in.registrable(&reg)
	if err != nil {
		return Registered{}, err
	}
	if err := in.settleScope(ctx, s, &reg); err != nil {
		return Registered{}, err
	}
	body, err := registrationBody(reg.Local)
	if err != nil {
		return Registered{}, err
	}
	if int64(len(body)) > s.maxBody {
		return Registered{}, cannotRegister(http.StatusBadRequest, "the local fields take %d bytes; at most %d are kept", len(body), s.maxBody)
	}
	if reg.Key == "" {
		if reg.Key, err = in.chance.key(); err != nil {
			return Registered{}, fmt.Errorf("make a key: %w", err)
		}
	}
	d := &onceward.Delivery{At: in.cfg.Now(), Method: http.MethodPut, Target: registrationTarget(reg.Ref), Body: body}
	e := onceward.Event{Source: s.name, Scope: reg.Ref.Scope, Origin: onceward.Registered, Key: reg.Key, Type: "registered", Delivery: d}
	e.Digest = onceward.DigestOf([]byte(d.Target + "\n" + string(body))) // one key for two rows is a conflict
	arrivals := in.arrivals(s, d, onceward.Registered, []provider.Reading{{Event: e, Facts: s.readRegistration(&e)}})
	results, err := in.submit(ctx, arrivals)
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return Registered{}, fmt.Errorf("register a row of %s %s: %w", reg.Ref.Source, reg.Ref.Kind, err)
	}
	r := results[0]
	out := Registered{Ref: reg.Ref, Event: r.StoredID, Outcome: r.Outcome}
	if len(r.Facts) > 0 {
		out.Fact = r.Facts[0]
	}
	in.observer.Delivered(s.name, r.Outcome)
	in.observeFacts(s.name, r.Facts)
	if r.Outcome == onceward.Conflict {
		return out, cannotRegister(http.StatusConflict, "the key %q was used for another registration; take a new one", reg.Key)
	}
	return out, nil
}

// registrable checks what can be checked without the store.
func (in *Inbox) registrable(reg *Registration) (*source, error) {
	s := in.sources[reg.Ref.Source]
	if s == nil {
		return nil, cannotRegister(http.StatusNotFound, "there is no source %q; there are %s", reg.Ref.Source, strings.Join(in.Sources(), ", "))
	}
	if s.mapping.Kinds[reg.Ref.Kind] == nil {
		kinds := slices.Sorted(maps.Keys(s.mapping.Kinds))
		return nil, cannotRegister(http.StatusBadRequest, "source %s has no kind %q; it has %s", s.name, reg.Ref.Kind, strings.Join(kinds, ", "))
	}
	for _, text := range []string{reg.Ref.Key, reg.Key, reg.Ref.Scope.Account, reg.Ref.Scope.Mode} {
		if len(text) > longestKey || onceward.CleanText(text) != text {
			return nil, cannotRegister(http.StatusBadRequest, "keys and scopes are texts of at most %d bytes", longestKey)
		}
	}
	if reg.Ref.Key == "" {
		return nil, cannotRegister(http.StatusBadRequest, "the key of the row is empty")
	}
	return s, nil
}

// longestKey is what providers' keys may have too.
const longestKey = 1024

// settleScope finds out which scope is meant where none was named.
func (in *Inbox) settleScope(ctx context.Context, s *source, reg *Registration) error {
	if mode := reg.Ref.Scope.Account; reg.Ref.Scope.Mode == "" && (mode == "live" || mode == "test") {
		return cannotRegister(http.StatusBadRequest, "the scope %q names an account; a mode alone is written /%s", mode, mode)
	}
	if reg.Scoped || reg.Ref.Scope != (onceward.Scope{}) {
		if s.scopes == unscoped && reg.Ref.Scope != (onceward.Scope{}) {
			return cannotRegister(http.StatusBadRequest, "source %s has no accounts and modes; leave the scope out", s.name)
		}
		return nil
	}
	if s.scopes == unscoped {
		return nil
	}
	row, err := in.Find(ctx, reg.Ref.Source, reg.Ref.Kind, reg.Ref.Key)
	switch {
	case errors.Is(err, onceward.ErrNotFound) && s.scopes == mayBeScoped:
		return nil
	case errors.Is(err, onceward.ErrNotFound):
		return cannotRegister(http.StatusBadRequest, "source %s tells accounts and modes apart, so creating a row needs its scope, as acct_1/live or /test", s.name)
	case err != nil: // an *AmbiguousError among others
		return err
	}
	reg.Ref.Scope = row.Ref.Scope
	return nil
}

// registrationTarget is the request line's target of the registration over HTTP.
func registrationTarget(ref onceward.Ref) string {
	target := registeredPath + url.PathEscape(ref.Source) + "/" + url.PathEscape(ref.Kind) + "/" + url.PathEscape(ref.Key)
	if ref.Scope == (onceward.Scope{}) {
		return target
	}
	return target + "?scope=" + url.QueryEscape(ref.Scope.String())
}

// registrationBody is the body of the registration over HTTP, with sorted names.
func registrationBody(local map[string]any) ([]byte, error) {
	if local == nil {
		local = map[string]any{}
	}
	body, err := json.Marshal(map[string]any{onceward.LocalField: local})
	if err != nil {
		return nil, cannotRegister(http.StatusBadRequest, "the local fields cannot be written as JSON: %v", err)
	}
	return body, nil
}

// readRegistration reads the fact of a registration from what is kept of it.
func (s *source) readRegistration(e *onceward.Event) []onceward.Fact {
	held := func(why string) []onceward.Fact { return []onceward.Fact{{Rule: registrationRule, Held: why}} }
	path, _, _ := strings.Cut(e.Delivery.Target, "?")
	rest, ok := strings.CutPrefix(path, registeredPath)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 {
		return held("the target names no row")
	}
	kind, err := url.PathUnescape(parts[1])
	key, keyErr := url.PathUnescape(parts[2])
	if errors.Join(err, keyErr) != nil {
		return held("the target names no row")
	}
	k := s.mapping.Kinds[kind]
	if k == nil {
		return held(fmt.Sprintf("the mapping has no kind %q", kind))
	}
	var body struct {
		Local map[string]onceward.Value `json:"local"`
	}
	if err := json.Unmarshal(e.Delivery.Body, &body); err != nil {
		return held(fmt.Sprintf("the body is not JSON: %v", err))
	}
	f := onceward.Fact{Rule: registrationRule, Kind: kind, Key: key, Hint: true, Status: k.Lowest()}
	for _, name := range slices.Sorted(maps.Keys(body.Local)) {
		f.Local = append(f.Local, onceward.Part{Field: onceward.CleanText(name), Value: body.Local[name]})
	}
	return []onceward.Fact{f}
}

// registrationRule stands for a rule in the facts of registrations.
const registrationRule = "registration"
