package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// maxBinary bounds the stripped program, in bytes. It is 24 MB today; some 18 MB
// more would mean that the linker keeps methods that nobody calls.
const maxBinary = 32 << 20

// build builds a package without cgo and returns the program and what the
// linker printed.
func build(t *testing.T, dir, ldflags string, packages ...string) (program, printed string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "program")
	cmd := exec.Command("go", append([]string{"build", "-ldflags=" + ldflags, "-o", program}, packages...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, tail(out))
	}
	return program, string(out)
}

func tail(out []byte) []byte { return out[max(0, len(out)-2000):] }

// reflecting lists the functions of a dependency dump that look methods up by
// names known only when the program runs. One that is reachable makes the linker
// keep every exported method of every type.
func reflecting(dump string) []string {
	var found []string
	for line := range strings.Lines(dump) {
		if strings.Contains(line, "<ReflectMethod>") {
			name, _, _ := strings.Cut(line, " ")
			found = append(found, name)
		}
	}
	return slices.Compact(found)
}

func TestNoReflectMethod(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it links the program, which takes a while")
	}
	_, dump := build(t, "", "-dumpdep", ".")
	if !strings.Contains(dump, "main.main") {
		t.Fatalf("the linker printed no dependencies: %s", tail([]byte(dump)))
	}
	for _, name := range reflecting(dump) {
		t.Errorf("%s looks up methods by name, so the linker keeps all of them", name)
	}
}

// TestReflectMethodIsFound plants what TestNoReflectMethod looks for.
func TestReflectMethodIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it links a program")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module planted\n\ngo 1.26\n",
		"main.go": "package main\n\nimport (\n\t\"os\"\n\t\"text/template\"\n)\n\nfunc main() {\n\t_ = template.Must(template.New(\"\").Parse(\"{{.}}\")).Execute(os.Stdout, 1)\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, dump := build(t, dir, "-dumpdep", "."); len(reflecting(dump)) == 0 {
		t.Error("a program that executes a template is not found")
	}
}

func TestBinary(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it links the program, which takes a while")
	}
	program, _ := build(t, "", "-s -w", ".")
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	if info.Size() > maxBinary {
		t.Errorf("the program has %d bytes, more than %d; see what the last change brought in", info.Size(), maxBinary)
	}
	built, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range built.Settings {
		if s.Key == "CGO_ENABLED" && s.Value != "0" {
			t.Error("the program is built with cgo")
		}
	}
	if runtime.GOOS == "linux" {
		static(t, program)
	}
	var out bytes.Buffer
	cmd := exec.Command(program, "version")
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil || !strings.HasPrefix(out.String(), "onceward ") {
		t.Errorf("it says %q, %v", out.String(), err)
	}
}

// static wants a program that needs no loader and no library.
func static(t *testing.T, program string) {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if libraries, err := f.ImportedLibraries(); err == nil && len(libraries) > 0 {
		t.Errorf("it needs %q", libraries)
	}
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Error("it needs a loader")
	}
}
