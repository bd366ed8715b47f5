package pool_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// L-40: a pool that is reduced to its soft limit within its budgets reports how many nodes it has, and what happens.
// Other pools, including those whose excess goes at once, do not have the condition, or lose it.
func TestAPoolAboveItsLimitSaysWhatHappens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		soft, hard, mark string
		told             bool
		cpu              string // a further limit
	}{
		{soft: "1", mark: "Inherited", told: true}, {soft: "1", mark: "AtOnce 1"}, {soft: "1"},
		{soft: "3", mark: "Inherited"}, {mark: "Inherited"},
		{soft: "1", hard: "2", mark: "Inherited"}, {soft: "1", mark: "Inherited", cpu: "9", told: true},
		{soft: "1", mark: "Inherited", cpu: "-1"}, // limits that mean nothing remove nothing
	} {
		object := newPool()
		object.Annotations = map[string]string{karpenterv1.AboveLimitAnnotationKey: c.mark}
		object.Status.Conditions = []karpenterv1.Condition{
			{Type: karpenterv1.ConditionTypeNodesWithinLimits, Status: metav1.ConditionFalse},
		}
		if c.soft != "" {
			object.Spec.Limits = karpenterv1.Limits{"nodes": resource.MustParse(c.soft)}
		}
		if c.hard != "" {
			object.Spec.HardLimits = karpenterv1.Limits{"nodes": resource.MustParse(c.hard)}
		}
		if c.cpu != "" {
			object.Spec.Limits["cpu"] = resource.MustParse(c.cpu)
		}
		objects := []client.Object{object}
		for i := range 3 {
			objects = append(objects, claimOf(object, fmt.Sprint(i)))
		}
		p := newRig(t, objects...).reconcile(t)
		if _, found := condition.Get(p.Status.Conditions,
			karpenterv1.ConditionTypeNodesWithinLimits); found != c.told {
			t.Errorf("%+v: condition %v", c, found)
		}
		if c.told {
			check(t, p, karpenterv1.ConditionTypeNodesWithinLimits, metav1.ConditionFalse,
				"3 nodes, limit 1 (soft limit): the pool was above the limit when Joiner first saw it; "+
					"2 nodes are to go, as the disruption budgets allow and not at once; raise spec.limits.nodes to keep them")
		}
		if c.cpu != "-1" {
			check(t, p, karpenterv1.ConditionTypeReady, metav1.ConditionTrue)
		}
	}
}

// claimOf is a claim of the pool, of its node class.
func claimOf(pool *karpenterv1.NodePool, name string) *karpenterv1.NodeClaim {
	return &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpenterv1.NodePoolLabelKey: pool.Name}},
		Spec:       karpenterv1.NodeClaimSpec{NodeClassRef: pool.Spec.Template.Spec.NodeClassRef},
	}
}

// L-40, X-02: a pool that another program's nodes keep above its limit says so.
func TestAPoolThatOthersKeepAboveItsLimitSaysSo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ limit, hard, mark, want string }{
		{limit: "3"}, {hard: "3"}, {},
		{limit: "2", want: "3 nodes, limit 2 (soft limit): 1 of them another program's, which Joiner does not remove"},
		{hard: "2", want: "3 nodes, limit 2 (hard limit): 1 of them another program's, which Joiner does not remove"},
		{limit: "1", mark: "Inherited", want: "2 nodes, limit 1 (soft limit): " +
			"the pool was above the limit when Joiner first saw it; " +
			"1 nodes are to go, as the disruption budgets allow and not at once; raise spec.limits.nodes to keep them"},
	} {
		object := newPool()
		object.Annotations = map[string]string{karpenterv1.AboveLimitAnnotationKey: c.mark}
		if c.limit != "" {
			object.Spec.Limits = karpenterv1.Limits{"nodes": resource.MustParse(c.limit)}
		}
		if c.hard != "" {
			object.Spec.HardLimits = karpenterv1.Limits{"nodes": resource.MustParse(c.hard)}
		}
		theirs := claimOf(object, "theirs")
		theirs.Spec.NodeClassRef = theirs.Spec.NodeClassRef.DeepCopy()
		theirs.Spec.NodeClassRef.Kind = "OtherNodeClass"
		p := newRig(t, object, claimOf(object, "a"), claimOf(object, "b"), theirs).reconcile(t)
		said, found := condition.Get(p.Status.Conditions, karpenterv1.ConditionTypeNodesWithinLimits)
		if found != (c.want != "") || said.Message != c.want {
			t.Errorf("%+v: says %q", c, said.Message)
		}
		check(t, p, karpenterv1.ConditionTypeReady, metav1.ConditionTrue)
	}
}
