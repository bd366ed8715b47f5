package cli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// smallPod would get a node of the pool of live.
const smallPod = "apiVersion: v1\nkind: Pod\nmetadata: {name: small, namespace: shop, uid: s, ownerReferences: " +
	"[{apiVersion: apps/v1, " +
	"kind: ReplicaSet, name: web-1, uid: r, controller: true}]}\nspec: {containers: [{name: main, resources: " +
	"{requests: {cpu: 1}}}]}\n" +
	"status: {phase: Pending, conditions: [{type: PodScheduled, status: \"False\", reason: Unschedulable}]}\n"

// lease is that of a leader, which renewed it at a time.
func lease(holder, renewed string) string {
	return "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: karpenter-leader-election, namespace: " +
		"kube-system}\n" +
		"spec: {holderIdentity: " + holder + ", leaseDurationSeconds: 15, renewTime: \"" + renewed + "\"}\n"
}

const always = "2999-01-01T00:00:00.000000Z"

// TestU19_WithoutACauseWhatIsLeftOutCounts: if no cause is found, each missing right ends the command with 2: it may
// hide a cause.
func TestU19_WithoutACauseWhatIsLeftOutCounts(t *testing.T) {
	t.Parallel()
	if code, out, failures := run(t, liveWith(t, nil, smallPod), "", "explain", "pod",
		"shop/small"); code != cli.CodeFine || failures != "" {
		t.Fatalf("with all rights: exit code %d, %q\n%s", code, failures, out)
	}
	for _, resource := range whatif.Resources() {
		if resource.Required {
			continue
		}
		client := liveWith(t, []string{resource.Resource}, smallPod)
		code, out, failures := run(t, client, "", "explain", "pod", "shop/small")
		want := resource.GroupResource().String() + ", for want of the right to list them"
		if code != cli.CodeFailed || !strings.Contains(failures, "nothing was found, and not everything was "+
			"checked: "+want) ||
			!strings.Contains(out, "small waits: LaunchPlanned") || !strings.Contains(out, "not checked: "+want) {
			t.Errorf("without %s: exit code %d, %q\n%s", resource.Resource, code, failures, out)
		}
		code, out, _ = run(t, client, "", "explain", "pod", "shop/small", "-o", "json")
		if code != cli.CodeFailed || !strings.Contains(out, `"notChecked": [`) || strings.Contains(out, "objects: ") {
			t.Errorf("without %s, in JSON: exit code %d\n%s", resource.Resource, code, out)
		}
	}
	runs := strings.Replace(smallPod, "spec: {", "spec: {nodeName: n1, ", 1)
	if code, _, failures := run(t, liveWith(t, []string{"csinodes"}, runs), "", "explain", "pod",
		"shop/small"); code != cli.CodeFine {
		t.Errorf("of a pod that runs nothing is to be checked: exit code %d, %q", code, failures)
	}
}

// TestU04_APoolIsToldOfItsLeader: the Lease says whether anybody acts on the pool. The answer says so if the Lease may
// not be read, or is not where it was looked for.
func TestU04_APoolIsToldOfItsLeader(t *testing.T) {
	t.Parallel()
	const none = "whether a controller leads: there is no lease karpenter-leader-election: no controller runs, or"
	for name, c := range map[string]struct {
		forbidden []string
		objects   []string
		code      int
		want      string
	}{
		"Joiner leads": {nil, []string{smallPod, lease("joiner-a_1", always)}, cli.CodeFine,
			"nodepool default launches: 1 node for 1 pod"},
		"nobody leads": {nil, []string{smallPod, lease("joiner-a_1", "2026-01-01T00:00:00.000000Z")},
			cli.CodeFindings, "launches nothing: ControllerSilent\n  nobody leads: the Lease kube-system/"},
		"Karpenter leads": {nil, []string{smallPod, lease("karpenter-a_1", always)}, cli.CodeFindings,
			"launches nothing: OtherController\n"},
		"no Lease": {nil, []string{smallPod}, cli.CodeFailed, "not checked: " + none},
		"no right": {[]string{"leases"}, []string{smallPod}, cli.CodeFailed,
			"not checked: who leads, for want of the right to list leases.coordination.k8s.io"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := liveWith(t, c.forbidden, c.objects...)
			code, out, failures := run(t, client, "", "explain", "nodepool", "default")
			if code != c.code || !strings.Contains(out, c.want) || (failures != "") != (c.code == cli.CodeFailed) {
				t.Errorf("exit code %d, %q; want %d and %q in\n%s", code, failures, c.code, c.want, out)
			}
			for _, action := range client.Actions() {
				if !slices.Contains([]string{"list", "get"}, action.GetVerb()) {
					t.Errorf("%s of %s: only reading is needed", action.GetVerb(), action.GetResource().Resource)
				}
			}
		})
	}
}

