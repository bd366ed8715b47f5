package translate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Requests returns what a pod requests, as in its shape.
func Requests(space *resources.Space, pod *corev1.Pod) resources.Vector {
	return podRequests(space, pod)
}

// podRequests sums the pod's requests by the kubelet's rule, and adds 1 for pods (P-06). For a bound pod the status
// counts too: during an in-place resize the node reserves the larger of the requested and the allocated amounts.
func podRequests(space *resources.Space, pod *corev1.Pod) resources.Vector {
	bound := pod.Spec.NodeName != ""
	list := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources: bound,
		InPlacePodLevelResourcesVerticalScalingEnabled: bound,
	})
	amounts := Amounts(list)
	for name, amount := range amounts {
		if amount == 0 {
			delete(amounts, name) // so that pods with a request of 0 share the shape of pods without it
		}
	}
	amounts[resources.NamePods] = 1
	return space.Vector(amounts)
}

// hostPorts returns the node ports that the pod occupies while it runs, sorted. In a pod with the host's network these
// are all ports that its containers name.
func hostPorts(spec *corev1.PodSpec) []cluster.HostPort {
	var list []cluster.HostPort
	add := func(container *corev1.Container) {
		for _, port := range container.Ports {
			number := port.HostPort
			if number == 0 && spec.HostNetwork {
				number = port.ContainerPort
			}
			if number > 0 {
				list = append(list, hostPort(port, number))
			}
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	for i := range spec.InitContainers {
		if policy := spec.InitContainers[i].RestartPolicy; policy != nil &&
			*policy == corev1.ContainerRestartPolicyAlways {
			add(&spec.InitContainers[i])
		}
	}
	slices.SortFunc(list, func(a, b cluster.HostPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), strings.Compare(a.Protocol, b.Protocol),
			strings.Compare(a.IP, b.IP))
	})
	return slices.Compact(list)
}

func hostPort(port corev1.ContainerPort, number int32) cluster.HostPort {
	result := cluster.HostPort{IP: port.HostIP, Protocol: string(port.Protocol), Port: number}
	if result.IP == "0.0.0.0" {
		result.IP = ""
	}
	if result.Protocol == "" {
		result.Protocol = string(corev1.ProtocolTCP)
	}
	return result
}

// tolerations sorts them: their order has no meaning, and pods that differ only in it should share a shape.
func tolerations(from []corev1.Toleration) []cluster.Toleration {
	var list []cluster.Toleration
	for _, t := range from {
		operator := string(t.Operator)
		if operator == "" {
			operator = cluster.TolerationEqual
		}
		list = append(list, cluster.Toleration{Key: t.Key, Operator: operator, Value: t.Value,
			Effect: string(t.Effect)})
	}
	slices.SortFunc(list, func(a, b cluster.Toleration) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Operator, b.Operator),
			strings.Compare(a.Value, b.Value), strings.Compare(a.Effect, b.Effect))
	})
	return slices.Compact(list)
}

// Taints converts taints, without the time when they were added.
func Taints(from []corev1.Taint) []cluster.Taint {
	var list []cluster.Taint
	for _, t := range from {
		list = append(list, taint(t))
	}
	return list
}

func taint(t corev1.Taint) cluster.Taint {
	return cluster.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)}
}

// spreads converts the constraints with DoNotSchedule (P-03). For ScheduleAnyway see preferences.
func spreads(pod *corev1.Pod) ([]cluster.Spread, error) {
	var list []cluster.Spread
	var errs []error
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
			continue
		}
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			errs = append(errs,
				fmt.Errorf("topology spread on %q: whenUnsatisfiable %q is neither DoNotSchedule nor ScheduleAnyway",
					c.TopologyKey, c.WhenUnsatisfiable))
			continue
		}
		converted, err := spread(pod, c)
		if err != nil {
			errs = append(errs, err)
		}
		list = append(list, converted)
	}
	return list, errors.Join(errs...)
}

func spread(pod *corev1.Pod, c corev1.TopologySpreadConstraint) (cluster.Spread, error) {
	chosen, err := selector(c.LabelSelector, ownValues(pod.Labels, c.MatchLabelKeys, false)...)
	if err != nil {
		err = fmt.Errorf("topology spread on %q: %w", c.TopologyKey, err)
	}
	if from := c.LabelSelector; from != nil && len(from.MatchLabels)+len(from.MatchExpressions) == 0 &&
		len(ownValues(pod.Labels, c.MatchLabelKeys, false)) == 0 {
		chosen = cluster.Selector{} // kube-scheduler counts no pods for {}, although it chooses all
	}
	converted := cluster.Spread{Key: string(Key(c.TopologyKey)), Pods: chosen, MaxSkew: c.MaxSkew, MinDomains: 1}
	if c.MinDomains != nil {
		converted.MinDomains = *c.MinDomains
	}
	converted.IgnoreAffinity = c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore
	converted.HonorTaints = c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	return converted, err
}

// affinities converts the required terms of pod affinity and anti-affinity (P-04); preferred ones are left out.
func affinities(pod *corev1.Pod) (with, apart []cluster.AffinityTerm, err error) {
	if pod.Spec.Affinity == nil {
		return nil, nil, nil
	}
	var withErr, apartErr error
	if from := pod.Spec.Affinity.PodAffinity; from != nil {
		with, withErr = affinityTerms(pod, "pod affinity", from.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if from := pod.Spec.Affinity.PodAntiAffinity; from != nil {
		apart, apartErr = affinityTerms(pod, "pod anti-affinity", from.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	return with, apart, errors.Join(withErr, apartErr)
}

func affinityTerms(pod *corev1.Pod, what string, from []corev1.PodAffinityTerm) ([]cluster.AffinityTerm, error) {
	var list []cluster.AffinityTerm
	var errs []error
	for _, term := range from {
		own := slices.Concat(ownValues(pod.Labels, term.MatchLabelKeys, false),
			ownValues(pod.Labels, term.MismatchLabelKeys, true))
		chosen, err := selector(term.LabelSelector, own...)
		spaces, spaceErr := selector(term.NamespaceSelector)
		if joined := errors.Join(err, spaceErr); joined != nil {
			errs = append(errs, fmt.Errorf("%s on %q: %w", what, term.TopologyKey, joined))
			continue
		}
		names := slices.Clone(term.Namespaces)
		if len(names) == 0 && term.NamespaceSelector == nil {
			names = []string{pod.Namespace}
		}
		slices.Sort(names)
		list = append(list, cluster.AffinityTerm{
			Key: string(Key(term.TopologyKey)), Pods: chosen, Namespaces: slices.Compact(names),
			NamespaceSelector: spaces,
		})
	}
	return list, errors.Join(errs...)
}
