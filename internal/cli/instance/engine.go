package instance

import (
	"context"

	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/server"
)

// engine is an inbox as the server wants it.
type engine struct{ *inbox.Inbox }

var _ server.Engine = engine{}

// Register implements server.Engine.
func (e engine) Register(ctx context.Context, reg server.Registration) (server.Registered, error) {
	local := map[string]any{}
	for name, value := range reg.Local {
		local[name] = value
	}
	done, err := e.Put(ctx, inbox.Registration{Ref: reg.Ref, Scoped: reg.Scoped, Local: local, Key: reg.Key})
	return server.Registered{Ref: done.Ref, Event: done.Event, Outcome: done.Outcome}, err
}
