package world

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// P-03: a pod gets the cluster's default constraints as soon as its services, or its owner with a selector, are known.
func TestDefaultConstraintsFollowServicesAndOwners(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := New(Config{Now: c.Now, DefaultSpread: []corev1.TopologySpreadConstraint{
		{TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule},
	}})
	want := func(when, selector string) {
		t.Helper()
		got := ""
		if spread := s.Snapshot().Pending[0].Shape.Spread; len(spread) > 0 {
			got = spread[0].Pods.String()
		}
		if got != selector {
			t.Errorf("%s: spread by %q; want %q", when, got, selector)
		}
	}
	pod := testPod("web", "u1", 1, "")
	pod.Labels["hash"] = "a"
	pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-a", Controller: new(true)},
	}
	_ = s.Apply(pod)
	want("alone", "")
	service := &corev1.Service{ObjectMeta: meta("shop", "front", "s1", 2),
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}}
	_ = s.Apply(service)
	want("with a service", "app=web")
	set := &appsv1.ReplicaSet{ObjectMeta: meta("shop", "web-a", "r1", 3),
		Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"hash": "a"}}}}
	_ = s.Apply(set)
	want("with its replica set", "app=web hash=a")
	version := s.Version()
	set = set.DeepCopy()
	set.ResourceVersion, set.Status.Replicas = "4", 7
	if _ = s.Apply(set); s.Version() != version {
		t.Error("the status of a replica set changes the picture")
	}
	service = service.DeepCopy()
	service.ResourceVersion, service.Spec.Selector = "5", map[string]string{"app": "db"}
	_ = s.Apply(service)
	want("with a service of others", "hash=a")
	s.Remove(set)
	want("alone again", "")
}

// Without default constraints nothing is watched and nothing is kept for them.
func TestWithoutDefaultConstraintsWorkloadsAreIgnored(t *testing.T) {
	t.Parallel()
	s := New(Config{Now: newClock().Now, PromiseTTL: time.Minute})
	_ = s.Apply(&corev1.Service{ObjectMeta: meta("shop", "front", "s1", 2),
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}})
	_ = s.Apply(testPod("web", "u1", 1, ""))
	if len(s.Workloads()) != 0 || len(s.workloads.seen) != 0 || s.pods[podKey{"shop", "web"}].object != nil ||
		len(s.Snapshot().Pending[0].Shape.Spread) != 0 {
		t.Error("workloads are kept, or a pod is spread")
	}
}
