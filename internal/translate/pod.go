package translate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Provisionable reports whether a pod waits for a node that we may launch (P-01). The scheduler found no room for it
// and does not count on preemption. The pod is not gated, terminating or finished, and no daemon or static pod. A pod
// for which we keep room on a node still waits.
func Provisionable(pod *corev1.Pod) bool {
	return unbound(pod) && unschedulable(pod) && pod.Status.NominatedNodeName == KeptOn(pod)
}

// Chosen returns the node that kube-scheduler has named for a pod without a node, whatever the pod's conditions say.
// It returns "" for other pods, and where the name is ours (KeptOn). Others end there for it (Preempting), or it
// is about to be bound there: since Kubernetes 1.35 the name stands there while a volume or a device is still to come.
func Chosen(pod *corev1.Pod) string {
	if node := pod.Status.NominatedNodeName; unbound(pod) && node != KeptOn(pod) {
		return node
	}
	return ""
}

// Preempting reports whether kube-scheduler has found no room for a pod for which it has chosen a node: others may
// have to end there. Such a pod needs no node of ours, unless one of the others is stuck (StuckFrom).
func Preempting(pod *corev1.Pod) bool { return Chosen(pod) != "" && unschedulable(pod) }

// Untried reports whether kube-scheduler has not tried the pod yet and may find no room for it.
func Untried(pod *corev1.Pod) bool {
	return unbound(pod) && pod.Status.NominatedNodeName == KeptOn(pod) &&
		!slices.ContainsFunc(pod.Status.Conditions,
			func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
}

func unbound(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 &&
		!Finished(pod) && !ownedByNode(pod) && daemonOf(pod) == ""
}

// Reschedulable reports whether a bound pod will need another node when its own is removed (P-01). A terminating pod
// does not: its controller has created the successor already. Only a StatefulSet waits with that.
func Reschedulable(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" || Finished(pod) || ownedByNode(pod) || daemonOf(pod) != "" {
		return false
	}
	return pod.DeletionTimestamp == nil || ownedBy(pod, "StatefulSet", "apps") != ""
}

// StuckAfter is how long after its grace period a pod that is ending counts as stuck: its kubelet does not answer, or
// something else holds it, and waiting does not help.
const StuckAfter = time.Minute

// StuckFrom returns from when on a pod that is ending counts as stuck. No node stays for such a pod. It returns false
// for a pod that is not ending, and for one of a StatefulSet: its successor comes only when it is gone (P-01).
func StuckFrom(pod *corev1.Pod) (time.Time, bool) {
	if pod.DeletionTimestamp == nil || ownedBy(pod, "StatefulSet", "apps") != "" {
		return time.Time{}, false
	}
	return pod.DeletionTimestamp.Add(StuckAfter), true // the time of deletion includes the grace period
}

// Placed reports whether a pod has or had a node and is neither a daemon nor static.
func Placed(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && !ownedByNode(pod) && daemonOf(pod) == ""
}

// Finished reports whether the pod has ended and no longer uses its node.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func unschedulable(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

// ownedByNode recognises static pods, which the kubelet runs without the scheduler.
func ownedByNode(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || ownedBy(pod, "Node", "") != ""
}

func daemonOf(pod *corev1.Pod) string {
	if name := ownedBy(pod, "DaemonSet", "apps"); name != "" {
		return pod.Namespace + "/" + name
	}
	return ""
}

func ownedBy(pod *corev1.Pod, kind, group string) string {
	for _, owner := range pod.OwnerReferences {
		ownerGroup, _, found := strings.Cut(owner.APIVersion, "/")
		if !found {
			ownerGroup = ""
		}
		if owner.Kind == kind && ownerGroup == group {
			return owner.Name
		}
	}
	return ""
}

