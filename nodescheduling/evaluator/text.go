package evaluator

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	groupsv1alpha1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/scheduling/v1alpha1"
)

// text returns what a user reads (N64): a code that programs can find, which pod aims at which group and how, which
// half is not authorized, and what to do. Names that users choose are quoted and bounded.
func (e *evaluation) text(g *group, f Finding, targets []target, asking error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "NodeSchedulingPolicy [%s/%s]: ", g.name, f.Reason)
	switch f.Reason {
	case Malformed:
		fmt.Fprintf(&b, "the request for %s has no object to judge", e.request.resource())
		if e.request.Fault != "" {
			fmt.Fprintf(&b, " (%q)", shorten(e.request.Fault))
		}
		b.WriteString(". This is a fault of whoever sent it to the policy.")
		return b.String()
	case NodesNotReady:
		e.writeNotReady(&b, g)
		return b.String()
	case OverrideMisused:
		fmt.Fprintf(&b, "%s may not have the annotation %s: %s%s. Remove the annotation.", e.request.pod(),
			OverrideAnnotation, targets[0].why, unanswered(asking))
		if g.mode != configv1.Enable {
			fmt.Fprintf(&b, " That holds in mode %s too, since the annotation would be believed once the mode is %s.",
				g.mode, configv1.Enable)
		}
		return b.String()
	case OverrideTampered:
		e.writeTampered(&b, targets[0], asking)
		return b.String()
	}
	b.WriteString(capital(e.shortcut(f), e.request.pod()))
	b.WriteString(map[Decision]string{
		Deny: " is not allowed on", InformOnly: " would not be allowed, if the policy were enforced, on",
		Warn: " would not be allowed on",
	}[f.Decision])
	fmt.Fprintf(&b, " the nodes of group %q: ", g.name)
	for i, t := range targets {
		if i > 0 {
			b.WriteString(", and ")
		}
		b.WriteString(t.describe())
	}
	fmt.Fprintf(&b, ". %s%s%s. %s", e.missing(f), e.replaced(), unanswered(asking), e.remedy(g, targets))
	fmt.Fprintf(&b, " If it belongs there, ask a cluster administrator to add %s to %s.", e.entries(f), g.listName())
	return b.String()
}

// writeNotReady says what the request waited for in vain. It differs what to look at: the right to list nodes, or the
// live source.
func (e *evaluation) writeNotReady(b *strings.Builder, g *group) {
	missing, open := "the nodes of the cluster are not known yet", "aims at"
	if e.cluster.Unread != nil {
		switch unread := e.cluster.Unread(); {
		case unread.Nodes && unread.LiveSource:
			missing = "neither the nodes of the cluster nor the live source of the policy are known yet"
		case unread.LiveSource:
			missing, open = "the live source of the policy is not read yet", "may be on"
		}
	}
	fmt.Fprintf(b, "not yet ready: %s, so whether %s %s the nodes of group %q cannot be said. Try again in a moment.",
		missing, e.request.pod(), open, g.name)
}

// shortcut tells an administrator what to do when their own pod is refused because of its namespace, as with oc debug
// and oc adm must-gather. It comes first: whoever waits for a tool reads one line.
func (e *evaluation) shortcut(f Finding) string {
	if f.Decision != Deny || e.subject != createdPod || metav1.GetControllerOfNoCopy(e.request.Pod) != nil ||
		!e.personEverywhere() {
		return ""
	}
	if e.policy.override {
		return "set the annotation " + OverrideAnnotation + " to the reason, or use an authorized namespace. "
	}
	return "use an authorized namespace (oc: --to-namespace, --run-namespace), " +
		"or have emergencyOverride set to Automatic. "
}

// capital appends text to sentence, capitalized, or returns text unchanged if sentence is empty.
func capital(sentence, text string) string {
	if sentence == "" {
		return text
	}
	return sentence + strings.ToUpper(text[:1]) + text[1:]
}

