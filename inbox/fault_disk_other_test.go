//go:build !linux

package inbox_test

import (
	"testing"

	"github.com/onceward/onceward/internal/pgtest"
)

func fullDisk(t *testing.T, _ *pgtest.Server) (s *site, stop, resume func()) {
	t.Log("NOT RUN: a file system cannot be mounted on this platform; the other ways to fill a disk were")
	return nil, nil, nil
}

func fullServer(t *testing.T, _ *pgtest.Server) (s *site, stop, resume func()) {
	t.Log("NOT RUN: a file system cannot be mounted on this platform; the other ways to fill a disk were")
	return nil, nil, nil
}
