package evaluator_test

import (
	"iter"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

const fixture = `
group ControlPlane select=node-role.kubernetes.io/control-plane= mode=Enable users=system:kube-scheduler,ops/default,system:admin
node cp1 labels=node-role.kubernetes.io/control-plane taints=node-role.kubernetes.io/master:NoSchedule
node w1
`

// verdict answers a request in the cluster of the fixture with the changes of more.
func verdict(t testing.TB, more, line string) evaluator.Verdict {
	t.Helper()
	w := schedulingtest.NewWorld()
	if _, err := w.Run("cluster", false, fixture+more, nil); err != nil {
		t.Fatal(err)
	}
	asked, err := schedulingtest.ParseRequest(line)
	if err != nil {
		t.Fatal(err)
	}
	v, err := w.Evaluate(asked)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// N67: Inform and the override write an event, about the controller that owns the pod or else the namespace, and none
// in a dry run. A denial writes none: controllers write their own.
func TestEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		more, line string
		reason     evaluator.EventReason
		regarding  string
	}{
		{"", "alice create pod app/web node=cp1", "", ""},
		{"scheduler cluster mode=Inform", "alice create pod app/web node=cp1", evaluator.EventInform, "Namespace app"},
		{"scheduler cluster mode=Inform", "alice create pod app/web node=cp1 owner=ReplicaSet/web",
			evaluator.EventInform, "ReplicaSet web"},
		{"scheduler cluster mode=Inform", "alice bind app/web to=cp1", evaluator.EventInform, "Namespace app"},
		{"scheduler cluster mode=Inform", "alice create pod app/web node=cp1 dry-run", "", ""},
		{"override Enable", "system:admin create pod app/web node=cp1 override=why", evaluator.EventOverride,
			"Namespace app"},
		{"override Enable", "system:admin create pod app/web node=cp1 override=why dry-run", "", ""},
		{"", "alice create deployment app/web node=cp1", "", ""},
		{"", "system:admin create pod ops/web node=cp1", "", ""},
	} {
		v := verdict(t, c.more, c.line)
		if c.reason == "" {
			if len(v.Events) > 0 {
				t.Errorf("%s: %+v, want no event", c.line, v.Events)
			}
			continue
		}
		if len(v.Events) != 1 || v.Events[0].Reason != c.reason || v.Events[0].Note == "" ||
			v.Events[0].Regarding.Kind+" "+v.Events[0].Regarding.Name != c.regarding {
			t.Errorf("%s: %+v, want %s about %s", c.line, v.Events, c.reason, c.regarding)
		}
		// By the UID kubectl describe finds the event, by the namespace the API server accepts it.
		want := corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "app"}
		if strings.HasPrefix(c.regarding, "ReplicaSet") {
			want = corev1.ObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "app", Name: "web",
				UID: "uid"}
		}
		if v.Events[0].Regarding != want {
			t.Errorf("%s: about %+v, want %+v", c.line, v.Events[0].Regarding, want)
		}
	}
}

// N66, N36: what is counted, with the dry run apart.
func TestSamples(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]evaluator.Sample{
		"alice create pod app/web node=cp1 dry-run": {Group: "ControlPlane", Mode: "Enable",
			Decision: "deny", Resource: "pods", Reason: "NodeName", DryRun: true},
		"system:kube-scheduler bind ops/web to=cp1": {Group: "ControlPlane", Mode: "Enable",
			Decision: "authorized", Resource: "pods/binding", Reason: "Binding"},
		"system:kube-scheduler bind-legacy app/web to=cp9": {Group: "ControlPlane", Mode: "Enable",
			Decision: "deny", Resource: "bindings", Reason: "UnknownNode"},
		"alice create daemonset app/agent tolerate=*": {Group: "ControlPlane", Mode: "Enable",
			Decision: "warn", Resource: "daemonsets", Reason: "Toleration"},
		"alice create pod app/web select=kubernetes.io/os=no": {},
	} {
		v := verdict(t, "", line)
		if want == (evaluator.Sample{}) {
			if len(v.Samples) > 0 {
				t.Errorf("%s: %+v, want none", line, v.Samples)
			}
		} else if len(v.Samples) != 1 || v.Samples[0] != want {
			t.Errorf("%s: %+v, want %+v", line, v.Samples, want)
		}
	}
}

// H19: the entries that authorized can be counted.
func TestTheEntriesThatAuthorizeAreNamed(t *testing.T) {
	t.Parallel()
	v := verdict(t, "scheduler cluster users=group:admins", "carol[admins] create pod ops/web node=cp1")
	if len(v.Findings) != 1 || v.Findings[0].ActorEntry != "group:admins" ||
		v.Findings[0].NamespaceEntry != "ops/default" {
		t.Errorf("findings %+v, want group:admins and ops/default", v.Findings)
	}
}

