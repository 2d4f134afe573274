package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	randv2 "math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/cli/instance"
	"github.com/onceward/onceward/internal/cli/sender"
	"github.com/onceward/onceward/internal/pgtest"
	"github.com/onceward/onceward/provider"
)

// crashSource describes the sender of the crash test in the language of the
// configuration. Each event tells a status and an amount of one order, and the
// clock of each order grows by one with each of its events.
const crashSource = `
store: $CRASH_STORE
sources:
  acme:
    secrets: [$CRASH_SECRET]
    verify: {scheme: hmac, header: X-Acme-Signature}
    event: {key: body.id, type: body.type, time: body.at}
    kinds:
      order: {states: [[created, paid, shipped, returned]]}
    facts:
      order: {kind: order, key: body.order, status: body.status, fields: {amount: body.amount, parts: {sum: body.part, by: body.id}}}
`

const crashSecret = "secret-of-the-crash-test"

// crashLedger is what the senders know: what they have sent, and what was
// acknowledged. It is the outsider's truth; it shares no code with the engine.
type crashLedger struct {
	mu    sync.Mutex // over all below
	sent  map[string]*crashEvent
	acked int
}

type crashEvent struct {
	id, order, status string
	at, amount        int64
	body              []byte
	acked             bool
}

// TestCrash kills the server with SIGKILL while senders deliver to it over several
// connections, starts it again, and in the end looks for every event: those that
// were acknowledged are there once, with their state, and nothing is there that
// nobody sent. ONCEWARD_CRASH is how often it is killed, ONCEWARD_SEED repeats a
// run.
func TestCrash(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "onceward")
	build := exec.Command("go", "build", "-o", binary, "github.com/onceward/onceward/cmd/onceward")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	kills := 6
	if testing.Short() {
		kills = 3
	}
	if text := os.Getenv("ONCEWARD_CRASH"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("ONCEWARD_CRASH=%s is no number of kills", text)
		}
		kills = n
	}
	t.Run("SQLite", func(t *testing.T) {
		crash(t, binary, "sqlite:"+filepath.Join(t.TempDir(), "crash.db"), kills)
	})
	t.Run("PostgreSQL", func(t *testing.T) { crash(t, binary, pgtest.Start(t), kills) })
}

func crashSeed(t *testing.T) uint64 {
	t.Helper()
	if text := os.Getenv("ONCEWARD_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("ONCEWARD_SEED=%s is no seed", text)
		}
		return seed
	}
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	return uint64(binary.LittleEndian.Uint32(b[:]))
}

// crashRun is one run over one store.
type crashRun struct {
	t        *testing.T
	binary   string
	dir      string
	env      []string
	provider *provider.Provider
	ledger   crashLedger
	client   *sender.Client
}

