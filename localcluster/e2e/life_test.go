package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// oneGuardedPod returns a cluster with one pod, whose PodDisruptionBudget allows no disruption, and its node.
func oneGuardedPod(t *testing.T) (*testRig, corev1.Node) {
	t.Helper()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, quick))
	r.apply(deployment("web", 1, "{cpu: '1'}", "") + guard("web", "maxUnavailable: 0"))
	r.allRunning(1, soon)
	return r, r.nodeOf("web")
}

// P-40, P-42: a deleted claim's node is tainted and drained by the eviction API. A budget that allows no disruption
// holds it. The claim names the pod and the budget, and says that waiting will not help. When the budget allows it,
// the pod moves and the node goes.
func TestDrainRespectsDisruptionBudgets(t *testing.T) {
	t.Parallel()
	r, node := oneGuardedPod(t)
	claim := node.Name
	r.run("delete", "nodeclaim", claim, "--wait=false")
	r.eventually(soon, "the claim to say that the budget holds the drain",
		func(ctx context.Context) (bool, string, error) {
			var c karpenterv1.NodeClaim
			if err := r.Client.Get(ctx, client.ObjectKey{Name: claim}, &c); err != nil {
				return false, "", err
			}
			status, reason, message := conditionOf(c.Status.Conditions, karpenterv1.ConditionTypeDrained)
			saw := status + " " + reason + " " + message
			named := strings.Contains(message, "pod default/web-") &&
				strings.Contains(message, "PodDisruptionBudget web ")
			return status != "True" && named && strings.Contains(message, "it can never allow one"), saw, nil
		})
	held, err := r.nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fmt.Sprint(held[node.Name].Spec.Taints), karpenterv1.DisruptedTaintKey) {
		t.Errorf("taints %v: want %s while draining", held[node.Name].Spec.Taints, karpenterv1.DisruptedTaintKey)
	}
	if pods, err := r.pods(t.Context(), client.MatchingLabels{"app": "web"}); err != nil || len(pods) != 1 ||
		pods[0].Spec.NodeName != node.Name {
		t.Fatalf("the protected pod has moved: %v %v", pods, err)
	}
	r.run("patch", "pdb", "web", "--type=merge", "-p", `{"spec":{"maxUnavailable":1}}`)
	r.eventually(later, "the old node to be gone and the pod to run elsewhere",
		func(ctx context.Context) (bool, string, error) {
			var old karpenterv1.NodeClaim
			if err := r.Client.Get(ctx, client.ObjectKey{Name: claim}, &old); !apierrors.IsNotFound(err) {
				return false, "the claim is there", err
			}
			pods, err := r.pods(ctx, client.MatchingLabels{"app": "web"})
			return len(pods) == 1 && pods[0].Status.Phase == corev1.PodRunning && pods[0].Spec.NodeName != node.Name,
				fmt.Sprintf("%d pods", len(pods)), err
		})
	r.oneNodePerClaim()
}

// P-40: somebody takes our finalizer, the owner and a label off a Node. They come back, so that the node is drained.
// Somebody else's reboot taint goes.
func TestMarksOfANodeComeBack(t *testing.T) {
	t.Parallel()
	r, node := oneGuardedPod(t)
	r.run("patch", "node", node.Name, "--type=merge", "-p",
		`{"metadata":{"finalizers":null,"ownerReferences":null,"labels":{"karpenter.sh/initialized":null}}}`)
	r.run("taint", "node", node.Name, karpenterv1.RebootingTaintKey+"=:NoSchedule")
	r.eventually(soon, "our marks on the node", func(ctx context.Context) (bool, string, error) {
		nodes, err := r.nodes(ctx)
		now := nodes[node.Name]
		saw := fmt.Sprintf("finalizers %v, owners %v, labels %v, taints %v", now.Finalizers, now.OwnerReferences,
			now.Labels, now.Spec.Taints)
		return len(now.Finalizers) == len(node.Finalizers) && len(now.OwnerReferences) == 1 &&
			now.Labels[karpenterv1.NodeInitializedLabelKey] == "true" && len(now.Spec.Taints) == 0, saw, err
	})
	r.run("delete", "nodeclaim", node.Name, "--wait=false")
	r.eventually(soon, "the budget to hold the drain", func(ctx context.Context) (bool, string, error) {
		var c karpenterv1.NodeClaim
		err := r.Client.Get(ctx, client.ObjectKey{Name: node.Name}, &c)
		_, _, message := conditionOf(c.Status.Conditions, karpenterv1.ConditionTypeDrained)
		return strings.Contains(message, "PodDisruptionBudget web "), message, err
	})
}

// D-03: a finalizer holds a pod that is ending. A minute after its grace period it counts as stuck: its node goes, and
// the drain does not wait for it.
func TestAPodThatNobodyEndsKeepsNoNode(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, quick))
	r.apply(deployment("web", 1, "{cpu: '1'}", ""))
	r.run("patch", "deployment", "web", "--type=merge", "-p",
		`{"spec":{"template":{"metadata":{"finalizers":["example.com/hold"]}}}}`)
	r.run("rollout", "status", "deployment", "web", "--timeout=1m")
	r.run("scale", "deployment", "web", "--replicas=0")
	held := func(ctx context.Context) (int, error) {
		pods, err := r.pods(ctx, client.MatchingLabels{"app": "web"})
		return len(pods), err
	}
	if n, err := held(t.Context()); err != nil || n == 0 {
		t.Fatalf("%d pods are held by their finalizers, want some (%v)", n, err)
	}
	r.eventually(later, "the node to go", func(ctx context.Context) (bool, string, error) {
		nodes, err := r.nodes(ctx)
		n, podErr := held(ctx)
		return len(nodes) == 0, fmt.Sprintf("%d nodes, %d pods are held", len(nodes), n), errors.Join(err, podErr)
	})
	if n, err := held(t.Context()); err != nil || n == 0 {
		t.Errorf("%d pods are held by their finalizers after their node went, want some (%v)", n, err)
	}
}

