package pool_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// nodes have the names of pool and node class as values of labels, which are shorter than names may be. A pool
// with a longer one is not Ready: the API server would refuse each of its NodeClaims.
func TestNamesFitIntoLabels(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 64)
	for _, row := range []struct{ pool, class, want string }{
		{long, "default", fmt.Sprintf("metadata.name is %q, of 64 characters: want at most 63, since nodes have it as "+
			"their label karpenter.sh/nodepool", long)},
		{"default", long, fmt.Sprintf("spec.template.spec.nodeClassRef.name is %q, of 64 characters: want at most 63, "+
			"since nodes have it as their label karpenter.kwok.sh/kwoknodeclass", long)},
		{long[:63], long[:63], ""},
	} {
		p := newPool(in("size", "small"))
		p.Name, p.Spec.Template.Spec.NodeClassRef.Name = row.pool, row.class
		r := newRig(t, p)
		name := types.NamespacedName{Name: row.pool}
		if _, err := r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: name}); err != nil {
			t.Fatal(err)
		}
		var fresh karpenterv1.NodePool
		if err := r.server.Get(t.Context(), name, &fresh); err != nil {
			t.Fatal(err)
		}
		if row.want == "" {
			check(t, &fresh, karpenterv1.ConditionTypeValidationSucceeded, "True")
			check(t, &fresh, karpenterv1.ConditionTypeReady, "True")
			continue
		}
		check(t, &fresh, karpenterv1.ConditionTypeValidationSucceeded, "False", row.want)
		check(t, &fresh, karpenterv1.ConditionTypeReady, "False", "ValidationSucceeded")
	}
}
