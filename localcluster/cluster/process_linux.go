package cluster

import "syscall"

// childAttributes puts a child into a process group of its own, so that a
// Ctrl-C at the terminal reaches only the parent, which then stops the children
// in order; and has the kernel kill the child when the thread that started it
// ends, which also happens when the parent is killed by SIGKILL.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
