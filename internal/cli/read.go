package cli

import (
	"context"
	"errors"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/cli/config"
	"github.com/onceward/onceward/internal/cli/instance"
)

// reading opens the store of the configuration for reading and calls read with
// it.
func (a *app) reading(ctx context.Context, read func(*setup, onceward.Reader) error) (err error) {
	s, err := a.setup(config.Glance)
	if err != nil {
		return err
	}
	store, err := instance.OpenStore(ctx, s.store, instance.Read)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return read(s, store)
}

// kind returns a kind of a source as its provider has it here, nil if it is not
// known.
func (s *setup) kind(source, kind string) *onceward.Kind {
	p := s.provider(source)
	if p == nil {
		return nil
	}
	return p.Kinds()[kind]
}
