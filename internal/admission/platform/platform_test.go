package platform_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/admission/platform"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// maxActors is how many actors the list may have beside groups of people: each of them may put any listed
// namespace's pods on the nodes.
const maxActors = 12

func load(t *testing.T) platform.List {
	t.Helper()
	list, err := platform.Load()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// enabled is a cluster of a node with the given taint and another one, protected by the list.
func enabled(t *testing.T, list platform.List, taint string) *schedulingtest.World {
	t.Helper()
	world := schedulingtest.NewWorld()
	world.Sources.Config = list.Config()
	world.Sources.Config.Groups[0].Mode = configv1.Enable
	const role = "node-role.kubernetes.io/"
	out, err := world.Run("cluster", false,
		"node cp1 labels="+role+"control-plane=,"+role+"master= taints="+role+taint+":NoSchedule\nnode w1", nil)
	if err != nil || !strings.HasPrefix(out, "ControlPlane Enable") {
		t.Fatalf("%s, %v", out, err)
	}
	return world
}

// ask sends a request, and returns its verdict.
func ask(t *testing.T, world *schedulingtest.World, line string) evaluator.Verdict {
	t.Helper()
	asked, err := schedulingtest.ParseRequest(line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	verdict, err := world.Evaluate(asked)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return verdict
}

// in mode Enable, the pods of each row reach a control plane node as their actor puts them there, by an entry of
// the list and not because nothing was judged. Alice can put none of them there, and the actor no pod of another
// namespace.
func TestA40_EveryRowIsReplayed(t *testing.T) {
	t.Parallel()
	list := load(t)
	for _, taint := range []string{"master", "control-plane"} {
		world := enabled(t, list, taint)
		for _, row := range list.Components {
			for _, step := range row.Replay("pod", "cp1") {
				line := step.Line(step.User)
				verdict := ask(t, world, line)
				mirror := row.Entry == "" || strings.HasSuffix(line, " mirror") // nobody's entry is asked for
				if !verdict.Allowed || !mirror &&
					(len(verdict.Findings) != 1 || verdict.Findings[0].Decision != evaluator.Authorized) {
					t.Errorf("%s: allowed %v, %+v", line, verdict.Allowed, verdict.Findings)
				}
				if alice := step.Line("alice"); ask(t, world, alice).Allowed {
					t.Errorf("%s: allowed", alice)
				}
				elsewhere := strings.Replace(line, row.Namespace+"/", "app/", 1)
				if verdict := ask(t, world, elsewhere); verdict.Allowed != strings.HasSuffix(line, " mirror") {
					t.Errorf("%s: allowed %v", elsewhere, verdict.Allowed)
				}
			}
		}
	}
}

// each way of a pod to its node is a request, or two where the scheduler binds it.
func TestA40_AReplayIsEveryWay(t *testing.T) {
	t.Parallel()
	row := platform.Component{Namespace: "ns"}
	for _, how := range []platform.How{platform.Deployment, platform.Job, platform.Pod, platform.DaemonSet,
		platform.NodeName, platform.Affinity, platform.Static} {
		row.Pods = append(row.Pods, platform.Way{How: how, Actor: "ns/" + strings.ToLower(string(how))})
	}
	row.Pods = append(row.Pods, platform.Way{How: platform.NodeName, Actor: "somebody"})
	const aims = "tolerate=node-role.kubernetes.io/master:NoSchedule " +
		"tolerate=node-role.kubernetes.io/control-plane:NoSchedule " +
		"select=node-role.kubernetes.io/control-plane="
	var got []string
	for _, step := range row.Replay("p", "cp1") {
		got = append(got, strings.Replace(step.Line(step.User), aims, "AIMS", 1))
	}
	want := []string{
		"sa:ns/deployment create pod ns/p-deployment-0 AIMS owner=ReplicaSet/own",
		"system:kube-scheduler bind ns/p-deployment-0 to=cp1",
		"sa:ns/job create pod ns/p-job-1 AIMS owner=Job/own", "system:kube-scheduler bind ns/p-job-1 to=cp1",
		"sa:ns/pod create pod ns/p-pod-2 AIMS", "system:kube-scheduler bind ns/p-pod-2 to=cp1",
		"sa:ns/daemonset create pod ns/p-daemonset-3 tolerate=* need=name=cp1 owner=DaemonSet/own",
		"system:kube-scheduler bind ns/p-daemonset-3 to=cp1",
		"sa:ns/nodename create pod ns/p-nodename-4 tolerate=* node=cp1",
		"sa:ns/affinity create pod ns/p-affinity-5 tolerate=* need=kubernetes.io/hostname=cp1",
		"system:kube-scheduler bind ns/p-affinity-5 to=cp1",
		"system:node:cp1 create pod ns/p-static-6 tolerate=* node=cp1 mirror",
		"somebody create pod ns/p-nodename-7 tolerate=* node=cp1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// the configuration is one that a door reads as it is, and a node with a taint of the control plane is of the
// group before it has its label.
func TestA39_TheConfigurationIsReadAsItIs(t *testing.T) {
	t.Parallel()
	list := load(t)
	text, err := yaml.Marshal(list.Config())
	if err != nil {
		t.Fatal(err)
	}
	if read, err := evaluator.Decode(text); err != nil || !reflect.DeepEqual(read, list.Config()) {
		t.Errorf("%v: %+v", err, read)
	}
	for _, taint := range []string{"master", "control-plane"} {
		world := enabled(t, list, taint)
		node := "node new taints=node-role.kubernetes.io/" + taint + ":NoSchedule"
		if _, err := world.Run("cluster", false, node, nil); err != nil {
			t.Fatal(err)
		}
		if ask(t, world, "alice create pod app/pod node=new").Allowed {
			t.Errorf("a node with the taint %s is not of the group", taint)
		}
	}
}

// actors are few, each row of one is used or says why it is there, and no entry of a namespace makes its
// accounts actors (H5).
func TestA40_ActorsAreFew(t *testing.T) {
	t.Parallel()
	list := load(t)
	if len(list.Actors) > maxActors {
		t.Errorf("%d actors; at most %d", len(list.Actors), maxActors)
	}
	world := enabled(t, list, "master")
	actors := map[string]bool{}
	for _, a := range list.Actors {
		actors[a.Actor] = true
	}
	for _, row := range list.Components {
		if row.Entry == "" || row.Account == "" {
			continue
		}
		for name := range strings.SplitSeq(row.Account, ", ") {
			line := "sa:" + row.Namespace + "/" + name + " create pod " + row.Namespace + "/own node=cp1"
			if got := ask(t, world, line).Allowed; got != actors[row.Namespace+"/"+name] {
				t.Errorf("%s: allowed %v", line, got)
			}
		}
	}
}

// a row that is not whole is told, with its place.
func TestA40_ARowWithoutASourceFails(t *testing.T) {
	t.Parallel()
	const whole = `
actors: [{actor: ns/op, entry: "user:system:serviceaccount:ns:op", does: all, sources: [repo@0123456789 a/b.yaml]}]
people: [{actor: "group:admins", entry: "group:admins", does: all, sources: [repo@v1.2 a/b.yaml +3]}]
components:
- {namespace: ns, workloads: 1 Pod, pods: [{how: Pod, actor: ns/op}], entry: "namespace:ns",
   sources: [repo@0123456789 a/b.go]}
- {namespace: static, workloads: 1 Pod, pods: [{how: Static}], sources: [repo@0123456789 a/b.go]}
`
	if _, err := platform.Read([]byte(whole)); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ from, to, want string }{
		{"entry: \"namespace:ns\",\n   sources: [repo@0123456789 a/b.go]", `entry: "namespace:ns"`,
			"components[0].sources is missing"},
		{`does: all, sources: [repo@0123456789 a/b.yaml]`, "does: all", "actors[0].sources is missing"},
		{`, sources: [repo@v1.2 a/b.yaml +3]`, "", "people[0].sources is missing"},
		{"[repo@0123456789 a/b.go]", "[seen somewhere]",
			`components[0].sources[0] is "seen somewhere": it must be REPOSITORY@COMMIT PATH`},
		{`entry: "namespace:ns"`, "entry: ns/op", `components[0].entry is "ns/op": it must be "namespace:ns"`},
		{"how: Static", `how: Static, actor: ns/op`, `components[1].pods[0].actor is "ns/op"`},
		{"{how: Pod, actor: ns/op}", `{how: Pod, actor: ns/other}`,
			`components[0].pods[0].actor is "ns/other": it must be one of the actors`},
		{"how: Pod", "how: Magic", `components[0].pods[0].how is "Magic"`},
		{"pods: [{how: Static}], ", "", "components[1].pods is missing"},
		{"namespace: static", "namespace: Static", `components[1].namespace is "Static": it must be the name`},
		{"namespace: static", "namespace: ns", `components[1].namespace is "ns" after "ns"`},
		{`actor: ns/op, entry: "user:system:serviceaccount:ns:op"`, `actor: "", entry: ""`,
			`actors[0].entry is "": for the actor ""`},
		{"namespace: static", "namespace: nr", `components[1].namespace is "nr" after "ns"`},
		{"user:system:serviceaccount:ns:op", "ns/op",
			`actors[0].entry is "ns/op": for the actor "ns/op" it must be "user:`},
		{`{actor: "group:admins", entry: "group:admins"`, `{actor: ns/op, entry: "user:system:serviceaccount:ns:op"`,
			`people[0].actor is "ns/op" a second time`},
		{"static, workloads: 1 Pod", "static, workload: 1 Pod", `unknown field "workload"`},
	} {
		changed := strings.Replace(whole, row.from, row.to, 1)
		if _, err := platform.Read([]byte(changed)); changed == whole || err == nil ||
			!strings.Contains(err.Error(), row.want) {
			t.Errorf("%q for %q: %v, want %s", row.to, row.from, err, row.want)
		}
	}
}
