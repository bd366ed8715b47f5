package operator

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
)

func writtenPool(uid string, values ...string) *karpenterv1.NodePool {
	return &karpenterv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: types.UID(uid), ResourceVersion: "1", Generation: 1},
		Spec: karpenterv1.NodePoolSpec{Template: karpenterv1.NodeClaimTemplate{Spec: karpenterv1.NodeClaimTemplateSpec{
			Requirements: []karpenterv1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: values}},
		}}},
	}
}

// labels and owners can be taken off by everybody; what this process wrote stays its own, and another object of that
// name is not.
func TestWhatWasWrittenIsKnownWithoutItsLabels(t *testing.T) {
	t.Parallel()
	w := newWritten()
	pool := writtenPool("u", "a")
	if w.wrote(pool) {
		t.Error("a pool that was never written is the operator's")
	}
	pool.Labels = map[string]string{merge.ManagedByLabel: merge.ManagedByValue}
	w.remember(nil, pool, pool)
	stripped := writtenPool("u", "a")
	if !w.wrote(stripped) {
		t.Error("the stripped pool is a stranger's")
	}
	if w.wrote(writtenPool("another", "a")) {
		t.Error("another pool of that name is the operator's")
	}
	if w.forget("web"); w.wrote(stripped) {
		t.Error("a forgotten pool is the operator's")
	}
}

// a guest's admission may fill in what it likes, but for what the policy decides.
func TestOnlyWhatThePolicyDecidesHasToBeStoredAsWritten(t *testing.T) {
	t.Parallel()
	kind := NodePools(merge.NodePoolSettings{})
	wanted, stored := writtenPool("u", "a"), writtenPool("u", "a")
	stored.Spec.Weight = new(int32(3))
	if !kind.Enforced(stored, wanted) {
		t.Error("a weight that was filled in counts as a change of what the policy decides")
	}
	stored.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Name: "another"}
	if kind.Enforced(stored, wanted) {
		t.Error("another node class does not count as a change of what the policy decides")
	}
	if kind.Enforced(writtenPool("u", "a", "b"), wanted) {
		t.Error("a further instance type does not count as a change of what the policy decides")
	}
}

// What goes into a condition is cut at 2000 bytes, between characters.
func TestALongTextIsCut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"as long as may be":      {strings.Repeat("x", 2000), strings.Repeat("x", 2000)},
		"longer":                 {strings.Repeat("x", 2001), strings.Repeat("x", 1997) + "..."},
		"longer, in a character": {strings.Repeat("x", 1996) + "\u00fcxxxx", strings.Repeat("x", 1996) + "..."},
	} {
		if got := cut(c.text); got != c.want {
			t.Errorf("%s: %d bytes, ending %q", name, len(got), got[len(got)-10:])
		}
	}
}
