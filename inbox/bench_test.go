package inbox_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/inbox"
	"github.com/onceward/onceward/provider"
	"github.com/onceward/onceward/sqlite"
)

func now() time.Time { return time.Now() }

func mail(order string, captured int64, currency string) error { return nil }

func newInbox() (*inbox.Inbox, context.Context) {
	ctx := context.Background()
	store, err := sqlite.Open(":memory:")
	if err != nil {
		panic(err)
	}
	in, err := inbox.New(store, inbox.Config{Sources: map[string]inbox.Source{
		"music": {Provider: "sunoapi", Secrets: []string{"a-token-of-our-own"}},
	}})
	if err != nil {
		panic(err)
	}
	return in, ctx
}

// BenchmarkIngest measures the path from the request to the 200, without a network:
// the sample charge.succeeded of 1 KiB and more, each with an id of its own, by
// as many senders as the name says.
func BenchmarkIngest(b *testing.B) {
	for _, store := range []string{"memory", "file"} {
		for _, senders := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("%s/%d", store, senders), func(b *testing.B) {
				path := ":memory:"
				if store == "file" {
					path = filepath.Join(b.TempDir(), "bench.db")
				}
				benchmarkIngest(b, path, senders)
			})
		}
	}
}

func benchmarkIngest(b *testing.B, path string, senders int) {
	store, err := sqlite.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	in, err := inbox.New(store, inbox.Config{Sources: map[string]inbox.Source{
		"stripe": {Provider: "stripe", Secrets: []string{"whsec_benchmark"}},
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = in.Close(ctx) }()
	// A job for each change; nobody works them off here.
	in.Handle("payment", func(context.Context, onceward.Change) error { return nil })
	requests := make([]*provider.Request, b.N)
	var template []byte
	for _, s := range provider.Samples("stripe") {
		if strings.HasSuffix(s.Name, "charge.succeeded") {
			template = s.Body
		}
	}
	at := time.Now()
	for i := range requests {
		body := bytes.Replace(template, []byte(`"id": "evt_`), fmt.Appendf(nil, `"id": "evt_%d_`, i), 1)
		if len(body) == len(template) {
			b.Fatal("the sample has no id to replace")
		}
		body = bytes.ReplaceAll(body, []byte("pi_3MadeUpIntent0001"), fmt.Appendf(nil, "pi_%d", i%20_000))
		requests[i] = &provider.Request{Method: "POST", URL: "http://example.com/in/stripe", Body: body}
		if err := in.Provider("stripe").Sign(at, requests[i], ""); err != nil {
			b.Fatal(err)
		}
	}
	handler := in.Source("stripe")
	var next, failed atomic.Int64
	b.SetParallelism((senders + 1) / 2) // of two processors
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := requests[next.Add(1)-1]
			req := httptest.NewRequest(r.Method, r.URL, bytes.NewReader(r.Body))
			req.Header = r.Header
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			if w.Code != http.StatusOK {
				failed.Add(1)
			}
		}
	})
	b.StopTimer()
	if n := failed.Load(); n > 0 {
		b.Fatalf("%d were not acknowledged", n)
	}
	if s, err := store.Stats(ctx); err != nil || s.Events != int64(b.N) {
		b.Fatalf("%d events are stored, sent were %d, %v", s.Events, b.N, err)
	}
}
