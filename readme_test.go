package onceward_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme compiles the Go of README.md as it stands there, in a module of its
// own as a reader would, and runs the test that it shows.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a module of its own; the long run has it")
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, match := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, match[1])
	}
	if len(blocks) != 4 {
		t.Fatalf("README.md has %d blocks of Go; this test knows four: the program, the store, the handler, the test", len(blocks))
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	_, requirements, _ := strings.Cut(string(mod), "\nrequire")
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":  fmt.Sprintf("module example.com/shop\n\ngo 1.26\n\nrequire github.com/onceward/onceward v0.0.0\n\nreplace github.com/onceward/onceward => %s\n\nrequire%s", root, requirements),
		"go.sum":  string(sum),
		"main.go": blocks[0],
		"work.go": "package main\n\nimport (\n\t\"context\"\n\t\"os\"\n\n" +
			"\t\"github.com/onceward/onceward\"\n\t\"github.com/onceward/onceward/inbox\"\n\t\"github.com/onceward/onceward/postgres\"\n)\n\n" +
			"func mail(order string, captured int64, currency string) error { return nil }\n\n" +
			"func work(ctx context.Context, in *inbox.Inbox) {\n" + blocks[2] + "}\n\n" +
			"func open(ctx context.Context) (onceward.Store, error) {\n" + blocks[1] + "\treturn store, err\n}\n\n" +
			"var _, _ = work, open\n",
		"paid_test.go": "package main\n\nimport (\n\t\"context\"\n\t\"testing\"\n\n" +
			"\t\"github.com/onceward/onceward\"\n\t\"github.com/onceward/onceward/inbox/inboxtest\"\n)\n\n" + blocks[3],
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"vet", "."}, {"test", "-count=1", "-run=TestPaidOnce", "-v", "."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		if args[0] == "test" && !strings.Contains(string(out), "--- PASS: TestPaidOnce") {
			t.Fatalf("the test of README.md did not run:\n%s", out)
		}
	}
}
