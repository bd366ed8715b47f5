package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// ask runs a command of joinerctl that reads the cluster as its admin.
func (r *testRig) ask(args ...string) (code int, out, failures string) {
	r.t.Helper()
	config, err := r.Cluster.RESTConfig("admin")
	if err != nil {
		r.t.Fatal(err)
	}
	config.QPS = -1
	var stdout, stderr bytes.Buffer
	code = cli.Run(r.t.Context(), cli.Config{
		Client:    func(cli.Connection) (dynamic.Interface, error) { return dynamic.NewForConfig(config) },
		Clientset: func(cli.Connection) (kubernetes.Interface, error) { return kubernetes.NewForConfig(config) },
		In:        strings.NewReader(""), Out: &stdout, Err: &stderr,
	}, args)
	return code, stdout.String(), stderr.String()
}

// explained returns the cause that joinerctl explain gives for an object, and its whole text, which the test logs for
// readers.
func (r *testRig) explained(kind, name string) (code, text string) {
	r.t.Helper()
	_, text, _ = r.ask("explain", kind, name)
	_, out, failures := r.ask("explain", kind, name, "-o", "json")
	var said struct{ Cause *view.Cause }
	if err := json.Unmarshal([]byte(out), &said); err != nil {
		r.t.Fatalf("explain %s %s: %v: %s %s", kind, name, err, out, failures)
	}
	if said.Cause == nil {
		return "", text
	}
	return string(said.Cause.Code), text
}

// chosen returns the selector of a case's pool; the pool's requirement is about the same label.
func chosen(name string) string { return "nodeSelector: {case: " + name + "}" }

// withMeta gives a pod more metadata.
func withMeta(manifest, more string) string {
	return strings.Replace(manifest, "namespace: default}", "namespace: default, "+more+"}", 1)
}

func poolOf(name, template, spec string) string {
	return "\n---" + kwokPool(name, amd64Linux+"\n- {key: case, operator: In, values: ["+name+"]}\n"+template, spec)
}

// U-04: on a real cluster, pods that wait for twelve causes are explained by theirs.
func TestU04_PodsThatWaitAreExplained(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, quick) +
		poolOf("tainted", "taints: [{key: dedicated, value: batch, effect: NoSchedule}]", quick) +
		poolOf("full", "", quick+"\nhardLimits: {nodes: 1}") + poolOf("small", "", quick+"\nlimits: {cpu: 4}"))
	causes := []struct{ name, cause, manifest string }{
		{"huge", "PodTooLarge", pod("huge", "{cpu: '1000'}", "")},
		{"arch", "LabelMismatch", pod("arch", "{cpu: 100m}", "nodeSelector: {kubernetes.io/arch: s390x}")},
		{"unknown", "LabelUnknown", pod("unknown", "{cpu: 100m}", "nodeSelector: {team: red}")},
		{"tainted", "TaintNotTolerated", pod("tainted", "{cpu: 100m}", chosen("tainted"))},
		{"full", "HardLimitNodes", pod("full", "{cpu: 100m}", chosen("full")+"\n"+oneEach("taken"))},
		{"small", "ResourceLimit", pod("small", "{cpu: '8'}", chosen("small"))},
		{"gpu", "ExtendedResource", strings.Replace(pod("gpu", "{example.com/gpu: '1'}", ""),
			"requests: {example.com/gpu: '1'}",
			"limits: {example.com/gpu: '1'}", 1)},
		{"gated", "SchedulingGated", pod("gated", "{cpu: 100m}", "schedulingGates: [{name: example.com/wait}]")},
		{"other", "NotMarkedUnschedulable", pod("other", "{cpu: 100m}", "schedulerName: another")},
		{"volume", "VolumeMissing", pod("volume", "{cpu: 100m}",
			"volumes: [{name: data, persistentVolumeClaim: {claimName: missing}}]")},
		{"apart", "ContradictsItself",
			pod("apart", "{cpu: 100m}", "nodeSelector: {topology.kubernetes.io/zone: test-zone-a}\n"+
				"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: "+
				"[{key: topology.kubernetes.io/zone, operator: NotIn, values: [test-zone-a]}]}]}}}")},
	}
	r.apply(withMeta(pod("taken", "{cpu: 100m}", chosen("full")), "labels: {app: taken}"))
	// Its node alone is not enough: until the pod is bound, kube-scheduler may give its place to a later pod.
	r.allRunning(1, soon)
	for _, c := range causes {
		r.apply(c.manifest)
	}
	for _, c := range causes {
		r.reads("pod", c.name, "default/"+c.name, c.cause)
	}
	// A pool that is not Ready counts as near for every pod, so it comes last (known gap).
	r.apply(strings.ReplaceAll(poolOf("classless", "", quick), "KWOKNodeClass, name: default",
		"KWOKNodeClass, name: gone"))
	r.apply(pod("classless", "{cpu: 100m}", chosen("classless")))
	r.reads("pod", "classless", "default/classless", "PoolNotReady")
}

