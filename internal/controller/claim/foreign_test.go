package claim_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// a claim of ours may name another program's machine, by hand. That program's node is neither adopted nor
// deleted with the claim.
func TestTheNodeOfAnotherProgramIsLeftAlone(t *testing.T) {
	t.Parallel()
	n := joined()
	n.Spec.ProviderID = "aws:///a/i-1"
	r := newRig(t, running("c1", n.Spec.ProviderID), n)
	before := r.node(t).ResourceVersion
	r.reconcile(t)
	if got := r.is(t, karpenterv1.ConditionTypeRegistered); got != "Unknown" {
		t.Errorf("Registered=%s with the node of another program", got)
	}
	r.delete(t)
	r.reconcile(t)
	if r.reconcile(t); r.node(t).ResourceVersion != before || r.claim(t) != nil {
		t.Errorf("node %+v, claim %v: want the node untouched, and the claim to go", r.node(t).ObjectMeta, r.claim(t))
	}
}

// X-02, V-24: nothing is written onto another program's pool, or onto one that stands for an unconvertible pool. A
// claim in such a pool is still handled, but the pool is not used to judge its drift.
func TestNothingIsWrittenOntoAPoolThatIsNotOurs(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*karpenterv1.NodePool){
		"another program's": func(p *karpenterv1.NodePool) {
			p.Spec.Template.Spec.NodeClassRef = p.Spec.Template.Spec.NodeClassRef.DeepCopy()
			p.Spec.Template.Spec.NodeClassRef.Kind = "EC2NodeClass"
		},
		"stands for another": func(p *karpenterv1.NodePool) {
			p.Annotations = map[string]string{
				karpenterv1.ConversionProblemAnnotationKey: "spec.x is 1: it must be a string",
			}
		},
	} {
		pool, c := aPool(), newClaim()
		change(pool)
		c.Annotations = map[string]string{karpenterv1.NodePoolHashAnnotationKey: "1",
			karpenterv1.NodePoolHashVersionAnnotationKey: "v3"}
		r := newRig(t, pool, c, joined())
		var known karpenterv1.NodePool
		read := func() string {
			if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &known); err != nil {
				t.Fatal(err)
			}
			return known.ResourceVersion
		}
		before := read()
		r.reconcile(t)
		r.makeReady(t)
		r.reconcile(t)
		if r.is(t, karpenterv1.ConditionTypeReady) != "True" || r.drifted(t) != "" || read() != before {
			t.Errorf("%s: Ready=%s, drifted %q, pool %+v: want the node ready and the pool untouched", name,
				r.is(t, karpenterv1.ConditionTypeReady), r.drifted(t), known.Status)
		}
	}
}

// L-14: a machine of the pool counts separately only if none of the pool's own claims accounts for it; another pool's
// claim does not.
func TestWhoseClaimAccountsForAMachine(t *testing.T) {
	t.Parallel()
	for of, launches := range map[string]int{"own": 1, "foreign": 0} {
		foreign := made("foreign", "other-uid")
		foreign.Labels[karpenterv1.NodePoolLabelKey] = "other"
		foreign.OwnerReferences[0].Name = "other"
		r := newRig(t, hardPool(2), made("c1", "pool-uid"), made("own", "pool-uid"), foreign)
		r.cloud.machines["fake://m"] = provider.Instance{ProviderID: "fake://m", ClaimName: of, ClaimUID: "uid-of-" +
			of, Labels: map[string]string{karpenterv1.NodePoolLabelKey: "default"}, Launched: controllertest.Start()}
		if r.reconcile(t); r.cloud.launches != launches {
			t.Errorf("with the machine of the %s claim: %d launches, want %d", of, r.cloud.launches, launches)
		}
	}
}

// L-14: if the hard limit is absent or invalid, neither claims nor machines are read.
func TestAPoolWithoutAHardLimitCostsNoList(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit    karpenterv1.Limits
		launches int
	}{
		"none":     {nil, 1},
		"nonsense": {karpenterv1.Limits{"nodes": resource.MustParse("3"), "cpu": resource.MustParse("3")}, 0},
	} {
		pool := hardPool(-1)
		pool.Spec.HardLimits = c.limit
		r := newRig(t, pool, made("c1", "pool-uid"))
		r.cloud.unlisted = controllertest.ErrRefused
		if r.reconcile(t); r.cloud.launches != c.launches {
			t.Errorf("%s: %d launches, want %d", name, r.cloud.launches, c.launches)
		}
	}
}
