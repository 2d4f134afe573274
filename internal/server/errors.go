package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/server/v1"
)

// apiError is an error that the client caused or must know of: a status and a
// sentence that says what to do.
type apiError struct {
	status  int
	message string
	scopes  []string
}

func (e *apiError) Error() string { return e.message }

func fail(status int, format string, args ...any) error {
	return &apiError{status: status, message: fmt.Sprintf(format, args...)}
}

// translate turns any error of a handler into an answer. What is not the
// client's is answered with a constant sentence; the log has the rest.
func translate(err error) *apiError {
	var e *apiError
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &tooBig):
		return &apiError{status: http.StatusRequestEntityTooLarge, message: fmt.Sprintf("the body is longer than %d bytes; send less", tooBig.Limit)}
	case errors.Is(err, onceward.ErrNotFound):
		return &apiError{status: http.StatusNotFound, message: "there is nothing under this address; the lists /v1/entities and /v1/events show what there is"}
	case errors.Is(err, onceward.ErrUnknownOutcome):
		return &apiError{status: http.StatusServiceUnavailable, message: "it is not known whether this was kept; send it again with the same Idempotency-Key"}
	case errors.Is(err, onceward.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &apiError{status: http.StatusServiceUnavailable, message: "the store does not answer right now; try again in a few seconds"}
	}
	return &apiError{status: http.StatusInternalServerError, message: "this is a fault of the server; its log says more"}
}

// writeError answers with what err says and logs what is our fault.
func (s *Server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	e := translate(err)
	if e.status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.log.LogAttrs(r.Context(), slog.LevelError, "admin request failed",
			slog.String("route", r.Pattern), slog.Int("status", e.status), slog.String("error", err.Error()))
	}
	switch e.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="onceward"`)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "2")
	}
	writeJSON(w, e.status, v1.Error{Error: e.message, Status: e.status, Scopes: e.scopes})
}

// writeJSON answers with one JSON value. An error of writing is the client's
// going away, and nobody is left to tell.
func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil { // the shapes always marshal
		http.Error(w, `{"error":"this is a fault of the server; its log says more","status":500}`, http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
