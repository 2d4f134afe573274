package cases

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/postgres"
	"github.com/onceward/onceward/sqlite"
)

// childVariable names the file that tells a process what to serve, in a process
// that a play has started to kill it.
const childVariable = "ONCEWARD_CASES_CHILD"

// charge is what a process is told to serve.
type charge struct {
	Case     json.RawMessage `json:"case"`
	Dirs     []string        `json:"dirs"`
	Location string          `json:"location"`
	Prefix   string          `json:"prefix"`
	Suffix   string          `json:"suffix"`
	Gone     []string        `json:"gone"`
	Effects  []string        `json:"effects"`
	Paused   bool            `json:"paused"`
	Now      time.Time       `json:"now"`
	Skew     time.Duration   `json:"skew"`
}

// wish is what the process is asked to do, one a line; it answers each with a word.
type wish struct {
	Do     string       `json:"do"`
	MS     int64        `json:"ms"`
	Fault  fault        `json:"fault"`
	Ref    onceward.Ref `json:"ref"`
	Fields string       `json:"fields"`
}

// word is what the process says: an answer, or an effect.
type word struct {
	Effect  string          `json:"effect,omitempty"`
	Change  onceward.Change `json:"change"`
	At      time.Time       `json:"at"`
	Address string          `json:"address,omitempty"`
	Error   string          `json:"error,omitempty"`
	Now     time.Time       `json:"now"`
	Skew    time.Duration   `json:"skew"`
}

// childMain serves until its input ends or it is killed, and returns the exit code.
func childMain(file string) int {
	if err := serveChild(file, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

func serveChild(file string, in io.Reader, out io.Writer) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var c charge
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	var mu sync.Mutex
	lines := json.NewEncoder(out)
	say := func(w word) error {
		mu.Lock()
		defer mu.Unlock()
		return lines.Encode(w)
	}
	h, err := c.start(say)
	if err != nil {
		return err
	}
	if err := say(word{Address: h.public()}); err != nil {
		return err
	}
	for wishes := json.NewDecoder(in); ; {
		var w wish
		switch err := wishes.Decode(&w); {
		case errors.Is(err, io.EOF):
			return h.close()
		case err != nil:
			return errors.Join(err, h.close())
		}
		var answer word
		if err := w.fulfil(h); err != nil {
			answer.Error = err.Error()
		}
		answer.Now, answer.Skew = h.clock.told()
		if err := say(answer); err != nil {
			return errors.Join(err, h.close())
		}
	}
}

// start starts what the charge says.
func (c *charge) start(say func(word) error) (*local, error) {
	told, err := readCase(c.Case)
	if err != nil {
		return nil, err
	}
	lib := newLibrary(c.Dirs...)
	l, err := lay(told, lib, c.Gone)
	if err != nil {
		return nil, err
	}
	conf, err := l.read(lib)
	if err != nil {
		return nil, err
	}
	wanted, known, kinds := map[string]effect{}, effects(), kindsOf(conf)
	for _, name := range c.Effects {
		e, ok := known[name]
		switch {
		case ok:
		case name == "review":
			e = review
		default:
			e, _ = named(name, kinds, told.mainKind())
		}
		wanted[name] = e
	}
	clock := newClock()
	clock.now, clock.skew = c.Now, c.Skew
	return startLocal(hostConfig{
		c: told, lib: lib, layout: l, prefix: c.Prefix, suffix: c.Suffix, effects: wanted, clock: clock, paused: c.Paused,
		open: func() (onceward.Store, error) { return openLocation(c.Location) },
		had: func(name string, c onceward.Change, at time.Time) error {
			return say(word{Effect: name, Change: c, At: at})
		},
		die: func() {
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Kill()
			}
			select {} // not a step further
		},
	})
}

// openLocation opens a store by what the program's configuration would say.
func openLocation(location string) (onceward.Store, error) {
	if path, ok := strings.CutPrefix(location, "sqlite:"); ok {
		return sqlite.Open(path)
	}
	return postgres.Open(context.Background(), location)
}

func (w *wish) fulfil(h *local) error {
	switch w.Do {
	case "at":
		return h.at(w.MS)
	case "advance":
		return h.advance(w.MS)
	case "pause":
		return h.pause()
	case "resume":
		return h.resume()
	case "fault":
		return h.fault(w.Fault)
	case "put":
		return h.put(w.Ref, w.Fields)
	case "rest":
		return h.rest()
	case "drain":
		return h.drain()
	case "ready":
		return h.ready()
	}
	return fmt.Errorf("unknown wish %q", w.Do)
}

