package server

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/server/v1"
)

// The most that one page of a list holds, and what it holds unless asked.
const (
	maxPage     = 1000
	defaultPage = 100
)

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	if err := s.engine.Ready(r.Context()); err != nil {
		answer := map[string]string{"status": "not ready"}
		if s.guard.check(r) == nil { // the reason is not for everybody
			answer["why"] = err.Error()
		}
		w.Header().Set("Retry-After", "2")
		writeJSON(w, http.StatusServiceUnavailable, answer)
		return nil
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
	return nil
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	s.prom.ServeHTTP(w, r)
	return nil
}

func (s *Server) index(w http.ResponseWriter, _ *http.Request) error {
	type entry struct {
		Route string `json:"route"`
		About string `json:"about"`
	}
	var out struct {
		Routes []entry `json:"routes"`
	}
	for _, route := range Routes() {
		out.Routes = append(out.Routes, entry{route.Method + " " + route.Path, route.About})
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	if err := knownQuery(r, "source", "type", "before", "limit"); err != nil {
		return err
	}
	limit, err := pageSize(r)
	if err != nil {
		return err
	}
	q := onceward.EventQuery{Source: r.FormValue("source"), Type: r.FormValue("type"), Limit: limit + 1}
	if before := r.FormValue("before"); before != "" {
		if q.Before, err = eventID(before); err != nil {
			return err
		}
	}
	events, err := s.reader.Events(r.Context(), q)
	if err != nil {
		return fmt.Errorf("list events: %w", err)
	}
	out := v1.Events{Events: []v1.Event{}}
	for i := range events[:min(limit, len(events))] {
		out.Events = append(out.Events, v1.EventOf(&events[i]))
	}
	if len(events) > limit {
		out.Next = out.Events[limit-1].ID
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

func (s *Server) storedEvent(r *http.Request) (*onceward.StoredEvent, error) {
	id, err := eventID(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	e, err := s.reader.Event(r.Context(), id)
	if errors.Is(err, onceward.ErrNotFound) {
		return nil, fail(http.StatusNotFound, "there is no event %d; GET /v1/events lists those there are", id)
	}
	if err != nil {
		return nil, fmt.Errorf("read event %d: %w", id, err)
	}
	return e, nil
}

func (s *Server) event(w http.ResponseWriter, r *http.Request) error {
	e, err := s.storedEvent(r)
	if err != nil {
		return err
	}
	facts, err := s.reader.EventFacts(r.Context(), e.ID)
	if err != nil {
		return fmt.Errorf("read the facts of event %d: %w", e.ID, err)
	}
	out := v1.EventDetail{Event: v1.EventOf(e), Tells: []v1.Fact{}}
	if e.Delivery != nil {
		out.Method, out.Target = e.Delivery.Method, e.Delivery.Target
	}
	for i := range facts {
		out.Tells = append(out.Tells, v1.FactOf(&facts[i], s.engine.Kind(e.Source, facts[i].Kind)))
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

func (s *Server) eventBody(w http.ResponseWriter, r *http.Request) error {
	e, err := s.storedEvent(r)
	if err != nil {
		return err
	}
	raw(w, "application/octet-stream", e.ID, "body", e.Delivery.Body)
	return nil
}

func (s *Server) eventHeaders(w http.ResponseWriter, r *http.Request) error {
	e, err := s.storedEvent(r)
	if err != nil {
		return err
	}
	raw(w, "text/plain; charset=utf-8", e.ID, "headers.txt", v1.HeaderLines(e.Delivery))
	return nil
}

// raw answers with bytes as they are, for saving and never for rendering.
func raw(w http.ResponseWriter, contentType string, id int64, suffix string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="event-%d.%s"`, id, suffix))
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // an error is the client's going away
}

func (s *Server) entities(w http.ResponseWriter, r *http.Request) error {
	if err := knownQuery(r, "source", "kind", "key", "status", "after", "limit"); err != nil {
		return err
	}
	limit, err := pageSize(r)
	if err != nil {
		return err
	}
	q := onceward.EntityQuery{
		Source: r.FormValue("source"), Kind: r.FormValue("kind"), Key: r.FormValue("key"),
		Status: r.FormValue("status"), Limit: limit + 1,
	}
	if after := r.FormValue("after"); after != "" {
		if q.After, err = parseCursor(after); err != nil {
			return err
		}
	}
	rows, err := s.reader.Entities(r.Context(), q)
	if err != nil {
		return fmt.Errorf("list entities: %w", err)
	}
	out := v1.Entities{Entities: []v1.Entity{}}
	for i := range rows[:min(limit, len(rows))] {
		out.Entities = append(out.Entities, v1.EntityOf(&rows[i]))
	}
	if len(rows) > limit {
		out.Next = cursor(rows[limit-1].Ref)
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// find returns the row that a path names: that of ?scope=, else the only one of
// the key.
func (s *Server) find(r *http.Request) (*onceward.Entity, error) {
	ref, scoped, err := pathRef(r)
	if err != nil {
		return nil, err
	}
	missing := fail(http.StatusNotFound, "there is no %s; GET /v1/entities lists those there are", ref)
	if !scoped {
		rows, err := s.reader.Entities(r.Context(), onceward.EntityQuery{Source: ref.Source, Kind: ref.Kind, Key: ref.Key, Limit: defaultPage})
		if err != nil {
			return nil, fmt.Errorf("look for %s: %w", ref, err)
		}
		switch len(rows) {
		case 0:
			return nil, missing
		case 1:
			ref = rows[0].Ref // read on its own, for lists may leave things out
		default:
			return nil, ambiguous(rows)
		}
	}
	e, err := s.reader.Entity(r.Context(), ref)
	if errors.Is(err, onceward.ErrNotFound) {
		return nil, missing
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	return e, nil
}

func ambiguous(rows []onceward.Entity) error {
	e := &apiError{status: http.StatusConflict, message: "several scopes hold this key; name one with ?scope=ACCOUNT/MODE"}
	for _, row := range rows {
		e.scopes = append(e.scopes, row.Scope.String())
	}
	return e
}

func (s *Server) entity(w http.ResponseWriter, r *http.Request) error {
	e, err := s.find(r)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, v1.EntityOf(e))
	return nil
}

func (s *Server) history(w http.ResponseWriter, r *http.Request) error {
	e, err := s.find(r)
	if err != nil {
		return err
	}
	facts, err := s.reader.History(r.Context(), e.Ref)
	if err != nil {
		return fmt.Errorf("read the facts of %s: %w", e.Ref, err)
	}
	writeJSON(w, http.StatusOK, v1.HistoryOf(e, facts, s.engine.Kind(e.Source, e.Kind)))
	return nil
}

func (s *Server) putEntity(w http.ResponseWriter, r *http.Request) error {
	reg := Registration{Key: r.Header.Get("Idempotency-Key")}
	var err error
	if reg.Ref, reg.Scoped, err = pathRef(r); err != nil {
		return err
	}
	if reg.Local, err = localFields(http.MaxBytesReader(w, r.Body, maxPutBytes)); err != nil {
		return err
	}
	done, err := s.engine.Register(r.Context(), reg)
	var told interface{ Status() int }
	switch {
	case errors.Is(err, onceward.ErrAmbiguous):
		rows, err := s.reader.Entities(r.Context(), onceward.EntityQuery{Source: reg.Ref.Source, Kind: reg.Ref.Kind, Key: reg.Ref.Key, Limit: defaultPage})
		if err != nil {
			return fmt.Errorf("look for %s: %w", reg.Ref, err)
		}
		return ambiguous(rows)
	case errors.As(err, &told):
		return fail(told.Status(), "%s", err)
	case err != nil:
		return fmt.Errorf("register %s: %w", reg.Ref, err)
	}
	e, err := s.reader.Entity(r.Context(), done.Ref)
	if err != nil {
		return fmt.Errorf("read %s: %w", done.Ref, err)
	}
	status := http.StatusOK
	if done.Outcome == onceward.New && e.Facts == 1 {
		status = http.StatusCreated
	}
	writeJSON(w, status, v1.Registered{Event: strconv.FormatInt(done.Event, 10), Outcome: done.Outcome.String(), Entity: v1.EntityOf(e)})
	return nil
}

// localFields reads {"local": {…}}.
func localFields(body io.Reader) (map[string]onceward.Value, error) {
	const form = `the body has to be {"local": {"name": value, …}}`
	text, err := io.ReadAll(body)
	if err != nil {
		if _, tooBig := errors.AsType[*http.MaxBytesError](err); tooBig {
			return nil, err
		}
		return nil, fail(http.StatusBadRequest, "the body ended before it was whole; send it again")
	}
	if len(text) == 0 {
		return nil, nil
	}
	var in map[string]json.RawMessage
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, fail(http.StatusBadRequest, "%s; this is not JSON of that form", form)
	}
	for name := range in {
		if name != "local" {
			return nil, fail(http.StatusBadRequest, "%s; senders alone write %q", form, name)
		}
	}
	local := map[string]onceward.Value{}
	if len(in["local"]) == 0 {
		return local, nil
	}
	if err := json.Unmarshal(in["local"], &local); err != nil || local == nil {
		return nil, fail(http.StatusBadRequest, "%s; local is no object", form)
	}
	return local, nil
}

func (s *Server) quarantine(w http.ResponseWriter, r *http.Request) error {
	if err := knownQuery(r, "source", "limit"); err != nil {
		return err
	}
	limit, err := pageSize(r)
	if err != nil {
		return err
	}
	list, err := s.reader.Rejections(r.Context(), r.FormValue("source"), limit)
	if err != nil {
		return fmt.Errorf("list the quarantine: %w", err)
	}
	out := v1.Quarantine{Rejections: []v1.Rejection{}}
	for i := range list {
		out.Rejections = append(out.Rejections, v1.RejectionOf(&list[i]))
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

func (s *Server) stats(w http.ResponseWriter, r *http.Request) error {
	stats, err := s.reader.Stats(r.Context())
	if err != nil {
		return fmt.Errorf("count: %w", err)
	}
	writeJSON(w, http.StatusOK, v1.StatsOf(&stats))
	return nil
}

func pathRef(r *http.Request) (ref onceward.Ref, scoped bool, err error) {
	if err := knownQuery(r, "scope"); err != nil {
		return ref, false, err
	}
	ref = onceward.Ref{Source: r.PathValue("source"), Kind: r.PathValue("kind"), Key: r.PathValue("key")}
	query := r.URL.Query()
	if !query.Has("scope") {
		return ref, false, nil
	}
	if ref.Scope, err = onceward.ParseScope(query.Get("scope")); err != nil {
		return ref, false, fail(http.StatusBadRequest, "%s", err)
	}
	return ref, true, nil
}

// knownQuery refuses parameters that nobody reads: a misspelt filter would else
// answer with everything.
func knownQuery(r *http.Request, names ...string) error {
	for name := range r.URL.Query() {
		if !slices.Contains(names, name) {
			return fail(http.StatusBadRequest, "?%s= is not read here; this address takes %v", name, names)
		}
	}
	return nil
}

func pageSize(r *http.Request) (int, error) {
	text := r.FormValue("limit")
	if text == "" {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPage {
		return 0, fail(http.StatusBadRequest, "limit is a number from 1 to %d", maxPage)
	}
	return n, nil
}

func eventID(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return 0, fail(http.StatusBadRequest, "an event's id is a whole number, as GET /v1/events shows it")
	}
	return n, nil
}

// cursor names a row to go on behind. Its text is nobody's business but ours.
func cursor(ref onceward.Ref) string {
	text, err := json.Marshal(ref)
	if err != nil { // four texts always marshal
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseCursor(text string) (onceward.Ref, error) {
	var ref onceward.Ref
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(decoded, &ref)
	}
	if err != nil {
		return ref, fail(http.StatusBadRequest, "after is the next of an earlier page, unchanged")
	}
	return ref, nil
}
