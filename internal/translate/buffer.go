package translate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Reasons of the condition ReadyForProvisioning of a CapacityBuffer. All except BufferResolved say why it asks for
// nothing (K-36).
const (
	BufferResolved            = "Resolved"
	BufferTemplateNotFound    = "PodTemplateNotFound"
	BufferScalableNotFound    = "ScalableRefNotFound"
	BufferResolutionFailed    = "ResolutionFailed"
	BufferUnsupportedStrategy = "UnsupportedStrategy"
)

// MostBufferPods bounds the pods of one buffer: every round plans for each of them.
const MostBufferPods = 5000

// The kinds that a CapacityBuffer may refer to.
const (
	KindPodTemplate = "PodTemplate"
	KindDeployment  = "Deployment"
	KindStatefulSet = "StatefulSet"
	KindReplicaSet  = "ReplicaSet"
)

// BufferSource is what a CapacityBuffer refers to.
type BufferSource struct {
	Template   *corev1.PodTemplateSpec
	Generation int64
	Replicas   int32 // that the workload asks for; meaningless for a PodTemplate
	// OwnedBy is the kind and name of a ReplicaSet's controller, "" for none. A buffer should refer to that instead.
	OwnedBy string
}

// BufferVerdict is what a CapacityBuffer asks for, or why it asks for nothing.
type BufferVerdict struct {
	// Reason is one of the above; Message gives details.
	Reason, Message string
	// Source is what the buffer refers to, nil when it was not found.
	Source *BufferSource
	// Pods is the number of pods to keep room for.
	Pods int
	// Limited says why Pods is lower than the buffer asks for, "" if it is not.
	Limited string
	// Shape is the shape of each pod, nil for none. It is not interned yet.
	Shape *cluster.Shape
}

// Ready reports whether the buffer was resolved.
func (v BufferVerdict) Ready() bool { return v.Reason == BufferResolved }

// Buffer resolves a CapacityBuffer (K-35). find returns what it refers to, by kind and name in its namespace, nil if
// there is none. given returns what an API server would add to its pods.
//
// Volumes of claims are left out of the template: nobody creates them for pods that do not exist.
func Buffer(space *resources.Space, b *autoscalingv1beta1.CapacityBuffer, find func(kind, name string) *BufferSource,
	given func(*corev1.PodSpec) Admission,
) BufferVerdict {
	if s := b.Spec.ProvisioningStrategy; s != nil && *s != "" && *s != autoscalingv1beta1.ActiveCapacity {
		return BufferVerdict{Reason: BufferUnsupportedStrategy,
			Message: fmt.Sprintf("spec.provisioningStrategy is %q: want %s", *s, autoscalingv1beta1.ActiveCapacity)}
	}
	source, failure := sourceOf(b, find)
	if failure.Reason != "" {
		return failure
	}
	pod := &corev1.Pod{Spec: *source.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.Labels = b.Namespace, b.Name, maps.Clone(source.Template.Labels)
	pod.Spec.NodeName = ""
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil || v.Ephemeral != nil
	})
	given(&pod.Spec).Admit(&pod.Spec)
	v := BufferVerdict{Reason: BufferResolved, Source: source}
	shape, err := podShape(space, pod)
	if err != nil {
		v.Reason, v.Message = BufferResolutionFailed, "its pod template: "+strings.ReplaceAll(err.Error(), "\n", "; ")
		return v
	}
	if v.Pods, v.Limited, err = bufferSize(space, b, source, shape.Requests); err != nil {
		v.Reason, v.Message = BufferResolutionFailed, err.Error()
		return v
	}
	shape.Buffer = b.Namespace + "/" + b.Name
	v.Shape = shape
	return v
}

