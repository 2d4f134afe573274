package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of CPU time in /proc: on Linux a hundredth of a second, whatever
// the kernel's own clock.
const tick = 10 * time.Millisecond

// kthreadd is the process whose children are the kernel's own threads.
const kthreadd = 2

// snapshot is CPU time at one moment, each since its process began.
type snapshot struct {
	at     time.Time
	self   time.Duration // this process: the load generator
	server time.Duration // the server under test
	store  time.Duration // PostgreSQL, with its backends that have ended
	kernel time.Duration // the kernel's threads, which write to the disk
	busy   time.Duration // the whole machine, every processor
}

// watched are the processes of a run; 0 is one that there is not.
type watched struct{ server, postmaster int }

// look takes a snapshot.
func (w watched) look() (s snapshot, err error) {
	if s.busy, err = busyTime("/proc/stat"); err != nil {
		return s, err
	}
	self := os.Getpid()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return s, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended since
		}
		if err != nil {
			return s, fmt.Errorf("read the CPU time of a process: %w", err)
		}
		p, err := parseProcess(text)
		if err != nil {
			return s, fmt.Errorf("%s: %w", file, err)
		}
		switch {
		case p.pid == self:
			s.self = p.own
		case p.pid == w.server:
			s.server = p.own
		case p.pid == w.postmaster:
			s.store += p.own + p.ended
		case p.parent == w.postmaster && w.postmaster != 0:
			s.store += p.own
		case p.parent == kthreadd || p.pid == kthreadd:
			s.kernel += p.own
		}
	}
	s.at = time.Now()
	return s, nil
}

// since returns what was used between two snapshots.
func (s snapshot) since(before snapshot) snapshot {
	return snapshot{
		self: s.self - before.self, server: s.server - before.server, store: s.store - before.store,
		kernel: s.kernel - before.kernel, busy: s.busy - before.busy,
	}
}

// others returns the share of the machine, from 0 to 1, that was used by
// processes other than ours in a time of that length.
func (s snapshot) others(took time.Duration) float64 {
	rest := s.busy - s.self - s.server - s.store - s.kernel
	return max(0, float64(rest)/float64(took)/float64(runtime.NumCPU()))
}

// process is a line of /proc/PID/stat.
type process struct {
	pid, parent int
	own, ended  time.Duration // its CPU time, and that of children it has waited for
}

var errProc = errors.New("this is not what Linux writes there")

// parseProcess reads a line of /proc/PID/stat. The name in it is in parentheses and
// may hold anything.
func parseProcess(text []byte) (process, error) {
	begin, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if begin < 0 || end < begin {
		return process{}, errProc
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:begin])))
	fields := strings.Fields(string(text[end+1:]))
	if err != nil || len(fields) < 15 {
		return process{}, errProc
	}
	var n [5]int64 // parent, user and system time, the same of its children
	for i, at := range []int{1, 11, 12, 13, 14} {
		if n[i], err = strconv.ParseInt(fields[at], 10, 64); err != nil {
			return process{}, errProc
		}
	}
	return process{pid, int(n[0]), time.Duration(n[1]+n[2]) * tick, time.Duration(n[3]+n[4]) * tick}, nil
}

// busyTime reads from /proc/stat how long the processors were not idle. Time that
// the machine below took away counts as busy: it was used by others.
func busyTime(file string) (time.Duration, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("read how busy the machine is (the benchmark runs on Linux): %w", err)
	}
	return parseBusy(text)
}

func parseBusy(text []byte) (time.Duration, error) {
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, errProc
	}
	var sum int64
	for i, field := range fields[1:9] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, errProc
		}
		if i != 3 && i != 4 { // idle, and waiting for a disk
			sum += n
		}
	}
	return time.Duration(sum) * tick, nil
}

// memory reads how much memory a process has in use, in MB of 10^6 bytes, and how
// much it had at most.
func memory(pid int) (now, most float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory of the server under test: %w", err)
	}
	if now, err = kilobytes(string(text), "VmRSS:"); err != nil {
		return 0, 0, err
	}
	most, err = kilobytes(string(text), "VmHWM:")
	return now, most, err
}

// kilobytes finds a line as "VmRSS:   1234 kB" and returns it in MB.
func kilobytes(text, name string) (float64, error) {
	for line := range strings.Lines(text) {
		if value, is := strings.CutPrefix(line, name); is {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				return 0, errProc
			}
			return float64(n) * 1024 / 1e6, nil
		}
	}
	return 0, errProc
}

// parentOf returns the process id of the parent of a process.
func parentOf(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("look for a process: %w", err)
	}
	p, err := parseProcess(text)
	return p.parent, err
}