// TestU19_AClassThatMayNotBeReadIsNotMissing: no controller has looked at the pool yet. Without the right to list
// classes, nobody knows whether its class exists.
func TestU19_AClassThatMayNotBeReadIsNotMissing(t *testing.T) {
	t.Parallel()
	pool := "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: fresh, uid: f}\nspec: {template: {spec: " +
		"{nodeClassRef: " +
		"{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: other}}}}\n"
	for resource, says := range map[string]string{"": "fresh launches nothing: NodeClassMissing\n",
		"kwoknodeclasses": "fresh launches nothing: NoDemand\n"} {
		code, out, failures := run(t, liveWith(t, []string{resource}, pool, lease("joiner-a_1", always)), "",
			"explain", "nodepool", "fresh")
		want := map[string]int{"": cli.CodeFindings, "kwoknodeclasses": cli.CodeFailed}[resource]
		if code != want || !strings.Contains(out, says) {
			t.Errorf("without %q: exit code %d, %q; want %d and %q in\n%s", resource, code, failures, want, says, out)
		}
	}
}

// TestU04_AWorkloadIsReadWithItsReplicaSets: the pods of a Deployment belong to its ReplicaSets, so both have to be
// listed.
func TestU04_AWorkloadIsReadWithItsReplicaSets(t *testing.T) {
	t.Parallel()
	objects := []string{smallPod,
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop, uid: d}\nspec: {replicas: 2, " +
			"selector: {matchLabels: {app: web}}, ofTomorrow: 1}\n",
		"apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web-1, namespace: shop, uid: r, ownerReferences: " +
			"[{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]}\nspec: {replicas: 2, " +
			"selector: {matchLabels: {app: web}}}\n",
	}
	code, out, failures := run(t, liveWith(t, nil, objects...), "", "explain", "deploy", "shop/web")
	if want := "deployment shop/web: 1 pod, which gets a place by itself, 1 is not made yet"; code != cli.CodeFine ||
		failures != "" ||
		!strings.Contains(out, want) || !strings.Contains(out, "1 pod waits: LaunchPlanned (small)") {
		t.Errorf("exit code %d, %q; want %q in\n%s", code, failures, want, out)
	}
	for _, resource := range []string{"deployments", "replicasets"} {
		code, out, failures := run(t, liveWith(t, []string{resource}, objects...), "", "explain", "deployment", "-n",
			"shop", "web")
		if want := `(rule: {apiGroups: ["apps"], resources: [` + resource +
			`], verbs: [list]})`; code != cli.CodeFailed ||
			!strings.Contains(failures, want) || out != "" {
			t.Errorf("without %s: exit code %d, %q; want %q\n%s", resource, code, failures, want, out)
		}
	}
}

// TestU04_APauseIsReadFromTheCluster: the switch of docs/disruption.md is told, and that it may not be read.
func TestU04_APauseIsReadFromTheCluster(t *testing.T) {
	t.Parallel()
	const pause = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: joiner-disruption, namespace: joiner}\ndata: " +
		"{paused: \"true\", reason: release week}\n"
	pool := "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: web, uid: w}\nspec: {disruption: " +
		"{consolidateAfter: 0s, budgets: [{nodes: \"1\"}]}, template: {spec: {nodeClassRef: {group: " +
		"karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}}\n" +
		"status: {conditions: [{type: Ready, status: \"True\"}]}\n"
	claim := "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: a, uid: a, labels: " +
		"{karpenter.sh/nodepool: web}}\nspec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: " +
		"default}}\n" +
		"status: {providerID: \"kwok://n1\", nodeName: n1, capacity: {cpu: 4, pods: 9}, conditions: [{type: " +
		"Launched, status: \"True\"}, {type: Registered, status: \"True\"}, {type: Initialized, status: " +
		"\"True\"}, {type: Consolidatable, status: \"True\"}]}\n"
	node := "apiVersion: v1\nkind: Node\nmetadata: {name: n1, uid: node, labels: {karpenter.sh/nodepool: web, " +
		"karpenter.sh/registered: \"true\", karpenter.sh/initialized: \"true\"}}\nspec: {providerID: " +
		"\"kwok://n1\"}\nstatus: {allocatable: {cpu: 4, pods: 9}, conditions: [{type: Ready, status: \"True\"}]}\n"
	code, out, failures := run(t, liveWith(t, nil, pool, claim, node, pause), "", "explain", "node", "n1",
		"--system-namespace", "joiner")
	if code != cli.CodeFindings || failures != "" || !strings.Contains(out,
		"node n1 stays, although Empty: Paused\n  voluntary disruption is paused by ConfigMap joiner/joiner-disruption: "+
			"release week") {
		t.Errorf("exit code %d, %q\n%s", code, failures, out)
	}
	code, out, failures = run(t, liveWith(t, nil, pool, claim, node, pause), "", "status", "--system-namespace",
		"joiner")
	if code != cli.CodeFindings || failures != "" || !strings.Contains(out,
		"\nNodes that are to go and stay 1: 1 Paused   joinerctl explain node n1\n") {
		t.Errorf("status: exit code %d, %q\n%s", code, failures, out)
	}
	code, out, failures = run(t, liveWith(t, []string{"configmaps"}, pool, claim, node, pause), "", "explain", "node",
		"n1")
	if code != cli.CodeFailed || !strings.Contains(failures, "whether disruption is paused, for want of the right to "+
		"get ConfigMap kube-system/joiner-disruption") ||
		!strings.Contains(out, "it would go now: Empty") {
		t.Errorf("exit code %d, %q\n%s", code, failures, out)
	}
}

