package world

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

func templateOf(cpu string) corev1.PodTemplateSpec {
	var template corev1.PodTemplateSpec
	template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
	return template
}

func named[T client.Object](o T, name, version string) T {
	o.SetNamespace("shop")
	o.SetName(name)
	o.SetUID(types.UID(name))
	o.SetResourceVersion(version)
	return o
}

// K-35, K-37: the picture has a pod for each one that a buffer keeps room for. It follows the objects that the buffer
// refers to, in any order of events.
func TestK37_ThePictureHasTheRoomThatBuffersAskFor(t *testing.T) {
	t.Parallel()
	s := New(Config{Now: newClock().Now})
	name := types.NamespacedName{Namespace: "shop", Name: "room"}
	want := func(when string, pods int, cpu int64, reason string) {
		t.Helper()
		v, _, known := s.BufferVerdict(name)
		list := s.Snapshot().Buffers
		if v.Reason != reason || known != (reason != "") || len(list) != pods {
			t.Fatalf("%s: %d pods, %+v; want %d, %s", when, len(list), v, pods, reason)
		}
		for i, pod := range list {
			if !pod.IsBuffer() || pod.Shape.Buffer != "shop/room" || pod.Shape.Requests.At(resources.CPU) != cpu ||
				pod.Node != "" {
				t.Errorf("%s: pod %d is %+v of shape %+v", when, i, pod, pod.Shape)
			}
		}
		if s.HasBuffers() != (pods > 0) {
			t.Errorf("%s: it has buffers: %t", when, s.HasBuffers())
		}
		if len(s.Snapshot().Pending) != 0 {
			t.Errorf("%s: a buffer pod is among those that wait", when)
		}
	}
	buffer := func(version, percentage string) *autoscalingv1beta1.CapacityBuffer {
		b := named(&autoscalingv1beta1.CapacityBuffer{}, "room", version)
		b.Spec.ScalableRef = &autoscalingv1beta1.ScalableRef{APIGroup: "apps", Kind: "Deployment", Name: "web"}
		b.Spec.Percentage = new(map[string]int32{"50": 50, "20": 20}[percentage])
		return b
	}
	deployment := func(version, cpu string, replicas int32) *appsv1.Deployment {
		d := named(&appsv1.Deployment{}, "web", version)
		d.Spec.Template, d.Spec.Replicas = templateOf(cpu), &replicas
		return d
	}
	tell := func(o client.Object) {
		if err := s.Apply(o); err != nil {
			t.Fatal(err)
		}
	}
	tell(buffer("1", "50"))
	want("nothing it refers to", 0, 0, translate.BufferScalableNotFound)
	tell(deployment("2", "1", 4))
	want("half of 4", 2, 1000, translate.BufferResolved)
	tell(deployment("3", "2", 10))
	want("scaled, and its template changed", 5, 2000, translate.BufferResolved)
	tell(deployment("1", "4", 20))
	want("old news", 5, 2000, translate.BufferResolved)
	owned := deployment("3", "2", 10)
	owned.ResourceVersion, owned.OwnerReferences = "3",
		[]metav1.OwnerReference{{Kind: "Shop", Name: "web", Controller: new(true)}}
	tell(owned)
	want("something makes the Deployment", 5, 2000, translate.BufferResolved)
	tell(buffer("4", "20"))
	want("a fifth of 10", 2, 2000, translate.BufferResolved)
	limits := named(&corev1.LimitRange{}, "defaults", "5")
	limits.Spec.Limits = []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{"memory": resource.MustParse("1Gi")},
	}}
	tell(limits)
	if got := s.Snapshot().Buffers[0].Shape.Requests.At(resources.Memory); got != 1<<30 {
		t.Errorf("with a LimitRange the pods request %d bytes, want 1Gi", got)
	}
	s.Remove(deployment("6", "2", 10))
	want("its Deployment is gone", 0, 0, translate.BufferScalableNotFound)
	tell(func() client.Object { d := deployment("7", "1", 5); d.UID = "web2"; return d }())
	want("another of that name", 1, 1000, translate.BufferResolved)
	s.Remove(buffer("8", "20"))
	want("it is gone", 0, 0, "")
	if s.shapes.Len() != 0 {
		t.Errorf("%d shapes are left over", s.shapes.Len())
	}
}

// K-35: a buffer may not refer to a ReplicaSet of a Deployment, since others replace it. It may refer to a user's own
// ReplicaSet.
func TestK35_TheReplicaSetOfADeploymentIsNoReference(t *testing.T) {
	t.Parallel()
	s := New(Config{Now: newClock().Now})
	b := named(&autoscalingv1beta1.CapacityBuffer{}, "room", "1")
	b.Spec.ScalableRef = &autoscalingv1beta1.ScalableRef{APIGroup: "apps", Kind: "ReplicaSet", Name: "web"}
	b.Spec.Replicas = new(int32(2))
	set := named(&appsv1.ReplicaSet{}, "web", "2")
	set.Spec.Template = templateOf("1")
	made := set.DeepCopy()
	made.ResourceVersion, made.OwnerReferences = "3",
		[]metav1.OwnerReference{{Kind: "Deployment", Name: "shop", Controller: new(true)}}
	for _, each := range []struct {
		object client.Object
		pods   int
	}{{b, 0}, {set, 2}, {made, 0}} {
		if err := s.Apply(each.object); err != nil {
			t.Fatal(err)
		}
		v, _, _ := s.BufferVerdict(types.NamespacedName{Namespace: "shop", Name: "room"})
		if got := len(s.Snapshot().Buffers); got != each.pods {
			t.Errorf("%d pods, %+v; want %d", got, v, each.pods)
		}
	}
}

// K-04: with the gate off nothing is planned for buffers, and their objects are not watched.
func TestK04_WithoutTheGateThereAreNoBuffers(t *testing.T) {
	t.Parallel()
	s := New(Config{Now: newClock().Now, Off: Off{Buffers: true}})
	b := named(&autoscalingv1beta1.CapacityBuffer{}, "room", "1")
	b.Spec.PodTemplateRef, b.Spec.Replicas = &autoscalingv1beta1.LocalObjectRef{Name: "web"}, new(int32(3))
	template := named(&corev1.PodTemplate{}, "web", "2")
	template.Template = templateOf("1")
	for _, o := range []client.Object{b, template} {
		if err := s.Apply(o); err != nil {
			t.Fatal(err)
		}
	}
	if kinds, pods := s.BufferKinds(), s.Snapshot().Buffers; len(kinds) != 0 || len(pods) != 0 {
		t.Errorf("it asks for %d kinds, and has %d pods", len(kinds), len(pods))
	}
	on := New(Config{Now: newClock().Now})
	if kinds := on.BufferKinds(); len(kinds) != 5 ||
		!strings.HasSuffix(fmt.Sprintf("%T", kinds[4]), "CapacityBuffer") {
		t.Errorf("with the gate it asks for %d kinds", len(kinds))
	}
}
