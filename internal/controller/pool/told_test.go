package pool_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/pool"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/script"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

func (r *rig) counted() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	r.step = pool.New(pool.Config{
		InVain: func(string) string { return "" },
		Client: r.server, Live: r.server, Fleet: fleet.New(r.cloud), Catalogs: r.catalogs,
		Picture: world.New(world.Config{}), Paused: func() string { return r.paused }, Events: r.tape,
		Metrics: metrics.New(registry).Pools, Now: controllertest.Start, Log: logr.Discard(),
	})
	return registry
}

func (r *rig) again(t *testing.T) time.Duration {
	t.Helper()
	result, err := r.step.Reconcile(t.Context(),
		reconcile.Request{NamespacedName: types.NamespacedName{Name: "default"}})
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

func withCapacity(name string) *karpenterv1.NodeClaim {
	return &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpenterv1.NodePoolLabelKey: "default"}},
		Spec:       karpenterv1.NodeClaimSpec{NodeClassRef: newPool().Spec.Template.Spec.NodeClassRef},
		Status:     karpenterv1.NodeClaimStatus{Capacity: corev1.ResourceList{"cpu": resource.MustParse("4")}},
	}
}

// U-10, D-08: limits of both kinds, usage, and what the budgets allow are exported by resource and reason; nothing for
// a pool that is gone, and nothing without limits.
func TestLimitsUsageAndBudgetsAreShown(t *testing.T) {
	t.Parallel()
	p := newPool()
	p.Spec.Limits = karpenterv1.Limits{"cpu": resource.MustParse("100")}
	p.Spec.Limits["nodes"] = resource.MustParse("5") // the hard one wins (L-03)
	p.Spec.HardLimits = karpenterv1.Limits{"nodes": resource.MustParse("7")}
	p.Spec.Disruption.Budgets = []karpenterv1.Budget{
		{Nodes: intstr.FromString("1"), Reasons: []karpenterv1.DisruptionReason{"Drifted"}},
	}
	r := newRig(t, p, withCapacity("c1"), withCapacity("c2"))
	registry := r.counted()
	r.reconcile(t)
	shown := func() map[string]float64 {
		return map[string]float64{
			"limit of cpu":   controllertest.Count(t, registry, "karpenter_nodepools_limit", "default", "cpu"),
			"limit of nodes": controllertest.Count(t, registry, "karpenter_nodepools_limit", "default", "nodes"),
			"usage of cpu":   controllertest.Count(t, registry, "karpenter_nodepools_usage", "default", "cpu"),
			"usage of nodes": controllertest.Count(t, registry, "karpenter_nodepools_usage", "default", "nodes"),
			"allowed, drifted": controllertest.Count(t, registry, "karpenter_nodepools_allowed_disruptions", "default",
				"drifted"),
			"allowed, empty": controllertest.Count(t, registry, "karpenter_nodepools_allowed_disruptions", "default",
				"empty"),
			"left, drifted": controllertest.Count(t, registry, "joiner_nodepools_remaining_disruptions", "default",
				"drifted"),
			"left": controllertest.Count(t, registry, "joiner_nodepools_remaining_disruptions", "default"),
		}
	}
	for what, want := range map[string]float64{"limit of cpu": 100, "limit of nodes": 7, "usage of cpu": 8,
		"usage of nodes": 2, "allowed, drifted": 1, "allowed, empty": 2147483647, "left, drifted": 1, "left": 1} {
		if got := shown()[what]; got != want {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	theirs := r.reconcile(t)
	theirs.Spec.Template.Spec.NodeClassRef.Kind = "OtherNodeClass"
	if err := r.server.Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	r.again(t)
	for what, got := range shown() {
		if got != 0 {
			t.Errorf("the pool is another program's now, and %s is still %v", what, got)
		}
	}
	theirs.Spec.Template.Spec.NodeClassRef.Kind = "KWOKNodeClass"
	if err := r.server.Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	r.again(t)
	if err := r.server.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	r.again(t)
	for what, got := range shown() {
		if got != 0 {
			t.Errorf("the pool is gone, and %s is still %v", what, got)
		}
	}
}

// D-08: a budget that opens or closes is shown when it does. What a node class offers is asked for again every 30 s.
func TestAPoolIsLookedAtWhenItsBudgetsChange(t *testing.T) {
	t.Parallel()
	p := newPool()
	r := newRig(t, p)
	usual := r.again(t)
	if usual != 30*time.Second {
		t.Fatalf("again after %s, want 30s: prices move", usual)
	}
	p = newPool()
	p.Spec.Disruption.Budgets = []karpenterv1.Budget{
		{Nodes: intstr.FromString("0"), Schedule: new("5 3 * * *"), Duration: &karpenterv1.Duration{
			Duration: time.Hour,
		}},
	}
	r = newRig(t, p) // it is 03:04:05 UTC
	if again := r.again(t); again != min(usual, 55*time.Second) {
		t.Errorf("again after %s, want it when the budget begins, in 55s, or after the usual %s", again, usual)
	}
}

// V-13: as long as no node has joined, nothing is known of the registration; what is known stays.
func TestTheHealthOfRegistrationIsUnknownAtFirst(t *testing.T) {
	t.Parallel()
	kind := karpenterv1.ConditionTypeNodeRegistrationHealthy
	r := newRig(t, newPool())
	check(t, r.reconcile(t), kind, metav1.ConditionUnknown, "no node of the pool has joined yet")
	for _, value := range []condition.Value{condition.True(kind, "NodeRegistrationHealthy", ""),
		condition.False(kind, "RegistrationTimeout", "late")} {
		p := newPool()
		condition.Set(&p.Status.Conditions, 0, value, controllertest.Start())
		r := newRig(t, p)
		check(t, r.reconcile(t), kind, value.Status)
		// it informs, and holds nothing up
		check(t, r.reconcile(t), karpenterv1.ConditionTypeReady, metav1.ConditionTrue)
	}
}

// P-34: a claim with a hash of our version, or of another program, keeps it; later claims are still checked. A pool of
// our version migrates nothing.
func TestOnlyOldHashesAreMigrated(t *testing.T) {
	t.Parallel()
	version := karpenterv1.NodePoolHashVersionAnnotationKey
	old := func(name string) *karpenterv1.NodeClaim {
		c := withCapacity(name)
		c.Annotations = map[string]string{karpenterv1.NodePoolHashAnnotationKey: "old", version: "v1"}
		return c
	}
	current := old("a")
	current.Annotations[version] = translate.HashVersion
	for _, migrate := range []bool{true, false} {
		p := newPool()
		if !migrate {
			p.Annotations = map[string]string{version: translate.HashVersion,
				karpenterv1.NodePoolHashAnnotationKey: "another"}
		}
		r := newRig(t, p, current.DeepCopy(), old("b"))
		fresh := r.reconcile(t)
		hash := func(name string) string {
			var c karpenterv1.NodeClaim
			if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &c); err != nil {
				t.Fatal(err)
			}
			return c.Annotations[karpenterv1.NodePoolHashAnnotationKey]
		}
		want := map[bool]string{true: translate.Hash(fresh), false: "old"}[migrate]
		if hash("a") != "old" || hash("b") != want {
			t.Errorf("migrate %v: hashes %q and %q, want %q and %q", migrate, hash("a"), hash("b"), "old", want)
		}
		if got := fresh.Annotations; got[version] != translate.HashVersion ||
			got[karpenterv1.NodePoolHashAnnotationKey] != translate.Hash(fresh) {
			t.Errorf("annotations of the pool %v, want its own hash", got)
		}
	}
}

// V-11: labels of our domain that users may not set are named; those that the provider knows and those of others may
// be set.
func TestWhichLabelsARequirementMayName(t *testing.T) {
	t.Parallel()
	for key, restricted := range map[string]bool{
		corev1.LabelHostname: true, "karpenter.sh/other": true, "kwok.karpenter.sh/other": true,
		"x.karpenter.sh/y": true,
		"karpenter.sh":     false, "team": false, "example.com/team": false, "notkarpenter.sh/x": false,
		karpenterv1.CapacityTypeLabelKey: false, karpenterv1.NodePoolLabelKey: false, "x.karpenter.sh/known": false,
	} {
		r := newRig(t, newPool(karpenterv1.NodeSelectorRequirementWithMinValues{Key: key,
			Operator: corev1.NodeSelectorOpExists}))
		r.cloud.change = func(offered *catalog.Catalog) {
			offered.WellKnown = map[requirement.Key]bool{"x.karpenter.sh/known": true}
		}
		p := r.reconcile(t)
		got, _ := condition.Get(p.Status.Conditions, karpenterv1.ConditionTypeValidationSucceeded)
		if (got.Status == "False") != restricted || restricted && !strings.Contains(got.Message, key) {
			t.Errorf("%s: %s %q, want restricted to be %v", key, got.Status, got.Message, restricted)
		}
	}
}

// V-11: a taint that occurs twice is named with its list, also across both lists; another effect is another taint.
func TestATaintThatStandsTwiceIsNamed(t *testing.T) {
	t.Parallel()
	taint := func(key string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Effect: effect}
	}
	a, b, other := taint("a", corev1.TaintEffectNoSchedule), taint("b", corev1.TaintEffectNoSchedule),
		taint("a", corev1.TaintEffectNoExecute)
	for name, c := range map[string]struct {
		taints, startup []corev1.Taint
		says            string
	}{
		"different": {[]corev1.Taint{a, b}, []corev1.Taint{other}, ""},
		"twice": {[]corev1.Taint{a, b, a}, nil,
			"spec.template.spec.taints: taint a stands twice with the effect NoSchedule"},
		"twice at startup": {nil, []corev1.Taint{b, b},
			"spec.template.spec.startupTaints: taint b stands twice with the effect NoSchedule"},
		"in both lists": {[]corev1.Taint{b, a}, []corev1.Taint{a},
			"spec.template.spec.startupTaints: taint a stands twice with the effect NoSchedule"},
		"several, in an order": {[]corev1.Taint{b, b, a, a}, nil,
			"taint b stands twice with the effect NoSchedule; spec.template.spec.taints: taint a stands twice"},
	} {
		p := newPool()
		p.Spec.Template.Spec.Taints, p.Spec.Template.Spec.StartupTaints = c.taints, c.startup
		got, _ := condition.Get(newRig(t, p).reconcile(t).Status.Conditions,
			karpenterv1.ConditionTypeValidationSucceeded)
		if (got.Status == "False") != (c.says != "") || !strings.Contains(got.Message, c.says) {
			t.Errorf("%s: %s %q, want %q", name, got.Status, got.Message, c.says)
		}
	}
}

