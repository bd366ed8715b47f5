package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// oneEach makes every pod want a node of its own.
func oneEach(app string) string {
	return "affinity:\n  podAntiAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n" +
		"    - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: " +
		app + "}}}"
}

// limit patches a NodePool's limits; null removes one.
func (r *testRig) limit(pool, soft, hard string) {
	r.t.Helper()
	r.run("patch", "nodepool", pool, "--type=merge", "-p",
		fmt.Sprintf(`{"spec":{"limits":{"nodes":%s},"hardLimits":{"nodes":%s}}}`, soft, hard))
}

// count waits until exactly n claims exist, none of them being deleted, and n pods run.
func (r *testRig) count(n int) {
	r.t.Helper()
	r.eventually(later, fmt.Sprintf("%d nodes", n), func(ctx context.Context) (bool, string, error) {
		claims, err := r.claims(ctx)
		if err != nil {
			return false, "", err
		}
		going, ready := 0, 0
		for _, c := range claims {
			if status, _, _ := conditionOf(c.Status.Conditions, "Ready"); status == "True" {
				ready++
			}
			if c.DeletionTimestamp != nil {
				going++
			}
		}
		return len(claims) == n && going == 0 && ready == n, fmt.Sprintf("%d claims, %d Ready, %d going", len(claims),
			ready, going), nil
	})
}

// told waits for an event about an object with the reason and a part of the message, and returns the message. Without
// a kind, or without a name, any will do.
func (r *testRig) told(kind, name, reason, part string) string {
	r.t.Helper()
	var found string
	r.eventually(soon, fmt.Sprintf("the event %s on %s %s: ...%s...", reason, kind, name, part),
		func(ctx context.Context) (bool, string, error) {
			var list corev1.EventList
			if err := r.Client.List(ctx, &list); err != nil {
				return false, "", err
			}
			var others []string
			for _, e := range list.Items {
				if kind != "" && e.InvolvedObject.Kind != kind || name != "" && e.InvolvedObject.Name != name ||
					e.Reason != reason {
					continue
				}
				if strings.Contains(e.Message, part) {
					found = e.Message
					return true, "", nil
				}
				others = append(others, e.InvolvedObject.Name+": "+e.Message)
			}
			return false, strings.Join(others, "\n"), nil
		})
	return found
}

// show logs what a user sees; docs/limits.md quotes it.
func (r *testRig) show(what string, args ...string) string {
	r.t.Helper()
	output, err := r.Kubectl(r.t.Context(), "", args...)
	r.t.Logf("%s\n$ kubectl %s\n%s", what, strings.Join(args, " "), output)
	if err != nil {
		r.t.Log(err)
	}
	return output
}

// names returns the names of all claims, sorted.
func (r *testRig) names() []string {
	r.t.Helper()
	claims, err := r.claims(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, c := range claims {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}

// L-05, L-06, L-10, L-11, L-14, L-15, L-40 to L-44: the life of a hard limit: reached, raised, lowered, exceeded by
// hand.
func TestHardLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, quick+"\nhardLimits: {nodes: 3}"))
	r.apply(deployment("web", 5, "{cpu: '1'}", oneEach("web")))
	r.count(3)
	r.told("Pod", "", "FailedScheduling", "nodes 3 of 3 (hard limit)")                       // L-11
	r.told("NodePool", "default", "LimitReached", "LimitReached: nodes 3 of 3 (hard limit)") // U-15
	for _, name := range r.names() {
		if !strings.HasPrefix(name, "default-") ||
			!slices.Contains([]string{"0", "1", "2"}, name[strings.LastIndex(name, "-")+1:]) {
			t.Errorf("claim %s is in no slot of three", name)
		}
	}
	r.eventually(soon, "the NODES column to say 3", func(context.Context) (bool, string, error) { // L-06
		output := r.run("get", "nodepool", "default", "-o", "jsonpath={.status.nodes} {.status.resources.nodes}")
		return output == "3 3", output, nil
	})
	r.show("At the limit:", "get", "nodepool", "default")
	r.show("A pod that waits:", "get", "events",
		"--field-selector=reason=FailedScheduling,type=Warning,reportingComponent=karpenter", "-o",
		"custom-columns=OBJECT:.involvedObject.name,MESSAGE:.message")

	r.limit("default", "null", "5")
	r.count(5)
	r.allRunning(5, later)

	r.limit("default", "null", "2")
	r.count(2) // L-40
	r.told("NodePool", "default", "NodeLimitExceeded", "5 nodes, limit 2 (hard limit): removing 3")
	r.told("NodeClaim", "", "NodeLimitExceeded",
		"The node is removed, its NodePool has too many: 5 nodes, limit 2 (hard limit)")
	r.told("Pod", "", "FailedScheduling", "nodes 2 of 2 (hard limit)") // L-43
	r.show("Lowered from 5 to 2:", "get", "events", "--field-selector=reason=NodeLimitExceeded", "-o",
		"custom-columns=KIND:.involvedObject.kind,NAME:.involvedObject.name,MESSAGE:.message")
	kept := r.names()
	time.Sleep(5 * time.Second) // L-42: nothing more goes
	if now := r.names(); !slices.Equal(now, kept) {
		t.Errorf("claims %v, then %v: want no change", kept, now)
	}

	r.apply(fmt.Sprintf(handMade, "by-hand")) // L-15
	r.told("NodeClaim", "by-hand", "NodeLimitExceeded", "3 nodes, limit 2 (hard limit)")
	r.count(2)
	if now := r.names(); !slices.Equal(now, kept) {
		t.Errorf("claims %v, then %v: want only the hand-made one gone", kept, now)
	}
	claims, err := r.claims(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		// L-05
		if status, _, _ := conditionOf(c.Status.Conditions, karpenterv1.ConditionTypeDrifted); status == "True" {
			t.Errorf("claim %s has drifted by a change of limits", c.Name)
		}
	}
	r.oneNodePerClaim()
}

