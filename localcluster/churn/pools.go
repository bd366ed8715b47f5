package churn

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// The zones of the built-in catalogue.
func zones() []string { return []string{"test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"} }

const (
	teamKey   = "example.com/team" // taint and label of the pool team
	teamValue = "red"
)

func amounts(of ...string) karpenterv1.Limits {
	list := karpenterv1.Limits{}
	for i := 0; i < len(of); i += 2 {
		list[corev1.ResourceName(of[i])] = resource.MustParse(of[i+1])
	}
	return list
}

func seconds(d time.Duration) karpenterv1.NillableDuration {
	return karpenterv1.NillableDuration{Duration: &d}
}

// newClass returns the node class of all pools of a seed. Some machines boot slowly, some calls fail, and a zone may
// have no spot machines; on-demand machines are always available.
func newClass(prefix string, d dice) *kwokv1alpha1.KWOKNodeClass {
	class := &kwokv1alpha1.KWOKNodeClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: kwokv1alpha1.GroupVersion().String(), Kind: "KWOKNodeClass"},
		ObjectMeta: metav1.ObjectMeta{Name: prefix},
	}
	if delay := d.from(-2, 3); delay > 0 {
		class.Spec.NodeRegistrationDelay = &karpenterv1.Duration{Duration: time.Duration(delay) * time.Second}
	}
	var faults []string
	if d.chance(0.3) {
		faults = append(faults, fmt.Sprintf("insufficientCapacity: [{zones: [%s], capacityTypes: [spot]}]",
			of(d, zones()...)))
	}
	if d.chance(0.3) {
		faults = append(faults, "slowBoot: [{delay: 6s, probability: 0.3}]")
	}
	if d.chance(0.3) {
		faults = append(faults, "throttling: [{calls: [launch, terminate], probability: 0.2}]")
	}
	if len(faults) > 0 {
		class.Annotations = map[string]string{kwok.FaultsAnnotationKey: strings.Join(faults, "\n")}
	}
	return class
}

// newPool returns a pool of Linux nodes of one architecture.
func newPool(prefix, name, arch string) *karpenterv1.NodePool {
	pool := &karpenterv1.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: karpenterv1.GroupVersion().String(), Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: prefix + "-" + name},
	}
	pool.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{
		Group: kwokv1alpha1.Group, Kind: "KWOKNodeClass", Name: prefix,
	}
	pool.Spec.Template.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{arch}},
		{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}},
	}
	pool.Spec.Disruption.ConsolidateAfter = seconds(0)
	pool.Spec.Disruption.ConsolidationPolicy = karpenterv1.ConsolidationPolicyWhenEmptyOrUnderutilized
	pool.Spec.Disruption.Budgets = []karpenterv1.Budget{{Nodes: intstr.FromString("100%")}}
	return pool
}

// firstPools creates the pools with which a seed begins. The pool open, without limits and taints, is always among
// them.
func (u *users) firstPools() {
	open := newPool(u.prefix, "open", "amd64")
	u.pools = []*karpenterv1.NodePool{open}
	if u.dice("pool arm", 0).chance(0.6) {
		arm := newPool(u.prefix, "arm", "arm64")
		arm.Spec.Limits = amounts("nodes", fmt.Sprint(u.dice("pool arm", 1).from(2, 6)))
		u.pools = append(u.pools, arm)
	}
	if u.dice("pool team", 0).chance(0.7) {
		team := newPool(u.prefix, "team", "amd64")
		team.Spec.Template.ObjectMeta.Labels = map[string]string{teamKey: teamValue}
		team.Spec.Template.Spec.Taints = []corev1.Taint{
			{Key: teamKey, Value: teamValue, Effect: corev1.TaintEffectNoSchedule},
		}
		team.Spec.HardLimits = amounts("nodes", fmt.Sprint(u.dice("pool team", 1).from(1, 4)))
		u.pools = append(u.pools, team)
	}
	if u.dice("pool fixed", 0).chance(0.5) {
		fixed := newPool(u.prefix, "fixed", "amd64")
		fixed.Spec.Replicas = new(int64)
		*fixed.Spec.Replicas = int64(u.dice("pool fixed", 1).from(1, 3))
		fixed.Spec.Template.Spec.Requirements = append(fixed.Spec.Template.Spec.Requirements,
			karpenterv1.NodeSelectorRequirementWithMinValues{
				Key: kwokv1alpha1.InstanceCPULabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"2", "4"},
			})
		if u.dice("pool fixed", 2).chance(0.5) {
			fixed.Spec.HardLimits = amounts("nodes", "4")
		} else {
			fixed.Spec.Limits = amounts("nodes", "4")
		}
		u.pools = append(u.pools, fixed)
	}
	for i, pool := range u.pools {
		u.editDisruption(pool, u.dice("first disruption", i))
	}
}