// V-11: for contradictory requirements, or those that no offering meets, only what is in conflict is named.
func TestWhatIsInConflictIsNamed(t *testing.T) {
	t.Parallel()
	kind := karpenterv1.ConditionTypeInstanceTypesCompatible
	for name, c := range map[string]struct {
		requirements []karpenterv1.NodeSelectorRequirementWithMinValues
		says         string
	}{
		"each other": {[]karpenterv1.NodeSelectorRequirementWithMinValues{in("size", "small"),
			in("size", "large"), in("b", "1"), in("b", "2")}, "those on b, size contradict each other"},
		"a type that is none": {[]karpenterv1.NodeSelectorRequirementWithMinValues{
			in(corev1.LabelInstanceTypeStable, "huge"),
		}, "node.kubernetes.io/instance-type"},
		"a market that is none": {[]karpenterv1.NodeSelectorRequirementWithMinValues{
			in(karpenterv1.CapacityTypeLabelKey, "on-demand"), in("size", "small"),
		}, "karpenter.sh/capacity-type"},
	} {
		check(t, newRig(t, newPool(c.requirements...)).reconcile(t), kind, metav1.ConditionFalse, c.says)
		got, _ := condition.Get(newRig(t, newPool(c.requirements...)).reconcile(t).Status.Conditions, kind)
		if strings.Contains(c.says, "/") && strings.Contains(got.Message, "size") {
			t.Errorf("%s: %q names what makes no difference", name, got.Message)
		}
	}
	for _, fits := range [][]karpenterv1.NodeSelectorRequirementWithMinValues{
		{in(corev1.LabelInstanceTypeStable, "small")}, {in(karpenterv1.CapacityTypeLabelKey, "spot")},
		{in("team", "x")},
	} {
		check(t, newRig(t, newPool(fits...)).reconcile(t), kind, metav1.ConditionTrue)
	}
}

