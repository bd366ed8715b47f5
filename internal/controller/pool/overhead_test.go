package pool_test

import (
	"strings"
	"testing"

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
	want := `default IgnoredField: annotation joiner.sh/node-overhead-price is "two cents": want a decimal number of dollars per hour ` +
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
	want := `default IgnoredField: annotation joiner.sh/spot-ratio is "most": want a whole percentage from 0% to 100%, for example 70%; ` +
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
