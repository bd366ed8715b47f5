package evaluator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
)

// Evaluate judges a request. It changes none of its arguments. Most requests are cheap: for a pod without tolerations,
// selectors and node name, it looks at no node (N68).
func (p *Policy) Evaluate(request *Request, cluster Cluster) Verdict {
	if p == nil || !p.watches() {
		return Verdict{Allowed: true}
	}
	subject := request.subject()
	for i := range exits {
		if subject != nothing && exits[i].needsObject && request.lacksObject(subject) {
			return p.malformed(request)
		}
		if exits[i].leaves(p, request, subject) {
			return Verdict{Allowed: true}
		}
	}
	return p.evaluate(request, cluster, subject)
}

// evaluate is Evaluate for a request that no exit let pass. It is a separate function so that the others allocate no
// memory.
func (p *Policy) evaluate(request *Request, cluster Cluster, subject subject) Verdict {
	e := evaluation{policy: p, request: request, cluster: cluster, subject: subject,
		placement: request.placement(subject)}
	overrides, frozen := bringsOverride(p, request, subject), touchesOverride(p, request, subject)
	if subject == connection {
		frozen = e.entersOverride()
	}
	var findings []Finding
	for i := range p.all {
		g := &p.all[i]
		finding, found := Finding{}, false
		switch {
		case overrides:
			finding, found = e.misuse(g)
		case frozen:
			finding, found = e.tampering(g)
		}
		if !found && g.mode != configv1.Disable {
			finding, found = e.judge(g)
		}
		if found {
			findings = append(findings, finding)
		}
	}
	return e.verdict(findings)
}

// malformed makes the same finding for every group: without the object, nothing distinguishes them.
func (p *Policy) malformed(request *Request) Verdict {
	e := evaluation{request: request}
	var findings []Finding
	for i := range p.groups {
		g := &p.groups[i]
		findings = append(findings, e.refused(g, Finding{Group: g.name, Mode: g.mode}, []target{{reason: Malformed}},
			nil))
	}
	return e.verdict(findings)
}

// subject is what a request is about, as far as rules differ.
type subject int

const (
	nothing subject = iota
	createdPod
	updatedPod
	podStatus   // only the annotation of the override matters (N62)
	podContents // what runs in a pod: ephemeral containers, resize; matters only with the override
	connection  // who enters a pod: exec, attach, portforward; matters only with the override
	binding
	createdWorkload
	updatedWorkload
	storedPod // no request, but a pod that exists (H14)
)

// subject says which rules apply. Eviction and deletion are not judged (N62, F6).
func (r *Request) subject() subject {
	create, update := r.Operation == Create, r.Operation == Update
	switch {
	case r.Operation == Connect:
		if r.Group == "" && r.Resource == "pods" && (r.Subresource == "exec" || r.Subresource == "attach" ||
			r.Subresource == "portforward") {
			return connection
		}
		return nothing
	case !create && !update:
		return nothing
	case r.Group == "" && r.Resource == "pods":
		switch {
		case r.Subresource == "" && create:
			return createdPod
		case r.Subresource == "" && update:
			return updatedPod
		case r.Subresource == "status" && update:
			return podStatus
		case (r.Subresource == "ephemeralcontainers" || r.Subresource == "resize") && update:
			return podContents
		case r.Subresource == "binding" && create:
			return binding
		}
		return nothing
	case r.Group == "" && r.Resource == "bindings" && r.Subresource == "" && create: // the legacy path (F1)
		return binding
	case !r.aboutWorkload():
		return nothing
	case create:
		return createdWorkload
	}
	return updatedWorkload
}

func (r *Request) aboutWorkload() bool {
	if r.Subresource != "" {
		return false
	}
	switch r.Group {
	case "":
		return r.Resource == "replicationcontrollers"
	case "apps":
		return r.Resource == "deployments" || r.Resource == "daemonsets" || r.Resource == "statefulsets" ||
			r.Resource == "replicasets"
	case "batch":
		return r.Resource == "jobs" || r.Resource == "cronjobs"
	}
	return false
}

func (r *Request) lacksObject(s subject) bool {
	switch s {
	case createdPod:
		return r.Pod == nil
	case updatedPod, podStatus, podContents:
		return r.Pod == nil || r.OldPod == nil
	case binding:
		return r.Binding == nil
	}
	return false // a workload is only warned about
}

