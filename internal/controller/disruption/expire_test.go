package disruption_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
)

// expire marks claims as expired, and says whether their pool wants them replaced within its budgets.
func (r *rig) expire(t *testing.T, graceful bool, names ...string) {
	t.Helper()
	var pool karpenterv1.NodePool
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &pool); err != nil {
		t.Fatal(err)
	}
	pool.Annotations = nil
	if graceful {
		pool.Annotations = map[string]string{karpenterv1.GracefulExpirationAnnotationKey: "true"}
	}
	if err := r.server.Update(t.Context(), &pool); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		var claim karpenterv1.NodeClaim
		if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &claim); err != nil {
			t.Fatal(err)
		}
		condition.Set(&claim.Status.Conditions, 0, condition.True(karpenterv1.ConditionTypeExpired, "Expired", ""),
			r.clock.Now())
		if err := r.server.Status().Update(t.Context(), &claim); err != nil {
			t.Fatal(err)
		}
	}
	r.sync(t)
}

// D-07: expired nodes are replaced within the budget, each after its replacement is there; and when the pool changes
// its mind that is undone.
func TestExpiredNodesAreReplacedWithinTheBudget(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "1", map[string]string{"a": "small", "b": "small"}, "1500m")
	r.expire(t, false, "a", "b")
	r.turn(t)
	if marked, _ := r.state(t); len(marked) != 0 {
		t.Fatalf("marked %v: whoever removes them at once does so, not this controller", marked)
	}
	r.expire(t, true)
	r.turn(t)
	r.turn(t)
	replacements := r.replacements(t)
	marked, deleting := r.state(t)
	if len(marked) != 1 || len(deleting) != 0 || len(replacements) != 1 {
		t.Fatalf("marked %v, deleting %v, replacements %v: want one, waiting for its replacement", marked, deleting,
			replacements)
	}
	r.join(t, replacements[0], "small")
	r.turn(t)
	r.turn(t)
	if now, deleting := r.state(t); len(now) != 0 || !slices.Equal(deleting, marked) {
		t.Fatalf("marked %v, deleting %v: want %v gone, and no other at the same time", now, deleting, marked)
	}
}

// D-01, D-02, D-07: a drifted or expired node whose drain would not end reports that it stays, in an event about that
// same claim.
func TestANodeWhoseDrainWouldNotEndSaysWhyItStays(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"Drifted", "Expired"} {
		r := staticFleet(t, "2")
		r.inseparable(t)
		said := uids{}
		r.over(r.server, func(c *disruption.Config) { c.Events = said })
		if reason == "Drifted" {
			r.drift(t, "a")
		} else {
			r.expire(t, true, "a")
		}
		r.turn(t)
		if marked, _ := r.state(t); len(marked) != 0 || said["a DisruptionBlocked"] != "c-a" {
			t.Errorf("%s: marked %v, told about %v; want a to stay, and an event about c-a", reason, marked, said)
		}
	}
}
