package translate_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// P-05: every kind of preference is in the shape; invalid ones are left out and block nothing.
func TestPreferences(t *testing.T) {
	t.Parallel()
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	zone := func(op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "failure-domain.beta.kubernetes.io/zone", Operator: op, Values: values},
		}}
	}
	term := corev1.WeightedPodAffinityTerm{Weight: 7, PodAffinityTerm: corev1.PodAffinityTerm{
		TopologyKey: corev1.LabelTopologyZone, LabelSelector: web,
	}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1",
			Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
				{TopologyKey: corev1.LabelTopologyZone, MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway,
					LabelSelector: web},
			},
			Affinity: &corev1.Affinity{
				NodeAffinity: &corev1.NodeAffinity{
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
						{Weight: 50, Preference: zone(corev1.NodeSelectorOpIn, "a")},
						{Weight: 9, Preference: zone("Near", "b")},
					}},
				PodAffinity: &corev1.PodAffinity{
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{term},
				},
				PodAntiAffinity: &corev1.PodAntiAffinity{
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{term},
				},
			},
		},
	}
	got, err := translate.Pod(resources.NewSpace(), pod, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	s := got.Shape
	if len(s.Spread)+len(s.Affinity)+len(s.AntiAffinity)+len(s.Alternatives) != 0 {
		t.Errorf("a preference became a demand: %s", s.Key())
	}
	if len(s.SoftSpread) != 1 || s.SoftSpread[0].Key != corev1.LabelTopologyZone {
		t.Errorf("soft spread %v, want one over zones", s.SoftSpread)
	}
	if len(s.Wishes) != 3 {
		t.Fatalf("%d wishes, want three: a zone, to be near web and to be apart from it", len(s.Wishes))
	}
	if s.Wishes[0].Weight != 50 || s.Wishes[0].Labels.String() != corev1.LabelTopologyZone+"=a" {
		t.Errorf("first wish %+v, want zone a with weight 50", s.Wishes[0])
	}
	if s.Wishes[1].Apart || !s.Wishes[2].Apart || s.Wishes[2].Weight != 7 ||
		!strings.Contains(s.Wishes[2].Term.String(), "app=web") {
		t.Errorf("wishes %+v, want one near and one apart", s.Wishes[1:])
	}
	if plain := s.WithoutWishes(); plain.Key() == s.Key() || len(plain.Wishes)+len(plain.SoftSpread) != 0 {
		t.Errorf("without wishes the shape is %s", plain.Key())
	}
}