// Whatever a door gets wrong is denied: a verdict that nobody asked for, a request that has lost its object.
func TestWhatCannotBeJudgedIsDenied(t *testing.T) {
	t.Parallel()
	if (evaluator.Verdict{}).Allowed {
		t.Error("the zero verdict allows")
	}
	policy, _, err := evaluator.New(sources(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []evaluator.Request{
		{Operation: evaluator.Create, Resource: "pods"},
		{Operation: evaluator.Update, Resource: "pods", Pod: &corev1.Pod{}},
		{Operation: evaluator.Update, Resource: "pods", OldPod: &corev1.Pod{}},
		{Operation: evaluator.Create, Resource: "pods", Subresource: "binding"},
		{Operation: evaluator.Create, Resource: "bindings", Pod: &corev1.Pod{}},
	} {
		v := policy.Evaluate(&r, evaluator.Cluster{})
		if v.Allowed || len(v.Findings) != 1 || v.Findings[0].Reason != evaluator.Malformed ||
			!strings.Contains(v.Message, "no object") {
			t.Errorf("%+v: %+v, want a denial for Malformed", r, v)
			continue
		}
		if f := v.Findings[0]; f.Group != "ControlPlane" || f.Mode != configv1.Enable ||
			v.Samples[0].Group != f.Group || v.Samples[0].Mode != "Enable" {
			t.Errorf("%+v: finding %+v, sample %+v", r, f, v.Samples)
		}
	}
	for fault, want := range map[string]string{
		"":           `the request for pods has no object to judge. This is a fault of whoever sent it to the policy.`,
		"bad number": `the request for pods has no object to judge ("bad number"). This is a fault of whoever sent it to the policy.`,
	} {
		r := evaluator.Request{Operation: evaluator.Create, Resource: "pods", Fault: fault}
		if v := policy.Evaluate(&r, evaluator.Cluster{}); !strings.HasSuffix(v.Message, want) {
			t.Errorf("%s, want %s", v.Message, want)
		}
	}
	workload := evaluator.Request{Operation: evaluator.Create, Group: "apps", Resource: "deployments"}
	if v := policy.Evaluate(&workload, evaluator.Cluster{}); !v.Allowed {
		t.Errorf("a workload is denied: %+v", v)
	}
}

func sources(t testing.TB) evaluator.Sources {
	t.Helper()
	w := schedulingtest.NewWorld()
	if _, err := w.Run("cluster", false, fixture, nil); err != nil {
		t.Fatal(err)
	}
	return w.Sources
}

// N4, N5, N41: no policy, and one that is disabled, ask nothing of the cluster.
func TestNoPolicyAsksNothing(t *testing.T) {
	t.Parallel()
	disabled := sources(t)
	disabled.Scheduler = &configv1.Scheduler{}
	disabled.Scheduler.Name = configv1.SchedulerName
	disabled.Scheduler.Spec.SchedulingGroups = []configv1.SchedulingGroup{
		{Name: configv1.ControlPlane, Mode: configv1.Disable},
	}
	off, _, err := evaluator.New(disabled)
	if err != nil {
		t.Fatal(err)
	}
	none, _, err := evaluator.New(evaluator.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range []*evaluator.Policy{off, none} {
		r := evaluator.Request{Operation: evaluator.Create, Resource: "pods",
			Pod: &corev1.Pod{Spec: corev1.PodSpec{NodeName: "cp1"}}}
		if v := policy.Evaluate(&r, evaluator.Cluster{}); !reflect.DeepEqual(v, evaluator.Verdict{Allowed: true}) {
			t.Errorf("verdict %+v, want to pass in silence", v)
		}
	}
}

// N69: a Scheduler from before there were groups says nothing, and is no mistake.
func TestASchedulerWithoutGroupsIsValid(t *testing.T) {
	t.Parallel()
	old := sources(t)
	old.Scheduler = &configv1.Scheduler{Spec: configv1.SchedulerSpec{MastersSchedulable: true}}
	old.Scheduler.Name = configv1.SchedulerName
	policy, ignored, err := evaluator.New(old)
	if err != nil || len(ignored) > 0 || len(policy.Effective()) != 1 ||
		policy.Effective()[0].Mode != configv1.Enable {
		t.Errorf("effective %+v, ignored %+v, error %v", policy.Effective(), ignored, err)
	}
}

// untouched are nodes that nobody may look at.
type untouched struct{ t *testing.T }

func (u untouched) Ready() bool                     { u.t.Error("asked whether the nodes are ready"); return true }
func (u untouched) Synced() bool                    { u.t.Error("asked whether the nodes are synced"); return true }
func (u untouched) Get(string) (*corev1.Node, bool) { u.t.Error("asked for a node"); return nil, false }
func (u untouched) All() iter.Seq[*corev1.Node] {
	u.t.Error("asked for all nodes")
	return func(func(*corev1.Node) bool) {}
}

// N60, N68: an ordinary pod needs no node, so it waits for no cache, and costs no memory.
func TestAnOrdinaryPodNeedsNoNodes(t *testing.T) {
	t.Parallel()
	policy, _, err := evaluator.New(sources(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"alice create pod app/web",
		"alice create pod app/web tolerate=node.kubernetes.io/not-ready:NoExecute " +
			"tolerate=node.kubernetes.io/unreachable:NoExecute prefer=zone=a",
		"alice create pod app/web tolerate=node-role.kubernetes.io/master:PreferNoSchedule",
		"alice update pod app/web -> label=a=b",
		"alice update pod app/web node=cp1 -> tolerate=*",
		"alice update pod/status app/web node=cp1",
		"system:node:cp1 create pod app/web node=cp1 mirror",
		"alice delete pod app/web node=cp1",
	} {
		asked, err := schedulingtest.ParseRequest(line)
		if err != nil {
			t.Fatal(err)
		}
		request := asked.Request
		if err := request.SetObjects(asked.Object, asked.Old); err != nil {
			t.Fatal(err)
		}
		if v := policy.Evaluate(&request, evaluator.Cluster{Nodes: untouched{t}}); !v.Allowed {
			t.Errorf("%s: %+v", line, v)
		}
	}
}
