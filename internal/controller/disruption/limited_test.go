package disruption_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// beside adds a pool of large nodes without limits, with a node whose pod would fit a small one. With own, the pool
// may also have small nodes.
func (r *rig) beside(t *testing.T, own bool) {
	t.Helper()
	pool := newPool("100%")
	pool.Name, pool.UID = "other", "other"
	pool.Spec.Disruption.ConsolidationPolicy = karpenterv1.ConsolidationPolicyWhenEmptyOrUnderutilized
	ready := karpenterv1.Condition{Type: karpenterv1.ConditionTypeReady, Status: metav1.ConditionTrue}
	pool.Status.Conditions = []karpenterv1.Condition{ready}
	if !own {
		pool.Spec.Template.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{
			{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"large"}}}
	}
	n, claim := sized("b", "large")
	n.Labels[karpenterv1.NodePoolLabelKey], claim.Labels[karpenterv1.NodePoolLabelKey] = "other", "other"
	claim.Finalizers = []string{karpenterv1.TerminationFinalizer}
	for _, o := range []client.Object{pool, n, claim, podAsking("on-b", "b", "1500m")} {
		r.create(t, o)
	}
	r.sync(t)
}

// binds makes the pod of a node one that runs only in a pool.
func (r *rig) binds(t *testing.T, node, pool string) {
	t.Helper()
	var pod corev1.Pod
	key := types.NamespacedName{Namespace: "default", Name: "on-" + node}
	if err := r.server.Get(t.Context(), key, &pod); err != nil {
		t.Fatal(err)
	}
	pod.Spec.NodeSelector = map[string]string{karpenterv1.NodePoolLabelKey: pool}
	if err := r.server.Update(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
	r.sync(t)
}

// toldOfLimit lists which pools were told of their hard limit.
func (r *rig) toldOfLimit() []string {
	const text = " DisruptionBlocked: No allowed disruptions for disruption reason "
	var told []string
	for _, said := range r.tape.Said() {
		if pool, _, found := strings.Cut(said, text); found {
			told = append(told, pool)
		}
	}
	return told
}

// L-34: a pool at its hard limit with nothing to replace is told nothing, and no pool is told of another's limit. Here
// a node of a pool without limits would become a cheaper one of the full pool.
func TestNobodyIsToldOfTheLimitOfAnother(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string][]string{"1": nil, "2": {"b"}} {
		r := clusterOf(t, "100%", map[string]string{"a": "small"}, "1500m")
		r.setLimit(t, limit)
		r.binds(t, "a", "default")
		r.beside(t, false)
		r.turn(t)
		marked, _ := r.state(t)
		if !slices.Equal(marked, want) || len(r.toldOfLimit()) != 0 {
			t.Errorf("limit %s: marked %v, want %v; told of the limit: %v", limit, marked, want, r.toldOfLimit())
		}
	}
}

// L-34, D-04: everything possible is made cheaper before a pool is told that its hard limit blocks the rest.
func TestThePoolAtItsLimitIsToldWhenNothingElseIsLeft(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "100%", map[string]string{"a": "large"}, "1500m")
	r.setLimit(t, "1")
	r.binds(t, "a", "default")
	r.beside(t, true)
	r.turn(t)
	if marked, _ := r.state(t); !slices.Equal(marked, []string{"b"}) || len(r.toldOfLimit()) != 0 {
		t.Fatalf("marked %v, told of the limit: %v; want b marked, and nobody told", marked, r.toldOfLimit())
	}
	r.turn(t)
	if !slices.Equal(r.toldOfLimit(), []string{"default"}) {
		t.Errorf("told of the limit: %v; want the default pool, b is going", r.toldOfLimit())
	}
}

// L-34, K-53: the report says which limit prevents a cheaper node: the pool's own, hard or soft, or that of the whole
// cluster. This includes a limit with room for a launch, though not for all that a replacement needs.
func TestL34_WhichLimitKeepsACheaperNodeAway(t *testing.T) {
	t.Parallel()
	soft := func(t *testing.T, r *rig) {
		var pool karpenterv1.NodePool
		if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &pool); err != nil {
			t.Fatal(err)
		}
		pool.Spec.Limits = karpenterv1.Limits{"nodes": resource.MustParse("2")}
		if err := r.server.Update(t.Context(), &pool); err != nil {
			t.Fatal(err)
		}
		r.sync(t)
	}
	for name, c := range map[string]struct {
		pods int // each of which would have a small node of its own
		set  func(*testing.T, *rig)
		want string
	}{
		"hard, full":  {1, func(t *testing.T, r *rig) { r.setLimit(t, "1") }, "node hard limit"},
		"hard, tight": {3, func(t *testing.T, r *rig) { r.setLimit(t, "3") }, "node hard limit"},
		"hard, room":  {3, func(t *testing.T, r *rig) { r.setLimit(t, "4") }, ""},
		"soft":        {3, soft, "node soft limit"},
		"soft, room":  {2, soft, ""},
		"cluster, full": {1, func(_ *testing.T, r *rig) { r.store.LimitClaims(1) },
			"the hard limit of the whole cluster (--max-node-claims-hard)"},
		"cluster, tight": {3, func(_ *testing.T, r *rig) { r.store.LimitClaims(3) },
			"the hard limit of the whole cluster (--max-node-claims-hard)"},
		"cluster, room": {3, func(_ *testing.T, r *rig) { r.store.LimitClaims(4) }, ""},
	} {
		r := clusterOf(t, "100%", map[string]string{"a": "large"}, "1500m")
		for i := 1; i < c.pods; i++ {
			r.create(t, podAsking(fmt.Sprint("more-", i), "a", "1500m"))
		}
		c.set(t, r)
		r.turn(t)
		said := strings.Join(r.tape.Said(), "\n")
		if c.want == "" && len(r.toldOfLimit()) != 0 ||
			c.want != "" &&
				!strings.Contains(said, "No allowed disruptions for disruption reason Underutilized due to "+c.want) {
			t.Errorf("%s: said\n%s\nwant to be told of %q", name, said, c.want)
		}
	}
}
