package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// longBatch is how long a new batch of pods waits, in tests of what must not wait for one. What comes within
// almostBatch did not wait; the rest is for busy machines.
const longBatch, almostBatch = 25 * time.Second, 20 * time.Second

func withLongBatch(o *rig.Options) {
	o.Args = append(o.Args, "--batch-idle-duration="+longBatch.String(), "--batch-max-duration="+longBatch.String())
}

// faultyPool is a pool with a node class of its own, of that name, with faults.
func faultyPool(name, faults, spec string) string {
	pool := kwokPool(name, amd64Linux, spec)
	class := fmt.Sprintf("metadata:\n  name: %s\n  annotations: {karpenter.kwok.sh/faults: %q}", name, faults)
	pool = strings.Replace(pool, "metadata: {name: default}", class, 1)
	return strings.Replace(pool, "kind: KWOKNodeClass, name: default}", "kind: KWOKNodeClass, name: "+name+"}", 1)
}

// event returns the first event of a reason about an object whose name begins with about.
func (r *testRig) event(ctx context.Context, reason, about string) (*eventsv1.Event, error) {
	var list eventsv1.EventList
	if err := r.Client.List(ctx, &list); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if e := &list.Items[i]; e.Reason == reason && strings.HasPrefix(e.Regarding.Name, about) {
			return e, nil
		}
	}
	return nil, nil
}

func (r *testRig) claimsOf(pool string) []karpenterv1.NodeClaim {
	r.t.Helper()
	claims, err := r.claims(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	var own []karpenterv1.NodeClaim
	for _, claim := range claims {
		if claim.Labels[karpenterv1.NodePoolLabelKey] == pool {
			own = append(own, claim)
		}
	}
	return own
}

// P-31, P-51: the first pool is sold out. Its claim is given up, and its pods are planned for the other pool in the
// same round: they do not wait for another batch.
func TestInsufficientCapacityIsPlannedAgainAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, withLongBatch)
	r.apply(faultyPool("soldout", "insufficientCapacity: [{}]", "weight: 10\n"+quick) + "\n---" +
		kwokPool("second", amd64Linux, quick))
	r.apply(deployment("web", 3, "{cpu: '1'}", ""))
	r.allRunning(3, later)
	refused, err := r.event(t.Context(), "InsufficientCapacityError", "soldout")
	if err != nil || refused == nil {
		t.Fatalf("event %v, error %v: want one that says that the first pool had no capacity", refused, err)
	}
	served := r.claimsOf("second")
	if len(served) == 0 || len(r.claimsOf("soldout")) != 0 {
		t.Fatalf("%d claims of the second pool, %d of the first: want all of the second", len(served),
			len(r.claimsOf("soldout")))
	}
	for _, claim := range served {
		if wait := claim.CreationTimestamp.Sub(refused.EventTime.Time); wait > almostBatch {
			t.Errorf("NodeClaim %s came %s after the refusal: its pods have waited for another batch", claim.Name,
				wait)
		}
	}
	// The catalogue knows what was refused: the next round does not ask the first pool again.
	r.run("scale", "deployment", "web", "--replicas=60")
	r.allRunning(60, later)
	if again := r.claimsOf("soldout"); len(again) != 0 {
		t.Errorf("%d claims of the pool that is sold out", len(again))
	}
	r.oneNodePerClaim()
}

// P-30, P-51: machines that never join are given up after the registration timeout and ended. Their pods are planned
// again at once.
func TestMachinesThatNeverJoinAreGivenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *rig.Options) {
		withLongBatch(o)
		o.Args = append(o.Args, "--registration-timeout=15s")
	})
	r.apply(faultyPool("default", "neverJoin: [{}]", quick))
	r.apply(deployment("web", 1, "{cpu: '1'}", ""))
	r.eventually(later, "a claim whose machine runs and does not join", func(context.Context) (bool, string, error) {
		claims := r.claimsOf("default")
		if len(claims) != 1 {
			return false, fmt.Sprintf("%d claims", len(claims)), nil
		}
		status, reason, message := conditionOf(claims[0].Status.Conditions, karpenterv1.ConditionTypeRegistered)
		return claims[0].Status.ProviderID != "" && status == "Unknown", status + " " + reason + " " + message, nil
	})
	first := r.claimsOf("default")[0]
	r.run("annotate", "kwoknodeclass", "default", "karpenter.kwok.sh/faults-")
	r.allRunning(1, later)
	given, err := r.event(t.Context(), "Timeout", first.Name)
	if err != nil || given == nil || !strings.Contains(given.Note, "not Registered after 15s") {
		t.Fatalf("event %v, error %v: want one that names the timeout", given, err)
	}
	r.eventually(soon, "one claim, another one than the first", func(context.Context) (bool, string, error) {
		claims := r.claimsOf("default")
		return len(claims) == 1 && claims[0].UID != first.UID, fmt.Sprintf("%d claims", len(claims)), nil
	})
	if wait := r.claimsOf("default")[0].CreationTimestamp.Sub(given.EventTime.Time); wait > almostBatch {
		t.Errorf("the next claim came %s after the first was given up: its pod has waited for another batch", wait)
	}
	if left := r.run("get", "configmaps", "-n", "kube-system", "-l", "joiner.sh/boot-record", "-o",
		"name"); strings.TrimSpace(left) != "" {
		t.Errorf("machines are left: %s", left)
	}
	r.oneNodePerClaim()
}

