package nodescheduling

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OverrideAnnotation on a pod states why it is placed although its namespace is not authorized (H7). It means something
// only while the configuration enables it, and only if it was there when the pod was created, by somebody who may.
const OverrideAnnotation = "scheduling.openshift.io/emergency-override"

// maxOverride is the longest reason, in bytes: it goes to the audit log.
const maxOverride = 512

// override is what is known of the override of a request.
type override struct {
	asked  bool
	reason string
}

// carriesOverride says whether a request brings the annotation onto a pod. A pod that has it is trusted when it is bound,
// so nothing may bring it there but a create by somebody who may.
func (r *Request) carriesOverride(s subject) bool {
	switch s {
	case createdPod:
		_, carries := r.Pod.Annotations[OverrideAnnotation]
		return carries
	case updatedPod, podStatus:
		value, carries := r.Pod.Annotations[OverrideAnnotation]
		old, carried := r.OldPod.Annotations[OverrideAnnotation]
		return carries && (!carried || old != value)
	case binding:
		_, carries := r.Binding.Annotations[OverrideAnnotation] // it would be copied to the pod (F8)
		return carries
	}
	return false
}

// misuse says whether the annotation that a request brings may not be there, as far as a group is concerned.
//
// The mode of the group does not matter, also where it is Disable: a pod that waits keeps the annotation, and nothing in it would
// show, once the mode is Enable, who wrote it. Nobody else has a use for the annotation.
//
// Service accounts need the verb override, and a pod of a controller never may: a controller that is on the lists would
// create it for whoever wrote the template.
func (e *evaluation) misuse(g *group) (Finding, bool) {
	f := Finding{Group: g.name, Mode: g.mode, ActorEntry: g.actor(e.request.User), NamespaceEntry: g.namespaces[e.request.Namespace]}
	f.ActorAuthorized, f.NamespaceAuthorized = f.ActorEntry != "", f.NamespaceEntry != ""
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
	}
	if g.person(e.request.User) == "" {
		allowed, err := false, error(nil)
		if e.policy.rbac && e.cluster.Allowed != nil {
			allowed, err = e.cluster.Allowed(Access{User: e.request.User, Verb: Override, Group: g.name})
		}
		if !allowed || err != nil {
			return refuse("only who the lists authorize by an entry for a user or a group may set it, or who has the verb override", err)
		}
	}
	e.override = override{asked: true, reason: reason}
	return Finding{}, false
}

// overrideReason is what the pod states, "" if it states nothing that counts.
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
		// A pod that cannot be read has no override: the binding is denied, and tried again.
		if pod, err := e.cluster.LivePod(e.request.Namespace, e.request.podName()); err == nil && pod != nil {
			e.override.reason = pod.Annotations[OverrideAnnotation]
		}
	}
	return e.override.reason
}
