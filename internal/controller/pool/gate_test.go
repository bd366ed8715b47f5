package pool_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// D-12, K-04: a static pool that nobody acts on says so, in a condition and in events, which the recorder lets through
// once an hour; another pool says nothing.
func TestAStaticPoolSaysThatItsGateIsOff(t *testing.T) {
	t.Parallel()
	object := newPool()
	object.Spec.Replicas = new(int64(3))
	r := newRig(t, object)
	r.staticOff()
	for range 2 {
		check(t, r.reconcile(t), karpenterv1.ConditionTypeReplicasWithinLimits, metav1.ConditionFalse,
			"the feature gate StaticCapacity is off (--feature-gates): for spec.replicas nothing is launched, removed or replaced")
	}
	if said := strings.Join(r.tape.Said(), "\n"); strings.Count(said, "FeatureGateDisabled") != 2 {
		t.Errorf("said %q; want it each time", said)
	}
	other := newRig(t, newPool())
	other.staticOff()
	other.reconcile(t)
	if said := strings.Join(other.tape.Said(), "\n"); strings.Contains(said, "FeatureGateDisabled") {
		t.Errorf("said %q of a pool that is not static", said)
	}
}
