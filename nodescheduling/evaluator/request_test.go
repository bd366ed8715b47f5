package evaluator_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// N62, N63, H15: only these requests place pods, or make who does. Any other passes, whatever objects it carries.
func TestWhichRequestsAreJudged(t *testing.T) {
	t.Parallel()
	policy := policyOf(t, sources(t))
	w := worldOf(t, fixture)
	placed := corev1.PodSpec{NodeName: "cp1"}
	judged := map[string]bool{
		"CREATE  pods ": true, "UPDATE  pods ": true, "CREATE  pods binding": true, "CREATE  bindings ": true,
	}
	for _, workload := range []string{
		" replicationcontrollers", "apps deployments", "apps daemonsets", "apps statefulsets", "apps replicasets",
		"batch jobs", "batch cronjobs",
	} {
		judged["CREATE "+workload+" "], judged["UPDATE "+workload+" "] = true, true
	}
	for _, operation := range []evaluator.Operation{evaluator.Create, evaluator.Update, "DELETE",
		"CONNECT"} {
		for _, group := range []string{"", "apps", "batch", "example.com"} {
			for _, resource := range []string{
				"pods", "bindings", "replicationcontrollers", "deployments", "daemonsets", "statefulsets",
				"replicasets", "jobs", "cronjobs", "podtemplates",
			} {
				for _, subresource := range []string{"", "status", "binding", "scale"} {
					r := evaluator.Request{
						Operation: operation, Group: group, Resource: resource, Subresource: subresource,
						Namespace: "app", Name: "web",
						User: evaluator.User{Name: "alice"}, Pod: &corev1.Pod{Spec: placed}, OldPod: &corev1.Pod{},
						Binding: &corev1.Binding{Target: corev1.ObjectReference{Name: "cp1"}},
						Workload: &evaluator.Workload{Kind: "Some",
							Template: &corev1.PodTemplateSpec{Spec: placed}},
					}
					line := fmt.Sprintf("%s %s %s %s", operation, group, resource, subresource)
					if v := policy.Evaluate(&r, w.Cluster()); (len(v.Findings) > 0) != judged[line] {
						t.Errorf("%s: %+v", line, v)
					}
				}
			}
		}
	}
}

// H15, N62: objects that lack a part are judged by what they have, and are no reason to panic.
func TestObjectsThatLackAPart(t *testing.T) {
	t.Parallel()
	policy := policyOf(t, sources(t))
	w := worldOf(t, fixture)
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "cp1"}}
	whole, bare := &evaluator.Workload{Kind: "ReplicationController",
		Template: template}, &evaluator.Workload{Kind: "ReplicationController"}
	for name, c := range map[string]struct {
		operation     evaluator.Operation
		workload, old *evaluator.Workload
		found         int
	}{
		"created without template":         {evaluator.Create, bare, nil, 0},
		"its template taken away":          {evaluator.Update, bare, whole, 0},
		"its template added":               {evaluator.Update, whole, bare, 1},
		"updated, what was before unknown": {evaluator.Update, whole, nil, 1},
		"updated, unchanged":               {evaluator.Update, whole, whole, 0},
	} {
		r := evaluator.Request{Operation: c.operation, Resource: "replicationcontrollers", Namespace: "app",
			Workload: c.workload, OldWorkload: c.old}
		if v := policy.Evaluate(&r, w.Cluster()); !v.Allowed || len(v.Findings) != c.found {
			t.Errorf("%s: %+v, want %d findings", name, v, c.found)
		}
	}
	near := &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}}}
	r := evaluator.Request{Operation: evaluator.Create, Resource: "pods", Namespace: "app", Pod: near}
	if v := policy.Evaluate(&r, w.Cluster()); !v.Allowed || len(v.Findings) > 0 {
		t.Errorf("an affinity to pods only: %+v", v)
	}
}

