package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// This file has the set-ups of Karpenter's public examples, as its users write them, on the catalogue of real EC2
// types. They differ from the EC2 ones in the node class only: KWOK's machines stand in for instances.

// generalPurpose is the block of requirements that the EC2 examples share.
const generalPurpose = `requirements:
- key: kubernetes.io/arch
  operator: In
  values: ["amd64"]
- key: kubernetes.io/os
  operator: In
  values: ["linux"]
- key: karpenter.sh/capacity-type
  operator: In
  values: [%s]
- key: karpenter.k8s.aws/instance-category
  operator: In
  values: ["c", "m", "r"]
- key: karpenter.k8s.aws/instance-generation
  operator: Gt
  values: ["2"]`

func general(capacityTypes string) string { return fmt.Sprintf(generalPurpose, capacityTypes) }

func onEC2Types(o *rig.Options) { o.Args = append(o.Args, "--instance-types-file-path", "aws") }

// nodeOf returns the node of the only pod with the label app.
func (r *testRig) nodeOf(app string) corev1.Node {
	r.t.Helper()
	pods, err := r.pods(r.t.Context(), client.MatchingLabels{"app": app})
	if err != nil || len(pods) != 1 {
		r.t.Fatalf("%d pods of %s, want 1 (%v)", len(pods), app, err)
	}
	nodes, err := r.nodes(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	node, found := nodes[pods[0].Spec.NodeName]
	if !found {
		r.t.Fatalf("the pod of %s is on no node: %q", app, pods[0].Spec.NodeName)
	}
	return node
}

// V-05, P-02, P-10, P-30: a general-purpose pool launches an on-demand c, m or r instance of a recent generation, with
// the labels and the bookkeeping that Karpenter users look for.
func TestExampleGeneralPurpose(t *testing.T) {
	t.Parallel()
	r := newRig(t, onEC2Types)
	// While a quiet time runs, lastPodEventTime is written every ten seconds; otherwise every minute.
	r.apply(kwokPool("general-purpose", general(`"on-demand"`), "disruption: {consolidateAfter: 30s}"))
	r.apply(deployment("web", 1, "{cpu: '1'}", ""))
	r.allRunning(1, soon)
	node := r.nodeOf("web")
	for label, want := range map[string]string{ // as every Karpenter node has them
		"karpenter.sh/capacity-type": "on-demand", "karpenter.sh/nodepool": "general-purpose",
		"kubernetes.io/arch":      "amd64",
		"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
		"karpenter.kwok.sh/kwoknodeclass": "default",
	} {
		if node.Labels[label] != want {
			t.Errorf("label %s of the node is %q, want %q", label, node.Labels[label], want)
		}
	}
	if family := node.Labels["karpenter.k8s.aws/instance-category"]; !strings.Contains("cmr", family) || family == "" {
		t.Errorf("instance category %q, want c, m or r", family)
	}
	claims, err := r.claims(t.Context())
	if err != nil || len(claims) != 1 {
		t.Fatalf("%d claims, want 1 (%v)", len(claims), err)
	}
	claim := claims[0]
	if len(claim.OwnerReferences) != 1 || claim.OwnerReferences[0].Kind != "NodePool" ||
		claim.Annotations[karpenterv1.NodePoolHashVersionAnnotationKey] != "v3" {
		t.Errorf("owner %v, annotations %v: want the NodePool and its hash of version v3", claim.OwnerReferences,
			claim.Annotations)
	}
	if claim.Status.LastPodEventTime.IsZero() {
		r.eventually(soon, "lastPodEventTime (V-10)", func(ctx context.Context) (bool, string, error) {
			claims, err := r.claims(ctx)
			return err == nil && !claims[0].Status.LastPodEventTime.IsZero(), "zero", err
		})
	}
	// V-13: the pool counts what it has.
	r.eventually(soon, "the pool's status to count one node", func(ctx context.Context) (bool, string, error) {
		var pool karpenterv1.NodePool
		err := r.Client.Get(ctx, client.ObjectKey{Name: "general-purpose"}, &pool)
		nodes := pool.Status.Resources["nodes"]
		return nodes.Value() == 1 && pool.Status.Nodes != nil && *pool.Status.Nodes == 1 &&
			!pool.Status.Resources.Cpu().IsZero(), fmt.Sprint(pool.Status.Resources), err
	})
}

// P-10, P-11: spot comes first, and on-demand for pods that ask for it. With a spot pool above an on-demand pool, pods
// that cannot run on spot get the other pool in the same round.
func TestExampleSpotWithFallBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, onEC2Types)
	r.apply(kwokPool("spot", general(`"spot"`), "weight: 50\nlimits: {nodes: 1}"))
	r.apply(kwokPool("on-demand", general(`"on-demand"`), "weight: 10"))
	apart :=
		"affinity:\n  podAntiAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n" +
			"    - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}"
	r.apply(deployment("web", 3, "{cpu: '1'}", apart))
	r.allRunning(3, soon)
	nodes, err := r.nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, node := range nodes {
		kinds[node.Labels["karpenter.sh/capacity-type"]]++
	}
	if kinds["spot"] != 1 || kinds["on-demand"] != 2 {
		t.Errorf("capacity types %v; want one spot node (the pool's limit) and two on-demand", kinds)
	}
}

