package autonode

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/localcluster/attack"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

// The instance types of the story, from the simulated catalogue. typeD is the cheapest, so it would be chosen if the
// policy allowed it.
const (
	typeA = "m-2x-amd64-linux"
	typeB = "c-2x-amd64-linux"
	typeC = "s-2x-amd64-linux"
	typeD = "c-1x-amd64-linux"

	nodePatience = 4 * time.Minute
	budget       = 1 // nodes that may be disrupted at once
)

// hostedCluster starts a whole guest cluster with Joiner and simulated machines, and an operator with a namespace of
// its own on the shared management cluster.
func hostedCluster(t *testing.T) *world {
	t.Helper()
	own := sharedFixture.Get(t)
	options, err := rig.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	options.Log = io.Discard
	ctx, cancel := context.WithTimeout(t.Context(), shared.StartTimeout)
	defer cancel()
	guest, err := rig.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{mgmt: own.mgmt, guest: guest, namespace: "hcp-nodes", binary: own.binary}
	w := &world{fixture: f, t: t, ctx: context.WithoutCancel(t.Context())}
	t.Cleanup(func() {
		if t.Failed() {
			w.printLog()
			w.printJoinersLog()
		}
		w.halt()
		if err := guest.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := f.prepare(ctx); err != nil {
		t.Fatal(err)
	}
	w.run("--platform=KWOK", "--operand-user-name="+rig.User)
	return w
}

func (w *world) printJoinersLog() {
	if log, err := os.ReadFile(w.guest.JoinerLog()); err == nil {
		lines := strings.Split(strings.TrimSpace(string(log)), "\n")
		w.t.Logf("the end of joiner's log:\n%s", strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
}

// nodeLog records every node that ever existed.
type nodeLog struct {
	mu    sync.Mutex
	types map[string]string // instance type by name, of all
	going map[string]bool   // that are on their way out
	most  int               // on their way out at once
}

// watchNodes follows the nodes from now until the test ends, without a gap.
func (w *world) watchNodes() *nodeLog {
	w.t.Helper()
	n := &nodeLog{types: map[string]string{}, going: map[string]bool{}}
	ctx, cancel := context.WithCancel(w.ctx)
	stream, err := w.guest.Client.Watch(ctx, &corev1.NodeList{})
	if err != nil {
		cancel()
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range stream.ResultChan() {
			n.take(event)
		}
		if ctx.Err() == nil {
			w.t.Error("the watch of nodes ended: a node may have been missed")
		}
	}()
	w.t.Cleanup(func() { cancel(); <-done })
	return n
}

func (n *nodeLog) take(event watch.Event) {
	node, is := event.Object.(*corev1.Node)
	if !is {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.types[node.Name] = node.Labels[instanceType]
	n.going[node.Name] = event.Type != watch.Deleted && node.DeletionTimestamp != nil
	count := 0
	for _, going := range n.going {
		if going {
			count++
		}
	}
	n.most = max(n.most, count)
}

// seen returns the instance types of all nodes that ever existed, each once.
func (n *nodeLog) seen() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	for _, kind := range n.types {
		if !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	slices.Sort(all)
	return all
}

// simulated returns the spec of an OpenshiftNodePool of simulated machines that are replaced one at a time.
func simulated(team string, types ...string) object {
	return parse(fmt.Sprintf(`
disruption: {consolidateAfter: 1h, budgets: [{nodes: "%d"}]}
template:
  metadata: {labels: {team: %s}}
  spec:
    nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
    requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [%s]}]`, budget, team,
		strings.Join(types, ", ")))
}

func (w *world) deploy(team string, replicas int) {
	w.t.Helper()
	err := w.guest.Apply(w.ctx, fmt.Sprintf(`
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: %[2]d
  selector: {matchLabels: {team: %[1]s}}
  template:
    metadata: {labels: {team: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {team: %[1]s}
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {team: %[1]s}}}]}}
      containers: [{name: main, image: example.invalid/main, resources: {requests: {cpu: 300m}}}]`, team, replicas))
	if err != nil {
		w.t.Fatal(err)
	}
}

// settledOn waits until as many pods of a team run, on nodes of one type.
func (w *world) settledOn(team, kind string, pods int) {
	w.t.Helper()
	w.eventuallyIn(nodePatience, fmt.Sprintf("%d pods of %s on %s", pods, team, kind), func() (bool, string) {
		var list corev1.PodList
		var nodes corev1.NodeList
		if err := w.guest.Client.List(w.ctx, &list, client.MatchingLabels{"team": team}); err != nil {
			w.t.Fatal(err)
		}
		if err := w.guest.Client.List(w.ctx, &nodes, client.MatchingLabels{"team": team}); err != nil {
			w.t.Fatal(err)
		}
		running, right := 0, 0
		for _, pod := range list.Items {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				running++
			}
		}
		for _, node := range nodes.Items {
			if node.Labels[instanceType] == kind {
				right++
			}
		}
		return running == pods && right == pods && len(nodes.Items) == pods,
			fmt.Sprintf("%d run; %d of %d nodes are of that type", running, right, len(nodes.Items))
	})
}

// The policy has A, B, C and the user B, D: only nodes of B ever exist. A tighter policy replaces what does not
// conform, within the budget (K5). A pool with nothing left launches nothing; the wrapper, the NodePool, the policy
// and the pod say why.
func TestNodesObeyThePolicy(t *testing.T) {
	t.Parallel() // its guest is its own
	w := hostedCluster(t)
	w.policy(restrict(in(instanceType, typeA, typeB, typeC)))
	w.policySays("True", "")
	nodes := w.watchNodes()
	w.pool("web", simulated("web", typeB, typeD))
	w.deploy("web", 3)
	w.settledOn("web", typeB, 3)
	if seen := nodes.seen(); !slices.Equal(seen, []string{typeB}) {
		t.Errorf("there were nodes of %v, want %s only", seen, typeB)
	}

	w.pool("web", simulated("web", typeB, typeC, typeD))
	w.policy(restrict(in(instanceType, typeA, typeC)))
	w.settledOn("web", typeC, 3)
	if seen := nodes.seen(); slices.Contains(seen, typeD) || slices.Contains(seen, typeA) {
		t.Errorf("there were nodes of %v", seen)
	}
	if nodes.most > budget {
		t.Errorf("%d nodes went at once; the budget is %d", nodes.most, budget)
	}

	w.pool("none", simulated("none", typeD))
	w.deploy("none", 1)
	w.poolSays("none", "RequirementsCompatible", "False", "NoCompatibleInstanceTypes", instanceType, typeA, typeC,
		typeD)
	w.policySays("True", "", "1")
	w.told("OpenshiftNodePool", "none", "NoCompatibleInstanceTypes")
	w.told("NodePool", "none", "NoCompatibleInstanceTypes")
	w.told("Pod", "none-", "FailedScheduling")
	w.stays("the number of NodeClaims", func() any { return len(w.list(w.guest.Client, nodeClaimKind)) })
	for _, claim := range w.list(w.guest.Client, nodeClaimKind) {
		if claim.GetLabels()["karpenter.sh/nodepool"] == "none" {
			t.Errorf("NodeClaim %s was made for the pool that allows nothing", claim.GetName())
		}
	}
}

// told waits for an event with a reason about an object whose name begins with name, and prints it.
func (w *world) told(kind, name, reason string) {
	w.t.Helper()
	since := time.Now()
	w.eventuallyIn(nodePatience, fmt.Sprintf("event %s about %s %s", reason, kind, name), func() (bool, string) {
		events, err := w.guest.Kubectl(w.ctx, "", "get", "events.events.k8s.io", "-A", "-o",
			"jsonpath={range .items[*]}{.regarding.kind} {.regarding.name} {.reason}: {.note}{\"\\n\"}{end}")
		if err != nil {
			w.t.Fatal(err)
		}
		for line := range strings.Lines(events) {
			if strings.HasPrefix(line, kind+" "+name) && strings.Contains(line, " "+reason+": ") &&
				!strings.Contains(line, "0/") {
				w.t.Log(strings.TrimSpace(line))
				w.saw(attack.Told, "an event", strings.TrimSpace(line), since)
				return true, ""
			}
		}
		return false, events
	})
}
