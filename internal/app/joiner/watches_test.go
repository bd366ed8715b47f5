package joiner

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// V-13: a pool is counted again when a claim comes, goes, or has another capacity. It is looked at when it was
// changed. Conditions of either wake nobody.
func TestAPoolIsWokenByWhatItCounts(t *testing.T) {
	t.Parallel()
	watches := poolWatches(nil, nil)
	woken := func(old, fresh client.Object) bool {
		for _, watch := range watches {
			if _, pool := watch.Object.(*karpenterv1.NodePool); pool == (fresh.GetNamespace() == "pool") {
				return len(watch.Requests(t.Context(), old, fresh)) > 0
			}
		}
		return false
	}
	claim := func(change func(*karpenterv1.NodeClaim)) client.Object {
		c := &karpenterv1.NodeClaim{}
		c.Labels = map[string]string{karpenterv1.NodePoolLabelKey: "web"}
		change(c)
		return c
	}
	pool := func(change func(*karpenterv1.NodePool)) client.Object {
		p := &karpenterv1.NodePool{}
		p.Name, p.Namespace = "web", "pool" // the namespace tells this test what it is
		change(p)
		return p
	}
	for name, each := range map[string]struct {
		old, fresh client.Object
		want       bool
	}{
		"claim: new": {nil, claim(func(*karpenterv1.NodeClaim) {}), true},
		"claim: condition": {claim(func(*karpenterv1.NodeClaim) {}), claim(func(c *karpenterv1.NodeClaim) {
			c.Status.Conditions = []karpenterv1.Condition{{Type: "Ready"}}
		}), false},
		"claim: capacity": {claim(func(*karpenterv1.NodeClaim) {}), claim(func(c *karpenterv1.NodeClaim) {
			c.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}), true},
		"claim: pool": {claim(func(c *karpenterv1.NodeClaim) { c.Labels = nil }),
			claim(func(*karpenterv1.NodeClaim) {}), true},
		"pool: status": {pool(func(*karpenterv1.NodePool) {}),
			pool(func(p *karpenterv1.NodePool) { p.Status.Nodes = new(int64(1)) }), false},
		"pool: generation": {pool(func(*karpenterv1.NodePool) {}),
			pool(func(p *karpenterv1.NodePool) { p.Generation = 2 }), true},
		"pool: hash": {pool(func(*karpenterv1.NodePool) {}),
			pool(func(p *karpenterv1.NodePool) { p.Annotations = map[string]string{"a": "b"} }), true},
	} {
		if got := woken(each.old, each.fresh); got != each.want {
			t.Errorf("%s: woken %t, want %t", name, got, each.want)
		}
	}
}

// D-08: a budget that opens is looked at when it was written, not with the minute's next look. The snapshot has no
// budgets, so the feed does not report them.
func TestD08_ABudgetThatOpensIsLookedAt(t *testing.T) {
	t.Parallel()
	watch := disruptionWatches()[0]
	pool := func(generation int64, nodes string) *karpenterv1.NodePool {
		p := &karpenterv1.NodePool{}
		p.Name, p.Generation = "web", generation
		p.Spec.Disruption.Budgets = []karpenterv1.Budget{{Nodes: intstr.Parse(nodes)}}
		return p
	}
	counted := pool(1, "0")
	counted.Status.Nodes = new(int64(3))
	for name, each := range map[string]struct {
		old, fresh client.Object
		want       bool
	}{
		"new":     {nil, pool(1, "0"), true},
		"opened":  {pool(1, "0"), pool(2, "100%"), true},
		"counted": {pool(1, "0"), counted, false},
		"gone":    {pool(1, "0"), nil, false},
	} {
		if got := len(watch.Requests(t.Context(), each.old, each.fresh)) > 0; got != each.want {
			t.Errorf("%s: woken %t, want %t", name, got, each.want)
		}
	}
	if watch.After > 2*time.Second {
		t.Errorf("after %s", watch.After)
	}
}
