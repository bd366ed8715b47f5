package whatif

import (
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// TestU15_MetricsCountWhatStatusCounts: of the same cluster, the numbers of the metrics and those of joinerctl status
// have the same causes, and price and nodes agree.
func TestU15_MetricsCountWhatStatusCounts(t *testing.T) {
	t.Parallel()
	waiting, nodes := 0, 0
	for seed := range uint64(seeds) {
		g := newGenerator(t, seed)
		files := g.cluster()
		for i := range g.IntN(4) {
			files = append(files, g.document(`{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {
				"name": "claim-%d", "labels": {"karpenter.sh/nodepool": "pool-0", "topology.kubernetes.io/zone": "a",
				"node.kubernetes.io/instance-type": %q, "karpenter.sh/capacity-type": "on-demand"}},
				"spec": {"requirements": [],
				"nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}},
				"status": {"providerID": "kwok://%d", "capacity": {"cpu": "8", "memory": "1Gi", "pods": "9"},
				"conditions": [{"type": "Launched", "status": "True", "reason": "Launched",
				"lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`,
				i, g.pick("large", "unheard-of"), i))
		}
		w := g.pictured(files)
		status, snapshot := w.Status(StatusInput{}), w.store.Snapshot()
		terms, err := w.terms(snapshot)
		if err != nil {
			t.Fatal(err)
		}
		n := view.NumbersOf(snapshot, engine.Launches(snapshot))
		n.Stay(snapshot, terms, func(string) view.Memory { return view.Memory{} })
		want, got := map[string]int{}, map[string]int{}
		for _, c := range status.Waiting {
			want["waits "+c.Code] += c.Count
		}
		for _, c := range status.Kept {
			want["stays "+c.Code] += c.Count
		}
		for _, p := range status.Pools {
			want["nodes "+p.Name] += p.Nodes
		}
		for group, pods := range n.Waiting {
			got["waits "+string(group.Cause)] += pods
			waiting += pods
		}
		for group, stay := range n.Staying {
			got["stays "+string(group.Cause)] += stay
		}
		for which, count := range n.Nodes {
			if which.State != view.NodeUnmanaged {
				got["nodes "+which.Pool] += count
				nodes += count
			}
		}
		for _, all := range []map[string]int{want, got} {
			for key := range all {
				if want[key] != got[key] {
					t.Errorf("seed %d: %s: the metrics count %d, status %d", seed, key, got[key], want[key])
				}
			}
		}
		price := Dollars(0)
		for _, each := range n.Price {
			price += Dollars(each)
		}
		if price != status.PricePerHour || n.Unpriced != status.Unpriced {
			t.Errorf("seed %d: %v and %d unpriced, status has %v and %d", seed, price, n.Unpriced, status.PricePerHour,
				status.Unpriced)
		}
	}
	if waiting == 0 || nodes == 0 {
		t.Errorf("%d pods wait and %d nodes are there in all clusters: nothing was compared", waiting, nodes)
	}
}
