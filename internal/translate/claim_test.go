package translate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

func plannedLaunch(t *testing.T, pool *karpenterv1.NodePool) plan.Launch {
	t.Helper()
	set, _, err := PoolRequirements(pool)
	if err != nil {
		t.Fatal(err)
	}
	return plan.Launch{
		Pool: pool.Name, Slot: plan.NoSlot, Types: []string{"m5.large", "c5.large"},
		Labels: map[string]string{"team": "a"}, Requirements: set.And(requirement.NewSet(
			requirement.OneOf("topology.kubernetes.io/zone", "a"), requirement.OneOf("kubernetes.io/hostname", "n1"),
		)),
		Requests: resources.Vector{1500, 1 << 30, 0, 3},
	}
}

func printed(list []entry) string {
	var lines []string
	for _, e := range list {
		line := fmt.Sprintf("%s %s %v", e.Key, e.Operator, e.Values)
		if e.MinValues != nil {
			line += fmt.Sprintf(" min %d", *e.MinValues)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestClaimOfALaunch(t *testing.T) { // P-24
	t.Parallel()
	pool := kwokPool()
	pool.Spec.Template.ObjectMeta = karpenterv1.ObjectMeta{Labels: map[string]string{"tier": "web"},
		Annotations: map[string]string{"note": "x"}}
	pool.Spec.Template.Spec.Requirements = []entry{
		{Key: "node.kubernetes.io/instance-type", Operator: "Exists", MinValues: new(2)},
		{Key: "family", Operator: "Exists", MinValues: new(2)}, {Key: "team", Operator: "Exists"},
	}
	pool.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "t", Effect: corev1.TaintEffectNoSchedule}}
	pool.Spec.Template.Spec.ExpireAfter = after(time.Hour)
	claim := NodeClaimFor(pool, resources.NewSpace().Names(), plannedLaunch(t, pool), "default-x")
	want := `family Exists [] min 2
karpenter.kwok.sh/kwoknodeclass In [default]
karpenter.sh/nodepool In [default]
team Exists []
tier In [web]
topology.kubernetes.io/zone In [a]
node.kubernetes.io/instance-type In [m5.large c5.large] min 2`
	if got := printed(claim.Spec.Requirements); got != want {
		t.Errorf("requirements\n%s\nwant\n%s", got, want)
	}
	labels := ""
	for _, label := range slices.Sorted(maps.Keys(claim.Labels)) {
		labels += label + "=" + claim.Labels[label] + " "
	}
	const all = "karpenter.kwok.sh/kwoknodeclass=default karpenter.sh/nodepool=default team=a tier=web " +
		"topology.kubernetes.io/zone=a "
	if labels != all {
		t.Errorf("labels %s; want %s", labels, all)
	}
	cpu, pods := claim.Spec.Resources.Requests[corev1.ResourceCPU], claim.Spec.Resources.Requests[corev1.ResourcePods]
	if cpu.String() != "1500m" || pods.String() != "3" {
		t.Errorf("requests %v", claim.Spec.Resources.Requests)
	}
	owner := claim.OwnerReferences[0]
	if owner.Kind != "NodePool" || owner.APIVersion != "karpenter.sh/v1" || owner.UID != pool.UID ||
		!*owner.BlockOwnerDeletion {
		t.Errorf("owner %+v", owner)
	}
	if a := claim.Annotations; a["note"] != "x" || a["karpenter.sh/nodepool-hash"] != Hash(pool) ||
		a["karpenter.sh/nodepool-hash-version"] != "v3" || len(a) != 3 {
		t.Errorf("annotations %v", a)
	}
	if !slices.Equal(claim.Finalizers, []string{"karpenter.sh/termination"}) || claim.Name != "default-x" ||
		len(claim.Spec.Taints) != 1 ||
		*claim.Spec.ExpireAfter.Duration != time.Hour || claim.Spec.NodeClassRef.Name != "default" {
		t.Errorf("claim %+v", claim)
	}
	claim.Spec.NodeClassRef.Name, claim.Spec.Taints[0].Key = "other", "other"
	if pool.Spec.Template.Spec.NodeClassRef.Name != "default" || pool.Spec.Template.Spec.Taints[0].Key != "t" {
		t.Error("the claim shares memory with the pool")
	}
}

// P-09: a list that is shorter than the count would be refused by the API.
func TestMinimumCountIsCutToTheList(t *testing.T) {
	t.Parallel()
	pool := kwokPool()
	pool.Spec.Template.Spec.Requirements = []entry{
		{Key: "node.kubernetes.io/instance-type", Operator: "Exists", MinValues: new(5)},
	}
	claim := NodeClaimFor(pool, resources.NewSpace().Names(), plannedLaunch(t, pool), "x")
	types := claim.Spec.Requirements[len(claim.Spec.Requirements)-1]
	if *types.MinValues != 2 || claim.Annotations["karpenter.sh/nodeclaim-min-values-relaxed"] != "true" {
		t.Errorf("minValues %d, annotations %v", *types.MinValues, claim.Annotations)
	}
}

// V-23: claims get the kubelet block that their pool keeps from v1beta1, so that the provider can apply it. They get
// no other annotation of the pool, and the pool's drift hash does not change.
func TestAClaimCarriesTheKubeletBlockOfItsPool(t *testing.T) {
	t.Parallel()
	pool := kwokPool()
	before := Hash(pool)
	pool.Annotations = map[string]string{karpenterv1.KubeletCompatibilityAnnotationKey: `{"maxPods":20}`,
		"example.com/other": "x"}
	annotations := NodeClaimFor(pool, resources.NewSpace().Names(), plannedLaunch(t, pool), "default-x").Annotations
	if annotations[karpenterv1.KubeletCompatibilityAnnotationKey] != `{"maxPods":20}` || len(annotations) != 3 ||
		Hash(pool) != before {
		t.Errorf("annotations %v", annotations)
	}
}

// K-28: a claim has no unit that Karpenter cannot read, whatever units its pool has. The meaning is the same, and
// other texts stay unchanged.
func TestK28_ClaimsHaveKarpentersUnits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"30d": "720h", "1d30m": "24h30m", "90m": "90m", "Never": "Never"} {
		pool := kwokPool()
		var expire karpenterv1.NillableDuration
		if err := expire.UnmarshalJSON([]byte(`"` + text + `"`)); err != nil {
			t.Fatal(err)
		}
		pool.Spec.Template.Spec.ExpireAfter = expire
		if text != "Never" {
			pool.Spec.Template.Spec.TerminationGracePeriod = &karpenterv1.Duration{Duration: *expire.Duration,
				Raw: text}
		}
		claim := NodeClaimFor(pool, resources.NewSpace().Names(), plannedLaunch(t, pool), "default-x")
		data, err := json.Marshal(claim.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), `"expireAfter":"`+want+`"`) ||
			text != "Never" && !strings.Contains(string(data), `"terminationGracePeriod":"`+want+`"`) {
			t.Errorf("%s: %s; want %s", text, data, want)
		}
		if pool.Spec.Template.Spec.ExpireAfter.Raw != text {
			t.Errorf("%s: the pool has %q now", text, pool.Spec.Template.Spec.ExpireAfter.Raw)
		}
	}
}

// P-09: the API takes minValues of 1 and more. A demand of which nothing is left is not written.
func TestAMinimumOfNothingIsNotWritten(t *testing.T) {
	t.Parallel()
	pool := kwokPool()
	pool.Spec.Template.Spec.Requirements = []entry{
		{Key: "node.kubernetes.io/instance-type", Operator: "Exists", MinValues: new(5)},
		{Key: "example.com/rack", Operator: "Exists", MinValues: new(3)},
	}
	launch := plannedLaunch(t, pool)
	launch.Relaxed = map[requirement.Key]int{"node.kubernetes.io/instance-type": 0, "example.com/rack": 0}
	claim := NodeClaimFor(pool, resources.NewSpace().Names(), launch, "x")
	for _, entry := range claim.Spec.Requirements {
		if entry.MinValues != nil {
			t.Errorf("%s has minValues %d", entry.Key, *entry.MinValues)
		}
	}
	if claim.Annotations["karpenter.sh/nodeclaim-min-values-relaxed"] != "true" {
		t.Errorf("annotations %v", claim.Annotations)
	}
}
