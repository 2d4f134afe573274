//go:build !linux

package pgtest

import (
	"os"
	"syscall"
)

var quit os.Signal = syscall.SIGQUIT

// owner is the user as whom programs run; here always the one who runs the test,
// who must not be root.
type owner struct{}

func unprivileged() (*owner, error) { return nil, nil }

func (o *owner) own(string) error { return nil }

func (o *owner) attributes() *syscall.SysProcAttr { return nil }
