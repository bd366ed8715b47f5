package whatif_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// machineOf returns a NodePool with one node of type large and a pod that runs on no other pool. Claim, node and pod
// have that name.
func machineOf(name, limits, condition, annotation string) string {
	const form = `---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: pool-NAME}
spec:
  LIMITS
  disruption: {consolidateAfter: 0s, consolidationPolicy: WhenEmptyOrUnderutilized}
  template: {spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default},
    requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [large]}]}}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: NAME
  uid: NAME
  creationTimestamp: "2026-11-22T07:00:00Z"
  labels: {karpenter.sh/nodepool: pool-NAME, LARGE}
spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}, requirements: []}
status:
  nodeName: NAME
  providerID: "kwok://NAME"
  capacity: {cpu: "8", memory: 32Gi, pods: "50"}
  conditions: [AT{type: Launched, reason: Launched},
    AT{type: Registered, reason: Registered}, AT{type: Initialized, reason: Initialized},
    AT{type: CONDITION, reason: CONDITION}]
---
apiVersion: v1
kind: Node
metadata: {name: NAME, labels: {kubernetes.io/hostname: NAME, karpenter.sh/nodepool: pool-NAME, LARGE,
  karpenter.sh/registered: "true", karpenter.sh/initialized: "true"}}
spec: {providerID: "kwok://NAME"}
status: {allocatable: {cpu: "8", memory: 32Gi, pods: "50"}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: default, annotations: {ANNOTATION}}
spec: {nodeName: NAME, nodeSelector: {karpenter.sh/nodepool: pool-NAME},
  containers: [{name: main, resources: {requests: {cpu: "6"}}}]}
status: {phase: Running}
`
	return strings.NewReplacer("AT{", `{message: "", status: "True", lastTransitionTime: "2026-11-22T07:05:00Z", `,
		"LARGE", "node.kubernetes.io/instance-type: large, topology.kubernetes.io/zone: a, "+
			"karpenter.sh/capacity-type: on-demand",
		"NAME", name, "LIMITS", limits, "CONDITION", condition, "ANNOTATION", annotation).Replace(form)
}

// judged returns what the disruption controller reports in a round about a world.
func judged(t *testing.T, world *whatif.World, pools ...client.Object) []string {
	t.Helper()
	server, tape := controllertest.NewServer(t, pools...).Build(), &controllertest.Tape{}
	state := &moving{*world.Snapshot()}
	step := disruption.New(disruption.Config{
		Client: server, Live: server, Picture: picture(state.look), Applier: idle{},
		Fleet:     controllertest.Everything{},
		Namespace: "kube-system", MinSavingPercent: engine.DefaultMinSavingPercent, Events: tape,
		Metrics: metrics.New(prometheus.NewRegistry()), Ready: func() bool { return true },
		Now: func() time.Time { return time.Unix(1_800_000_000, 0) }, Log: logr.Discard(),
	})
	for range 2 {
		if _, err := step.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	return tape.Said()
}

// TestU15_ANodeHasManyFaces: for nodes that stay, explain and the event on the NodeClaim have the same code and
// sentence, and the event says what to do. The reason of the event is Karpenter's.
func TestU15_ANodeHasManyFaces(t *testing.T) {
	t.Parallel()
	text := "apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: default}\n" +
		machineOf("kept", "", "Consolidatable", `karpenter.sh/do-not-disrupt: "true"`) +
		machineOf("full", "hardLimits: {nodes: 1}", "Drifted", "") + machineOf("fit", "", "Consolidatable", "")
	world, err := pictured(t, documentsOf(t, &datadriven.TestData{Cmd: "faces", Input: text}))
	if err != nil {
		t.Fatal(err)
	}
	var pools []client.Object
	all := []karpenterv1.Budget{{Nodes: intstr.FromString("100%")}}
	for _, name := range []string{"kept", "full", "fit"} {
		pools = append(pools, &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "pool-" + name},
			Spec: karpenterv1.NodePoolSpec{Disruption: karpenterv1.Disruption{Budgets: all}}})
	}
	events := judged(t, world, pools...)
	for node, want := range map[string][2]string{
		"kept": {"DisruptionBlocked", "DoNotDisruptPod"},
		"full": {"DisruptionBlocked", "PodFitsNowhereElse"},
		"fit":  {"Unconsolidatable", "NothingCheaper"},
	} {
		e, err := world.ExplainNode(node, false)
		if err != nil || e.Cause == nil || string(e.Cause.Code) != want[1] {
			t.Errorf("%s: %v, %+v; want %s", node, err, e.Cause, want[1])
			continue
		}
		var explained strings.Builder
		if err := e.WriteText(&explained); err != nil || !strings.Contains(explained.String(),
			": "+want[1]+"\n  "+e.Cause.Text+"\n") {
			t.Errorf("explain says (%v)\n%s", err, explained.String())
		}
		event := fmt.Sprintf("%s %s: %s", node, want[0], e.Event())
		if node == "kept" { // drift and expiration are asked of one that is forbidden to go
			event = fmt.Sprintf("%s %s: %s", node, want[0], e.Cause.Event())
		}
		count := 0
		for _, said := range events {
			if said == event {
				count++
			} else if strings.HasPrefix(said, node+" "+want[0]) {
				t.Errorf("said %s\nand not %s", said, event)
			}
		}
		if count == 0 {
			t.Errorf("nobody said %s:\n%s", event, strings.Join(events, "\n"))
		}
	}
}