const handMade = `
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: %s, labels: {karpenter.sh/nodepool: default}}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements:
  - {key: topology.kubernetes.io/zone, operator: In, values: [test-zone-c]}
`

// L-14: a pool gets its hard limit while it has claims of other names. When these go one by one, it does not exceed
// the limit.
func TestAHardLimitOnAPoolThatHasNodes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, quick))
	r.apply(deployment("web", 4, "{cpu: '1'}", oneEach("web")))
	r.count(4)
	before := r.names()
	watch := r.watchClaims("karpenter.sh/nodepool=default")
	r.limit("default", "null", "4")
	r.run("scale", "deployment", "web", "--replicas=8")
	r.told("Pod", "", "FailedScheduling", "nodes 4 of 4 (hard limit)")
	for _, name := range before { // each is replaced once it is gone, under a slot
		r.run("delete", "nodeclaim", name)
		r.count(4)
	}
	if most := watch.max(); most != 4 {
		t.Errorf("there were %d claims at a time; want 4", most)
	}
	if after := r.names(); slices.ContainsFunc(before,
		func(name string) bool { return slices.Contains(after, name) }) {
		t.Errorf("claims %v, before %v: want none of the old", after, before)
	}
}

// L-03, L-16, L-40: a limit lowered to 0 drains, and disruption budgets keep their meaning.
func TestALimitOfZero(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, quick+"\nlimits: {nodes: 5}\nhardLimits: {nodes: 2}"))
	r.apply(deployment("web", 2, "{cpu: '1'}", oneEach("web")) + guard("web", "maxUnavailable: 0"))
	r.count(2)
	r.allRunning(2, soon)
	r.limit("default", "5", "0")
	r.eventually(soon, "both claims to wait for the budget", func(ctx context.Context) (bool, string, error) {
		claims, err := r.claims(ctx)
		held := 0
		for _, c := range claims {
			if _, _, message := conditionOf(c.Status.Conditions,
				karpenterv1.ConditionTypeDrained); c.DeletionTimestamp != nil && strings.Contains(message, "web") {
				held++
			}
		}
		return held == 2, fmt.Sprintf("%d of %d wait", held, len(claims)), err
	})
	r.show("Lowered to 0 under a PodDisruptionBudget:", "get", "nodepool,nodeclaims")
	r.show("What holds it:", "get", "nodeclaims", "-o",
		`custom-columns=NAME:.metadata.name,DRAINED:.status.conditions[?(@.type=="Drained")].message`)
	if pods, err := r.pods(t.Context(), client.MatchingLabels{"app": "web"}); err != nil || len(pods) != 2 ||
		pods[0].DeletionTimestamp != nil {
		t.Fatalf("pods %v, error %v: want both untouched", len(pods), err)
	}
	r.run("delete", "pdb", "web")
	r.nothingLeft(later)
	r.told("Pod", "", "FailedScheduling", "nodes 0 of 0 (hard limit)")
}

