package pool_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/pool"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// cloud offers two types: small in zone a, large in zone b.
type cloud struct {
	provider.Provider
	failure error
	change  func(offered *catalog.Catalog) // what is different
}

func (c *cloud) NodeClass() schema.GroupKind {
	return schema.GroupKind{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"}
}

func (c *cloud) Catalog(context.Context, string) (catalog.Catalog, error) {
	if c.failure != nil {
		return catalog.Catalog{}, c.failure
	}
	kind := func(name, zone string) catalog.Type {
		return catalog.Type{
			Name: name, Labels: requirement.FromLabels(map[string]string{
				"size": name, corev1.LabelArchStable: "amd64",
			}),
			Offerings: []catalog.Offering{{Zone: zone, CapacityType: catalog.Spot, Price: 1}},
		}
	}
	offered := catalog.Catalog{Types: []catalog.Type{kind("small", "a"), kind("large", "b")}}
	if c.change != nil {
		c.change(&offered)
	}
	return offered, nil
}

type catalogs struct {
	types   map[string]int
	failure error
}

func (c *catalogs) SetCatalog(class world.ClassRef, offered catalog.Catalog) error {
	if c.failure != nil {
		return c.failure
	}
	c.types[class.Name] = len(offered.Types)
	return nil
}

// pictured is a cluster of which nothing is known but what a test says.
type pictured struct{ of *cluster.Snapshot }

func (p pictured) Snapshot() *cluster.Snapshot { return p.of }

type rig struct {
	server   client.WithWatch
	picture  cluster.Snapshot
	cloud    *cloud
	catalogs *catalogs
	tape     *controllertest.Tape
	step     *pool.Controller
	writes   int
	paused   string
	inVain   string
}

func newRig(t *testing.T, objects ...client.Object) *rig {
	t.Helper()
	r := &rig{cloud: &cloud{}, catalogs: &catalogs{types: map[string]int{}}, tape: &controllertest.Tape{}}
	r.server = controllertest.NewServer(t, objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			r.writes++
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			r.writes++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}).Build()
	r.step = pool.New(r.config())
	return r
}

func (r *rig) config() pool.Config {
	return pool.Config{
		InVain: func(string) string { return r.inVain },
		Client: r.server, Live: r.server, Fleet: fleet.New(r.cloud), Catalogs: r.catalogs,
		Picture: pictured{&r.picture}, Paused: func() string { return r.paused }, Events: r.tape,
		Metrics: metrics.New(prometheus.NewRegistry()).Pools, Now: controllertest.Start, Log: logr.Discard(),
	}
}

// staticOff makes the controller one with the gate StaticCapacity off.
func (r *rig) staticOff() {
	config := r.config()
	config.StaticOff = true
	r.step = pool.New(config)
}

func (r *rig) reconcile(t *testing.T) *karpenterv1.NodePool {
	t.Helper()
	if _, err := r.step.Reconcile(t.Context(),
		reconcile.Request{NamespacedName: types.NamespacedName{Name: "default"}}); err != nil {
		t.Fatal(err)
	}
	var p karpenterv1.NodePool
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

func check(t *testing.T, p *karpenterv1.NodePool, kind string, status metav1.ConditionStatus, parts ...string) {
	t.Helper()
	got, found := condition.Get(p.Status.Conditions, kind)
	if !found || got.Status != status {
		t.Errorf("%s=%s %q, want %s", kind, got.Status, got.Message, status)
	}
	for _, part := range parts {
		if !strings.Contains(got.Message, part) {
			t.Errorf("%s says %q, want it to say %q", kind, got.Message, part)
		}
	}
}

func newPool(requirements ...karpenterv1.NodeSelectorRequirementWithMinValues) *karpenterv1.NodePool {
	return &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "p"},
		Spec: karpenterv1.NodePoolSpec{
			Template: karpenterv1.NodeClaimTemplate{Spec: karpenterv1.NodeClaimTemplateSpec{
				Requirements: requirements, NodeClassRef: &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh",
					Kind: "KWOKNodeClass", Name: "default"},
			}},
		}}
}

func in(key string, values ...string) karpenterv1.NodeSelectorRequirementWithMinValues {
	return karpenterv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn,
		Values: values}
}

