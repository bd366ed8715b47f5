package disruption_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// young is a node that something cheaper could replace, and whose quiet time ends in 20 seconds.
func young(t *testing.T) *rig {
	t.Helper()
	r := clusterOf(t, "100%", map[string]string{"a": "large"}, "1500m")
	r.clock.Advance(-time.Hour + 10*time.Second)
	r.reborn(t)
	return r
}

// D-03: a search that found nothing before the quiet time ended does not delay the one at its end.
func TestTheEndOfTheQuietTimeIsNotMissed(t *testing.T) {
	t.Parallel()
	r := young(t)
	if result := r.reconcile(t); result.RequeueAfter != 20*time.Second {
		t.Fatalf("looks again after %s, want when the quiet time ends", result.RequeueAfter)
	}
	r.clock.Advance(20 * time.Second)
	r.reconcile(t)
	if _, marked := r.claims(t); marked != 1 {
		t.Fatalf("%d marked at the end of the quiet time, want 1", marked)
	}
}

// D-15: a node that has just replaced others is replaced by a cheaper one when its rest ends, without delay.
func TestTheEndOfTheRestIsNotMissed(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "100%", map[string]string{"a": "large"}, "1500m")
	claim := r.list(t)[0]
	claim.CreationTimestamp.Time = r.clock.Now().Add(20*time.Second - cluster.ReplacementRest*time.Second)
	claim.Annotations = map[string]string{karpenterv1.ReplacedAnnotationKey: "gone"}
	if err := r.server.Update(t.Context(), &claim); err != nil {
		t.Fatal(err)
	}
	r.reborn(t)
	if result := r.reconcile(t); result.RequeueAfter != 20*time.Second {
		t.Fatalf("looks again after %s, want when the rest ends", result.RequeueAfter)
	}
	if _, marked := r.claims(t); marked != 0 {
		t.Fatal("marked while it rests")
	}
	r.clock.Advance(20 * time.Second)
	r.reconcile(t)
	if _, marked := r.claims(t); marked != 1 {
		t.Fatalf("%d marked at the end of the rest, want 1", marked)
	}
}

// V-07: a search while a budget was shut does not delay the one when it opens, for which the round wakes up.
func TestABudgetThatOpensIsNotMissed(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "100%", map[string]string{"a": "large"}, "1500m")
	now := r.clock.Now()
	// Shut from the last full hour on, until 25 seconds from now.
	full := now.UTC().Truncate(time.Hour)
	schedule, shut := "@hourly", karpenterv1.Duration{Duration: now.Add(25 * time.Second).Sub(full)}
	var pool karpenterv1.NodePool
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &pool); err != nil {
		t.Fatal(err)
	}
	pool.Spec.Disruption.Budgets = append(pool.Spec.Disruption.Budgets,
		karpenterv1.Budget{Nodes: intstr.FromString("0"), Schedule: &schedule, Duration: &shut})
	if err := r.server.Update(t.Context(), &pool); err != nil {
		t.Fatal(err)
	}
	r.sync(t)
	result := r.reconcile(t)
	if _, marked := r.claims(t); marked != 0 || result.RequeueAfter > 26*time.Second {
		t.Fatalf("%d marked, looks again after %s, want none and when the budget opens", marked, result.RequeueAfter)
	}
	r.clock.Advance(26 * time.Second)
	r.reconcile(t)
	if _, marked := r.claims(t); marked != 1 {
		t.Fatalf("%d marked once the budget is open, want 1", marked)
	}
}
