package evaluator

import (
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OverrideAnnotation on a pod states why the pod may be placed although its namespace is not authorized (H7). It
// counts only while the configuration enables it. Only an authorized user may set it, and only when creating the pod.
const OverrideAnnotation = "scheduling.openshift.io/emergency-override"

// maxOverride is the length limit of the reason, in bytes: it goes to the audit log.
const maxOverride = 512

// override is what is known about the override of a request.
type override struct {
	asked  bool
	reason string
}

// bringsOverride reports whether a request adds or changes the annotation of a pod, bound or not. A pod with it is
// trusted when it is bound. So only an authorized user may add it, when creating the pod.
func bringsOverride(p *Policy, r *Request, s subject) bool {
	if !p.override {
		return false
	}
	switch s {
	case createdPod:
		_, carries := r.Pod.Annotations[OverrideAnnotation]
		return carries
	case updatedPod, podStatus, podContents:
		value, carries := r.Pod.Annotations[OverrideAnnotation]
		old, carried := r.OldPod.Annotations[OverrideAnnotation]
		return carries && (!carried || old != value)
	case binding:
		_, carries := r.Binding.Annotations[OverrideAnnotation] // it would be copied to the pod (F8)
		return carries
	}
	return false
}

// touchesOverride reports whether a request changes what runs in a pod with the annotation, or removes the annotation,
// after which nobody would know. Everything else may change: labels, finalizers, the status.
func touchesOverride(p *Policy, r *Request, s subject) bool {
	if !p.override || s != updatedPod && s != podStatus && s != podContents {
		return false
	}
	if _, carried := r.OldPod.Annotations[OverrideAnnotation]; !carried {
		return false
	}
	_, carries := r.Pod.Annotations[OverrideAnnotation]
	return !carries || s != podStatus && !apiequality.Semantic.DeepEqual(r.OldPod.Spec, r.Pod.Spec)
}

// entersOverride reports whether the request enters a pod that has the annotation, or that cannot be read.
func (e *evaluation) entersOverride() bool {
	if e.cluster.LivePod == nil {
		return false
	}
	e.entered, e.unread = e.cluster.LivePod(e.request.Namespace, e.request.Name)
	if e.unread != nil {
		return true
	}
	if e.entered == nil {
		return false // the API server reports that itself
	}
	_, carries := e.entered.Annotations[OverrideAnnotation]
	return carries
}

// tampering returns a finding if the sender may not change or enter a pod with the annotation. Such a pod runs where
// its namespace is not authorized, because somebody vouched for it as it was. Everyone who may set the annotation may
// change it, and so may the kubelet of the pod's node. As with misuse, the mode does not matter.
func (e *evaluation) tampering(g *group) (Finding, bool) {
	f := e.halves(g)
	allowed, asking := e.mayOverride(g)
	if allowed || e.isKubeletOfPod() {
		return Finding{}, false
	}
	return e.refused(g, f, []target{{reason: OverrideTampered, err: e.unread}}, asking), true
}

// isKubeletOfPod reports whether the sender is the kubelet of the pod's node.
func (e *evaluation) isKubeletOfPod() bool {
	pod := e.request.OldPod
	if e.subject == connection {
		pod = e.entered
	}
	return pod != nil && pod.Spec.NodeName != "" && e.request.User.Name == "system:node:"+pod.Spec.NodeName &&
		slices.Contains(e.request.User.Groups, "system:nodes")
}

// mayOverride reports whether a group lets the sender set the annotation: by an entry for a person, or by the verb
// override. The error says that the authorizer could not be asked.
func (e *evaluation) mayOverride(g *group) (bool, error) {
	if e.person(g) != "" {
		return true, nil
	}
	if !e.policy.rbac || e.cluster.Allowed == nil {
		return false, nil
	}
	allowed, err := e.cluster.Allowed(Access{User: e.request.User, Verb: Override, Group: g.name})
	return allowed && err == nil, err
}

// misuse returns a finding if the group does not allow the annotation that a request brings.
//
// The mode of the group does not matter, not even Disable. A waiting pod keeps the annotation, and once the mode is
// Enable, nothing would show who wrote it. The annotation has no other use.
//
// Service accounts need the verb override. A controller's pod may never have the annotation: a controller on the lists
// would create it for whoever wrote the template.
func (e *evaluation) misuse(g *group) (Finding, bool) {
	f := e.halves(g)
	refuse := func(why string, err error) (Finding, bool) {
		return e.refused(g, f, []target{{reason: OverrideMisused, why: why}}, err), true
	}
	if e.subject != createdPod {
		return refuse("it can be set only when the pod is created", nil)
	}
	reason := e.request.Pod.Annotations[OverrideAnnotation]
	switch {
	case strings.TrimSpace(reason) == "":
		return refuse("its value must be the reason for the override", nil)
	case len(reason) > maxOverride:
		return refuse("its value, the reason for the override, is too long", nil)
	case metav1.GetControllerOfNoCopy(e.request.Pod) != nil:
		return refuse("a pod that a controller makes cannot have it", nil)
	case strings.HasPrefix(reason, automaticPrefix) && reason != automaticReason(e.request.User.Name):
		return refuse(fmt.Sprintf("a value that begins with %q must go on with the name of whoever creates the pod",
			automaticPrefix), nil)
	}
	if allowed, err := e.mayOverride(g); !allowed {
		return refuse(
			"only who the lists authorize by an entry for a user or a group may set it, or who has the verb override",
			err)
	}
	e.override = override{asked: true, reason: reason}
	return Finding{}, false
}

// overrideReason returns the reason that the pod states, "" if there is none that counts.
func (e *evaluation) overrideReason() string {
	if e.override.asked {
		return e.override.reason
	}
	e.override.asked = true
	switch e.subject {
	case updatedPod:
		e.override.reason = e.request.OldPod.Annotations[OverrideAnnotation]
	case binding:
		if e.cluster.LivePod == nil {
			break
		}
		// A pod that cannot be read has no override: the binding is denied, and the scheduler tries again.
		if pod, err := e.cluster.LivePod(e.request.Namespace, e.request.podName()); err == nil && pod != nil {
			e.override.reason = pod.Annotations[OverrideAnnotation]
		}
	}
	return e.override.reason
}
