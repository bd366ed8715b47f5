package test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// The laws look at small random clusters, built from the lines of the script language so that a failure can be read,
// and at random requests.

var (
	modes   = []string{"Enable", "Inform", "Disable", ""}
	entries = []string{"alice", "group:admins", "ops/default", "app/sa", "user:a/b", "system:kube-scheduler",
		"system:serviceaccount:web:x"}
	users = []string{"alice", "bob", "a/b", "carol[admins]", "sa:app/sa", "sa:web/x", "system:kube-scheduler",
		"system:node:n0"}
	nodeNames = []string{"n0", "n1", "n2", "n3"}
	taints    = []string{"master:NoSchedule", "gpu=a:NoExecute", "soft:PreferNoSchedule",
		"node.kubernetes.io/not-ready:NoSchedule"}
	toleration = []string{"*", "*:NoExecute", "master", "master:NoSchedule", "master=:NoSchedule", "gpu=a", "gpu",
		"gpu=b", "node.kubernetes.io/not-ready"}
	needs      = []string{"cp", "!cp", "gpu", "!gpu", "zone=a", "zone=a|b", "name=n0", "name!=n0", "cp,zone=b"}
	namespaces = []string{"ops", "app", "web", "other"}
)

func some(t *rapid.T, label string, from []string, most int) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, most, rapid.ID[string]).Draw(t, label)
}

// world draws the lines of a cluster with the groups ControlPlane (nodes with label cp) and Gpu (label gpu).
func world(t *rapid.T) []string {
	lines := []string{}
	for _, g := range []string{"ControlPlane select=cp", "Gpu select=gpu"}[:rapid.IntRange(1, 2).Draw(t, "groups")] {
		lines = append(lines, fmt.Sprintf("group %s mode=%s users=%s", g, rapid.SampledFrom(modes).Draw(t, "mode"),
			strings.Join(some(t, "users", entries, 3), ",")))
	}
	if rapid.Bool().Draw(t, "scheduler") {
		lines = append(lines,
			fmt.Sprintf("scheduler cluster mode=%s users=%s", rapid.SampledFrom(modes).Draw(t, "scheduler mode"),
				strings.Join(some(t, "scheduler users", entries, 2), ",")))
	}
	for _, name := range some(t, "nodes", nodeNames, 4) {
		kind := rapid.SampledFrom([]string{"node", "node", "node", "live-node"}).Draw(t, "seen")
		labels := some(t, "labels", []string{"cp", "gpu", "zone=a", "zone=b"}, 3)
		lines = append(lines, fmt.Sprintf("%s %s labels=%s taints=%s", kind, name, strings.Join(labels, ","),
			strings.Join(some(t, "taints", taints, 2), ",")))
	}
	if rapid.IntRange(0, 9).Draw(t, "ready") == 0 {
		lines = append(lines, "not-ready")
	}
	return lines
}

// request draws the line of a request about a pod, a binding or a workload.
func request(t *rapid.T) string {
	user, name := rapid.SampledFrom(users).Draw(t, "user"), rapid.SampledFrom(namespaces).Draw(t, "namespace")+"/web"
	if rapid.IntRange(0, 3).Draw(t, "binding") == 0 {
		verb := rapid.SampledFrom([]string{"bind", "bind-legacy"}).Draw(t, "verb")
		return fmt.Sprintf("%s %s %s to=%s", user, verb, name, rapid.SampledFrom(nodeNames).Draw(t, "target"))
	}
	attributes := func(label string) string {
		words := []string{}
		if rapid.IntRange(0, 3).Draw(t, label+" named") == 0 {
			words = append(words, "node="+rapid.SampledFrom(nodeNames).Draw(t, label+" node"))
		}
		for _, toleration := range some(t, label+" tolerations", toleration, 2) {
			words = append(words, "tolerate="+toleration)
		}
		for _, need := range some(t, label+" needs", needs, 2) {
			words = append(words, rapid.SampledFrom([]string{"need=", "prefer="}).Draw(t, label+" how")+need)
		}
		if rapid.IntRange(0, 4).Draw(t, label+" mirror") == 0 {
			words = append(words, "mirror")
		}
		return strings.Join(words, " ")
	}
	kind := rapid.SampledFrom([]string{"pod", "pod", "pod", "deployment"}).Draw(t, "kind")
	if rapid.IntRange(0, 3).Draw(t, "update") == 0 {
		return fmt.Sprintf("%s update %s %s %s -> %s", user, kind, name, attributes("old"), attributes("new"))
	}
	return fmt.Sprintf("%s create %s %s %s", user, kind, name, attributes("pod"))
}

