package disruption_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
)

// choose puts a whole intent onto nodes and their claims: reason and taint.
func (r *rig) choose(t *testing.T, reason string, names ...string) {
	t.Helper()
	for _, name := range names {
		r.mark(t, name, reason)
		var n corev1.Node
		if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &n); err != nil {
			t.Fatal(err)
		}
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: karpenterv1.DisruptedTaintKey,
			Effect: corev1.TaintEffectNoSchedule})
		if err := r.server.Update(t.Context(), &n); err != nil {
			t.Fatal(err)
		}
	}
	r.sync(t)
}

// standsFor records on a claim that it was launched to replace others.
func (r *rig) standsFor(t *testing.T, name string, together int, others ...string) {
	t.Helper()
	var claim karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &claim); err != nil {
		t.Fatal(err)
	}
	claim.Annotations = map[string]string{
		karpenterv1.ReplacesAnnotationKey:     strings.Join(others, ","),
		karpenterv1.ReplacementsAnnotationKey: fmt.Sprint(together),
	}
	if err := r.server.Update(t.Context(), &claim); err != nil {
		t.Fatal(err)
	}
	r.sync(t)
}

// D-09, D-10: the pods of either of two nodes fit elsewhere, but not both nodes' pods. One goes now and the other
// waits; if both fit, both go. In a static pool each has its own replacement, and fitting does not matter.
func TestWhatFitsOnlyAloneGoesAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cpu              string
		static           bool
		marked, deleting int
	}{
		"one place":         {"900m", false, 1, 1},
		"two places":        {"400m", false, 0, 2},
		"one place, static": {"900m", true, 0, 2},
	} {
		r := clusterOf(t, "100%", map[string]string{"a": "small", "b": "small", "c": "small"}, c.cpu)
		reason := "Underutilized"
		if c.static {
			reason = "Drifted"
			for i, old := range []string{"a", "b"} {
				n, claim := sized([]string{"x", "y"}[i], "small")
				n.Spec.Taints = []corev1.Taint{{Key: "example.com/own",
					Effect: corev1.TaintEffectNoSchedule}} // no place for the pods
				claim.Finalizers = []string{karpenterv1.TerminationFinalizer}
				r.create(t, n)
				r.create(t, claim)
				r.standsFor(t, claim.Name, 1, old)
			}
			r.change(t, func(pool *karpenterv1.NodePool) { pool.Spec.Replicas = new(int64(3)) })
			r.drift(t, "a", "b")
		}
		r.choose(t, reason, "a", "b")
		r.reconcile(t)
		if marked, deleting := r.state(t); len(marked) != c.marked || len(deleting) != c.deleting {
			t.Errorf("%s: marked %v, deleting %v: want %d, %d", name, marked, deleting, c.marked, c.deleting)
		}
	}
}

// D-08: a budget that shrinks takes back the commands that exceed it, and no other. Nodes being deleted or not ready
// use it up too.
func TestABudgetThatShrinksTakesCommandsBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		budget   string
		change   func(*testing.T, *rig)
		deleting int
	}{
		"room for both":     {"2", func(*testing.T, *rig) {}, 2},
		"room for one":      {"1", func(*testing.T, *rig) {}, 1},
		"one goes":          {"2", func(t *testing.T, r *rig) { t.Helper(); r.goes(t, "d") }, 2}, // and one of ours
		"one is not ready":  {"2", func(t *testing.T, r *rig) { t.Helper(); r.breaks(t, "d") }, 1},
		"other's not ready": {"2", func(t *testing.T, r *rig) { t.Helper(); r.breaks(t, "other") }, 2},
	} {
		r := clusterOf(t, c.budget, map[string]string{"a": "small", "b": "small", "c": "small", "d": "small"}, "400m")
		other, _ := machine("other") // a node of the pool that nobody here made
		r.create(t, other)
		c.change(t, r)
		r.choose(t, "Underutilized", "a", "b")
		r.reconcile(t)
		if marked, deleting := r.state(t); len(marked) != 0 || len(deleting) != c.deleting {
			t.Errorf("%s: marked %v, deleting %v: want %d deleted, and the other taken back", name, marked, deleting,
				c.deleting)
		}
	}
}

