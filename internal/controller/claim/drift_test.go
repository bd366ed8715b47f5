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
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// driftRig is a launched claim of a pool, as the pool's template is.
func driftRig(t *testing.T) (*rig, *karpenterv1.NodePool) {
	t.Helper()
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "p"}}
	pool.Spec.Template.Spec.NodeClassRef = newClaim().Spec.NodeClassRef
	c := newClaim()
	c.Annotations = map[string]string{karpenterv1.NodePoolHashAnnotationKey: translate.Hash(pool),
		karpenterv1.NodePoolHashVersionAnnotationKey: translate.HashVersion}
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

// P-34: a hash of another version drifts nothing, nor does one that is missing.
func TestAHashOfAnotherVersionDriftsNothing(t *testing.T) {
	t.Parallel()
	for _, hash := range []struct{ version, value string }{{"v2", "1"}, {translate.HashVersion, ""}} {
		r, _ := driftRig(t)
		c := r.claim(t)
		c.Annotations[karpenterv1.NodePoolHashVersionAnnotationKey] = hash.version
		c.Annotations[karpenterv1.NodePoolHashAnnotationKey] = hash.value
		if err := r.server.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		r.reconcile(t)
		if got := r.drifted(t); got != "" {
			t.Errorf("%+v: drifted %q, want no drift", hash, got)
		}
	}
}

// D-06: a requirement that nobody understands drifts nothing.
func TestARequirementWithoutSenseDriftsNothing(t *testing.T) {
	t.Parallel()
	r, _ := driftRig(t)
	r.edit(t, func(p *karpenterv1.NodePool) {
		p.Spec.Template.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{
			{Key: corev1.LabelTopologyZone, Operator: "Near", Values: []string{"a"}},
		}
	})
	if r.reconcile(t); r.drifted(t) != "" {
		t.Errorf("drifted %q, want no drift", r.drifted(t))
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
	r.cloud.drifted = provider.Drift{Reason: "ImageDrift", Message: "it differs"}
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
		p.Annotations = map[string]string{
			karpenterv1.ConversionProblemAnnotationKey: "spec.template.spec.taints[0].key is 1: it must be a string",
		}
		p.Spec.Template.ObjectMeta.Labels = map[string]string{"generation": "2"}
	})
	r.reconcile(t)
	r.reconcile(t)
	if got := r.drifted(t); got != "" {
		t.Errorf("drifted %q, want no drift", got)
	}
}

