package whatif

import "github.com/joiner-autoscaler/joiner/internal/engine/cluster"

// Snapshot returns the snapshot that a world explains, for tests that give it to controllers.
func (w *World) Snapshot() *cluster.Snapshot { return w.store.Snapshot() }
