package cases

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// simplifications lists what may be removed from a pod. Each one changes the pod in place and reports whether that
// changed anything. The list depends on the pod's content, so equal pods have equal lists.
func simplifications(pod *corev1.Pod) []func() bool {
	spec := &pod.Spec
	list := []func() bool{
		func() bool { return clearTo(&spec.InitContainers, nil, len(spec.InitContainers)) },
		func() bool { return clearTo(&spec.Containers, spec.Containers[:1], len(spec.Containers)-1) },
		func() bool { return clearTo(&spec.NodeSelector, nil, len(spec.NodeSelector)) },
		func() bool { return clearTo(&spec.Tolerations, nil, len(spec.Tolerations)) },
		func() bool { return clearTo(&spec.Overhead, nil, len(spec.Overhead)) },
		func() bool { return clearTo(&spec.Resources, nil, set(spec.Resources)) },
		func() bool { return clearTo(&spec.Priority, nil, set(spec.Priority)) },
		func() bool { return clearTo(&spec.HostNetwork, false, truth(spec.HostNetwork)) },
		func() bool { return clearTo(&pod.DeletionTimestamp, nil, set(pod.DeletionTimestamp)) },
	}
	for _, label := range []string{labelRevision, "tier"} {
		list = append(list, func() bool {
			_, had := pod.Labels[label]
			delete(pod.Labels, label)
			return had
		})
	}
	for i := range spec.InitContainers {
		list = append(list,
			func() bool { spec.InitContainers = slices.Delete(spec.InitContainers, i, i+1); return true })
	}
	for i := range spec.Containers[0].Ports {
		list = append(list, func() bool {
			spec.Containers[0].Ports = slices.Delete(spec.Containers[0].Ports, i, i+1)
			return true
		})
	}
	for i := range spec.Tolerations {
		list = append(list, func() bool { spec.Tolerations = slices.Delete(spec.Tolerations, i, i+1); return true })
	}
	list = append(list, requests(&spec.Containers[0])...)
	list = append(list, spreadSimplifications(spec)...)
	if spec.Affinity != nil {
		list = append(list, nodeAffinitySimplifications(spec.Affinity)...)
		if with := spec.Affinity.PodAffinity; with != nil {
			list = append(list, termSimplifications(&with.RequiredDuringSchedulingIgnoredDuringExecution)...)
		}
		if apart := spec.Affinity.PodAntiAffinity; apart != nil {
			list = append(list, termSimplifications(&apart.RequiredDuringSchedulingIgnoredDuringExecution)...)
		}
	}
	return list
}

func set[T any](pointer *T) int { return truth(pointer != nil) }

func truth(is bool) int {
	if is {
		return 1
	}
	return 0
}

// requests returns changes that make a container request less.
func requests(c *corev1.Container) []func() bool {
	return []func() bool{
		func() bool {
			had := len(c.Resources.Limits) > 0
			for name := range c.Resources.Limits {
				delete(c.Resources.Requests, name)
			}
			c.Resources.Limits = nil
			return had
		},
		func() bool {
			small := list("cpu", "100m", "memory", "100Mi")
			changed := !c.Resources.Requests.Cpu().Equal(small["cpu"]) ||
				!c.Resources.Requests.Memory().Equal(small["memory"])
			for name, quantity := range small {
				c.Resources.Requests[name] = quantity
			}
			return changed
		},
	}
}

func spreadSimplifications(spec *corev1.PodSpec) []func() bool {
	var list []func() bool
	for i := range spec.TopologySpreadConstraints {
		c := &spec.TopologySpreadConstraints[i]
		list = append(list,
			func() bool {
				spec.TopologySpreadConstraints = slices.Delete(spec.TopologySpreadConstraints, i, i+1)
				return true
			},
			func() bool { return clearTo(&c.MinDomains, nil, set(c.MinDomains)) },
			func() bool { return clearTo(&c.NodeAffinityPolicy, nil, set(c.NodeAffinityPolicy)) },
			func() bool { return clearTo(&c.NodeTaintsPolicy, nil, set(c.NodeTaintsPolicy)) },
			func() bool { return clearTo(&c.MatchLabelKeys, nil, len(c.MatchLabelKeys)) },
			func() bool { return clearTo(&c.MaxSkew, 1, int(c.MaxSkew)-1) },
		)
	}
	return list
}

func nodeAffinitySimplifications(affinity *corev1.Affinity) []func() bool {
	if affinity.NodeAffinity == nil {
		return nil
	}
	list := []func() bool{func() bool { affinity.NodeAffinity = nil; return true }}
	required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	for i := range required.NodeSelectorTerms {
		term := &required.NodeSelectorTerms[i]
		if len(required.NodeSelectorTerms) > 1 {
			list = append(list, func() bool {
				required.NodeSelectorTerms = slices.Delete(required.NodeSelectorTerms, i, i+1)
				return true
			})
		}
		if len(term.MatchExpressions) > 0 {
			list = append(list, func() bool { return clearTo(&term.MatchFields, nil, len(term.MatchFields)) })
		}
		for at := range term.MatchExpressions {
			if len(term.MatchExpressions)+len(term.MatchFields) > 1 {
				list = append(list,
					func() bool {
						term.MatchExpressions = slices.Delete(term.MatchExpressions, at, at+1)
						return true
					})
			}
		}
	}
	return list
}

func termSimplifications(terms *[]corev1.PodAffinityTerm) []func() bool {
	var list []func() bool
	for i := range *terms {
		term := &(*terms)[i]
		list = append(list,
			func() bool { *terms = slices.Delete(*terms, i, i+1); return true },
			func() bool { return clearTo(&term.Namespaces, nil, len(term.Namespaces)) },
			func() bool { return clearTo(&term.NamespaceSelector, nil, set(term.NamespaceSelector)) },
			func() bool { return clearTo(&term.MatchLabelKeys, nil, len(term.MatchLabelKeys)) },
			func() bool { return clearTo(&term.MismatchLabelKeys, nil, len(term.MismatchLabelKeys)) },
		)
	}
	return list
}