// D-06: which machine labels a pool allows. The claim's labels count, or else its node's. A label that neither has
// counts once the node is initialized, unless the pool allows its absence.
func TestWhichLabelsDrift(t *testing.T) {
	t.Parallel()
	in := func(values ...string) karpenterv1.NodeSelectorRequirementWithMinValues {
		return karpenterv1.NodeSelectorRequirementWithMinValues{Key: "example.com/disk",
			Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	notIn := in("hdd")
	notIn.Operator = corev1.NodeSelectorOpNotIn
	for name, c := range map[string]struct {
		wants       karpenterv1.NodeSelectorRequirementWithMinValues
		claim, node string
		initialized bool
		why         string
		change      func(*rig)
	}{
		"on the claim":       {in("ssd"), "ssd", "hdd", true, "", nil},
		"other on the claim": {in("ssd"), "hdd", "ssd", true, "example.com/disk=hdd: NodePool default asks for", nil},
		"on the node":        {in("ssd"), "", "ssd", true, "", nil},
		"other on the node":  {in("ssd"), "", "hdd", true, "example.com/disk=hdd: NodePool default asks for", nil},
		"missing": {in("ssd"), "", "", true,
			"the label example.com/disk is missing: NodePool default asks for", nil},
		"missing, not yet there": {in("ssd"), "", "", false, "", nil},
		"missing, and may be":    {notIn, "", "", true, "", nil},
		"not yet there, and other": {in("ssd"), "hdd", "", false,
			"example.com/disk=hdd: NodePool default asks for", nil},
		"missing, node not initialized": {in("ssd"), "", "", false, "",
			func(r *rig) { r.create(t, joined()); r.reconcile(t) }},
		"missing, node gone": {in("ssd"), "", "", true, "", func(r *rig) { r.dropNode(t) }},
	} {
		r, _ := driftRig(t)
		if c.initialized {
			r.create(t, joined())
			r.reconcile(t)
			r.makeReady(t)
			n := r.node(t)
			if n.Labels["example.com/disk"] = c.node; c.node == "" {
				delete(n.Labels, "example.com/disk")
			}
			r.put(t, n)
			r.reconcile(t)
		}
		if c.change != nil {
			c.change(r)
		}
		if c.claim != "" {
			one := r.claim(t)
			one.Labels["example.com/disk"] = c.claim
			if err := r.server.Update(t.Context(), one); err != nil {
				t.Fatal(err)
			}
		}
		r.edit(t, func(p *karpenterv1.NodePool) {
			p.Spec.Template.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{c.wants}
		})
		r.reconcile(t)
		found, _ := condition.Get(r.claim(t).Status.Conditions, karpenterv1.ConditionTypeDrifted)
		if !strings.HasPrefix(found.Message, c.why) || (found.Reason != "") != (c.why != "") {
			t.Errorf("%s: drifted %q since %q, want %q", name, found.Reason, found.Message, c.why)
		}
	}
}

// D-06: the cached pool may be older than the claim, so a new drift must be confirmed by the API server. A drift that
// is already on the claim is not checked again.
func TestADriftIsConfirmedLive(t *testing.T) {
	t.Parallel()
	r, pool := driftRig(t)
	live := newRig(t, pool.DeepCopy())
	r.edit(t, func(p *karpenterv1.NodePool) {
		p.Spec.Template.ObjectMeta.Labels = map[string]string{"generation": "2"}
	})
	r.config.Live = live.server
	r.step = claim.New(r.config)
	if after := r.reconcile(t).RequeueAfter; r.drifted(t) != "" || after != 5*time.Minute {
		t.Errorf("drifted %q by the cache alone, looks again after %s", r.drifted(t), after)
	}
	live.edit(t, func(p *karpenterv1.NodePool) {
		p.Spec.Template.ObjectMeta.Labels = map[string]string{"generation": "2"}
	})
	r.reconcile(t)
	if r.drifted(t) != "NodePoolDrifted" {
		t.Errorf("drifted %q, want what both say", r.drifted(t))
	}
	if err := live.server.Delete(t.Context(), pool.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if r.reconcile(t); r.drifted(t) != "NodePoolDrifted" {
		t.Errorf("drifted %q, want what was found to stay while the cache shows it", r.drifted(t))
	}
}

// D-06: the provider's answers: a type that is no longer offered is named. An unknown answer changes nothing, delays
// nothing else, and is asked for again. A claim that was not launched, or has no pool, is not asked about.
func TestWhatTheProviderSaysAboutDrift(t *testing.T) {
	t.Parallel()
	r, _ := driftRig(t)
	r.cloud.drifted = provider.TypeNotFound("m")
	r.reconcile(t)
	found, _ := condition.Get(r.claim(t).Status.Conditions, karpenterv1.ConditionTypeDrifted)
	if found.Reason != provider.DriftInstanceTypeNotFound ||
		found.Message != "the instance type m is not in the catalogue any more" {
		t.Errorf("drifted %+v", found)
	}
	for err, after := range map[error]time.Duration{
		controllertest.ErrRefused: 30 * time.Second, provider.ErrNodeClassNotFound: 5 * time.Minute,
		&provider.NodeClassNotReadyError{Class: "default", Reason: "it is new"}: 5 * time.Minute,
	} {
		r.cloud.drifted, r.cloud.undriftable = provider.Drift{}, err
		if result := r.reconcile(t); r.drifted(t) != provider.DriftInstanceTypeNotFound ||
			result.RequeueAfter != after {
			t.Errorf("%v: drifted %q, asks again after %s: want it as it was, and %s", err, r.drifted(t),
				result.RequeueAfter, after)
		}
	}
	r.cloud.undriftable, r.cloud.drifted = nil, provider.Drift{Reason: "ImageDrift", Message: "it differs"}
	r.reconcile(t)
	if found, _ = condition.Get(r.claim(t).Status.Conditions,
		karpenterv1.ConditionTypeDrifted); found.Message != "it differs" {
		t.Errorf("drifted %+v", found)
	}
	bare := newClaim()
	delete(bare.Labels, karpenterv1.NodePoolLabelKey)
	r = newRig(t, bare)
	r.cloud.drifted = provider.Drift{Reason: "ImageDrift", Message: "it differs"}
	if result := r.reconcile(t); r.drifted(t) != "" || result.RequeueAfter == 5*time.Minute {
		t.Errorf("a claim without a pool drifted %q, asks again after %s", r.drifted(t), result.RequeueAfter)
	}
}