// V-11 to V-13: all conditions true, counts, hash; and nothing to write the second time.
func TestAHealthyPoolIsReadyAndCounted(t *testing.T) {
	t.Parallel()
	claims := []client.Object{newPool(in("size", "small", "large"))}
	for _, name := range []string{"c1", "c2"} {
		claims = append(claims, &karpenterv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{karpenterv1.NodePoolLabelKey: "default"},
			},
			Status: karpenterv1.NodeClaimStatus{Capacity: corev1.ResourceList{"cpu": resource.MustParse("1500m")}},
		})
	}
	r := newRig(t, claims...)
	p := r.reconcile(t)
	for _, kind := range []string{karpenterv1.ConditionTypeValidationSucceeded,
		karpenterv1.ConditionTypeNodeClassReady, karpenterv1.ConditionTypeInstanceTypesCompatible,
		karpenterv1.ConditionTypeReady} {
		check(t, p, kind, "True")
	}
	cpu, nodes := p.Status.Resources["cpu"], p.Status.Resources["nodes"]
	if cpu.String() != "3" || nodes.Value() != 2 || *p.Status.Nodes != 2 {
		t.Errorf("resources %v, nodes %d: want 3 cores on 2 nodes", p.Status.Resources, *p.Status.Nodes)
	}
	if p.Annotations[karpenterv1.NodePoolHashAnnotationKey] != translate.Hash(p) || r.catalogs.types["default"] != 2 {
		t.Errorf("annotations %v, planning knows %d types", p.Annotations, r.catalogs.types["default"])
	}
	before := r.writes
	if r.reconcile(t); r.writes != before || before > 4 {
		t.Errorf("%d writes at first, %d more on an unchanged pool: want none more", before, r.writes-before)
	}
}

// V-13: a pool without claims says 0 of what its limits name most, in its status and in the metric, like Karpenter.
func TestAnEmptyPoolIsCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t, newPool(in("size", "small")))
	p := r.reconcile(t)
	names := []corev1.ResourceName{"cpu", "ephemeral-storage", "memory", "nodes", "pods"}
	if got := slices.Sorted(maps.Keys(p.Status.Resources)); !slices.Equal(got, names) || *p.Status.Nodes != 0 {
		t.Errorf("resources %v, nodes %d: want %v", p.Status.Resources, *p.Status.Nodes, names)
	}
	for name, quantity := range p.Status.Resources {
		if !quantity.IsZero() {
			t.Errorf("%s is %s, want 0", name, &quantity)
		}
	}
	before := r.writes
	if r.reconcile(t); r.writes != before {
		t.Errorf("%d further writes on an unchanged pool", r.writes-before)
	}
}

// V-24: a pool that stands for one of v1beta1 without keeping it is not written: a write would overwrite the original.
func TestAPoolThatWouldReplaceItsOriginalIsNotWritten(t *testing.T) {
	t.Parallel()
	held := newPool(in("size", "small"))
	held.Annotations = map[string]string{karpenterv1.ConversionProblemAnnotationKey: "spec.weight is wrong"}
	r := newRig(t, held)
	if r.reconcile(t); r.writes > 0 {
		t.Errorf("%d writes, want none", r.writes)
	}
	held = held.DeepCopy()
	held.Annotations[karpenterv1.UnconvertedAnnotationKey] = "{}"
	r = newRig(t, held)
	if r.reconcile(t); r.writes == 0 {
		t.Error("one that keeps its original has no status")
	}
}

// V-12: a missing or unready node class is a condition with its name, and planning forgets what it offered.
func TestNodeClassTroubleIsACondition(t *testing.T) {
	t.Parallel()
	r := newRig(t, newPool())
	r.reconcile(t)
	r.cloud.failure = provider.ErrNodeClassNotFound
	p := r.reconcile(t)
	check(t, p, karpenterv1.ConditionTypeNodeClassReady, "False", "KWOKNodeClass default does not exist")
	check(t, p, karpenterv1.ConditionTypeReady, "False", "KWOKNodeClass default does not exist")
	check(t, p, karpenterv1.ConditionTypeInstanceTypesCompatible, "Unknown")
	if r.catalogs.types["default"] != 0 {
		t.Errorf("planning still knows %d types", r.catalogs.types["default"])
	}
	r.cloud.failure = &provider.NodeClassNotReadyError{Class: "default", Reason: "no subnets"}
	check(t, r.reconcile(t), karpenterv1.ConditionTypeNodeClassReady, "False", "default", "no subnets")
	r.cloud.failure = errors.New("timeout")
	if _, err := r.step.Reconcile(t.Context(),
		reconcile.Request{NamespacedName: types.NamespacedName{Name: "default"}}); err == nil {
		t.Error("a catalogue that cannot be read must be asked for again")
	}
}

