package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// naiveTables are what a person makes for a handler written by hand: the events
// that came, to know them again, and one row per thing they are about.
const naiveTables = `
create table events (
	id text primary key,
	type text not null,
	body text not null,
	received timestamptz not null default now()
);
create table subscriptions (
	id text primary key,
	status text not null,
	customer text not null,
	currency text not null,
	updated timestamptz not null
);`

// naiveEvent is what a handler written by hand reads of an event.
type naiveEvent struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Created int64  `json:"created"`
	Data    struct {
		Object struct {
			ID       string `json:"id"`
			Status   string `json:"status"`
			Customer string `json:"customer"`
			Currency string `json:"currency"`
		} `json:"object"`
	} `json:"data"`
}

const (
	insertEvent = `insert into events (id, type, body) values ($1, $2, $3)`
	upsertRow   = `insert into subscriptions (id, status, customer, currency, updated) values ($1, $2, $3, $4, $5)
		on conflict (id) do update set status = excluded.status, customer = excluded.customer,
			currency = excluded.currency, updated = excluded.updated`
)

// newNaive is a handler as people write it by hand, over a pool of 16 connections.
func newNaive(ctx context.Context, o order) (*subject, error) {
	cfg, err := pgxpool.ParseConfig(o.Store)
	if err != nil {
		return nil, fmt.Errorf("read the address of the database: %w", err)
	}
	cfg.MaxConns, cfg.MinConns = 16, 16
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	if _, err := pool.Exec(ctx, naiveTables); err != nil {
		pool.Close()
		return nil, fmt.Errorf("make the tables: %w", err)
	}
	store := selectFirst
	if o.Variant == "naive-upsert" {
		store = upsertFirst
	}
	s := bare(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := receive(w, r)
		var e naiveEvent
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		if err != nil {
			http.Error(w, "the delivery is not accepted", http.StatusBadRequest)
			return
		}
		if err := store(r.Context(), pool, &e, body); err != nil {
			http.Error(w, "the delivery cannot be stored", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusOK)
	}))
	s.count = func(ctx context.Context) (last farewell, err error) {
		err = pool.QueryRow(ctx, `select count(*) from events`).Scan(&last.Events)
		return last, err
	}
	s.close = func(context.Context) error {
		pool.Close()
		return nil
	}
	return s, nil
}

// selectFirst looks whether the event is there, and writes it and the row if not.
// Each statement is a commit of its own, here and below: that is how it is written
// by hand, and it is faster than a transaction around them.
func selectFirst(ctx context.Context, pool *pgxpool.Pool, e *naiveEvent, body []byte) error {
	var known bool
	if err := pool.QueryRow(ctx, `select exists (select from events where id = $1)`, e.ID).Scan(&known); err != nil || known {
		return err
	}
	if _, err := pool.Exec(ctx, insertEvent, e.ID, e.Type, string(body)); err != nil {
		return err
	}
	return e.upsert(ctx, pool)
}

// upsertFirst lets the primary key say whether the event is there.
func upsertFirst(ctx context.Context, pool *pgxpool.Pool, e *naiveEvent, body []byte) error {
	tag, err := pool.Exec(ctx, insertEvent+` on conflict (id) do nothing`, e.ID, e.Type, string(body))
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	return e.upsert(ctx, pool)
}

// upsert writes the row as the event has it, whichever event came last.
func (e *naiveEvent) upsert(ctx context.Context, pool *pgxpool.Pool) error {
	o := &e.Data.Object
	_, err := pool.Exec(ctx, upsertRow, o.ID, o.Status, o.Customer, o.Currency, time.Unix(e.Created, 0))
	return err
}
