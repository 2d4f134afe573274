package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// child is a server under test: a process of this same program.
type child struct {
	greeting
	cmd   *exec.Cmd
	in    io.Closer
	lines *json.Decoder
}

// start starts a server under test and waits until it listens. It ends with stop,
// with the context, or with this process.
func start(ctx context.Context, o order, stderr io.Writer) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(cmd.Environ(), serverVariable+"="+o.String())
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Variant, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Variant, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Variant, err)
	}
	c := &child{cmd: cmd, in: in, lines: json.NewDecoder(out)}
	if err := c.lines.Decode(&c.greeting); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Variant, errors.Join(err, c.kill()))
	}
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// stop lets the server end, and returns what it has stored.
func (c *child) stop() (farewell, error) {
	var last farewell
	err := c.in.Close()
	if err == nil {
		err = c.lines.Decode(&last)
	}
	if err := errors.Join(err, c.cmd.Wait()); err != nil {
		return last, fmt.Errorf("the server under test ended badly: %w", err)
	}
	return last, nil
}

// kill ends the server at once, as a crash does.
func (c *child) kill() error {
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the server under test: %w", err)
	}
	_ = c.cmd.Wait() // it was killed, which is an error there
	return nil
}
