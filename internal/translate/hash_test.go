package translate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

func kwokPool() *karpenterv1.NodePool {
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "pool-uid"}}
	pool.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh",
		Kind: "KWOKNodeClass", Name: "default"}
	return pool
}

func never() karpenterv1.NillableDuration { return karpenterv1.NillableDuration{Raw: "Never"} }

func after(length time.Duration) karpenterv1.NillableDuration {
	return karpenterv1.NillableDuration{Duration: &length, Raw: length.String()}
}

// The values were printed by NodePool.Hash of sigs.k8s.io/karpenter v1.15.0 for the same templates (P-34, L-05).
func TestHashEqualsKarpenters(t *testing.T) {
	t.Parallel()
	gpu := corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}
	b := corev1.Taint{Key: "b", Effect: corev1.TaintEffectNoExecute}
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for name, row := range map[string]struct {
		want   string
		change func(*karpenterv1.NodeClaimTemplate)
	}{
		"plain": {"7428780003907761376", func(*karpenterv1.NodeClaimTemplate) {}},
		"never": {"7428780003907761376", func(t *karpenterv1.NodeClaimTemplate) { t.Spec.ExpireAfter = never() }},
		"720h": {"12745407319442031341", func(t *karpenterv1.NodeClaimTemplate) {
			t.Spec.ExpireAfter = after(720 * time.Hour)
		}},
		"no class": {"17307646073972311821", func(t *karpenterv1.NodeClaimTemplate) { t.Spec.NodeClassRef = nil }},
		"full": {"755090315656093964", func(t *karpenterv1.NodeClaimTemplate) {
			t.ObjectMeta.Labels = map[string]string{"team": "a", "tier": "web"}
			t.ObjectMeta.Annotations = map[string]string{"note": "x"}
			t.Spec.ExpireAfter = after(90 * time.Minute)
			t.Spec.TerminationGracePeriod = &karpenterv1.Duration{Duration: 5 * time.Minute}
			t.Spec.Taints = []corev1.Taint{gpu, b}
			t.Spec.StartupTaints = []corev1.Taint{{Key: "boot", Effect: corev1.TaintEffectNoExecute}}
			t.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{{Key: "a", Operator: "Exists"}}
		}},
		"taints in another order": {"17187726038369496864", func(t *karpenterv1.NodeClaimTemplate) {
			t.Spec.Taints = []corev1.Taint{gpu, b}
		}},
		"time added": {"1290717244525460686", func(t *karpenterv1.NodeClaimTemplate) {
			t.Spec.Taints = []corev1.Taint{{Key: "b", Effect: corev1.TaintEffectNoExecute, TimeAdded: &at}}
		}},
		"zero grace": {"14245545481296229771", func(t *karpenterv1.NodeClaimTemplate) {
			t.Spec.TerminationGracePeriod = &karpenterv1.Duration{}
		}},
		"zero expiry": {"13546070544088512816", func(t *karpenterv1.NodeClaimTemplate) {
			t.Spec.ExpireAfter = after(0)
		}},
		"empty lists": {"16023863355318403112", func(t *karpenterv1.NodeClaimTemplate) {
			t.ObjectMeta.Labels, t.Spec.Taints = map[string]string{}, []corev1.Taint{}
		}},
	} {
		pool := kwokPool()
		row.change(&pool.Spec.Template)
		if got := Hash(pool); got != row.want {
			t.Errorf("%s: hash is %s, Karpenter's is %s", name, got, row.want)
		}
	}
}

// L-05: limits, weight and everything else outside the template drift no node.
func TestHashLeavesOutBehaviour(t *testing.T) {
	t.Parallel()
	pool := kwokPool()
	before := Hash(pool)
	nodes := karpenterv1.Limits{"nodes": resource.MustParse("3")}
	pool.Spec.Limits, pool.Spec.HardLimits, pool.Spec.Weight, pool.Spec.Replicas = nodes, nodes, new(int32(5)),
		new(int64(2))
	pool.Spec.Disruption = karpenterv1.Disruption{ConsolidateAfter: after(time.Hour),
		ConsolidationPolicy: karpenterv1.ConsolidationPolicyWhenEmpty}
	if got := Hash(pool); got != before {
		t.Errorf("hash changed from %s to %s", before, got)
	}
}
