package disruption

import (
	"cmp"
	"slices"
	"testing"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// L-41, L-42: claims that the picture does not have yet come last in the trimming order, whatever their names, so that
// they are the first whose choice is taken back; among themselves they go by name.
func TestWhatThePictureLacksIsLastInTheTrimmingOrder(t *testing.T) {
	t.Parallel()
	order := byTrimOrder(cluster.New(cluster.Snapshot{Nodes: []*cluster.Node{
		{Claim: "m"}, {Claim: "z", Launched: true}, {Name: "nobody's"},
	}}))
	want := []string{"m", "z", "", "a", "x"} // the picture has the first two
	for i, left := range want {
		for j, right := range want {
			a, b := &karpenterv1.NodeClaim{}, &karpenterv1.NodeClaim{}
			a.Name, b.Name = left, right
			if got := order(a, b); cmp.Compare(got, 0) != cmp.Compare(i, j) {
				t.Errorf("%q and %q compare as %d", left, right, got)
			}
		}
	}
}

// L-42: a claim that says that it is not chosen leaves not, whatever reason it gives.
func TestAChoiceThatIsNotTrueIsNone(t *testing.T) {
	t.Parallel()
	claims := make([]karpenterv1.NodeClaim, 3)
	kind, reason := karpenterv1.ConditionTypeDisruptionReason, "NodeLimitExceeded"
	for i, status := range []condition.Value{
		condition.False(kind, reason, ""), condition.True(kind, reason, ""), condition.Unknown(kind, reason, ""),
	} {
		claims[i].Name = string(status.Status)
		condition.Set(&claims[i].Status.Conditions, 0, status, at(1000))
	}
	var names []string
	marked, leaving := (&trimming{claims: map[string]*karpenterv1.NodeClaim{}}).read(claims)
	for _, claim := range marked {
		names = append(names, claim.Name)
	}
	if !slices.Equal(names, []string{"True"}) || leaving != 1 {
		t.Errorf("chosen %v, %d leave; want the one that says True", names, leaving)
	}
}
