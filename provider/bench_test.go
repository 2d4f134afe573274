package provider_test

import (
	"strings"
	"testing"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/provider"
)

// BenchmarkVerifyRead measures what one delivery costs before it is committed.
func BenchmarkVerifyRead(b *testing.B) {
	for _, name := range []string{"stripe", "kiwify", "github", "sunoapi"} {
		samples := provider.Samples(name)
		if len(samples) == 0 {
			continue
		}
		s := samples[min(4, len(samples)-1)]
		p, err := provider.Compile(provider.SourceConfig{Name: name, Provider: name, Secrets: s.Secrets()})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(s.Body)))
			for b.Loop() {
				r := &provider.Request{Method: s.Method, URL: s.URL, Header: s.Header, Body: s.Body}
				if _, err := p.Verify(s.Now, r); err != nil {
					b.Fatal(err)
				}
				if got := p.Read(r); len(got[0].Facts) == 0 {
					b.Fatal("no facts")
				}
			}
		})
	}
}

// BenchmarkCompile measures what loading a source costs.
func BenchmarkCompile(b *testing.B) {
	s := provider.Samples("stripe")[0]
	for b.Loop() {
		if _, err := provider.Compile(provider.SourceConfig{Name: "s", Provider: "stripe", Secrets: s.Secrets()}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDerive measures what the derivation of a payment costs, which is done for
// every fact about one while others wait.
func BenchmarkDerive(b *testing.B) {
	p, err := provider.Builtin("stripe")
	if err != nil {
		b.Fatal(err)
	}
	kind := p.Kinds()["payment"]
	fields := map[string]onceward.Value{"amount": onceward.Int(4990), "currency": onceward.String("EUR")}
	row := onceward.Folded{Status: "paid", Field: func(name string) onceward.Value { return fields[name] }}
	b.ReportAllocs()
	for b.Loop() {
		if d := kind.Derive(row); len(d.Fields) != 1 {
			b.Fatal("not derived")
		}
	}
}

// BenchmarkChargeSucceeded measures the parts of what is done to one delivery of a
// common size before it is committed.
func BenchmarkChargeSucceeded(b *testing.B) {
	for _, s := range provider.Samples("stripe") {
		if !strings.Contains(string(s.Body), `"charge.succeeded"`) {
			continue
		}
		p, err := provider.Compile(provider.SourceConfig{Name: "stripe", Provider: "stripe", Secrets: s.Secrets()})
		if err != nil {
			b.Fatal(err)
		}
		b.Run("Verify", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := &provider.Request{Method: s.Method, URL: s.URL, Header: s.Header, Body: s.Body}
				if _, err := p.Verify(s.Now, r); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("Read", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := &provider.Request{Method: s.Method, URL: s.URL, Header: s.Header, Body: s.Body}
				if got := p.Read(r); len(got[0].Facts) == 0 {
					b.Fatal("no facts")
				}
			}
		})
		return
	}
	b.Fatal("no sample charge.succeeded")
}
