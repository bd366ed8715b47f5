package pool_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/pool"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

const compatible = karpenterv1.ConditionTypeInstanceTypesCompatible

type requirements = []karpenterv1.NodeSelectorRequirementWithMinValues

// V-11: the smallest set of unsatisfiable requirements is named, whatever else the pool requires. An empty catalogue
// is not blamed on them.
func TestWhyNothingIsLeft(t *testing.T) {
	t.Parallel()
	none := func(offered *catalog.Catalog) { offered.Types = nil }
	for name, c := range map[string]struct {
		ask    requirements
		change func(offered *catalog.Catalog)
		says   string
	}{
		"one of many": {requirements{in(corev1.LabelArchStable, "amd64"), in("size", "small"),
			in(corev1.LabelTopologyZone,
				"a"), in(karpenterv1.CapacityTypeLabelKey, "on-demand")},
			nil,
			"none of 2 instance types is left after the requirements; in conflict: karpenter.sh/capacity-type=on-demand"},
		"two of many": {requirements{in(corev1.LabelArchStable, "amd64"), in("size", "small"),
			in(corev1.LabelTopologyZone,
				"b"), in(karpenterv1.CapacityTypeLabelKey, "spot")},
			nil,
			"none of 2 instance types is left after the requirements; in conflict: size=small with topology.kubernetes.io/zone=b"},
		"nothing is offered": {requirements{in(corev1.LabelInstanceTypeStable, "small")}, none,
			"none of 0 instance types is left after the requirements; in conflict: the node class offers nothing"},
		"nothing is offered or asked": {nil, none,
			"none of 0 instance types is left after the requirements; in conflict: the node class offers nothing"},
	} {
		r := newRig(t, newPool(c.ask...))
		r.cloud.change = c.change
		got, _ := condition.Get(r.reconcile(t).Status.Conditions, compatible)
		if got.Status != "False" || got.Message != c.says {
			t.Errorf("%s: %s %q, want %q", name, got.Status, got.Message, c.says)
		}
	}
}

// V-11: a label that the provider decides has to be on an instance type or an offering; any other is the pool's own
// to set.
func TestWhichLabelsTheProviderDecides(t *testing.T) {
	t.Parallel()
	racked := func(offered *catalog.Catalog) {
		offered.WellKnown = map[requirement.Key]bool{"example.com/gpu": true}
		offered.Types[0].Offerings[0].Labels = requirement.FromLabels(map[string]string{"example.com/rack": "r1"})
	}
	for name, c := range map[string]struct {
		ask  requirements
		want metav1.ConditionStatus
	}{
		"nobody knows it":            {requirements{in("example.com/team", "x")}, "True"},
		"well known, and on no type": {requirements{in("example.com/gpu", "a100")}, "False"},
		"well known, and not wanted": {
			requirements{{Key: "example.com/gpu", Operator: corev1.NodeSelectorOpDoesNotExist}},
			"True"},
		"on an offering":              {requirements{in("example.com/rack", "r1")}, "True"},
		"another one on the offering": {requirements{in("example.com/rack", "r2")}, "False"},
		"on another type's offering":  {requirements{in("example.com/rack", "r1"), in("size", "large")}, "False"},
	} {
		r := newRig(t, newPool(c.ask...))
		r.cloud.change = racked
		got, _ := condition.Get(r.reconcile(t).Status.Conditions, compatible)
		if told := strings.Contains(strings.Join(r.tape.Said(), "\n"),
			"NoCompatibleInstanceTypes"); got.Status != c.want ||
			told != (c.want == "False") {
			t.Errorf("%s: %s %q, said %q; want %s, and an event when nothing is left", name, got.Status, got.Message,
				r.tape.Said(), c.want)
		}
	}
}