// a pool of a node class that no provider here serves is another program's: it gets no condition, no hash, no
// event. A claim of such a class in a pool of ours gets none either.
func TestPoolsAndClaimsOfOtherProgramsAreLeftAlone(t *testing.T) {
	t.Parallel()
	for name, ref := range map[string]*karpenterv1.NodeClassReference{
		"another kind":  {Group: "karpenter.kwok.sh", Kind: "EC2NodeClass", Name: "default"},
		"another group": {Group: "karpenter.k8s.aws", Kind: "KWOKNodeClass", Name: "default"},
		"no kind":       {Group: "karpenter.kwok.sh", Name: "default"}, "none": nil,
	} {
		p := newPool(in("size", "giant"))
		p.Spec.Template.Spec.NodeClassRef = ref
		r := newRig(t, p)
		if fresh := r.reconcile(t); r.writes != 0 || len(fresh.Status.Conditions) != 0 ||
			len(fresh.Annotations) != 0 || len(r.tape.Said()) != 0 {
			t.Errorf("%s: %d writes, conditions %v, annotations %v, said %q; want it left alone", name, r.writes,
				fresh.Status.Conditions, fresh.Annotations, r.tape.Said())
		}
	}
	old := map[string]string{karpenterv1.NodePoolHashAnnotationKey: "old",
		karpenterv1.NodePoolHashVersionAnnotationKey: "v2"}
	foreign := &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: "foreign", Labels: map[string]string{karpenterv1.NodePoolLabelKey: "default"}, Annotations: old,
		},
		Spec: karpenterv1.NodeClaimSpec{NodeClassRef: &karpenterv1.NodeClassReference{Group: "karpenter.k8s.aws",
			Kind: "EC2NodeClass", Name: "default"}},
	}
	r := newRig(t, newPool(), foreign)
	r.reconcile(t)
	var fresh karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "foreign"}, &fresh); err != nil ||
		!maps.Equal(fresh.Annotations, old) {
		t.Errorf("annotations %v, error %v; want the claim left alone", fresh.Annotations, err)
	}
}

// V-11: a pool that matches nothing names the keys in conflict, and only those.
func TestConflictingKeysAreNamed(t *testing.T) {
	t.Parallel()
	p := newRig(t, newPool(in("size", "small"), in(corev1.LabelTopologyZone, "b"), in(corev1.LabelArchStable, "amd64"),
		in("team", "x"))).reconcile(t)
	check(t, p, karpenterv1.ConditionTypeInstanceTypesCompatible, "False", "none of 2", "size=small",
		"topology.kubernetes.io/zone=b")
	got, _ := condition.Get(p.Status.Conditions, karpenterv1.ConditionTypeInstanceTypesCompatible)
	if strings.Contains(got.Message, "arch") || strings.Contains(got.Message, "team") {
		t.Errorf("message %q names keys that are not in conflict", got.Message)
	}
	check(t, p, karpenterv1.ConditionTypeReady, "False", "InstanceTypesCompatible")
}

// what got past the CRD leads to a condition that names the field.
func TestAnInvalidSpecificationIsACondition(t *testing.T) {
	t.Parallel()
	taint := corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule}
	for want, spoil := range map[string]func(*karpenterv1.NodeClaimTemplate){
		"karpenter.sh/initialized is restricted": func(t *karpenterv1.NodeClaimTemplate) {
			t.Spec.Requirements = append(t.Spec.Requirements, in("karpenter.sh/initialized", "true"))
		},
		"kubernetes.io/hostname is restricted": func(t *karpenterv1.NodeClaimTemplate) {
			t.ObjectMeta.Labels = map[string]string{corev1.LabelHostname: "x"}
		},
		"contradict each other for size": func(t *karpenterv1.NodeClaimTemplate) {
			t.Spec.Requirements = append(t.Spec.Requirements, in("size", "small"), in("size", "large"))
		},
		"taint k stands twice": func(t *karpenterv1.NodeClaimTemplate) {
			t.Spec.Taints = []corev1.Taint{taint, taint}
		},
		"startupTaints: taint k stands twice": func(t *karpenterv1.NodeClaimTemplate) {
			t.Spec.Taints, t.Spec.StartupTaints = []corev1.Taint{taint}, []corev1.Taint{taint}
		},
		"Near": func(t *karpenterv1.NodeClaimTemplate) {
			t.Spec.Requirements = append(t.Spec.Requirements, karpenterv1.NodeSelectorRequirementWithMinValues{
				Key: "x", Operator: "Near",
			})
		},
	} {
		p := newPool()
		spoil(&p.Spec.Template)
		fresh := newRig(t, p).reconcile(t)
		check(t, fresh, karpenterv1.ConditionTypeValidationSucceeded, "False", want)
		check(t, fresh, karpenterv1.ConditionTypeReady, "False")
	}
}