func crash(t *testing.T, binary, store string, kills int) {
	seed := crashSeed(t)
	t.Logf("ONCEWARD_SEED=%d", seed)
	rng := randv2.New(randv2.NewPCG(seed, 0))
	r := &crashRun{
		t: t, binary: binary, dir: t.TempDir(), client: sender.New(16, time.Now),
		env:    append(os.Environ(), "CRASH_STORE="+store, "CRASH_SECRET="+crashSecret),
		ledger: crashLedger{sent: map[string]*crashEvent{}},
	}
	defer r.client.Close()
	if err := os.WriteFile(filepath.Join(r.dir, "onceward.yaml"), []byte(crashSource), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	r.provider, err = provider.Compile(provider.SourceConfig{
		Name: "acme", Secrets: []string{crashSecret}, Text: []byte(crashSource), At: []string{"sources", "acme"},
	})
	if err != nil {
		t.Fatal(err)
	}
	cut := 0
	for round := range kills {
		cut += r.round(round, rng)
		if t.Failed() {
			return
		}
	}
	r.last()
	if cut == 0 {
		t.Error("no delivery was cut off by a kill, so nothing was put to the test")
	}
	t.Logf("%d kills cut off %d of %d deliveries", kills, cut, len(r.ledger.sent))
	r.judge(store)
}

// crashSenders is how many connections deliver at once.
const crashSenders = 8

// round starts the server, loads it, kills it at a drawn moment and returns how
// many deliveries were cut off.
func (r *crashRun) round(round int, rng *randv2.Rand) (cut int) {
	s, inbox, _, err := startServer(r.binary, r.dir, r.env, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	if err != nil {
		r.t.Error(err)
		return 0
	}
	// The moment: after so many acknowledgements of this round, and up to 3 ms.
	moment := r.ledger.count() + 20 + rng.IntN(300)
	delay := time.Duration(rng.IntN(3000)) * time.Microsecond
	killed := make(chan struct{})
	var kill sync.Once
	acked := func(total int) {
		if total >= moment {
			kill.Do(func() {
				time.AfterFunc(delay, func() {
					defer close(killed)
					if err := s.cmd.Process.Kill(); err != nil {
						r.t.Error(err)
					}
				})
			})
		}
	}
	var senders sync.WaitGroup
	cuts := make([]int, crashSenders)
	for n := range crashSenders {
		own := randv2.New(randv2.NewPCG(rng.Uint64(), uint64(n)))
		senders.Go(func() { cuts[n] = r.deliver(inbox, fmt.Sprintf("%d-%d", round, n), own, acked) })
	}
	senders.Wait()
	<-killed
	if err := s.end(); err == nil {
		r.t.Error("the server ended as if nobody had killed it")
	}
	for _, n := range cuts {
		cut += n
	}
	return cut
}

// deliver sends new events, and each some again, until the server is gone. It
// returns how many deliveries were not answered.
func (r *crashRun) deliver(inbox, name string, rng *randv2.Rand, acked func(int)) (cut int) {
	for i := 0; ; i++ {
		order := rng.IntN(6) // few, so that batches meet on rows
		e := &crashEvent{
			id: fmt.Sprintf("e-%s-%d", name, i), order: fmt.Sprintf("o-%s-%d", name, order), at: int64(1767225600 + i),
			status: []string{"created", "paid", "shipped", "returned"}[rng.IntN(4)], amount: rng.Int64N(1e6),
		}
		e.body = crashBody(e)
		r.ledger.note(e)
		for range 1 + rng.IntN(2) {
			ok, err := r.send(inbox, e)
			if err != nil {
				return cut + 1
			}
			if !ok {
				cut++
				continue
			}
			acked(r.ledger.ack(e))
		}
	}
}

func crashBody(e *crashEvent) []byte {
	return fmt.Appendf(nil, `{"id":%q,"type":"order.%s","at":%d,"order":%q,"status":%q,"amount":%d,"part":1}`, e.id, e.status, e.at, e.order, e.status, e.amount)
}

// send delivers one event; ok says that it was acknowledged.
func (r *crashRun) send(inbox string, e *crashEvent) (ok bool, err error) {
	answer, err := r.client.Send(context.Background(), &sender.Delivery{
		Provider: r.provider, To: inbox + "/in/acme", Header: http.Header{"Content-Type": {"application/json"}}, Body: e.body,
	})
	switch {
	case err != nil:
		return false, err
	case answer.Status == http.StatusOK:
		return true, nil
	case answer.Status == http.StatusServiceUnavailable:
		return false, nil
	}
	r.t.Errorf("%s was answered %d %s", e.id, answer.Status, answer.Reason)
	return false, errors.New("a wrong answer")
}

// last starts the server once more, delivers what was never acknowledged as senders
// do, and ends it as an operator does.
func (r *crashRun) last() {
	s, inbox, _, err := startServer(r.binary, r.dir, r.env, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range r.ledger.sent {
		if e.acked {
			continue
		}
		ok, err := r.send(inbox, e)
		if err != nil || !ok {
			r.t.Errorf("%s: the server that was left alone does not take it: %v", e.id, err)
			continue
		}
		r.ledger.ack(e)
	}
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		r.t.Error(err)
	}
	if err := s.end(); err != nil {
		r.t.Errorf("the server ended with %v: %s", err, s.err.String())
	}
}

func (l *crashLedger) note(e *crashEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[e.id] = e
}

func (l *crashLedger) ack(e *crashEvent) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !e.acked {
		e.acked = true
		l.acked++
	}
	return l.acked
}

func (l *crashLedger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked
}

// judge opens the store and holds it against the ledger.
func (r *crashRun) judge(url string) {
	store, err := instance.OpenStore(r.t.Context(), url, instance.Read)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			r.t.Error(err)
		}
	}()
	faults, err := r.ledger.judge(r.t.Context(), store)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, fault := range faults {
		r.t.Error(fault)
	}
}