// goes deletes a claim, which its finalizer holds.
func (r *rig) goes(t *testing.T, name string) {
	t.Helper()
	if err := r.server.Delete(t.Context(),
		&karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	r.sync(t)
}

// breaks makes a node not ready.
func (r *rig) breaks(t *testing.T, name string) {
	t.Helper()
	var n corev1.Node
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &n); err != nil {
		t.Fatal(err)
	}
	n.Status.Conditions[0].Status = corev1.ConditionFalse
	if err := r.server.Status().Update(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	r.sync(t)
}

// D-10: all marks of a command are complete before any of its nodes goes.
func TestTheMarksOfACommandAreCompletedFirst(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "100%", map[string]string{"a": "small", "b": "small", "c": "small", "x": "large"}, "900m")
	r.standsFor(t, "x", 1, "a", "b", "c")
	r.choose(t, "Underutilized", "a", "b", "c")
	r.untaint(t, "b")
	r.untaint(t, "c")
	r.sync(t)
	r.reconcile(t)
	if marked, deleting := r.state(t); len(marked) != 3 || len(deleting) != 0 || !r.tainted(t, "b") || !r.tainted(t,
		"c") {
		t.Fatalf("marked %v, deleting %v, b tainted %t, c tainted %t: want the taints, and nothing gone", marked,
			deleting, r.tainted(t, "b"), r.tainted(t, "c"))
	}
	r.sync(t)
	r.reconcile(t)
	if marked, deleting := r.state(t); len(marked) != 0 || len(deleting) != 3 {
		t.Errorf("marked %v, deleting %v: want all gone", marked, deleting)
	}
}

// D-01, U-10: each node that goes is reported and counted, by reason, pool, capacity type and policy. If somebody has
// changed its claim meanwhile it is neither: it is judged again, and its pool has no success.
func TestANodeThatGoesIsToldAndCounted(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		conflict bool
		scene    func(*testing.T) *rig
		reason   string
	}{
		{false, func(t *testing.T) *rig { t.Helper(); return replacing(t, true) }, "Underutilized"},
		{true, func(t *testing.T) *rig { t.Helper(); return replacing(t, true) }, "Underutilized"},
		{false, scenes()["removes an empty node"], "Empty"}, {true, scenes()["removes an empty node"], "Empty"},
		{false, scenes()["removes what is trimmed"], "NodeLimitExceeded"},
		{true, scenes()["removes what is trimmed"], "NodeLimitExceeded"},
	} {
		r := row.scene(t)
		r.over(interceptor.NewClient(r.server, interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object,
				options ...client.DeleteOption) error {
				if row.conflict {
					return apierrors.NewConflict(schema.GroupResource{Resource: "nodeclaims"}, o.GetName(), nil)
				}
				return c.Delete(ctx, o, options...)
			},
		}))
		r.reconcile(t)
		count := controllertest.Count(t, r.registry, "karpenter_nodeclaims_disrupted_total",
			metrics.Reason(row.reason), "default", "graceful")
		told := strings.Contains(strings.Join(r.tape.Said(), "\n"),
			"a DisruptionTerminating: The node is removed: "+row.reason)
		if goes := !row.conflict; (count == 1) != goes || told != goes {
			t.Errorf("%s, changed meanwhile %t: counted %v, told %t", row.reason, row.conflict, count, told)
		}
		if row.reason == "Underutilized" && (r.noted(t) == "") == row.conflict {
			t.Errorf("changed meanwhile %t: noted %q", row.conflict, r.noted(t))
		}
		if n := controllertest.Count(t, r.registry, "karpenter_nodeclaims_disrupted_total", "on-demand",
			"when_empty_or_underutilized"); row.reason == "Underutilized" && (n == 1) == row.conflict {
			t.Errorf("changed meanwhile %t: %v are counted with capacity type and policy", row.conflict, n)
		}
	}
}

