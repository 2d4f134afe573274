package cases

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onceward/onceward/provider"
)

// TestSources compiles every provider of the cases and wants no warning about it.
func TestSources(t *testing.T) {
	files, err := filepath.Glob("testdata/sources/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		p, err := provider.Parse(name, text, provider.Options{ReadFile: newLibrary(ownSources).file})
		if err != nil {
			t.Error(err)
			continue
		}
		for _, w := range p.Warnings() {
			t.Logf("%s", w)
		}
	}
}
