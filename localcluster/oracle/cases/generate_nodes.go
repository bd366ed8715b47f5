package cases

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

func (g *generator) types() {
	zones := one(g, []string{"a"}, []string{"a", "b"}, []string{"a", "b", "c"}, []string{"a", "b", "c"})
	sizes := some(g, int64(2), 4, 8, 8, 16)
	for i, size := range sizes {
		name := fmt.Sprint("t", size)
		if i > 0 && sizes[i-1] == size {
			name = fmt.Sprint("u", size)
		}
		for _, arch := range one(g, []string{"amd64"}, []string{"amd64"}, []string{"amd64", "arm64"},
			[]string{"arm64"}) {
			labels := map[string]string{corev1.LabelArchStable: arch, corev1.LabelOSStable: "linux"}
			if g.likely(60) {
				labels[labelGeneration] = fmt.Sprint(one(g, 5, 6, 7))
			}
			t := catalog.Type{Name: name + "-" + arch, Labels: requirement.FromLabels(labels)}
			t.Capacity = resources.Amounts{
				resources.NameCPU: size * 1000, resources.NameMemory: size * one(g, int64(2), 4) << 30,
				resources.NamePods: one(g, int64(110), 110, 110, 4), resources.NameEphemeralStorage: 20 << 30,
			}
			if g.likely(25) {
				t.Capacity[resourceGPU] = int64(1 + i)
			}
			if g.likely(25) {
				t.Capacity["hugepages-2Mi"] = 64 << 20
			}
			t.Overhead = resources.Amounts{resources.NameCPU: one(g, int64(0), 100),
				resources.NameMemory: one(g, int64(0), 256<<20)}
			t.Offerings = g.offerings(zones, size)
			g.result.Types = append(g.result.Types, t)
		}
	}
}

func (g *generator) offerings(zones []string, size int64) []catalog.Offering {
	var list []catalog.Offering
	for _, kind := range some(g, catalog.OnDemand, catalog.OnDemand, catalog.Spot, catalog.Reserved) {
		if len(list) > 0 && list[len(list)-1].CapacityType == kind {
			continue
		}
		price := resources.Money(size * int64(one(g, 45, 50)) * 1000)
		switch kind {
		case catalog.Spot:
			price /= 3
		case catalog.Reserved:
			price = 0
		}
		for _, zone := range some(g, zones...) {
			list = append(list, catalog.Offering{Zone: zone, CapacityType: kind, Price: price,
				Available: !g.likely(5)})
		}
	}
	return list
}

func need(key string, op corev1.NodeSelectorOperator,
	values ...string) karpenterv1.NodeSelectorRequirementWithMinValues {
	return karpenterv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: op, Values: values}
}

func (g *generator) pools() {
	for i := range one(g, 1, 1, 2, 3) {
		name := fmt.Sprint("p", i)
		pool := &karpenterv1.NodePool{ObjectMeta: g.meta("", name)}
		pool.Spec.Template.Spec.NodeClassRef = classRef()
		pool.Status.Conditions = []karpenterv1.Condition{
			{Type: karpenterv1.ConditionTypeReady, Status: metav1.ConditionTrue},
		}
		if g.likely(30) {
			pool.Spec.Weight = new(int32(10 * i))
		}
		spec := &pool.Spec.Template.Spec
		for range one(g, 0, 0, 0, 1, 1, 2) {
			spec.Requirements = append(spec.Requirements, g.poolNeed())
		}
		if g.likely(20) {
			pool.Spec.Template.ObjectMeta.Labels = map[string]string{"tier": one(g, "gold", "silver")}
		}
		if g.uses("taints") && g.likely(40) {
			spec.Taints = append(spec.Taints, g.taint())
		}
		if g.likely(15) {
			spec.StartupTaints = append(spec.StartupTaints,
				corev1.Taint{Key: "starting", Effect: corev1.TaintEffectNoSchedule})
		}
		if g.likely(15) {
			pool.Spec.Limits = karpenterv1.Limits(list(one(g, "cpu", "nodes"), one(g, "2", "8", "16")))
		}
		if g.likely(8) {
			pool.Spec.HardLimits = karpenterv1.Limits(list("nodes", one(g, "1", "3")))
		}
		g.result.Pools = append(g.result.Pools, pool)
	}
}

func classRef() *karpenterv1.NodeClassReference {
	return &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
}

func (g *generator) poolNeed() karpenterv1.NodeSelectorRequirementWithMinValues {
	entry := one(g,
		need(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, some(g, "a", "b", "c")...),
		need(corev1.LabelTopologyZone, corev1.NodeSelectorOpNotIn, "c"),
		need("karpenter.sh/capacity-type", corev1.NodeSelectorOpIn, one(g, "on-demand", "spot")),
		need(corev1.LabelArchStable, corev1.NodeSelectorOpIn, one(g, "amd64", "arm64")),
		need(labelTeam, corev1.NodeSelectorOpExists),
		need(labelTeam, corev1.NodeSelectorOpIn, some(g, "red", "blue")...),
		need(labelRack, corev1.NodeSelectorOpIn, "r1", "r2"),
		need(labelRack, corev1.NodeSelectorOpNotIn, "r1"),
		need(labelGeneration, corev1.NodeSelectorOpGt, "5"),
		need(labelGeneration, karpenterv1.NodeSelectorOpLte, "6"),
		need(labelGeneration, corev1.NodeSelectorOpDoesNotExist),
	)
	if entry.Key == labelGeneration && !g.uses("generation") {
		entry = need(corev1.LabelOSStable, corev1.NodeSelectorOpIn, "linux")
	}
	if entry.Key == corev1.LabelTopologyZone && entry.Operator == corev1.NodeSelectorOpNotIn && g.likely(30) {
		entry.MinValues = new(2)
	}
	return entry
}