// H8: an entry authorizes whom it names. An empty name is nobody's, and is not authorized by an entry for something
// else.
func TestAnEmptyNameIsNobody(t *testing.T) {
	t.Parallel()
	w := worldOf(t,
		"group ControlPlane select=cp mode=Enable users=alice,group:admins,ops/x\noverride Enable\nnode cp1 labels=cp")
	for _, c := range []struct {
		user    evaluator.User
		allowed bool
	}{
		{evaluator.User{}, false},
		{evaluator.User{Groups: []string{""}}, false},
		{evaluator.User{Groups: []string{"", "admins"}}, true},
	} {
		for _, annotations := range []map[string]string{nil, {evaluator.OverrideAnnotation: "why"}} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
				Spec: corev1.PodSpec{NodeName: "cp1"}}
			r := evaluator.Request{Operation: evaluator.Create, Resource: "pods", Namespace: "ops",
				User: c.user, Pod: pod}
			if v := policyOf(t, w.Sources).Evaluate(&r, w.Cluster()); v.Allowed != c.allowed {
				t.Errorf("%+v, annotations %v: %+v", c.user, annotations, v)
			}
		}
	}
}

// H7, A-09 (d), A-17: the annotation may be taken away by who could have written it, and its value has 512 bytes at
// most.
func TestTheOverrideAnnotation(t *testing.T) {
	t.Parallel()
	w := worldOf(t, fixture+"\noverride Enable")
	with := func(reason string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{evaluator.OverrideAnnotation: reason}},
		}
	}
	for name, c := range map[string]struct {
		request evaluator.Request
		allowed bool
	}{
		"taken away": {evaluator.Request{Operation: evaluator.Update, Pod: &corev1.Pod{}, OldPod: with("why"),
			User: evaluator.User{Name: "system:admin"}}, true},
		"as long as allowed": {evaluator.Request{Operation: evaluator.Create,
			Pod:  with(strings.Repeat("x", 512)),
			User: evaluator.User{Name: "system:admin"}}, true},
		"too long": {evaluator.Request{Operation: evaluator.Create, Pod: with(strings.Repeat("x", 513)),
			User: evaluator.User{Name: "system:admin"}}, false},
	} {
		r := c.request
		r.Resource, r.Namespace = "pods", "app"
		v := policyOf(t, w.Sources).Evaluate(&r, w.Cluster())
		if v.Allowed != c.allowed || !c.allowed && !strings.Contains(v.Message, "is too long") {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// N66: misuse of the override is counted with the mode of the group, like everything else.
func TestMisuseIsCountedWithItsMode(t *testing.T) {
	t.Parallel()
	v := verdict(t, "override Enable\nscheduler cluster mode=Inform", "alice create pod app/web override=mine")
	want := evaluator.Sample{Group: "ControlPlane", Mode: "Inform", Decision: "deny", Resource: "pods",
		Reason: "OverrideMisused"}
	if len(v.Samples) != 1 || v.Samples[0] != want {
		t.Errorf("%+v, want %+v", v.Samples, want)
	}
}

// N64: a pod is called by its name, or by what its name will begin with.
func TestHowAPodIsCalled(t *testing.T) {
	t.Parallel()
	policy := policyOf(t, sources(t))
	w := worldOf(t, fixture)
	for want, c := range map[string]struct{ asked, name, generate string }{
		`pod "web" in`:   {"web", "web", "other-"},
		`pod "path" in`:  {"path", "", ""},
		`pod "own" in`:   {"", "own", "own-"},
		`pod "web-…" in`: {"", "", "web-"},
		`pod "" in`:      {"", "", ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: c.name, GenerateName: c.generate},
			Spec: corev1.PodSpec{NodeName: "cp1"}}
		r := evaluator.Request{Operation: evaluator.Create, Resource: "pods", Namespace: "app",
			Name: c.asked, Pod: pod}
		if v := policy.Evaluate(&r, w.Cluster()); !strings.Contains(v.Message, want) {
			t.Errorf("%+v: %s, want %s", c, v.Message, want)
		}
	}
	nameless := evaluator.Request{Operation: evaluator.Create, Resource: "bindings", Namespace: "app",
		Binding: &corev1.Binding{Target: corev1.ObjectReference{Name: "cp1"}}}
	if v := policy.Evaluate(&nameless, w.Cluster()); !strings.Contains(v.Message, `pod "" in`) {
		t.Errorf("a binding without a name: %+v", v)
	}
}

// N20: a toleration that compares numbers opens a node like any other, and is named with its operator.
func TestATolerationThatCompares(t *testing.T) {
	t.Parallel()
	w := worldOf(t, "group ControlPlane select=cp mode=Enable users=\nnode cp1 labels=cp taints=load=5:NoSchedule")
	for operator, want := range map[corev1.TolerationOperator]string{
		"Gt": "its toleration of load Gt 3:NoSchedule.", "Lt": "",
	} {
		toleration := corev1.Toleration{Key: "load", Operator: operator, Value: "3",
			Effect: corev1.TaintEffectNoSchedule}
		pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{toleration}}}
		r := evaluator.Request{Operation: evaluator.Create, Resource: "pods", Namespace: "app", Pod: pod}
		v := policyOf(t, w.Sources).Evaluate(&r, w.Cluster())
		if v.Allowed != (want == "") || !strings.Contains(v.Message, want) {
			t.Errorf("%s: %+v, want %q", operator, v, want)
		}
	}
}

