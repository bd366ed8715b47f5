package oracle_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/localcluster/oracle"
)

func newOracle(t *testing.T) *oracle.Oracle {
	t.Helper()
	o, err := oracle.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// testNode has 4 cores and a zone.
func testNode(name, zone string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelTopologyZone: zone,
	}}}
	node.Status.Allocatable = corev1.ResourceList{
		"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("10"),
	}
	return node
}

// testPod asks for a core and is labelled app=web; change may be nil.
func testPod(name string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("1")},
	}}}
	if change != nil {
		change(pod)
	}
	return pod
}

func placed(pairs ...string) map[types.NamespacedName]string {
	where := map[types.NamespacedName]string{}
	for i := 0; i < len(pairs); i += 2 {
		where[types.NamespacedName{Namespace: "default", Name: pairs[i]}] = pairs[i+1]
	}
	return where
}

func web() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func apart(pod *corev1.Pod) {
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: web()},
		},
	}}
}

func together(pod *corev1.Pod) {
	apart(pod)
	terms := pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: terms,
	}}
}

// follower must be near web pods and is not one itself.
func follower(pod *corev1.Pod) {
	together(pod)
	pod.Labels = map[string]string{"app": "other"}
}

func spread(pod *corev1.Pod) {
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: web(),
	}}
}

func inZone(zone string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone} }
}

func port(ip string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, HostIP: ip, Protocol: corev1.ProtocolTCP}}
	}
}

func big(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("5") }

// tampered is a plan over the nodes a1 (which exists), a2 and b1 (which the plan launches), right and spoiled.
type tampered struct {
	name    string
	pods    []*corev1.Pod
	node    func(*corev1.Node) // changes b1
	right   map[types.NamespacedName]string
	spoiled map[types.NamespacedName]string
	plugin  string
}

func tamperedPlans() []tampered {
	return []tampered{
		{name: "a pod in the wrong zone", pods: []*corev1.Pod{testPod("x", inZone("a"))},
			right: placed("x", "a2"), spoiled: placed("x", "b1"), plugin: "NodeAffinity"},
		{name: "a pod that wants another node by name", plugin: "NodeAffinity",
			pods: []*corev1.Pod{testPod("x", func(pod *corev1.Pod) {
				pod.Spec.Affinity = &corev1.Affinity{
					NodeAffinity: &corev1.NodeAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
							NodeSelectorTerms: []corev1.NodeSelectorTerm{
								{MatchFields: []corev1.NodeSelectorRequirement{
									{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn,
										Values: []string{"a1"}},
								}}},
						}}}
			})},
			right: placed("x", "a1"), spoiled: placed("x", "b1")},
		{name: "two anti-affine pods joined", pods: []*corev1.Pod{testPod("x", apart), testPod("y", nil)},
			right: placed("x", "a1", "y", "b1"), spoiled: placed("x", "b1", "y", "b1"), plugin: "InterPodAffinity"},
		{name: "a pod away from its companion", pods: []*corev1.Pod{testPod("x", follower), testPod("y", nil)},
			right: placed("x", "b1", "y", "b1"), spoiled: placed("x", "a1", "y", "b1"), plugin: "InterPodAffinity"},
		{name: "a node too small", pods: []*corev1.Pod{testPod("x", big)},
			node:  func(node *corev1.Node) { node.Status.Allocatable["cpu"] = resource.MustParse("8") },
			right: placed("x", "b1"), spoiled: placed("x", "a1"), plugin: "NodeResourcesFit"},
		{name: "a node too full", pods: []*corev1.Pod{testPod("v", nil), testPod("w", nil), testPod("x", nil),
			testPod("y", nil), testPod("z", nil)},
			right:   placed("v", "a1", "w", "a1", "x", "a1", "y", "a1", "z", "b1"),
			spoiled: placed("v", "a1", "w", "a1", "x", "a1", "y", "a1", "z", "a1"), plugin: "NodeResourcesFit"},
		{name: "an ignored taint", pods: []*corev1.Pod{testPod("x", nil)},
			node: func(node *corev1.Node) {
				node.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
			},
			right: placed("x", "a1"), spoiled: placed("x", "b1"), plugin: "TaintToleration"},
		{name: "a cordoned node", pods: []*corev1.Pod{testPod("x", nil)},
			node:  func(node *corev1.Node) { node.Spec.Unschedulable = true },
			right: placed("x", "a1"), spoiled: placed("x", "b1"), plugin: "NodeUnschedulable"},
		{name: "a host port used twice", pods: []*corev1.Pod{testPod("x", port("")), testPod("y", port("10.0.0.1"))},
			right: placed("x", "a1", "y", "b1"), spoiled: placed("x", "a1", "y", "a1"), plugin: "NodePorts"},
		{name: "skew broken", pods: []*corev1.Pod{testPod("x", spread), testPod("y", spread), testPod("z", spread)},
			right: placed("x", "a1", "y", "b1", "z", "a2"), spoiled: placed("x", "a1", "y", "a1", "z", "a2"),
			plugin: "PodTopologySpread"},
		{name: "a node without the label of a spread", pods: []*corev1.Pod{testPod("x", spread)},
			node:  func(node *corev1.Node) { delete(node.Labels, corev1.LabelTopologyZone) },
			right: placed("x", "a1"), spoiled: placed("x", "b1"), plugin: "PodTopologySpread"},
	}
}