// P-08: a tainted pool takes only pods that tolerate it. Startup taints keep pods away until somebody removes them.
func TestExampleTaints(t *testing.T) {
	t.Parallel()
	r := newRig(t, onEC2Types)
	r.apply(kwokPool("special", general(`"on-demand"`)+`
taints:
- {key: example.com/special-taint, effect: NoSchedule}
startupTaints:
- {key: example.com/another-taint, effect: NoSchedule}`, "weight: 100"))
	r.apply(kwokPool("plain", general(`"on-demand"`), ""))
	r.apply(deployment("plain", 1, "{cpu: '1'}", ""))
	r.apply(deployment("special", 1, "{cpu: '1'}",
		"tolerations:\n- {key: example.com/special-taint, operator: Exists}\nnodeSelector: {karpenter.sh/nodepool: special}"))
	// The node of the special pool waits for its startup taint to go, as with an agent that sets the node up.
	r.eventually(soon, "a registered node with both taints", func(ctx context.Context) (bool, string, error) {
		nodes, err := r.nodes(ctx)
		for name, node := range nodes {
			if node.Labels["karpenter.sh/nodepool"] != "special" || node.Labels["karpenter.sh/registered"] != "true" {
				continue
			}
			taints := fmt.Sprint(node.Spec.Taints)
			if !strings.Contains(taints, "special-taint") || !strings.Contains(taints, "another-taint") {
				return false, taints, nil
			}
			if node.Labels["karpenter.sh/initialized"] == "true" {
				return false, "", fmt.Errorf("%s is initialized while its startup taint is there", name)
			}
			_, err := r.Kubectl(ctx, "", "taint", "node", name, "example.com/another-taint-")
			return err == nil, "", err
		}
		return false, fmt.Sprintf("%d nodes", len(nodes)), err
	})
	r.allRunning(2, soon)
	if pool := r.nodeOf("special").Labels["karpenter.sh/nodepool"]; pool != "special" {
		t.Errorf("the tolerating pod runs on pool %s, want special", pool)
	}
	if pool := r.nodeOf("plain").Labels["karpenter.sh/nodepool"]; pool != "plain" {
		t.Errorf("the plain pod runs on pool %s, want plain", pool)
	}
}

// V-15, D-02: karpenter.sh/do-not-disrupt on a pod, a node or a claim keeps the node. Without it emptiness removes it.
func TestExampleDoNotDisrupt(t *testing.T) {
	t.Parallel()
	r := newRig(t, onEC2Types)
	r.apply(kwokPool("default", general(`"on-demand"`), quick))
	r.apply(deployment("web", 1, "{cpu: '1'}", ""))
	r.apply(deployment("other", 1, "{cpu: '1'}", oneEach("web"))) // on another node than web
	r.allRunning(2, soon)
	node := r.nodeOf("web").Name
	r.run("annotate", "node", node, "karpenter.sh/do-not-disrupt=true")
	r.run("scale", "deployment", "web", "other", "--replicas=0")
	r.eventually(soon, "an event that says why the node stays", func(context.Context) (bool, string, error) {
		events := r.run("get", "events", "-A", "-o",
			"custom-columns=REASON:.reason,ABOUT:.involvedObject.name,MESSAGE:.message", "--no-headers")
		for line := range strings.SplitSeq(events, "\n") {
			if strings.Contains(line, "DisruptionBlocked") && strings.Contains(line, node) &&
				strings.Contains(line, "do-not-disrupt") {
				return true, "", nil
			}
		}
		return false, events, nil
	})
	// One round of emptiness judges both nodes. When the other one has gone, this one has been judged too.
	r.eventually(soon, "the other node to go", func(ctx context.Context) (bool, string, error) {
		nodes, err := r.nodes(ctx)
		return len(nodes) <= 1, fmt.Sprintf("%d nodes", len(nodes)), err
	})
	if nodes, err := r.nodes(t.Context()); err != nil || nodes[node].DeletionTimestamp != nil ||
		nodes[node].Name == "" {
		t.Fatalf("the protected node is going: %v %v", nodes[node].DeletionTimestamp, err)
	}
	r.run("annotate", "node", node, "karpenter.sh/do-not-disrupt-")
	r.nothingLeft(soon)
}
