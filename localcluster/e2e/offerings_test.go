package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// nodeOverlay returns a NodeOverlay with further lines in its spec.
func nodeOverlay(name, spec string) string {
	return fmt.Sprintf(`
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: %s}
spec:
%s
`, name, indent(spec, 2))
}

// overlayIs waits for an overlay's Ready condition, which must hold the words.
func (r *testRig) overlayIs(name, status string, words ...string) {
	r.t.Helper()
	r.eventually(soon, "NodeOverlay "+name+" to be Ready="+status, func(ctx context.Context) (bool, string, error) {
		text, err := r.Kubectl(ctx, "", "get", "nodeoverlay", name, "-o",
			`jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.reason} {.message}{end}`)
		missing := slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
		return strings.HasPrefix(text, status) && !missing, text, err
	})
}

// P-11: a NodeOverlay makes the catalogue's dearest type the cheapest, and gives machines a resource. One that
// conflicts or is malformed says so and has no effect. A deleted one has no effect any more.
func TestNodeOverlaysChangeWhatIsLaunched(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, ""))
	r.apply(nodeOverlay("cheap", `
requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m-64x-amd64-linux]}]
price: "0.001"`) + nodeOverlay("rival", `
requirements: [{key: karpenter.sh/nodepool, operator: In, values: [default]}]
priceAdjustment: +10%`) + nodeOverlay("fuse", `
requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux, c-8x-amd64-linux]}]
capacity: {example.com/fuse: 3}`))
	r.overlayIs("cheap", "True")
	r.overlayIs("fuse", "True")
	r.overlayIs("rival", "False", "Conflict", "NodeOverlay cheap", "the price of instance type m-64x-amd64-linux")
	r.apply(deployment("web", 1, "{cpu: '1'}", ""))
	r.allRunning(1, soon)
	if node := r.nodeOf("web"); node.Labels[corev1.LabelInstanceTypeStable] != "m-64x-amd64-linux" {
		t.Errorf("the node is a %s; want the one that the overlay makes cheapest",
			node.Labels[corev1.LabelInstanceTypeStable])
	}
	// An extended resource needs a limit, equal to the request.
	r.apply(deployment("fuses", 1, "{cpu: 100m, example.com/fuse: '2'}, limits: {example.com/fuse: '2'}", ""))
	r.allRunning(2, soon)
	if node := r.nodeOf("fuses"); node.Labels[corev1.LabelInstanceTypeStable] != "c-4x-amd64-linux" {
		t.Errorf("the node with fuses is a %s; want the smallest that the overlay gives some",
			node.Labels[corev1.LabelInstanceTypeStable])
	}
	r.run("delete", "nodeoverlay", "cheap")
	r.overlayIs("rival", "True")
	r.apply(deployment("large", 1, "{cpu: '66'}", ""))
	r.allRunning(3, soon)
	if node := r.nodeOf("large"); node.Labels[corev1.LabelInstanceTypeStable] != "c-96x-amd64-linux" {
		t.Errorf("the node of the large pod is a %s; want the cheapest of the catalogue",
			node.Labels[corev1.LabelInstanceTypeStable])
	}
	r.oneNodePerClaim()
}

// reservedFile offers a type on demand, and one machine of it that is reserved.
const reservedFile = `[{"name": "r", "architecture": "amd64", "operatingSystems": ["linux"], "resources": {"cpu": "4", "memory": "16Gi"}, "offerings": [
 {"Price": 0.1, "Requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
  {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}]},
 {"Price": 0.2, "ReservationCapacity": 1, "Requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]},
  {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}]}]}]`

// P-11: one plan asks for three nodes. Exactly one is in the reservation, and no claim fails.
func TestReservationsAreCountedDown(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "types.json")
	if err := os.WriteFile(file, []byte(reservedFile), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(o *rig.Options) { o.Args = append(o.Args, "--instance-types-file-path", file) })
	r.apply(kwokPool("default", amd64Linux, ""))
	r.apply(deployment("web", 3, "{cpu: '3'}", ""))
	r.allRunning(3, soon)
	claims, err := r.claims(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, claim := range claims {
		kinds[claim.Labels[karpenterv1.CapacityTypeLabelKey]]++
	}
	if kinds["reserved"] != 1 || kinds["on-demand"] != 2 {
		t.Errorf("capacity types %v; want one reserved and two on demand", kinds)
	}
	var failed corev1.EventList
	if err := r.Client.List(t.Context(), &failed); err != nil {
		t.Fatal(err)
	}
	for _, e := range failed.Items {
		if strings.Contains(e.Message, "insufficient capacity") {
			t.Errorf("a claim failed: %s", e.Message)
		}
	}
	r.oneNodePerClaim()
}

// onDemandPreferred is a wish that costs something.
const onDemandPreferred = `affinity:
  nodeAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      preference: {matchExpressions: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]}`

// P-05: a wish that all pods of a node share decides what the node is. With --preference-policy=Ignore it does not
// count.
func TestPreferencesCanBeIgnored(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{"Respect": "on-demand", "Ignore": "spot"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(o *rig.Options) { o.Args = append(o.Args, "--preference-policy="+policy) })
			r.apply(kwokPool("default", amd64Linux, ""))
			r.apply(deployment("web", 1, "{cpu: '1'}", onDemandPreferred))
			r.allRunning(1, soon)
			if got := r.nodeOf("web").Labels[karpenterv1.CapacityTypeLabelKey]; got != want {
				t.Errorf("the node is %s; want %s", got, want)
			}
		})
	}
}

// P-03: when Joiner is given the scheduler's default constraints, it plans pods of one ReplicaSet over three zones,
// although one node would do.
func TestDefaultSpreadConstraintsAreFollowed(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *rig.Options) {
		o.Args = append(o.Args,
			`--default-spread-constraints=[{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"DoNotSchedule"}]`)
	})
	r.apply(kwokPool("default", amd64Linux, "disruption: {consolidateAfter: Never}"))
	r.apply(deployment("web", 3, "{cpu: 100m}", ""))
	r.allRunning(3, soon)
	claims, err := r.claims(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	zones := map[string]bool{}
	for _, claim := range claims {
		zones[claim.Labels[corev1.LabelTopologyZone]] = true
	}
	if len(zones) != 3 {
		t.Errorf("nodes in %d zones; want 3", len(zones))
	}
}