// judgement is what was found while a store is held against a ledger.
type judgement struct {
	ledger *crashLedger
	stored map[string]int         // how often each event is there
	newest map[string]*crashEvent // of each order, among those that are there
	parts  map[string]int64       // how many events of each order are there
	faults []string
}

func (j *judgement) fault(format string, args ...any) {
	j.faults = append(j.faults, fmt.Sprintf(format, args...))
}

// judge says where the store and the ledger disagree: each event that was sent is
// there once with its bytes, nothing else is, and every row is what the newest of
// its events says.
func (l *crashLedger) judge(ctx context.Context, store onceward.Reader) ([]string, error) {
	j := &judgement{ledger: l, stored: map[string]int{}, newest: map[string]*crashEvent{}, parts: map[string]int64{}}
	for q := (onceward.EventQuery{Limit: 500}); ; {
		events, err := store.Events(ctx, q)
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			break
		}
		for i := range events {
			q.Before = events[i].ID
			whole, err := store.Event(ctx, events[i].ID)
			if err != nil {
				return nil, err
			}
			j.event(&events[i], whole.Delivery.Body)
		}
	}
	for id, e := range l.sent {
		if j.stored[id] != 1 {
			j.fault("%s (acknowledged %t) is stored %d times", id, e.acked, j.stored[id])
		}
	}
	return j.faults, j.rows(ctx, store)
}

// event holds one stored event against what was sent.
func (j *judgement) event(e *onceward.StoredEvent, body []byte) {
	sent := j.ledger.sent[e.Key]
	if sent == nil {
		j.fault("event %s was never sent", e.Key)
		return
	}
	if e.Outcome != onceward.New || e.Facts != 1 || e.Held != 0 {
		j.fault("event %s is %s with %d facts, %d held", e.Key, e.Outcome, e.Facts, e.Held)
	}
	if !bytes.Equal(body, sent.body) {
		j.fault("event %s has other bytes than were sent", e.Key)
	}
	j.stored[e.Key]++
	j.parts[sent.order]++
	if newest := j.newest[sent.order]; newest == nil || sent.at > newest.at {
		j.newest[sent.order] = sent
	}
}

// rows holds every row against the newest of its events.
func (j *judgement) rows(ctx context.Context, store onceward.Reader) error {
	for q := (onceward.EntityQuery{Limit: 500}); ; {
		rows, err := store.Entities(ctx, q)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		for i := range rows {
			q.After = rows[i].Ref
			row, newest, parts := &rows[i], j.newest[rows[i].Key], j.parts[rows[i].Key]
			var data struct{ Amount, Parts int64 }
			if err := json.Unmarshal(row.Data, &data); err != nil {
				return err
			}
			if newest == nil || row.Status != newest.status || data.Amount != newest.amount || data.Parts != parts || row.Facts != parts {
				j.fault("order %s is %s with %s and %d facts; its newest event of %d is %+v", row.Key, row.Status, row.Data, row.Facts, parts, newest)
			}
			delete(j.newest, row.Key)
		}
	}
	for order := range j.newest {
		j.fault("order %s has events and no row", order)
	}
	return nil
}
