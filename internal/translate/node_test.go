package translate

import (
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

func smallCatalog() catalog.Catalog {
	offerings := []catalog.Offering{
		{Zone: "a", CapacityType: "spot", Price: 10, Available: true},
		{Zone: "b", CapacityType: "on-demand", Price: 40},
	}
	labelled := func(name, family string, cpu int64) catalog.Type {
		return catalog.Type{Name: name, Offerings: offerings, Capacity: resources.Amounts{"cpu": cpu, "pods": 10},
			Overhead: resources.Amounts{"cpu": 100},
			Labels: requirement.NewSet(requirement.OneOf("kubernetes.io/arch", "amd64"),
				requirement.OneOf("family", family))}
	}
	gpu := labelled("g", "g", 4000)
	gpu.Capacity["nvidia.com/gpu"] = 1
	gpu.Labels = gpu.Labels.With(requirement.OneOf("gpu", "t4"))
	return catalog.Catalog{Types: []catalog.Type{labelled("s", "m", 2000), labelled("l", "m", 8000), gpu}}
}

func claimOf(conditions ...string) *karpenterv1.NodeClaim {
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "c1", UID: "cu", Labels: map[string]string{"karpenter.sh/nodepool": "default"},
		CreationTimestamp: metav1.NewTime(time.Unix(50, 0)),
	}}
	for _, c := range conditions {
		claim.Status.Conditions = append(claim.Status.Conditions, karpenterv1.Condition{
			Type: c, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Unix(1000, 0)),
		})
	}
	return claim
}

func TestClaimOnItsWay(t *testing.T) { // P-23
	t.Parallel()
	space := resources.NewSpace()
	index := catalog.NewIndex(smallCatalog(), space)
	claim := claimOf()
	claim.Labels["team"] = "a"
	claim.Spec.Requirements = []entry{
		{Key: "node.kubernetes.io/instance-type", Operator: "In", Values: []string{"s", "l"}},
		{Key: "team", Operator: "Exists"},
		{Key: "karpenter.sh/capacity-type", Operator: "In", Values: []string{"spot"}},
	}
	set, _, _ := Requirements(claim.Spec.Requirements)
	prospect, found := NewProspect(index, set)
	if !found {
		t.Fatal("no offering fits")
	}
	n := Node(space, NodeSource{Claim: claim, Prospect: prospect, Catalog: index})
	want := map[string]string{"karpenter.sh/nodepool": "default", "team": "a", "kubernetes.io/arch": "amd64",
		"family": "m", "karpenter.sh/capacity-type": "spot", "topology.kubernetes.io/zone": "a"}
	if !maps.Equal(n.Labels, want) {
		t.Errorf("labels %v; want %v", n.Labels, want)
	}
	if got := n.Open.String(); got != "node.kubernetes.io/instance-type=l|s" {
		t.Errorf("open: %s", got)
	}
	if n.Allocatable.At(resources.CPU) != 1900 || n.Pool != "default" || n.Initialized ||
		n.Price != resources.Unpriced || n.Created != 50 {
		t.Errorf("node %+v", n)
	}
	if got := ClaimCapacity(space, claim, prospect).At(resources.CPU); got != 8000 {
		t.Errorf("counts with cpu %d; want the most it may get", got)
	}
	for text, want := range map[string]bool{"team=a": true, "arch=amd64": true, "type=s": false, "type=l|s": true,
		"gpu=t4": false, "!gpu": true} {
		set := map[string]requirement.Requirement{
			"team=a": requirement.OneOf("team", "a"), "arch=amd64": requirement.OneOf("kubernetes.io/arch", "amd64"),
			"type=s":   requirement.OneOf(catalog.LabelInstanceType, "s"),
			"type=l|s": requirement.OneOf(catalog.LabelInstanceType, "s", "l"),
			"gpu=t4":   requirement.OneOf("gpu", "t4"), "!gpu": requirement.Absent("gpu"),
		}[text]
		if got := n.Satisfies(requirement.NewSet(set)); got != want {
			t.Errorf("is sure to satisfy %s: %t; want %t", text, got, want)
		}
	}
}

func TestLabelThatOnlySomeOfferingsHaveIsUnsure(t *testing.T) { // P-23
	t.Parallel()
	space := resources.NewSpace()
	index := catalog.NewIndex(smallCatalog(), space)
	prospect, _ := NewProspect(index, requirement.Set{})
	n := Node(space, NodeSource{Claim: claimOf(), Prospect: prospect})
	for _, r := range []requirement.Requirement{requirement.OneOf("gpu", "t4"), requirement.Absent("gpu")} {
		if n.Satisfies(requirement.NewSet(r)) {
			t.Errorf("is sure to satisfy %s", r)
		}
	}
	if got := prospect.Allocatable.At(space.Index("nvidia.com/gpu")); got != 0 {
		t.Errorf("%d GPUs are sure", got)
	}
	if _, found := NewProspect(index, requirement.NewSet(requirement.OneOf("family", "x"))); found {
		t.Error("an offering fits a family that none has")
	}
}

