package takeover

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/bench/internal/peer"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// start starts a cluster without any controller or CRD of either.
func start(t *testing.T) *cluster {
	t.Helper()
	return startWith(t, func(*rig.Options) {})
}

// startWith is start with other options.
func startWith(t *testing.T, more func(*rig.Options)) *cluster {
	t.Helper()
	options, err := rig.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	options.Log, options.WithoutJoiner, options.WithoutManifests = io.Discard, true, true
	more(&options)
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	r, err := rig.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Errorf("stopping the rig: %v", err)
		}
	})
	return &cluster{Rig: r, t: t, options: options}
}

// binary returns the path of the peer's controller.
func binary(t *testing.T) string {
	t.Helper()
	path := os.Getenv(peer.BinaryEnv)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s: %v: run `make bin/karpenter` and set it to the absolute path of that file", peer.BinaryEnv, err)
	}
	return path
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		output, _ := c.Kubectl(context.WithoutCancel(c.t.Context()), "", "get", "nodepools,nodeclaims,nodes,pods",
			"-o", "wide")
		c.t.Fatalf("%v\n%s", err, output)
	}
}

func (c *cluster) claims() []karpenterv1.NodeClaim {
	c.t.Helper()
	var list karpenterv1.NodeClaimList
	c.must(c.Client.List(c.t.Context(), &list))
	return list.Items
}

// madeBy returns a claim of the pool full whose instance Karpenter launched, or Joiner. Karpenter names its simulated
// machines kwok-<claim>-<something>; Joiner names them like the claim.
func (c *cluster) madeBy(karpenter bool) karpenterv1.NodeClaim {
	c.t.Helper()
	for _, claim := range c.claims() {
		if strings.HasPrefix(claim.Status.ProviderID, "kwok://kwok-") == karpenter &&
			claim.Labels[karpenterv1.NodePoolLabelKey] == "full" {
			return claim
		}
	}
	c.t.Fatalf("no claim of the pool full has an instance of Karpenter's (%t)", karpenter)
	return karpenterv1.NodeClaim{}
}

// replace deletes a claim and waits until claim and node are gone and its pods run elsewhere: the present controller
// ends what the other one has made.
func (c *cluster) replace(maker string, claim karpenterv1.NodeClaim) {
	c.t.Helper()
	ctx := c.t.Context()
	c.must(c.Client.Delete(ctx, &claim))
	c.must(c.Eventually(ctx, within, fmt.Sprintf("the end of %s, made by %s", claim.Name, maker),
		func(ctx context.Context) (bool, string, error) {
			claimGone := c.Client.Get(ctx, client.ObjectKeyFromObject(&claim), &karpenterv1.NodeClaim{})
			nodeGone := c.Client.Get(ctx, client.ObjectKey{Name: claim.Status.NodeName}, &corev1.Node{})
			return apierrors.IsNotFound(claimGone) && apierrors.IsNotFound(nodeGone),
				fmt.Sprintf("claim: %v, node: %v", claimGone, nodeGone), nil
		}))
	c.must(c.Eventually(ctx, within, "its pods to run elsewhere", func(ctx context.Context) (bool, string, error) {
		var pods corev1.PodList
		err := c.Client.List(ctx, &pods, client.InNamespace("default"))
		for _, pod := range pods.Items {
			if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil ||
				pod.Spec.NodeName == claim.Status.NodeName {
				return false, "pod " + pod.Name + " is " + string(pod.Status.Phase), err
			}
		}
		return len(pods.Items) > 0, "", err
	}))
	c.onePerClaim()
}

// onePerClaim demands that claims and nodes correspond one to one, and that all are in order.
func (c *cluster) onePerClaim() {
	c.t.Helper()
	look := func(ctx context.Context) (bool, string, error) {
		var nodes corev1.NodeList
		if err := c.Client.List(ctx, &nodes); err != nil {
			return false, "", err
		}
		byProvider := map[string]int{}
		for _, node := range nodes.Items {
			byProvider[node.Spec.ProviderID]++
		}
		claims := c.claims()
		for _, claim := range claims {
			initialized := false
			for _, condition := range claim.Status.Conditions {
				initialized = initialized || condition.Type == karpenterv1.ConditionTypeInitialized &&
					condition.Status == "True"
			}
			if n := byProvider[claim.Status.ProviderID]; n != 1 || !initialized {
				return false, fmt.Sprintf("NodeClaim %s (%s) has %d nodes, initialized: %t", claim.Name,
					claim.Status.ProviderID, n, initialized), nil
			}
		}
		return len(nodes.Items) == len(claims), fmt.Sprintf("%d nodes for %d NodeClaims", len(nodes.Items),
			len(claims)), nil
	}
	c.must(c.Eventually(c.t.Context(), within, "a node for each NodeClaim", look))
}
