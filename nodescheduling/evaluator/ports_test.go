package evaluator_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// ask judges a request of the script language in a world, by ports that may differ from the world's.
func ask(t *testing.T, w *schedulingtest.World, cluster evaluator.Cluster, line string) evaluator.Verdict {
	t.Helper()
	asked, err := schedulingtest.ParseRequest(line)
	if err != nil {
		t.Fatal(err)
	}
	request := asked.Request
	if err := request.SetObjects(asked.Object, asked.Old); err != nil {
		t.Fatal(err)
	}
	return policyOf(t, w.Sources).Evaluate(&request, cluster)
}

func policyOf(t *testing.T, sources evaluator.Sources) *evaluator.Policy {
	t.Helper()
	policy, _, err := evaluator.New(sources)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

func worldOf(t *testing.T, lines string) *schedulingtest.World {
	t.Helper()
	w := schedulingtest.NewWorld()
	if _, err := w.Run("cluster", false, lines, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// twoGroups are two groups that a pod may be denied for, with the override and RBAC in force.
const twoGroups = `
group ControlPlane select=cp mode=Enable users=admin
group Edge select=edge mode=Enable users=admin
authorization ListsAndRBAC
override Enable
node n1 labels=cp,edge
`

// counted are nodes that count what is asked of them.
type counted struct {
	*schedulingtest.World
	waits, walks int
	waited       bool // Ready says so; Synced is the world's
}

func (c *counted) Ready() bool { c.waits++; return c.waited }

func (c *counted) All() iter.Seq[*corev1.Node] { c.walks++; return c.World.All() }

// N57, N60, H7: the API server is asked once for a node or a pod, however many groups the request concerns, and not at
// all for an authorized request. A request waits at most once for the nodes, and never in mode Inform.
func TestPortsAreAskedOnceForAllGroups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		more, line        string
		nodes, pods, wait int
	}{
		{"", "alice create pod app/web node=n9", 1, 0, 2},
		{"", "admin bind app/web to=n1", 0, 1, 2},
		{"not-ready", "alice create pod app/web node=n9", 0, 0, 1},
		{"not-ready\ngroup ControlPlane select=cp mode=Inform\ngroup Edge select=edge mode=Inform",
			"alice create pod app/web node=n9", 0, 0, 0},
		{"group ControlPlane select=cp mode=Enable users=admin,ops/x\ngroup Edge select=edge users=",
			"admin create pod ops/web node=n9", 0, 0, 0},
	} {
		w := worldOf(t, twoGroups+c.more)
		nodes, pods := 0, 0
		ports := w.Cluster()
		all := &counted{World: w, waited: !w.NotReady}
		ports.Nodes = all
		ports.LiveNode = func(string) (*corev1.Node, error) { nodes++; return nil, nil }
		ports.LivePod = func(string, string) (*corev1.Pod, error) { pods++; return nil, nil }
		ask(t, w, ports, c.line)
		if nodes != c.nodes || pods != c.pods || all.waits != c.wait {
			t.Errorf("%s %s: asked for %d nodes and %d pods, waited %d times, want %d, %d and %d", c.more, c.line,
				nodes, pods, all.waits, c.nodes, c.pods, c.wait)
		}
	}
}

// N60: the nodes that came while the request waited for them decide it.
func TestWhatWasWaitedForDecides(t *testing.T) {
	t.Parallel()
	w := worldOf(t, fixture+"\nnot-ready")
	ports := w.Cluster()
	late := &counted{World: w}
	ports.Nodes = arriving{late, func() { w.NotReady = false }}
	if v := ask(t, w, ports, "alice create pod app/web node=w1"); !v.Allowed || late.waits != 1 {
		t.Errorf("waited %d times: %+v", late.waits, v)
	}
}

// arriving are nodes that are known once somebody waits for them.
type arriving struct {
	*counted
	arrive func()
}

func (a arriving) Ready() bool { a.waits++; a.arrive(); return true }

// Every port but the nodes may be missing: what it would have said counts as no.
func TestPortsThatAreMissingAuthorizeNothing(t *testing.T) {
	t.Parallel()
	w := worldOf(t, twoGroups)
	for line, want := range map[string]evaluator.Reason{
		"alice create pod app/web node=n1":              evaluator.NodeName,
		"alice create pod app/web node=n9":              evaluator.UnknownNode,
		"admin bind app/web to=n1":                      evaluator.Binding,
		"alice create pod app/web node=n1 override=why": evaluator.OverrideMisused,
	} {
		if v := ask(t, w, evaluator.Cluster{Nodes: w}, line); v.Allowed || v.Findings[0].Reason != want {
			t.Errorf("%s: %+v, want a denial for %s", line, v, want)
		}
	}
}

// H8, H7: an answer that comes with an error is none, whatever it says.
func TestAnAnswerWithAnErrorAuthorizesNothing(t *testing.T) {
	t.Parallel()
	w := worldOf(t, twoGroups)
	debug, err := schedulingtest.ParsePod("app/web override=why")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("cut off")
	for _, line := range []string{"alice create pod app/web node=n1", "alice create pod app/web node=n1 override=why",
		"admin bind app/web to=n1"} {
		ports := w.Cluster()
		ports.Allowed = func(evaluator.Access) (bool, error) { return true, broken }
		ports.LivePod = func(string, string) (*corev1.Pod, error) { return debug, broken }
		if v := ask(t, w, ports, line); v.Allowed {
			t.Errorf("%s passed: %+v", line, v)
		}
	}
}

// N49, H7: the pod that is bound is read by the name in the path, and on the legacy path by the binding's.
func TestABindingReadsThePodThatItNames(t *testing.T) {
	t.Parallel()
	w := worldOf(t, twoGroups)
	for _, r := range []evaluator.Request{
		{Resource: "pods", Subresource: "binding", Name: "debug"},
		{Resource: "bindings", Binding: &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "debug"}}},
	} {
		r.Operation, r.Namespace, r.User.Name = evaluator.Create, "tmp", "admin"
		if r.Binding == nil {
			r.Binding = &corev1.Binding{}
		}
		r.Binding.Target.Name = "n1"
		ports, read := w.Cluster(), ""
		ports.LivePod = func(namespace, name string) (*corev1.Pod, error) {
			read = namespace + "/" + name
			return nil,
				nil
		}
		if v := policyOf(t, w.Sources).Evaluate(&r, ports); v.Allowed || read != "tmp/debug" ||
			!strings.Contains(v.Message, `pod "debug"`) {
			t.Errorf("%s/%s: read %q, %s", r.Resource, r.Subresource, read, v.Message)
		}
	}
}