// L-01, L-04, L-12, L-40, L-41: at its soft limit a pool is blocked, the next pool takes over, and an excess is
// trimmed; empty nodes go first.
func TestSoftLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	never := "disruption: {consolidateAfter: Never}"
	r.apply(kwokPool("default", amd64Linux, never+"\nweight: 10\nlimits: {nodes: 3}"))
	r.apply(deployment("web", 4, "{cpu: '1'}", oneEach("web")))
	r.count(3)
	r.told("Pod", "", "FailedScheduling", "nodes 3 of 3 (soft limit)")
	r.apply("---" + kwokPool("other", amd64Linux, never)) // L-12
	r.count(4)
	r.allRunning(4, soon)

	r.run("scale", "deployment", "web", "--replicas=0")
	r.allRunning(0, soon)
	r.run("delete", "nodepool", "other")
	r.count(3)
	r.apply(deployment("stay", 1, "{cpu: '1'}", ""))
	r.allRunning(1, soon)
	pods, err := r.pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.limit("default", "1", "null")
	r.count(1)
	r.told("NodePool", "default", "NodeLimitExceeded", "3 nodes, limit 1 (soft limit): removing 2")
	if left := r.names(); left[0] != pods[0].Spec.NodeName {
		t.Errorf("node %v is left, the pod was on %s: the empty ones go first", left, pods[0].Spec.NodeName)
	}
}

// L-17, D-12: a static pool keeps its replicas, whatever pods there are, within both limits.
func TestStaticPool(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("static", amd64Linux,
		"replicas: 4\nlimits: {nodes: 3}\nhardLimits: {nodes: 2}\ndisruption: {consolidateAfter: 0s}"))
	r.count(2)
	condition := func() string {
		return r.run("get", "nodepool", "static", "-o",
			`jsonpath={.status.conditions[?(@.type=="ReplicasWithinLimits")].message}`)
	}
	if got, want := condition(), "replicas 4, limit 2 (hard limit): the pool runs 2 nodes"; got != want {
		t.Errorf("condition %q; want %q", got, want)
	}
	r.show("Replicas above a limit:", "get", "nodepool", "static", "-o",
		`custom-columns=NAME:.metadata.name,REPLICAS:.spec.replicas,NODES:.status.nodes,`+
			`WITHIN:.status.conditions[?(@.type=="ReplicasWithinLimits")].status,`+
			`WHY:.status.conditions[?(@.type=="ReplicasWithinLimits")].message`)
	r.limit("static", "3", "null")
	r.count(3)
	r.limit("static", "null", "null")
	r.count(4)
	r.run("scale", "nodepool", "static", "--replicas=1")
	r.count(1)
	r.told("NodePool", "static", "ReplicasExceeded", "4 nodes, 1 replicas: removing 3")
	r.run("scale", "nodepool", "static", "--replicas=2")
	r.count(2)
	r.apply(deployment("web", 3, "{cpu: '1'}", oneEach("web")))
	r.told("Pod", "", "FailedScheduling", "pool static: it is static")
	for _, name := range r.names() { // what goes is made again
		r.run("delete", "nodeclaim", name)
	}
	r.count(2)
	if running, err := r.pods(t.Context()); err != nil || len(running) != 3 {
		t.Errorf("%d pods, error %v", len(running), err)
	}
}

// L-02: what a user reads when a hard limit is invalid.
func TestHardLimitsThatAreRefused(t *testing.T) {
	t.Parallel()
	env := sharedEnvironment.Get(t)
	for value, want := range map[string]string{
		`{nodes: -1}`:          "spec.hardLimits.nodes is -1: it must be a whole number that is not negative",
		`{nodes: "1.5"}`:       "spec.hardLimits.nodes is 1.5: it must be a whole number that is not negative",
		`{nodes: "abc"}`:       "spec.hardLimits.nodes is abc: it must be a whole number that is not negative",
		`{cpu: "10"}`:          "spec.hardLimits accepts only the key nodes, found cpu",
		`{nodes: 3, pods: 10}`: "spec.hardLimits accepts only the key nodes, found pods",
	} {
		output, err := env.kubectl(t, kwokPool("limits-refused", amd64Linux, "hardLimits: "+value), "apply", "-f", "-")
		if err == nil || !strings.Contains(output, want) {
			t.Errorf("%s: %v\n%s\nwant %s", value, err, output, want)
		}
		t.Logf("hardLimits: %s\n%s", value, output)
	}
}
