package inbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox/internal/panics"
	"github.com/onceward/onceward/provider"
)

// Source returns the handler of one source, to be mounted where its sender's URL
// is, at any path. A name that is not configured is logged, and answered 404: a
// program that mounts one source too many goes on serving the others.
func (in *Inbox) Source(name string) http.Handler {
	s := in.sources[name]
	if s == nil {
		in.log.Error("a source is mounted that is not configured; its address answers 404", "source", name)
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, textUnknown) })
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { in.serve(w, r, s) })
}

// Handler serves every source at its path, /in/NAME unless it has one of its own.
// With and without a trailing slash is the same path; nothing is redirected, and
// every other path is 404.
func (in *Inbox) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := in.paths[withoutSlash(r.URL.Path)]
		if s == nil {
			refuse(w, http.StatusNotFound, textUnknown)
			return
		}
		in.serve(w, r, s)
	})
}

// serve answers one request to a source. A panic is answered like any fault of
// ours.
func (in *Inbox) serve(w http.ResponseWriter, r *http.Request, s *source) {
	defer func() {
		p := recover()
		thrownError, _ := p.(error)
		switch {
		case p == nil:
		case errors.Is(thrownError, http.ErrAbortHandler):
			panic(p)
		default:
			thrown := panics.New(p)
			in.log.Error("a delivery made the inbox panic", "source", s.name, "panic", thrown, "stack", thrown.Stack())
			in.observer.Delivered(s.name, onceward.Undecided)
			refuse(w, http.StatusInternalServerError, textOurs)
		}
	}()
	if r.Method != http.MethodPost {
		in.probe(w, r, s)
		return
	}
	in.receive(w, r, s)
}

// probe answers what is no delivery: a handshake, a browser, a health check.
func (in *Inbox) probe(w http.ResponseWriter, r *http.Request, s *source) {
	answer, is, err := s.provider.Challenge(in.cfg.Now(), in.request(r, nil))
	if err != nil {
		in.log.Warn("a handshake cannot be answered", "source", s.name, "error", err)
	}
	if is && err == nil {
		writeAnswer(w, answer)
		return
	}
	w.Header().Set("Allow", s.allow)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusMethodNotAllowed)
	fmt.Fprintf(w, "This is the webhook inbox of source %s: its sender posts signed events here, and there is nothing to see.\n", s.name)
}

// receive takes a delivery in.
func (in *Inbox) receive(w http.ResponseWriter, r *http.Request, s *source) {
	d := &delivery{in: in, source: s, at: in.cfg.Now(), http: r}
	body, held, err := in.bodies.read(w, r, s.maxBody)
	defer in.bodies.give(held)
	if err != nil {
		d.unreadable(w, err)
		return
	}
	d.request = in.request(r, body)
	if _, err := s.provider.Verify(d.at, d.request); err != nil {
		d.reject(w, err)
		return
	}
	answer, is, err := s.provider.Challenge(d.at, d.request)
	if err != nil { // a delivery like any other then: it is verified, so it is kept
		in.log.Warn("whether a delivery is a handshake cannot be told", "source", s.name, "error", err)
	}
	if is && err == nil {
		writeAnswer(w, answer)
		return
	}
	d.take(w)
}

// request describes a request to the provider.
func (in *Inbox) request(r *http.Request, body []byte) *provider.Request {
	return &provider.Request{Method: r.Method, URL: in.addresses.url(r), Header: r.Header, Body: body}
}

// delivery is one POST on its way through the inbox.
type delivery struct {
	in      *Inbox
	source  *source
	at      time.Time // when its headers were read
	http    *http.Request
	request *provider.Request
	kept    *onceward.Delivery // as it is stored
}

// take stores the delivery's events and answers.
func (d *delivery) take(w http.ResponseWriter) {
	in := d.in
	readings := d.source.read(d.request)
	arrivals := in.arrivals(d.source, d.keep(), onceward.Sent, readings)
	results, err := in.submit(d.http.Context(), arrivals)
	if err == nil {
		err = worstError(results)
	}
	for i := range arrivals {
		outcome := onceward.Undecided
		if i < len(results) && results[i].Err == nil {
			outcome = results[i].Outcome
			in.observeFacts(d.source.name, results[i].Facts)
		}
		in.observer.Delivered(d.source.name, outcome)
	}
	if err != nil {
		d.fail(w, err)
		return
	}
	in.observer.Acknowledged(d.source.name, in.cfg.Now().Sub(d.at))
	in.note(d.source, results)
	d.acknowledge(w, results)
}

// keep makes what is stored of the delivery.
func (d *delivery) keep() *onceward.Delivery {
	if d.kept == nil {
		header, target := d.source.provider.Mask(d.http.Header, requestTarget(d.http))
		d.kept = &onceward.Delivery{
			At: d.at, Method: d.http.Method, Target: target, Remote: d.in.addresses.client(d.http),
			Header: header, Body: d.request.Body,
		}
	}
	return d.kept
}

// reject answers a delivery that was not verified, and keeps it in quarantine.
func (d *delivery) reject(w http.ResponseWriter, err error) {
	in := d.in
	reason := provider.Reason("unverified")
	if rejected, ok := errors.AsType[*provider.Rejected](err); ok {
		reason = rejected.Reason
	}
	in.observer.Delivered(d.source.name, onceward.Rejected)
	in.log.Info("a delivery was rejected", "source", d.source.name, "reason", string(reason), "remote", d.keep().Remote)
	r := onceward.Rejection{Source: d.source.name, Reason: err.Error(), Delivery: *d.keep()}
	if !in.cfg.Development {
		in.quarantine.add(r)
		refuse(w, http.StatusUnauthorized, textRejected)
		return
	}
	d.explain(w, err, in.quarantine.keep(d.http.Context(), in.store, r))
}

// unreadable answers a body that did not come as a whole. Nothing of it is kept.
func (d *delivery) unreadable(w http.ResponseWriter, err error) {
	if d.http.ProtoMajor == 1 { // beyond, it would end the streams of others on the connection
		w.Header().Set("Connection", "close")
	}
	if errors.Is(err, errTooLarge) {
		d.in.log.Warn("a body was larger than the limit", "source", d.source.name, "limit", d.source.maxBody)
		refuse(w, http.StatusRequestEntityTooLarge, textTooLarge)
		return
	}
	if errors.Is(err, errNoRoom) {
		d.in.log.Warn("a delivery was answered 503", "source", d.source.name, "error", err)
		refuseLater(w, d.in)
		return
	}
	d.in.log.Debug("a body was cut off", "source", d.source.name, "error", err)
	refuse(w, http.StatusBadRequest, textCutOff)
}

// fail answers what is our fault, and says in the log what it was.
func (d *delivery) fail(w http.ResponseWriter, err error) {
	log := d.in.log.With("source", d.source.name, "error", err).With(stackOf(err)...)
	switch {
	case errors.Is(err, context.Canceled) && d.http.Context().Err() != nil:
		log.Debug("a sender went away before its answer")
		refuseLater(w, d.in)
	case isLater(err):
		log.Warn("a delivery was answered 503")
		refuseLater(w, d.in)
	default:
		log.Error("a delivery was answered 500")
		refuse(w, http.StatusInternalServerError, textOurs)
	}
}