// ProtectedUntil returns the Unix second until which karpenter.sh/do-not-disrupt keeps voluntary disruption away from
// the pod's node (V-15): 0 when it does not, cluster.Never when there is no end. A duration counts from the pod's
// start; before the start the result is cluster.Never. Any other value protects nothing and is an error.
func ProtectedUntil(pod *corev1.Pod) (int64, error) {
	value, given := pod.Annotations[karpenterv1.DoNotDisruptAnnotationKey]
	switch {
	case !given, value == "false":
		return 0, nil
	case value == "true":
		return cluster.Never, nil
	}
	length, err := time.ParseDuration(value)
	if err != nil || length <= 0 {
		return 0, fmt.Errorf("annotation %s is %q: want \"true\" or a duration above 0 such as \"30m\"",
			karpenterv1.DoNotDisruptAnnotationKey, value)
	}
	if pod.Status.StartTime == nil {
		return cluster.Never, nil
	}
	return pod.Status.StartTime.Add(length).Unix(), nil
}

// Pod converts a pod that is not finished. Its Shape is not interned yet; the caller sets Promised. If an error
// affects scheduling, no node satisfies the shape.
func Pod(space *resources.Space, pod *corev1.Pod, now time.Time) (*cluster.Pod, error) {
	shape, shapeErr := podShape(space, pod)
	until, protectErr := ProtectedUntil(pod)
	result := &cluster.Pod{
		UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Shape: shape,
		Created: unix(pod.CreationTimestamp), Node: pod.Spec.NodeName, Kept: KeptOn(pod), Daemon: daemonOf(pod),
		DoNotDisrupt: until > now.Unix(), Terminating: pod.DeletionTimestamp != nil,
		Returns: pod.DeletionTimestamp != nil && Reschedulable(pod),
	}
	if pod.Spec.Priority != nil {
		result.Priority = *pod.Spec.Priority
	}
	result.DeletionCost = deletionCost(pod)
	stuckFrom, ending := StuckFrom(pod)
	result.Fixed = result.Daemon != "" || ownedByNode(pod) || Finished(pod) || ending && !now.Before(stuckFrom)
	err := errors.Join(shapeErr, protectErr)
	if err != nil {
		err = fmt.Errorf("pod %s: %w", result.Ref(), err)
	}
	return result, err
}

// deletionCost reads karpenter.sh/disruption-cost or, without it, controller.kubernetes.io/pod-deletion-cost (K-50). A
// value that is not a number counts as not given, as in Kubernetes.
func deletionCost(pod *corev1.Pod) int32 {
	for _, key := range []string{karpenterv1.DisruptionCostAnnotationKey, corev1.PodDeletionCost} {
		if cost, err := strconv.ParseInt(pod.Annotations[key], 10, 32); err == nil {
			return int32(cost)
		}
	}
	return 0
}

// CostFault returns an error if a pod's karpenter.sh/disruption-cost is invalid and therefore ignored.
func CostFault(pod *corev1.Pod) error {
	text, given := pod.Annotations[karpenterv1.DisruptionCostAnnotationKey]
	if _, err := strconv.ParseInt(text, 10, 32); !given || err == nil {
		return nil
	}
	return fmt.Errorf(
		"annotation %s is %q: want a whole number from -2147483648 to 2147483647; it counts as not given",
		karpenterv1.DisruptionCostAnnotationKey, text)
}

func podShape(space *resources.Space, pod *corev1.Pod) (*cluster.Shape, error) {
	choices, choiceErr := alternatives(&pod.Spec)
	spread, spreadErr := spreads(pod)
	with, apart, affinityErr := affinities(pod)
	soft, wishes := preferences(pod)
	shape := &cluster.Shape{
		Namespace: pod.Namespace, Labels: maps.Clone(pod.Labels), Requests: podRequests(space, pod),
		Alternatives: choices, Tolerations: tolerations(pod.Spec.Tolerations), HostPorts: hostPorts(&pod.Spec),
		Spread: spread, Affinity: with, AntiAffinity: apart, Wishes: wishes, SoftSpread: soft,
	}
	fatal := errors.Join(badRequests(&pod.Spec), spreadErr, affinityErr)
	if contradictory(choices) && len(choices) > 0 {
		fatal = errors.Join(choiceErr, fatal)
	}
	if fatal != nil {
		shape.Alternatives = []cluster.Alternative{impossible()}
		shape.BlockedBy = cause.PodMalformed
		shape.Blocked = "its specification cannot be understood: " + strings.ReplaceAll(fatal.Error(), "\n", "; ")
	}
	addDevices(shape, &pod.Spec)
	return shape, errors.Join(badRequests(&pod.Spec), choiceErr, spreadErr, affinityErr, badTolerations(&pod.Spec))
}

