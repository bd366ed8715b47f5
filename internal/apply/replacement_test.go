package apply_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// replacement is a launch without pods of its own.
func replacement(slot int, claims ...string) plan.Launch {
	l := launch(slot)
	l.Replaces = claims
	return l
}

// D-10, P-32: replacements have no pods to name them by. The replacements of one command, or of two commands, are
// different claims. The same plan made twice creates them once. They record what they replace.
func TestReplacementsAreNamedByWhatTheyReplace(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
	p := planOf(replacement(plan.NoSlot, "a", "b"), replacement(plan.NoSlot, "a", "b"), replacement(plan.NoSlot, "c"))
	for range 2 {
		if out := r.apply(t, p); len(out.Launched) != 3 || len(r.claims(t)) != 3 {
			t.Fatalf("outcome %+v, claims %v: want the same three", out, r.claims(t))
		}
	}
	var list karpenterv1.NodeClaimList
	if err := r.server.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, claim := range list.Items {
		count[claim.Annotations[karpenterv1.ReplacesAnnotationKey]]++
	}
	if count["a,b"] != 2 || count["c"] != 1 {
		t.Errorf("annotations %v", count)
	}
}

// L-30, L-31: a replacement may go above a soft limit, and never above a hard one.
func TestReplacementsAtTheLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits   limit.Limits
		slot     int
		launched int
		claim    string // of the pool; one of another is not seen live, as when it has just gone
	}{
		"soft":        {limit.Limits{HardNodes: limit.None, SoftNodes: 1}, plan.NoSlot, 1, "default"},
		"hard":        {limit.Limits{HardNodes: 1, SoftNodes: limit.None}, 0, 0, "default"},
		"hard, known": {limit.Limits{HardNodes: 1, SoftNodes: limit.None}, 0, 0, "other"},
	} {
		claim := claimOfPool("a")
		claim.Labels[karpenterv1.NodePoolLabelKey] = c.claim
		r := newRig(t, c.limits, interceptor.Funcs{}, claim)
		r.store.used = limit.Usage{Nodes: 1}
		if out := r.apply(t, planOf(replacement(c.slot, "a"))); len(out.Launched) != c.launched ||
			len(r.claims(t)) != 1+c.launched {
			t.Errorf("%s: outcome %+v, claims %v", name, out, r.claims(t))
		}
	}
}