func build(t *rapid.T, lines []string) *schedulingtest.World {
	w := schedulingtest.NewWorld()
	if _, err := w.Run("cluster", false, strings.Join(lines, "\n"), nil); err != nil {
		t.Fatal(err)
	}
	return w
}

func evaluate(t *rapid.T, w *schedulingtest.World, line string) evaluator.Verdict {
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

// N64, N65, N66: a denial says why, in words and in values of closed sets; what passes has no message; a warning and
// the audit log speak of the same finding; the verdict is a function of its arguments and changes none of them.
func TestWhatIsSaidFitsWhatIsDecided(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, line := build(t, world(t)), request(t)
		v := evaluate(t, w, line)
		explained(t.Fatalf, v)
		if again := evaluate(t, w, line); !reflect.DeepEqual(again, v) {
			t.Fatalf("asked again: %+v, first %+v", again, v)
		}
		asked, _ := schedulingtest.ParseRequest(line)
		before := asked.Object.DeepCopyObject()
		if _, err := w.Evaluate(asked); err != nil || !reflect.DeepEqual(before, asked.Object) {
			t.Fatal("the object was changed")
		}
	})
}

// explained checks a verdict by itself; the fuzz target of the webhook asks the same.
func explained(fail func(string, ...any), v evaluator.Verdict) {
	denied := slices.ContainsFunc(v.Findings, func(f evaluator.Finding) bool { return f.Decision == evaluator.Deny })
	if v.Allowed == denied || v.Allowed != (v.Message == "") {
		fail("allowed %t, denied %t, message %q", v.Allowed, denied, v.Message)
	}
	warnings := 0
	for _, f := range v.Findings {
		if !slices.Contains(evaluator.Reasons(), f.Reason) || f.Group == "" {
			fail("finding %+v", f)
		}
		if f.Decision != evaluator.Authorized && !strings.Contains(f.Text, fmt.Sprintf("[%s/%s]", f.Group, f.Reason)) {
			fail("text %q does not carry its code", f.Text)
		}
		enforced := f.Mode == configv1.Enable || f.Reason == evaluator.OverrideMisused ||
			f.Reason == evaluator.OverrideTampered
		if f.Decision == evaluator.Deny && (!enforced || !strings.Contains(v.Message, f.Text)) {
			fail("denied in mode %s, message %q", f.Mode, v.Message)
		}
		if f.Decision != evaluator.Deny && f.Decision != evaluator.Authorized {
			warnings++
		}
	}
	if warnings != len(v.Warnings) || len(v.Samples) != len(v.Findings) ||
		(len(v.Audit()) > 0) != (len(v.Findings) > 0) {
		fail("%d warnings, %d samples and audit %v for %+v", len(v.Warnings), len(v.Samples), v.Audit(), v.Findings)
	}
}

// N17, N23, N24, N29, N52: what aims at nothing is never denied, whoever sends it and whatever is listed: a pod that
// tolerates, requires and names nothing, and a binding to a node that is known and not protected.
func TestWhatAimsAtNothingPasses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := build(t, append(world(t), "node plain"))
		user := rapid.SampledFrom(users).Draw(t, "user")
		name := rapid.SampledFrom(namespaces).Draw(t, "namespace") + "/web"
		line := fmt.Sprintf("%s create pod %s prefer=%s tolerate=node.kubernetes.io/not-ready:NoExecute", user, name,
			rapid.SampledFrom(needs).Draw(t, "wish"))
		if v := evaluate(t, w, line); !v.Allowed || len(v.Findings) > 0 {
			t.Fatalf("%s: %+v", line, v)
		}
		w.NotReady = false
		for _, line := range []string{fmt.Sprintf("%s bind %s to=plain", user, name),
			fmt.Sprintf("%s create pod %s node=plain", user, name)} {
			if v := evaluate(t, w, line); !v.Allowed || len(v.Findings) > 0 {
				t.Fatalf("%s: %+v", line, v)
			}
		}
	})
}

// H7: in no mode can anybody but a user or a group on the lists bring the annotation of the override onto a pod, so
// that one that is found on it when the mode has become Enable can be believed.
func TestNobodyElseBringsTheOverride(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := build(t, append(world(t), "override Enable"))
		name := rapid.SampledFrom(namespaces).Draw(t, "namespace") + "/web"
		someone := rapid.SampledFrom([]string{"bob", "sa:app/sa", "sa:web/x", "system:node:n0"}).Draw(t, "user")
		anybody := rapid.SampledFrom(users).Draw(t, "anybody")
		line := rapid.SampledFrom([]string{
			someone + " create pod " + name + " override=mine", someone + " create pod " + name +
				" node=n0 override=mine",
			anybody + " create pod " + name + " owner=ReplicaSet/web override=mine", anybody + " update pod " + name +
				" -> override=mine",
			anybody + " update pod " + name + " override=yours -> override=mine", anybody + " update pod/status " +
				name + " -> override=mine",
			anybody + " bind " + name + " to=n0 annotation=" + evaluator.OverrideAnnotation + "=mine",
			anybody + " bind-legacy " + name + " to=n1 annotation=" + evaluator.OverrideAnnotation + "=mine",
		}).Draw(t, "line")
		v := evaluate(t, w, line)
		explained(t.Fatalf, v)
		if v.Allowed {
			t.Fatalf("%s passed: %+v", line, v)
		}
	})
}