// K-52: a paused pool reports that in a condition and an event, and its budgets allow nothing; it stays Ready. An
// invalid value is a warning. After the pause nothing of it is left.
func TestK52_APausedPoolSaysSo(t *testing.T) {
	t.Parallel()
	object := newPool()
	object.Spec.Disruption.Budgets = []karpenterv1.Budget{{Nodes: intstr.FromString("3")}}
	r := newRig(t, object)
	pause := func(value string) *karpenterv1.NodePool {
		t.Helper()
		p := r.reconcile(t)
		p.Annotations = map[string]string{karpenterv1.PausedAnnotationKey: value}
		if value == "" {
			p.Annotations = nil
		}
		if err := r.server.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return r.reconcile(t)
	}
	p := pause("Launch")
	check(t, p, karpenterv1.ConditionTypePaused, metav1.ConditionTrue, "the pool launches nothing")
	check(t, p, karpenterv1.ConditionTypeReady, metav1.ConditionTrue)
	if *p.Status.Disruption.Allowed[0].Nodes != 3 || p.Status.Disruption.Paused != "" {
		t.Errorf("disruption %+v, want as ever", p.Status.Disruption)
	}
	p = pause("Disrupt")
	check(t, p, karpenterv1.ConditionTypePaused, metav1.ConditionTrue, "no node of the pool is disrupted or trimmed")
	want := `NodePool default is paused: annotation joiner.sh/paused is "Disrupt"`
	if *p.Status.Disruption.Allowed[0].Nodes != 0 || p.Status.Disruption.Paused != want {
		t.Errorf("disruption %+v, want nothing, and why: %s", p.Status.Disruption, want)
	}
	check(t, pause("yes"), karpenterv1.ConditionTypePaused, metav1.ConditionTrue, "want Launch, Disrupt, or both")
	if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, "default PoolPaused: "+
		`annotation joiner.sh/paused is "yes"`) {
		t.Errorf("said:\n%s", said)
	}
	if _, found := condition.Get(pause("").Status.Conditions, karpenterv1.ConditionTypePaused); found {
		t.Error("the pool is not paused any more, and says that it is")
	}
}