// TestU04_APauseIsAmongAllCauses: also of a node that something else keeps first, with its end.
func TestU04_APauseIsAmongAllCauses(t *testing.T) {
	t.Parallel()
	code, out, failures := ran(t, "", "explain", "node", "n3", "--all", "-f", "../../examples/status")
	if code != cli.CodeFindings || failures != "" || !strings.HasPrefix(out,
		"node n3 stays, although Drifted: DoNotDisruptNode\n") ||
		!strings.Contains(out,
			"\nalso: Paused\n  voluntary disruption is paused by ConfigMap joiner/joiner-disruption "+
				"until 2999-01-01T00:00:00Z: release week\n") ||
		!strings.Contains(out, "\n  by itself  at 2999-01-01T00:00:00Z\nalso: BudgetUsedUp\n") {
		t.Errorf("exit code %d, %q\n%s", code, failures, out)
	}
}

// TestU13_TheNearestKindAndName: a mistyped kind or name is answered with the nearest real one. kubectl's short names
// work.
func TestU13_TheNearestKindAndName(t *testing.T) {
	t.Parallel()
	simulate, explain := "../../examples/simulate", "../../examples/explain"
	for name, c := range map[string]struct {
		args []string
		want string // on standard error; "" for none
		says string
	}{
		"a kind": {[]string{"podd", "ml/train-2", "-f", simulate},
			`there is no command "podd" in joinerctl explain`, "; do you mean pod?"},
		"a kind in capital": {[]string{"NodePool", "gpu"}, `"NodePool"`, "; do you mean nodepool?"},
		"nothing like it": {[]string{"ingress", "a"}, `"ingress"`,
			": it must be one of daemonset, deployment, job, node, nodeclaim, nodepool, pod, replicaset, statefulset\n"},
		"a pod": {[]string{"po", "ml/trian-2", "-f", simulate}, "there is no pod trian-2 in namespace ml",
			"; do you mean train-2?"},
		"a node": {[]string{"no", "n11", "-f", explain}, "there is no node and no NodeClaim n11",
			"; do you mean n1?"},
		"a pool": {[]string{"np", "defualt", "-f", explain}, "there is no NodePool defualt",
			"; do you mean default?"},
		"a claim": {[]string{"nc", "spot-002", "-f", explain}, "there is no NodeClaim spot-002",
			"; do you mean spot-0002?"},
		"a workload": {[]string{"deploy", "ml/trains", "-f", simulate},
			"there is no Deployment trains in namespace ml", "; do you mean train?"},
		"elsewhere": {[]string{"sts", "search", "-f", simulate},
			"there is no StatefulSet search in namespace default", "; there is one in shop"},
		"a bad name": {[]string{"job", "a/b/c", "-f", simulate}, `the Job is "a/b/c": name it NAMESPACE/NAME`,
			""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, failures := ran(t, "", append([]string{"explain"}, c.args...)...)
			if code != cli.CodeFailed || out != "" || !strings.Contains(failures, c.want) ||
				!strings.Contains(failures, c.says) {
				t.Errorf("exit code %d, %q; want %q and %q\n%s", code, failures, c.want, c.says, out)
			}
		})
	}
	if code, out, failures := ran(t, "", "explain", "--help"); code != cli.CodeFine || failures != "" ||
		!strings.Contains(out, "nodeclaim") {
		t.Errorf("--help: exit code %d, %q\n%s", code, failures, out)
	}
	if code, out, failures := ran(t, "", "explain"); code != cli.CodeFine || failures != "" ||
		!strings.Contains(out, "nodeclaim") {
		t.Errorf("without a kind: exit code %d, %q\n%s", code, failures, out)
	}
}

// TestU22_ExplainSaysTheSameBytes: the order of the files does not matter.
func TestU22_ExplainSaysTheSameBytes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"nodepool", "gpu"}, {"deployment", "ml/train"}, {"pod", "ml/train-2", "--all"},
		{"nodeclaim", "spot-0002"},
		{"node", "n1", "--all"}} {
		folder, one, two := "../../examples/simulate/", "pools.yaml", "workloads.yaml"
		if strings.HasPrefix(args[0], "node") && args[0] != "nodepool" {
			folder, one, two = "../../examples/explain/", "cluster.yaml", "stuck.yaml"
		}
		args = append([]string{"explain", "-o", "json"}, args...)
		_, first, failures := ran(t, "", append(slices.Clone(args), "-f", folder+one, "-f", folder+two)...)
		_, second, _ := ran(t, "", append(args, "-f", folder+two, "-f", folder+one)...)
		if first != second || !strings.Contains(first, `"kind": "Explanation"`) {
			t.Errorf("%v: %q\n%s\nand in another order\n%s", args, failures, first, second)
		}
	}
}