// remote is a host in a process of its own.
type remote struct {
	cfg     hostConfig
	charge  charge
	file    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan word // closed when the process has ended
	address string
}

func startRemote(cfg hostConfig, dir, location string) (*remote, error) {
	h := &remote{cfg: cfg, file: filepath.Join(dir, "charge.json")}
	names := []string{}
	for name := range cfg.effects {
		names = append(names, name)
	}
	h.charge = charge{
		Case: cfg.c.text, Dirs: cfg.lib.dirs, Location: location, Prefix: cfg.prefix, Suffix: cfg.suffix, Effects: names,
		Now: time.Unix(baseTime, 0).UTC(),
	}
	err := h.start()
	return h, err
}

func (h *remote) start() error {
	text, err := json.Marshal(h.charge)
	if err != nil {
		return err
	}
	if err := os.WriteFile(h.file, text, 0o600); err != nil {
		return err
	}
	h.cmd = exec.Command(os.Args[0], "-test.run=^$")
	h.cmd.Env = append(os.Environ(), childVariable+"="+h.file)
	h.cmd.Stderr = os.Stderr
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := h.cmd.Start(); err != nil {
		return err
	}
	h.answers = make(chan word)
	go h.listen(out, h.answers)
	first, ok := <-h.answers
	if !ok {
		return fmt.Errorf("the server of the case did not start: %w", h.cmd.Wait())
	}
	h.address = first.Address
	return nil
}

// listen hands on what the process says, effects to the play.
func (h *remote) listen(out io.Reader, answers chan<- word) {
	defer close(answers)
	for lines := json.NewDecoder(bufio.NewReader(out)); ; {
		var w word
		if lines.Decode(&w) != nil {
			return // it has ended, or was killed in the middle of a word
		}
		if w.Effect == "" {
			answers <- w
			continue
		}
		if err := h.cfg.had(w.Effect, w.Change, w.At); err != nil {
			return
		}
	}
}

// ask asks the process. One that has died meanwhile is started again and asked
// again, as whoever watches over processes does.
func (h *remote) ask(w wish) error {
	for range 3 {
		if err := json.NewEncoder(h.in).Encode(w); err == nil {
			if answer, ok := <-h.answers; ok {
				h.charge.Now, h.charge.Skew = answer.Now, answer.Skew
				if answer.Error != "" {
					return errors.New(answer.Error)
				}
				return nil
			}
		}
		if err := h.revive(); err != nil {
			return err
		}
	}
	return errors.New("the server of the case dies again and again")
}

// revive starts the process again after its end.
func (h *remote) revive() error {
	_ = h.end() // how it ended is known
	return h.start()
}

// end waits for the process, which has ended or is to end now that nobody asks.
func (h *remote) end() error {
	_ = h.in.Close() // it may be gone already
	for range h.answers {
	}
	return h.cmd.Wait()
}

func (h *remote) public() string {
	return h.address
}

func (h *remote) at(ms int64) error      { return h.ask(wish{Do: "at", MS: ms}) }
func (h *remote) advance(ms int64) error { return h.ask(wish{Do: "advance", MS: ms}) }
func (h *remote) fault(f fault) error    { return h.ask(wish{Do: "fault", Fault: f}) }
func (h *remote) rest() error            { return h.ask(wish{Do: "rest"}) }
func (h *remote) drain() error           { return h.ask(wish{Do: "drain"}) }
func (h *remote) ready() error           { return h.ask(wish{Do: "ready"}) }
func (h *remote) put(ref onceward.Ref, fields string) error {
	return h.ask(wish{Do: "put", Ref: ref, Fields: fields})
}

func (h *remote) pause() error {
	h.charge.Paused = true
	return h.ask(wish{Do: "pause"})
}

func (h *remote) resume() error {
	h.charge.Paused = false
	return h.ask(wish{Do: "resume"})
}

// restart ends the process as an operator does, and starts another.
func (h *remote) restart(_ *layout, gone []string) error {
	h.charge.Gone = gone
	_ = h.end() // it may have died before
	return h.start()
}

func (h *remote) kill() error {
	if err := h.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return h.revive()
}

func (h *remote) close() error { return h.end() }
