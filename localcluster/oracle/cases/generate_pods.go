package cases

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// template draws a kind of pod.
func (g *generator) template(i int) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace = one(g, "default", "default", "default", "shop", "infra")
	pod.Labels = map[string]string{"app": fmt.Sprint("w", one(g, i, i, 0, 1))}
	if g.likely(40) {
		pod.Labels[labelRevision] = one(g, "1", "2")
	}
	if g.likely(20) {
		pod.Labels["tier"] = one(g, "front", "back")
	}
	g.resources(&pod.Spec)
	g.selection(&pod.Spec)
	g.tolerations(&pod.Spec)
	g.spreads(pod)
	g.affinities(pod)
	if g.uses("priority") && g.likely(60) {
		pod.Spec.Priority = new(int32(one(g, 10, 100)))
	}
	return pod
}

func (g *generator) resources(spec *corev1.PodSpec) {
	main := container("main", list("cpu", one(g, "100m", "300m", "500m", "700m", "1500m", "3"),
		"memory", one(g, "100Mi", "500Mi", "1Gi", "3Gi")))
	if g.uses("ports") && g.likely(60) {
		for range one(g, 1, 1, 2) {
			number := one(g, int32(8080), 8080, 9090)
			main.Ports = append(main.Ports, corev1.ContainerPort{
				ContainerPort: number, HostPort: number, Protocol: one(g, corev1.ProtocolTCP, corev1.ProtocolTCP,
					corev1.ProtocolUDP, ""),
				HostIP: one(g, "", "", "0.0.0.0", "127.0.0.1", "10.0.0.1"),
			})
		}
		spec.HostNetwork = g.likely(15)
	}
	if g.likely(8) {
		main.Resources.Requests = list("cpu", one(g, "1", "7"), "memory", one(g, "10Gi", "20Gi"))
	}
	if g.uses("extended") && g.likely(50) {
		name, amount := one(g, resourceGPU, "hugepages-2Mi", "ephemeral-storage"), "1"
		if name != resourceGPU {
			amount = one(g, "4Mi", "40Mi")
		}
		for resource, quantity := range list(name, amount) {
			main.Resources.Requests[resource] = quantity
			main.Resources.Limits = corev1.ResourceList{resource: quantity}
		}
	}
	spec.Containers = []corev1.Container{main}
	if g.likely(15) {
		spec.Containers = append(spec.Containers,
			container("second", list("cpu", "200m", "memory", one(g, "64Mi", "1Gi"))))
	}
	if g.uses("init") && g.likely(60) {
		g.initContainers(spec)
	}
	if g.uses("pod resources") && g.likely(40) {
		spec.Resources = &corev1.ResourceRequirements{
			Requests: list("cpu", one(g, "1", "4"), "memory", one(g, "2Gi", "12Gi")),
		}
	}
	if g.uses("overhead") && g.likely(40) {
		spec.Overhead = list("cpu", one(g, "100m", "600m"), "memory", "100Mi")
	}
}

func (g *generator) initContainers(spec *corev1.PodSpec) {
	for i := range one(g, 1, 2, 3) {
		c := container(fmt.Sprint("init-", i), list("cpu", one(g, "100m", "1", "2", "4"), "memory",
			one(g, "64Mi", "2Gi")))
		if g.likely(50) {
			c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			if g.uses("ports") && g.likely(30) {
				c.Ports = []corev1.ContainerPort{{ContainerPort: 9090, HostPort: 9090}}
			}
		}
		spec.InitContainers = append(spec.InitContainers, c)
	}
}

func (g *generator) selection(spec *corev1.PodSpec) {
	if g.uses("node selector") && g.likely(40) {
		zone := map[string]string{corev1.LabelTopologyZone: one(g, "a", "b")}
		spec.NodeSelector = one(g, zone, zone, zone,
			map[string]string{corev1.LabelArchStable: one(g, "amd64", "arm64")},
			map[string]string{labelTeam: "red"}, map[string]string{"tier": "gold"},
			map[string]string{"karpenter.sh/nodepool": "p0"}, map[string]string{corev1.LabelHostname: "n0"},
		)
	}
	if g.uses("node affinity") && g.likely(60) {
		required := &corev1.NodeSelector{}
		for range one(g, 1, 1, 2, 3) {
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, g.nodeTerm())
		}
		spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required},
		}
	}
}

func (g *generator) nodeTerm() corev1.NodeSelectorTerm {
	term := corev1.NodeSelectorTerm{}
	for range one(g, 1, 1, 2) {
		term.MatchExpressions = append(term.MatchExpressions, g.nodeExpression())
	}
	switch g.IntN(12) {
	case 0:
		term.MatchFields = []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField,
			Operator: one(g, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{"n0"}}}
	case 1:
		term.MatchFields, term.MatchExpressions = []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField,
			Operator: corev1.NodeSelectorOpIn, Values: []string{one(g, "n0", "n1")}}}, nil
	}
	return term
}