// writeTampered says why a pod with the annotation of the override may not be changed or entered, and what to do.
func (e *evaluation) writeTampered(b *strings.Builder, t target, asking error) {
	doing := "changed"
	if e.subject == connection {
		doing = "entered"
	}
	if t.err != nil {
		fmt.Fprintf(b,
			"%s may not be %s by user %q: whether it has the annotation %s could not be found out (%q). Try again.",
			e.request.pod(), doing, shorten(e.request.User.Name), OverrideAnnotation, shorten(t.err.Error()))
		return
	}
	fmt.Fprintf(b,
		"%s may not be %s by user %q: it has the annotation %s, so whoever wrote that vouches for what runs in it. "+
			"Only who may set the annotation may do this%s. Ask one of them, or delete the pod and create one without the annotation.",
		e.request.pod(), doing, shorten(e.request.User.Name), OverrideAnnotation, unanswered(asking))
}

// listName names the list that administrators add entries to. The live sources know only the group ControlPlane (N11).
func (g *group) listName() string {
	if g.name == string(configv1.ControlPlane) {
		if g.live == FromGroups {
			return fmt.Sprintf("authorizedUsers of the %s %q (%s)", groupsv1alpha1.Kind,
				groupsv1alpha1.NameOf(configv1.ControlPlane), groupsv1alpha1.GroupVersion())
		}
		return fmt.Sprintf(
			"authorizedUsers of the group %s in spec.schedulingGroups of the Scheduler %q (config.openshift.io/v1)",
			g.name, configv1.SchedulerName)
	}
	return fmt.Sprintf("authorizedUsers of the group %s in the configuration of the policy", g.name)
}

// overrideText tells the actor, and readers of events, that the override was noticed.
func (e *evaluation) overrideText(f Finding) string {
	return fmt.Sprintf(
		"NodeSchedulingPolicy [%s/%s]: %s is allowed on the nodes of group %q although namespace %q is not "+
			"authorized, for the reason in its annotation %s: %q.",
		f.Group, f.Reason, e.request.pod(), f.Group, e.request.Namespace, OverrideAnnotation, f.Override)
}

// replaced says which entries do not hold because their namespace has another UID now.
func (e *evaluation) replaced() string {
	texts := make([]string, len(e.stale))
	for i, s := range e.stale {
		texts[i] = s.describe()
	}
	if len(texts) == 0 {
		return ""
	}
	return ": " + strings.Join(texts, ", and ")
}

// describe says what is wrong with the entry.
func (s stale) describe() string {
	return fmt.Sprintf(
		"the entry %q is for the namespace %q with the UID %s, and the one of that name has the UID %s now",
		shorten(s.text), s.home, s.uid, s.have)
}

func unanswered(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf(" (the cluster's authorizer could not be asked: %q)", shorten(err.Error()))
}

// pod names the pod that is placed.
func (r *Request) pod() string {
	if w := r.Workload; w != nil {
		return fmt.Sprintf("a pod of %s %q in namespace %q", w.Kind, shorten(r.Name), shorten(r.Namespace))
	}
	name := r.podName()
	if name == "" && r.Pod != nil && r.Pod.GenerateName != "" {
		name = r.Pod.GenerateName + "…"
	}
	return fmt.Sprintf("pod %q in namespace %q", shorten(name), shorten(r.Namespace))
}

// podName returns the name of the pod that is placed, "" if it has none yet.
func (r *Request) podName() string {
	switch {
	case r.Name != "":
		return r.Name
	case r.Pod != nil:
		return r.Pod.Name
	case r.Binding != nil:
		return r.Binding.Name // on the legacy path it may be only there
	}
	return ""
}

// describe says how a pod aims at a group, to follow a colon.
func (t target) describe() string {
	switch t.reason {
	case NodeName:
		return fmt.Sprintf("its nodeName is %q, one of them", shorten(t.node))
	case Binding:
		return fmt.Sprintf("it is bound to %q, one of them", shorten(t.node))
	case UnknownNode:
		return fmt.Sprintf("there is no node %q, so it may become one of them", shorten(t.node))
	case NodeUnreadable:
		return fmt.Sprintf("whether node %q is one of them could not be found out (%q)", shorten(t.node),
			shorten(t.err.Error()))
	case Toleration:
		return fmt.Sprintf("it tolerates the taints of node %q by its toleration of %s", shorten(t.node),
			list(t.tolerations))
	}
	return fmt.Sprintf("its nodeSelector and required node affinity leave it no other nodes, for example %q",
		shorten(t.node))
}

