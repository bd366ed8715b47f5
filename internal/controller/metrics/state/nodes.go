package state

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// amounts are sums by resource, in base units, cpu in cores.
type amounts map[corev1.ResourceName]float64

func (a amounts) add(list corev1.ResourceList) {
	for name, quantity := range list {
		a[name] += amount(name, quantity)
	}
}

func amount(name corev1.ResourceName, quantity resource.Quantity) float64 {
	if name == corev1.ResourceCPU {
		return float64(quantity.MilliValue()) / 1000
	}
	return float64(quantity.Value())
}

// load is the total of a node's pods.
type load struct{ requests, limits, daemonRequests, daemonLimits amounts }

func newLoad() *load { return &load{amounts{}, amounts{}, amounts{}, amounts{}} }

// add adds a pod that has not finished.
func (l *load) add(pod *corev1.Pod) {
	requests, limits := []amounts{l.requests}, []amounts{l.limits}
	if ofDaemonSet(pod) {
		requests, limits = append(requests, l.daemonRequests), append(limits, l.daemonLimits)
	}
	simple := len(pod.Spec.InitContainers) == 0 && pod.Spec.Overhead == nil && pod.Spec.Resources == nil
	for i := range requests {
		requests[i][corev1.ResourcePods]++
		limits[i][corev1.ResourcePods]++
		if !simple {
			requests[i].add(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
			limits[i].add(resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}))
			continue
		}
		for c := range pod.Spec.Containers {
			requests[i].add(pod.Spec.Containers[c].Resources.Requests)
			limits[i].add(pod.Spec.Containers[c].Resources.Limits)
		}
	}
}

func ofDaemonSet(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "DaemonSet" && o.Controller != nil && *o.Controller
	})
}

// loads returns the load of each node. Finished pods do not count.
func loads(pods []*corev1.Pod) map[string]*load {
	byNode := map[string]*load{}
	for _, pod := range pods {
		if pod.Spec.NodeName == "" || translate.Finished(pod) {
			continue
		}
		if byNode[pod.Spec.NodeName] == nil {
			byNode[pod.Spec.NodeName] = newLoad()
		}
		byNode[pod.Spec.NodeName].add(pod)
	}
	return byNode
}

// nodes adds the series of all nodes, including those that are not ours.
func (b *builder) nodes(in Input, o Options) {
	if !b.serves("karpenter_cluster_utilization_percent") {
		return // then none of the others are
	}
	byNode, none := loads(in.Pods), newLoad()
	none.requests[corev1.ResourcePods], none.limits[corev1.ResourcePods] = 0, 0
	room, asked := amounts{}, amounts{}
	types, of := map[[4]string]int{}, b.ofNodes()
	for _, node := range in.Nodes {
		l := byNode[node.Name]
		if l == nil {
			l = none
		}
		room.add(node.Status.Allocatable)
		for name, value := range l.requests {
			asked[name] += value
		}
		labels := node.Labels
		types[[4]string{labels[karpenterv1.CapacityTypeLabelKey], labels[corev1.LabelInstanceTypeStable],
			labels[karpenterv1.NodePoolLabelKey], labels[corev1.LabelTopologyZone]}]++
		if !o.Bounded {
			of.node(in, o, node, l)
		}
	}
	for name, whole := range room {
		if whole > 0 {
			b.add("karpenter_cluster_utilization_percent", 100*asked[name]/whole,
				label{"resource_type", metrics.ResourceType(string(name))})
		}
	}
	for t, count := range types {
		b.add("joiner_nodes_by_type", float64(count), label{"capacity_type", t[0]}, label{"instance_type", t[1]},
			label{"nodepool", t[2]}, label{"zone", t[3]})
	}
}

// ofNodes are the families of nodes.
type ofNodes struct{ lifetime, allocatable, overhead, requests, limits, daemonRequests, daemonLimits *Text }

func (b *builder) ofNodes() ofNodes {
	of := func(name string) *Text { return b.family("karpenter_nodes_" + name) }
	return ofNodes{of("current_lifetime_seconds"), of("allocatable"), of("system_overhead"), of("total_pod_requests"),
		of("total_pod_limits"), of("total_daemon_requests"), of("total_daemon_limits")}
}

// node adds the series of one node.
func (of ofNodes) node(in Input, o Options, node *corev1.Node, l *load) {
	labels := []label{{"node_name", node.Name}, {"phase", string(node.Status.Phase)},
		{"managed", word(managed(node))}}
	for _, key := range o.NodeLabels {
		labels = append(labels, label{labelName(key), node.Labels[key]})
	}
	labels = sorted(labels...)
	of.lifetime.add(in.Now.Sub(node.CreationTimestamp.Time).Seconds(), labels...)
	place := 0 // of resource_type among the labels
	for place < len(labels) && labels[place].name < "resource_type" {
		place++
	}
	before, after := written(labels[:place]...), written(labels[place:]...)
	add := func(to *Text, values amounts) {
		for resource, value := range values {
			to.add(value, before, label{"resource_type", metrics.ResourceType(string(resource))}, after)
		}
	}
	allocatable, overhead := amounts{}, amounts{}
	allocatable.add(node.Status.Allocatable)
	overhead.add(node.Status.Capacity)
	for name, value := range allocatable {
		overhead[name] -= value
	}
	add(of.allocatable, allocatable)
	add(of.overhead, overhead)
	add(of.requests, l.requests)
	add(of.limits, l.limits)
	add(of.daemonRequests, l.daemonRequests)
	add(of.daemonLimits, l.daemonLimits)
}

// managed reports whether a node belongs to a NodePool.
func managed(node *corev1.Node) bool { return node.Labels[karpenterv1.NodePoolLabelKey] != "" }

// ownerPath returns the path of a pod's first owner as Karpenter writes it, "" for none.
func ownerPath(pod *corev1.Pod) string {
	if len(pod.OwnerReferences) == 0 {
		return ""
	}
	owner := &pod.OwnerReferences[0]
	return "/apis/" + owner.APIVersion + "/namespaces/" + pod.Namespace + "/" + strings.ToLower(owner.Kind) + "s/" +
		owner.Name
}
