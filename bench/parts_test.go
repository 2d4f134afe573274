package main

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPercentile(t *testing.T) {
	list := []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}
	for p, want := range map[float64]int{0: 10, 0.1: 10, 0.5: 50, 0.51: 60, 0.99: 100, 1: 100} {
		if got := percentile(list, p); got != want {
			t.Errorf("percentile %v is %d, want %d", p, got, want)
		}
	}
	if got := percentile([]time.Duration(nil), 0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.IntRange(0, 50), 1, 200).Draw(t, "list")
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		slices.Sort(list)
		got, reached := percentile(list, p), 0
		for _, x := range list {
			if x <= got {
				reached++
			}
		}
		if float64(reached) < p*float64(len(list)) {
			t.Fatalf("%d of %d do not exceed %d, want a share of %v", reached, len(list), got, p)
		}
	})
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		list []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.list); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.list, got, c.want)
		}
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("of nothing: %v", got)
	}
}

func TestSlope(t *testing.T) {
	x := []float64{100, 200, 400, 900}
	var y []float64
	for _, n := range x {
		y = append(y, 7*math.Pow(n, 0.23))
	}
	if got := slope(x, y); math.Abs(got-0.23) > 1e-9 {
		t.Errorf("got %v", got)
	}
	if got := slope(x[:1], y[:1]); !math.IsNaN(got) {
		t.Errorf("of one point: %v", got)
	}
	if got := slope(append(x, 1000), append(y, 0)); math.Abs(got-0.23) > 1e-9 {
		t.Errorf("with one that the clock cannot tell: %v", got)
	}
	if f, ok := (figure{}).plain([]float64{math.NaN()}); ok {
		t.Errorf("no number is a figure: %+v", f)
	}
}

func TestReadAnswer(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nDate: today\r\nContent-Length: 5\r\n\r\n"
	for _, c := range []struct {
		text   string
		status int
		err    error
	}{
		{head + "hello", 200, nil},
		{strings.Replace(head, "5\r", "0\r", 1), 200, nil},
		{strings.Replace(head, "200 OK", "503 Service Unavailable", 1) + "later", 503, nil},
		{head + "hello there", 0, errAnswer},
		{strings.Replace(head, "Content-Length: 5", "Transfer-Encoding: chunked", 1) + "0\r\n\r\n", 0, errAnswer},
		{strings.Replace(head, "5\r", "five\r", 1), 0, errAnswer},
		{strings.Replace(head, "5\r", "\r", 1), 0, errAnswer},
		{strings.Replace(head, "HTTP/1.1", "HTTP/2.0", 1) + "hello", 0, errAnswer},
		{head + strings.Repeat("x", 5000), 0, errAnswer},
		{strings.Replace(head, "5\r", "5000\r", 1) + strings.Repeat("x", 5000), 0, errAnswer},
	} {
		buf := make([]byte, 4096)
		status, err := readAnswer(strings.NewReader(c.text), buf)
		if status != c.status || !errors.Is(err, c.err) {
			t.Errorf("%.80q: %d, %v; want %d, %v", c.text, status, err, c.status, c.err)
		}
		if c.err != nil {
			continue
		}
		if status, err := readAnswer(iotest.OneByteReader(strings.NewReader(c.text)), buf); status != c.status || err != nil {
			t.Errorf("%.80q, byte by byte: %d, %v", c.text, status, err)
		}
		if _, err := readAnswer(strings.NewReader(c.text[:len(c.text)-1]), buf); err == nil {
			t.Errorf("%.80q, cut off: no error", c.text)
		}
	}
}

