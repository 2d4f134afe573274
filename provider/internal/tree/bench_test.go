package tree_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/onceward/onceward/provider/internal/tree"
)

var samples = []string{
	"stripe-03-charge.succeeded.json",
	"stripe-05-charge.refunded-partial.json",
	"stripe-10-customer.subscription.updated-past_due.json",
}

func sample(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func BenchmarkParse(b *testing.B) {
	for _, name := range samples {
		data := sample(b, name)
		b.Run("tree/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tree.Parse(data); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("encoding-json/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				var m map[string]any
				if err := json.Unmarshal(data, &m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	doc, err := tree.Parse(sample(b, samples[0]))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if doc.Root.Get("data").Get("object").Get("status").Kind() != tree.String {
			b.Fatal("no status")
		}
	}
}
