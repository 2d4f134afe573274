package inbox

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/onceward/onceward"
)

// HandlerFunc does the work that hangs on a change. An error means that it is
// tried again later, with a growing pause; see [onceward.Permanent] and
// [onceward.RetryAfter] for other wishes. A panic is an error. Work is done at
// least once, so it should bear being done again.
type HandlerFunc = func(ctx context.Context, c onceward.Change) error

// handlers are the registered ones. The zero value has none.
type handlers struct {
	mu   sync.Mutex // of those who register
	list atomic.Pointer[[]handler]
}

type handler struct {
	onceward.Handler
	run HandlerFunc
}

// Handle registers fn for the changes or events that the pattern names:
//
//	payment.paid      a payment is paid for the first time in its epoch
//	payment           every change of a payment
//	event:charge.*    every new event whose type fits
//
// From then on each commit makes a job for each change that fits, and [Inbox.Run]
// runs it. The pattern is the durable name of the handler: jobs of an earlier
// process find it again. Where several share a pattern, write #name behind it.
// Like http.Handle, Handle panics if the pattern cannot be read or is registered
// already.
//
// Register before deliveries come in, and in every process that takes deliveries,
// whether or not it calls Run: a job is made in the commit of the change, by the
// process that commits it, for the handlers which that process has registered. What
// a process without the handler commits makes no job for it, then or later.
func (in *Inbox) Handle(pattern string, fn HandlerFunc) {
	h, err := onceward.ParseHandler(pattern)
	switch {
	case err != nil:
		panic(fmt.Sprintf("inbox: %v", err))
	case fn == nil:
		panic(fmt.Sprintf("inbox: handler %q: the function is nil", pattern))
	}
	in.handlers.mu.Lock()
	defer in.handlers.mu.Unlock()
	list := in.handlers.all()
	if slices.ContainsFunc(list, func(o handler) bool { return o.Name == h.Name }) {
		panic(fmt.Sprintf("inbox: handler %q is registered twice; write %s#name for another one", h.Name, h.Name))
	}
	list = append(slices.Clip(list), handler{h, fn})
	in.handlers.list.Store(&list)
	if kind, status := h.Pattern.Kind(); kind != "" && !in.anySourceHas(kind, status) {
		in.log.Warn("no source has what this handler waits for; is it misspelt?", "handler", h.Name)
	}
}

func (hs *handlers) all() []handler {
	if p := hs.list.Load(); p != nil {
		return *p
	}
	return nil
}

// contracts lists the handlers as the store knows them.
func (hs *handlers) contracts() []onceward.Handler {
	list := hs.all()
	if len(list) == 0 {
		return nil
	}
	out := make([]onceward.Handler, len(list))
	for i, h := range list {
		out[i] = h.Handler
	}
	return out
}

func (hs *handlers) names() []string {
	var names []string
	for _, h := range hs.all() {
		names = append(names, h.Name)
	}
	return names
}

func (hs *handlers) find(name string) HandlerFunc {
	for _, h := range hs.all() {
		if h.Name == name {
			return h.run
		}
	}
	return nil
}

// anySourceHas reports whether some source has a kind and, unless it is "", a
// status of it.
func (in *Inbox) anySourceHas(kind, status string) bool {
	for _, s := range in.sources {
		if k := s.mapping.Kinds[kind]; k != nil {
			if _, known := k.Rank(status); known || status == "" || k.Derive != nil {
				return true
			}
		}
	}
	return false
}