// P-30: a launch that the cloud delays for ever, and a node that never becomes fit for pods, are given up after the
// timeouts of their stages, which are settings.
func TestAStageThatTakesTooLongIsGivenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *rig.Options) {
		o.Args = append(o.Args, "--launch-timeout=15s", "--initialization-timeout=15s")
	})
	startup := "startupTaints: [{key: example.com/agent, effect: NoSchedule}]\n" + amd64Linux
	r.apply(faultyPool("throttled", "throttling: [{calls: [launch], until: 2199-01-01T00:00:00Z}]", quick))
	r.apply(deployment("web", 1, "{cpu: '1'}", ""))
	r.eventually(later, "the end of the launch's patience", func(ctx context.Context) (bool, string, error) {
		given, err := r.event(ctx, "Timeout", "throttled-")
		return given != nil && strings.Contains(given.Note, "not Launched after 15s"), "no event", err
	})
	r.apply(kwokPool("unfit", startup, "weight: 10\n"+quick))
	r.run("annotate", "kwoknodeclass", "throttled", "karpenter.kwok.sh/faults-")
	r.run("delete", "nodepool", "throttled")
	r.eventually(later, "the end of the initialization's patience", func(ctx context.Context) (bool, string, error) {
		given, err := r.event(ctx, "Timeout", "unfit-")
		return given != nil && strings.Contains(given.Note, "not Initialized after 15s"), "no event", err
	})
	r.run("delete", "deployment", "web")
	r.nothingLeft(later)
}

// P-43, P-41: after a notice the node is drained at once, and replacements are planned at once. Unprotected pods move
// by eviction. A pod that a budget holds is deleted before the machine is gone, with its own grace period. The
// offering is not requested again at once.
func TestAnInterruptedNodeIsDrainedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, quick))
	r.apply(deployment("held", 1, "{cpu: '1'}", "") + deployment("free", 1, "{cpu: '1'}", "") +
		guard("held", "maxUnavailable: 0"))
	r.allRunning(2, later)
	node := r.nodeOf("held")
	var claim karpenterv1.NodeClaim
	if err := r.Client.Get(t.Context(), client.ObjectKey{Name: node.Name}, &claim); err != nil {
		t.Fatal(err)
	}
	noticed := time.Now()
	gone := noticed.Add(30 * time.Second).UTC().Truncate(time.Second)
	r.run("annotate", "node", node.Name, "karpenter.kwok.sh/interrupted="+gone.Format(time.RFC3339))
	r.eventually(soon, "the taint of a node that goes", func(ctx context.Context) (bool, string, error) {
		nodes, err := r.nodes(ctx)
		taints := fmt.Sprint(nodes[node.Name].Spec.Taints)
		return strings.Contains(taints, karpenterv1.DisruptedTaintKey), taints, err
	})
	r.eventually(later, "the node to be gone and both pods to run elsewhere",
		func(ctx context.Context) (bool, string, error) {
			err := r.Client.Get(ctx, client.ObjectKey{Name: node.Name}, &corev1.Node{})
			if !apierrors.IsNotFound(err) {
				return false, "the node is there", err
			}
			pods, err := r.pods(ctx)
			running := 0
			for _, pod := range pods {
				if pod.Status.Phase == corev1.PodRunning && pod.Spec.NodeName != node.Name {
					running++
				}
			}
			return running == 2 && len(pods) == 2, fmt.Sprintf("%d of %d pods run elsewhere", running, len(pods)), err
		})
	for reason, about := range map[string]string{"SpotInterrupted": claim.Name,
		"TerminatingOnInterruption": claim.Name} {
		if found, err := r.event(t.Context(), reason, about); err != nil || found == nil {
			t.Errorf("no event %s about %s (%v)", reason, about, err)
		}
	}
	offering := func(labels map[string]string) string {
		return labels[corev1.LabelInstanceTypeStable] + "/" + labels[corev1.LabelTopologyZone] + "/" +
			labels[karpenterv1.CapacityTypeLabelKey]
	}
	for _, next := range r.claimsOf("default") {
		if next.UID == claim.UID {
			continue // is ending
		}
		if offering(next.Labels) == offering(claim.Labels) {
			t.Errorf("NodeClaim %s is of the offering that was taken away, %s", next.Name, offering(claim.Labels))
		}
		if wait := next.CreationTimestamp.Sub(noticed); wait > almostBatch {
			t.Errorf("NodeClaim %s came %s after the notice", next.Name, wait)
		}
	}
}
