package node

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory)}
}

func asks(cpu, memory string) change {
	return func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: amounts(cpu, memory)}},
		}
	}
}

func apart(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname}}}}
}

func spread(key string) change {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule},
		}
	}
}

// B-11: those that are hardest to find a place for leave first, since kube-scheduler takes pods as they come back.
func TestLargePodsLeaveFirst(t *testing.T) {
	t.Parallel()
	pods := []corev1.Pod{pod("a", asks("100m", "1Gi")), pod("b", asks("3", "1Gi")), pod("c", asks("100m", "32Gi")),
		pod("d", asks("1", "1Gi"), apart),
		pod("e", asks("2", "1Gi"), spread(corev1.LabelHostname)),
		pod("f", asks("100m", "1Gi"), spread(corev1.LabelTopologyZone)), pod("g"),
		pod("h", critical, asks("9", "9Gi"))}
	want := []string{"e", "d", "c", "b", "a", "f", "g"}
	if got := namesOf(planDrain(pods, at(0), time.Time{}, false).evict); !slices.Equal(got, want) {
		t.Errorf("evicts %v, want %v", got, want)
	}
}

// B-11: small pods of one node wait a moment for large ones of others.
func TestSmallPodsWaitForLargeOnes(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{Status: corev1.NodeStatus{Allocatable: amounts("4", "16Gi")}} // 6 cores, with 8 GiB for one
	pods := []corev1.Pod{pod("large", asks("1500m", "1Gi")), pod("middle", asks("1", "1Gi")),
		pod("small", asks("200m", "1Gi")), pod("none"),
		pod("apart", asks("100m", "1Gi"), apart)}
	var drains begun
	for _, moment := range []struct {
		after time.Duration
		want  []string
		next  time.Duration // after the beginning; 0 for no other one
	}{
		{0, []string{"apart", "large"}, step},
		{step - 1, []string{"apart", "large"}, step},
		{step, []string{"apart", "large", "middle"}, 2 * step},
		{2 * step, []string{"apart", "large", "middle", "small", "none"}, 0},
	} {
		now := at(0).Add(moment.after)
		plan := planDrain(pods, now, time.Time{}, false)
		plan.inSteps(node, &drains, now)
		if got := namesOf(plan.evict); !slices.Equal(got, moment.want) {
			t.Errorf("%s after the beginning evicts %v, want %v", moment.after, got, moment.want)
		}
		want := drainAgainAfter
		if moment.next > 0 {
			want = moment.next - moment.after
		}
		if again := plan.againAfter(now, drainAgainAfter); again != max(want, time.Millisecond) {
			t.Errorf("%s after the beginning it is looked at again after %s, want %s", moment.after, again, want)
		}
	}
	if began := drains.since("other", at(120)); !began.Equal(at(120)) || len(drains.at) != 1 {
		t.Errorf("a drain began at %s, and %d are known: one that began minutes ago is forgotten", began,
			len(drains.at))
	}
}
