package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// confine makes files all that a command sees, and user, two numbers with a colon, whom it runs as. Only root may.
func confine(command *exec.Cmd, files, user string) bool {
	var uid, gid uint32
	if _, err := fmt.Sscanf(user, "%d:%d", &uid, &gid); err != nil || os.Geteuid() != 0 {
		return false
	}
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: files, Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	return true
}
