package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// confine lets a command see only the directory files, and run as user, as UID:GID. It returns false unless we are
// root.
func confine(command *exec.Cmd, files, user string) bool {
	var uid, gid uint32
	if _, err := fmt.Sscanf(user, "%d:%d", &uid, &gid); err != nil || os.Geteuid() != 0 {
		return false
	}
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: files, Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	return true
}
