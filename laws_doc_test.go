package onceward_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestLawsNameTests wants every test and every case of the conformance suite that
// docs/laws.md names to exist.
func TestLawsNameTests(t *testing.T) {
	page, err := os.ReadFile("docs/laws.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	listed := regexp.MustCompile(`(?m)^\t\t\{"([a-z-]+)", test`)
	err = fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			known[string(m[1])] = true
		}
		if path == "internal/storetest/storetest.go" {
			for _, m := range listed.FindAllSubmatch(text, -1) {
				known[string(m[1])] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, m := range regexp.MustCompile("`(Test\\w+|[a-z]+(?:-[a-z]+)*)`").FindAllSubmatch(page, -1) {
		name := string(m[1])
		switch name {
		case "tie", "by", "complete", "first": // words
			continue
		}
		named++
		if !known[name] {
			t.Errorf("docs/laws.md names %s, which does not exist", name)
		}
	}
	if named < 100 {
		t.Errorf("docs/laws.md names %d tests; the page has changed its form", named)
	}
}