// editDisruption draws new settings of when and how fast nodes of a pool may go.
func (u *users) editDisruption(pool *karpenterv1.NodePool, d dice) string {
	disruption := &pool.Spec.Disruption
	disruption.ConsolidateAfter = seconds(time.Duration(of(d, 0, 0, 2, 5, 10, 20)) * time.Second)
	if d.chance(0.1) {
		disruption.ConsolidateAfter = karpenterv1.NillableDuration{}
	}
	disruption.ConsolidationPolicy = of(d, karpenterv1.ConsolidationPolicyWhenEmpty,
		karpenterv1.ConsolidationPolicyWhenEmptyOrUnderutilized,
		karpenterv1.ConsolidationPolicyWhenEmptyOrUnderutilized, karpenterv1.ConsolidationPolicyBalanced)
	disruption.Budgets = []karpenterv1.Budget{{Nodes: of(d, intstr.FromString("100%"), intstr.FromString("50%"),
		intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("10%"))}}
	if d.chance(0.2) {
		disruption.Budgets = append(disruption.Budgets, karpenterv1.Budget{
			Nodes: intstr.FromInt32(0),
			Reasons: []karpenterv1.DisruptionReason{of(d, karpenterv1.DisruptionReasonDrifted,
				karpenterv1.DisruptionReasonUnderutilized, karpenterv1.DisruptionReasonEmpty)},
		})
	}
	return fmt.Sprintf("consolidateAfter %s, %s, budgets %v", disruption.ConsolidateAfter,
		disruption.ConsolidationPolicy, budgetsOf(pool))
}

func budgetsOf(pool *karpenterv1.NodePool) (list []string) {
	for _, b := range pool.Spec.Disruption.Budgets {
		list = append(list, b.Nodes.String())
	}
	return list
}

// editPool makes a random change to a pool.
func (u *users) editPool(i int) []Step {
	d := u.dice("edit", i)
	pool := u.pools[d.IntN(len(u.pools))]
	static := pool.Spec.Replicas != nil
	type change = func() string
	changes := []weighted[change]{
		{4, func() string { return u.editDisruption(pool, d) }},
		{3, func() string { // drift
			if pool.Spec.Template.ObjectMeta.Labels == nil {
				pool.Spec.Template.ObjectMeta.Labels = map[string]string{}
			}
			pool.Spec.Template.ObjectMeta.Labels["example.com/generation"] = fmt.Sprint(i)
			return fmt.Sprintf("generation %d", i)
		}},
		{2, func() string { return editZones(pool, d) }},
		{1, func() string {
			pool.Spec.Template.Spec.ExpireAfter = of(d, seconds(20*time.Second), seconds(40*time.Second),
				karpenterv1.NillableDuration{})
			return fmt.Sprintf("expireAfter %s", pool.Spec.Template.Spec.ExpireAfter)
		}},
	}
	if !static {
		changes = append(changes, weighted[change]{1, func() string {
			weight := int32(d.from(1, 100))
			pool.Spec.Weight = &weight
			return fmt.Sprintf("weight %d", weight)
		}})
	} else {
		changes = append(changes, weighted[change]{6, func() string {
			*pool.Spec.Replicas = int64(d.from(0, 5))
			return fmt.Sprintf("replicas %d", *pool.Spec.Replicas)
		}})
	}
	if pool.Spec.HardLimits != nil {
		changes = append(changes, weighted[change]{6, func() string {
			pool.Spec.HardLimits = amounts("nodes", fmt.Sprint(d.from(0, 5)))
			return fmt.Sprintf("hard limit %d", nodesOf(pool.Spec.HardLimits))
		}})
	}
	if pool.Spec.Limits != nil {
		changes = append(changes, weighted[change]{4, func() string {
			pool.Spec.Limits = amounts("nodes", fmt.Sprint(d.from(1, 6)))
			return fmt.Sprintf("soft limit %d", nodesOf(pool.Spec.Limits))
		}})
	}
	why := draw(d, changes)()
	return []Step{{Verb: Apply, Why: why, Objects: []client.Object{pool.DeepCopy()}}}
}

// editZones restricts a pool to fewer zones, at least two, or allows all again.
func editZones(pool *karpenterv1.NodePool, d dice) string {
	requirements := pool.Spec.Template.Spec.Requirements
	if last := len(requirements) - 1; requirements[last].Key == corev1.LabelTopologyZone {
		pool.Spec.Template.Spec.Requirements = requirements[:last]
		return "all zones"
	}
	picked := d.Perm(len(zones()))[:d.from(2, 3)]
	var values []string
	for _, at := range picked {
		values = append(values, zones()[at])
	}
	pool.Spec.Template.Spec.Requirements = append(requirements, karpenterv1.NodeSelectorRequirementWithMinValues{
		Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: values,
	})
	return fmt.Sprintf("zones %v", values)
}

func nodesOf(limits karpenterv1.Limits) int64 {
	nodes := limits["nodes"]
	return nodes.Value()
}
