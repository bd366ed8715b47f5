package state

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// placed are the labels that the pods of a node share, split by where the pod's own labels go in the order of names:
// before, between and after them. nodepool and scheduled are the labels of sums.
type placed struct {
	before, between, after label
	nodepool, scheduled    string
}

func placedOn(name string, node *corev1.Node) *placed {
	labels := map[string]string{}
	if node != nil {
		labels = node.Labels
	}
	p := &placed{nodepool: labels[karpenterv1.NodePoolLabelKey], scheduled: word(name != "")}
	p.before = written(label{"arch", labels[corev1.LabelArchStable]},
		label{"capacity_type", labels[karpenterv1.CapacityTypeLabelKey]},
		label{"instance_type", labels[corev1.LabelInstanceTypeStable]},
		label{"managed", word(node != nil && managed(node))})
	p.between = written(label{"node", name}, label{"nodepool", p.nodepool})
	p.after = written(label{"scheduled", p.scheduled}, label{"zone", labels[corev1.LabelTopologyZone]})
	return p
}

// pods adds the series of pods.
func (b *builder) pods(in Input) {
	const state, sums = "karpenter_pods_state", "joiner_pods"
	byName := make(map[string]*corev1.Node, len(in.Nodes))
	for _, node := range in.Nodes {
		byName[node.Name] = node
	}
	on := map[string]*placed{}
	where := func(pod *corev1.Pod) *placed {
		known := on[pod.Spec.NodeName]
		if known == nil {
			known = placedOn(pod.Spec.NodeName, byName[pod.Spec.NodeName])
			on[pod.Spec.NodeName] = known
		}
		return known
	}
	counts := map[[3]string]int{}
	each := b.family(state)
	for _, pod := range in.Pods {
		at, phase := where(pod), string(pod.Status.Phase)
		if each == nil {
			counts[[3]string{at.nodepool, phase, at.scheduled}]++
			continue
		}
		each.add(1, at.before, label{"name", pod.Name}, label{"namespace", pod.Namespace}, at.between,
			label{"owner", ownerPath(pod)}, label{"phase", phase}, label{"ready", word(ready(pod))}, at.after)
	}
	if b.serves(sums) {
		for values, count := range counts {
			b.add(sums, float64(count), label{"nodepool", values[0]}, label{"phase", values[1]},
				label{"scheduled", values[2]})
		}
	}
	for _, pod := range in.Waiting {
		b.waits(in.Now, pod.Namespace, pod.Name, pod.Created, pod.Seen, pod.Decided, pod.Placed, pod.Bound,
			pod.Dynamic)
	}
}

// waits adds the series of a pod that is not ready yet.
func (b *builder) waits(now time.Time, namespace, name string, created, seen, decided, planned time.Time, bound,
	dynamic bool) {
	named, spaced := label{"name", name}, label{"namespace", namespace}
	devices := label{"dynamic_resources", word(dynamic)}
	age := func(since time.Time) float64 { return max(0, now.Sub(since).Seconds()) }
	const of = "karpenter_pods_"
	b.add(of+"unstarted_time_seconds", age(created), named, spaced)
	if !planned.IsZero() {
		b.add(of+"provisioning_unstarted_time_seconds", age(planned), named, spaced)
	}
	if bound {
		return
	}
	b.add(of+"unbound_time_seconds", age(created), devices, named, spaced)
	if !planned.IsZero() {
		b.add(of+"provisioning_unbound_time_seconds", age(planned), devices, named, spaced)
	}
	if !seen.IsZero() && decided.IsZero() {
		b.add(of+"provisioning_scheduling_undecided_time_seconds", age(seen), named, spaced)
	}
}

func ready(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
