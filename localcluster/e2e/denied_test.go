package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// noEvictions denies the eviction of pods whose name begins with kept-. The object of such a request does not have the
// pod's labels.
const noEvictions = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-evictions}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods/eviction]}]
  validations: [{expression: "!object.metadata.name.startsWith('kept-')", message: "kept pods stay where they are"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-evictions}
spec: {policyName: no-evictions, validationActions: [Deny]}
`

// P-40, P-42: an admission policy denies the eviction of one pod. The other pods of its node are evicted. The denied
// one is named in the condition Drained and in an event. When the policy goes, so does the node.
func TestADeniedEvictionDoesNotKeepTheOtherPods(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, "disruption: {consolidateAfter: Never}"))
	r.apply(deployment("kept", 1, "{cpu: 200m}", "") + deployment("zfree", 2, "{cpu: 200m}", ""))
	r.allRunning(3, soon)
	claims := r.claimsOf("default")
	if len(claims) != 1 {
		t.Fatalf("%d NodeClaims for three small pods, want 1", len(claims))
	}
	first := claims[0]
	r.apply(noEvictions)
	r.untilDenied("kept")
	r.run("delete", "node", first.Status.NodeName, "--wait=false")
	r.eventually(later, "the pods that nobody denies to run elsewhere",
		func(ctx context.Context) (bool, string, error) {
			free, err := r.runningOff(ctx, first.Status.NodeName, "zfree")
			return free == 2, fmt.Sprintf("%d of 2 run elsewhere", free), err
		})
	r.eventually(soon, "the condition Drained to name the denied pod",
		func(ctx context.Context) (bool, string, error) {
			var claim karpenterv1.NodeClaim
			err := r.Client.Get(ctx, client.ObjectKeyFromObject(&first), &claim)
			status, reason, message := conditionOf(claim.Status.Conditions, karpenterv1.ConditionTypeDrained)
			named := strings.Contains(message, "pod default/kept-") &&
				strings.Contains(message, "kept pods stay where they are")
			done := status == "False" && reason == "Blocked" && named && !strings.Contains(message, "zfree")
			return done, fmt.Sprintf("%s %s: %s", status, reason, message), err
		})
	r.told("Node", first.Status.NodeName, "FailedDraining", "Cannot drain: pod default/kept-")
	if moved, err := r.runningOff(t.Context(), first.Status.NodeName, "kept"); err != nil || moved != 0 {
		t.Errorf("%d pods that a policy keeps were moved (%v)", moved, err)
	}
	r.run("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "no-evictions")
	r.eventually(later, "the node to go, and its last pod to run elsewhere",
		func(ctx context.Context) (bool, string, error) {
			nodes, err := r.nodes(ctx)
			if err != nil {
				return false, "", err
			}
			_, there := nodes[first.Status.NodeName]
			claimGone := apierrors.IsNotFound(r.Client.Get(ctx, client.ObjectKeyFromObject(&first),
				&karpenterv1.NodeClaim{}))
			kept, err := r.runningOff(ctx, first.Status.NodeName, "kept")
			saw := fmt.Sprintf("node there: %t; claim gone: %t; %d of 1 run elsewhere", there, claimGone, kept)
			return !there && claimGone && kept == 1, saw, err
		})
	r.allRunning(3, soon)
	r.oneNodePerClaim()
}

// untilDenied waits until the API server denies the eviction of an app's pod: a policy takes a moment to be in force.
func (r *testRig) untilDenied(app string) {
	r.t.Helper()
	r.eventually(soon, "the policy to be in force", func(ctx context.Context) (bool, string, error) {
		pods, err := r.pods(ctx, client.MatchingLabels{"app": app})
		if err != nil || len(pods) != 1 {
			return false, fmt.Sprintf("%d pods", len(pods)), err
		}
		err = r.Client.SubResource("eviction").Create(ctx, &pods[0], &policyv1.Eviction{}, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "no-evictions"), fmt.Sprint(err), nil
	})
}

// runningOff counts the pods of an app that run on other nodes than this one.
func (r *testRig) runningOff(ctx context.Context, node, app string) (int, error) {
	pods, err := r.pods(ctx, client.MatchingLabels{"app": app})
	n := 0
	for _, pod := range pods {
		if pod.Spec.NodeName != node && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			n++
		}
	}
	return n, err
}
