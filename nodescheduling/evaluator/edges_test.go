package evaluator_test

import (
	"errors"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// N62, A-17: a request is about a pod by its group, its resource, its subresource and its operation together. What
// differs in one of them passes.
func TestN62_OnlyRequestsAboutPodsAreJudged(t *testing.T) {
	t.Parallel()
	w := worldOf(t, fixture+"\noverride Enable\npod tmp/debug node=cp1 override=why")
	policy := policyOf(t, w.Sources)
	for what, denied := range map[[4]string]bool{
		{"CONNECT", "", "pods", "exec"}:               true,
		{"CONNECT", "example.com", "pods", "exec"}:    false,
		{"CONNECT", "", "services", "exec"}:           false,
		{"CONNECT", "", "pods", "proxy"}:              false,
		{"UPDATE", "", "pods", "resize"}:              true, // it has no object
		{"UPDATE", "", "pods", "eviction"}:            false,
		{"CREATE", "", "pods", "status"}:              false,
		{"CREATE", "", "pods", "resize"}:              false,
		{"CREATE", "", "pods", "ephemeralcontainers"}: false,
		{"DELETE", "", "pods", "ephemeralcontainers"}: false,
		{"UPDATE", "", "pods", "binding"}:             false,
		{"UPDATE", "example.com", "pods", ""}:         false,
		{"CREATE", "example.com", "bindings", ""}:     false,
		{"CREATE", "", "bindings", "status"}:          false,
		{"UPDATE", "", "bindings", ""}:                false,
	} {
		request := evaluator.Request{Operation: evaluator.Operation(what[0]), Group: what[1], Resource: what[2],
			Subresource: what[3], Namespace: "tmp", Name: "debug", User: evaluator.User{Name: "bob"}}
		v := policy.Evaluate(&request, w.Cluster())
		if v.Allowed == denied || !denied && !reflect.DeepEqual(v, evaluator.Verdict{Allowed: true}) {
			t.Errorf("%v: %+v, want denied %t", what, v, denied)
		}
	}
}

// An incomplete request is judged by what it has. In the door's own namespace it passes, as everything does. A request
// to enter a nameless pod that cannot be read is denied. A created object needs no old object.
func TestWhatARequestLacksIsNoPanic(t *testing.T) {
	t.Parallel()
	w := worldOf(t, fixture+"\noverride Enable\nself joiner\nunreadable")
	policy := policyOf(t, w.Sources)
	empty := evaluator.Request{Operation: evaluator.Create, Resource: "pods", Namespace: "joiner"}
	if v := policy.Evaluate(&empty, w.Cluster()); !v.Allowed || len(v.Findings) > 0 {
		t.Errorf("in its own namespace: %+v", v)
	}
	nameless := evaluator.Request{Operation: evaluator.Connect, Resource: "pods", Subresource: "exec",
		Namespace: "tmp"}
	if v := policy.Evaluate(&nameless, w.Cluster()); v.Allowed ||
		!strings.Contains(v.Message, `pod "" in namespace "tmp"`) {
		t.Errorf("a pod without a name: %+v", v)
	}
	asked, err := schedulingtest.ParseRequest("alice create deployment app/web tolerate=*")
	if err != nil {
		t.Fatal(err)
	}
	request := asked.Request
	if err := request.SetObjects(asked.Object, asked.Object); err != nil {
		t.Fatal(err)
	}
	if v := policy.Evaluate(&request, w.Cluster()); len(v.Warnings) != 1 {
		t.Errorf("a workload that is created: %+v", v)
	}
}

// replacedWorld has two groups, on one node. Only in the list of the first is there an entry whose namespace is
// another one now.
func replacedWorld(t *testing.T, more string) *schedulingtest.World {
	t.Helper()
	return worldOf(t, "group ControlPlane select=cp mode=Enable users=admin,namespace:web@"+
		schedulingtest.NamespaceUID+
		"\ngroup Edge select=edge mode=Enable users=admin\nnode n1 labels=cp,edge\nnamespace web uid="+otherUID+"\n"+
		more)
}

const otherUID = "11111111-1111-1111-1111-111111111111"

// NamespaceReplaced is the reason only if an entry for another namespace keeps a pod off, and only for the group
// that has the entry. Misuse of the override, tampering and unknown nodes keep their reasons.
func TestA11_AReplacedNamespaceIsTheReasonForPlacesOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		more, line string
		want       []evaluator.Reason
	}{
		{"", "admin create pod web/x node=n1", []evaluator.Reason{evaluator.NamespaceReplaced, evaluator.NodeName}},
		{"", "admin bind web/x to=n1", []evaluator.Reason{evaluator.NamespaceReplaced, evaluator.Binding}},
		{"not-ready", "admin create pod web/x node=n1",
			[]evaluator.Reason{evaluator.NodesNotReady, evaluator.NodesNotReady}},
		{"override Enable", "bob create pod web/x node=n1 override=why",
			[]evaluator.Reason{evaluator.OverrideMisused, evaluator.OverrideMisused}},
		{"override Enable", "bob update pod web/x node=n1 override=why -> image=other",
			[]evaluator.Reason{evaluator.OverrideTampered, evaluator.OverrideTampered}},
	} {
		w := replacedWorld(t, c.more)
		v := ask(t, w, w.Cluster(), c.line)
		var got []evaluator.Reason
		for _, f := range v.Findings {
			got = append(got, f.Reason)
		}
		if v.Allowed || !slices.Equal(got, c.want) {
			t.Errorf("%s %s: %v, want %v (%s)", c.more, c.line, got, c.want, v.Message)
		}
	}
}

