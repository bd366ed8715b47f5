package disruption_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
)

// softFleet is limitedFleet with a soft limit, and a budget; an empty limit is none.
func softFleet(limit, budget string, names ...string) []client.Object {
	objects := limitedFleet("9", names...)
	pool := objects[0].(*karpenterv1.NodePool)
	pool.Spec.HardLimits = nil
	pool.Spec.Disruption.Budgets = []karpenterv1.Budget{{Nodes: intstr.FromString(budget)}}
	if limit != "" {
		pool.Spec.Limits = karpenterv1.Limits{"nodes": resource.MustParse(limit)}
	}
	return objects
}

// change changes the pool, and shows it to the controller.
func (r *rig) change(t *testing.T, do func(*karpenterv1.NodePool)) {
	t.Helper()
	var pool karpenterv1.NodePool
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &pool); err != nil {
		t.Fatal(err)
	}
	do(&pool)
	if err := r.server.Update(t.Context(), &pool); err != nil {
		t.Fatal(err)
	}
	r.sync(t)
}

func softLimit(limit string) func(*karpenterv1.NodePool) {
	return func(pool *karpenterv1.NodePool) {
		pool.Spec.Limits = karpenterv1.Limits{"nodes": resource.MustParse(limit)}
	}
}

// aboveLimit returns the mark of the pool.
func (r *rig) aboveLimit(t *testing.T) string {
	t.Helper()
	var pool karpenterv1.NodePool
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &pool); err != nil {
		t.Fatal(err)
	}
	return pool.Annotations[karpenterv1.AboveLimitAnnotationKey]
}

// after runs some rounds, and demands how many claims are on their way out, and the mark.
func (r *rig) after(t *testing.T, rounds, want int, mark string) {
	t.Helper()
	for range rounds {
		r.reconcile(t)
		r.sync(t)
	}
	marked, deleting := r.state(t)
	if len(marked)+len(deleting) != want || r.aboveLimit(t) != mark {
		t.Fatalf("marked %v, deleting %v, mark %q: want %d to go, and the mark %q", marked, deleting, r.aboveLimit(t),
			want, mark)
	}
}

// L-40: a pool that was already above its soft limit is reduced within its budget, even after a restart, and gets an
// event.
func TestAnInheritedExcessGoesWithinBudgets(t *testing.T) {
	t.Parallel()
	r := newRig(t, softFleet("1", "1", "a", "b", "c", "d")...)
	r.after(t, 1, 0, "Inherited") // it is told before anything goes
	want :=
		"default NodeLimitExceeded: 4 nodes, limit 1 (soft limit): the pool was above the limit when Joiner first " +
			"saw it, so 3 nodes are removed as the disruption budgets allow, not at once"
	if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, want) {
		t.Errorf("said:\n%s\nwant %s", said, want)
	}
	r.after(t, 6, 1, "Inherited")
	r.restart()
	r.sync(t)
	r.after(t, 6, 1, "Inherited")
	for i, name := range []string{"a", "b", "c"} {
		r.lose(t, name)
		if i < 2 {
			r.after(t, 6, 1, "Inherited")
		}
	}
	r.after(t, 2, 0, "")
	if len(r.list(t)) != 1 {
		t.Errorf("%d claims are left, want as many as the limit allows", len(r.list(t)))
	}
}

// L-40: an excess that arises while Joiner runs goes at once: a lowered or new limit, or claims made by hand. A new
// process continues that.
func TestAnExcessThatCameAboutGoesAtOnce(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		before string
		change func(*testing.T, *rig)
		mark   string
		going  int
	}{
		"lowered": {"4", func(t *testing.T, r *rig) { t.Helper(); r.change(t, softLimit("1")) }, "AtOnce 1", 3},
		"set":     {"", func(t *testing.T, r *rig) { t.Helper(); r.change(t, softLimit("2")) }, "AtOnce 2", 2},
		"by hand": {"4", func(t *testing.T, r *rig) {
			t.Helper()
			for _, name := range []string{"y", "z"} {
				n, claim := machine(name)
				for _, o := range []client.Object{n, claim} {
					if err := r.server.Create(t.Context(), o); err != nil {
						t.Fatal(err)
					}
				}
			}
			r.sync(t)
		}, "AtOnce 4", 2},
	} {
		r := newRig(t, softFleet(row.before, "0", "a", "b", "c", "d")...)
		r.after(t, 2, 0, "")
		row.change(t, r)
		r.reconcile(t)
		if marked, deleting := r.state(t); r.aboveLimit(t) != row.mark || len(marked)+len(deleting) != 0 {
			t.Fatalf("%s: mark %q, marked %v, deleting %v: want the mark %q before anything goes", name,
				r.aboveLimit(t), marked, deleting, row.mark)
		}
		r.restart() // the mark is all that is left
		r.sync(t)
		r.after(t, 4, row.going, row.mark)
	}
}

// L-40: an inherited excess stays inherited until the limit is lowered while Joiner runs. Raising it hurries nothing.
func TestAnInheritedExcessAndALimitThatChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t, softFleet("3", "0", "a", "b", "c", "d", "e")...)
	r.after(t, 4, 0, "Inherited")
	r.change(t, softLimit("4"))
	r.after(t, 4, 0, "Inherited")
	r.change(t, softLimit("2"))
	r.after(t, 4, 3, "AtOnce 2")
}