// V-11, V-12: an invalid requirement is reported as it is; what follows from it is unknown.
func TestARequirementThatMeansNothingIsSaid(t *testing.T) {
	t.Parallel()
	odd := karpenterv1.NodeSelectorRequirementWithMinValues{Key: "size", Operator: "Near", Values: []string{"x"}}
	p := newRig(t, newPool(odd)).reconcile(t)
	check(t, p, karpenterv1.ConditionTypeValidationSucceeded, metav1.ConditionFalse, "Near")
	check(t, p, compatible, metav1.ConditionUnknown, "Near")
	check(t, p, karpenterv1.ConditionTypeReady, metav1.ConditionFalse, "ValidationSucceeded: ", "Near")
	p = newRig(t, newPool(in("karpenter.sh/zz", "x"), in("karpenter.sh/aa", "x"))).reconcile(t)
	got, _ := condition.Get(p.Status.Conditions, karpenterv1.ConditionTypeValidationSucceeded)
	if a, z := strings.Index(got.Message, "karpenter.sh/aa"), strings.Index(got.Message, "karpenter.sh/zz"); a < 0 ||
		z < a {
		t.Errorf("%q, want both keys, in order", got.Message)
	}
}

// V-12: a pool is not Ready while its node class's catalogue is unknown, and reports only that: its instance types
// follow from it.
func TestAPoolIsNotReadyWithoutACatalogue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure, refused error
		status           metav1.ConditionStatus
		reason, message  string
		told             bool
	}{
		"not read": {errors.New("throttled"), nil, metav1.ConditionUnknown, "CatalogUnavailable", "throttled", true},
		"refused": {nil, errors.New("type small has no offerings"), metav1.ConditionFalse, "CatalogInvalid",
			"type small has no offerings", false},
		"not there": {provider.ErrNodeClassNotFound, nil, metav1.ConditionFalse, "NodeClassNotFound",
			"KWOKNodeClass default does not exist", false},
		"not there, and not forgotten": {provider.ErrNodeClassNotFound, errors.New("no such class"),
			metav1.ConditionFalse, "NodeClassNotFound",
			"KWOKNodeClass default does not exist", true},
	} {
		r := newRig(t, newPool())
		r.cloud.failure, r.catalogs.failure = c.failure, c.refused
		_, err := r.step.Reconcile(t.Context(),
			reconcile.Request{NamespacedName: types.NamespacedName{Name: "default"}})
		if (err != nil) != c.told {
			t.Errorf("%s: error %v, want one: %t", name, err, c.told)
		}
		var p karpenterv1.NodePool
		if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &p); err != nil {
			t.Fatal(err)
		}
		class, _ := condition.Get(p.Status.Conditions, karpenterv1.ConditionTypeNodeClassReady)
		ready, _ := condition.Get(p.Status.Conditions, karpenterv1.ConditionTypeReady)
		if class.Status != c.status || class.Reason != c.reason || class.Message != c.message {
			t.Errorf("%s: NodeClassReady is %s %s %q, want %s %s %q", name, class.Status, class.Reason, class.Message,
				c.status, c.reason, c.message)
		}
		if ready.Status != "False" || ready.Reason != "NodeClassReadyFailed" ||
			ready.Message != "NodeClassReady: "+c.message {
			t.Errorf("%s: Ready is %s %s %q, want it to say what is wrong with the node class, and that alone", name,
				ready.Status, ready.Reason, ready.Message)
		}
	}
}

// L-17: with invalid limits it is unknown whether a static pool may have its replicas.
func TestReplicasWithLimitsThatMeanNothing(t *testing.T) {
	t.Parallel()
	p := newPool()
	p.Spec.Replicas, p.Spec.Limits = new(int64(3)), karpenterv1.Limits{"nodes": resource.MustParse("-1")}
	check(t, newRig(t, p).reconcile(t), karpenterv1.ConditionTypeReplicasWithinLimits, metav1.ConditionUnknown,
		"the limits cannot be understood")
}

// D-08: a budget that begins sooner than the catalogue is read again is not missed.
func TestABudgetThatBeginsSoonIsNotMissed(t *testing.T) {
	t.Parallel()
	p := newPool()
	p.Spec.Disruption.Budgets = []karpenterv1.Budget{{Nodes: intstr.FromString("0"), Schedule: new("5 3 * * *"),
		Duration: &karpenterv1.Duration{Duration: time.Hour}}}
	for late, want := range map[time.Duration]time.Duration{
		35 * time.Second: 20 * time.Second, 54700 * time.Millisecond: time.Second, // not more often than every second
	} {
		r := newRig(t, p.DeepCopy())
		config := r.config()
		config.Now = func() time.Time { return controllertest.Start().Add(late) } // after 03:04:05 UTC
		r.step = pool.New(config)
		if again := r.again(t); again != want {
			t.Errorf("%s later: again after %s, want %s", late, again, want)
		}
	}
}