// the policy never refuses what it writes itself. A pod gets the annotation only if, without it, its namespace
// is a reason to refuse the pod, now or with the policy enforced, and only if the pod passes with it. No pod that
// passes is refused because of it.
func TestWhatIsWrittenAutomaticallyHelps(t *testing.T) {
	t.Parallel()
	written := 0
	rapid.Check(t, func(t *rapid.T) {
		lines := world(t)
		for i, line := range lines { // seldom does chance put somebody on all lists
			if strings.HasPrefix(line, "group ") && rapid.IntRange(0, 3).Draw(t, "listed") > 0 {
				lines[i] = strings.TrimSuffix(strings.Replace(line, "users=", "users=alice,group:admins,", 1), ",")
			}
		}
		w := build(t, append(lines, "override Automatic"))
		for range 30 {
			if helps(t, w, request(t)) {
				written++
			}
		}
	})
	if written == 0 {
		t.Error("nothing was written")
	}
}

// helps says whether the policy writes the annotation on what a line creates, and checks that this helps.
func helps(t *rapid.T, w *schedulingtest.World, line string) bool {
	asked, err := schedulingtest.ParseRequest(line)
	if err != nil {
		t.Fatal(err)
	}
	admitted, err := w.Admit(asked)
	if err != nil {
		t.Fatal(err)
	}
	if reflect.DeepEqual(admitted, asked) {
		return false
	}
	plain := evaluate(t, w, line)
	refused := func(f evaluator.Finding) bool {
		return (f.Decision == evaluator.Deny || f.Decision == evaluator.InformOnly) && !f.NamespaceAuthorized &&
			f.ActorAuthorized
	}
	if !slices.ContainsFunc(plain.Findings, refused) || !strings.Contains(line, " create pod ") {
		t.Fatalf("%s needs no annotation: %+v", line, plain)
	}
	after, err := w.Evaluate(admitted)
	if err != nil {
		t.Fatal(err)
	}
	explained(t.Fatalf, after)
	if !after.Allowed || !slices.ContainsFunc(after.Findings,
		func(f evaluator.Finding) bool { return f.Decision == evaluator.Overridden }) {
		t.Fatalf("%s with the annotation: %+v", line, after)
	}
	return true
}

// N40, N41: Inform denies nothing and finds what Enable finds; Disable finds nothing.
func TestModesDifferInWhatTheyDoOnly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines, line := world(t), request(t)
		in := func(mode configv1.GroupMode) evaluator.Verdict {
			w := build(t, lines)
			w.Sources.Scheduler = nil
			for i := range w.Sources.Config.Groups {
				w.Sources.Config.Groups[i].Mode = mode
			}
			return evaluate(t, w, line)
		}
		enable, inform, disable := in(configv1.Enable), in(configv1.Inform), in(configv1.Disable)
		if !inform.Allowed || !disable.Allowed || len(disable.Findings) > 0 {
			t.Fatalf("inform %+v, disable %+v", inform, disable)
		}
		if len(enable.Findings) != len(inform.Findings) {
			t.Fatalf("enable finds %+v, inform %+v", enable.Findings, inform.Findings)
		}
		for i, f := range enable.Findings {
			want := f.Decision
			if want == evaluator.Deny {
				want = evaluator.InformOnly
			}
			if g := inform.Findings[i]; g.Decision != want || g.Reason != f.Reason || g.Group != f.Group ||
				g.Node != f.Node {
				t.Fatalf("enable finds %+v, inform %+v", f, g)
			}
		}
	})
}

// N7, N9: another entry, or another group of the user, never turns an allowed request into a denied one.
func TestMoreAuthorizationNeverDenies(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines, line := world(t), request(t)
		w := build(t, lines)
		before := evaluate(t, w, line)
		joined := line
		user, rest, _ := strings.Cut(line, " ")
		if !strings.HasPrefix(user, "sa:") && !strings.HasPrefix(user, "system:node:") {
			joined = strings.TrimSuffix(strings.Replace(user, "[", "[admins,", 1), "]")
			if !strings.Contains(joined, "[") {
				joined += "[admins"
			}
			joined += "] " + rest
		}
		if after := evaluate(t, w, joined); before.Allowed && !after.Allowed {
			t.Fatalf("%s passes, %s does not: %s", line, joined, after.Message)
		}
		for i := range w.Sources.Config.Groups {
			list := &w.Sources.Config.Groups[i].AuthorizedUsers
			*list = append(*list, rapid.SampledFrom(entries).Draw(t, "another entry"))
		}
		if after := evaluate(t, w, line); before.Allowed && !after.Allowed {
			t.Fatalf("with more entries: %s", after.Message)
		}
	})
}

