//go:build !linux

package main

import "os"

// syncData makes the system write what was appended to a file.
func syncData(f *os.File) error { return f.Sync() }