// A-11, H14: an inspection names the entry that means another namespace, for the group that has it.
func TestA11_AnInspectionNamesTheReplacedEntry(t *testing.T) {
	t.Parallel()
	w := replacedWorld(t, "")
	pod, err := schedulingtest.ParsePod("web/x node=n1")
	if err != nil {
		t.Fatal(err)
	}
	found, err := policyOf(t, w.Sources).Inspect(pod, w.Cluster())
	if err != nil || len(found) != 2 {
		t.Fatalf("%+v (%v)", found, err)
	}
	const names = `and the entry "namespace:web@` + schedulingtest.NamespaceUID +
		`" is for the namespace "web" with the UID `
	if !strings.Contains(found[0].Found, names) || strings.Contains(found[1].Found, "the entry") {
		t.Errorf("found %q and %q", found[0].Found, found[1].Found)
	}
}

// the text about a group speaks of its own entries, also where those of all groups decide what an
// administrator is told.
func TestA11_ATextSpeaksOfItsOwnGroup(t *testing.T) {
	t.Parallel()
	w := worldOf(t, "group ControlPlane select=cp mode=Enable users=group:oncall\n"+
		"group Edge select=edge mode=Enable users=group:system:serviceaccounts:web@"+schedulingtest.NamespaceUID+
		",group:oncall\nnode n1 labels=cp\nnamespace web uid="+otherUID)
	v := ask(t, w, w.Cluster(), "dora[system:serviceaccounts:web,oncall] create pod tmp/x node=n1")
	if v.Allowed || len(v.Findings) != 1 || !strings.Contains(v.Message, "use an authorized namespace") ||
		strings.Contains(v.Message, "the entry") {
		t.Errorf("%s", v.Message)
	}
}

// whoever may not change a pod with the override may not do so in mode Inform either.
func TestA17_TamperingIsDeniedInEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"Enable", "Inform", "Disable"} {
		w := worldOf(t, "group ControlPlane select=cp mode="+mode+" users=admin\nnode n1 labels=cp\noverride Enable")
		v := ask(t, w, w.Cluster(), "bob update pod tmp/x node=n1 override=why -> image=other")
		if v.Allowed || v.Findings[0].Reason != evaluator.OverrideTampered {
			t.Errorf("mode %s: %+v", mode, v)
		}
	}
}

// H9: a taint that only asks the scheduler to prefer other nodes keeps nobody off, so that tolerating it aims at
// nothing, and not tolerating it neither.
func TestATaintThatOnlyPrefersIsNone(t *testing.T) {
	t.Parallel()
	w := worldOf(t,
		"group ControlPlane select=cp mode=Enable users=\nnode soft labels=cp taints=soft:PreferNoSchedule")
	if v := ask(t, w, w.Cluster(), "alice create pod app/web tolerate=*"); !v.Allowed || len(v.Findings) > 0 {
		t.Errorf("a node with such a taint alone: %+v", v)
	}
	w = worldOf(t,
		"group ControlPlane select=cp mode=Enable users=\nnode both labels=cp taints=soft:PreferNoSchedule,cp:NoSchedule")
	if v := ask(t, w, w.Cluster(), "alice create pod app/web tolerate=cp"); v.Allowed {
		t.Errorf("a node with another one: %+v", v)
	}
}