// K-53: at the limit of the whole cluster each pool says so, and below it no pool does.
func TestK53_APoolSaysThatTheClusterIsFull(t *testing.T) {
	t.Parallel()
	r := newRig(t, newPool())
	const kind = karpenterv1.ConditionTypeClusterLimitReached
	r.picture.MaxNodes, r.picture.Unseen = 3, 3
	check(t, r.reconcile(t), kind, metav1.ConditionTrue, "nodes 3 of 3 in the whole cluster (--max-nodes)")
	check(t, r.reconcile(t), karpenterv1.ConditionTypeReady, metav1.ConditionTrue)
	r.picture.MaxClaims, r.picture.Claims = 5, 5 // the hard limit counts before the soft one
	check(t, r.reconcile(t), kind, metav1.ConditionTrue,
		"NodeClaims 5 of 5 in the whole cluster (--max-node-claims-hard)")
	r.picture.ClaimsUnknown = "ConfigMap s/joiner-cluster-limit cannot be read"
	check(t, r.reconcile(t), kind, metav1.ConditionUnknown, "ConfigMap s/joiner-cluster-limit cannot be read")
	r.picture.ClaimsUnknown = ""
	r.picture.Unseen, r.picture.Claims = 2, 4
	if _, found := condition.Get(r.reconcile(t).Status.Conditions, kind); found {
		t.Error("there is room in the cluster again, and the pool says that there is none")
	}
}