// reads waits until an object is explained by a cause, and logs the text for readers.
func (r *testRig) reads(kind, what, name, cause string) {
	r.t.Helper()
	var text string
	r.eventually(soon, what+" to be explained by "+cause, func(context.Context) (bool, string, error) {
		var code string
		code, text = r.explained(kind, name)
		return code == cause, text, nil
	})
	_, text, _ = r.ask("explain", kind, name) // the text above may be older than the cause
	r.t.Logf("%s\n%s", what, text)
}

// U-04: on a real cluster, nodes that stay for ten causes are explained by theirs. Each is the only node of a pool of
// its own.
func TestU04_NodesThatStayAreExplained(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const half = "{cpu: 600m}"
	causes := []struct{ name, cause, pool, pods string }{
		{"podsays", "DoNotDisruptPod", poolOf("podsays", "", quick), withMeta(pod("podsays", half, chosen("podsays")),
			`annotations: {karpenter.sh/do-not-disrupt: "true"}`)},
		{"nodesays", "DoNotDisruptNode", poolOf("nodesays", "", quick), pod("nodesays", half, chosen("nodesays"))},
		{"guarded", "PodDisruptionBudget", poolOf("guarded", "", quick),
			deployment("guarded", 1, half, chosen("guarded")) + guard("guarded", "maxUnavailable: 0")},
		{"closed", "BudgetClosed", poolOf("closed", "", strings.Replace(quick, "100%", "0", 1)),
			deployment("closed", 1, half, chosen("closed"))},
		{"emptyonly", "ConsolidationOff", poolOf("emptyonly", "", quick+"\n  consolidationPolicy: WhenEmpty"),
			deployment("emptyonly", 1, half, chosen("emptyonly"))},
		{"fresh", "QuietTime", poolOf("fresh", "", strings.Replace(quick, "0s", "1h", 1)),
			deployment("fresh", 1, half, chosen("fresh"))},
		{"starting", "NotInitialized",
			poolOf("starting", "startupTaints: [{key: example.com/agent, effect: NoSchedule}]",
				quick),
			deployment("starting", 1, half, chosen("starting"))},
		{"cheapest", "NothingCheaper", poolOf("cheapest", "", quick),
			deployment("cheapest", 1, half, chosen("cheapest"))},
		{"static", "StaticPoolNode", poolOf("static", "", "replicas: 1"), ""},
	}
	var manifests strings.Builder
	for _, c := range causes {
		manifests.WriteString(c.pool + c.pods)
	}
	r.apply(manifests.String())
	r.eventually(later, "all nodes, one of them not initialized", func(ctx context.Context) (bool, string, error) {
		claims, err := r.claims(ctx)
		ready, joined := 0, 0
		for _, c := range claims {
			if status, _, _ := conditionOf(c.Status.Conditions, "Ready"); status == "True" {
				ready++
			}
			if c.Status.NodeName != "" {
				joined++
			}
		}
		return joined == len(causes) && ready == len(causes)-1, fmt.Sprintf("%d have joined, %d are ready", joined,
			ready), err
	})
	r.run("annotate", "node", r.first("nodesays"), "karpenter.sh/do-not-disrupt=true")
	r.apply("apiVersion: v1\nkind: Node\nmetadata: {name: alien}\n")
	r.reads("node", "a node without a claim", "alien", "NotManaged")
	for _, c := range causes {
		r.reads("node", "the node of "+c.name, r.first(c.name), c.cause)
	}
}