// P-34: taking over from an older hash version rewrites the claims' hashes instead of making them drift. A drifted
// claim keeps its hash.
func TestAnOldHashVersionIsMigrated(t *testing.T) {
	t.Parallel()
	old := map[string]string{karpenterv1.NodePoolHashAnnotationKey: "old",
		karpenterv1.NodePoolHashVersionAnnotationKey: "v2"}
	p := newPool()
	p.Annotations = old
	claim := func(name string, conditions ...karpenterv1.Condition) *karpenterv1.NodeClaim {
		return &karpenterv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{karpenterv1.NodePoolLabelKey: "default"}, Annotations: old,
			},
			Spec:   karpenterv1.NodeClaimSpec{NodeClassRef: newPool().Spec.Template.Spec.NodeClassRef},
			Status: karpenterv1.NodeClaimStatus{Conditions: conditions},
		}
	}
	r := newRig(t, p, claim("fine"),
		claim("drifted", karpenterv1.Condition{Type: karpenterv1.ConditionTypeDrifted, Status: "True"}))
	fresh := r.reconcile(t)
	for name, want := range map[string]string{"fine": translate.Hash(fresh), "drifted": "old"} {
		var c karpenterv1.NodeClaim
		if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &c); err != nil {
			t.Fatal(err)
		}
		if c.Annotations[karpenterv1.NodePoolHashAnnotationKey] != want ||
			c.Annotations[karpenterv1.NodePoolHashVersionAnnotationKey] != translate.HashVersion {
			t.Errorf("%s: annotations %v, want the hash %s", name, c.Annotations, want)
		}
	}
}

func TestNoInstanceTypeIsAlsoAnEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t, newPool(in("size", "giant")))
	r.reconcile(t)
	if said := r.tape.Said(); !slices.ContainsFunc(said,
		func(s string) bool { return strings.Contains(s, "NoCompatibleInstanceTypes") }) {
		t.Errorf("said %q, want NoCompatibleInstanceTypes", said)
	}
}

// L-17: a static pool whose limit is below its replicas says so, with both numbers; without limits in the way it does
// not.
func TestReplicasAboveALimitAreACondition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		soft, hard, message string
		status              metav1.ConditionStatus
	}{
		{soft: "10", status: metav1.ConditionFalse,
			message: "replicas 12, limit 10 (soft limit): the pool runs 10 nodes"},
		{soft: "4", hard: "10", status: metav1.ConditionFalse,
			message: "replicas 12, limit 10 (hard limit): the pool runs 10 nodes"},
		{soft: "12", status: metav1.ConditionTrue},
		{status: metav1.ConditionTrue},
	} {
		object := newPool()
		object.Spec.Replicas = new(int64(12))
		if c.soft != "" {
			object.Spec.Limits = karpenterv1.Limits{"nodes": resource.MustParse(c.soft)}
		}
		if c.hard != "" {
			object.Spec.HardLimits = karpenterv1.Limits{"nodes": resource.MustParse(c.hard)}
		}
		p := newRig(t, object).reconcile(t)
		check(t, p, karpenterv1.ConditionTypeReplicasWithinLimits, c.status, c.message)
		check(t, p, karpenterv1.ConditionTypeReady, metav1.ConditionTrue)
	}
	p := newRig(t, newPool()).reconcile(t)
	if _, found := condition.Get(p.Status.Conditions, karpenterv1.ConditionTypeReplicasWithinLimits); found {
		t.Error("a pool without replicas has the condition")
	}
}

// P-35: a pool says that its launches are in vain for as long as they are, and else nothing.
func TestLaunchesInVainAreSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t, newPool())
	const kind = karpenterv1.ConditionTypeLaunchesInVain
	if _, said := condition.Get(r.reconcile(t).Status.Conditions, kind); said {
		t.Error("a pool without trouble speaks of it")
	}
	r.inVain = "2 rounds"
	if got, _ := condition.Get(r.reconcile(t).Status.Conditions, kind); got.Status != "True" ||
		got.Message != "2 rounds" {
		t.Errorf("condition %+v", got)
	}
	r.inVain = ""
	if got, _ := condition.Get(r.reconcile(t).Status.Conditions, kind); got.Status != "False" || got.Message != "" {
		t.Errorf("condition %+v: want that nothing is held back any more", got)
	}
}
