package report

import "io"

// The aims of following a large cluster (B-19, docs/spec/performance.md).
const (
	streamRate     = 50_000.0 // events a second of CPU
	streamSnapshot = 0.001    // seconds
)

// Stream has further figures of a recorded stream that the store has taken in. The Record's CPU seconds do not include
// decoding.
type Stream struct {
	Events           int     `json:"events"`
	Pods             int     `json:"pods"` // at the end
	Nodes            int     `json:"nodes"`
	DecodeCPUSeconds float64 `json:"decode_cpu_seconds"` // of JSON, which client-go does
	// BytesPerNode is of the heap, for a node with its NodeClaim and with the objects. BytesPerPod is without the
	// objects that a cache of client-go keeps.
	BytesPerNode          int64   `json:"bytes_per_node"`
	BytesPerPod           int64   `json:"bytes_per_pod"`
	BytesPerPodWithObject int64   `json:"bytes_per_pod_with_object"`
	SnapshotSeconds       float64 `json:"snapshot_seconds"` // after one event, the median
	Snapshot99Seconds     float64 `json:"snapshot_99_seconds"`
}

// streamAims prints the aims of following a large cluster.
func streamAims(w io.Writer, l Record) {
	s := l.Stream
	rate := float64(s.Events) / l.CPUSeconds
	aim(w, "B-19", l.Scenario, rate >= streamRate,
		"%.0f events a second of CPU (%d events, %d nodes, %d pods); aim 50,000; "+
			"decoding took %.1f s of CPU, taking in %.1f s", rate, s.Events, s.Nodes, s.Pods, s.DecodeCPUSeconds,
		l.CPUSeconds)
	aim(w, "B-19", l.Scenario, s.SnapshotSeconds < streamSnapshot,
		"a snapshot after one event %.0f µs, 99 of 100 within %.0f µs; aim 1 ms", 1e6*s.SnapshotSeconds,
		1e6*s.Snapshot99Seconds)
	aim(w, "B-19", l.Scenario, true,
		"memory: %d bytes for a node with its NodeClaim, %d for a pod, %d with its object",
		s.BytesPerNode, s.BytesPerPod, s.BytesPerPodWithObject)
}
