package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// K-49: a node with a trouble that a reboot cures is drained, rebooted and used again: the same node, with another
// boot ID. No mark of the repair is left on node and claim, and the claim's condition says what happened.
func TestAnUnhealthyNodeIsRebooted(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *rig.Options) { o.Args = append(o.Args, "--feature-gates=NodeRepair=true") })
	r.apply(kwokPool("default", amd64Linux, quick))
	r.apply(deployment("web", 2, "{cpu: '1'}", oneEach("web")))
	r.allRunning(2, later)
	nodes, err := r.nodes(t.Context())
	if err != nil || len(nodes) != 2 {
		t.Fatalf("%d nodes, error %v; want 2", len(nodes), err)
	}
	var before corev1.Node
	for name := range nodes {
		if err := r.Client.Get(t.Context(), client.ObjectKey{Name: name}, &before); err != nil {
			t.Fatal(err)
		}
	}
	// It has had the condition for longer than is tolerated.
	patch := fmt.Sprintf(
		`{"status":{"conditions":[{"type":"KWOKRebootRequired","status":"True","reason":"ByHand","message":"",`+
			`"lastTransitionTime":%q}]}}`, time.Now().Add(-time.Minute).UTC().Format(time.RFC3339))
	r.run("patch", "node", before.Name, "--subresource=status", "--type=strategic", "-p", patch)
	r.eventually(later, "the node to be rebooted, and open again", func(ctx context.Context) (bool, string, error) {
		var node corev1.Node
		if err := r.Client.Get(ctx, client.ObjectKey{Name: before.Name}, &node); err != nil {
			return false, "", err
		}
		fenced := slices.ContainsFunc(node.Spec.Taints,
			func(t corev1.Taint) bool { return t.Key == karpenterv1.RebootingTaintKey })
		anew := node.UID == before.UID && node.Status.NodeInfo.BootID != before.Status.NodeInfo.BootID
		ready := node.Labels[karpenterv1.NodeInitializedLabelKey] == "true"
		return anew && !fenced && ready, fmt.Sprintf("boot ID %q, fenced %t, initialized %t",
			node.Status.NodeInfo.BootID, fenced, ready), nil
	})
	r.eventually(later, "the claim to say so", func(context.Context) (bool, string, error) {
		for _, claim := range r.claimsOf("default") {
			if claim.Status.NodeName != before.Name {
				continue
			}
			rebooted, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeRebooting)
			_, marked := claim.Annotations[karpenterv1.RebootPreBootIDAnnotationKey]
			ready := condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeInitialized)
			return rebooted.Reason == karpenterv1.ReasonRebootSucceeded && !marked && ready &&
					claim.DeletionTimestamp == nil,
				fmt.Sprintf("%s, marked %t, initialized %t", rebooted.Reason, marked, ready), nil
		}
		return false, "no claim", nil
	})
	r.eventually(later, "an event about it", func(ctx context.Context) (bool, string, error) {
		seen, err := r.event(ctx, "RebootObserved", before.Name)
		return seen != nil, "none", err
	})
	r.allRunning(2, later)
	r.oneNodePerClaim()
}