// a node that is of the group by its taint may have another label than the group's, and so have nodes that are
// not of it.
func TestA12_ASelectorOfAnotherValueFitsOutside(t *testing.T) {
	t.Parallel()
	w := worldOf(t, "group ControlPlane select=zone=a taints=cp:NoSchedule mode=Enable users=\n"+
		"node late labels=zone=b taints=cp:NoSchedule\nnode plain labels=zone=b")
	if v := ask(t, w, w.Cluster(), "alice create pod app/web select=zone=b"); !v.Allowed {
		t.Errorf("another node has the label: %s", v.Message)
	}
	if _, err := w.Run("cluster", false, "no-node plain", nil); err != nil {
		t.Fatal(err)
	}
	if v := ask(t, w, w.Cluster(), "alice create pod app/web select=zone=b"); v.Allowed {
		t.Error("no other node has the label, and it passes")
	}
}

// H9: only terms that name nodes by their name leave nothing but those. The API server knows no other field now.
func TestOnlyNamesOfNodesNameNodes(t *testing.T) {
	t.Parallel()
	w := worldOf(t, fixture)
	asked, err := schedulingtest.ParseRequest("alice create pod app/web need=name=x")
	if err != nil {
		t.Fatal(err)
	}
	pod, is := asked.Object.(*corev1.Pod)
	if !is {
		t.Fatalf("%T", asked.Object)
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	required.NodeSelectorTerms[0].MatchFields = []corev1.NodeSelectorRequirement{{Key: "spec.other",
		Operator: corev1.NodeSelectorOpIn, Values: []string{""}}} // which every node has
	if v, err := w.Evaluate(asked); err != nil || !v.Allowed {
		t.Errorf("a field of every node: %+v (%v)", v, err)
	}
}

// N68: where the answer is known no node is looked at: for a workload of a namespace that is authorized, for a pod
// that exists and aims at nothing, and beyond the group for a pod that is authorized.
func TestN68_NoNodeIsLookedAtInVain(t *testing.T) {
	t.Parallel()
	w := worldOf(t, fixture)
	untouched := evaluator.Cluster{Nodes: untouched{t}}
	if v := ask(t, w, untouched, "alice create deployment ops/web tolerate=*"); len(v.Findings) > 0 {
		t.Errorf("%+v", v)
	}
	pod, err := schedulingtest.ParsePod("app/web")
	if err != nil {
		t.Fatal(err)
	}
	if found, err := policyOf(t, w.Sources).Inspect(pod, untouched); err != nil || len(found) > 0 {
		t.Errorf("%+v (%v)", found, err)
	}
	ports := w.Cluster()
	all := &counted{World: w, waited: true}
	ports.Nodes = all
	ports.Members = func(string) iter.Seq[*corev1.Node] {
		node, _ := w.Get("cp1")
		return slices.Values([]*corev1.Node{node})
	}
	v := ask(t, w, ports, "system:admin create pod ops/web tolerate=* need=node-role.kubernetes.io/control-plane")
	if !v.Allowed || len(v.Findings) != 1 || v.Findings[0].Reason != evaluator.Toleration || all.walks > 0 {
		t.Errorf("looked at all nodes %d times: %+v", all.walks, v)
	}
}

// H14: a pod of a manifest may have no namespace yet. Where the door has none of its own, that is not the door's.
func TestAPodWithoutANamespaceIsInspected(t *testing.T) {
	t.Parallel()
	w := worldOf(t, fixture)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{NodeName: "cp1"}}
	if found, err := policyOf(t, w.Sources).Inspect(pod, w.Cluster()); err != nil || len(found) != 1 {
		t.Errorf("%+v (%v)", found, err)
	}
}

// N66: metrics have a series for each of these.
func TestTheClosedSetsAreComplete(t *testing.T) {
	t.Parallel()
	if got := evaluator.Lives(); !slices.Equal(got, []evaluator.Source{"Scheduler", "NodeSchedulingGroup", "None"}) {
		t.Errorf("live sources %v", got)
	}
	if got := evaluator.PinStates(); !slices.Equal(got, []evaluator.PinState{"pinned", "reserved", "unpinned",
		"dangling", "replaced"}) {
		t.Errorf("states of entries %v", got)
	}
}

// known are nodes that are there and not ready: the cache may still lack others.
type known struct{ *schedulingtest.World }

func (known) Ready() bool  { return false }
func (known) Synced() bool { return false }

