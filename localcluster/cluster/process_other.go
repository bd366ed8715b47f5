//go:build !linux

package cluster

import "syscall"

// childAttributes puts a child into a process group of its own. Only Linux can
// end a child together with its parent: elsewhere, children of a parent that
// was killed by SIGKILL have to be stopped by hand.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
