package translate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionPlaceKept on a pod says that its status.nominatedNodeName is ours: kube-scheduler keeps the room on that
// node for the pod (B-16). Its message names the node, to tell it from a nomination of the scheduler itself, for
// preemption.
const ConditionPlaceKept corev1.PodConditionType = "joiner.sh/PlaceKept"

// KeptOn returns the node on which we keep room for the pod, "" for none.
func KeptOn(pod *corev1.Pod) string {
	node := pod.Status.NominatedNodeName
	if node == "" || !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == ConditionPlaceKept && c.Status == corev1.ConditionTrue && c.Message == keptMessage(node)
	}) {
		return ""
	}
	return node
}

func keptMessage(node string) string { return "room for this pod is kept on node " + node }

// PlaceKept returns the condition of a pod for which room is kept on a node. With node "" it says that room is no
// longer kept.
func PlaceKept(node string, now time.Time) corev1.PodCondition {
	c := corev1.PodCondition{Type: ConditionPlaceKept, Status: corev1.ConditionTrue, Reason: "Launched",
		Message: keptMessage(node), LastTransitionTime: metav1.NewTime(now)}
	if node == "" {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "PlacedElsewhere",
			"no room is kept for this pod any more"
	}
	return c
}