// K-48: the annotation that lets a node go first is told, and a value that is none is a warning that says what is
// allowed.
func TestK48_WhatThePoolSaysOfItsAnnotation(t *testing.T) {
	t.Parallel()
	object := newPool()
	object.Spec.HardLimits = karpenterv1.Limits{"nodes": resource.MustParse("2")}
	r := newRig(t, object)
	set := func(value string, change func(*karpenterv1.NodePool)) *karpenterv1.NodePool {
		t.Helper()
		p := r.reconcile(t)
		p.Annotations = map[string]string{karpenterv1.TerminateFirstAnnotationKey: value}
		change(p)
		if err := r.server.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return r.reconcile(t)
	}
	const kind = karpenterv1.ConditionTypeTerminateFirst
	as := func(*karpenterv1.NodePool) {}
	check(t, set("true", as), kind, metav1.ConditionTrue, "one node at a time goes before what replaces it comes")
	check(t, r.reconcile(t), karpenterv1.ConditionTypeReady, metav1.ConditionTrue)
	check(t, set("false", as), kind, metav1.ConditionFalse, `is "false": a node goes when what replaces it is there`)
	bad := `annotation joiner.sh/terminate-first is "yes": want "true" or "false"; it counts as "false"`
	check(t, set("yes", as), kind, metav1.ConditionFalse, bad)
	if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, "default IgnoredField: "+bad) {
		t.Errorf("said:\n%s", said)
	}
	check(t, set("true", func(p *karpenterv1.NodePool) { p.Spec.HardLimits = nil }), kind, metav1.ConditionTrue,
		"it has no effect, the pool has no spec.hardLimits.nodes")
	check(t, set("true", func(p *karpenterv1.NodePool) { p.Spec.Replicas = new(int64(1)) }), kind,
		metav1.ConditionTrue, "it has no effect, the feature gate TerminateFirstDrift")
	p := set("true", func(p *karpenterv1.NodePool) { p.Annotations = nil })
	if _, found := condition.Get(p.Status.Conditions, kind); found {
		t.Error("there is no annotation any more, and the pool speaks of it")
	}
}

// K-48: a roll that waits for a reservation is told: with the gate off, while a pod waits for it, and while a drain
// would not end.
func TestK48_ARollInAFullReservationIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, newPool())
	const kind = karpenterv1.ConditionTypeRollBlocked
	see := func(pool, node, more string) *karpenterv1.NodePool {
		t.Helper()
		s, err := script.Parse(
			"type m5.large cpu=2 mem=8Gi zones=a od=0.096 reserved=0.05 reservation=1\npool default " + pool +
				"\nnode n1 type=m5.large zone=a pool=default labels=capacity=reserved drifted " + node +
				"\npod web-1 cpu=1500m node=n1\n" + more)
		if err != nil {
			t.Fatal(err)
		}
		r.picture = *s
		return r.reconcile(t)
	}
	const only = "need=capacity=reserved "
	check(t, see(only+"none-first", "", ""), kind, metav1.ConditionTrue, "1 node is due to be replaced (Drifted)",
		"only fits in reservations that are used up: the feature gate TerminateFirstDrift lets one go before, and is off")
	check(t, see(only, "", "pod new cpu=1500m"), kind, metav1.ConditionTrue,
		"none does now: pod default/new waits for a place in the pool")
	check(t, see(only, "held=PodDisruptionBudget_default/web_allows_none", ""), kind, metav1.ConditionTrue,
		"none does now: node n1: PodDisruptionBudget default/web allows none")
	check(t, see(only+"replicas=1 none-first", "", ""), kind, metav1.ConditionTrue,
		"only fits in reservations that are used up")
	for _, free := range [][2]string{{only, ""}, {"", ""}, {"", "held=PodDisruptionBudget_default/web_allows_none"},
		{only + "replicas=1", ""}} {
		if p := see(free[0], free[1], ""); slices.ContainsFunc(p.Status.Conditions,
			func(c karpenterv1.Condition) bool { return c.Type == kind }) {
			t.Errorf("%q: the pool says that its roll is blocked", free)
		}
	}
	if p := see(only, "", ""); len(p.Status.Conditions) == 0 {
		t.Error("the pool says nothing at all")
	}
}

