package translate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

func webPods() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func TestSpreadConstraints(t *testing.T) { // P-03
	t.Parallel()
	ignore, honor := corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyHonor
	pod := waitingPod()
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
		{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: webPods()},
		{TopologyKey: "failure-domain.beta.kubernetes.io/zone", MaxSkew: 2, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: webPods(), MinDomains: new(int32(3)), NodeAffinityPolicy: &ignore, NodeTaintsPolicy: &honor,
			MatchLabelKeys: []string{"hash", "missing"}},
		{TopologyKey: "kubernetes.io/hostname", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule,
			MatchLabelKeys: []string{"hash"}},
		// kube-scheduler counts no pods for {}, unless matchLabelKeys are merged into it
		{TopologyKey: "rack", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{}},
		{TopologyKey: "row", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{}, MatchLabelKeys: []string{"hash"}},
	}
	got := fmt.Sprint(shapeOf(t, pod).Spread)
	want :=
		"[{topology.kubernetes.io/zone app=web hash=abc 2 3 true true} {kubernetes.io/hostname none 1 1 false false} " +
			"{rack none 1 1 false false} {row hash=abc 1 1 false false}]"
	if got != want {
		t.Errorf("spread\n got %s\nwant %s", got, want)
	}
}

func TestAffinityTerms(t *testing.T) { // P-04
	t.Parallel()
	merged := webPods() // as the API server stores a term with matchLabelKeys
	merged.MatchExpressions = []metav1.LabelSelectorRequirement{
		{Key: "hash", Operator: metav1.LabelSelectorOpIn, Values: []string{"abc"}},
	}
	for name, row := range map[string]struct {
		term corev1.PodAffinityTerm
		want string
	}{
		"own namespace": {corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: webPods()},
			"zone (app=web) in [shop] (none)"},
		"named namespaces": {corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: webPods(),
			Namespaces: []string{"b", "a", "b"}}, "zone (app=web) in [a b] (none)"},
		"all namespaces": {corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: webPods(),
			NamespaceSelector: &metav1.LabelSelector{}}, "zone (app=web) in [] (any)"},
		"matchLabelKeys": {corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: webPods(),
			MatchLabelKeys: []string{"hash"}}, "zone (app=web hash=abc) in [shop] (none)"},
		"merged already": {corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: merged,
			MatchLabelKeys: []string{"hash"}}, "zone (app=web hash=abc) in [shop] (none)"},
		"mismatchLabelKeys": {corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: webPods(),
			MismatchLabelKeys: []string{"hash"}}, "zone (app=web hash!=abc) in [shop] (none)"},
		"no selector, no pod": {corev1.PodAffinityTerm{TopologyKey: "zone"}, "zone (none) in [shop] (none)"},
		"every pod": {corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{}},
			"zone (any) in [shop] (none)"},
	} {
		pod := waitingPod()
		list := []corev1.PodAffinityTerm{row.term}
		pod.Spec.Affinity = &corev1.Affinity{
			PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: list},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: list},
		}
		shape := shapeOf(t, pod)
		for _, terms := range [][]cluster.AffinityTerm{shape.Affinity, shape.AntiAffinity} {
			if got := fmt.Sprint(terms); got != "["+row.want+"]" {
				t.Errorf("%s: got %s; want [%s]", name, got, row.want)
			}
		}
	}
}

func TestConstraintsThatCannotBeReadFitNoNode(t *testing.T) { // P-03, P-04
	t.Parallel()
	newer := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "app", Operator: "Gt", Values: []string{"1"}},
	}}
	term := []corev1.PodAffinityTerm{{TopologyKey: "zone", LabelSelector: newer}}
	for want, change := range map[string]func(*corev1.PodSpec){
		`topology spread on "zone": label selector on "app": operator "Gt"`: func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
				{TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: newer},
			}
		},
		`whenUnsatisfiable "Sometimes"`: func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
				{TopologyKey: "zone", WhenUnsatisfiable: "Sometimes"},
			}
		},
		`pod affinity on "zone"`: func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{
				PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term},
			}
		},
		`pod anti-affinity on "zone"`: func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{
				PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term},
			}
		},
	} {
		pod := waitingPod()
		change(&pod.Spec)
		result, err := Pod(resources.NewSpace(), pod, time.Now())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want it to say %s", err, want)
		}
		node := &cluster.Node{Name: "n", Labels: map[string]string{"kubernetes.io/hostname": "n"}}
		if node.Admits(result.Shape) {
			t.Errorf("%s: a node admits the pod", want)
		}
	}
}

func TestTolerationsHaveOneSpelling(t *testing.T) { // P-08
	t.Parallel()
	a, b := waitingPod(), waitingPod()
	a.Spec.Tolerations = []corev1.Toleration{{Key: "x", Value: "1"},
		{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
	b.Spec.Tolerations = []corev1.Toleration{a.Spec.Tolerations[1],
		{Key: "x", Operator: corev1.TolerationOpEqual, Value: "1"}, a.Spec.Tolerations[1]}
	if one, other := shapeOf(t, a), shapeOf(t, b); one.Key() != other.Key() {
		t.Errorf("shapes differ:\n%s\n%s", one.Key(), other.Key())
	}
}
