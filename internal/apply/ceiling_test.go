package apply_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// K-53: the limit of the whole cluster counts what was created since the plan, and the plan's own launches.
// Replacements may exceed it.
func TestK53_TheWholeClusterIsCountedOnceMore(t *testing.T) {
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
	r.store.ceiling = limit.Ceiling{Most: 5, Used: 4}
	replaces := launch(plan.NoSlot)
	replaces.Replaces = []string{"old"}
	out := r.apply(t, planOf(launch(plan.NoSlot, "a"), launch(plan.NoSlot, "b"), replaces))
	if len(out.Launched) != 2 || len(out.Refused) != 1 {
		t.Fatalf("launched %v, refused %v; want the first and the one that replaces", out.Launched, out.Refused)
	}
	if why := out.Refused[0].Why; why != "nodes 5 of 5 in the whole cluster (--max-nodes)" {
		t.Errorf("refused with %q", why)
	}
}
