package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// startRows is how many rows a commit has that fills the file of -start.
const startRows = 256

// started is how long a server takes from its start until it is ready, in
// milliseconds, over a store that has so many events.
type started struct {
	stored         int
	clean, crashed []float64 // after it was ended, and after it was killed under load
}

// starts measures the start on each store.
func (b *bench) starts(ctx context.Context) error {
	b.extras.begins = map[string]started{}
	for _, store := range b.o.stores {
		s, err := b.startsOn(ctx, store)
		if err != nil {
			return err
		}
		b.extras.begins[store] = s
	}
	return nil
}

func (b *bench) startsOn(ctx context.Context, store string) (s started, err error) {
	db, err := b.newDatabase(store)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, db.drop()) }()
	d, err := openDirect(ctx, db.url, spread, uint64(b.made))
	if err != nil {
		return s, err
	}
	s.stored = b.o.stored
	_, err = d.fill(ctx, b.o.stored, startRows)
	if err := errors.Join(err, d.store.Close()); err != nil {
		return s, err
	}
	for range b.o.reps {
		took, server, err := b.ready(ctx, db)
		if err != nil {
			return s, err
		}
		if _, err := server.stop(); err != nil {
			return s, err
		}
		s.clean = append(s.clean, millis(took))
	}
	for range b.o.reps {
		_, server, err := b.ready(ctx, db)
		if err != nil {
			return s, err
		}
		if err := b.loadThenKill(ctx, server); err != nil {
			return s, err
		}
		took, server, err := b.ready(ctx, db)
		if err != nil {
			return s, err
		}
		if _, err := server.stop(); err != nil {
			return s, err
		}
		s.crashed = append(s.crashed, millis(took))
	}
	b.tell("%s of %d events: ready %v, after a crash %v ms", store, s.stored, s.clean, s.crashed)
	return s, nil
}

// ready starts a server and waits until it says that it is ready.
func (b *bench) ready(ctx context.Context, db *database) (time.Duration, *child, error) {
	if err := b.quiet(ctx); err != nil {
		return 0, nil, err
	}
	begin := time.Now()
	server, err := start(ctx, order{Variant: "onceward", Store: db.url}, b.stderr)
	if err != nil {
		return 0, nil, err
	}
	if err := isReady(ctx, server); err != nil {
		return 0, nil, errors.Join(err, server.kill())
	}
	return time.Since(begin), server, nil
}

var errNotReady = errors.New("the server listens and is not ready")

func isReady(ctx context.Context, server *child) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+server.Admin+"/readyz", nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("ask the server whether it is ready: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%w: it answers %s", errNotReady, answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}

// loadThenKill sends up to some thousand events and ends the server with nothing put
// in order.
func (b *bench) loadThenKill(ctx context.Context, server *child) error {
	const conns = 64
	events := min(5_000, b.o.stored)
	s, err := newSender(plainStream, spread, uint64(time.Now().UnixNano()))
	if err == nil {
		err = b.pool.fill(s, events, time.Now())
	}
	if err == nil {
		_, err = load{address: server.Public, conns: conns, pool: &b.pool, mark: func() {}}.run(ctx)
	}
	return errors.Join(err, server.kill())
}
