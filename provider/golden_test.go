package provider_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/provider"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file, or writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); if that is meant, run go test -run Golden -update\n%s", file, diff)
	}
}

// TestGoldenErrors compiles every faulty file of testdata/errors and compares all
// that is reported, as a person sees it.
func TestGoldenErrors(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d faulty files, %v; there were more", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = provider.Parse(name, text, provider.Options{})
			var faults *provider.Errors
			if !errors.As(err, &faults) {
				t.Fatalf("got %v, want *Errors", err)
			}
			for _, p := range faults.Problems {
				if p.Message == "" || p.File == "" {
					t.Errorf("a problem without its message or file: %+v", p)
				}
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}
