package cli_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic/fake"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// aPool is a pool with a pod that needs a node, and a node on which Joiner itself runs.
const aPool = `apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec: {template: {spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}, requirements: []}}}
---
apiVersion: v1
kind: Node
metadata: {name: own}
spec: {taints: [{key: own, effect: NoSchedule}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}
`

// joinerPod is a pod of Joiner's chart whose container has these fields.
func joinerPod(name, created, container string) string {
	return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: joiner, creationTimestamp: \"" +
		created + "\", labels: {app.kubernetes.io/name: karpenter, joiner.sh/program: joiner}}\n" +
		"spec: {nodeName: own, tolerations: [{operator: Exists}], containers: [{name: mesh, args: [--max-nodes=7]}, " +
		"{name: controller, " + container + "}]}\nstatus:\n  phase: Running\n"
}

// TestU03_PlansHaveTheSettingsOfTheController: a plan for a cluster is made with the settings that the pod of its
// controller shows, unless the user gives others. The last line says which ones they are, and what is not considered.
func TestU03_PlansHaveTheSettingsOfTheController(t *testing.T) {
	t.Parallel()
	const (
		old, late = "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"
		ready     = "  conditions: [{type: Ready, status: \"True\"}]\n" // of the pod before it
		allOn     = "ReservedCapacity=true,StaticCapacity=true,NodeOverlay=true,CapacityBuffer=true,TerminateFirstDrift=true"
		static    = "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: static}\nspec: {replicas: 1, template: " +
			"{spec: {taints: [{key: own, effect: NoSchedule}], requirements: [], nodeClassRef: {group: karpenter.kwok.sh, " +
			"kind: KWOKNodeClass, name: default}}}}\n"
	)
	lease := func(holder string) string {
		return "---\napiVersion: coordination.k8s.io/v1\nkind: Lease\n" +
			"metadata: {name: karpenter-leader-election, namespace: joiner}\nspec: {holderIdentity: " + holder + "}\n"
	}
	for name, c := range map[string]struct {
		pods, want string
		args       []string
		code       int
		says       string
	}{
		"no pod": {want: "catalogue: default (144 types)\n"},
		"defaults": {pods: joinerPod("a", old, "args: [--system-namespace=joiner]"),
			want: "catalogue: default (144 types)\n"},
		"a limit": {pods: joinerPod("a", old, "args: [--max-nodes, \"1\"]"), code: cli.CodeFindings,
			want: "; settings of pod joiner/a: max-nodes=1\n"},
		"the user's": {pods: joinerPod("a", old, "args: [--max-nodes=1]"), args: []string{"--max-nodes=5"},
			want: "catalogue: default (144 types)\n"},
		"variables": {
			pods: joinerPod("a", old, "env: [{name: MAX_NODES, value: \"1\"}, {name: PRICE_TOLERANCE, value: \"9\"}]"),
			want: "; settings of pod joiner/a: price-tolerance=9, max-nodes=1\n", code: cli.CodeFindings},
		"a flag wins": {
			pods: joinerPod("a", old, "args: [--max-nodes=5], env: [{name: MAX_NODES, value: \"1\"}]"),
			want: "; settings of pod joiner/a: max-nodes=5\n"},
		"a flag that is not shown wins": {
			pods: joinerPod("a", old, "args: [--max-nodes=$(MAX)], env: [{name: MAX_NODES, value: \"1\"}]"),
			want: "; settings of pod joiner/a: defaults; not considered: the flag --max-nodes=$(MAX)\n"},
		"the newest pod": {
			pods: joinerPod("b", late, "args: [--max-nodes=5]") + joinerPod("a", old, "args: [--max-nodes=1]"),
			want: "; settings of pod joiner/b: max-nodes=5\n"},
		"what is not considered": {
			pods: joinerPod("a", old, "command: [/joiner, --config, /etc/joiner.yaml], "+
				"args: [--max-nodes=$(MAX), --min-values-policy=BestEffort, --preference-policy=Respect, "+
				"--default-spread-constraints=System, '--feature-gates="+allOn+"'], "+
				"env: [{name: PRICE_TOLERANCE, valueFrom: {}}, {name: SCHEDULER_CONFIG, value: \"a:\\n  b\"}], envFrom: [{}]"),
			want: "; settings of pod joiner/a: defaults; not considered: the variable PRICE_TOLERANCE, " +
				"the variables of envFrom, the file /etc/joiner.yaml, the flag --max-nodes=$(MAX), " +
				"default-spread-constraints=System, scheduler-config=a: b, min-values-policy=BestEffort\n"},
		"gates": {pods: static + joinerPod("a", old, "args: [--feature-gates=NodeOverlay=true]"),
			want: "; settings of pod joiner/a: feature-gates=NodeOverlay=true\n", says: "1 node for 1 pod"},
		"the gates of a variable": {pods: static + joinerPod("a", old, "env: [{name: FEATURE_GATES, value: \""+allOn+"\"}]"),
			want: "catalogue: default (144 types)\n", says: "2 nodes for 1 pod"},
		"no gates": {pods: static + joinerPod("a", old, "args: [--feature-gates=NodeRepair=perhaps]"), says: "2 nodes for 1 pod",
			want: "; settings of pod joiner/a: defaults; not considered: feature-gates=\"NodeRepair=perhaps\", " +
				"which cannot be read\n"},
		"no number": {pods: joinerPod("a", old, "args: [--max-nodes=many]"),
			want: "; settings of pod joiner/a: defaults; not considered: max-nodes=\"many\", which cannot be read\n"},
		"an observer": {
			pods: joinerPod("c", late, "args: [-observe-only, --max-nodes=3]") +
				joinerPod("b", late, "args: [--max-nodes=4], env: [{name: OBSERVE_ONLY, value: \"true\"}]") +
				joinerPod("a", old, "args: [--observe-only=false, --max-nodes=5]"),
			want: "; settings of pod joiner/a: max-nodes=5\n"},
		"only an observer": {pods: joinerPod("b", late, "args: [--observe-only, --max-nodes=3]"),
			want: "catalogue: default (144 types)\n"},
		"the pod that leads": {
			pods: joinerPod("b", late, "args: [--max-nodes=5]") + ready + joinerPod("a-1", old, "args: [--max-nodes=6]") +
				lease("a-1_0f3a"),
			want: "; settings of pod joiner/a-1: max-nodes=6\n"},
		"a pod that is ready": {
			pods: joinerPod("b", late, "args: [--max-nodes=5]") +
				joinerPod("a", old, "args: [--max-nodes=6]") + ready + lease("gone_0f3a"),
			want: "; settings of pod joiner/a: max-nodes=6\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, failures := simulated(t, aPool+c.pods, append([]string{"-f", "-"}, c.args...)...)
			if code != c.code || failures != "" || !strings.HasSuffix(out, c.want) ||
				!strings.Contains(out, c.says) {
				t.Errorf("exit code %d, %q\n%s\nwant %d, %q and %q", code, failures, out, c.code, c.says, c.want)
			}
		})
	}
}

// The commands that keep only parts of a cluster's objects have the settings, too.
func TestU03_EachCommandHasTheSettingsOfTheController(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		client *fake.FakeDynamicClient
		args   []string
	}{
		"simulate": {running(t), []string{"simulate"}},
		"explain":  {live(t), []string{"explain", "pod", "shop/huge"}},
		"status":   {standing(t, nil), []string{"status"}},
		"top":      {standing(t, nil), []string{"top", "--once"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.TrimPrefix(joinerPod("joiner-a", "2026-11-01T00:00:00Z", "args: [--max-nodes=99]"), "---\n")
			own, pods := objectsOf(t, text)[0], corev1.SchemeGroupVersion.WithResource("pods")
			err := c.client.Tracker().Add(own)
			if apierrors.IsAlreadyExists(err) { // the pod that leads
				err = c.client.Tracker().Update(pods, own, "joiner")
			}
			if err != nil {
				t.Fatal(err)
			}
			_, out, failures := run(t, c.client, "", c.args...)
			if !strings.Contains(out, "; settings of pod joiner/joiner-a: max-nodes=99\n") {
				t.Errorf("the settings are missing in\n%s%s", out, failures)
			}
		})
	}
}
