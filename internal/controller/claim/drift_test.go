package claim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// driftRig is a launched claim of a pool, as the pool's template is.
func driftRig(t *testing.T) (*rig, *karpenterv1.NodePool) {
	t.Helper()
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "p"}}
	pool.Spec.Template.Spec.NodeClassRef = newClaim().Spec.NodeClassRef
	c := newClaim()
	c.Annotations = map[string]string{karpenterv1.NodePoolHashAnnotationKey: translate.Hash(pool), karpenterv1.NodePoolHashVersionAnnotationKey: translate.HashVersion}
	r := newRig(t, pool, c)
	r.reconcile(t)
	return r, pool
}

func (r *rig) edit(t *testing.T, change func(*karpenterv1.NodePool)) {
	t.Helper()
	var pool karpenterv1.NodePool
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &pool); err != nil {
		t.Fatal(err)
	}
	change(&pool)
	if err := r.server.Update(t.Context(), &pool); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) drifted(t *testing.T) string {
	t.Helper()
	found, _ := condition.Get(r.claim(t).Status.Conditions, karpenterv1.ConditionTypeDrifted)
	return found.Reason
}

// D-06: another template drifts the claim, once told; the old one again takes that back.
func TestAnotherTemplateDrifts(t *testing.T) {
	t.Parallel()
	r, _ := driftRig(t)
	if got := r.drifted(t); got != "" {
		t.Fatalf("drifted %q, want no drift", got)
	}
	r.edit(t, func(p *karpenterv1.NodePool) {
		p.Spec.Template.ObjectMeta.Labels = map[string]string{"generation": "2"}
	})
	r.reconcile(t)
	r.reconcile(t)
	if got := r.drifted(t); got != "NodePoolDrifted" {
		t.Fatalf("drifted %q", got)
	}
	said := slices.DeleteFunc(r.tape.Said(), func(s string) bool { return !strings.Contains(s, " Drifted: ") })
	if len(said) != 1 {
		t.Errorf("said %q, want it told once", said)
	}
	r.edit(t, func(p *karpenterv1.NodePool) { p.Spec.Template.ObjectMeta.Labels = nil })
	if after := r.reconcile(t).RequeueAfter; r.drifted(t) != "" || after <= 0 || after > 5*time.Minute {
		t.Fatalf("drifted %q, looks again after %s", r.drifted(t), after)
	}
}

// P-34: a hash of another version drifts nothing.
func TestAHashOfAnotherVersionDriftsNothing(t *testing.T) {
	t.Parallel()
	r, _ := driftRig(t)
	c := r.claim(t)
	c.Annotations[karpenterv1.NodePoolHashVersionAnnotationKey], c.Annotations[karpenterv1.NodePoolHashAnnotationKey] = "v2", "1"
	if err := r.server.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t)
	if got := r.drifted(t); got != "" {
		t.Fatalf("drifted %q, want no drift", got)
	}
}

// D-06: the claim's zone is a, and the pool does not want that any more; in zones a and b it is fine.
func TestRequirementsDrift(t *testing.T) {
	t.Parallel()
	r, _ := driftRig(t)
	for _, c := range []struct {
		zones []string
		want  string
	}{{[]string{"a", "b"}, ""}, {[]string{"b"}, "RequirementsDrifted"}, {[]string{"a"}, ""}} {
		r.edit(t, func(p *karpenterv1.NodePool) {
			p.Spec.Template.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{
				{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: c.zones},
			}
		})
		r.reconcile(t)
		if got := r.drifted(t); got != c.want {
			t.Errorf("zones %v: drifted %q, want %q", c.zones, got, c.want)
		}
	}
}

// D-06: the provider has the last word.
func TestTheProviderSaysThatAMachineHasDrifted(t *testing.T) {
	t.Parallel()
	r, _ := driftRig(t)
	r.cloud.drifted = "ImageDrift"
	r.reconcile(t)
	if got := r.drifted(t); got != "ImageDrift" {
		t.Fatalf("drifted %q", got)
	}
}

// V-24: a pool that only stands for one that cannot be converted drifts nothing, whatever its template seems to be.
func TestAPoolThatCouldNotBeConvertedDriftsNothing(t *testing.T) {
	t.Parallel()
	r, _ := driftRig(t)
	r.edit(t, func(p *karpenterv1.NodePool) {
		p.Annotations = map[string]string{karpenterv1.ConversionProblemAnnotationKey: "spec.template.spec.taints[0].key is 1: it must be a string"}
		p.Spec.Template.ObjectMeta.Labels = map[string]string{"generation": "2"}
	})
	r.reconcile(t)
	r.reconcile(t)
	if got := r.drifted(t); got != "" {
		t.Errorf("drifted %q, want no drift", got)
	}
}
