package onceward_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/onceward/onceward/internal/archtest"
)

// policy is the shape of this module. Read the rows first: they are the picture
// of what knows what.
func policy() *archtest.Policy {
	return &archtest.Policy{
		Module: "github.com/onceward/onceward",
		Rows:   rows(),
		Deps:   deps(),
		Bans:   bans(),
		Allow:  allow(),
		MinDoc: 1,
	}
}

// rows is the import table. The root knows nobody, everybody may know the root,
// and the stores never meet the engine but in the command line and in tests.
func rows() []archtest.Row {
	world := []string{"net/...", "os/...", "log/...", "database/...", "crypto/rand", "math/rand/..."}
	return []archtest.Row{
		// The vocabulary: no I/O, no clock, no locks.
		{
			Dir: ".", Tests: []string{"internal/archtest"}, Never: append(world, "sync/...", "io/fs", "embed"),
			Pure: true, Public: true,
		},

		// The senders: bytes and a time go in, facts come out. Of package net/http
		// only the headers are meant, and of its errors none is a network's.
		{
			Dir: "provider", Ours: []string{".", "provider/internal/..."},
			Never: []string{"net", "os/...", "log", "database/...", "crypto/rand", "math/rand/..."}, Pure: true, Public: true,
		},
		{Dir: "provider/internal/tree", Never: world, Pure: true},
		{Dir: "provider/internal/expr", Ours: []string{"provider/internal/tree"}, Never: world, Pure: true},
		{
			Dir: "provider/internal/verify", Ours: []string{"provider/internal/tree", "provider/internal/expr"},
			Never: []string{"net", "os/...", "log", "database/...", "math/rand/..."}, Pure: true,
		},

		// The engine: any store, no particular one.
		{
			Dir: "inbox", Ours: []string{".", "provider", "inbox/internal/..."},
			Tests: []string{"sqlite", "inbox/inboxtest", "internal/storetest", "internal/pgtest", "internal/faultproxy", "postgres"},
			Never: []string{"database/...", "os/..."}, Public: true,
		},
		{Dir: "inbox/internal/panics", Ours: nil, Never: []string{"database/...", "os/...", "net/..."}},
		{Dir: "inbox/internal/committer", Ours: []string{".", "inbox/internal/panics"}, Never: []string{"database/...", "os/...", "net/..."}},
		{Dir: "inbox/inboxtest", Ours: []string{".", "inbox", "provider", "sqlite"}, Public: true},

		// The stores: the root's contract and one driver each.
		{Dir: "sqlite", Ours: []string{"."}, Tests: []string{"internal/storetest"}, Never: []string{"net", "net/http/...", "log/..."}, Public: true},
		{
			Dir: "postgres", Ours: []string{"."}, Tests: []string{"internal/storetest", "internal/pgtest", "internal/faultproxy"},
			Never: []string{"os/...", "log/..."}, Public: true,
		},
		{Dir: "internal/storetest", Ours: []string{"."}, Testing: true},
		{Dir: "internal/pgtest", Testing: true},
		{Dir: "internal/faultproxy", Testing: true},
		{Dir: "internal/lifecycle", Tests: []string{".", "provider", "sqlite", "postgres", "internal/pgtest"}, Testing: true},

		// The doors.
		{
			Dir: "internal/server", Ours: []string{".", "inbox", "provider", "internal/server/v1"},
			Tests: []string{"sqlite", "inbox/inboxtest"}, Never: []string{"database/...", "os/..."},
		},
		{Dir: "internal/server/v1", Ours: []string{"."}, Never: append(world, "sync/..."), Pure: true},
		{
			Dir: "internal/cli", Ours: []string{".", "provider", "inbox", "internal/server/v1", "internal/cli/..."},
			Tests: []string{"sqlite", "postgres", "internal/pgtest", "internal/server"},
		},
		{Dir: "internal/cli/config", Ours: []string{"provider"}},
		{Dir: "internal/cli/demo", Ours: []string{
			".", "inbox", "provider", "internal/cli/instance", "internal/cli/screen", "internal/cli/sender",
		}},
		{Dir: "internal/cli/dev", Ours: []string{"provider"}},
		{Dir: "internal/cli/instance", Ours: []string{".", "inbox", "internal/server", "sqlite", "postgres"}},
		{Dir: "internal/cli/screen", Never: world, Pure: true},
		{Dir: "internal/cli/sender", Ours: []string{".", "provider", "internal/server/v1"}},
		{Dir: "internal/cli/why", Ours: []string{".", "internal/cli/screen", "internal/server/v1"}, Never: world, Pure: true},
		{Dir: "cmd/onceward", Ours: []string{"internal/cli"}},

		// The checks of the module itself.
		{Dir: "internal/archtest"},
		{Dir: "internal/cases", Tests: []string{
			".", "inbox", "provider", "internal/server", "internal/cli/config", "internal/cli/screen", "internal/pgtest", "sqlite", "postgres",
		}, Testing: true},
		{Dir: "bench", Ours: []string{".", "inbox", "provider", "internal/server", "internal/cli/instance", "internal/pgtest"}, Testing: true},
		{Dir: "internal/planted", Tests: []string{"internal/pgtest"}, Testing: true},
	}
}

