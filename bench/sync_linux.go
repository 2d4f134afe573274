package main

import (
	"fmt"
	"os"
	"syscall"
)

// syncData makes the system write what was appended to a file.
func syncData(f *os.File) error {
	if err := syscall.Fdatasync(int(f.Fd())); err != nil {
		return fmt.Errorf("fdatasync: %w", err)
	}
	return nil
}