// nothing is written where nobody judges, where it would not help, and before the nodes are known.
func TestA42_NothingIsWrittenInVain(t *testing.T) {
	t.Parallel()
	const line = "system:admin create pod tmp/debug node=cp1"
	for _, c := range []struct{ more, line, want string }{
		{"", line, "automatic: system:admin"},
		{"node w1", "system:admin create pod tmp/debug node=w1", ""},
		{"", "system:admin create pod tmp/debug node=not-there-yet", ""},
		{"live-node cp2 labels=cp", "system:admin create pod tmp/debug node=cp2", "automatic: system:admin"},
		{"self tmp", line, ""},
		{"", "system:node:cp1[system:nodes,oncall] create pod tmp/debug node=cp1 mirror", ""},
		{"", "system:node:cp1[oncall] create pod tmp/debug node=cp1 mirror", "automatic: system:node:cp1"},
		{"authorization ListsAndRBAC", line, "automatic: system:admin"},
		{"authorization ListsAndRBAC\nunreadable", line, "automatic: system:admin"},
		{"authorization ListsAndRBAC\ngrant system:serviceaccounts:tmp occupy ControlPlane", line, ""},
		{"group ControlPlane select=cp mode=Disable users=system:admin", line, ""},
	} {
		w := automaticWorld(t)
		if _, err := w.Run("cluster", false, c.more, nil); err != nil {
			t.Fatal(err)
		}
		asked, err := schedulingtest.ParseRequest(c.line)
		if err != nil {
			t.Fatal(err)
		}
		admitted, err := w.Admit(asked)
		if got := admitted.Object.GetAnnotations()[evaluator.OverrideAnnotation]; err != nil || got != c.want {
			t.Errorf("%s, %s: %q (%v), want %q", c.more, c.line, got, err, c.want)
		}
		if got := policyOf(t, w.Sources).Automates(); got == strings.Contains(c.more, "mode=Disable") {
			t.Errorf("%s: automates is %t", c.more, got)
		}
	}
	w := automaticWorld(t)
	policy, ports := policyOf(t, w.Sources), w.Cluster()
	asked, err := schedulingtest.ParseRequest(line)
	if err != nil {
		t.Fatal(err)
	}
	request := asked.Request
	if got := policy.Automatic(&request, ports); got != "" {
		t.Errorf("without an object: %q", got)
	}
	if err := request.SetObjects(asked.Object, nil); err != nil {
		t.Fatal(err)
	}
	ordinary := evaluator.Request{Operation: evaluator.Create, Resource: "pods", Namespace: "tmp", User: request.User,
		Pod: &corev1.Pod{}}
	if got := policy.Automatic(&ordinary, evaluator.Cluster{Nodes: untouched{t}}); got != "" {
		t.Errorf("on a pod that aims at nothing: %q", got)
	}
	update := request
	update.Operation, update.OldPod = evaluator.Update, &corev1.Pod{}
	if got := policy.Automatic(&update, ports); got != "" {
		t.Errorf("on an update: %q", got)
	}
	ports.Nodes = known{w}
	if got := policy.Automatic(&request, ports); got != "" {
		t.Errorf("while the nodes are not all known: %q", got)
	}
	listed := worldOf(t,
		"group ControlPlane select=cp mode=Enable users=system:admin,namespace:tmp\noverride Automatic")
	if got := policyOf(t, listed.Sources).Automatic(&request, evaluator.Cluster{Nodes: untouched{t}}); got != "" {
		t.Errorf("in a namespace that is authorized: %q", got)
	}
	ports.Nodes, ports.Allowed = w, func(evaluator.Access) (bool, error) { return true, errors.New("no answer") }
	if got := policy.Automatic(&request, ports); got == "" {
		t.Error("the lists decide, and nothing is written")
	}
	if (*evaluator.Policy)(nil).Automates() {
		t.Error("no policy automates")
	}
}

// what an administrator can do about a refusal is told with a refusal only.
func TestA42_WhatIsOnlyInformedAboutNeedsNoRemedy(t *testing.T) {
	t.Parallel()
	w := automaticWorld(t)
	if _, err := w.Run("cluster", false, "scheduler cluster mode=Inform\noverride Disable", nil); err != nil {
		t.Fatal(err)
	}
	v := ask(t, w, w.Cluster(), "system:admin create pod tmp/debug node=cp1")
	if !v.Allowed || len(v.Warnings) != 1 || strings.Contains(v.Warnings[0], "use an authorized namespace") {
		t.Errorf("%+v", v)
	}
}

// N2: a selector that is none is an error, for whoever asks about members.
func TestASelectorThatIsNoneHasNoMembers(t *testing.T) {
	t.Parallel()
	group := v1alpha1.SchedulingPolicyGroup{LabelSelector: metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Maybe"}}}}
	if _, err := evaluator.MembersOf(&group); err == nil {
		t.Error("it is taken")
	}
}
