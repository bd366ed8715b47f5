package stream

import (
	"bytes"
	"testing"

	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// B-19: a recording is taken in completely, and the figures are about all of it.
func TestB19_ARecordingIsTakenIn(t *testing.T) {
	t.Parallel()
	const nodes, pods = 30, 30 * 20
	s, err := scenario.Make("one-more-pod-30", 1)
	if err != nil {
		t.Fatal(err)
	}
	var recording bytes.Buffer
	if err := Record(s, &recording); err != nil {
		t.Fatal(err)
	}
	_, got, err := Play(s, &recording)
	if err != nil {
		t.Fatal(err)
	}
	again := pods / replaced
	if want := 2*nodes + 3*pods + 4*again; got.Events != want {
		t.Errorf("%d events, want %d: two for a node, three for a pod, four for each that is replaced", got.Events,
			want)
	}
	if got.Nodes != nodes || got.Pods != pods {
		t.Errorf("%d nodes and %d pods, want %d and %d", got.Nodes, got.Pods, nodes, pods)
	}
	if got.SnapshotSeconds <= 0 || got.Snapshot99Seconds < got.SnapshotSeconds {
		t.Errorf("snapshots: median %g s, 99 of 100 within %g s", got.SnapshotSeconds, got.Snapshot99Seconds)
	}
	if got.BytesPerNode <= 0 || got.BytesPerPodWithObject <= 0 {
		t.Errorf("%d bytes for a node, %d for a pod with its object", got.BytesPerNode, got.BytesPerPodWithObject)
	}
	if _, _, err := Play(s, bytes.NewBufferString("{\n")); err == nil {
		t.Error("a recording that is cut off is taken for a whole one")
	}
}