// L-40: a mark for another limit does not count. The right one was lost, so budgets apply.
func TestAMarkForAnotherLimitIsNone(t *testing.T) {
	t.Parallel()
	objects := softFleet("1", "0", "a", "b", "c")
	objects[0].SetAnnotations(map[string]string{karpenterv1.AboveLimitAnnotationKey: "AtOnce 2"})
	newRig(t, objects...).after(t, 4, 0, "Inherited")
}

// L-40, D-14: a choice within budgets is taken back when they are tightened, when disruption is paused, and when the
// node must no longer be disrupted; the reason is reported.
func TestAnInheritedExcessIsTakenBack(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*testing.T, *rig){
		"the budgets of NodePool default let no node be disrupted now for the reason Empty": func(t *testing.T,
			r *rig) {
			t.Helper()
			r.change(t, func(pool *karpenterv1.NodePool) {
				pool.Spec.Disruption.Budgets = []karpenterv1.Budget{{Nodes: intstr.FromString("0")}}
			})
		},
		"voluntary disruption is paused by ConfigMap kube-system/joiner-disruption": func(t *testing.T, r *rig) {
			t.Helper()
			object := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: disruption.SwitchName},
				Data:       map[string]string{disruption.SwitchPaused: "true"},
			}
			if err := r.server.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		},
		"karpenter.sh/do-not-disrupt is set on the node or its NodeClaim": func(t *testing.T, r *rig) {
			t.Helper()
			var nodes corev1.NodeList
			if err := r.server.List(t.Context(), &nodes); err != nil {
				t.Fatal(err)
			}
			for i := range nodes.Items {
				nodes.Items[i].Annotations = map[string]string{karpenterv1.DoNotDisruptAnnotationKey: "true"}
				if err := r.server.Update(t.Context(), &nodes.Items[i]); err != nil {
					t.Fatal(err)
				}
			}
			r.sync(t)
		},
	} {
		r := newRig(t, softFleet("1", "2", "a", "b", "c", "d")...)
		r.reconcile(t)
		r.sync(t)
		r.reconcile(t) // two are marked now
		r.sync(t)
		if marked, _ := r.state(t); len(marked) != 2 {
			t.Fatalf("marked %v, want two", marked)
		}
		change(t, r)
		r.after(t, 3, 0, "Inherited")
		if said := strings.Join(r.tape.Said(), "\n"); strings.Count(said, "The node stays: "+want) != 2 {
			t.Errorf("said:\n%s\nwant that two stay: %s", said, want)
		}
	}
}

// a pool with invalid limits gets no mark: its hard limit may be the invalid one.
func TestAPoolThatCannotBeUnderstoodIsNotMarked(t *testing.T) {
	t.Parallel()
	r := newRig(t, softFleet("", "1", "a", "b", "c")...)
	r.reconcile(t)
	var pool karpenterv1.NodePool
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &pool); err != nil {
		t.Fatal(err)
	}
	softLimit("1")(&pool)
	pool.Spec.HardLimits = karpenterv1.Limits{"cpu": resource.MustParse("3")}
	if err := r.server.Update(t.Context(), &pool); err != nil {
		t.Fatal(err)
	}
	if err := r.store.Apply(&pool); err == nil {
		t.Fatal("the limits are understood")
	}
	r.reconcile(t)
	if marked, _ := r.state(t); r.aboveLimit(t) != "" || len(marked) != 0 {
		t.Errorf("mark %q, marked %v: want neither", r.aboveLimit(t), marked)
	}
}

// L-31, L-40: during a replacement the pool is above its limit, and what a process knows of it stays. A process that
// saw the pool within its limit removes further nodes at once; one that did not lets budgets apply.
func TestARollKeepsWhatWasSeen(t *testing.T) {
	t.Parallel()
	for name, mark := range map[string]string{"seen": "AtOnce 3", "not seen": "Inherited"} {
		r := newRig(t, softFleet("3", "0", "a", "b", "c")...)
		if name == "seen" {
			r.reconcile(t)
		}
		r.appear(t, "y", map[string]string{karpenterv1.ReplacesAnnotationKey: "a",
			karpenterv1.ReplacementsAnnotationKey: "1"})
		r.mark(t, "a", "Drifted")
		r.sync(t)
		r.reconcile(t)
		if got := r.aboveLimit(t); got != "" {
			t.Fatalf("%s: mark %q while a node is replaced", name, got)
		}
		r.appear(t, "z", nil)
		r.sync(t)
		r.reconcile(t)
		if got := r.aboveLimit(t); got != mark {
			t.Errorf("%s: mark %q, want %q", name, got, mark)
		}
	}
}

// appear adds a node with its claim.
func (r *rig) appear(t *testing.T, name string, annotations map[string]string) {
	t.Helper()
	n, claim := machine(name)
	claim.Annotations = annotations
	for _, o := range []client.Object{n, claim} {
		if err := r.server.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// L-31: nodes above the limit because of replacements are no excess.
func TestAReplacementIsNoInheritedExcess(t *testing.T) {
	t.Parallel()
	objects := softFleet("2", "100%", "a", "b", "c")
	for _, o := range objects {
		if claim, ok := o.(*karpenterv1.NodeClaim); ok && claim.Name == "c" {
			claim.Annotations = map[string]string{karpenterv1.ReplacesAnnotationKey: "a",
				karpenterv1.ReplacementsAnnotationKey: "1"}
		}
	}
	r := newRig(t, objects...)
	r.reconcile(t)
	if mark := r.aboveLimit(t); mark != "" {
		t.Errorf("mark %q, want none", mark)
	}
}