// K-48: a roll that the hard limit holds up is told: how many nodes wait, why, and what can be done.
func TestK48_ABlockedRollIsTold(t *testing.T) {
	t.Parallel()
	object := newPool()
	object.Spec.HardLimits = karpenterv1.Limits{"nodes": resource.MustParse("2")}
	r := newRig(t, object)
	const kind = karpenterv1.ConditionTypeRollBlocked
	see := func(pool string, more ...string) *karpenterv1.NodePool {
		t.Helper()
		lines := append([]string{"type m5.large cpu=2 mem=8Gi zones=a od=0.096", "pool default " + pool,
			"node n1 type=m5.large zone=a pool=default drifted", "node n2 type=m5.large zone=a pool=default drifted",
			"pod web-1 cpu=1500m node=n1", "pod web-2 cpu=1500m node=n2"}, more...)
		s, err := script.Parse(strings.Join(lines, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		r.picture = *s
		return r.reconcile(t)
	}
	check(t, see("hard.nodes=2"), kind, metav1.ConditionTrue, "2 nodes are due to be replaced (Drifted)",
		"hard limit of 2 nodes", `annotation joiner.sh/terminate-first: "true" on the NodePool`)
	check(t, see("hard.nodes=2 terminate-first", "pod new cpu=1500m"), kind, metav1.ConditionTrue,
		"2 nodes are due", "none does now: pod default/new waits for a place in the pool")
	check(t, see("hard.nodes=2 terminate-first blocked=it_is_being_deleted"), kind, metav1.ConditionTrue,
		"it is being deleted")
	for _, free := range []string{"hard.nodes=3", "", "hard.nodes=2 terminate-first", "replicas=2 hard.nodes=2"} {
		if p := see(free); slices.ContainsFunc(p.Status.Conditions, func(c karpenterv1.Condition) bool {
			return c.Type == kind
		}) {
			t.Errorf("%q: a node goes, or is replaced, and the pool says that its roll is blocked", free)
		}
	}
	check(t, see("replicas=2 nodes=2 none-first"), kind, metav1.ConditionTrue, "2 nodes are due",
		"replicas are at the soft limit of 2 nodes",
		"raise spec.limits.nodes; the feature gate TerminateFirstDrift lets one go before, and is off")
	check(t, see("replicas=2 hard.nodes=2 blocked=it_is_being_deleted"), kind, metav1.ConditionTrue,
		"replicas are at the hard limit", "none does now: NodePool default launches nothing: it is being deleted")
	check(t, see("replicas=2", "limit cluster claims=2"), kind, metav1.ConditionTrue, "2 nodes are due",
		"NodeClaims 2 of 2 in the whole cluster (--max-node-claims-hard); that leaves no room",
		"raise --max-node-claims-hard, or remove a node")
	see("hard.nodes=2")
	r.picture = cluster.Snapshot{}
	if _, found := condition.Get(r.reconcile(t).Status.Conditions, kind); found {
		t.Error("nothing is due any more, and the pool says that its roll is blocked")
	}
}