// isOwnMirror reports whether the pod is the mirror of a static pod, created by the kubelet of its node. Anyone can
// set the annotation, so the identity decides (N59, F7).
func (r *Request) isOwnMirror() bool {
	if _, mirror := r.Pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror || r.Pod.Spec.NodeName == "" {
		return false
	}
	return r.User.Name == "system:node:"+r.Pod.Spec.NodeName && slices.Contains(r.User.Groups, "system:nodes")
}

// placement is where a request lets a pod go. The zero placement aims at nothing.
type placement struct {
	node      string          // where it is put
	spec      *corev1.PodSpec // where it may be put; nil if a node is named
	selects   bool            // spec has a node selector or required node affinity
	tolerates bool            // spec tolerates a taint that says more than the node's condition
}

func (p placement) aims() bool { return p.node != "" || p.selects || p.tolerates }

func (r *Request) placement(s subject) placement {
	switch s {
	case createdPod:
		return place(&r.Pod.Spec)
	case updatedPod:
		// Adding a toleration to a pod that already has a node places nothing (N38). Neither does a change of other
		// fields (F9).
		if r.OldPod.Spec.NodeName == "" && changed(&r.OldPod.Spec, &r.Pod.Spec) {
			return place(&r.Pod.Spec)
		}
	case binding:
		return placement{node: r.Binding.Target.Name} // the kind of the target may be empty (F2)
	case createdWorkload:
		if warnable(r.Workload) {
			return place(&r.Workload.Template.Spec)
		}
	case updatedWorkload:
		old := r.OldWorkload
		if warnable(r.Workload) &&
			(old == nil || old.Template == nil || changed(&old.Template.Spec, &r.Workload.Template.Spec)) {
			return place(&r.Workload.Template.Spec)
		}
	}
	return placement{}
}

// warnable reports whether somebody may read a warning about the workload. Controllers do not.
func warnable(w *Workload) bool { return w != nil && w.Template != nil && w.Owner == nil }

func place(spec *corev1.PodSpec) placement {
	if spec.NodeName != "" {
		return placement{node: spec.NodeName}
	}
	return placement{
		spec:      spec,
		selects:   len(spec.NodeSelector) > 0 || requiredAffinity(spec) != nil,
		tolerates: slices.ContainsFunc(spec.Tolerations, counts),
	}
}