// A door that decodes a kind which is not looked at is told so.
func TestObjectsThatAreNotLookedAt(t *testing.T) {
	t.Parallel()
	r := evaluator.Request{}
	if err := r.SetObjects(&corev1.ConfigMap{}, nil); err == nil ||
		!strings.Contains(err.Error(), "ConfigMap is not looked at") {
		t.Errorf("error %v", err)
	}
	if err := r.SetObjects(&appsv1.Deployment{}, nil); err != nil || r.Workload == nil ||
		r.Workload.Kind != "Deployment" {
		t.Errorf("error %v, workload %+v", err, r.Workload)
	}
}

// N2, N66: how many groups there may be, and how long an entry; what is too long is shown in part.
func TestHowMuchAConfigurationHolds(t *testing.T) {
	t.Parallel()
	selector := metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	groups := func(n int) *v1alpha1.NodeSchedulingPolicyConfig {
		config := &v1alpha1.NodeSchedulingPolicyConfig{}
		for i := range n {
			config.Groups = append(config.Groups, v1alpha1.SchedulingPolicyGroup{
				Name: configv1.GroupName(fmt.Sprintf("G%d", i)), LabelSelector: selector, AuthorizedUsers: []string{},
			})
		}
		return config
	}
	entry := func(text string) *v1alpha1.NodeSchedulingPolicyConfig {
		config := groups(1)
		config.Groups[0].AuthorizedUsers = []string{text}
		return config
	}
	shown := `groups[0].authorizedUsers[0] is "` + strings.Repeat("x", 253) + `…": it must have at most 1024 bytes`
	for name, c := range map[string]struct {
		config *v1alpha1.NodeSchedulingPolicyConfig
		want   string
	}{
		"32 groups":  {groups(32), ""},
		"33 groups":  {groups(33), "groups has 33 entries: at most 32 are allowed"},
		"1024 bytes": {entry(strings.Repeat("x", 1024)), ""},
		"1025 bytes": {entry(strings.Repeat("x", 1025)), shown},
		"no groups": {&v1alpha1.NodeSchedulingPolicyConfig{},
			"groups is missing: it must be a list, which may be empty"},
	} {
		policy, _, err := evaluator.New(evaluator.Sources{Config: c.config})
		if c.want == "" && (err != nil || len(policy.Effective()) != len(c.config.Groups)) {
			t.Errorf("%s: error %v", name, err)
		}
		if c.want != "" && (err == nil || err.Error() != c.want || policy != nil) {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
	}
	long := strings.Repeat("y", 253)
	if v := verdict(t, "", long+" create pod app/web node=cp1"); !strings.Contains(v.Message,
		`User "`+long+`" is not authorized`) {
		t.Errorf("a name of 253 bytes is not shown whole: %s", v.Message)
	}
}

// N1: what is read is what was written.
func TestDecodeReadsTheConfiguration(t *testing.T) {
	t.Parallel()
	config, err := evaluator.Decode([]byte(`
apiVersion: scheduling.openshift.io/v1alpha1
kind: NodeSchedulingPolicyConfig
emergencyOverride: Enable
groups:
- name: ControlPlane
  labelSelector: {matchLabels: {cp: ""}}
  mode: Inform
  authorizedUsers: [ops/default]
`))
	if err != nil || config == nil || len(config.Groups) != 1 || config.Groups[0].Mode != configv1.Inform ||
		config.Groups[0].AuthorizedUsers[0] != "ops/default" || config.EmergencyOverride != v1alpha1.OverrideEnable {
		t.Errorf("%+v, error %v", config, err)
	}
}

// N7, N11: each part of Scheduler that has no effect is said, and the parts behind it have theirs. Of two groups of
// one name the first holds.
func TestTheRestOfSchedulerHolds(t *testing.T) {
	t.Parallel()
	s := sources(t)
	s.Scheduler = &configv1.Scheduler{ObjectMeta: metav1.ObjectMeta{Name: configv1.SchedulerName}}
	s.Config.Groups = append(s.Config.Groups, v1alpha1.SchedulingPolicyGroup{
		Name: "Edge", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"edge": ""}},
		AuthorizedUsers: []string{},
	})
	s.Scheduler.Spec.SchedulingGroups = []configv1.SchedulingGroup{
		{Name: "Unknown", AuthorizedUsers: []string{"eve", "group:"}},
		{Name: configv1.ControlPlane, Mode: "Enforce", AuthorizedUsers: []string{"group:", "alice"}},
		{Name: configv1.ControlPlane, Mode: configv1.Disable, AuthorizedUsers: []string{"mallory"}},
		{Name: "Edge", Mode: configv1.Inform, AuthorizedUsers: []string{"bob"}},
	}
	policy, ignored, err := evaluator.New(s)
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, i := range ignored {
		fields = append(fields, i.Field+" "+i.Why)
	}
	want := `spec.schedulingGroups[0].name is "Unknown": the configuration has no such group
spec.schedulingGroups[1].mode is "Enforce": it must be empty, Disable, Enable or Inform
spec.schedulingGroups[1].authorizedUsers[0] is "group:": after group: the name of a group must follow
spec.schedulingGroups[2].name is "ControlPlane" a second time: the first holds`
	if got := strings.Join(fields, "\n"); got != want {
		t.Errorf("ignored\n%s\nwant\n%s", got, want)
	}
	if got := fmt.Sprint(policy.Effective()); got != "[{ControlPlane Enable 4} {Edge Inform 1}]" {
		t.Errorf("in force %s", got)
	}
	var entries []string
	for _, e := range policy.Entries() {
		entries = append(entries, fmt.Sprintf("%s %s %s", e.Group, e.Text, e.Source))
	}
	if got, want := strings.Join(entries,
		", "), "ControlPlane system:kube-scheduler Config, ControlPlane ops/default Config, "+
		"ControlPlane system:admin Config, ControlPlane alice Scheduler, Edge bob Scheduler"; got != want {
		t.Errorf("entries %s, want %s", got, want)
	}
}

// N4: no policy has no entries, and no node is of a group of it.
func TestNoPolicyHasNothing(t *testing.T) {
	t.Parallel()
	var none *evaluator.Policy
	inspections, err := none.Inspect(&corev1.Pod{}, evaluator.Cluster{})
	if none.Effective() != nil || none.Entries() != nil || none.GroupsOf(&corev1.Node{}) != nil ||
		inspections != nil || err != nil {
		t.Error("no policy protects something")
	}
}
