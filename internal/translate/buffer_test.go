package translate_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// sources has a template, and workloads of ten pods, by kind and name.
func sources(t *testing.T) func(kind, name string) *translate.BufferSource {
	t.Helper()
	template := &corev1.PodTemplateSpec{}
	template.Labels = map[string]string{"app": "web"}
	template.Spec.Containers = []corev1.Container{
		{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")}}}}
	template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	return func(kind, name string) *translate.BufferSource {
		switch {
		case name == "gone":
			return nil
		case kind == translate.KindPodTemplate:
			return &translate.BufferSource{Template: template, Generation: 3}
		case name == "owned":
			return &translate.BufferSource{Template: template, Replicas: 10, OwnedBy: "Deployment web"}
		}
		return &translate.BufferSource{Template: template, Generation: 3, Replicas: 10}
	}
}

// K-35: how many pods a buffer keeps room for, and why it keeps none.
func TestK35_WhatABufferAsksFor(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]struct {
		pods    int
		limited string
		reason  string
		message string
	}{
		"{podTemplateRef: {name: web}, replicas: 3}":                                                        {pods: 3},
		"{podTemplateRef: {name: web}, replicas: 0}":                                                        {},
		"{podTemplateRef: {name: web}, replicas: 3, provisioningStrategy: buffer.x-k8s.io/active-capacity}": {pods: 3},
		"{podTemplateRef: {name: web}, replicas: 3, provisioningStrategy: example.com/paper}": {
			reason:  translate.BufferUnsupportedStrategy,
			message: `spec.provisioningStrategy is "example.com/paper": want buffer`},
		"{podTemplateRef: {name: web}, limits: {cpu: 1700m, memory: 64Gi, example.com/gpu: 1}}": {pods: 3},
		"{podTemplateRef: {name: web}, replicas: 9, limits: {cpu: 10, memory: 2500Mi}}": {pods: 2,
			limited: "spec.limits.memory is 2500Mi: that is room for 2 of 9 pods"},
		"{podTemplateRef: {name: web}, limits: {cpu: -2}}": {reason: translate.BufferResolutionFailed,
			message: "spec.limits.cpu is -2: want 0 or more"},
		"{podTemplateRef: {name: web}, replicas: 1, limits: {example.com/gpu: -1}}": {
			reason:  translate.BufferResolutionFailed,
			message: "spec.limits.example.com/gpu is -1: want 0 or more"},
		"{podTemplateRef: {name: web}, limits: {cpu: 1m}}": {
			limited: "spec.limits.cpu is 1m: that is room for 0 pods",
		},
		"{podTemplateRef: {name: web}, limits: {example.com/gpu: 1}}": {reason: translate.BufferResolutionFailed,
			message: "they name nothing that the pods request"},
		"{podTemplateRef: {name: web}, replicas: 100000}": {pods: translate.MostBufferPods,
			limited: "a CapacityBuffer has room for 5000 pods at most of 100000 pods"},
		"{podTemplateRef: {name: gone}, replicas: 3}": {reason: translate.BufferTemplateNotFound,
			message: "there is no PodTemplate shop/gone"},
		// of 10, rounded up
		"{scalableRef: {apiGroup: apps, kind: Deployment, name: web}, percentage: 25}": {pods: 3},
		"{scalableRef: {kind: Deployment, name: web}, percentage: 25}":                 {pods: 3}, // of apps
		"{scalableRef: {apiGroup: apps, kind: StatefulSet, name: web}, percentage: 1}": {pods: 1},
		"{scalableRef: {apiGroup: apps, kind: StatefulSet, name: web}, percentage: 0}": {},
		// the larger one
		"{scalableRef: {apiGroup: apps, kind: ReplicaSet, name: web}, percentage: 25, replicas: 7}":  {pods: 7},
		"{scalableRef: {apiGroup: apps, kind: ReplicaSet, name: web}, percentage: 120, replicas: 7}": {pods: 12},
		"{scalableRef: {apiGroup: apps, kind: ReplicaSet, name: owned}, replicas: 7}": {
			reason:  translate.BufferResolutionFailed,
			message: "which Deployment web owns: give that instead"},
		"{scalableRef: {apiGroup: apps, kind: Deployment, name: web}}": {reason: translate.BufferResolutionFailed,
			message: "give spec.replicas, spec.percentage (with spec.scalableRef) or spec.limits"},
		"{scalableRef: {apiGroup: apps, kind: Deployment, name: gone}, replicas: 1}": {
			reason:  translate.BufferScalableNotFound,
			message: "there is no Deployment shop/gone"},
		"{scalableRef: {apiGroup: batch, kind: Job, name: web}, replicas: 1}": {
			reason:  translate.BufferResolutionFailed,
			message: `is the kind Job of the API group "batch": want Deployment, StatefulSet or ReplicaSet of apps`},
		"{scalableRef: {kind: Job, name: web}, replicas: 1}": {
			reason:  translate.BufferResolutionFailed,
			message: `is the kind Job of the API group "": want Deployment, StatefulSet or ReplicaSet of apps`},
		"{replicas: 1}": {reason: translate.BufferResolutionFailed,
			message: "give spec.podTemplateRef or spec.scalableRef"},
	} {
		b := &autoscalingv1beta1.CapacityBuffer{}
		b.Namespace, b.Name = "shop", "room"
		if err := yaml.UnmarshalStrict([]byte(spec), &b.Spec); err != nil {
			t.Fatal(err)
		}
		v := translate.Buffer(resources.NewSpace(), b, sources(t), func(*corev1.PodSpec) translate.Admission {
			return translate.Admission{}
		})
		if want.reason == "" {
			want.reason = translate.BufferResolved
		}
		if v.Reason != want.reason || v.Pods != want.pods || v.Limited != want.limited ||
			!strings.Contains(v.Message, want.message) {
			t.Errorf("%s: %+v, want %+v", spec, v, want)
		}
		if !v.Ready() {
			continue
		}
		// Its volume is nobody's: a pod that is none gets none.
		if v.Shape.Buffer != "shop/room" || v.Shape.Labels["app"] != "web" ||
			v.Shape.Requests.At(resources.CPU) != 500 || v.Shape.Blocked != "" {
			t.Errorf("%s: the shape is %+v", spec, v.Shape)
		}
	}
}
