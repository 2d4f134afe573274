package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// process is a program that runs until it is ended.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when it has ended
}

// run starts a program in dir, as owner, its output in a file there.
func run(dir string, o *owner, path string, args ...string) (*process, error) {
	name := filepath.Join(dir, filepath.Base(path)+".log")
	log, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", filepath.Base(path), err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, environment(), o.attributes()
	cmd.Stdout, cmd.Stderr = log, log
	p := &process{cmd: cmd, log: name, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The system ends the program when the thread that started it does; see
		// attributes. So that thread must be there until then.
		runtime.LockOSThread()
		defer close(p.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its state
		}
	}()
	err = <-started
	if err := log.Close(); err != nil {
		return nil, fmt.Errorf("close the log of %s: %w", filepath.Base(path), err)
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(path), err)
	}
	return p, nil
}

// await waits until ready succeeds. It gives up when the program ends or
// patience does, and ends it then.
func (p *process) await(ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended at once (%v)\n%s", filepath.Base(p.cmd.Path), p.cmd.ProcessState, p.output())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s does not answer: %w\n%s", filepath.Base(p.cmd.Path), err, p.output()), p.end(quit, os.Kill))
		case <-again.C:
		}
	}
}

// end sends one signal after the other until the program has ended.
func (p *process) end(signals ...os.Signal) error {
	for _, sig := range signals {
		if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("end %s: %w", filepath.Base(p.cmd.Path), err)
		}
		select {
		case <-p.done:
			return nil
		case <-time.After(stopPatience):
		}
	}
	return fmt.Errorf("%s with pid %d does not end", filepath.Base(p.cmd.Path), p.cmd.Process.Pid)
}

// output returns the end of what the program printed.
func (p *process) output() []byte {
	out, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	const most = 4096
	if len(out) > most {
		out = out[len(out)-most:]
	}
	return bytes.TrimSpace(out)
}
