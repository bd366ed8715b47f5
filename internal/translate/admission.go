package translate

import (
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Admission is what an API server adds to a new pod because of other objects.
type Admission struct {
	// Limits are the LimitRanges of the pod's namespace, in any order.
	Limits []*corev1.LimitRange
	// Class is the pod's RuntimeClass, nil for none.
	Class *nodev1.RuntimeClass
}

// Admit fills in a template as the API server does with the pods made from it. Limits become requests. Then
// LimitRanges give containers the requests that they do not name, and the RuntimeClass adds its overhead, labels and
// tolerations. If two LimitRanges differ, the API server uses either one; Admit uses the larger value.
func (a Admission) Admit(spec *corev1.PodSpec) {
	each := func(do func(*corev1.ResourceRequirements)) {
		for i := range spec.InitContainers {
			do(&spec.InitContainers[i].Resources)
		}
		for i := range spec.Containers {
			do(&spec.Containers[i].Resources)
		}
	}
	each(func(r *corev1.ResourceRequirements) { r.Requests = completed(r.Requests, r.Limits) })
	admitPodLevel(spec)
	if defaults := a.requests(); len(defaults) > 0 {
		each(func(r *corev1.ResourceRequirements) { r.Requests = completed(r.Requests, defaults) })
	}
	if a.Class == nil {
		return
	}
	if a.Class.Overhead != nil {
		spec.Overhead = a.Class.Overhead.PodFixed
	}
	if scheduling := a.Class.Scheduling; scheduling != nil {
		selector := map[string]string{}
		for _, labels := range []map[string]string{spec.NodeSelector, scheduling.NodeSelector} {
			for key, value := range labels {
				selector[key] = value
			}
		}
		spec.NodeSelector = selector
		spec.Tolerations = append(spec.Tolerations, scheduling.Tolerations...)
	}
}

// admitPodLevel gives a pod with pod-level limits the pod-level requests that it does not name: the sum of its
// containers' requests, or the limit if no container requests the resource.
func admitPodLevel(spec *corev1.PodSpec) {
	if spec.Resources == nil || len(spec.Resources.Limits) == 0 {
		return
	}
	pod := &corev1.Pod{Spec: *spec}
	together := corev1.ResourceList{}
	for name, amount := range resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{}) {
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
			together[name] = amount
		}
	}
	limits := corev1.ResourceList{}
	for name, amount := range spec.Resources.Limits {
		if resourcehelper.IsSupportedPodLevelResource(name) {
			limits[name] = amount
		}
	}
	spec.Resources = spec.Resources.DeepCopy()
	spec.Resources.Requests = completed(completed(spec.Resources.Requests, together), limits)
}

// requests returns the default requests of the LimitRanges, for containers that name neither request nor limit.
func (a Admission) requests() corev1.ResourceList {
	most := corev1.ResourceList{}
	for _, limits := range a.Limits {
		for _, item := range limits.Spec.Limits {
			if item.Type != corev1.LimitTypeContainer {
				continue
			}
			for name, amount := range item.DefaultRequest {
				if known, has := most[name]; !has || amount.Cmp(known) > 0 {
					most[name] = amount
				}
			}
		}
	}
	return most
}

// completed returns list, plus the resources of more that list does not name. Neither is changed.
func completed(list, more corev1.ResourceList) corev1.ResourceList {
	full := list
	for name, amount := range more {
		if _, has := list[name]; has {
			continue
		}
		if len(full) == len(list) {
			full = list.DeepCopy()
			if full == nil {
				full = corev1.ResourceList{}
			}
		}
		full[name] = amount
	}
	return full
}