func TestParseProcess(t *testing.T) {
	const text = "4711 (a (strange) name) S 42 1 1 0 -1 4194560 9 8 7 6 150 25 3000 400 20 0 9 0 133 1 2\n"
	got, err := parseProcess([]byte(text))
	want := process{pid: 4711, parent: 42, own: 1750 * time.Millisecond, ended: 34 * time.Second}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, text := range []string{"", "1 (x) S 2", "x (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", ") 1 ("} {
		if _, err := parseProcess([]byte(text)); !errors.Is(err, errProc) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParseBusy(t *testing.T) {
	got, err := parseBusy([]byte("cpu  100 20 30 9999 8888 1 2 7 50 60\ncpu0 1 2 3\n"))
	if want := 1600 * time.Millisecond; err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, text := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9 10", "cpu a b c d e f g h"} {
		if _, err := parseBusy([]byte(text)); !errors.Is(err, errProc) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestKilobytes(t *testing.T) {
	const text = "Name:\tbench\nVmHWM:\t   65000 kB\nVmRSS:\t   50000 kB\n"
	if got, err := kilobytes(text, "VmHWM:"); err != nil || got != 66.56 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := kilobytes(text, "VmSwap:"); !errors.Is(err, errProc) {
		t.Errorf("got %v", err)
	}
}

// TestLook finds the CPU time that this process has used.
func TestLook(t *testing.T) {
	before, err := watched{}.look()
	if err != nil {
		t.Fatal(err)
	}
	work := 0
	for begin := time.Now(); time.Since(begin) < 60*time.Millisecond; {
		work++
	}
	after, err := watched{}.look()
	if err != nil {
		t.Fatal(err)
	}
	used := after.since(before)
	if used.self < 2*tick || used.busy < tick {
		t.Errorf("after 60 ms of work, %d times round: %+v", work, used)
	}
	idle := snapshot{self: time.Second, busy: 900 * time.Millisecond}
	if got := idle.others(time.Second); got != 0 {
		t.Errorf("others used %v of a machine that only we used", got)
	}
}

func TestRotate(t *testing.T) {
	var list []one
	for n := range 7 {
		list = append(list, one{conns: n})
	}
	orders := map[string]bool{}
	for rep := range 5 {
		seen := map[int]bool{}
		text := ""
		for _, o := range rotate(list, rep) {
			seen[o.conns] = true
			text += string(rune('0' + o.conns))
		}
		if len(seen) != len(list) {
			t.Errorf("repetition %d has %s", rep, text)
		}
		orders[text] = true
	}
	if len(orders) != 5 {
		t.Errorf("five repetitions have the orders %v", orders)
	}
	if rotate(nil, 3) != nil {
		t.Error("of nothing there is something")
	}
}

func TestCheckStored(t *testing.T) {
	usual, repeats := variant{Name: "sqlite"}, variant{Name: "sqlite-duplicates", Repeats: true}
	for _, c := range []struct {
		v                            variant
		acked, sent, refused, stored int
		lost                         bool
	}{
		{usual, 100, 200, 0, 100, false},
		{usual, 100, 200, 0, 99, true},
		{usual, 100, 200, 0, 101, true},
		{usual, 100, 200, 5, 103, false},
		{usual, 100, 200, 5, 106, true},
		{repeats, 300, 100, 0, 100, false},
		{repeats, 300, 100, 0, 99, true},
	} {
		if err := checkStored(c.v, c.acked, c.sent, c.refused, c.stored); errors.Is(err, errLost) != c.lost {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestSeriesOfABusyMachine(t *testing.T) {
	s := &series{clean: []sample{{rps: 10, rep: 1}, {rps: 20, rep: 2}}, noisy: []sample{{rps: 1}}}
	if s.isNoisy() || s.middle(rps) != 15 {
		t.Errorf("noisy %t, %v; noisy runs count beside clean ones", s.isNoisy(), s.middle(rps))
	}
	if diff := cmp.Diff(points{1: 10, 2: 20}, s.points(rps)); diff != "" {
		t.Error(diff)
	}
	s = &series{noisy: []sample{{rps: 1}, {rps: 2}, {rps: 3}}}
	if !s.isNoisy() || s.middle(rps) != 2 {
		t.Errorf("without a clean run: noisy %t, %v", s.isNoisy(), s.middle(rps))
	}
}

func TestGrowthPoints(t *testing.T) {
	if diff := cmp.Diff([]int{100, 150, 225, 337, 600}, growthPoints(100, 600)); diff != "" {
		t.Error(diff)
	}
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.IntRange(2, 1000).Draw(t, "first")
		last := rapid.IntRange(2*first, 100*first).Draw(t, "last")
		before := 0
		for _, at := range growthPoints(first, last) {
			if at-first/2 < before {
				t.Fatalf("%v: the points overlap", growthPoints(first, last))
			}
			before = at
		}
		if before != last {
			t.Fatalf("it ends at %d", before)
		}
	})
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		f    figure
		goal string
		want string
	}{
		{figure{Value: 0.36, Goal: 0.28, Aim: 0.35, Unit: "%"}, "≥ 28.0 %, aim 35.0 %", "met, and the aim"},
		{figure{Value: 0.30, Goal: 0.28, Aim: 0.35, Unit: "%"}, "≥ 28.0 %, aim 35.0 %", "met"},
		{figure{Value: 0.27, Goal: 0.28, Unit: "%"}, "≥ 28.0 %", "not met"},
		{figure{Value: 4, Goal: 4, Less: true, Unit: "times"}, "≤ 4.00 ×", "met"},
		{figure{Value: 81, Goal: 80, Less: true, Unit: "MB"}, "≤ 80 MB", "not met"},
		{figure{Value: 9, Unit: "times"}, "", "reported"},
	} {
		if got := c.f.verdict(); got != c.want || c.f.goal() != c.goal {
			t.Errorf("%+v: %q, %q; want %q, %q", c.f, c.f.goal(), got, c.goal, c.want)
		}
	}
}

func TestRatio(t *testing.T) {
	f, ok := figure{}.ratio(points{0: 10, 1: 30, 2: 20}, points{1: 100, 2: 50, 0: 100})
	if !ok || f.Value != 0.2 || f.Min != 0.1 || f.Max != 0.4 {
		t.Errorf("%+v, %t", f, ok)
	}
	// What was not measured in the same repetition has a part in the medians alone.
	f, ok = figure{}.ratio(points{0: 10, 3: 30}, points{0: 100, 1: 100})
	if !ok || f.Value != 0.2 || f.Min != 0.1 || f.Max != 0.2 {
		t.Errorf("%+v, %t", f, ok)
	}
	if _, ok := (figure{}).ratio(points{0: 10}, nil); ok {
		t.Error("a ratio to nothing is known")
	}
}

func TestWriteTable(t *testing.T) {
	var out bytes.Buffer
	writeTable(&out, [][]string{{"what", "µs"}, {"a longer one", "1"}, {"≤", "12.5"}})
	want := "" +
		"| what         | µs   |\n" +
		"|--------------|------|\n" +
		"| a longer one | 1    |\n" +
		"| ≤            | 12.5 |\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