func TestLaunchedClaim(t *testing.T) { // P-23, L-13
	t.Parallel()
	space := resources.NewSpace()
	index := catalog.NewIndex(smallCatalog(), space)
	claim := claimOf("Launched")
	maps.Copy(claim.Labels, map[string]string{"node.kubernetes.io/instance-type": "s",
		"topology.kubernetes.io/zone": "b", "karpenter.sh/capacity-type": "on-demand"})
	claim.Spec.Requirements = []entry{
		{Key: "node.kubernetes.io/instance-type", Operator: "In", Values: []string{"s", "l"}},
	}
	claim.Status.Capacity, claim.Status.Allocatable = requests("cpu", "2").Requests, requests("cpu", "1900m").Requests
	n := Node(space, NodeSource{Claim: claim, Catalog: index})
	if n.Open.Len() != 0 || n.Price != 40 || n.Allocatable.At(resources.CPU) != 1900 || n.InstanceType != "s" {
		t.Errorf("node %+v", n)
	}
	if got := ClaimCapacity(space, claim, nil).At(resources.CPU); got != 2000 {
		t.Errorf("counts with cpu %d", got)
	}
	if claim = claimOf("Launched", "Registered"); !Node(space, NodeSource{Claim: claim}).Deleting {
		t.Error("a registered claim whose node is gone still takes pods")
	}
}