// N68: with an index of a group's nodes, only they are looked at, and those that the pod names.
func TestTheIndexIsEnough(t *testing.T) {
	t.Parallel()
	w := worldOf(t, fixture)
	for line, denied := range map[string]bool{
		"alice create pod app/web tolerate=*":                                               true,
		"alice create pod app/web select=node-role.kubernetes.io/control-plane=":            true,
		"alice create pod app/web need=name=cp1":                                            true,
		"alice create pod app/web need=name=cp1 need=name=w1":                               false,
		"alice create pod app/web node=cp1":                                                 true,
		"alice create pod app/web need=node-role.kubernetes.io/master,name=cp1|w1":          false,
		"alice create pod app/web need=node-role.kubernetes.io/control-plane,name=cp1":      true,
		"alice create pod app/web select=zone=a need=name=w1":                               false,
		"alice create pod app/web tolerate=* select=node-role.kubernetes.io/control-plane=": true,
	} {
		ports := w.Cluster()
		all := &counted{World: w, waited: true}
		ports.Nodes = all
		ports.Members = func(string) iter.Seq[*corev1.Node] {
			node, _ := w.Get("cp1")
			return slices.Values([]*corev1.Node{node})
		}
		if v := ask(t, w, ports, line); v.Allowed == denied || all.walks > 0 {
			t.Errorf("%s: allowed %t, looked at all nodes %d times", line, v.Allowed, all.walks)
		}
	}
}

// N64: the node that is named is the first by name, in whatever order the nodes come.
func TestTheTextNamesTheFirstNode(t *testing.T) {
	t.Parallel()
	w := worldOf(t, "group ControlPlane select=cp mode=Enable users=\n"+
		"node n1 labels=cp taints=a:NoSchedule\nnode n2 labels=cp taints=a:NoSchedule\nnode n3 labels=cp taints=a:NoSchedule")
	for _, order := range [][]string{{"n1", "n2", "n3"}, {"n3", "n2", "n1"}, {"n2", "n1", "n3"}} {
		ports := w.Cluster()
		ports.Members = func(string) iter.Seq[*corev1.Node] {
			return func(yield func(*corev1.Node) bool) {
				for _, name := range order {
					if node, _ := w.Get(name); !yield(node) {
						return
					}
				}
			}
		}
		for _, aim := range []string{"select=cp=", "tolerate=a"} {
			if v := ask(t, w, ports, "alice create pod app/web "+aim); v.Allowed || v.Findings[0].Node != "n1" {
				t.Errorf("%s, %v: %+v", aim, order, v.Findings)
			}
		}
	}
}

// H19: what is counted are the entries that a request could not have done without. A denied request used none, nor
// does a group that only informs.
func TestTheEntriesThatWereUsed(t *testing.T) {
	t.Parallel()
	w := worldOf(t, `
group Watch select=edge mode=Inform users=admin
group ControlPlane select=cp mode=Enable users=admin,ops/x
group Locked select=locked mode=Enable users=ops/x
override Enable
node n1 labels=cp,edge
node n2 labels=cp,locked
pod tmp/debug override=why
`)
	for line, want := range map[string]string{
		"admin create pod ops/web node=n1":                               "[{ControlPlane admin} {ControlPlane ops/x}]",
		"admin bind tmp/debug to=n1":                                     "[{Watch admin} {ControlPlane admin}]",
		"admin create pod ops/web node=n1 dry-run":                       "[]",
		"alice create pod ops/web node=n1":                               "[]",
		"admin create pod ops/web node=n2":                               "[]",
		"admin create pod ops/web tolerate=node.kubernetes.io/not-ready": "[]",
		"sa:ops/x create pod ops/web node=n1":                            "[{ControlPlane ops/x}]",
	} {
		if v := ask(t, w, w.Cluster(), line); fmt.Sprint(v.Uses) != want {
			t.Errorf("%s: used %v, want %s", line, v.Uses, want)
		}
	}
}