// P-21: a plan that breaks a constraint is caught by that constraint's plugin; the right plan passes.
func TestOracleCatchesTamperedPlans(t *testing.T) {
	t.Parallel()
	o := newOracle(t)
	for _, row := range tamperedPlans() {
		b1 := testNode("b1", "b")
		if row.node != nil {
			row.node(b1)
		}
		before := oracle.Cluster{Nodes: []*corev1.Node{testNode("a1", "a")}, Pods: row.pods}
		launched := []*corev1.Node{testNode("a2", "a"), b1}
		got, err := o.Check(t.Context(), before, oracle.Plan{Launched: launched, Placed: row.right})
		if err != nil || len(got) > 0 {
			t.Errorf("%s: the right plan: %v, %v", row.name, got, err)
		}
		got, err = o.Check(t.Context(), before, oracle.Plan{Launched: launched, Placed: row.spoiled})
		if err != nil || len(got) != 1 && row.plugin != "PodTopologySpread" || len(got) == 0 ||
			got[0].Plugin != row.plugin {
			t.Errorf("%s: got %v, %v; want one violation of %s", row.name, got, err, row.plugin)
		}
	}
}

// The oracle must find the order of binding: a pod that must be near another is bound after it, whatever their names
// and priorities are.
func TestOracleFindsAnOrder(t *testing.T) {
	t.Parallel()
	first := testPod("a-follower", func(pod *corev1.Pod) {
		follower(pod)
		pod.Spec.Priority = new(int32(1000))
	})
	before := oracle.Cluster{Nodes: []*corev1.Node{testNode("a1", "a")},
		Pods: []*corev1.Pod{first, testPod("z-leader", nil)}}
	got, err := newOracle(t).Check(t.Context(), before,
		oracle.Plan{Placed: placed("a-follower", "a1", "z-leader", "a1")})
	if err != nil || len(got) > 0 {
		t.Errorf("got %v, %v; want no violation", got, err)
	}
}

// Pods of removed nodes leave room and make no demands; those that the plan moves are judged at their new place.
func TestOracleMovesPodsOfNodesThatGo(t *testing.T) {
	t.Parallel()
	moved := testPod("moved", apart)
	moved.Spec.NodeName = "a1"
	lost := testPod("lost", nil)
	lost.Spec.NodeName = "a1"
	stays := testPod("stays", nil)
	stays.Spec.NodeName = "a2"
	before := oracle.Cluster{Nodes: []*corev1.Node{testNode("a1", "a"), testNode("a2", "a")},
		Pods: []*corev1.Pod{moved, lost, stays}}
	o := newOracle(t)
	good := oracle.Plan{Gone: []string{"a1"}, Launched: []*corev1.Node{testNode("b1", "b")},
		Placed: placed("moved", "b1")}
	if got, err := o.Check(t.Context(), before, good); err != nil || len(got) > 0 {
		t.Errorf("got %v, %v; want no violation", got, err)
	}
	good.Placed = placed("moved", "a2")
	got, err := o.Check(t.Context(), before, good)
	if err != nil || fmt.Sprint(
		got) != "[InterPodAffinity: pod default/moved on node a2: node(s) didn't match pod anti-affinity rules]" {
		t.Errorf("got %v, %v", got, err)
	}
}

// The labels of namespaces are those of the present case, not of an earlier one.
func TestOracleForgetsTheCaseBefore(t *testing.T) {
	t.Parallel()
	o := newOracle(t)
	choosy := testPod("x", func(pod *corev1.Pod) {
		apart(pod)
		term := &pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
	})
	other := testPod("y", nil)
	other.Namespace, other.Spec.NodeName = "shop", "a1"
	for team, violations := range map[string]int{"red": 1, "blue": 0} {
		namespace := &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": team}},
		}
		before := oracle.Cluster{Namespaces: []*corev1.Namespace{namespace},
			Nodes: []*corev1.Node{testNode("a1", "a")}, Pods: []*corev1.Pod{choosy, other}}
		got, err := o.Check(t.Context(), before, oracle.Plan{Placed: placed("x", "a1")})
		if err != nil || len(got) != violations {
			t.Errorf("team %s: got %v, %v; want %d violations", team, got, err, violations)
		}
	}
}

func TestOracleRefusesQuestionsWithoutSense(t *testing.T) {
	t.Parallel()
	o := newOracle(t)
	bound := testPod("bound", nil)
	bound.Spec.NodeName = "a1"
	before := oracle.Cluster{Nodes: []*corev1.Node{testNode("a1", "a")}, Pods: []*corev1.Pod{testPod("x", nil), bound}}
	for want, p := range map[string]oracle.Plan{
		`node "nowhere", which does not exist`: {Placed: placed("x", "nowhere")},
		`node "a1", which does not exist`:      {Gone: []string{"a1"}, Placed: placed("x", "a1")},
		"default/nobody missing":               {Placed: placed("nobody", "a1")},
		"runs on a1, which stays":              {Placed: placed("bound", "a1")},
		`two nodes have the name "a1"`:         {Launched: []*corev1.Node{testNode("a1", "b")}},
	} {
		if _, err := o.Check(t.Context(), before, p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want it to say %q", err, want)
		}
	}
}