// deps says which other module is known by whom. What is not here cannot be
// imported without a line that says why it is worth it.
func deps() []archtest.Dep {
	everywhere := []string{"..."}
	return []archtest.Dep{
		{Path: "cel.dev/cel-go/...", By: []string{"provider/internal/expr"}},
		{Path: "github.com/bojanz/currency", By: []string{"provider/internal/expr", "internal/cli/screen"}},
		{Path: "github.com/jackc/pgx/v5/...", By: []string{"postgres", "internal/pgtest", "bench"}},
		{Path: "modernc.org/sqlite/...", By: []string{"sqlite"}},
		{Path: "go.yaml.in/yaml/v4", By: []string{"provider", "internal/cli/config"}},
		{Path: "github.com/spf13/cobra", By: []string{"internal/cli"}},
		{Path: "github.com/prometheus/client_golang/prometheus/...", By: []string{"internal/server"}},

		{Path: "github.com/google/go-cmp/cmp/...", By: []string{"internal/storetest"}, Tests: everywhere},
		{Path: "pgregory.net/rapid", By: []string{"internal/storetest"}, Tests: everywhere},
		{Path: "github.com/anishathalye/porcupine", By: []string{"internal/storetest"}, Tests: everywhere},
		{Path: "modernc.org/libc", Tests: []string{"sqlite"}},
		{Path: "go.uber.org/goleak", By: []string{"internal/storetest"}, Tests: everywhere},
		{Path: "github.com/rogpeppe/go-internal/...", Tests: []string{"internal/cli", "cmd/onceward"}},
	}
}

// bans are imports that no package has, but for tests.
func bans() []archtest.Ban {
	reflection := "a template that is executed keeps every exported method in the binary, which costs a third of its size"
	return []archtest.Ban{
		{Path: "C", Why: "the binary is static and cross-compiles without a C compiler"},
		{Path: "unsafe", Why: "nothing here needs it"},
		{Path: "plugin", Why: "it needs cgo and keeps everything reachable"},
		{Path: "text/template", Why: reflection},
		{Path: "html/template", Why: reflection},
		{Path: "math/rand", Why: "use math/rand/v2, with a source that the caller gives"},
		{Path: "expvar", Why: "it registers itself on the default mux"},
		{Path: "net/http/pprof", Why: "it registers itself on the default mux"},
	}
}

