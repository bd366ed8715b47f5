package sim

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// tellState prints the state of the world: the first thing to look at after a violation at the end of a run.
func (w *World) tellState() {
	if !w.verbose() {
		return
	}
	w.server.All(&karpenterv1.NodePool{}, func(o client.Object) {
		pool := o.(*karpenterv1.NodePool)
		w.tell("NodePool %s: %d claims, soft limit %v, hard limit %v, %s", pool.Name, w.count(pool.Name),
			pool.Spec.Limits, pool.Spec.HardLimits, holding(pool.Status.Conditions))
	})
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		w.tell("NodeClaim %s: node %q, %s in %s%s, %s", claim.Name, claim.Status.NodeName,
			claim.Labels[corev1.LabelInstanceTypeStable],
			claim.Labels[corev1.LabelTopologyZone], goes(claim), holding(claim.Status.Conditions))
	})
	w.server.All(&corev1.Node{}, func(o client.Object) {
		node := o.(*corev1.Node)
		var taints []string
		for _, taint := range node.Spec.Taints {
			taints = append(taints, taint.Key)
		}
		has := node.Status.Allocatable
		w.tell("Node %s: %s cores, %s%s, taints %v", node.Name, has.Cpu(), has.Memory(), goes(node), taints)
	})
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		pod := o.(*corev1.Pod)
		cpu, mem := asks(pod)
		w.tell("Pod %s: node %q, %dm, %d MiB%s", pod.Name, pod.Spec.NodeName, cpu, mem>>20, goes(pod))
	})
}

func goes(o client.Object) string {
	if o.GetDeletionTimestamp() == nil {
		return ""
	}
	return ", goes"
}

// holding lists conditions, with their status if that is not True.
func holding(conditions []karpenterv1.Condition) string {
	var list []string
	for _, c := range conditions {
		if c.Status == "True" {
			list = append(list, c.Type)
			continue
		}
		list = append(list, fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason))
	}
	return strings.Join(list, " ")
}
