package cluster

import "os/exec"

// StartChild starts a program that belongs to the cluster. It ends when the cluster has stopped, and when this process
// is killed. The caller still has to call command.Wait, and should end the program before Stop. StartChild sets
// command.SysProcAttr.
func (c *Cluster) StartChild(command *exec.Cmd) error {
	command.SysProcAttr = childAttributes()
	return c.spawner.start(command)
}
