package pool

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
)

// K-09: what budgets allow in total does not fall with the nodes that use them up: dashboards compute the difference.
// While disruption is paused nothing is allowed.
func TestK09_BudgetsInAllAndWhatIsLeft(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	c := &Controller{config: Config{Metrics: metrics.New(registry).Pools, Now: func() time.Time {
		return time.Unix(0,
			0)
	}}}
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	pool.Spec.Disruption.Budgets = []karpenterv1.Budget{{Nodes: intstr.FromString("20%"),
		Reasons: []karpenterv1.DisruptionReason{"Empty"}}}
	for _, paused := range []bool{false, true} {
		c.showBudgets(pool, 20, 3, paused)
		for reason, want := range map[string]float64{"empty": 4, "drifted": metrics.Unlimited} {
			if paused {
				want = 0
			}
			if n := controllertest.Count(t, registry, "karpenter_nodepools_allowed_disruptions", "a",
				reason); n != want {
				t.Errorf("paused %t: %v are allowed for %s, want %v", paused, n, reason, want)
			}
			if n := controllertest.Count(t, registry, "karpenter_nodepools_nodes_consuming_budgets", "a",
				reason); n != 3 {
				t.Errorf("paused %t: %v use up the budgets for %s, want 3", paused, n, reason)
			}
		}
	}
}
