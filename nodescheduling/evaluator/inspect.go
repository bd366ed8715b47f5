package evaluator

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Class says what an existing pod means to a group of nodes.
type Class string

// The classes. The policy would refuse pods of those before AuthorizedPod, or somebody should look at them.
const (
	// OnProtectedNode: the pod is on a node of the group, and its namespace is not authorized to have pods there.
	OnProtectedNode Class = "OnProtectedNode"
	// AimsAtProtectedNode: the pod is elsewhere, or waits for a node, but the next pod like it would be refused.
	AimsAtProtectedNode Class = "AimsAtProtectedNode"
	// OverrideWaiting: the pod has the annotation of the emergency override and waits for a node. The annotation will
	// be trusted when the pod is bound. Nothing shows whether an authorized user wrote it, or anyone before the policy
	// was in force.
	OverrideWaiting Class = "OverrideWaiting"
	// OverrideInUse: the pod is on a node of the group with that annotation.
	OverrideInUse Class = "OverrideInUse"
	// UnjudgedPod: the pod is on a node of the group and in the namespace of the door, which is not judged. It may be
	// the door itself.
	UnjudgedPod Class = "UnjudgedPod"
	// AuthorizedPod: the pod is on a node of the group, and its namespace is authorized.
	AuthorizedPod Class = "AuthorizedPod"
	// StaticPod: the pod is the mirror of a static pod of a node of the group.
	StaticPod Class = "StaticPod"
)

// Classes returns all classes, the weightiest first.
func Classes() []Class {
	return []Class{OnProtectedNode, AimsAtProtectedNode, OverrideWaiting, OverrideInUse, UnjudgedPod, AuthorizedPod,
		StaticPod}
}

// Fine reports whether the class needs nobody's attention.
func (c Class) Fine() bool { return c == AuthorizedPod || c == StaticPod }

// Inspection is the result for an existing pod and one group (H14).
type Inspection struct {
	Group string
	Class Class
	// Reasons say how the pod aims at the group: Toleration, Selector or both; NodeName or UnknownNode if only the
	// pod's node does.
	Reasons []Reason
	// Found says what was found, without the name of the pod. Steps says what keeps the pod off the nodes. Both begin
	// with a small letter and have no full stop. They are empty if the class is fine.
	Found, Steps string
	// Authorize says what would authorize the pod: the entry, and the list to add it to.
	Authorize string
}

// Inspect judges an existing pod as if every group had mode Enable, whatever its mode: for reports before and after
// the mode is set (H14). A pod does not say who created or bound it, so Inspect judges only the half of its namespace,
// as for workloads. Of a pod in the door's own namespace it says only whether it is on a node of a group. It omits
// groups that the pod does not concern, and changes none of its arguments. It returns an error if the authorizer does
// not answer.
func (p *Policy) Inspect(pod *corev1.Pod, cluster Cluster) ([]Inspection, error) {
	free := pod.Spec // the same pod, before it had a node
	free.NodeName = ""
	return p.inspectAll(&evaluation{cluster: cluster, subject: storedPod,
		request: &Request{Namespace: pod.Namespace, Pod: pod}}, place(&free))
}

// InspectWorkload is Inspect for the next pods of a workload. Results have class AimsAtProtectedNode. A kind without a
// pod template, and a workload that a controller wrote, concern no group.
func (p *Policy) InspectWorkload(object WorkloadObject, cluster Cluster) ([]Inspection, error) {
	w := workload(object)
	if !warnable(w) {
		return nil, nil
	}
	return p.inspectAll(&evaluation{cluster: cluster, subject: createdWorkload,
		request: &Request{Namespace: object.GetNamespace()}}, place(&w.Template.Spec))
}

// WorkloadObject is an object with a pod template.
type WorkloadObject interface {
	metav1.Object
	runtime.Object
}

// inspectAll inspects the pod for each group. asked is where the pod, or the next one, asks to be placed.
func (p *Policy) inspectAll(e *evaluation, asked placement) ([]Inspection, error) {
	if p == nil {
		return nil, nil
	}
	e.policy = p
	if p.self != "" && e.request.Namespace == p.self {
		return e.inspectUnjudged(), nil
	}
	var found []Inspection
	for i := range p.all {
		g := &p.all[i]
		inspection, concerns, err := e.inspect(g, asked)
		if err != nil {
			return nil, fmt.Errorf("asking the cluster's authorizer about namespace %s and group %s: %w",
				e.request.Namespace, g.name, err)
		}
		if concerns {
			found = append(found, inspection)
		}
	}
	return found, nil
}