func requiredAffinity(spec *corev1.PodSpec) *corev1.NodeSelector {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// changed compares only what decides about nodes. Preferences do not (N29).
func changed(old, spec *corev1.PodSpec) bool {
	return old.NodeName != spec.NodeName || !apiequality.Semantic.DeepEqual(old.Tolerations, spec.Tolerations) ||
		!apiequality.Semantic.DeepEqual(old.NodeSelector, spec.NodeSelector) ||
		!apiequality.Semantic.DeepEqual(requiredAffinity(old), requiredAffinity(spec))
}

// evaluation is one request on its way to a verdict, with what was asked for it so far.
type evaluation struct {
	policy    *Policy
	request   *Request
	cluster   Cluster
	subject   subject
	placement placement

	assigned   assigned
	override   override
	namespaces []namespaceSeen
	stale      []stale     // of the group that is judged
	entered    *corev1.Pod // by a connection
	unread     error       // why that pod is not known
	waited     bool        // for the nodes, in vain
}

// halves begins a finding: which of the two halves the lists authorize, and by which entries.
func (e *evaluation) halves(g *group) Finding {
	e.stale = nil
	f := Finding{Group: g.name, Mode: g.mode, ActorEntry: e.actor(g), NamespaceEntry: e.occupant(g)}
	f.ActorAuthorized, f.NamespaceAuthorized = f.ActorEntry != "", f.NamespaceEntry != ""
	return f
}

// ready reports whether the nodes are known. It waits for them at most once, and never for Inform: Inform must not
// delay requests.
func (e *evaluation) ready(g *group) bool {
	if g.mode == configv1.Inform || e.waited {
		return e.cluster.Nodes.Synced()
	}
	e.waited = !e.cluster.Nodes.Ready()
	return !e.waited
}

// judge reports whether the request concerns a group, and with what result.
func (e *evaluation) judge(g *group) (Finding, bool) {
	f := e.halves(g)
	// The pods of a workload will come from a controller (H6). Whether the actor may create a pod with the override
	// was checked before.
	if e.workload() || e.subject == createdPod && e.override.reason != "" {
		f.ActorAuthorized = true
	}
	authorized := f.ActorAuthorized && f.NamespaceAuthorized
	switch {
	case !e.placement.aims():
		return Finding{}, false
	case authorized || e.workload():
		// The result is only for the audit log or a warning, so do not wait.
		if authorized && e.workload() || !e.cluster.Nodes.Synced() {
			return Finding{}, false
		}
	case !e.ready(g):
		return e.refused(g, f, []target{{reason: NodesNotReady}}, nil), true
	}
	targets := e.targets(g, authorized)
	if len(targets) == 0 {
		return Finding{}, false
	}
	asking := e.askAuthorizer(g, &f)
	f.Reason, f.Node = targets[0].reason, targets[0].node
	if f.ActorAuthorized && f.NamespaceAuthorized {
		f.Decision = Authorized
		return f, !e.workload()
	}
	if f.ActorAuthorized && e.policy.override && !e.workload() {
		if f.Override = e.overrideReason(); f.Override != "" {
			f.Decision, f.Text = Overridden, e.overrideText(f)
			return f, true
		}
	}
	return e.refused(g, f, targets, asking), true
}

func (e *evaluation) workload() bool {
	return e.subject == createdWorkload || e.subject == updatedWorkload
}

// askAuthorizer asks the authorizer for the halves that the lists leave open. After an error they stay open.
func (e *evaluation) askAuthorizer(g *group, f *Finding) error {
	if !e.policy.rbac || e.cluster.Allowed == nil {
		return nil
	}
	var failed error
	ask := func(authorized *bool, user User, verb Verb) {
		if *authorized {
			return
		}
		allowed, err := e.cluster.Allowed(Access{User: user, Verb: verb, Group: g.name})
		if err != nil {
			failed = err
			return
		}
		*authorized = allowed
	}
	ask(&f.ActorAuthorized, e.request.User, Assign)
	namespace := e.request.Namespace
	ask(&f.NamespaceAuthorized, User{
		Name:   serviceAccountPrefix + namespace + ":default",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}, Occupy)
	return failed
}

// refused completes a finding that mode Enable denies. Misuse of the override and tampering are denied in every mode.
func (e *evaluation) refused(g *group, f Finding, targets []target, asking error) Finding {
	f.Decision, f.Reason, f.Node = Deny, targets[0].reason, targets[0].node
	if g.mode == configv1.Inform && f.Reason != OverrideMisused && f.Reason != OverrideTampered {
		f.Decision = InformOnly
	}
	if e.workload() {
		f.Decision = Warn
	}
	if len(e.stale) > 0 && f.Reason.places() {
		f.Reason = NamespaceReplaced
	}
	f.Text = e.text(g, f, targets, asking)
	return f
}

// verdict combines the findings.
func (e *evaluation) verdict(findings []Finding) Verdict {
	v := Verdict{Allowed: true, Findings: findings}
	for _, f := range findings {
		switch f.Decision {
		case Deny:
			v.Allowed = false
			if v.Message != "" {
				v.Message += " "
			}
			v.Message += f.Text
		case InformOnly, Warn, Overridden:
			v.Warnings = append(v.Warnings, f.Text)
			if reason := eventReason(f.Decision); reason != "" && !e.request.DryRun {
				v.Events = append(v.Events, Event{Regarding: e.request.regarding(), Reason: reason, Note: f.Text})
			}
		}
		v.Samples = append(v.Samples, Sample{
			Group: f.Group, Mode: string(f.Mode), Decision: string(f.Decision), Resource: e.request.resource(),
			Reason: string(f.Reason), DryRun: e.request.DryRun,
		})
	}
	if v.Allowed && !e.request.DryRun {
		v.Uses = uses(findings)
	}
	return v
}

// uses returns the entries that let the request pass.
func uses(findings []Finding) []Use {
	var used []Use
	for _, f := range findings {
		if f.Decision != Authorized && f.Decision != Overridden {
			continue
		}
		for _, entry := range []string{f.ActorEntry, f.NamespaceEntry} {
			if use := (Use{Group: f.Group, Entry: entry}); entry != "" && !slices.Contains(used, use) {
				used = append(used, use)
			}
		}
	}
	return used
}

func eventReason(decision Decision) EventReason {
	switch decision {
	case InformOnly:
		return EventInform
	case Overridden:
		return EventOverride
	}
	return ""
}

func (r *Request) resource() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

// regarding returns what an event is about. That is not the pod, which may never exist.
func (r *Request) regarding() corev1.ObjectReference {
	if r.Pod != nil {
		if owner := metav1.GetControllerOfNoCopy(r.Pod); owner != nil {
			return corev1.ObjectReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: r.Namespace,
				Name: owner.Name, UID: owner.UID}
		}
	}
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: r.Namespace}
}
