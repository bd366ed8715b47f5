package scenario

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// The ways to disrupt a cluster; see [Scenario.Disrupt].
const (
	Consolidate = "consolidate"
	Drift       = "drift"
)

const (
	// BudgetPercent is the share of its nodes that the pool allows to be disrupted at a time, rounded up.
	BudgetPercent = 10
	// fallenTo is the share of the pods, in percent, that is left when the workload has fallen.
	fallenTo = 10
	// vainDraws is how many draws must fail to fit until a node counts as full.
	vainDraws = 30
	// tiedApps is how many workloads are spread over zones, and how many keep their pods on different nodes.
	tiedApps = 40
)

// Budget returns how many of a cluster's nodes may be disrupted at a time.
func Budget(nodes int) int { return (nodes*BudgetPercent + 99) / 100 }

// consolidate is B-05: nodes that were full, after the workload fell to a tenth.
func consolidate(s source, nodes int) (Scenario, error) {
	scenario, err := full(s, nodes)
	for i := range scenario.Nodes {
		n := &scenario.Nodes[i]
		n.Pods = slices.DeleteFunc(n.Pods, func(*corev1.Pod) bool { return s.IntN(100) >= fallenTo })
	}
	scenario.Disrupt = Consolidate
	return scenario, err
}

// drift is B-06: nodes that are full, all drifted.
func drift(s source, nodes int) (Scenario, error) {
	scenario, err := full(s, nodes)
	scenario.Disrupt = Drift
	return scenario, err
}

// full returns on-demand nodes of several types in three zones, filled with the pods of B-03. A tenth of these pods is
// spread over zones, and another tenth is kept apart by hostname.
func full(s source, nodes int) (Scenario, error) {
	catalogue, err := aws()
	if err != nil {
		return Scenario{}, err
	}
	scenario := Scenario{Catalog: catalogue, OnDemandOnly: true}
	kinds := workload(s)
	zones := []string{"us-east-1a", "us-east-1b", "us-east-1c"}
	version := 0
	for i := range nodes {
		node := Node{Name: numbered("node", i), Type: pick(s, fullTypes()), Zone: pick(s, zones),
			CapacityType: catalog.OnDemand}
		at := slices.IndexFunc(catalogue.Types, func(t catalog.Type) bool { return t.Name == node.Type })
		if at < 0 {
			return scenario, fmt.Errorf("node %s: instance type %q is not in the catalogue", node.Name, node.Type)
		}
		for _, p := range fill(s, kinds, Allocatable(catalogue.Types[at])) {
			version++
			p.name, p.node, p.resourceRev = numbered("pod", version), node.Name, version
			node.Pods = append(node.Pods, p.pod())
		}
		scenario.Nodes = append(scenario.Nodes, node)
	}
	return scenario, nil
}

func fullTypes() []string {
	return []string{"m5.2xlarge", "m5.4xlarge", "c5.2xlarge", "c5.4xlarge", "r5.2xlarge", "m6i.4xlarge", "m7g.2xlarge",
		"m5.8xlarge"}
}

// fill draws pods until a node with that room is full. No two pods that keep apart come onto it.
func fill(s source, kinds []podSpec, room resources.Amounts) []podSpec {
	var pods []podSpec
	there := map[string]bool{}
	for vain := 0; vain < vainDraws; {
		p := pick(s, kinds)
		switch s.IntN(10) {
		case 0:
			p = spreadOverZones(p, s.IntN(tiedApps))
		case 1:
			p = keptApart(p, s.IntN(tiedApps))
		}
		memory := p.mebibytes << 20
		if p.milliCores > room[resources.NameCPU] || memory > room[resources.NameMemory] ||
			room[resources.NamePods] == 0 || p.affinity != nil && there[p.labels["app"]] {
			vain++
			continue
		}
		room[resources.NameCPU] -= p.milliCores
		room[resources.NameMemory] -= memory
		room[resources.NamePods]--
		there[p.labels["app"]] = true
		pods = append(pods, p)
	}
	return pods
}

func spreadOverZones(p podSpec, app int) podSpec {
	p.labels = map[string]string{"app": fmt.Sprintf("spread-%02d", app)}
	p.spread = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: selector(p.labels),
	}}
	return p
}

func keptApart(p podSpec, app int) podSpec {
	p.labels = map[string]string{"app": fmt.Sprintf("apart-%02d", app)}
	p.affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: near(p.labels, corev1.LabelHostname),
	}}
	return p
}

// Bound returns the pod as it is bound to a node. If node is "", it returns the pending pod that replaces it, with a
// UID of its own. version is its resource version, which must grow.
func Bound(pod *corev1.Pod, node string, version int) *corev1.Pod {
	bound := pod.DeepCopy()
	bound.Spec.NodeName, bound.ResourceVersion = node, fmt.Sprint(version)
	bound.Status = corev1.PodStatus{Phase: corev1.PodRunning}
	if node == "" {
		bound.UID = types.UID(fmt.Sprintf("uid-%s-%d", pod.Name, version))
		bound.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		}}}
	}
	return bound
}

// Price returns what the node costs per hour.
func (n Node) Price(c catalog.Catalog) (resources.Money, error) {
	for _, t := range c.Types {
		for _, o := range t.Offerings {
			if t.Name == n.Type && o.Zone == n.Zone && o.CapacityType == n.CapacityType {
				return o.Price, nil
			}
		}
	}
	return 0, fmt.Errorf("node %s: no offering of %s, %s in %s", n.Name, n.CapacityType, n.Type, n.Zone)
}