// allow lists where a rule does not hold, and why.
func allow() []archtest.Place {
	const (
		stores  = "this is a store"
		plants  = "it plants what the rule looks for"
		setUp   = "the clock of the inbox is set here unless the config has one"
		choice  = "here a person chooses the database"
		process = "here the program meets the process and its clock"
		racing  = "the suite races goroutines and processes over a store"

		measuring = "a program that measures processes"
	)
	return []archtest.Place{
		{Rule: "clock", At: "inbox/config.go", Why: setUp},
		{Rule: "clock", At: "cmd/onceward/main.go", Why: process},
		{Rule: "clock", At: "bench/...", Why: measuring},
		{Rule: "globals", At: "bench/...", Why: measuring},
		{Rule: "goroutines", At: "bench/...", Why: measuring},
		{Rule: "database", At: "bench/...", Why: "it measures both, and what people write by hand"},
		{Rule: "sql", At: "bench/...", Why: "the handlers that people write by hand are measured beside ours"},
		{Rule: "globals", At: "cmd/onceward/main.go", Why: process},
		{Rule: "globals", At: "internal/pgtest/...", Why: "the server of a test run is handed on to the programs that tests start"},
		{Rule: "globals", At: "internal/storetest/process.go", Why: racing},
		{Rule: "exit", At: "internal/storetest/process.go", Why: racing},

		{Rule: "goroutines", At: "inbox/internal/committer/committer.go", Why: "the lanes of group commit; Close waits for them"},
		{Rule: "goroutines", At: "inbox/internal/committer/lane.go", Why: "a timer opens the gate again; Close stops it"},
		{Rule: "goroutines", At: "inbox/work.go", Why: "the workers of Run, which waits for them"},
		{Rule: "goroutines", At: "inbox/inbox.go", Why: "the upkeep; Close stops it and waits"},
		{Rule: "goroutines", At: "inbox/quarantine.go", Why: "the one that keeps rejected deliveries; Close waits for it"},
		{Rule: "goroutines", At: "sqlite/checkpoint.go", Why: "the one that moves the log into the file; Close stops it and waits"},
		{Rule: "goroutines", At: "internal/server/server.go", Why: "two listeners; Run waits for both"},
		{Rule: "goroutines", At: "internal/cli/instance/instance.go", Why: "inbox and server run side by side; it waits for both"},
		{Rule: "goroutines", At: "internal/cli/send.go", Why: "deliveries at the same time, which is what is asked for"},
		{Rule: "goroutines", At: "internal/cli/sender/sender.go", Why: "a cancelled context ends the connection"},
		{Rule: "goroutines", At: "internal/cli/demo/...", Why: "deliveries at the same time, which is what is shown"},
		{Rule: "goroutines", At: "internal/pgtest/process.go", Why: "one waits for the end of each process"},
		{Rule: "goroutines", At: "internal/storetest/...", Why: racing},
		{Rule: "goroutines", At: "internal/faultproxy/...", Why: "it copies between connections; Close waits"},

		{Rule: "skips", At: "internal/storetest/race.go", Why: "a database in memory has no second process, which its harness declares"},

		{Rule: "sql", At: "sqlite/...", Why: stores},
		{Rule: "sql", At: "postgres/...", Why: stores},
		{Rule: "sql", At: "internal/pgtest/...", Why: "its tests ask a server whether it works"},
		{Rule: "sql", At: "internal/storetest/failing.go", Why: "it makes a store fail below its methods"},
		{Rule: "sql", At: "internal/cli/demo.go", Why: "it shows a person what to ask the database"},
		{Rule: "sql", At: "internal/cli/demo/demo_test.go", Why: "it looks at the store by hand, as a person would"},
		{Rule: "sql", At: "internal/cli/crash_store_test.go", Why: "it asks the database whether it is sound and quiet, as anybody may"},
		{Rule: "sql", At: "internal/archtest/...", Why: plants},
		{Rule: "sql", At: "arch_test.go", Why: plants},

		{Rule: "database", At: "sqlite/...", Why: stores},
		{Rule: "database", At: "postgres/...", Why: stores},
		{Rule: "database", At: "internal/pgtest/...", Why: "it starts one"},
		{Rule: "database", At: "inbox/inboxtest/...", Why: "tests of users run on the embedded one"},
		{Rule: "database", At: "internal/cli/...", Why: choice},
		{Rule: "database", At: "internal/archtest/text.go", Why: plants},
	}
}

