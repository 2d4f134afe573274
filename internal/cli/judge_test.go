package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/internal/cli/instance"
	"github.com/onceward/onceward/internal/cli/sender"
	"github.com/onceward/onceward/provider"
)

// judged takes three events about two orders in and calls look with the ledger and
// the store.
func judged(t *testing.T, look func(*crashLedger, onceward.Reader)) {
	t.Helper()
	p, err := provider.Compile(provider.SourceConfig{
		Name: "acme", Secrets: []string{crashSecret}, Text: []byte(crashSource), At: []string{"sources", "acme"},
	})
	if err != nil {
		t.Fatal(err)
	}
	inst, err := instance.Start(t.Context(), instance.Config{
		Store: "sqlite:" + filepath.Join(t.TempDir(), "x.db"), Listen: "127.0.0.1:0", Admin: "127.0.0.1:0",
		Sources: map[string]inbox.Source{"acme": {Compiled: p}}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Random: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- inst.Run(ctx) }()
	ledger := &crashLedger{sent: map[string]*crashEvent{}}
	r := &crashRun{t: t, provider: p, client: sender.New(1, time.Now)}
	for i, order := range []string{"o-1", "o-1", "o-2"} {
		e := &crashEvent{id: fmt.Sprintf("e-%d", i), order: order, status: "paid", at: int64(1767225600 + i), amount: int64(i)}
		e.body = crashBody(e)
		ledger.note(e)
		if ok, err := r.send(inst.Inbox(), e); !ok || err != nil {
			t.Fatalf("%s: %t, %v", e.id, ok, err)
		}
		ledger.ack(e)
	}
	look(ledger, inst.Reader())
	r.client.Close()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestJudge tells the judge of the crash test what is not so.
func TestJudge(t *testing.T) {
	judged(t, func(l *crashLedger, store onceward.Reader) {
		if faults, err := l.judge(t.Context(), store); err != nil || len(faults) > 0 {
			t.Fatalf("what is right has faults: %q, %v", faults, err)
		}
	})
	for says, lie := range map[string]func(*crashLedger){
		"e-9 (acknowledged true) is stored 0 times": func(l *crashLedger) { l.sent["e-9"] = &crashEvent{id: "e-9", order: "o-2", acked: true} },
		"event e-2 was never sent":                  func(l *crashLedger) { delete(l.sent, "e-2") },
		"event e-0 has other bytes":                 func(l *crashLedger) { l.sent["e-0"].body = []byte("{}") },
		"order o-1 is paid":                         func(l *crashLedger) { l.sent["e-1"].status = "shipped" },
		"order o-2 is paid with":                    func(l *crashLedger) { l.sent["e-2"].amount++ },
		"order o-3 has events and no row":           func(l *crashLedger) { l.sent["e-1"].order = "o-3" },
	} {
		judged(t, func(l *crashLedger, store onceward.Reader) {
			lie(l)
			faults, err := l.judge(t.Context(), store)
			if err != nil || !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, says) }) {
				t.Errorf("%s: found %q, %v", says, faults, err)
			}
		})
	}
}
