//go:build !linux && !darwin

package server

import "testing"

// openFiles returns how many files this process may have open: on this platform
// nothing bounds them that could be asked.
func openFiles(_ *testing.T, want int) int { return want }