// N16, N45, N51: what a user is told to have listed is enough.
func TestTheRemedyIsEnough(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, line := build(t, world(t)), request(t)
		before := evaluate(t, w, line)
		asked, _ := schedulingtest.ParseRequest(line)
		for i := range w.Sources.Config.Groups {
			list := &w.Sources.Config.Groups[i].AuthorizedUsers
			for _, f := range before.Findings {
				_, told, found := strings.Cut(f.Text, "administrator to add ")
				if !found {
					continue
				}
				told, _, _ = strings.Cut(told, " to authorizedUsers")
				for entry := range strings.SplitSeq(told, " and ") {
					*list = append(*list, strings.Trim(entry, `"`))
				}
			}
		}
		for _, f := range evaluate(t, w, line).Findings {
			told := slices.ContainsFunc(before.Findings, func(b evaluator.Finding) bool {
				return b.Group == f.Group && strings.Contains(b.Text, "to add ")
			})
			if told && f.Decision != evaluator.Authorized {
				t.Fatalf("%s by %s: first %+v, and after what was told %+v", line, asked.User.Name, before.Findings, f)
			}
		}
	})
}

// F1, N49: both paths of a binding are judged alike, and like a pod that is created on the node. Only the wording
// differs.
func TestEveryWayToANodeIsJudgedAlike(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := build(t, world(t))
		user := rapid.SampledFrom(users).Draw(t, "user")
		name := rapid.SampledFrom(namespaces).Draw(t, "namespace") + "/web"
		node := rapid.SampledFrom(nodeNames).Draw(t, "node")
		bound := evaluate(t, w, fmt.Sprintf("%s bind %s to=%s", user, name, node))
		legacy := evaluate(t, w, fmt.Sprintf("%s bind-legacy %s to=%s", user, name, node))
		created := evaluate(t, w, fmt.Sprintf("%s create pod %s node=%s", user, name, node))
		if bound.Allowed != legacy.Allowed || bound.Allowed != created.Allowed ||
			!maps.Equal(bound.Audit(), legacy.Audit()) {
			t.Fatalf("bound %+v, legacy %+v, created %+v", bound, legacy, created)
		}
	})
}

// H9: which nodes a pod aims at, checked against a naive reading. If a pod may run on a protected node, by its
// tolerations and selectors, and there is no finding, then it may also run elsewhere, and the node has no taint that
// it tolerates.
func TestToleratedMeansTheSchedulerWouldTakeIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := build(t, world(t))
		w.NotReady = false
		words := []string{}
		for _, toleration := range some(t, "tolerations", toleration, 3) {
			words = append(words, "tolerate="+toleration)
		}
		v := evaluate(t, w, "nobody create pod nowhere/web "+strings.Join(words, " "))
		asked, _ := schedulingtest.ParseRequest("nobody create pod nowhere/web " + strings.Join(words, " "))
		pod := asked.Object.(*corev1.Pod)
		for _, g := range []struct{ name, label string }{{"ControlPlane", "cp"}, {"Gpu", "gpu"}} {
			want := false
			for node := range w.All() {
				_, member := node.Labels[g.label]
				want = want || member && naivelyTolerated(pod, node)
			}
			got := slices.ContainsFunc(v.Findings, func(f evaluator.Finding) bool { return f.Group == g.name })
			if active := slices.ContainsFunc(groupsInForce(t, w),
				func(name string) bool { return name == g.name }); got != (want && active) {
				t.Fatalf("group %s: found %t, want %t and in force %t, words %v", g.name, got, want, active, words)
			}
		}
	})
}

func groupsInForce(t *rapid.T, w *schedulingtest.World) []string {
	policy, _, err := evaluator.New(w.Sources)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, g := range policy.Effective() {
		if g.Mode != configv1.Disable {
			names = append(names, g.Group)
		}
	}
	return names
}

func naivelyTolerated(pod *corev1.Pod, node *corev1.Node) bool {
	counted := 0
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			continue
		}
		counted++
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == "" || t.Key == taint.Key) &&
				(t.Operator == corev1.TolerationOpExists || t.Value == taint.Value)
		}) {
			return false
		}
	}
	return counted > 0
}
