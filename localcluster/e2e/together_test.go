package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// P-04: pods that keep together in a zone move while their predecessors are still ending. kube-scheduler keeps them in
// that zone, and so the replacement of a drifted node is there, although another zone costs the same.
func TestPodsThatKeepTogetherMoveBeforeOthersHaveEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	pool := func(zones, expires string) string {
		return kwokPool("default", fmt.Sprintf(`
requirements:
- {key: topology.kubernetes.io/zone, operator: In, values: [%s]}
- {key: kubernetes.io/arch, operator: In, values: [amd64]}
- {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
expireAfter: %s`, zones, expires), "disruption: {consolidateAfter: Never, budgets: [{nodes: '100%'}]}")
	}
	r.apply(pool("test-zone-c", "700h"))
	r.apply(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: tied, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: tied}}
  template:
    metadata:
      labels: {app: tied}
      finalizers: [example.com/hold] # so that they go on ending
    spec:
      terminationGracePeriodSeconds: 1
      affinity:
        podAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: tied}}}
      containers: [{name: main, image: none, resources: {requests: {cpu: 1500m}}}]
`)
	r.allRunning(3, soon)
	before, err := r.nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.apply(pool("test-zone-a, test-zone-b, test-zone-c, test-zone-d", "600h")) // they drift by the second
	r.eventually(soon, "successors beside pods that are ending", func(ctx context.Context) (bool, string, error) {
		pods, err := r.pods(ctx)
		nodes, nodesErr := r.nodes(ctx)
		if err := errors.Join(err, nodesErr); err != nil {
			return false, "", err
		}
		end := 0
		var where []string
		for _, pod := range pods {
			_, old := before[pod.Spec.NodeName]
			switch {
			case pod.DeletionTimestamp != nil:
				end++
			case pod.Status.Phase == corev1.PodRunning && !old:
				where = append(where, nodes[pod.Spec.NodeName].Labels[corev1.LabelTopologyZone])
			}
		}
		return len(where) == 3 && end == 3, fmt.Sprintf("successors run in %v, %d pods end", where, end), nil
	})
}
