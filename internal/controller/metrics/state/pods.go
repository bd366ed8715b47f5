package state

import (
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// placed are the labels that the pods of a node have in common.
type placed struct{ arch, capacityType, instanceType, managed, node, nodepool, scheduled, zone *dto.LabelPair }

func placedOn(name string, node *corev1.Node) *placed {
	of := func(label, key string) *dto.LabelPair {
		if node == nil {
			return pair(label, "")
		}
		return pair(label, node.Labels[key])
	}
	return &placed{
		arch: of("arch", corev1.LabelArchStable), capacityType: of("capacity_type", karpenterv1.CapacityTypeLabelKey),
		instanceType: of("instance_type", corev1.LabelInstanceTypeStable), nodepool: of("nodepool",
			karpenterv1.NodePoolLabelKey),
		zone: of("zone", corev1.LabelTopologyZone), node: pair("node", name), scheduled: pair("scheduled", word(name != "")),
		managed: pair("managed", word(node != nil && managed(node))),
	}
}

// labels hands out labels, one for each value.
type labels struct {
	name string
	by   map[string]*dto.LabelPair
}

func newLabels(name string) labels { return labels{name, map[string]*dto.LabelPair{}} }

func (l labels) of(value string) *dto.LabelPair {
	known := l.by[value]
	if known == nil {
		known = pair(l.name, value)
		l.by[value] = known
	}
	return known
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
	phases, readies := newLabels("phase"), newLabels("ready")
	namespaces, owners := newLabels("namespace"), newLabels("owner")
	counts := map[[3]*dto.LabelPair]int{}
	each := b.serves(state)
	for _, pod := range in.Pods {
		at, phase := where(pod), phases.of(string(pod.Status.Phase))
		if !each {
			counts[[3]*dto.LabelPair{at.nodepool, phase, at.scheduled}]++
			continue
		}
		b.add(state, 1, at.arch, at.capacityType, at.instanceType, at.managed, pair("name", pod.Name),
			namespaces.of(pod.Namespace),
			at.node, at.nodepool, owners.of(ownerPath(pod)), phase, readies.of(word(ready(pod))), at.scheduled, at.zone)
	}
	if b.serves(sums) {
		b.sums(sums, counts)
	}
	for _, pod := range in.Waiting {
		b.waits(in.Now, pod.Namespace, pod.Name, pod.Created, pod.Seen, pod.Decided, pod.Placed, pod.Bound, pod.Dynamic)
	}
}

// sums adds how many pods there are by pool. Nodes have labels of their own, so those of one value are taken together.
func (b *builder) sums(name string, counts map[[3]*dto.LabelPair]int) {
	byValue := map[[3]string]int{}
	for labels, count := range counts {
		byValue[[3]string{labels[0].GetValue(), labels[1].GetValue(), labels[2].GetValue()}] += count
	}
	for values, count := range byValue {
		b.add(name, float64(count), pair("nodepool", values[0]), pair("phase", values[1]), pair("scheduled", values[2]))
	}
}

// waits adds the series of a pod that is not ready yet.
func (b *builder) waits(now time.Time, namespace, name string, created, seen, decided, planned time.Time, bound,
	dynamic bool) {
	named, spaced, devices := pair("name", name), pair("namespace", namespace), pair("dynamic_resources", word(dynamic))
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
