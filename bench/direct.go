package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/cli/instance"
	"github.com/onceward/onceward/provider"
)

// direct commits batches to a store without HTTP and without the committer.
type direct struct {
	store    onceward.Store
	provider *provider.Provider
	mapping  *onceward.Mapping
	handlers []onceward.Handler
	sender   *sender
	header   http.Header
	made     int64 // ids that were given out
	body     []byte
	watched  watched // whose CPU time counts
}

// openDirect opens a store for direct commits of the plain stream, about so many
// entities.
func openDirect(ctx context.Context, url string, entities int, seed uint64) (*direct, error) {
	d := &direct{header: http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "User-Agent": {"Stripe/1.0 (+https://stripe.com/docs/webhooks)"},
		"Accept": {"*/*; q=0.5, application/json"}, "Cache-Control": {"no-cache"},
	}}
	var err error
	if d.sender, err = newSender(plainStream, entities, seed); err != nil {
		return nil, err
	}
	if d.provider, err = provider.Compile(provider.SourceConfig{Name: "stripe", Provider: "stripe", Secrets: []string{secret}}); err != nil {
		return nil, fmt.Errorf("compile the provider: %w", err)
	}
	for _, kind := range kinds() {
		h, err := onceward.ParseHandler(kind)
		if err != nil {
			return nil, err
		}
		d.handlers = append(d.handlers, h)
	}
	if d.store, err = instance.OpenStore(ctx, url, instance.Write); err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	d.mapping = &onceward.Mapping{Source: "stripe", Hash: d.provider.Hash(), Kinds: d.provider.Kinds()}
	if d.mapping.Revision, _, err = d.store.Register(ctx, "stripe", d.mapping.Hash, d.provider.Doc(), time.Now()); err != nil {
		return nil, errors.Join(fmt.Errorf("register the mapping: %w", err), d.store.Close())
	}
	return d, nil
}

// batch makes the next events, read as the inbox reads them.
func (d *direct) batch(n int) *onceward.Batch {
	now := time.Now()
	sign := newSigner(now)
	b := &onceward.Batch{Arrivals: make([]*onceward.Arrival, 0, n), Handlers: d.handlers, Now: now}
	for range n {
		next := d.sender.next()
		d.body = next.template.append(d.body[:0], next.event, d.sender.noise)
		body := append([]byte(nil), d.body...)
		header := d.header.Clone()
		header.Set("Stripe-Signature", string(sign.append(nil, body)))
		header.Set("Content-Length", strconv.Itoa(len(body)))
		r := &provider.Request{Method: http.MethodPost, URL: "http://127.0.0.1/in/stripe", Header: header, Body: body}
		kept := &onceward.Delivery{At: now, Method: r.Method, Target: "/in/stripe", Remote: "127.0.0.1", Header: header, Body: body}
		for _, reading := range d.provider.Read(r) {
			d.made++
			e := reading.Event
			e.ID, e.Source, e.Origin, e.Delivery = now.UnixMilli()<<22|d.made&(1<<22-1), "stripe", onceward.Sent, kept
			b.Arrivals = append(b.Arrivals, &onceward.Arrival{Event: &e, Facts: reading.Facts, Mapping: d.mapping})
		}
	}
	return b
}

var errNotNew = errors.New("an event that was made for the benchmark is not new")

// commit commits a batch and returns how long that took.
func (d *direct) commit(ctx context.Context, b *onceward.Batch) (time.Duration, error) {
	begin := time.Now()
	if err := d.store.Commit(ctx, b); err != nil {
		return 0, fmt.Errorf("commit a batch of %d: %w", len(b.Arrivals), err)
	}
	took := time.Since(begin)
	for _, a := range b.Arrivals {
		if a.Outcome != onceward.New {
			return 0, fmt.Errorf("%w: %v", errNotNew, a.Outcome)
		}
	}
	return took, nil
}

// spent is what commits have cost.
type spent struct {
	took time.Duration // with several lanes, from the first to the last
	cpu  time.Duration // of this process and of PostgreSQL
}

// fill commits batches of size rows until n more events are stored, on as many
// lanes as the store wants, and returns what the commits cost. Making the events is
// not counted.
func (d *direct) fill(ctx context.Context, n, size int) (sum spent, err error) {
	const ahead = 32 // batches that are made before their commits begin
	for n > 0 {
		var batches []*onceward.Batch
		for ; n > 0 && len(batches) < ahead; n -= size {
			batches = append(batches, d.batch(min(size, n)))
		}
		before, err := d.watched.look()
		if err != nil {
			return sum, err
		}
		begin := time.Now()
		if err := d.commitAll(ctx, batches); err != nil {
			return sum, err
		}
		sum.took += time.Since(begin)
		after, err := d.watched.look()
		if err != nil {
			return sum, err
		}
		used := after.since(before)
		sum.cpu += used.self + used.store
	}
	return sum, nil
}

// commitAll commits batches, those of one lane one after the other.
func (d *direct) commitAll(ctx context.Context, batches []*onceward.Batch) error {
	lanes := d.store.Lanes()
	errs := make([]error, lanes)
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			for i := lane; i < len(batches) && errs[lane] == nil; i += lanes {
				_, errs[lane] = d.commit(ctx, batches[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
