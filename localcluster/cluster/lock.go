package cluster

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockDir takes the exclusive right to run a cluster in a directory. The
// kernel gives it back when the file is closed, also by the death of this
// process. Children do not inherit it.
func lockDir(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the cluster directory: %w", err)
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return lock, nil
	}
	_ = lock.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("another cluster runs in this directory: %s is locked", path)
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}
