package server

import (
	"net/http"
	"slices"

	"github.com/onceward/onceward"
)

// Route is one entry of the admin API.
type Route struct {
	// Method and Path are what it answers, as net/http.ServeMux writes them.
	Method, Path string
	// About says in a few words what it gives.
	About string
	// Open routes need no token: they tell nothing but that the server lives.
	Open bool

	handle func(s *Server, w http.ResponseWriter, r *http.Request) error
}

// Routes returns the table of the admin API, the one list that the server, its
// tests and the documentation are made from.
func Routes() []Route {
	return []Route{
		{"GET", "/healthz", "the process lives", true, (*Server).healthz},
		{"GET", "/readyz", "the store takes commits and every mapping is the newest", true, (*Server).readyz},
		{"GET", "/metrics", "Prometheus metrics", false, (*Server).metrics},
		{"GET", "/v1", "this table", false, (*Server).index},
		{"GET", "/v1/events", "events, newest first; ?source= ?type= ?before= ?limit=", false, (*Server).events},
		{"GET", "/v1/events/{id}", "one event and what it tells", false, (*Server).event},
		{"GET", "/v1/events/{id}/body", "its body, byte for byte", false, (*Server).eventBody},
		{"GET", "/v1/events/{id}/headers", "its headers as lines, secrets masked", false, (*Server).eventHeaders},
		{"GET", "/v1/entities", "rows; ?source= ?kind= ?key= ?status= ?after= ?limit=", false, (*Server).entities},
		{"GET", "/v1/entities/{source}/{kind}/{key}", "one row; ?scope=", false, (*Server).entity},
		{"PUT", "/v1/entities/{source}/{kind}/{key}", `register a row or write its local fields: {"local": {…}}; ?scope=, Idempotency-Key`, false, (*Server).putEntity},
		{"GET", "/v1/entities/{source}/{kind}/{key}/history", "its facts in order of arrival, and why it is in its state; ?scope=", false, (*Server).history},
		{"GET", "/v1/quarantine", "rejected deliveries, newest first; ?source= ?limit=", false, (*Server).quarantine},
		{"GET", "/v1/stats", "what the store holds", false, (*Server).stats},
	}
}

// Admin returns the handler of the admin listener.
func (s *Server) Admin() http.Handler {
	mux := http.NewServeMux()
	for _, route := range Routes() {
		mux.HandleFunc(route.Method+" "+route.Path, func(w http.ResponseWriter, r *http.Request) {
			if err := route.handle(s, w, r); err != nil {
				s.writeError(w, r, err)
			}
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.writeError(w, r, s.noRoute(mux, r)) })
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := mux.Handler(r)
		open := slices.ContainsFunc(Routes(), func(route Route) bool { return route.Open && pattern == route.Method+" "+route.Path })
		if !open {
			if err := s.guard.check(r); err != nil {
				s.writeError(w, r, err)
				return
			}
		}
		if crossOrigin.Check(r) != nil {
			s.writeError(w, r, fail(http.StatusForbidden, "a page of another origin may not write here; send the request from a program"))
			return
		}
		if !isText(r) {
			s.writeError(w, r, fail(http.StatusBadRequest, "the address holds bytes that are no text; percent-encode UTF-8, without NUL"))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// isText reports whether path and query hold only what names can hold. Stores
// would answer other bytes each in its own way.
func isText(r *http.Request) bool {
	texts := []string{r.URL.Path}
	for name, values := range r.URL.Query() {
		texts = append(append(texts, name), values...)
	}
	return !slices.ContainsFunc(texts, func(text string) bool { return onceward.CleanText(text) != text })
}

// noRoute says what is wrong with an address that no route answers.
func (s *Server) noRoute(mux *http.ServeMux, r *http.Request) error {
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "/" && pattern != "" {
			return fail(http.StatusMethodNotAllowed, "this address does not answer %s; GET /v1 lists what there is", r.Method)
		}
	}
	return fail(http.StatusNotFound, "there is no such address; GET /v1 lists what there is")
}
