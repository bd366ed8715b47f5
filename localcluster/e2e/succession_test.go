package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const togetherByZone = "affinity:\n  podAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n" +
	"    - {topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: web}}}"

const onlyZoneB = amd64Linux + `
- {key: topology.kubernetes.io/zone, operator: In, values: [test-zone-b]}
- {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}`

// D-09, P-04: pods require each other's zone, and their budget lets one go at a time. They are moved one after
// another: by consolidation, which finds something cheaper, and by a user who deletes their node.
func TestPodsThatRequireEachOtherMoveOneAfterAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", onlyZoneB, quiet))
	r.apply(deployment("web", 3, "{cpu: 300m}", togetherByZone) + guard("web", "maxUnavailable: 1"))
	r.allRunning(3, soon)
	first := r.zones()
	// Now every zone has something cheaper.
	r.apply(kwokPool("default", amd64Linux, quiet))
	second := r.movedFrom(first)
	for node := range second {
		r.run("delete", "node", node, "--wait=false")
	}
	r.movedFrom(second)
	r.oneNodePerClaim()
}

// zones maps the nodes on which pods of web run to their zones.
func (r *testRig) zones() map[string]string {
	r.t.Helper()
	nodes, err := r.nodes(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	pods, err := r.pods(r.t.Context(), client.MatchingLabels{"app": "web"})
	if err != nil {
		r.t.Fatal(err)
	}
	zones := map[string]string{}
	for _, pod := range pods {
		zones[pod.Spec.NodeName] = nodes[pod.Spec.NodeName].Labels[corev1.LabelTopologyZone]
	}
	return zones
}

// movedFrom waits until the pods of web run on none of these nodes, and the nodes are gone. It returns where they run.
func (r *testRig) movedFrom(old map[string]string) map[string]string {
	r.t.Helper()
	r.eventually(later, fmt.Sprintf("the pods to leave %v", old), func(ctx context.Context) (bool, string, error) {
		pods, err := r.pods(ctx, client.MatchingLabels{"app": "web"})
		if err != nil {
			return false, "", err
		}
		nodes, err := r.nodes(ctx)
		running, saw := 0, ""
		for _, pod := range pods {
			saw += fmt.Sprintf("%s %s on %q; ", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
			if _, stays := old[pod.Spec.NodeName]; !stays && pod.Status.Phase == corev1.PodRunning &&
				pod.DeletionTimestamp == nil {
				running++
			}
		}
		for name := range old {
			if _, there := nodes[name]; there {
				return false, saw + name + " is there", err
			}
		}
		return running == 3 && len(pods) == 3, saw, err
	})
	zones := r.zones()
	for node, zone := range zones {
		if zone != "test-zone-b" {
			r.t.Errorf("node %s is in zone %s, the pods were in test-zone-b", node, zone)
		}
	}
	return zones
}
