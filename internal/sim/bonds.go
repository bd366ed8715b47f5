package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// This file ties the pods of a workload to each other: required affinity and anti-affinity, topology spread, and
// budgets that allow few evictions at a time. Then a node can only be drained if its pods can move one after another.

// bonds are the ties between the pods of a workload, each over a node label.
type bonds struct {
	together, apart string
	spread          string
	skew            int32
}

// bondsOf parses together=, apart= and spread=, each zone or host. spread= also has the maximum skew, as zone:1. The
// word alone is short for apart=host.
func bondsOf(a arguments) (bonds, error) {
	var b bonds
	for key, to := range map[string]*string{"together": &b.together, "apart": &b.apart, "spread": &b.spread} {
		text, stated := a.value(key)
		if !stated {
			continue
		}
		over, skew, limited := strings.Cut(text, ":")
		known := map[string]string{"zone": corev1.LabelTopologyZone, "host": corev1.LabelHostname}[over]
		if known == "" || limited != (key == "spread") {
			return b, fmt.Errorf("%s is %q: want zone or host, of spread with a number as in zone:1", key, text)
		}
		*to = known
		if limited {
			n, err := strconv.ParseInt(skew, 10, 32)
			if err != nil || n < 1 {
				return b, fmt.Errorf("%s is %q: want a number from 1 on after the colon", key, text)
			}
			b.skew = int32(n)
		}
	}
	for _, word := range a {
		if word == "alone" {
			b.apart = corev1.LabelHostname
		}
	}
	return b, nil
}

func selectorOf(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: app}}
}

// apply adds the bonds to a pod of the workload.
func (b bonds) apply(app string, spec *corev1.PodSpec) {
	if b.together != "" || b.apart != "" {
		spec.Affinity = &corev1.Affinity{}
	}
	if b.together != "" {
		spec.Affinity.PodAffinity = &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{LabelSelector: selectorOf(app), TopologyKey: b.together},
			}}
	}
	if b.apart != "" {
		spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{LabelSelector: selectorOf(app), TopologyKey: b.apart},
			}}
	}
	if b.spread != "" {
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: b.skew, TopologyKey: b.spread, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: selectorOf(app),
		}}
	}
}

// budgetSpecOf parses pdb= (minAvailable) or unavailable= (maxUnavailable); false if neither is given.
func budgetSpecOf(a arguments) (policyv1.PodDisruptionBudgetSpec, bool) {
	if n := a.number("pdb", -1); n >= 0 {
		return policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(int32(n)))}, true
	}
	if n := a.number("unavailable", -1); n >= 0 {
		return policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(int32(n)))}, true
	}
	return policyv1.PodDisruptionBudgetSpec{}, false
}

// stays reports whether users keep a budget after the healing. A budget that always allows some eviction blocks no
// drain for ever, as long as some pool may launch a node for the evicted pod's successor. At the limit of the whole
// cluster no pool may (known gap, K-53).
func (w *World) stays(budget *policyv1.PodDisruptionBudget) bool {
	if l := w.cluster.workloads[budget.Name]; l == nil || l.bare { // a DaemonSet's, or of pods that nobody expects
		return false
	}
	if budget.Spec.MaxUnavailable == nil || budget.Spec.MaxUnavailable.IntVal < 1 || w.clusterRoom() != math.MaxInt64 {
		return false
	}
	unlimited := false
	w.server.All(&karpenterv1.NodePool{}, func(o client.Object) {
		pool := o.(*karpenterv1.NodePool)
		unlimited = unlimited || !isOther(pool) && pool.Spec.Replicas == nil && len(pool.Spec.Limits)+
			len(pool.Spec.HardLimits) == 0
	})
	return unlimited
}

// zones is the number of zones of the simulated cloud.
const zones = 2

