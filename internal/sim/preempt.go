package sim

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/sim/ties"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file is the preemption of kube-scheduler: a pod that fits nowhere takes the place of pods with a lower
// priority. They are deleted, and until they have ended the pod is nominated to their node.

func priorityOf(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// byPriority returns all pods in the order in which kube-scheduler takes them; of equal ones, the server's.
func (c *cluster) byPriority() (pods []*corev1.Pod) {
	c.world.server.All(&corev1.Pod{}, func(o client.Object) { pods = append(pods, o.(*corev1.Pod)) })
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(priorityOf(b), priorityOf(a)) })
	return pods
}

// preempt makes place for a pod that fits on no node, if it has a priority. While pods that it has preempted end, it
// waits, and pods with lower priorities do not get the place.
func (c *cluster) preempt(pod *corev1.Pod, rooms []*room, tied *ties.Cluster) {
	own := priorityOf(pod)
	if own <= 0 {
		return
	}
	lower := map[string][]*corev1.Pod{} // by node
	for _, other := range c.byPriority() {
		if other.Spec.NodeName != "" && priorityOf(other) < own && !isDaemon(other) && !translate.Finished(other) {
			lower[other.Spec.NodeName] = append(lower[other.Spec.NodeName], other)
		}
	}
	nominated := pod.Status.NominatedNodeName
	isEnding := func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }
	if slices.ContainsFunc(lower[nominated], isEnding) {
		for _, r := range rooms {
			if r.node.Name == nominated {
				r.take(pod)
			}
		}
		return
	}
	var best *room
	var victims []*corev1.Pod
	for _, r := range rooms {
		if r.node.Spec.Unschedulable || !r.admits(pod) || !r.attaches(pod) || !c.reaches(pod, r.node) ||
			tied.Refusal(pod, r.node) != "" || isOther(r.node) {
			continue
		}
		found := victimsOn(r, pod, lower[r.node.Name])
		if len(found) > 0 && (best == nil || len(found) < len(victims)) {
			best, victims = r, found
		}
	}
	name := ""
	if best != nil {
		name = best.node.Name
	}
	if name == "" && (nominated == "" || nominated == translate.KeptOn(pod)) {
		return
	}
	change(c.world, &corev1.Pod{}, client.ObjectKeyFromObject(pod), apiserver.Status, func(p *corev1.Pod) {
		p.Status.NominatedNodeName = name
	})
	if best == nil {
		return
	}
	best.take(pod)
	c.world.tellIf("pod %s preempts %d pods on %s", pod.Name, len(victims), name)
	for _, victim := range victims {
		c.must(c.world.server.Delete(victim, client.ObjectKeyFromObject(victim), apiserver.DeleteOptions{}))
	}
}

// victimsOn returns the pods of lower priority, the lowest first, that have to leave a node so that the pod has room;
// none where that is not enough, or where pods end that will leave enough room.
func victimsOn(r *room, pod *corev1.Pod, lower []*corev1.Pod) (victims []*corev1.Pod) {
	cpu, mem := asks(pod)
	left := room{cpu: r.cpu, mem: r.mem, pods: r.pods}
	for _, other := range slices.Backward(lower) {
		if other.DeletionTimestamp != nil {
			return nil
		}
		if left.cpu >= cpu && left.mem >= mem && left.pods >= 1 {
			break
		}
		freed, freedMemory := asks(other)
		left.cpu, left.mem, left.pods = left.cpu+freed, left.mem+freedMemory, left.pods+1
		victims = append(victims, other)
	}
	if left.cpu < cpu || left.mem < mem || left.pods < 1 {
		return nil
	}
	return victims
}