// Ignored returns an error that names the parts of a pod which planning ignores (U-42): a toleration with an unknown
// operator, or one of several node affinity terms that cannot be understood. A fault that keeps the whole pod from
// being planned is reported elsewhere, as the reason why the pod waits.
func Ignored(pod *corev1.Pod) error {
	choices, err := alternatives(&pod.Spec)
	if contradictory(choices) {
		err = nil
	}
	return errors.Join(err, badTolerations(&pod.Spec))
}

// badRequests names the requests that an API server refuses: negative amounts.
func badRequests(spec *corev1.PodSpec) error {
	var errs []error
	// Almost no pod has any, and each event of a pod comes through here. So names are sorted and joined only for bad
	// ones (B-19).
	check := func(list corev1.ResourceList, field ...string) {
		var bad []string
		for name, quantity := range list {
			if quantity.Sign() < 0 {
				bad = append(bad, fmt.Sprintf("%s.%s is %s: it must not be negative", strings.Join(field, ""), name,
					quantity.String()))
			}
		}
		slices.Sort(bad)
		for _, text := range bad {
			errs = append(errs, errors.New(text))
		}
	}
	for i := range spec.InitContainers {
		check(spec.InitContainers[i].Resources.Requests, "spec.initContainers[", spec.InitContainers[i].Name,
			"].resources.requests")
	}
	for i := range spec.Containers {
		check(spec.Containers[i].Resources.Requests, "spec.containers[", spec.Containers[i].Name,
			"].resources.requests")
	}
	if spec.Resources != nil {
		check(spec.Resources.Requests, "spec.resources.requests")
	}
	check(spec.Overhead, "spec.overhead")
	return errors.Join(errs...)
}

// badTolerations names tolerations with an unknown operator: they tolerate nothing.
func badTolerations(spec *corev1.PodSpec) error {
	var errs []error
	for i, t := range spec.Tolerations {
		switch t.Operator {
		case "", corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt:
		default:
			errs = append(errs, fmt.Errorf("spec.tolerations[%d].operator is %q: want Equal, Exists, Lt or Gt", i,
				t.Operator))
		}
	}
	return errors.Join(errs...)
}

// alternatives returns the ways to satisfy node selector and required node affinity. A term that cannot be understood
// is left out, as long as another one remains.
func alternatives(spec *corev1.PodSpec) ([]cluster.Alternative, error) {
	var fixed []requirement.Requirement
	for label, value := range spec.NodeSelector {
		fixed = append(fixed, requirement.OneOf(Key(label), value))
	}
	base := requirement.NewSet(fixed...)
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil ||
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		if base.Len() == 0 {
			return nil, nil
		}
		return []cluster.Alternative{{Labels: base, Names: requirement.Any(metav1.ObjectNameField)}}, nil
	}
	var list []cluster.Alternative
	var errs []error
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		alternative, err := nodeTerm(term)
		if err != nil {
			errs = append(errs, fmt.Errorf("node affinity: %w", err))
			continue
		}
		alternative.Labels = alternative.Labels.And(base)
		list = append(list, alternative)
	}
	if len(list) == 0 {
		list = []cluster.Alternative{impossible()}
	}
	return list, errors.Join(errs...)
}
