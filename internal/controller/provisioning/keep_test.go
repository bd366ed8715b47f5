package provisioning_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/controller/provisioning"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

// apart is a cluster with two nodes on their way, and pods with a promised place on the first: two that keep apart,
// and one that does not.
const apart = `
type t cpu=4 mem=16Gi od=0.2
pool default LIMIT
pod a0 cpu=1 labels=app=a apart=host
pod b0 cpu=1 labels=app=b apart=host
pod free cpu=1 labels=app=c
`

func apartSnapshot(t *testing.T, limit string, now int64) *cluster.Snapshot {
	t.Helper()
	s, err := enginetest.Parse(strings.Replace(apart, "LIMIT", limit, 1))
	if err != nil {
		t.Fatal(err)
	}
	parts := *s
	for _, name := range []string{"first", "second"} {
		parts.Nodes = append(parts.Nodes, &cluster.Node{Name: name, Claim: name, Pool: "default", Created: now})
	}
	for _, pod := range parts.Pending {
		pod.Promised = "first"
	}
	return cluster.New(parts)
}

// B-16: room kept for a pod is freed when a plan launches another node for it or has no place, but not while the plan
// has it on an existing node.
func TestRoomThatNobodyComesForIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		limit string
		open  bool // the node has room
		want  []string
	}{
		{want: []string{"a0"}}, {limit: "nodes=1", want: []string{"a0"}}, {open: true},
	} {
		r := newRig()
		s := apartSnapshot(t, row.limit, r.clock.Now().Unix())
		parts := *s
		parts.Pending, parts.Nodes = parts.Pending[:1], parts.Nodes[:1]
		parts.Pending[0].Kept, parts.Pending[0].Promised = "first", ""
		parts.Nodes[0].Initialized = true
		if row.open {
			parts.Nodes[0].Allocatable = parts.Pools[0].Catalog.Types[0].Allocatable
		}
		r.picture.snapshot = cluster.New(parts)
		var given []string
		r.release = func(_ context.Context, pods []*cluster.Pod) {
			for _, pod := range pods {
				given = append(given, pod.Name)
			}
		}
		r.rebuild(provisioning.NewBrake())
		if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(given, row.want) {
			t.Errorf("limit %q, room %v: gave back the places of %v, want %v", row.limit, row.open, given, row.want)
		}
	}
}