// sourceOf returns what the buffer refers to, or a verdict with the reason why there is nothing.
func sourceOf(b *autoscalingv1beta1.CapacityBuffer,
	find func(kind, name string) *BufferSource) (*BufferSource, BufferVerdict) {
	fail := func(reason, format string, args ...any) (*BufferSource, BufferVerdict) {
		return nil, BufferVerdict{Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	template, scalable := b.Spec.PodTemplateRef, b.Spec.ScalableRef
	switch {
	case template != nil && scalable != nil:
		return fail(BufferResolutionFailed,
			"spec.podTemplateRef and spec.scalableRef exclude each other: give one of them")
	case template != nil:
		if source := find(KindPodTemplate, template.Name); source != nil {
			return source, BufferVerdict{}
		}
		return fail(BufferTemplateNotFound, "there is no PodTemplate %s/%s", b.Namespace, template.Name)
	case scalable == nil:
		return fail(BufferResolutionFailed,
			"it does not say what pods the room is for: give spec.podTemplateRef or spec.scalableRef")
	case cmp.Or(scalable.APIGroup, "apps") != "apps" || // as in Karpenter, without a group it is apps
		!slices.Contains([]string{KindDeployment, KindStatefulSet, KindReplicaSet}, scalable.Kind):
		return fail(BufferResolutionFailed,
			"spec.scalableRef is the kind %s of the API group %q: want %s, %s or %s of apps",
			scalable.Kind, scalable.APIGroup, KindDeployment, KindStatefulSet, KindReplicaSet)
	}
	source := find(scalable.Kind, scalable.Name)
	switch {
	case source == nil:
		return fail(BufferScalableNotFound, "there is no %s %s/%s", scalable.Kind, b.Namespace, scalable.Name)
	case source.OwnedBy != "":
		return fail(BufferResolutionFailed, "spec.scalableRef is %s %s, which %s owns: give that instead",
			scalable.Kind, scalable.Name, source.OwnedBy)
	}
	return source, BufferVerdict{}
}

// bufferSize returns the number of pods to keep room for: the larger one of replicas and percentage, within limits.
// Limits alone mean as many pods as fit. limited says what the limits took away.
func bufferSize(space *resources.Space, b *autoscalingv1beta1.CapacityBuffer, source *BufferSource,
	each resources.Vector) (
	pods int, limited string, err error,
) {
	asked := -1
	if b.Spec.Replicas != nil {
		asked = max(0, int(*b.Spec.Replicas))
	}
	if b.Spec.Percentage != nil && b.Spec.ScalableRef != nil {
		share := (int64(source.Replicas)*int64(max(0, *b.Spec.Percentage)) + 99) / 100
		asked = max(asked, int(min(share, math.MaxInt32)))
	}
	fit, what := math.MaxInt, ""
	for _, name := range slices.Sorted(maps.Keys(b.Spec.Limits)) {
		if quantity := b.Spec.Limits[name]; quantity.Sign() < 0 {
			return 0, "", fmt.Errorf("spec.limits.%s is %s: want 0 or more", name, quantity.String())
		}
		request := each.At(space.Index(string(name)))
		if request <= 0 {
			continue
		}
		if n := int(amountDown(name, b.Spec.Limits[name]) / request); n < fit {
			quantity := b.Spec.Limits[name]
			fit, what = n, fmt.Sprintf("spec.limits.%s is %s: that is room for %d", name, quantity.String(), n)
		}
	}
	if MostBufferPods < fit {
		fit, what = MostBufferPods, fmt.Sprintf("a CapacityBuffer has room for %d pods at most", MostBufferPods)
	}
	switch {
	case asked >= 0 && asked <= fit:
		return asked, "", nil
	case asked >= 0:
		return fit, fmt.Sprintf("%s of %d pods", what, asked), nil
	case len(b.Spec.Limits) == 0:
		return 0, "", errors.New("it does not say for how many pods: give spec.replicas, spec.percentage " +
			"(with spec.scalableRef) or spec.limits")
	case fit == MostBufferPods && !strings.HasPrefix(what, "spec."):
		return 0, "",
			fmt.Errorf("spec.limits alone do not say for how many pods: they name nothing that the pods request, "+
				"or more than %d of them fit", MostBufferPods)
	case fit == 0:
		return 0, what + " pods", nil
	}
	return fit, "", nil
}
