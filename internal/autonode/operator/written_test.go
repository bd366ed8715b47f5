package operator

import (
	"reflect"
	"strings"
	"testing"
	"time"

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
			Requirements: []karpenterv1.NodeSelectorRequirementWithMinValues{
				{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: values},
			},
		}}},
	}
}

// labels and owners can be taken off by everybody; what this process wrote stays its own, and another object of
// that name is not.
func TestWhatWasWrittenIsKnownWithoutItsLabels(t *testing.T) {
	t.Parallel()
	w := newWritten()
	pool := writtenPool("u", "a")
	if w.holds(pool) {
		t.Error("a pool that was never written is the operator's")
	}
	pool.Labels = map[string]string{merge.ManagedByLabel: merge.ManagedByValue}
	w.remember(nil, pool, pool, time.Now())
	stripped := writtenPool("u", "a")
	if !w.holds(stripped) {
		t.Error("the stripped pool is a stranger's")
	}
	if w.holds(writtenPool("another", "a")) {
		t.Error("another pool of that name is the operator's")
	}
	if w.forget("web"); w.holds(stripped) {
		t.Error("a forgotten pool is the operator's")
	}
	if w.holds(writtenPool("", "a")) {
		t.Error("an object that no API server has seen is the operator's")
	}
}

// what was written is shown instead of what was written over, until it is forgotten.
func TestWhatIsForgottenIsNotShown(t *testing.T) {
	t.Parallel()
	w := newWritten()
	before, after, unseen := writtenPool("u", "a"), writtenPool("u", "b"), writtenPool("u", "a")
	after.ResourceVersion, unseen.ResourceVersion = "2", ""
	if got := w.newest(unseen); got != unseen {
		t.Errorf("%v is shown, though nothing was written", got)
	}
	w.remember(before, after, after, time.Now())
	if got := w.newest(before); got.GetResourceVersion() != "2" {
		t.Errorf("version %s is shown, want what was written", got.GetResourceVersion())
	}
	w.forget("web")
	if got := w.newest(before); got.GetResourceVersion() != "1" {
		t.Errorf("version %s is shown after it was forgotten", got.GetResourceVersion())
	}
}

// what the policy decides must be stored as written: requirements, node class and the labels of the
// template. Other differences are reported separately.
func TestWhatThePolicyDecidesIsToldFromTheRest(t *testing.T) {
	t.Parallel()
	kind := NodePools(merge.NodePoolSettings{})
	for path, c := range map[string]struct {
		alter  func(p *karpenterv1.NodePool)
		policy bool
	}{
		"spec.weight": {func(p *karpenterv1.NodePool) { p.Spec.Weight = new(int32(3)) }, false},
		"spec.template.spec.expireAfter": {func(p *karpenterv1.NodePool) {
			p.Spec.Template.Spec.ExpireAfter = karpenterv1.NillableDuration{Duration: new(time.Hour)}
		}, false},
		"spec.template.metadata.annotations.x": {
			func(p *karpenterv1.NodePool) { p.Spec.Template.ObjectMeta.Annotations = map[string]string{"x": "y"} },
			false,
		},
		"spec.template.spec.nodeClassRef.name": {
			func(p *karpenterv1.NodePool) { p.Spec.Template.Spec.NodeClassRef.Name = "another" }, true,
		},
		"spec.template.metadata.labels.team": {
			func(p *karpenterv1.NodePool) { p.Spec.Template.ObjectMeta.Labels = map[string]string{"team": "a"} }, true,
		},
		"spec.template.spec.requirements": {func(p *karpenterv1.NodePool) {
			p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements,
				p.Spec.Template.Spec.Requirements[0])
		}, true},
		"spec.template.spec.requirements[0].values[0]": {
			func(p *karpenterv1.NodePool) { p.Spec.Template.Spec.Requirements[0].Values[0] = "b" }, true,
		},
	} {
		wanted, stored := writtenPool("u", "a"), writtenPool("u", "a")
		for _, p := range []*karpenterv1.NodePool{wanted, stored} {
			p.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Name: "default"}
		}
		c.alter(stored)
		got := kind.Altered(stored, wanted)
		want := Difference{Other: []string{path}}
		if c.policy {
			want = Difference{Policy: []string{path}}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
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