func (g *generator) nodeExpression() corev1.NodeSelectorRequirement {
	expression := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	if g.likely(30) {
		return expression(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, some(g, "a", "b", "c")...)
	}
	return one(g,
		expression(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, some(g, "a", "b", "c")...),
		expression(corev1.LabelTopologyZone, corev1.NodeSelectorOpNotIn, one(g, "a", "b")),
		expression(corev1.LabelTopologyZone, corev1.NodeSelectorOpExists),
		expression("karpenter.sh/capacity-type", corev1.NodeSelectorOpIn, one(g, "spot", "on-demand")),
		expression("karpenter.sh/capacity-type", corev1.NodeSelectorOpNotIn, "spot"),
		expression(corev1.LabelArchStable, one(g, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), "arm64"),
		expression(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, "t4-amd64", "t8-amd64"),
		expression(labelTeam, corev1.NodeSelectorOpIn, some(g, "red", "blue", "green")...),
		expression(labelTeam, corev1.NodeSelectorOpNotIn, "red"),
		expression(labelTeam, one(g, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist)),
		expression(labelRack, corev1.NodeSelectorOpIn, some(g, "r1", "r2", "r3")...),
		expression(labelRack, one(g, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist)),
		expression(labelGeneration, corev1.NodeSelectorOpGt, one(g, "4", "5", "6")),
		expression(labelGeneration, corev1.NodeSelectorOpLt, one(g, "6", "7")),
		expression(labelGeneration, one(g, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist)),
		expression(labelGeneration, corev1.NodeSelectorOpNotIn, "6"),
		expression(corev1.LabelHostname, one(g, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn,
			corev1.NodeSelectorOpNotIn), "n0"),
		expression("nobody-has-this", corev1.NodeSelectorOpDoesNotExist),
	)
}

func (g *generator) tolerations(spec *corev1.PodSpec) {
	if !g.uses("taints") {
		return
	}
	for range one(g, 0, 1, 2, 3) {
		spec.Tolerations = append(spec.Tolerations, one(g,
			corev1.Toleration{Operator: corev1.TolerationOpExists},
			corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists},
			corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoSchedule},
			corev1.Toleration{Key: "dedicated", Value: "db"},
			corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "web",
				Effect: corev1.TaintEffectNoExecute},
			corev1.Toleration{Key: "level", Operator: one(g, corev1.TolerationOpLt, corev1.TolerationOpGt),
				Value: one(g, "3", "5", "9")},
			corev1.Toleration{Key: "level", Operator: corev1.TolerationOpExists},
			corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists},
		))
	}
}

// selector draws which pods a constraint is about, mostly those of the workload itself.
func (g *generator) selector(pod *corev1.Pod) *metav1.LabelSelector {
	expression := func(key string, op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: key, Operator: op, Values: values},
		}}
	}
	if g.likely(60) {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": pod.Labels["app"]}}
	}
	return one(g,
		&metav1.LabelSelector{MatchLabels: map[string]string{"app": "w0"}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"app": "w1"}},
		expression("app", metav1.LabelSelectorOpIn, "w0", "w1"), expression("app", metav1.LabelSelectorOpNotIn, "w0"),
		expression(labelRevision, metav1.LabelSelectorOpExists),
		expression("tier", metav1.LabelSelectorOpDoesNotExist), &metav1.LabelSelector{}, nil,
	)
}

func (g *generator) spreads(pod *corev1.Pod) {
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelHostname, "other"} {
		if !g.uses("spread "+key) || !g.likely(50) {
			continue
		}
		if key == "other" {
			key = one(g, "karpenter.sh/capacity-type", labelRack, corev1.LabelArchStable, labelTeam, labelGeneration,
				"karpenter.sh/nodepool")
		}
		c := corev1.TopologySpreadConstraint{
			TopologyKey: key, MaxSkew: one(g, int32(1), 1, 2), WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: g.selector(pod),
		}
		if g.likely(15) {
			c.MinDomains = new(one(g, int32(1), 2, 3))
		}
		if g.likely(15) {
			c.NodeAffinityPolicy = new(one(g, corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyHonor))
		}
		if g.likely(15) {
			c.NodeTaintsPolicy = new(one(g, corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyHonor))
		}
		if g.likely(15) {
			c.MatchLabelKeys = []string{labelRevision}
		}
		if g.likely(8) {
			c.WhenUnsatisfiable, c.MinDomains = corev1.ScheduleAnyway, nil
		}
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, c)
	}
}

func (g *generator) affinities(pod *corev1.Pod) {
	with, apart := g.uses("affinity") && g.likely(40), g.uses("anti-affinity") && g.likely(50)
	if !with && !apart {
		return
	}
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if with {
		pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: g.affinityTerms(pod),
		}
	}
	if apart {
		pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: g.affinityTerms(pod),
		}
	}
}

func (g *generator) affinityTerms(pod *corev1.Pod) []corev1.PodAffinityTerm {
	var terms []corev1.PodAffinityTerm
	for range one(g, 1, 1, 1, 2) {
		term := corev1.PodAffinityTerm{
			TopologyKey: one(g, corev1.LabelTopologyZone, corev1.LabelHostname, corev1.LabelHostname, labelRack,
				"karpenter.sh/capacity-type", labelGeneration),
			LabelSelector: g.selector(pod),
		}
		switch g.IntN(8) {
		case 0:
			term.Namespaces = some(g, "default", "shop")
		case 1:
			term.NamespaceSelector = one(g, &metav1.LabelSelector{},
				&metav1.LabelSelector{MatchLabels: map[string]string{labelTeam: "red"}})
		case 2:
			term.Namespaces, term.NamespaceSelector = []string{"infra"},
				&metav1.LabelSelector{MatchLabels: map[string]string{labelTeam: "red"}}
		}
		switch g.IntN(8) {
		case 0:
			term.MatchLabelKeys = []string{labelRevision}
		case 1:
			term.MismatchLabelKeys = []string{labelRevision}
		}
		terms = append(terms, term)
	}
	return terms
}
