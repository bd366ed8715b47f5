package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// Config is the configuration of an [Auditor].
type Config struct {
	// Policy is the policy that is, or will be, in force. Groups are audited whatever their mode.
	Policy *evaluator.Policy
	// Ignored are the parts of the live source that have no effect.
	Ignored []evaluator.Ignored
	// Live is what was found out about the live source.
	Live LiveConfig
	// Cluster are the ports of the evaluator. It must know all nodes before the first pod is judged.
	Cluster evaluator.Cluster
	// Owner returns the workload that a user edits to change a pod: the one behind the pod's controller, such as the
	// Deployment of a ReplicaSet. It is called only for pods with findings. If nil, the controller itself is named.
	Owner func(namespace string, controller metav1.OwnerReference) Owner
}

// Owner is the workload that a pod belongs to.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// webhook is the workload that alone should have pods in the namespace that is not judged; the chart calls it so.
var webhook = Owner{Kind: "Deployment", Name: "joiner-webhook"}

// Auditor judges one pod after another, so that thousands of them need no memory. It is not safe for concurrent use.
type Auditor struct {
	config Config
	report Report
	groups map[string]*Group
	told   map[string]bool // group and owner of the findings so far: their templates need no finding
}

// New returns an Auditor. It counts the nodes of the cluster.
func New(config Config) *Auditor {
	a := &Auditor{config: config, groups: map[string]*Group{}, told: map[string]bool{}}
	a.report.Findings = []Finding{}
	for _, effective := range config.Policy.Effective() {
		a.groups[effective.Group] = &Group{Name: effective.Group, Mode: string(effective.Mode),
			Authorized: map[string]int{}}
	}
	for node := range config.Cluster.Nodes.All() {
		a.report.Nodes++
		for _, name := range config.Policy.GroupsOf(node) {
			a.groups[name].Nodes++
		}
	}
	for _, ignored := range config.Ignored {
		a.report.Ignored = append(a.report.Ignored, ignored.Object+": "+ignored.Field+" "+ignored.Why)
	}
	if config.Live.Source != "" {
		mode := configv1.GroupMode("")
		if group := a.groups[string(configv1.ControlPlane)]; group != nil {
			mode = configv1.GroupMode(group.Mode)
		}
		a.report.Live = config.Live.live(mode)
	}
	return a
}

// Look judges a pod, and ignores one that has ended. It keeps only names of the pod. It returns an error if a port
// fails.
func (a *Auditor) Look(pod *corev1.Pod) error {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	inspections, err := a.config.Policy.Inspect(pod, a.config.Cluster)
	if err != nil {
		return err
	}
	a.report.Pods++
	for _, i := range inspections {
		switch i.Class {
		case evaluator.StaticPod:
			a.groups[i.Group].Static++
		case evaluator.AuthorizedPod:
			a.groups[i.Group].Authorized[pod.Namespace]++
		default:
			f := a.finding(pod, i)
			if i.Class == evaluator.UnjudgedPod && f.Owner != nil && *f.Owner == webhook {
				continue
			}
			a.told[f.Group+" "+f.owner()] = true
			a.report.Findings = append(a.report.Findings, f)
		}
	}
	return nil
}

// LookAtWorkload judges the pods that a workload would make next. Call it after the last pod: it reports no workload
// whose pods already have findings.
func (a *Auditor) LookAtWorkload(object evaluator.WorkloadObject, kind string) error {
	inspections, err := a.config.Policy.InspectWorkload(object, a.config.Cluster)
	if err != nil {
		return err
	}
	a.report.Workloads++
	for _, i := range inspections {
		f := Finding{
			Group: i.Group, Class: i.Class, Namespace: object.GetNamespace(),
			Owner:   &Owner{Kind: kind, Name: object.GetName()},
			Reasons: i.Reasons, Message: i.Found, Authorize: i.Authorize,
		}
		f.Action = f.action(i.Steps)
		if !a.told[f.Group+" "+f.owner()] {
			a.report.Findings = append(a.report.Findings, f)
		}
	}
	return nil
}

// LookAtEntries judges the entries of the lists that name a namespace. It returns an error if the port
// Namespace fails.
func (a *Auditor) LookAtEntries() error {
	if a.config.Cluster.Namespace == nil {
		return nil
	}
	pins, err := a.config.Policy.Pins(a.config.Cluster.Namespace)
	if err != nil {
		return fmt.Errorf("reading the namespaces of the lists: %w", err)
	}
	for _, pin := range pins {
		if !pin.Fine() {
			a.report.Entries = append(a.report.Entries, entryFinding(pin))
		}
	}
	return nil
}

// LookAtNodes reports the nodes of groups that have no taint.
func (a *Auditor) LookAtNodes() {
	for node := range a.config.Cluster.Nodes.All() {
		if evaluator.Tainted(node) {
			continue
		}
		for _, group := range a.config.Policy.GroupsOf(node) {
			a.report.Bare = append(a.report.Bare, nodeFinding(group, node.Name))
		}
	}
	slices.SortFunc(a.report.Bare,
		func(x, y NodeFinding) int { return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Node, y.Node)) })
}

func (a *Auditor) finding(pod *corev1.Pod, i evaluator.Inspection) Finding {
	f := Finding{
		Group: i.Group, Class: i.Class, Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName,
		Reasons: i.Reasons, Message: i.Found, Authorize: i.Authorize,
	}
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil && controller.Kind != "Node" {
		f.Owner = &Owner{Kind: controller.Kind, Name: controller.Name}
		if a.config.Owner != nil {
			owner := a.config.Owner(pod.Namespace, *controller)
			f.Owner = &owner
		}
	}
	f.Action = f.action(i.Steps)
	return f
}

// action adds to the steps where to take them. Steps that delete the pod need no addition.
func (f Finding) action(steps string) string {
	lost := slices.Contains(f.Reasons, evaluator.UnknownNode)
	override := f.Class == evaluator.OverrideWaiting || f.Class == evaluator.OverrideInUse
	switch {
	case lost || override || f.Class == evaluator.UnjudgedPod:
		return steps
	case f.Owner != nil:
		return fmt.Sprintf("%s, in the pod template of %s %q", steps, f.Owner.Kind, f.Owner.Name)
	case f.Class == evaluator.OnProtectedNode:
		return "delete it; if it is created again, " + steps
	}
	return "if it is created again, " + steps
}

// Report returns the findings, in an order that does not depend on that of the pods: by group, namespace, owner, class
// (the weightiest first), action and name.
func (a *Auditor) Report() Report {
	report, classes := a.report, evaluator.Classes()
	for _, effective := range a.config.Policy.Effective() {
		group := *a.groups[effective.Group]
		group.Authorized = maps.Clone(group.Authorized)
		report.Groups = append(report.Groups, group)
	}
	report.Findings = slices.Clone(report.Findings)
	slices.SortFunc(report.Findings, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Namespace, y.Namespace),
			cmp.Compare(x.owner(), y.owner()),
			cmp.Compare(slices.Index(classes, x.Class), slices.Index(classes, y.Class)),
			cmp.Compare(x.Action, y.Action), cmp.Compare(x.Name, y.Name))
	})
	return report
}