// heldByTies reports whether a node may stay because its pool is at its node limit and its pods are spread. Its
// replacement cannot take all pods if another zone is empty and has to be filled first. Below a hard limit,
// replacements come while the node is still there. Pods that are spread over zones may need a node in each zone; pods
// that are spread over hosts may need one each. A host full of other pods counts as empty, and plain pods are placed
// before spread ones.
func (w *World) heldByTies(claim *karpenterv1.NodeClaim, pool *karpenterv1.NodePool) bool {
	left, hard := w.room(pool), len(pool.Spec.HardLimits) > 0 || w.clusterRoom() != math.MaxInt64
	if pool.Spec.Replicas != nil {
		return false
	}
	tied, hosts := false, int64(0)
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		pod := o.(*corev1.Pod)
		l := w.cluster.workloads[pod.Labels[appLabel]]
		if l == nil || pod.Spec.NodeName != claim.Status.NodeName {
			return
		}
		if l.tied.together == corev1.LabelTopologyZone && hard && left < zones && w.drawnAway(pod) {
			tied = true
		}
		if l.tied.spread == "" {
			return
		}
		needed := int64(zones)
		if l.tied.spread == corev1.LabelHostname {
			hosts++
			needed = hosts
		}
		tied = tied || left <= 0 || hard && left < needed
	})
	return tied
}

// drawnAway reports whether a pod that has to share a zone with others may move to another zone than its node's,
// because there is room. If a disk binds other pods of the node to this zone, then each zone needs a node.
func (w *World) drawnAway(pod *corev1.Pod) bool {
	node, _ := w.server.Peek(&corev1.Node{}, client.ObjectKey{Name: pod.Spec.NodeName}).(*corev1.Node)
	if node == nil {
		return false
	}
	bound, away := false, false
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		other := o.(*corev1.Pod)
		l := w.cluster.workloads[other.Labels[appLabel]]
		bound = bound || other.Spec.NodeName == node.Name && l != nil && l.disk != ""
	})
	cpu, _ := asks(pod)
	for name, free := range w.freeCores() {
		other := w.server.Peek(&corev1.Node{}, client.ObjectKey{Name: name}).(*corev1.Node)
		away = away || free >= cpu && other.Labels[corev1.LabelTopologyZone] != node.Labels[corev1.LabelTopologyZone]
	}
	return bound && away
}

// tied adds a workload whose pods are tied to each other to some scripts. It has its own dice, so that the rest of the
// scripts does not change.
func (g *generator) tied() {
	d := newDice(g.script.Seed, "tied")
	if !d.chance(0.4) {
		return
	}
	const name = "tied"
	bond := of(&d, "together=zone", "together=zone", "apart=host", "apart=zone", "spread=zone:1", "spread=host:1")
	most := 6
	if bond == "apart=zone" {
		most = 2 // the simulated cloud has two zones
	}
	args := []string{name, fmt.Sprintf("replicas=%d", 1+d.n(most)), "cpu=" + of(&d, "100m", "900m", "1500m"),
		"mem=256Mi", "grace=" + of(&d, "0s", "5s", "60s"), bond}
	if d.chance(0.8) {
		args = append(args, fmt.Sprintf("unavailable=%d", 1+d.n(2)))
	}
	g.add(d.between(0, 20*time.Second), "workload", args...)
	at := func() time.Duration { return d.between(40*time.Second, g.script.Heal-time.Second) }
	for range d.n(3) {
		g.add(at(), "scale", name, fmt.Sprint(1+d.n(most)))
	}
	for range d.n(3) {
		g.add(at(), of(&d, "delete-claim", "delete-node"), fmt.Sprint(d.n(9)))
	}
	if d.chance(0.5) { // another workload needs large nodes, and then leaves
		g.add(d.between(0, 10*time.Second), "workload", "guest", "replicas=4", "cpu=1500m", "mem=1Gi", "grace=0s")
		g.add(at(), "scale", "guest", "0")
	}
	if d.chance(0.5) {
		g.add(0, "run-out", of(&d, "3", "12", "1", "4"))
		g.add(d.between(40*time.Second, 2*time.Minute), "run-out", "0")
	}
	if d.chance(0.6) { // a pool to which pods can always move
		args := []string{"wide", "after=" + of(&d, "0s", "30s"), "budget=" + of(&d, "1", "100%"),
			"policy=WhenEmptyOrUnderutilized"}
		g.add(0, "pool", args...)
		for range d.n(2) {
			g.add(at(), "drift", "wide")
		}
	}
}
