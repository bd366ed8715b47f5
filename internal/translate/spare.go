package translate

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Spare removes from an object, in place, what nobody here reads: managed fields, and most of what pods, their
// templates and nodes say about containers and images. A pod then needs a fraction of its memory (B-22), and the
// arguments of containers, which are nobody's business, are gone (U-40). It is a transform for informers. It returns
// what is not an object unchanged, and its error is always nil.
//
// Whoever reads a further field of a pod must keep it here: otherwise it is empty in the cache.
func Spare(object any) (any, error) {
	if o, err := meta.Accessor(object); err == nil {
		o.SetManagedFields(nil)
	}
	switch o := object.(type) {
	case *corev1.Pod:
		SparePod(o)
	case *corev1.Node: // annotations stay: they are patched relative to the old ones
		o.Status.Images, o.Status.VolumesInUse = nil, nil
	}
	if template := templateOf(object); template != nil {
		delete(object.(metav1.Object).GetAnnotations(), lastApplied)
		spareSpec(&template.Spec)
	}
	return object, nil
}

// templateOf returns the pod template of objects that have one; nil for others.
func templateOf(object any) *corev1.PodTemplateSpec {
	switch o := object.(type) {
	case *corev1.PodTemplate:
		return &o.Template
	case *corev1.ReplicationController:
		return o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.ReplicaSet:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	}
	return nil
}

// lastApplied is the annotation in which kubectl keeps a copy of the whole object.
const lastApplied = corev1.LastAppliedConfigAnnotation

// SparePod is [Spare] for a pod.
func SparePod(pod *corev1.Pod) {
	pod.ManagedFields = nil
	delete(pod.Annotations, lastApplied)
	spareSpec(&pod.Spec)
	pod.Status = corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions,
		Resize:            pod.Status.Resize,
		NominatedNodeName: pod.Status.NominatedNodeName, StartTime: pod.Status.StartTime,
		AllocatedResources: pod.Status.AllocatedResources,
		Resources:          pod.Status.Resources, ResourceClaimStatuses: pod.Status.ResourceClaimStatuses,
		InitContainerStatuses: spareStatuses(pod.Status.InitContainerStatuses),
		ContainerStatuses:     spareStatuses(pod.Status.ContainerStatuses)}
}

func spareSpec(spec *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i, c := range list {
			list[i] = corev1.Container{Name: c.Name, Resources: c.Resources, ResizePolicy: c.ResizePolicy,
				RestartPolicy: c.RestartPolicy, Ports: c.Ports}
		}
	}
	other := func(v corev1.Volume) bool { return v.PersistentVolumeClaim == nil && v.Ephemeral == nil }
	if slices.ContainsFunc(spec.Volumes, other) {
		spec.Volumes = slices.Clip(slices.DeleteFunc(spec.Volumes, other))
	}
	spec.EphemeralContainers, spec.ImagePullSecrets, spec.HostAliases = nil, nil, nil
	spec.SecurityContext, spec.DNSConfig = nil, nil
}

func spareStatuses(list []corev1.ContainerStatus) []corev1.ContainerStatus {
	var spare []corev1.ContainerStatus
	for _, c := range list {
		if c.AllocatedResources != nil || c.Resources != nil {
			spare = append(spare, corev1.ContainerStatus{Name: c.Name, AllocatedResources: c.AllocatedResources,
				Resources: c.Resources})
		}
	}
	return spare
}