// P-01: a pod has a higher priority than one that a finalizer holds. kube-scheduler nominates it to the node of that
// one, which the budget keeps. A minute after the other's grace period the pod gets a node of its own.
func TestAPodThatPreemptsInVainGetsANode(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, "disruption: {consolidateAfter: Never, budgets: [{nodes: '0'}]}"))
	const pod = `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: %[1]s}
value: %[2]d
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {app: %[1]s}, finalizers: [%[3]s]}
spec:
  priorityClassName: %[1]s
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: none, resources: {requests: {cpu: "3"}}}]
`
	r.apply(fmt.Sprintf(pod, "low", 1, "example.com/hold"))
	r.allRunning(1, soon)
	r.apply(fmt.Sprintf(pod, "high", 2, ""))
	r.eventually(soon, "kube-scheduler to nominate the pod", func(ctx context.Context) (bool, string, error) {
		var high corev1.Pod
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "high"}, &high)
		return high.Status.NominatedNodeName != "", fmt.Sprint(high.Status), err
	})
	before := r.nodeOf("low")
	r.eventually(later, "the pod to run elsewhere", func(ctx context.Context) (bool, string, error) {
		var high corev1.Pod
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "high"}, &high)
		return high.Spec.NodeName != "" && high.Spec.NodeName != before.Name, fmt.Sprint(high.Status), err
	})
}

// P-33: a NodeClaim made by hand, without a pool, is launched, registered and initialized. It goes when it is deleted
// or expires.
func TestHandMadeClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(`
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: by-hand}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements:
  - {key: topology.kubernetes.io/zone, operator: In, values: [test-zone-c]}
  resources: {requests: {cpu: "3"}}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: by-hand-for-a-while}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements: []
  expireAfter: 20s
`)
	r.eventually(soon, "the claim to be Ready", func(ctx context.Context) (bool, string, error) {
		var c karpenterv1.NodeClaim
		err := r.Client.Get(ctx, client.ObjectKey{Name: "by-hand"}, &c)
		status, _, _ := conditionOf(c.Status.Conditions, karpenterv1.ConditionTypeReady)
		return status == "True", fmt.Sprint(c.Status.Conditions), err
	})
	nodes, err := r.nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if zone := nodes["by-hand"].Labels[corev1.LabelTopologyZone]; zone != "test-zone-c" {
		t.Errorf("the node stands in %q, want test-zone-c", zone)
	}
	allocatable := nodes["by-hand"].Status.Allocatable
	if cpu := allocatable.Cpu().Value(); cpu < 3 {
		t.Errorf("the node has %d cpu, want at least 3", cpu)
	}
	r.run("delete", "nodeclaim", "by-hand", "--timeout=60s")
	r.nothingLeft(soon)
	if expired, err := r.event(t.Context(), "Expired", "by-hand-for-a-while"); err != nil || expired == nil {
		t.Errorf("no event says that the other claim has expired (%v)", err)
	}
}

// P-32, P-40: whatever a user deletes by hand, nothing leaks and the pods get another node: the Node, then the
// NodePool with all its claims.
func TestDeletedByHand(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, ""))
	r.apply(deployment("web", 1, "{cpu: '1'}", ""))
	r.allRunning(1, soon)
	first := r.nodeOf("web").Name
	r.run("delete", "node", first, "--wait=false")
	r.eventually(later, "the pod to run on another node", func(ctx context.Context) (bool, string, error) {
		pods, err := r.pods(ctx)
		return len(pods) == 1 && pods[0].Status.Phase == corev1.PodRunning && pods[0].Spec.NodeName != first,
			fmt.Sprint(len(pods)), err
	})
	r.eventually(soon, "one claim", func(ctx context.Context) (bool, string, error) {
		claims, err := r.claims(ctx)
		return len(claims) == 1, fmt.Sprintf("%d claims", len(claims)), err
	})
	r.oneNodePerClaim()
	r.run("delete", "nodepool", "default", "--wait=false")
	r.nothingLeft(later)
	time.Sleep(3 * time.Second) // The pod pends again; without a pool nothing may come for it.
	r.nothingLeft(soon)
}

// P-30, P-51: Joiner waits for a machine that boots slowly. Meanwhile the machine counts as capacity: no second one
// comes.
func TestSlowBoot(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(strings.Replace(kwokPool("default", amd64Linux, ""), "metadata: {name: default}\n---",
		"metadata: {name: default}\nspec: {nodeRegistrationDelay: 8s}\n---", 1))
	start := time.Now() // nothing is launched before there are pods
	r.apply(deployment("web", 3, "{cpu: '1'}", ""))
	r.allRunning(3, soon)
	if took := time.Since(start); took < 8*time.Second {
		t.Errorf("running after %s: the delay of 8s did not count", took)
	}
	claims, err := r.claims(t.Context())
	if err != nil || len(claims) != 1 {
		t.Errorf("%d claims for three small pods, want 1 (%v)", len(claims), err)
	}
}
