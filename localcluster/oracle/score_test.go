package oracle_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest/waves"
	"github.com/joiner-autoscaler/joiner/internal/world"
	"github.com/joiner-autoscaler/joiner/localcluster/oracle"
)

// K-60, B-16: in random clusters, the model that plays plans scores the same nodes as kube-scheduler's own plugins,
// and with the same scores.
func TestTheModelScoresAsKubeSchedulerDoes(t *testing.T) {
	t.Parallel()
	scorer, err := oracle.NewScorer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	different := 0
	for seed := range uint64(2000) {
		c := scoredCluster(rand.New(rand.NewPCG(seed, 11)))
		want, err := scorer.Scores(t.Context(), oracle.Cluster{Namespaces: namespaces(), Nodes: c.nodes, Pods: c.pods},
			owners(), c.pod)
		if err != nil {
			t.Fatal(err)
		}
		values := map[int64]bool{}
		for _, score := range want {
			values[score] = true
		}
		if len(values) > 1 {
			different++
		}
		if got := c.modelled(t); !maps.Equal(got, want) {
			text, _ := yaml.Marshal(map[string]any{"nodes": c.nodes, "pods": c.pods, "pod": c.pod})
			t.Fatalf("seed %d: the model scores %v, kube-scheduler %v\n%s", seed, got, want, text)
		}
	}
	if different < 1000 {
		t.Errorf("in %d clusters only some node is better than another: they are too alike", different)
	}
}

// modelled returns the model's scores.
func (c tied) modelled(t *testing.T) map[string]int64 {
	t.Helper()
	store := world.New(world.Config{Now: func() time.Time { return time.Unix(1_700_000_000, 0) }})
	var objects []client.Object
	for _, namespace := range namespaces() {
		objects = append(objects, namespace)
	}
	for _, node := range c.nodes {
		objects = append(objects, node)
	}
	for _, pod := range append(c.pods[:len(c.pods):len(c.pods)], c.pod) {
		objects = append(objects, pod)
	}
	for _, object := range objects {
		if err := store.Apply(object); err != nil {
			t.Fatal(err)
		}
	}
	s := store.Snapshot()
	if len(s.Pending) != 1 || len(s.Nodes) != len(c.nodes) {
		t.Fatalf("%d pods wait, %d nodes; want 1 and %d", len(s.Pending), len(s.Nodes), len(c.nodes))
	}
	model := waves.NewScheduler(rand.New(rand.NewPCG(1, 1)), s.Namespaces)
	for _, node := range s.Nodes {
		model.Open(node)
	}
	return model.Scores(s.Pending[0].Shape)
}

func apps() []string { return []string{"a", "b", "c"} }

// owners returns the ReplicaSets of all pods, one for each app.
func owners() []*appsv1.ReplicaSet {
	var sets []*appsv1.ReplicaSet
	for _, app := range apps() {
		sets = append(sets, &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: app, UID: types.UID("set-" + app)},
			Spec: appsv1.ReplicaSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			},
		})
	}
	return sets
}

// scoredCluster draws nodes of several sizes in two zones with pods of three apps on them, and a pod of one of these
// apps.
func scoredCluster(dice *rand.Rand) tied {
	var c tied
	for i := range 2 + dice.IntN(5) {
		name := fmt.Sprintf("n%d", i)
		node := testNode(name, []string{"a", "b"}[dice.IntN(2)])
		node.UID, node.ResourceVersion = types.UID(name), "1"
		cores := []int{2, 4, 16}[dice.IntN(3)]
		node.Status.Allocatable["cpu"] = resource.MustParse(fmt.Sprint(cores))
		node.Status.Allocatable["memory"] = resource.MustParse(fmt.Sprintf("%dGi", cores*[]int{2, 4, 8}[dice.IntN(3)]))
		node.Status.Allocatable["pods"] = resource.MustParse("110")
		if dice.IntN(5) == 0 {
			node.Spec.Taints = []corev1.Taint{{Key: "asks", Value: "yes", Effect: corev1.TaintEffectPreferNoSchedule}}
		}
		c.nodes = append(c.nodes, node)
		for k := range dice.IntN(5) {
			pod := scoredPod(dice, fmt.Sprintf("%s-%d", name, k))
			pod.Spec.NodeName, pod.Status = name, corev1.PodStatus{Phase: corev1.PodRunning}
			c.pods = append(c.pods, pod)
		}
	}
	c.pod = scoredPod(dice, "new")
	return c
}

func scoredPod(dice *rand.Rand, name string) *corev1.Pod {
	app := apps()[dice.IntN(3)]
	yes := true
	pod := testPod(name, func(pod *corev1.Pod) {
		pod.Labels = map[string]string{"app": app}
		pod.ResourceVersion = "1"
		pod.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: types.UID("set-" + app), Controller: &yes},
		}
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
		}}
		requests := corev1.ResourceList{}
		if dice.IntN(8) > 0 {
			requests["cpu"] = resource.MustParse([]string{"100m", "250m", "500m", "1"}[dice.IntN(4)])
		}
		if dice.IntN(8) > 0 {
			requests["memory"] = resource.MustParse([]string{"128Mi", "512Mi", "1Gi", "3Gi"}[dice.IntN(4)])
		}
		pod.Spec.Containers[0].Resources.Requests = requests
	})
	about := &metav1.LabelSelector{MatchLabels: map[string]string{"app": apps()[dice.IntN(3)]}}
	key := []string{corev1.LabelHostname, corev1.LabelTopologyZone}[dice.IntN(2)]
	term := corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: about}
	weighted := []corev1.WeightedPodAffinityTerm{{Weight: int32(1 + dice.IntN(100)), PodAffinityTerm: term}}
	switch dice.IntN(8) {
	case 0:
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{TopologyKey: key, MaxSkew: int32(1 + dice.IntN(3)), WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: about},
		}
	case 1:
		pod.Spec.Affinity = &corev1.Affinity{
			PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted},
		}
	case 2:
		pod.Spec.Affinity = &corev1.Affinity{
			PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted},
		}
	case 3:
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelHostname, LabelSelector: about},
			},
		}}
	case 4:
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: int32(1 + dice.IntN(100)),
				Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}},
				}},
			}},
		}}
	case 5:
		pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelTopologyZone, LabelSelector: about},
			},
		}}
	}
	return pod
}