// list formats tolerations as kubectl formats taints.
func list(tolerations []corev1.Toleration) string {
	texts := make([]string, len(tolerations))
	for i, t := range tolerations {
		if t.Key == "" {
			texts[i] = "everything"
			if t.Effect != "" {
				texts[i] += " with effect " + string(t.Effect)
			}
			continue
		}
		texts[i] = t.Key
		switch t.Operator {
		case corev1.TolerationOpExists:
		case tolerationLt, tolerationGt:
			texts[i] += " " + string(t.Operator) + " " + t.Value
		default:
			if t.Value != "" {
				texts[i] += "=" + t.Value
			}
		}
		if t.Effect != "" {
			texts[i] += ":" + string(t.Effect)
		}
	}
	return shorten(strings.Join(texts, ", "))
}

// missing says which half is not authorized.
func (e *evaluation) missing(f Finding) string {
	var halves []string
	if !f.ActorAuthorized {
		halves = append(halves, fmt.Sprintf("user %q is not authorized to place pods there",
			shorten(e.request.User.Name)))
	}
	if !f.NamespaceAuthorized {
		halves = append(halves, fmt.Sprintf("namespace %q is not authorized to have pods there",
			shorten(e.request.Namespace)))
	}
	text := strings.Join(halves, ", and ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// remedy says how the pod stays off the nodes, and what to edit for that.
func (e *evaluation) remedy(g *group, targets []target) string {
	text := e.steps(g, targets)
	return strings.ToUpper(text[:1]) + text[1:] + e.where() + "."
}

// steps says how the pod stays off the nodes.
func (e *evaluation) steps(g *group, targets []target) string {
	avoid := "by a required node affinity"
	if g.labelKey != "" {
		avoid = fmt.Sprintf("by a required node affinity %s DoesNotExist", g.labelKey)
	}
	var steps []string
	for _, t := range targets {
		switch t.reason {
		case NodeUnreadable:
			steps = append(steps, "try again")
		case NodeName, UnknownNode:
			if e.subject == binding {
				steps = append(steps, "choose another node")
			} else {
				steps = append(steps, "remove nodeName and leave the choice to the scheduler")
			}
		case Binding:
			steps = append(steps, "keep the pod off these nodes "+avoid)
		case Selector:
			steps = append(steps, "change nodeSelector and required node affinity so that other nodes fit")
		case Toleration:
			if wildcard(t.tolerations) {
				steps = append(steps, "keep the toleration and keep the pod off these nodes "+avoid)
			} else {
				steps = append(steps, "remove the toleration")
			}
		}
	}
	return strings.Join(steps, ", and ")
}

// wildcard reports whether a toleration matches every key. Agents that run on every node have such tolerations.
func wildcard(tolerations []corev1.Toleration) bool {
	for _, t := range tolerations {
		if t.Key == "" {
			return true
		}
	}
	return false
}

// where says what to edit instead of the pod, "" if it is the pod.
func (e *evaluation) where() string {
	if e.request.Pod == nil {
		return ""
	}
	if owner := metav1.GetControllerOfNoCopy(e.request.Pod); owner != nil {
		return fmt.Sprintf(", in the pod template of %s %q", shorten(owner.Kind), shorten(owner.Name))
	}
	return ""
}

// entries returns the entries that would authorize what is missing.
func (e *evaluation) entries(f Finding) string {
	var entries []string
	namespace, _, _ := serviceAccount(e.request.User.Name)
	if !f.ActorAuthorized {
		entries = append(entries, fmt.Sprintf("%q", shorten(spell(e.request.User.Name)+e.pinFor(namespace))))
	}
	if !f.NamespaceAuthorized && (f.ActorAuthorized || namespace != e.request.Namespace) {
		entries = append(entries,
			fmt.Sprintf("%q", shorten(e.request.Namespace)+"/default"+e.pinFor(e.request.Namespace)))
	}
	return strings.Join(entries, " and ")
}

// pinFor returns what an entry for a namespace must end in: its UID, if the policy requires it or an entry has a stale
// one.
func (e *evaluation) pinFor(namespace string) string {
	if namespace == "" || e.cluster.Namespace == nil || len(e.stale) == 0 && (!e.policy.pins || reserved(namespace)) {
		return ""
	}
	if uid, exists, err := e.namespace(namespace); err == nil && exists {
		return "@" + uid
	}
	return ""
}