func TestTaintsOfANewNode(t *testing.T) { // P-08
	t.Parallel()
	taints := func(keys ...string) []corev1.Taint {
		var list []corev1.Taint
		for _, key := range keys {
			list = append(list, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
		return list
	}
	fresh := taints("node.kubernetes.io/not-ready", "karpenter.sh/unregistered",
		"node.cloudprovider.kubernetes.io/uninitialized", "boot", "stays")
	labelled := func(node *corev1.Node, keys ...string) *corev1.Node {
		node.Labels = map[string]string{}
		for _, key := range keys {
			node.Labels[key] = "true"
		}
		return node
	}
	const registered, initialized = karpenterv1.NodeRegisteredLabelKey, karpenterv1.NodeInitializedLabelKey
	for name, row := range map[string]struct {
		claim *karpenterv1.NodeClaim
		node  *corev1.Node
		want  string
	}{
		"claim alone": {claimOf(), nil, "[pool:NoSchedule]"},
		"unregistered": {claimOf("Launched"), &corev1.Node{Spec: corev1.NodeSpec{Taints: fresh}},
			"[pool:NoSchedule stays:NoSchedule]"},
		"claim is ahead": {claimOf("Registered", "Initialized"), &corev1.Node{Spec: corev1.NodeSpec{Taints: fresh}},
			"[pool:NoSchedule stays:NoSchedule]"},
		"registered": {claimOf("Registered"), labelled(&corev1.Node{Spec: corev1.NodeSpec{Taints: fresh}},
			registered), "[stays:NoSchedule]"},
		"initialized": {claimOf("Registered", "Initialized"),
			labelled(&corev1.Node{Spec: corev1.NodeSpec{Taints: taints("node.kubernetes.io/not-ready", "boot")}},
				registered, initialized), "[node.kubernetes.io/not-ready:NoSchedule boot:NoSchedule]"},
		"somebody else's": {nil, &corev1.Node{Spec: corev1.NodeSpec{Taints: taints("node.kubernetes.io/not-ready")}},
			"[node.kubernetes.io/not-ready:NoSchedule]"},
		"cordoned": {
			nil, &corev1.Node{
				Spec: corev1.NodeSpec{Unschedulable: true, Taints: taints("node.kubernetes.io/unschedulable")},
			}, "[node.kubernetes.io/unschedulable:NoSchedule]",
		},
	} {
		if row.claim != nil {
			row.claim.Spec.Taints, row.claim.Spec.StartupTaints = taints("pool", "boot"), taints("boot")
		}
		n := Node(resources.NewSpace(), NodeSource{Node: row.node, Claim: row.claim})
		if got := fmt.Sprint(n.Taints); got != row.want {
			t.Errorf("%s: taints %s; want %s", name, got, row.want)
		}
	}
}

func TestRoomUntilTheKubeletKnows(t *testing.T) { // P-23
	t.Parallel()
	node := &corev1.Node{}
	node.Status.Allocatable = requests("cpu", "1800m", "nvidia.com/gpu", "0").Requests
	space := resources.NewSpace()
	claim := claimOf("Launched", "Registered")
	claim.Status.Allocatable = requests("cpu", "2", "memory", "4Gi", "nvidia.com/gpu", "1").Requests
	n := Node(space, NodeSource{Node: node, Claim: claim})
	if got := space.Names().Format(n.Allocatable); got != "cpu=1800m memory=4Gi nvidia.com/gpu=1" {
		t.Errorf("before initialization: %s", got)
	}
	claim = claimOf("Launched", "Registered", "Initialized")
	if got := space.Names().Format(Node(space, NodeSource{Node: node, Claim: claim}).Allocatable); got != "cpu=1800m" {
		t.Errorf("after initialization: %s", got)
	}
}

func TestQuietTime(t *testing.T) { // D-01
	t.Parallel()
	at := func(seconds int64, claim *karpenterv1.NodeClaim) *karpenterv1.NodeClaim {
		claim.Status.LastPodEventTime = metav1.NewTime(time.Unix(seconds, 0))
		return claim
	}
	for name, row := range map[string]struct {
		claim *karpenterv1.NodeClaim
		after karpenterv1.NillableDuration
		want  int64
	}{
		"from initialization": {claimOf("Initialized"), after(30 * time.Second), 1030},
		"from the last pod":   {at(1500, claimOf("Initialized")), after(30 * time.Second), 1530},
		"pod before that":     {at(900, claimOf("Initialized")), after(0), 1000},
		"never":               {claimOf("Initialized"), never(), cluster.Never},
		"not initialized":     {at(1500, claimOf("Registered")), after(0), cluster.Never},
	} {
		if got := ConsolidatableAt(row.claim, row.after); got != row.want {
			t.Errorf("%s: %d; want %d", name, got, row.want)
		}
	}
}

func TestSignsOfLeaving(t *testing.T) { // V-15, P-40, K-49
	t.Parallel()
	gone := metav1.NewTime(time.Unix(1, 0))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for name, row := range map[string]struct {
		change func(*corev1.Node, *karpenterv1.NodeClaim)
		want   string
	}{
		"none": {func(*corev1.Node, *karpenterv1.NodeClaim) {}, "false false false false"},
		"claim deleted": {func(_ *corev1.Node, c *karpenterv1.NodeClaim) { c.DeletionTimestamp = &gone },
			"true false false false"},
		"node deleted": {func(n *corev1.Node, _ *karpenterv1.NodeClaim) { n.DeletionTimestamp = &gone },
			"true false false false"},
		"tainted": {func(n *corev1.Node, _ *karpenterv1.NodeClaim) {
			n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted"}}
		}, "false true false false"},
		"rebooting": {func(n *corev1.Node, _ *karpenterv1.NodeClaim) {
			n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/rebooting"}}
		}, "false true true false"},
		"rebooting, and it goes": {func(n *corev1.Node, c *karpenterv1.NodeClaim) {
			n.Spec.Taints, *c = []corev1.Taint{{Key: "karpenter.sh/rebooting"}}, *claimOf("DisruptionReason")
		}, "false true false false"},
		"intent on claim": {func(_ *corev1.Node, c *karpenterv1.NodeClaim) { *c = *claimOf("DisruptionReason") },
			"false true false false"},
		"protected node": {func(n *corev1.Node, _ *karpenterv1.NodeClaim) {
			n.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
		}, "false false false true"},
		"protected claim": {func(_ *corev1.Node, c *karpenterv1.NodeClaim) {
			c.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
		}, "false false false true"},
		"not true": {func(_ *corev1.Node, c *karpenterv1.NodeClaim) {
			c.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "1h"}
		}, "false false false false"},
	} {
		own, claim := node.DeepCopy(), claimOf("Registered")
		row.change(own, claim)
		n := Node(resources.NewSpace(), NodeSource{Node: own, Claim: claim})
		if got := fmt.Sprint(n.Deleting, n.Disrupting, n.Rebooting, n.DoNotDisrupt); got != row.want {
			t.Errorf("%s: deleting, disrupting, rebooting, protected are %s; want %s", name, got, row.want)
		}
	}
}

// D-06, K-51: a claim that bounds its drain says so.
func TestADrainThatEnds(t *testing.T) {
	t.Parallel()
	claim := claimOf("Registered")
	for _, want := range []bool{false, true} {
		if got := Node(resources.NewSpace(), NodeSource{Claim: claim}).DrainEnds; got != want {
			t.Errorf("the drain ends: %t; want %t", got, want)
		}
		claim.Spec.TerminationGracePeriod = &karpenterv1.Duration{Duration: time.Hour}
	}
}