func (g *generator) taint() corev1.Taint {
	return one(g,
		corev1.Taint{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule},
		corev1.Taint{Key: "dedicated", Value: "web", Effect: corev1.TaintEffectNoExecute},
		corev1.Taint{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule},
		corev1.Taint{Key: "level", Value: "5", Effect: corev1.TaintEffectNoSchedule},
	)
}

func (g *generator) machines() {
	if !g.uses("machines") && g.likely(60) {
		return
	}
	for i := range one(g, 1, 2, 3, 5) {
		name := fmt.Sprint("n", i)
		if g.likely(20) {
			g.result.Machines = append(g.result.Machines, g.foreign(name))
		} else if m, possible := g.ours(name, one(g, g.result.Pools...)); possible {
			g.result.Machines = append(g.result.Machines, m)
		}
	}
}

// foreign makes a node that we do not manage: no claim, any labels.
func (g *generator) foreign(name string) Machine {
	node := &corev1.Node{ObjectMeta: g.meta("", name)}
	node.Labels = map[string]string{
		corev1.LabelHostname: name, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
		corev1.LabelInstanceTypeStable: "metal",
	}
	if g.likely(80) {
		node.Labels[corev1.LabelTopologyZone] = one(g, "a", "b", "z")
	}
	if g.likely(30) {
		node.Labels[labelRack] = one(g, "r1", "r9")
	}
	if g.likely(15) {
		node.Spec.Unschedulable = true
		node.Spec.Taints = append(node.Spec.Taints,
			corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	if g.uses("taints") && g.likely(40) {
		node.Spec.Taints = append(node.Spec.Taints, g.taint())
	}
	node.Status.Allocatable = list("cpu", one(g, "2", "6"), "memory", "8Gi", "pods", one(g, "110", "3"),
		"ephemeral-storage", "10Gi")
	node.Status.Capacity = node.Status.Allocatable
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return Machine{Node: node, Becomes: node}
}

// ours makes a machine of a pool at some stage of its life; false if the pool can have none.
func (g *generator) ours(name string, pool *karpenterv1.NodePool) (Machine, bool) {
	claim, possible := g.claim(name, pool)
	offers := offersFor(g.result.catalog(), claim)
	if !possible || len(offers) == 0 {
		return Machine{}, false
	}
	got := one(g, offers...)
	m := Machine{Claim: claim, Becomes: become(claim, got)}
	if !g.uses("in flight") || g.likely(60) {
		g.joined(&m, "Launched", "Registered", "Initialized")
		if g.uses("leaving") && g.likely(30) {
			m.Claim.DeletionTimestamp = new(metav1.Unix(1_700_000_000, 0))
			m.Becomes = nil
		}
		return m, true
	}
	switch g.IntN(3) {
	case 0: // the node is there, but not initialized
		g.joined(&m, "Launched", "Registered")
		m.Node = m.Node.DeepCopy()
		m.Node.Spec.Taints = append(m.Node.Spec.Taints, claim.Spec.StartupTaints...)
		m.Node.Spec.Taints = append(m.Node.Spec.Taints,
			corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	case 1: // launched, no node yet
		g.launched(&m, "Launched")
	}
	return m, true
}

// claim makes a claim that a plan could have made for some pods.
func (g *generator) claim(name string, pool *karpenterv1.NodePool) (*karpenterv1.NodeClaim, bool) {
	set, _, err := translate.PoolRequirements(pool)
	if err != nil {
		return nil, false
	}
	launch := plan.Launch{Pool: pool.Name, Requirements: set, Labels: map[string]string{}}
	if g.likely(30) {
		zone := requirement.OneOf(catalog.LabelZone, "a")
		if set.Get(catalog.LabelZone).Intersects(zone) {
			launch.Requirements = launch.Requirements.With(zone)
		}
	}
	for _, key := range []requirement.Key{labelTeam, labelRack} {
		if value, found := set.Get(key).Example(); found && set.Holds(key) && !set.Get(key).AllowsAbsent() {
			launch.Labels[string(key)] = value
		}
	}
	for _, t := range some(g, g.result.Types...) {
		launch.Types = append(launch.Types, t.Name)
	}
	claim := translate.NodeClaimFor(pool, resources.NewSpace().Names(), launch, name)
	meta := g.meta("", name)
	claim.UID, claim.ResourceVersion, claim.CreationTimestamp = meta.UID, meta.ResourceVersion, meta.CreationTimestamp
	return claim, true
}

// launched writes the provider's answer to the claim.
func (g *generator) launched(m *Machine, conditions ...string) {
	m.Claim.Status.ProviderID = m.Becomes.Spec.ProviderID
	m.Claim.Status.Capacity, m.Claim.Status.Allocatable = m.Becomes.Status.Capacity, m.Becomes.Status.Allocatable
	for label, value := range m.Becomes.Labels {
		if label != corev1.LabelHostname {
			m.Claim.Labels[label] = value
		}
	}
	for _, name := range conditions {
		m.Claim.Status.Conditions = append(m.Claim.Status.Conditions,
			karpenterv1.Condition{Type: name, Status: metav1.ConditionTrue})
	}
}

// joined adds the Node object.
func (g *generator) joined(m *Machine, conditions ...string) {
	g.launched(m, conditions...)
	m.Claim.Status.NodeName = m.Claim.Name
	if conditions[len(conditions)-1] == "Initialized" {
		m.Becomes.Labels["karpenter.sh/initialized"] = "true"
	}
	m.Becomes.Labels["karpenter.sh/registered"] = "true"
	m.Node = m.Becomes
}
