// Package takeover tests on a real control plane that Joiner takes over a cluster from Karpenter, and that Karpenter
// takes it back (P-34). Both run as processes: see package peer.
package takeover

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/bench/internal/peer"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

const (
	startWithin = 5 * time.Minute
	within      = 3 * time.Minute
	// settled is how old machines are before the other controller starts. Both controllers compare instances and
	// claims at their start, but do not judge those younger than half a minute.
	settled = 35 * time.Second
	// calm is how long a fleet is watched under its new controller: several rounds of everything that either one does.
	calm = 45 * time.Second
)

// cluster is a local cluster in which controllers take turns.
type cluster struct {
	*rig.Rig
	*journal
	t       *testing.T
	options rig.Options
	log     string // path of that of the controller that runs
}

// P-34, D-06: Karpenter runs a cluster and stops. Joiner goes on with the nodes as they are, launches more and ends
// some of Karpenter's. Then Karpenter does the same with Joiner's.
func TestTakeoverAndHandBack(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.must(peer.Install(t.Context(), c.Rig))
	c.controlledBy(peer.Program(binary(t)), func() {
		c.must(c.Apply(t.Context(), pools))
		c.workload(28, 12)
		c.journal = watchFleet(t, c.Client)
		c.calmFor(settled)
	})

	c.rewatch(c.Install) // Joiner's CRDs, over Karpenter's
	c.controlledBy(rig.JoinerProgram(c.options.Joiner), func() {
		c.calmFor(calm)
		c.workload(44, 16)
		c.replace("karpenter", c.madeBy(true))
		c.take(t)
		c.calmFor(settled)
	})

	c.rewatch(func(ctx context.Context) error { return peer.Install(ctx, c.Rig) })
	c.controlledBy(peer.Program(binary(t)), func() {
		c.calmFor(calm)
		c.workload(52, 20)
		c.replace("joiner", c.madeBy(false))
	})
}

// pools are two: a plain one, and one that uses every part of the template that the drift hash covers. Nodes in use
// are not consolidated: this test is not about the cheapest nodes.
const pools = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: plain}
spec:
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 0s, budgets: [{nodes: "100%"}]}
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: karpenter.kwok.sh/instance-cpu, operator: In, values: ["8", "16"]}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: full}
spec:
  weight: 10
  limits: {cpu: "1000"}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 0s, budgets: [{nodes: "100%"}]}
  template:
    metadata:
      labels: {example.com/team: a, example.com/tier: web}
      annotations: {example.com/note: one}
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      expireAfter: Never
      terminationGracePeriod: 1h
      taints: [{key: example.com/own, value: "yes", effect: NoSchedule}, {key: example.com/other, effect: NoSchedule}]
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: example.com/role, operator: In, values: [front, back]}
`

const apart = `
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: apart}}}]}}
      tolerations: [{key: example.com/own, operator: Exists}, {key: example.com/other, operator: Exists}]
      nodeSelector: {example.com/team: a, example.com/role: front}`

// workload sets the number of plain pods, and of those that need a node each in the pool full. It waits until all run.
func (c *cluster) workload(plain, each int) {
	c.t.Helper()
	c.must(c.Apply(c.t.Context(), deployment("plain", plain, "")+deployment("apart", each, apart)))
	c.must(c.Eventually(c.t.Context(), within, fmt.Sprintf("%d running pods", plain+each),
		func(ctx context.Context) (bool, string, error) {
			var pods corev1.PodList
			err := c.Client.List(ctx, &pods, client.InNamespace("default"))
			running := 0
			for _, pod := range pods.Items {
				if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
					running++
				}
			}
			return running == plain+each && len(pods.Items) == running,
				fmt.Sprintf("%d of %d pods run", running, len(pods.Items)), err
		}))
	c.onePerClaim()
}

func deployment(name string, replicas int, spec string) string {
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: example.invalid/main, resources: {requests: {cpu: '1', memory: 1Gi}}}]%[3]s
`, name, replicas, spec)
}

// controlledBy does something while a controller runs. Karpenter does not handle SIGTERM, so both are killed: whenever
// a controller ends, what it leaves behind must suffice.
func (c *cluster) controlledBy(program rig.Program, do func()) {
	c.t.Helper()
	c.t.Logf("%s runs", program.Name)
	controller, err := c.Run(c.t.Context(), program)
	c.must(err)
	c.log = controller.Log()
	defer func() {
		if c.t.Failed() {
			log, _ := os.ReadFile(controller.Log())
			lines := strings.Split(string(log), "\n")
			c.t.Logf("the end of the log of %s:\n%s", program.Name, strings.Join(lines[max(0, len(lines)-60):], "\n"))
		}
		if err := controller.Kill(); err != nil {
			c.t.Error(err)
		}
	}()
	do()
}

// calmFor watches for a while and demands that nothing happens to NodeClaims and Nodes.
func (c *cluster) calmFor(length time.Duration) {
	c.t.Helper()
	select {
	case <-time.After(length):
	case <-c.t.Context().Done():
	}
	if disturbed := c.take(c.t); len(disturbed) > 0 {
		c.t.Fatalf("the fleet is not left as it is:\n%s", strings.Join(disturbed, "\n"))
	}
	c.onePerClaim()
}