// D-06: the annotation about a pool's commands leaves its other annotations alone, and is written only when it
// changes.
func TestWhatAPoolNotes(t *testing.T) {
	t.Parallel()
	const own = "example.com/own"
	for name, scene := range map[string]func(*testing.T) *rig{
		"taken back":  func(t *testing.T) *rig { t.Helper(); return lost(t, false) },
		"carried out": func(t *testing.T) *rig { t.Helper(); return replacing(t, true) },
		"inherited":   func(t *testing.T) *rig { t.Helper(); return newRig(t, softFleet("1", "0", "a", "b")...) },
		"two taken back": func(t *testing.T) *rig {
			t.Helper()
			r := clusterOf(t, "100%", map[string]string{"a": "small", "b": "small"}, "1500m")
			r.create(t, podAsking("second", "a", "400m"))
			r.choose(t, "Underutilized", "a", "b")
			r.appear(t, "x", nil)
			r.standsFor(t, "x", 2, "a", "b") // of two, one is lost
			return r
		},
		"nothing noted": func(t *testing.T) *rig {
			t.Helper()
			r := replacing(t, true)
			r.change(t, func(pool *karpenterv1.NodePool) { pool.Annotations = nil })
			return r
		},
	} {
		r := scene(t)
		r.change(t, func(pool *karpenterv1.NodePool) {
			if pool.Annotations == nil {
				pool.Annotations = map[string]string{}
			}
			pool.Annotations[own] = "yes"
		})
		writes := 0
		r.over(interceptor.NewClient(r.server, interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
				options ...client.PatchOption) error {
				if _, pool := o.(*karpenterv1.NodePool); pool {
					writes++
				}
				return c.Patch(ctx, o, p, options...)
			},
		}))
		for range 3 {
			r.reconcile(t)
			r.sync(t)
		}
		var pool karpenterv1.NodePool
		if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &pool); err != nil {
			t.Fatal(err)
		}
		want := map[bool]int{true: 0, false: 1}[name == "nothing noted"]
		if _, noted := pool.Annotations[karpenterv1.DisruptionBackoffAnnotationKey]; pool.Annotations[own] != "yes" ||
			writes != want || noted != strings.HasSuffix(name, "taken back") {
			t.Errorf("%s: %d writes, annotations %v", name, writes, pool.Annotations)
		}
	}
}

// D-06: a command that succeeds ends the pause of its pool.
func TestASuccessEndsThePause(t *testing.T) {
	t.Parallel()
	for _, succeeds := range []bool{true, false} {
		r := replacing(t, true)
		n, claim := sized("b", "small")
		claim.Finalizers = []string{karpenterv1.TerminationFinalizer}
		for _, o := range []client.Object{n, claim, podAsking("on-b", "b", "1500m")} {
			r.create(t, o)
		}
		r.change(t, func(pool *karpenterv1.NodePool) {
			until := r.clock.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339)
			pool.Annotations = map[string]string{karpenterv1.DisruptionBackoffAnnotationKey: until + " 10m0s"}
		})
		if !succeeds {
			r.goes(t, "a")
		}
		r.reconcile(t)
		r.sync(t)
		r.drift(t, "b")
		r.turn(t)
		if marked, _ := r.state(t); slices.Contains(marked, "b") != succeeds {
			t.Errorf("succeeds %t: marked %v", succeeds, marked)
		}
	}
}

// D-04: a pool that is being consolidated is left alone until that is over: the new nodes may be a better place.
func TestAPoolThatIsConsolidatedIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := replacing(t, false)
	n, claim := sized("b", "large")
	claim.Finalizers = []string{karpenterv1.TerminationFinalizer}
	for _, o := range []client.Object{n, claim, podAsking("on-b", "b", "1500m")} {
		r.create(t, o)
	}
	for range 3 {
		r.turn(t)
	}
	if marked, _ := r.state(t); !slices.Equal(marked, []string{"a"}) {
		t.Errorf("marked %v, want no other while one is replaced", marked)
	}
}

// D-09: commands of a pool that is gone are taken back, and nothing is written onto it.
func TestACommandOfAPoolThatIsGoneIsTakenBack(t *testing.T) {
	t.Parallel()
	r := replacing(t, false)
	if err := r.server.Delete(t.Context(), newPool("")); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t)
	if marked, _ := r.state(t); len(marked) != 0 || !strings.Contains(strings.Join(r.tape.Said(), "\n"),
		"a DisruptionCancelled: The node stays: node a: its NodePool is gone") {
		t.Errorf("marked %v, said %q", marked, r.tape.Said())
	}
}

