package provider_test

import (
	"testing"

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
