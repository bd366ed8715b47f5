package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// setUnhealthy sets the condition for trials of node repair on a node, as an agent on the node would.
func (r *testRig) setUnhealthy(node, status string) {
	r.t.Helper()
	patch := fmt.Sprintf(
		`{"status":{"conditions":[{"type":"KWOKUnhealthy","status":%q,"reason":"ByHand","message":"","lastTransitionTime":%q}]}}`,
		status, time.Now().UTC().Format(time.RFC3339))
	r.run("patch", "node", node, "--subresource=status", "--type=strategic", "-p", patch)
}

// D-13, K-49: with the gate on, a node that stays unhealthy goes once its replacement is there. While more than a
// fifth of the pool is unhealthy, nothing is replaced, and an event says why.
func TestAnUnhealthyNodeIsReplaced(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *rig.Options) { o.Args = append(o.Args, "--feature-gates=NodeRepair=true") })
	r.apply(kwokPool("default", amd64Linux, quick))
	r.apply(deployment("web", 5, "{cpu: '1'}", `affinity:
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
    - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}`))
	r.allRunning(5, later)
	nodes, err := r.nodes(t.Context())
	if err != nil || len(nodes) != 5 {
		t.Fatalf("%d nodes, error %v; want 5", len(nodes), err)
	}
	var broken []string
	for name := range nodes {
		if len(broken) < 3 {
			broken = append(broken, name)
			r.setUnhealthy(name, "True")
		}
	}
	r.eventually(later, "an event that says why nothing is repaired", func(ctx context.Context) (bool, string, error) {
		blocked, err := r.event(ctx, "NodeRepairBlocked", "default")
		if blocked == nil || err != nil {
			return false, "none", err
		}
		return strings.Contains(blocked.Note, "3 of 5 nodes of NodePool default are unhealthy"), blocked.Note, nil
	})
	for _, claim := range r.claimsOf("default") {
		if claim.DeletionTimestamp != nil {
			t.Fatalf("NodeClaim %s is deleted although most of the pool is unhealthy", claim.Name)
		}
	}
	before, old := map[string]bool{}, ""
	for _, claim := range r.claimsOf("default") {
		if before[claim.Name] = true; claim.Status.NodeName == broken[2] {
			old = claim.Name
		}
	}
	r.setUnhealthy(broken[0], "False")
	r.setUnhealthy(broken[1], "False")
	r.eventually(later, "the node that stays unhealthy to be gone, and its pod to run elsewhere",
		func(ctx context.Context) (bool, string, error) {
			err := r.Client.Get(ctx, client.ObjectKey{Name: broken[2]}, &corev1.Node{})
			if !apierrors.IsNotFound(err) {
				return false, "the node is there", err
			}
			pods, err := r.pods(ctx)
			running := 0
			for _, pod := range pods {
				if pod.Status.Phase == corev1.PodRunning {
					running++
				}
			}
			return running == 5, fmt.Sprintf("%d of 5 pods run", running), err
		})
	after, err := r.nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name := range nodes {
		if _, there := after[name]; !there && name != broken[2] {
			t.Errorf("node %s is gone, too", name)
		}
	}
	r.oneNodePerClaim()
	r.cameFirst(old, before)
}

// cameFirst checks that the one new claim was initialized when the old one was deleted.
func (r *testRig) cameFirst(old string, before map[string]bool) {
	r.t.Helper()
	gone, err := r.event(r.t.Context(), "DisruptionTerminating", old)
	if gone == nil || err != nil {
		r.t.Fatalf("no event says that NodeClaim %s is removed: %v", old, err)
	}
	came := slices.DeleteFunc(r.claimsOf("default"), func(c karpenterv1.NodeClaim) bool { return before[c.Name] })
	if len(came) != 1 {
		r.t.Fatalf("%d claims came, want one", len(came))
	}
	ready, _ := condition.Get(came[0].Status.Conditions, karpenterv1.ConditionTypeInitialized)
	if at := gone.EventTime; ready.Status != metav1.ConditionTrue || at.IsZero() ||
		ready.LastTransitionTime.After(at.Time) {
		r.t.Errorf("NodeClaim %s was deleted at %s, and what replaces it is initialized since %s", old, at,
			ready.LastTransitionTime)
	}
}
