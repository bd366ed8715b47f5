package system

import (
	"fmt"
	"strings"

	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// workload returns Deployments with this number of pods in all, a multiple of 500 (or of 50, to shrink to): four
// fifths of mixed sizes, and a fifth in five groups whose pods keep apart from each other by hostname.
func workload(pods int) string {
	var b strings.Builder
	for _, w := range scenario.Workloads() {
		fmt.Fprintf(&b, deployment, w.Name, pods*w.Percent/100, w.MilliCores, w.Mebibytes)
		if w.Apart {
			fmt.Fprintf(&b, antiAffinity, w.Name)
		}
	}
	return b.String()
}

const deployment = `
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
      containers: [{name: main, image: example.invalid/main, resources: {requests: {cpu: %[3]dm, memory: %[4]dMi}}}]`

const antiAffinity = `
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: %s}}}]}}`

// nodePool returns the pool that both sides get: on-demand capacity, so that no side's rules for spot matter. Nodes
// are not disrupted before the workload shrinks: budget is 0 until then, and 100 % afterwards.
func nodePool(budget string) string { return fmt.Sprintf(pool, budget) }

const pool = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s, budgets: [{nodes: "%s"}]}
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
`
