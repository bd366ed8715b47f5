package cluster

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hold binds a port of 127.0.0.1 without listening. Connections are refused, and nobody else gets the port while the
// file is open. A component that shares its ports can still listen there, before and after. SO_REUSEADDR would open
// the port to everybody.
func hold(port int) (*os.File, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("holding port %d: %w", port, err)
	}
	unix.CloseOnExec(socket)
	if err := errors.Join(
		unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1),
		unix.Bind(socket, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}),
	); err != nil {
		return nil, fmt.Errorf("holding port %d: %w", port, errors.Join(err, unix.Close(socket)))
	}
	return os.NewFile(uintptr(socket), fmt.Sprintf("port %d", port)), nil
}

// holdPorts keeps a component's ports for it, from before it ends until it runs again or the cluster is stopped.
// Otherwise the kernel might give them away, and the component's clients could not find it.
func (c *Cluster) holdPorts(component Component) error {
	if !component.sharesPorts() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range component.ports() {
		held, err := hold(c.setup.ports[name])
		if err != nil {
			return err
		}
		c.held[component] = append(c.held[component], held)
	}
	return nil
}

// releasePorts undoes holdPorts.
func (c *Cluster) releasePorts(component Component) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var failed []error
	for _, held := range c.held[component] {
		failed = append(failed, held.Close())
	}
	delete(c.held, component)
	return errors.Join(failed...)
}
