package world

import (
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// K-55. Commitments that appear, change or disappear change the pools' catalogues, but no price of a node.
func TestK55_CommitmentsChangeThePicture(t *testing.T) {
	t.Parallel()
	s, offered := newClock().store(), testCatalog(10_000)
	for i := range offered.Types {
		offered.Types[i].Offerings[0].CapacityType = catalog.OnDemand
	}
	if err := s.SetCatalog(testClass(), offered); err != nil {
		t.Fatal(err)
	}
	_ = s.Apply(testPool("pool-0", 1))
	claim := testClaim("c1", "cu1", 3, "pool-0", "p1", "Launched")
	claim.Labels["node.kubernetes.io/instance-type"], claim.Labels["topology.kubernetes.io/zone"],
		claim.Labels["karpenter.sh/capacity-type"] = "large", "a", catalog.OnDemand
	_ = s.Apply(claim)
	want := func(offers string, used int64) {
		t.Helper()
		now := s.Snapshot()
		if got := prices(now); got != offers || now.Nodes[0].Price != 40_000 {
			t.Errorf("%s, node %s; want %s, node 0.040", got, now.Nodes[0].Price, offers)
		}
		if l := now.Ledger(); l != nil && l.Used(nil)[0].Instances != used {
			t.Errorf("%d are used, want %d", l.Used(nil)[0].Instances, used)
		}
	}
	version := s.Version()
	want("pool-0:small=0.010 pool-0:large=0.040", 0)
	s.SetCommitments([]cluster.Commitment{{Name: "ours", Instances: 2}})
	want("pool-0:small=0.000 pool-0:large=0.000 pool-0:small=0.010 pool-0:large=0.040", 1)
	if s.Version() == version {
		t.Error("the version is the same")
	}
	version = s.Version()
	if s.SetCommitments([]cluster.Commitment{{Name: "ours", Instances: 2}}); s.Version() != version {
		t.Error("the same commitments are another version")
	}
	s.SetCommitments(nil)
	want("pool-0:small=0.010 pool-0:large=0.040", 0)
}