// D-08: empty nodes held by a budget are reported on their pool. A pool missing on the API server is skipped, and
// hides no other.
func TestHeldNodesAreToldOnTheirPools(t *testing.T) {
	t.Parallel()
	objects := fleet("0", "a")
	var gone []*karpenterv1.NodePool
	for i := range 8 {
		pool := newPool("0")
		pool.Name, pool.UID = fmt.Sprintf("gone-%d", i), types.UID(fmt.Sprintf("gone-%d", i))
		n, claim := machine(fmt.Sprintf("g-%d", i))
		n.Labels[karpenterv1.NodePoolLabelKey], claim.Labels[karpenterv1.NodePoolLabelKey] = pool.Name, pool.Name
		objects, gone = append(objects, pool, n, claim), append(gone, pool)
	}
	r := newRig(t, objects...)
	for _, pool := range gone {
		if err := r.server.Delete(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	const rounds = 5 // the pools come in an order of chance
	for range rounds {
		r.reconcile(t)
	}
	want := "default DisruptionBlocked: BudgetClosed: the budgets of NodePool default let no node be " +
		"disrupted now for the reason Empty. "
	said := strings.Join(r.tape.Said(), "\n")
	if strings.Count(said, want) != rounds || strings.Contains(said, "gone-") {
		t.Errorf("said %s\nwant %q in each of %d rounds, and no other", said, want, rounds)
	}
}

// D-02: a node being deleted does not report what would hold it, nor does one that nothing holds.
func TestANodeThatGoesSaysNothingOfWhatWouldHoldIt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *rig){
		"goes": func(t *testing.T, r *rig) { t.Helper(); r.goes(t, "a") },
		"is marked": func(t *testing.T, r *rig) {
			t.Helper()
			r.choose(t, "NodeLimitExceeded", "a")
			r.setLimit(t, "0")
		},
		"nothing does": func(t *testing.T, r *rig) { t.Helper(); r.create(t, podOn("a")); r.sync(t) },
	} {
		objects := limitedFleet("9", "a")
		objects[0].(*karpenterv1.NodePool).Spec.Disruption.Budgets[0].Nodes = intstr.FromString("100%")
		if name != "nothing does" {
			objects[1].SetAnnotations(map[string]string{karpenterv1.DoNotDisruptAnnotationKey: "true"})
		}
		r := newRig(t, objects...)
		change(t, r)
		r.reconcile(t)
		if said := strings.Join(r.tape.Said(), "\n"); strings.Contains(said, "a DisruptionBlocked") {
			t.Errorf("%s: said %s", name, said)
		}
	}
}

// D-08: a pool in the snapshot that the API server lacks for a moment has an unknown budget: none of its nodes is
// disrupted.
func TestAPoolThatIsNotListedHasNoBudget(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet("0", "a")...)
	if err := r.server.Delete(t.Context(), newPool("")); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t)
	if marked, _ := r.state(t); len(marked) != 0 {
		t.Errorf("marked %v", marked)
	}
}

// D-10: while a replacement is on its way, nobody checks whether the node's pods have a place; that is judged once it
// is there. If other pods took a place then, a launch makes up for it, as long as the whole is still cheaper.
func TestWhenItIsJudgedWhetherACommandFits(t *testing.T) {
	t.Parallel()
	r := replacing(t, false)
	r.create(t, podAsking("big", "a", "5"))
	r.sync(t)
	r.reconcile(t)
	if marked, _ := r.state(t); !slices.Equal(marked, []string{"a"}) {
		t.Errorf("marked %v, want it to wait", marked)
	}
	r = replacing(t, true)
	r.create(t, podAsking("first", r.replacements(t)[0], "1500m"))
	r.sync(t)
	r.reconcile(t)
	if _, deleting := r.state(t); !slices.Equal(deleting, []string{"a"}) {
		t.Errorf("deleting %v, said %q: want a gone, a small node for its pod is cheaper still", deleting,
			r.tape.Said())
	}
}

// L-31, L-40: a drifted node whose replacement brought its pool above the hard limit goes, even though other pods have
// taken its place.
func TestADriftedNodeGoesAboveTheLimit(t *testing.T) {
	t.Parallel()
	for limit, goes := range map[string]bool{"1": true, "2": false} {
		r := clusterOf(t, "100%", map[string]string{"a": "small", "x": "small"}, "1500m")
		r.standsFor(t, "x", 1, "a")
		r.drift(t, "a")
		r.choose(t, "Drifted", "a")
		r.setLimit(t, limit)
		r.reconcile(t)
		if marked, deleting := r.state(t); len(marked) != 0 || (len(deleting) == 1) != goes {
			t.Errorf("limit %s: marked %v, deleting %v, said %q", limit, marked, deleting, r.tape.Said())
		}
	}
}

// D-10: one node of a command that somebody has changed meanwhile does not hold up the others.
func TestANodeThatWasChangedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "100%", map[string]string{"a": "small", "b": "small", "x": "large"}, "900m")
	r.standsFor(t, "x", 1, "a", "b")
	r.choose(t, "Underutilized", "a", "b")
	r.over(interceptor.NewClient(r.server, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if o.GetName() == "a" {
				return apierrors.NewConflict(schema.GroupResource{Resource: "nodeclaims"}, "a", nil)
			}
			return c.Delete(ctx, o, options...)
		},
	}))
	r.reconcile(t)
	if marked, deleting := r.state(t); !slices.Equal(marked, []string{"a"}) || !slices.Equal(deleting, []string{"b"}) {
		t.Errorf("marked %v, deleting %v: want b gone", marked, deleting)
	}
}
