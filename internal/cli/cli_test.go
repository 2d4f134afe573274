package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/onceward/onceward/internal/cli/demo"
	"github.com/onceward/onceward/internal/cli/screen"
)

// world is one that nobody else sees.
func world(out, err io.Writer) World {
	return World{
		Stdin: strings.NewReader(""), Stdout: out, Stderr: err, Getenv: func(string) string { return "" },
		Now: time.Now, Random: rand.Reader,
	}
}

// watcher calls seen once when a text has been written.
type watcher struct {
	output
	text string
	once sync.Once
	seen func(all string)
}

func (w *watcher) Write(p []byte) (int, error) {
	n, err := w.output.Write(p)
	if all := w.String(); strings.Contains(all, w.text) {
		w.once.Do(func() { w.seen(all) })
	}
	return n, err
}

// TestDemoStaysUp runs the demo without --exit, looks where it says, and interrupts
// it.
func TestDemoStaysUp(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var store string
	out := &watcher{text: "next ", seen: func(all string) {
		defer interrupt()
		for line := range strings.Lines(all) {
			switch words := strings.Fields(line); {
			case len(words) == 2 && words[0] == "store":
				store = words[1]
				if _, err := os.Stat(store); err != nil {
					t.Error(err)
				}
			case len(words) == 2 && words[0] == "admin":
				if n, err := countEntities(words[1]); err != nil || n != 40 {
					t.Errorf("%s gives %d payments, %v", words[1], n, err)
				}
			}
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > screen.Width && !strings.Contains(line, "onceward-demo-") {
				t.Errorf("%d characters: %s", n, line)
			}
		}
	}}
	var errs output
	if code := Main(ctx, []string{"demo"}, world(out, &errs)); code != exitOK {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if store == "" {
		t.Errorf("the demo does not say where its store is: %s", out.String())
	} else if _, err := os.Stat(store); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the demo leaves its store behind: %v", err)
	}
}

// countEntities asks a running server how many rows a list has.
func countEntities(address string) (int, error) {
	resp, err := http.Get(address)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var page struct{ Entities []json.RawMessage }
	err = json.NewDecoder(resp.Body).Decode(&page)
	return len(page.Entities), err
}

// TestDemoThatDisagrees wants the exit code 1.
func TestDemoThatDisagrees(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		a := &app{World: world(&out, io.Discard), json: asJSON}
		err := a.demoPlayed(t.Context(), &demo.Result{Faults: []string{"payment x is missing"}}, demo.Where{}, true)
		if a.exit(a.root(), err) != exitNo || !strings.Contains(out.String(), "payment x is missing") {
			t.Errorf("got %v: %s", err, out.String())
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
		says string
	}{
		{nil, exitOK, ""},
		{errNo, exitNo, ""},
		{fmt.Errorf("a fault: %w", io.ErrUnexpectedEOF), exitNo, "a fault: unexpected EOF\n"},
		{usage("not %s", "so"), exitUsage, "not so\nsee onceward --help\n"},
		{fmt.Errorf("wrapped: %w", usage("not so")), exitUsage, "wrapped: not so\nsee onceward --help\n"},
	} {
		var errs bytes.Buffer
		a := &app{World: world(io.Discard, &errs)}
		if got := a.exit(a.root(), c.err); got != c.want || errs.String() != c.says {
			t.Errorf("%v gives %d and says %q, want %d and %q", c.err, got, errs.String(), c.want, c.says)
		}
	}
}

// TestHelpFitsTheScreen reads the help of every command.
func TestHelpFitsTheScreen(t *testing.T) {
	a := &app{World: world(io.Discard, io.Discard)}
	for _, c := range allCommands(a.root()) {
		for line := range strings.Lines(c.Long + "\n" + c.Short + "\n" + c.Example) {
			if n := utf8.RuneCountInString(line); n > screen.Width {
				t.Errorf("%s: %d characters: %s", c.CommandPath(), n, line)
			}
		}
	}
}

func TestTextLog(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(&textHandler{w: &b, mu: &sync.Mutex{}, level: slog.LevelInfo})
	log.Debug("not shown")
	log.Info("ready", "inbox", "http://127.0.0.1:8080", "odd", "a b\x1b[2J")
	log.With("source", "shop").WithGroup("g").Warn("a store is slow", "took", time.Second, slog.Group("in", "x", 1))
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, line[len("15:04:05 "):])
	}
	want := []string{
		`ready inbox=http://127.0.0.1:8080 odd="a b\\x1b[2J"` + "\n",
		"warn: a store is slow source=shop g.took=1s g.in.x=1\n",
	}
	if strings.Join(lines, "") != strings.Join(want, "") {
		t.Errorf("got %q, want %q", lines, want)
	}
}

func TestLogIsJSONWhereNobodyWatches(t *testing.T) {
	var b bytes.Buffer
	a := &app{World: world(io.Discard, &b)}
	a.logger(slog.LevelInfo).Info("ready", "n", 1)
	var line map[string]any
	if err := json.Unmarshal(b.Bytes(), &line); err != nil || line["msg"] != "ready" {
		t.Errorf("got %s, %v", b.String(), err)
	}
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{"pi_1": "pi_1", "a:b": "a:b", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'", `a\:b`: `'a\:b'`} {
		if got := shellWord(in); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for in, want := range map[string]string{":8080": "http://127.0.0.1:8080", "0.0.0.0:1": "http://127.0.0.1:1", "[::]:2": "http://127.0.0.1:2", "10.0.0.1:3": "http://10.0.0.1:3", "[::1]:4": "http://[::1]:4"} {
		if got := localAddress(in); got != want {
			t.Errorf("localAddress(%q) = %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080/in/shop", "https://x.example/": "https://x.example/in/shop",
		"http://x.example/hooks?a=b": "http://x.example/hooks?a=b", "ftp://x": "", "http://": "",
	} {
		if got, err := fullAddress(in, "shop"); got != want || (err == nil) != (want != "") {
			t.Errorf("fullAddress(%q) = %s, %v, want %s", in, got, err, want)
		}
	}
	if variable("pagarme-v4") != "PAGARME_V4_WEBHOOK_SECRET" {
		t.Errorf("got %s", variable("pagarme-v4"))
	}
	for in, want := range map[string]bool{":8081": true, "0.0.0.0:1": true, "127.0.0.1:1": false, "localhost:1": false, "[::1]:1": false} {
		if openToAll(in) != want {
			t.Errorf("openToAll(%q) = %t", in, !want)
		}
	}
}
