package cluster

import "syscall"

// childAttributes puts a child into a process group of its own. So a Ctrl-C at
// the terminal reaches only the parent, which then stops the children in order.
// The kernel kills the child when the thread that started it ends, even if the
// parent is killed by SIGKILL.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
