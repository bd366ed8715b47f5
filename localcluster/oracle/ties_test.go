package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/sim/ties"
	"github.com/joiner-autoscaler/joiner/localcluster/oracle"
)

// the simulation's scheduler and kube-scheduler's plugins agree on where pods that are tied to others may run,
// for each node of each random cluster.
func TestTheSimulatedSchedulerIsKubeSchedulers(t *testing.T) {
	t.Parallel()
	judge, err := oracle.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]int{}
	for seed := range uint64(4000) {
		c := tiedCluster(rand.New(rand.NewPCG(seed, 7)))
		for _, node := range c.nodes {
			want := c.asked(t, judge, node)
			if want == "else" {
				continue
			}
			verdicts[want]++
			if got := c.simulated(node); got != want {
				text, _ := yaml.Marshal(map[string]any{"nodes": c.nodes, "pods": c.pods, "pod": c.pod})
				t.Fatalf(
					"seed %d, node %s: the simulation says %q, kube-scheduler %q (refused by; \"\" for by none)\n%s",
					seed, node.Name, got, want, text)
			}
		}
	}
	if verdicts[""] < 2000 || verdicts["PodTopologySpread"] < 300 || verdicts["InterPodAffinity"] < 1000 {
		t.Errorf("the clusters are too alike: %v", verdicts)
	}
}

// tied is a small cluster and a waiting pod.
type tied struct {
	nodes []*corev1.Node
	pods  []*corev1.Pod
	pod   *corev1.Pod
}

func namespaces() []*corev1.Namespace {
	return []*corev1.Namespace{
		{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "red"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{"team": "blue"}}},
	}
}

// asked returns the plugin that refuses the pod on a node: "" for none, and "else" for one that is not about ties.
func (c tied) asked(t *testing.T, judge *oracle.Oracle, node *corev1.Node) string {
	t.Helper()
	plan := oracle.Plan{
		Placed: map[types.NamespacedName]string{{Namespace: c.pod.Namespace, Name: c.pod.Name}: node.Name},
	}
	violations, err := judge.Check(t.Context(), oracle.Cluster{Namespaces: namespaces(), Nodes: c.nodes,
		Pods: append(c.pods[:len(c.pods):len(c.pods)], c.pod)}, plan)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case len(violations) == 0:
		return ""
	case violations[0].Plugin == "PodTopologySpread" || violations[0].Plugin == "InterPodAffinity":
		return violations[0].Plugin
	}
	return "else"
}

func (c tied) simulated(node *corev1.Node) string {
	labels := map[string]map[string]string{}
	for _, namespace := range namespaces() {
		labels[namespace.Name] = namespace.Labels
	}
	cluster := ties.New(c.nodes, labels)
	for _, pod := range c.pods {
		cluster.Bind(pod, pod.Spec.NodeName)
	}
	return cluster.Refusal(c.pod, node)
}

func one[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

func tiedCluster(r *rand.Rand) tied {
	var c tied
	for i := range 1 + r.IntN(5) {
		name := fmt.Sprint("n", i)
		labels := map[string]string{corev1.LabelHostname: name}
		if zone := one(r, "a", "b", "c", ""); zone != "" {
			labels[corev1.LabelTopologyZone] = zone
		}
		if r.IntN(4) == 0 {
			labels["disk"] = "ssd"
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}
		if r.IntN(4) == 0 {
			node.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
		}
		c.nodes = append(c.nodes, node)
	}
	for i := range r.IntN(8) {
		pod := tiedPod(r, fmt.Sprint("p", i), r.IntN(3) == 0)
		pod.Spec.NodeName = one(r, c.nodes...).Name
		if r.IntN(6) == 0 {
			now := metav1.Now()
			pod.DeletionTimestamp = &now
		}
		if r.IntN(8) == 0 {
			pod.Status.Phase = corev1.PodSucceeded
		}
		c.pods = append(c.pods, pod)
	}
	c.pod = tiedPod(r, "waiting", true)
	return c
}

func tiedPod(r *rand.Rand, name string, bound bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: one(r, "default", "default", "other"), Name: name,
		UID: types.UID(name), Labels: map[string]string{"app": one(r, "x", "y")}}}
	if !bound {
		return pod
	}
	if r.IntN(3) == 0 {
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	if r.IntN(5) == 0 {
		pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	}
	selector := func() *metav1.LabelSelector {
		if r.IntN(8) == 0 {
			return &metav1.LabelSelector{}
		}
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": one(r, "x", "y")}}
	}
	key := func() string { return one(r, corev1.LabelTopologyZone, corev1.LabelHostname, "disk") }
	terms := func() (list []corev1.PodAffinityTerm) {
		for range 1 + r.IntN(2) {
			term := corev1.PodAffinityTerm{LabelSelector: selector(), TopologyKey: key()}
			switch r.IntN(4) {
			case 0:
				term.Namespaces = []string{one(r, "default", "other")}
			case 1:
				term.NamespaceSelector = &metav1.LabelSelector{
					MatchLabels: map[string]string{"team": one(r, "red", "blue")},
				}
			}
			list = append(list, term)
		}
		return list
	}
	switch r.IntN(4) {
	case 0:
		pod.Spec.Affinity = &corev1.Affinity{
			PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms()},
		}
	case 1:
		pod.Spec.Affinity = &corev1.Affinity{
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms()},
		}
	case 2:
		for _, over := range []string{corev1.LabelTopologyZone, corev1.LabelHostname}[:1+r.IntN(2)] {
			constraint := corev1.TopologySpreadConstraint{
				MaxSkew: int32(1 + r.IntN(2)), TopologyKey: over, LabelSelector: selector(),
				WhenUnsatisfiable: one(r, corev1.DoNotSchedule, corev1.DoNotSchedule, corev1.ScheduleAnyway),
			}
			policies := []*corev1.NodeInclusionPolicy{nil, new(corev1.NodeInclusionPolicyHonor),
				new(corev1.NodeInclusionPolicyIgnore)}
			constraint.NodeAffinityPolicy, constraint.NodeTaintsPolicy = one(r, policies...), one(r, policies...)
			if constraint.WhenUnsatisfiable == corev1.DoNotSchedule && r.IntN(3) == 0 {
				constraint.MinDomains = new(int32(1 + r.IntN(3)))
			}
			pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, constraint)
		}
	}
	return pod
}
