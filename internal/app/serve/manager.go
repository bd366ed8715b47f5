package serve

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// StopWithin bounds how long steps under way may take after the signal to stop.
const StopWithin = 10 * time.Second

// EndWithin bounds how long a manager may take to end: its own bound, and that of its servers.
const EndWithin = StopWithin + closeWithin

// RunManager runs a manager until ctx ends. While it fills its caches a manager may not stop (controller-runtime
// v0.24.1 loops): after within it is left behind, as the process ends.
func RunManager(ctx context.Context, mgr manager.Manager, within time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(within):
		return nil
	}
}