func TestArchitecture(t *testing.T) {
	tree, err := archtest.Load(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(tree)
	for _, f := range archtest.Check(tree, policy()) {
		t.Error(f)
	}
}

// plants has, for each rule, a file that breaks it in this module.
var plants = []struct {
	rule string
	path string
	text string
	want string // in the finding
}{
	{"rows", "stray/stray.go", "package stray", "has no row"},
	{"rows", "stray/stray.go", "package stray", "sqlite: rows: the import table has a row"},

	{"imports", "p.go", `import "github.com/onceward/onceward/provider"`, ". may not import"},
	{"imports", "p.go", `import "os"`, ". may never import os"},
	{"imports", "p.go", `import "net/http"`, ". may never import net/http"},
	{"imports", "p.go", `import "sync/atomic"`, ". may never import sync/atomic"},
	{"imports", "p.go", `import "database/sql"`, ". may never import database/sql"},
	{"imports", "p.go", `import "log/slog"`, ". may never import log/slog"},
	{"imports", "provider/p.go", `import "github.com/onceward/onceward/inbox"`, "provider may not import"},
	{"imports", "provider/internal/tree/p.go", `import "github.com/onceward/onceward/provider/internal/expr"`, "may not import"},
	{"imports", "provider/internal/expr/p.go", `import "github.com/onceward/onceward/provider/internal/verify"`, "may not import"},
	{"imports", "provider/internal/verify/p.go", `import "github.com/onceward/onceward/provider"`, "may not import"},
	{"imports", "inbox/p.go", `import "github.com/onceward/onceward/sqlite"`, "inbox may not import"},
	{"imports", "sqlite/p.go", `import "github.com/onceward/onceward/postgres"`, "sqlite may not import"},
	{"imports", "postgres/p.go", `import "github.com/onceward/onceward/inbox"`, "postgres may not import"},
	{"imports", "sqlite/p_test.go", `import "github.com/onceward/onceward/inbox"`, "sqlite may not import"},
	{"imports", "internal/storetest/p.go", `import "github.com/onceward/onceward/sqlite"`, "may not import"},
	{"imports", "internal/pgtest/p.go", `import "github.com/onceward/onceward"`, "may not import"},
	{"imports", "internal/server/p.go", `import "github.com/onceward/onceward/sqlite"`, "may not import"},
	{"imports", "internal/cli/p.go", `import "github.com/onceward/onceward/internal/pgtest"`, "may not import"},
	{"imports", "cmd/onceward/p.go", `import "github.com/onceward/onceward/inbox"`, "may not import"},

	{"deps", "inbox/p.go", `import "github.com/jackc/pgx/v5"`, "inbox may not import"},
	{"deps", "postgres/p.go", `import _ "modernc.org/sqlite"`, "postgres may not import"},
	{"deps", "provider/p.go", `import "cel.dev/cel-go/cel"`, "provider may not import"},
	{"deps", "inbox/p.go", `import "go.yaml.in/yaml/v4"`, "inbox may not import"},
	{"deps", "internal/server/p.go", `import "github.com/spf13/cobra"`, "internal/server may not import"},
	{"deps", "inbox/p.go", `import "github.com/prometheus/client_golang/prometheus"`, "inbox may not import"},
	{"deps", "sqlite/p.go", `import "pgregory.net/rapid"`, "sqlite may not import"},
	{"deps", "sqlite/p.go", `import "example.com/fancy"`, "not in the list"},
	{"deps", "sqlite/p.go", `import "context"`, "nothing imports this dependency"},

	{"bans", "internal/cli/p.go", `import "text/template"`, "keeps every exported method"},
	{"bans", "internal/server/p.go", `import _ "net/http/pprof"`, "registers itself"},
	{"bans", "sqlite/p.go", `import "C"`, "C compiler"},

	{"names", "internal/util/util.go", "package util", "does not say"},
	{"names", "internal/keyutil/keyutil.go", "package keyutil", "does not say"},
	{"names", "sqlite/p.go", "package lite", "in a folder named sqlite"},
	{"comment", "sqlite/p.go", "package sqlite", "no comment"},
	{"comment", "sqlite/p.go", "// The store.\npackage sqlite", "does not start"},
	{"comment", "cmd/onceward/main.go", "// Package main runs.\npackage main", "does not start"},

	{"init", "inbox/p.go", "func init() {}", "init runs"},
	{"vars", "inbox/p.go", "var limit int", "has no value"},
	{"vars", "inbox/p.go", "import \"sync\"\nvar mu = sync.Mutex{}", "exists to be changed"},
	{"vars", "inbox/p.go", "var seen = make(map[string]bool)", "starts empty"},
	{"vars", "inbox/p.go", "var n = 1\nfunc f() { n = 2 }", "n is changed"},
	{"vars", "inbox/p.go", "var table = map[string]int{}\nfunc f() { table[\"a\"] = 1 }", "table is changed"},
	{"globals", "inbox/p.go", "import \"log/slog\"\nfunc f() { slog.Info(\"hello\") }", "slog.Info belongs"},
	{"globals", "provider/p.go", "import \"net/http\"\nvar c = http.DefaultClient", "http.DefaultClient belongs"},

	{"clock", "p.go", "import \"time\"\nvar now = time.Now", "time.Now"},
	{"clock", "sqlite/p.go", "import \"time\"\nfunc f(t time.Time) { _ = time.Since(t) }", "time.Since"},
	{"clock", "provider/p.go", "import \"time\"\nvar f = time.NewTimer", "time.NewTimer"},
	{"sleep", "inbox/p_test.go", "import \"time\"\nfunc f() { time.Sleep(1) }", "time.Sleep"},
	{"goroutines", "provider/p.go", "func f() { go f() }", "a go statement"},
	{"goroutines", "internal/cli/p.go", "import \"sync\"\nfunc f(wg *sync.WaitGroup) { wg.Go(func() {}) }", "starts a goroutine"},
	{"exit", "internal/cli/p.go", "import \"os\"\nfunc f() { os.Exit(1) }", "os.Exit"},
	{"errortext", "inbox/p.go", "func f(err error) bool { return err.Error() == \"gone\" }", "is compared"},
	{"errortext", "sqlite/p.go", "import \"strings\"\nfunc f(err error) bool { return strings.Contains(err.Error(), \"x\") }", "is searched"},
	{"skips", "postgres/p_test.go", "import \"testing\"\nfunc TestX(t *testing.T) { t.Skip(\"no server\") }", "skips itself"},

	{"sql", "inbox/p.go", "const q = `insert into events (id) values (1)`", "query text"},
	{"sql", "internal/server/p.go", "const q = `SELECT id\n\tFROM events`", "query text"},
	{"sql", "provider/p.go", "const q = `update events set id = 2`", "query text"},
	{"sql", "inbox/tables.sql", "", "a file of queries"},
	{"database", "inbox/p.go", "var isPostgres = false", "postgres is named"},
	{"database", "internal/server/p.go", "const store = `sqlite`", "sqlite is named"},
	{"database", "provider/p.go", `import "github.com/onceward/onceward/sqlite"`, "sqlite is named"},

	{"filesize", "inbox/p.go", strings.Repeat("\n", 500), "the ceiling is 500"},
	{"filesize", "inbox/p_test.go", strings.Repeat("\n", 900), "the ceiling is 900"},
	{"funcsize", "inbox/p.go", "func f() {" + strings.Repeat("\n", 60) + "}", "the ceiling is 60"},
	{"funcsize", "inbox/p.go", "func f() {" + strings.Repeat("\n", 45) + "}", "one function in ten"},
	{"funcsize", "cmd/onceward/main.go", "package main\nfunc main() {" + strings.Repeat("\n", 30) + "}", "the ceiling is 30"},
	{"docs", "inbox/p.go", "func Do() {}", "Do is exported"},
	{"docs", "p.go", "type Log interface { Read() }", "Log.Read is exported"},
	{"examples", "inbox/p_test.go", "func Example() {}", "no example"},
	{"machine", "docs/p.md", "see /wor" + "k/main", "a path of one machine"},
	{"machine", "p.json", `{"at":"/roo` + `t/go"}`, "a path of one machine"},
	{"machine", "Makefile", "\tGOPROXY" + "=direct go test", "a registry setting"},
	{"machine", "docs/p.md", "from https://proxy." + "golang.org", "a registry"},
	{"machine", "docs/p.md", "run far" + "m-bench", "a private tool"},
}

// TestPlantedViolations shows that each rule is found broken when it is, with the
// policy of this module and none made for the test.
func TestPlantedViolations(t *testing.T) {
	for _, p := range plants {
		text := p.text
		if strings.HasSuffix(p.path, ".go") && !strings.Contains(text, "package ") {
			name := filepath.Base(filepath.Dir("onceward/" + p.path))
			text = "package " + name + "\n" + text
		}
		tree, err := archtest.Load(fstest.MapFS{p.path: {Data: []byte(text)}})
		if err != nil {
			t.Fatalf("%s: %v", p.path, err)
		}
		found := archtest.Check(tree, policy())
		if !slices.ContainsFunc(found, func(f archtest.Finding) bool {
			return f.Rule == p.rule && strings.Contains(f.String(), p.want)
		}) {
			t.Errorf("%q in %s: rule %s does not say %q; found %v", p.text, p.path, p.rule, p.want, found)
		}
	}
	for _, r := range archtest.Rules() {
		if !slices.ContainsFunc(plants, func(p struct{ rule, path, text, want string }) bool { return p.rule == r.Name }) {
			t.Errorf("no violation of rule %s (%s) is planted", r.Name, r.About)
		}
	}
}

// TestLanguageVersion keeps the module open to every release of its Go version:
// a go.mod that asks for a patch release shuts out those who have an older one.
func TestLanguageVersion(t *testing.T) {
	m := goMod(t)
	if m.Go != "1.26" && m.Go != "1.26.0" {
		t.Errorf("go.mod says go %s, want 1.26 or 1.26.0 (go mod edit -go=1.26.0)", m.Go)
	}
	if m.Toolchain != "" {
		t.Errorf("go.mod names the toolchain %s; leave the choice to those who build", m.Toolchain)
	}
	if len(m.Replace)+len(m.Exclude) > 0 {
		t.Errorf("go.mod replaces %v and excludes %v, which does not hold for those who import the module", m.Replace, m.Exclude)
	}
}

// TestLibcIsTheDriversOwn guards a pair that belongs together: the driver
// modernc.org/sqlite is generated against one version of modernc.org/libc, and
// crashes have been seen with any other.
func TestLibcIsTheDriversOwn(t *testing.T) {
	const driver, libc = "modernc.org/sqlite", "modernc.org/libc"
	ours := goMod(t)
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", driver+"@"+ours.Require[driver]).Output()
	if err != nil {
		t.Fatalf("go mod download %s: %v\n%s", driver, err, out)
	}
	var got struct{ GoMod string }
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(got.GoMod)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := archtest.ParseGoMod(string(text))
	if err != nil {
		t.Fatal(err)
	}
	want := theirs.Require[libc]
	if want == "" || ours.Require[libc] != want {
		t.Errorf("go.mod requires %s %s, but %s %s is made for %s; do not update the one without the other",
			libc, ours.Require[libc], driver, ours.Require[driver], want)
	}
}

// goMod reads the go.mod of this module.
func goMod(t *testing.T) *archtest.GoMod {
	t.Helper()
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	m, err := archtest.ParseGoMod(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}
