package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/pgtest"
	"github.com/onceward/onceward/postgres"
)

// TestNothingPoisonsABatch commits what a verified sender can put into a body.
// A value that the database refused would fail its batch now and each time that
// the sender tries again.
func TestNothingPoisonsABatch(t *testing.T) {
	dsn := pgtest.Start(t)
	s := open(t, dsn, postgres.Config{})
	w := newTeller(t)
	ctx := context.Background()
	long := strings.Repeat("0123456789abcdef", 1000)
	for i, value := range []string{
		`"\u0000"`, `1e999999999`, `-0.0e-999999`, `"\ud800"`, `"\ud83d\ude00"`, `"é\"\\\u2028"`, `12345678901234567890.10`,
		`"` + long + `"`, strings.Repeat("[", 1000) + strings.Repeat("]", 1000), `{"a":1,"a":2}`, `null`, `"<>&"`,
	} {
		key := fmt.Sprintf("j%d", i)
		commit(t, s, w.event("e"+key, fact(key, "text", onceward.Part{Field: "value", Value: onceward.TrustedJSON(value)})))
		// Once more, so that the row is read back and written again.
		commit(t, s, w.event("f"+key, fact(key, "succeeded")))
		e, err := s.Entity(ctx, jobRef(key))
		if err != nil {
			t.Errorf("%.40s: %v", value, err)
			continue
		}
		if wanted := `{"value":` + value + `}`; string(e.Data) != wanted || e.Status != "succeeded" {
			t.Errorf("data %.60s, want %.60s", e.Data, wanted)
		}
		facts, err := s.History(ctx, jobRef(key))
		if err != nil || len(facts) != 2 || facts[0].Fields[0].Value.JSON() != value {
			t.Errorf("%.40s: the history is %+v, %v", value, facts, err)
		}
	}

	// What jsonb makes of the first two is why the columns are not.
	for _, value := range []string{`"\u0000"`, `1e999999999`} {
		if err := pgtest.Exec(dsn, `select '`+value+`'::jsonb`); err == nil {
			t.Errorf("jsonb takes %s after all", value)
		}
	}

	// Texts: bytes that are none become U+FFFD, and any length is taken.
	odd := "\x00\xff" + long
	a := w.event(odd, fact(odd, "text", onceward.Part{Field: "value", Value: onceward.TrustedJSON("\"\xff\xfe\"")}))
	e := a.Event
	e.Type, e.Scope = odd, onceward.Scope{Account: odd, Mode: odd}
	e.Delivery.Method, e.Delivery.Remote, e.Delivery.Target = odd, odd, odd
	e.Delivery.Header = map[string][]string{odd: {odd}}
	b := batch(a)
	for _, name := range []string{"job", "event:*"} {
		h, err := onceward.ParseHandler(name)
		if err != nil {
			t.Fatal(err)
		}
		b.Handlers = append(b.Handlers, h)
	}
	if err := s.Commit(ctx, b); err != nil {
		t.Fatal(err)
	}
	clean := onceward.CleanText(odd)
	ref := onceward.Ref{Source: "acme", Scope: onceward.Scope{Account: clean, Mode: clean}, Kind: "job", Key: clean}
	row, err := s.Entity(ctx, ref)
	if err != nil || string(row.Data) != "{\"value\":\"\uFFFD\"}" {
		t.Errorf("the row: %v", err)
	}
	event, err := s.Event(ctx, e.ID)
	if err != nil || event.Delivery.Target != odd || event.Delivery.Header[odd][0] != odd || event.Delivery.Remote != clean {
		t.Errorf("the event: %v; target and headers want to be as they came", err)
	}
	found, err := s.Entities(ctx, onceward.EntityQuery{Key: clean})
	if err != nil || len(found) != 1 {
		t.Errorf("%d rows of the long key, %v", len(found), err)
	}
	held := onceward.Fact{Rule: "callback", Held: "no \x00 key"}
	commit(t, s, w.event("held", held))
	if err := s.Quarantine(ctx, []onceward.Rejection{{Source: "acme", Reason: odd, Delivery: onceward.Delivery{At: began, Target: odd, Method: odd, Remote: odd}}}, onceward.QuarantineLimits{Count: 1, Bytes: 1 << 20}); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Register(ctx, "acme", "hash", []byte(odd), began); err != nil {
		t.Error(err)
	}
}