// inspectUnjudged inspects a pod of the door's own namespace. Only where it is matters: nobody judges what it asks
// for.
func (e *evaluation) inspectUnjudged() []Inspection {
	pod := e.request.Pod
	if pod == nil || pod.Spec.NodeName == "" {
		return nil
	}
	e.placement = placement{node: pod.Spec.NodeName}
	var found []Inspection
	for i := range e.policy.all {
		g := &e.policy.all[i]
		there := e.assignment(g, false)
		switch {
		case len(there) == 0:
		case e.mirrors():
			found = append(found, Inspection{Group: g.name, Class: StaticPod})
		default:
			found = append(found, Inspection{Group: g.name, Class: UnjudgedPod, Reasons: []Reason{there[0].reason},
				Found: there[0].found("it is on node %q, which is of the group") +
					", and in the namespace of the webhook, which the policy does not judge",
				Steps:     "delete it, and find out who may create pods in this namespace",
				Authorize: "run it in another namespace, with an entry in " + g.listName()})
		}
	}
	return found
}

func (e *evaluation) inspect(g *group, asked placement) (Inspection, bool, error) {
	e.stale = nil
	f := Finding{ActorAuthorized: true, NamespaceAuthorized: e.occupant(g) != ""}
	e.placement = asked
	aims := e.targets(g, f.NamespaceAuthorized)
	var there []target
	var overrides, waits bool
	if pod := e.request.Pod; pod != nil {
		overrides = e.policy.override && strings.TrimSpace(pod.Annotations[OverrideAnnotation]) != ""
		waits = overrides && pod.Spec.NodeName == ""
		if pod.Spec.NodeName != "" {
			e.placement = placement{node: pod.Spec.NodeName}
			there = e.targets(g, f.NamespaceAuthorized)
		}
	}
	if len(aims)+len(there) == 0 && !waits {
		return Inspection{}, false, nil
	}
	if err := e.askAuthorizer(g, &f); err != nil {
		return Inspection{}, false, err
	}
	inspection := Inspection{Group: g.name, Class: AimsAtProtectedNode}
	switch {
	case len(there) > 0 && e.mirrors():
		inspection.Class = StaticPod
	case f.NamespaceAuthorized:
		inspection.Class = AuthorizedPod
		return inspection, len(there) > 0, nil
	case waits:
		inspection.Class = OverrideWaiting
	case overrides && len(there) > 0:
		inspection.Class = OverrideInUse
	case len(there) > 0:
		inspection.Class = OnProtectedNode
	}
	if !inspection.Class.Fine() {
		e.explain(&inspection, g, f, aims, there)
	}
	return inspection, true, nil
}

// mirrors reports whether a stored pod is the mirror of a static pod of its node: it has the annotation, and its owner
// is the node. While no policy judges, both can be forged (F7), but that is of no use: a kubelet removes mirrors of
// static pods that it does not have, and does not start them. Call it only if the node is of the group.
func (e *evaluation) mirrors() bool {
	pod := e.request.Pod
	owner := metav1.GetControllerOfNoCopy(pod)
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror || owner == nil || owner.Kind != "Node" ||
		owner.Name != pod.Spec.NodeName {
		return false
	}
	return e.assigned.node != nil && owner.UID == e.assigned.node.UID
}

// found is like describe, for a text that has not mentioned the group's nodes. named is the format for a known node.
func (t target) found(named string) string {
	switch t.reason {
	case NodeName:
		return fmt.Sprintf(named, shorten(t.node))
	case UnknownNode:
		return fmt.Sprintf("there is no node %q, so it may become one of the group", shorten(t.node))
	}
	return t.describe()
}

// explain says what was found, and what to do. What to do depends on the pod's own fields. A pod that asks for nothing
// was put there by its nodeName, or by the scheduler because nothing kept it off.
func (e *evaluation) explain(i *Inspection, g *group, f Finding, aims, there []target) {
	var found []string
	for _, t := range there {
		found = append(found, t.found("it is on node %q, which is of the group"))
	}
	for _, t := range aims {
		found = append(found, t.found("its nodeName is %q, which is of the group"))
		i.Reasons = append(i.Reasons, t.reason)
	}
	i.Steps = e.steps(g, aims)
	if len(aims) == 0 && len(there) > 0 {
		i.Reasons = []Reason{there[0].reason}
		i.Steps = e.steps(g, []target{{reason: Binding}}) + ", and set no nodeName"
		if there[0].reason == UnknownNode {
			i.Steps = "delete it, since its node does not exist"
		}
	}
	switch i.Class {
	case OverrideWaiting, OverrideInUse:
		reason := e.request.Pod.Annotations[OverrideAnnotation]
		found = append([]string{fmt.Sprintf("it has the annotation %s: %q", OverrideAnnotation, shorten(reason))},
			found...)
		i.Steps = "delete it, unless you know who created it"
		if i.Class == OverrideInUse {
			i.Steps = "delete it when the emergency is over"
		}
	}
	if e.request.Pod != nil && e.request.Pod.Spec.NodeName == "" {
		found = append(found, "it waits for a node")
	}
	for _, s := range e.stale {
		found = append(found, s.describe())
	}
	i.Found = strings.Join(found, ", and ")
	i.Authorize = fmt.Sprintf("add %s to %s", e.entries(f), g.listName())
}
