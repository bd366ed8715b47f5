package takeover

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/bench/internal/peer"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// chart returns what Karpenter's charts pass by default, besides addresses. AWS's chart gives all gates a value.
func chart() []string {
	return []string{
		"KARPENTER_SERVICE=karpenter", "LOG_LEVEL=info", "MEMORY_LIMIT=1073741824", "CPU_REQUESTS=1000",
		"DISABLE_CONTROLLER_WARMUP=true",
		"FEATURE_GATES=ReservedCapacity=true,SpotToSpotConsolidation=false,NodeRepair=false,NodeOverlay=false," +
			"StaticCapacity=false,CapacityBuffer=false",
		"BATCH_MAX_DURATION=10s", "BATCH_IDLE_DURATION=1s", "PREFERENCE_POLICY=Respect", "MIN_VALUES_POLICY=Strict",
	}
}

// overshot is a pool whose limit Karpenter exceeds in one batch, with a budget of one node, and objects that have no
// effect under the chart's gates.
const overshot = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: plain}
spec:
  limits: {nodes: "3"}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: Never, budgets: [{nodes: "1"}]}
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: dormant}
spec:
  replicas: 2
  disruption: {consolidateAfter: Never}
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: dormant}
spec:
  price: "99"
  requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]
`

const alone = `
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: alone}}}]}}`

const overshotNodes = 12

// L-40, P-34: in a cluster, Karpenter has launched 12 nodes at a limit of 3. Joiner takes over, with the settings of
// Karpenter's chart. Nothing is drained at once, and the pool says what will happen. Then the nodes go one at a time,
// as the budget says. What had no effect under Karpenter has none.
func TestTakeoverOfAPoolAboveItsLimit(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.must(peer.Install(t.Context(), c.Rig))
	c.controlledBy(peer.Program(binary(t), chart()...), func() {
		c.must(c.Apply(t.Context(), overshot))
		c.must(c.Apply(t.Context(), deployment("alone", overshotNodes, alone)))
		c.must(c.Eventually(t.Context(), within, "a node for each pod",
			func(ctx context.Context) (bool, string, error) {
				var pods corev1.PodList
				err := c.Client.List(ctx, &pods, client.InNamespace("default"),
					client.MatchingFields{"status.phase": "Running"})
				return len(pods.Items) == overshotNodes, fmt.Sprintf("%d pods run", len(pods.Items)), err
			}))
		c.onePerClaim()
		c.journal = watchFleet(t, c.Client)
	})
	c.rewatch(c.Install)
	program := rig.JoinerProgram(c.options.Joiner)
	own := program.Command
	program.Command = func(at rig.Place) ([]string, []string) {
		args, env := own(at)
		return args, append(env, append(chart(), "TAKEOVER_GRACE=20s")...)
	}
	c.controlledBy(program, c.comesDown)
}

// comesDown waits until the pool is at its limit. It demands that the pool says so first, and that never more than one
// node goes at once.
func (c *cluster) comesDown() {
	c.t.Helper()
	told, most := false, 0
	held := c.grace()
	c.must(c.Eventually(c.t.Context(), within, "the pool at its limit",
		func(ctx context.Context) (bool, string, error) {
			var pool karpenterv1.NodePool
			if err := c.Client.Get(ctx, client.ObjectKey{Name: "plain"}, &pool); err != nil {
				return false, "", err
			}
			going, claims := 0, c.claims()
			for _, claim := range claims {
				if claim.DeletionTimestamp != nil {
					going++
				}
				if claim.Labels[karpenterv1.NodePoolLabelKey] != "plain" {
					c.t.Errorf("NodeClaim %s of a pool whose gate is off", claim.Name)
				}
			}
			for _, condition := range pool.Status.Conditions {
				told = told || condition.Type == karpenterv1.ConditionTypeNodesWithinLimits &&
					strings.Contains(condition.Message, "limit 3 (soft limit)")
			}
			if len(claims)-going < overshotNodes && time.Now().Before(held) {
				c.t.Errorf("%d nodes go before %s, when the grace of the first start ends (K-27)", going, held)
			}
			if most = max(most, going); most > 1 || (going > 0 || len(claims) < overshotNodes) &&
				pool.Annotations[karpenterv1.AboveLimitAnnotationKey] == "" && len(claims) > 3 {
				c.t.Errorf("%d nodes go at once, of %d; the pool says %v", going, len(claims), pool.Annotations)
			}
			return len(claims) == 3 && going == 0, fmt.Sprintf("%d claims, %d of them go", len(claims), going), nil
		}))
	if !told || most == 0 {
		c.t.Errorf("the condition was seen: %t; at most %d nodes went at a time", told, most)
	}
	said, err := c.Kubectl(c.t.Context(), "", "get", "events",
		"--field-selector=reason=NodeLimitExceeded,involvedObject.kind=NodePool", "-A", "-o",
		"custom-columns=M:.message")
	c.must(err)
	want :=
		"12 nodes, limit 3 (soft limit): the pool was above the limit when Joiner first saw it, " +
			"so 9 nodes are removed as the disruption budgets allow, not at once"
	if !strings.Contains(said, want) {
		c.t.Errorf("the events say\n%s\nwant %s", said, want)
	}
	c.dormant()
}

// grace waits until Joiner has written the end of the first start's grace (K-27), and returns it.
func (c *cluster) grace() (until time.Time) {
	c.t.Helper()
	c.must(c.Eventually(c.t.Context(), within, "the ConfigMap of the first start",
		func(ctx context.Context) (bool, string, error) {
			var found corev1.ConfigMap
			if err := c.Client.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "joiner-takeover"},
				&found); err != nil {
				return false, err.Error(), client.IgnoreNotFound(err)
			}
			if n := found.Data["nodeclaims"]; n != fmt.Sprint(overshotNodes) {
				c.t.Errorf("it found %s NodeClaims of another program, want %d", n, overshotNodes)
			}
			var err error
			until, err = time.Parse(time.RFC3339, found.Data["until"])
			return err == nil, fmt.Sprint(found.Data), err
		}))
	return until
}

// dormant demands that the objects whose gates are off say so, and that the log names what has no effect.
func (c *cluster) dormant() {
	c.t.Helper()
	for object, condition := range map[string]string{"nodeoverlay/dormant": "Ready",
		"nodepool/dormant": "ReplicasWithinLimits"} {
		reason, err := c.Kubectl(c.t.Context(), "", "get", object, "-o",
			fmt.Sprintf(`jsonpath={.status.conditions[?(@.type=="%s")].reason}`, condition))
		c.must(err)
		if reason != "FeatureGateDisabled" {
			c.t.Errorf("%s: %s has the reason %q", object, condition, reason)
		}
	}
	log, err := os.ReadFile(c.log)
	c.must(err)
	for _, name := range []string{"CPU_REQUESTS", "DISABLE_CONTROLLER_WARMUP"} {
		if strings.Count(string(log), name) != 1 {
			c.t.Errorf("the log names %s %d times, want once", name, strings.Count(string(log), name))
		}
	}
}