// TestLongKeysInOrder pages through keys that share more than an index holds.
func TestLongKeysInOrder(t *testing.T) {
	s := open(t, pgtest.Start(t), postgres.Config{})
	w := newTeller(t)
	head := strings.Repeat("ä", 300)
	var wanted []string
	for _, tail := range []string{"", "a", "b", "ä", "\U0001F600"} {
		wanted = append(wanted, head+tail)
		commit(t, s, w.event(tail, fact(head+tail, "text")))
	}
	var got []string
	q := onceward.EntityQuery{Limit: 2}
	for {
		page, err := s.Entities(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			got = append(got, e.Key)
		}
		if len(page) == 0 {
			break
		}
		q.After = page[len(page)-1].Ref
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// TestBodiesAreCompressed wants large bodies compressed by lz4, where the server
// has it.
func TestBodiesAreCompressed(t *testing.T) {
	dsn := pgtest.Start(t)
	s := open(t, dsn, postgres.Config{})
	w := newTeller(t)
	a := w.event("e1")
	a.Event.Delivery.Body = bytes.Repeat([]byte(`{"amount": 1234, "currency": "BRL"}`), 300)
	commit(t, s, a)
	want(t, dsn, `select (select 'lz4' = any(enumvals) from pg_settings where name = 'default_toast_compression') = (pg_column_compression(body) = 'lz4') from onceward_events`, "t")
}

// TestTranslate is the table of what the driver says and what the store says.
func TestTranslate(t *testing.T) {
	server := func(code string) error {
		return fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code, Severity: "ERROR"})
	}
	unavailable, notFound := onceward.ErrUnavailable, onceward.ErrNotFound
	for _, c := range []struct {
		err  error
		want error // one of the sentinels, or nil for none of them
	}{
		{server("55P03"), unavailable}, {server("57014"), unavailable}, {server("25006"), unavailable}, {server("25P03"), unavailable},
		{server("53100"), unavailable}, {server("53200"), unavailable}, {server("53300"), unavailable},
		{server("57P01"), unavailable}, {server("57P02"), unavailable}, {server("57P03"), unavailable}, {server("57P05"), unavailable},
		{server("08006"), unavailable}, {server("08P01"), unavailable}, {server("58030"), unavailable},
		{server("40001"), unavailable}, {server("40P01"), unavailable}, {server("23505"), unavailable}, {postgres.Refused, unavailable},
		{server("22P02"), nil}, {server("42P01"), nil}, {server("42501"), nil}, {server("22012"), nil}, {server("26000"), nil}, {server("XX001"), nil},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, unavailable}, {io.ErrUnexpectedEOF, unavailable}, {io.EOF, unavailable}, {net.ErrClosed, unavailable},
		{pgconn.ErrConnClosed, unavailable}, {context.DeadlineExceeded, unavailable},
		{pgx.ErrNoRows, notFound}, {errors.New("a bug"), nil},
	} {
		got := postgres.Translate(context.Background(), "act", c.err, false)
		for _, sentinel := range []error{unavailable, notFound, onceward.ErrUnknownOutcome} {
			if errors.Is(got, sentinel) != errors.Is(c.want, sentinel) {
				t.Errorf("%v becomes %v, want %v", c.err, got, c.want)
			}
		}
		if !errors.Is(c.want, notFound) && !errors.Is(got, c.err) || !strings.HasPrefix(got.Error(), "postgres: act: ") {
			t.Errorf("%v becomes %v, which lost it or does not say what was done", c.err, got)
		}
		if unknown := postgres.Translate(context.Background(), "act", c.err, true); !errors.Is(unknown, onceward.ErrUnknownOutcome) || errors.Is(unknown, unavailable) {
			t.Errorf("%v with an unknown outcome becomes %v", c.err, unknown)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if got := postgres.Translate(ended, "act", io.EOF, false); !errors.Is(got, context.Canceled) || errors.Is(got, unavailable) {
		t.Errorf("what the caller ended becomes %v", got)
	}
	if got := postgres.Translate(ended, "act", nil, false); got != nil {
		t.Errorf("nothing becomes %v", got)
	}
}

// TestHeaderRoundTrip gives any headers back.
func TestHeaderRoundTrip(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes")) })
	rapid.Check(t, func(t *rapid.T) {
		h := rapid.MapOfN(text, rapid.SliceOfN(text, 0, 4), 0, 5).Draw(t, "headers")
		b := postgres.EncodeHeader(h)
		got, err := postgres.DecodeHeader(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(h, got, cmp.Transformer("empty", func(v []string) []string { return append([]string{}, v...) })); diff != "" {
			t.Fatalf("headers (-want +got):\n%s", diff)
		}
		for i := range b { // a part is no header, and is not taken for one
			if _, err := postgres.DecodeHeader(b[:i]); err == nil {
				t.Fatalf("the first %d bytes of %d are read", i, len(b))
			}
		}
	})
	for _, odd := range [][]byte{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, {1, 200}, {0, 0}} {
		if h, err := postgres.DecodeHeader(odd); err == nil {
			t.Errorf("%v is read as %v", odd, h)
		}
	}
	if h, err := postgres.DecodeHeader(postgres.EncodeHeader(nil)); h != nil || err != nil {
		t.Errorf("no headers become %v, %v", h, err)
	}
}
