package pool_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// B-20, X-09: an overhead that cannot be understood is told in an event, and the pool stays Ready: no pod waits for
// it.
func TestAnOverheadThatCannotBeUnderstoodIsTold(t *testing.T) {
	t.Parallel()
	object := newPool()
	object.Annotations = map[string]string{karpenterv1.NodeOverheadPriceAnnotationKey: "two cents"}
	r := newRig(t, object)
	r.reconcile(t)
	check(t, r.reconcile(t), karpenterv1.ConditionTypeReady, metav1.ConditionTrue)
	want :=
		`default IgnoredField: annotation joiner.sh/node-overhead-price is "two cents": want a decimal number of dollars per hour ` +
			"from 0 to 1000000, for example 0.02; --node-overhead-price counts instead"
	if said := strings.Join(r.tape.Said(), "\n"); strings.Count(said, want) == 0 {
		t.Errorf("said:\n%s\nwant %s", said, want)
	}
	object = newPool()
	object.Annotations = map[string]string{karpenterv1.NodeOverheadPriceAnnotationKey: "0.02"}
	r = newRig(t, object)
	r.reconcile(t)
	if said := strings.Join(r.tape.Said(), "\n"); strings.Contains(said, "IgnoredField") {
		t.Errorf("said:\n%s", said)
	}
}

// K-55, X-09: so is a spot ratio that cannot be understood.
func TestK55_ASpotRatioThatCannotBeUnderstoodIsTold(t *testing.T) {
	t.Parallel()
	object := newPool()
	object.Annotations = map[string]string{karpenterv1.SpotRatioAnnotationKey: "most"}
	r := newRig(t, object)
	r.reconcile(t)
	check(t, r.reconcile(t), karpenterv1.ConditionTypeReady, metav1.ConditionTrue)
	want :=
		`default IgnoredField: annotation joiner.sh/spot-ratio is "most": want a whole percentage from 0% to 100%, for example 70%; ` +
			"any number of nodes may be spot"
	if said := strings.Join(r.tape.Said(), "\n"); strings.Count(said, want) == 0 {
		t.Errorf("said:\n%s\nwant %s", said, want)
	}
}

// K-59, X-09: the same for a label that is neither true nor false.
func TestALabelOfLocalVolumesThatCannotBeUnderstoodIsTold(t *testing.T) {
	t.Parallel()
	object := newPool()
	object.Labels = map[string]string{karpenterv1.LocalVolumesLabelKey: "some"}
	r := newRig(t, object)
	r.reconcile(t)
	check(t, r.reconcile(t), karpenterv1.ConditionTypeReady, metav1.ConditionTrue)
	want := `default IgnoredField: label joiner.sh/local-volumes is "some": want true or false; it counts as false`
	if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, want) {
		t.Errorf("said:\n%s\nwant %s", said, want)
	}
}

// an unknown annotation or label of ours on a NodePool, mostly mistyped, is reported with the nearest known one;
// so is an invalid value of graceful expiration. Others' annotations are ignored.
func TestAnnotationsThatNobodyReadsAreTold(t *testing.T) {
	t.Parallel()
	object := newPool()
	object.Annotations = map[string]string{"joiner.sh/min-node": "3", "joiner.sh/local-volumes": "true",
		"joiner.sh/pause":                  "Launch",
		"karpenter.sh/graceful-expiration": "yes", "joiner.sh/above-limit": "Inherited", "joiner.sh/paused": "Disrupt",
		"joiner.sh/min-nodes": "0", "joiner.sh/headroom": "10%", "joiner.sh/headroom-schedule": "0 7 * * * for 1h",
		"joiner.sh/spot-ratio": "50%", "joiner.sh/node-overhead-price": "0.1", "joiner.sh/terminate-first": "false",
		"example.com/pause": "yes"}
	object.Labels = map[string]string{"joiner.sh/spot-ratio": "70", "joiner.sh/zzz": "1"}
	r := newRig(t, object)
	r.reconcile(t)
	check(t, r.reconcile(t), karpenterv1.ConditionTypeReady, metav1.ConditionTrue)
	said := strings.Join(r.tape.Said(), "\n")
	const none = " and has no effect: a NodePool has none of that name"
	for _, want := range []string{
		`default IgnoredField: annotation joiner.sh/min-node is "3"` + none + `; do you mean joiner.sh/min-nodes?`,
		`default IgnoredField: annotation joiner.sh/pause is "Launch"` + none + `; do you mean joiner.sh/paused?`,
		`default IgnoredField: annotation joiner.sh/local-volumes is "true" and has no effect: it has to be a label`,
		`default IgnoredField: label joiner.sh/spot-ratio is "70" and has no effect: it has to be an annotation`,
		`default IgnoredField: label joiner.sh/zzz is "1"` + none,
		`default IgnoredField: annotation karpenter.sh/graceful-expiration is "yes": want "true" or "false"; it counts as "false"`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("said:\n%s\nwant %s", said, want)
		}
	}
	if n := strings.Count(said, "IgnoredField"); n != 12 {
		t.Errorf("said %d things, want 6 twice:\n%s", n, said)
	}
}

// a soft limit on something that no node has limits nothing. The pool goes on, and reports it.
func TestLimitsOfWhatNoNodeHasAreTold(t *testing.T) {
	t.Parallel()
	object := newPool()
	object.Spec.Limits = karpenterv1.Limits{}
	for _, name := range []corev1.ResourceName{"node", "memroy", "cpu", "memory", "nodes", "pods", "ephemeral-storage",
		"hugepages-2Mi", "nvidia.com/gpu"} {
		object.Spec.Limits[name] = resource.MustParse("5")
	}
	r := newRig(t, object)
	r.reconcile(t)
	check(t, r.reconcile(t), karpenterv1.ConditionTypeReady, metav1.ConditionTrue)
	said := strings.Join(r.tape.Said(), "\n")
	for _, want := range []string{
		"default IgnoredField: spec.limits.node is 5 and limits nothing: no node has a resource of that name; do you mean nodes?",
		"default IgnoredField: spec.limits.memroy is 5 and limits nothing: no node has a resource of that name; do you mean memory?",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("said:\n%s\nwant %s", said, want)
		}
	}
	if n := strings.Count(said, "IgnoredField"); n != 4 {
		t.Errorf("said %d things, want 2 twice:\n%s", n, said)
	}
}
