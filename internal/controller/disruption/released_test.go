package disruption_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// fate returns the state of a claim: whether it is marked, and whether it says that it replaces others, or did (D-15).
func (r *rig) fate(t *testing.T, name string) string {
	t.Helper()
	var claim karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &claim); err != nil {
		t.Fatal(err)
	}
	reason, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
	fate := strings.TrimSpace(string(reason.Status) + " " + reason.Reason)
	if claim.Annotations[karpenterv1.ReplacesAnnotationKey] != "" {
		fate += " replaces"
	}
	if gone := claim.Annotations[karpenterv1.ReplacedAnnotationKey]; gone != "" {
		fate += " has replaced " + gone
	}
	return strings.TrimSpace(fate)
}

// D-10: what happens to a replacement that no command waits for. If all its replaced claims stay and nothing needs it,
// it goes; otherwise it becomes a claim like any other. While one of them is leaving, even if only the API server
// shows that, it waits.
func TestWhatBecomesOfAReplacement(t *testing.T) {
	t.Parallel()
	const released, abandoned, waits = "", "True ReplacementAbandoned replaces", "replaces"
	for name, c := range map[string]struct {
		replaces string
		change   func(*testing.T, *rig)
		want     string
	}{
		"all stay":       {"a,b", nil, abandoned},
		"one is gone":    {"a,gone", nil, "has replaced gone"},
		"all are gone":   {"gone", nil, "has replaced gone"},
		"one is deleted": {"a,b", func(t *testing.T, r *rig) { t.Helper(); r.goes(t, "b") }, waits},
		"one is marked":  {"a,b", func(t *testing.T, r *rig) { t.Helper(); r.choose(t, "Mood", "b") }, waits},
		"marked unseen":  {"a,b", func(t *testing.T, r *rig) { t.Helper(); r.mark(t, "b", "Mood") }, waits},
		"marked, and only the cache has it": {"a,b", func(t *testing.T, r *rig) {
			t.Helper()
			live := newRig(t, fleet("100%", "a", "b", "x")...).server
			r.mark(t, "b", "Mood")
			r.over(r.server, func(c *disruption.Config) { c.Live = live })
		}, waits},
		"deletion unseen": {"a,b", func(t *testing.T, r *rig) {
			t.Helper()
			if err := r.server.Delete(t.Context(),
				&karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "b"}}); err != nil {
				t.Fatal(err)
			}
		}, waits},
		"it is in use": {"a", func(t *testing.T, r *rig) {
			t.Helper()
			r.create(t, podAsking("p", "x", "1"))
			r.sync(t)
		}, released},
		"it is protected": {"a", func(t *testing.T, r *rig) { t.Helper(); r.protects(t, "x") }, released},
		"it reboots": {"a", func(t *testing.T, r *rig) { t.Helper(); r.protects(t, "x"); r.reboots(t, "x") },
			released},
		"the old one reboots": {"a", func(t *testing.T, r *rig) { t.Helper(); r.reboots(t, "a") }, abandoned},
		"it is marked":        {"a", func(t *testing.T, r *rig) { t.Helper(); r.choose(t, "Mood", "x") }, waits},
		"it is deleted":       {"a", func(t *testing.T, r *rig) { t.Helper(); r.goes(t, "x") }, waits},
	} {
		r := clusterOf(t, "100%", map[string]string{"a": "small", "b": "small", "x": "small"}, "1500m")
		if err := r.server.Delete(t.Context(), podAsking("on-x", "x", "1")); err != nil {
			t.Fatal(err)
		}
		r.store.Remove(podAsking("on-x", "x", "1"))
		r.change(t, func(pool *karpenterv1.NodePool) { pool.Spec.Disruption.ConsolidateAfter.Duration = nil })
		r.standsFor(t, "x", 1, strings.Split(c.replaces, ",")...)
		if c.change != nil {
			c.change(t, r)
		}
		again := r.reconcile(t).RequeueAfter
		if got := r.fate(t, "x"); got != c.want {
			t.Errorf("%s: the replacement is %q, want %q; said %q", name, got, c.want, r.tape.Said())
		}
		if c.want == abandoned && !r.tainted(t, "x") {
			t.Errorf("%s: the node of the replacement has no taint", name)
		}
		if deleted := strings.HasSuffix(name, "deleted"); deleted != (again == time.Minute) {
			t.Errorf("%s: the next round comes after %s", name, again)
		}
	}
}

// protects puts the annotation onto a node that forbids its disruption.
func (r *rig) protects(t *testing.T, name string) {
	t.Helper()
	var n corev1.Node
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &n); err != nil {
		t.Fatal(err)
	}
	n.Annotations = map[string]string{karpenterv1.DoNotDisruptAnnotationKey: "true"}
	if err := r.server.Update(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	r.sync(t)
}

// D-10: the cache may lack a mark, or that a mark was taken back, so the API server is asked.
func TestAnIntentThatTheCacheDoesNotShowCounts(t *testing.T) {
	t.Parallel()
	objects := fleet("100%", "a", "x")
	live := newRig(t, fleet("100%", "a", "x")...)
	live.mark(t, "a", "Empty")
	r := newRig(t, objects...)
	r.protects(t, "a")
	r.standsFor(t, "x", 1, "a")
	r.over(r.server, func(c *disruption.Config) { c.Live = live.server })
	r.reconcile(t)
	if got := r.fate(t, "x"); got != "replaces" {
		t.Errorf("the replacement is %q, want it to wait for what the API server has marked", got)
	}
	// A taint whose reason only the API server has is no taint without a reason.
	r = begun(t, false)
	live = newRig(t, fleet("100%", "a")...)
	live.mark(t, "a", "Empty")
	r.spare(t, "a")
	r.over(r.server, func(c *disruption.Config) { c.Live = live.server })
	if r.reconcile(t); !r.tainted(t, "a") ||
		strings.Contains(strings.Join(r.tape.Said(), "\n"), "DisruptionCancelled") {
		t.Errorf("tainted %t, said %q", r.tainted(t, "a"), r.tape.Said())
	}
}

// D-08: a replacement that nobody needs waits for the budget, and goes within it.
func TestAnAbandonedReplacementWaitsForTheBudget(t *testing.T) {
	t.Parallel()
	for budget, want := range map[string]int{"0": 0, "1": 1, "2": 2} {
		r := newRig(t, fleet(budget, "a", "b", "c")...)
		for _, name := range []string{"a", "b", "c"} {
			r.choose(t, "ReplacementAbandoned", name)
		}
		r.reconcile(t)
		if all, marked := r.claims(t); all != 3-want || marked != all {
			t.Errorf("budget %s: %d claims, %d marked; want %d gone and the others waiting", budget, all, marked, want)
		}
	}
}

// D-08: a deleted claim uses up the budget even before the watch shows its deletion (simulation, seed 9207893).
func TestWhatWasDeletedUsesUpTheBudget(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet("1", "a", "b")...)
	r.choose(t, "ReplacementAbandoned", "b")
	r.reconcile(t)
	r.choose(t, "ReplacementAbandoned", "a") // the picture keeps b, which is gone
	for range 2 {
		if r.reconcile(t); r.fate(t, "a") != "True ReplacementAbandoned" {
			t.Fatalf("a: %q; want it to wait for b", r.fate(t, "a"))
		}
	}
	n, claim := machine("b")
	r.store.Remove(claim)
	r.store.Remove(n)
	r.reconcile(t)
	if all, _ := r.claims(t); all != 0 {
		t.Errorf("%d claims, want a gone after b", all)
	}
}

// X-02, D-10: nodes being deleted, and nodes without a claim of ours, are not handled, whatever their taints.
func TestWhatIsNotSettled(t *testing.T) {
	t.Parallel()
	r := newRig(t, limitedFleet("9", "a")...)
	r.choose(t, "Mood", "a")
	r.goes(t, "a")
	n, _ := machine("theirs")
	n.Spec.Taints = []corev1.Taint{{Key: karpenterv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}}
	r.create(t, n)
	r.sync(t)
	if got := r.reconcile(t).RequeueAfter; got != time.Minute || !r.tainted(t, "theirs") || !r.tainted(t, "a") ||
		len(r.tape.Said()) != 0 {
		t.Errorf("the next round comes after %s, said %q", got, r.tape.Said())
	}
}

// D-14: what the switch says, with its reason if it has one.
func TestTheWordsOfThePauseSwitch(t *testing.T) {
	t.Parallel()
	const paused = "voluntary disruption is paused by ConfigMap kube-system/joiner-disruption"
	for reason, want := range map[string]string{"": paused, "release week": paused + ": release week"} {
		object := pauseSwitch("true")
		object.Data[disruption.SwitchReason] = reason
		r := newRig(t, object)
		if got, err := r.step.Paused(t.Context()); err != nil || got != want {
			t.Errorf("%q, error %v, want %q", got, err, want)
		}
	}
}

// uids notes about what, by name and UID, events are.
type uids map[string]types.UID

func (u uids) Event(about client.Object, _ event.Kind, reason, _ string) {
	if _, node := about.(*corev1.Node); !node { // told as well, and has the claim's name in tests
		u[about.GetName()+" "+reason] = about.GetUID()
	}
}

// D-01: an event about a claim is about that same claim, by its UID: its name may be used again.
func TestEventsAreAboutTheVeryClaim(t *testing.T) {
	t.Parallel()
	said := uids{}
	over := func(r *rig) { r.over(r.server, func(c *disruption.Config) { c.Events = said }) }
	protected := fleet("100%", "protected", "empty")
	protected[1].SetAnnotations(map[string]string{karpenterv1.DoNotDisruptAnnotationKey: "true"})
	r := newRig(t, protected...)
	for range 2 {
		over(r)
		r.reconcile(t)
		r.sync(t)
	}
	for key, want := range map[string]types.UID{"protected DisruptionBlocked": "c-protected",
		"empty DisruptionTerminating": "c-empty"} {
		if said[key] != want {
			t.Errorf("%s: about %q, want %q; all %v", key, said[key], want, said)
		}
	}
}

// L-42, L-44: for surplus nodes, those that were marked are reported, and their number on the pool.
func TestWhatIsTrimmedIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, limitedFleet("1", "a", "b", "c")...)
	var claim karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "a"}, &claim); err != nil {
		t.Fatal(err)
	}
	claim.Finalizers = nil // a goes, and the watch is late
	if err := r.server.Update(t.Context(), &claim); err != nil {
		t.Fatal(err)
	}
	if err := r.server.Delete(t.Context(), &claim); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t)
	said := slices.DeleteFunc(r.tape.Said(), func(s string) bool { return !strings.Contains(s, "NodeLimitExceeded") })
	want := []string{
		"b NodeLimitExceeded: The node is removed, its NodePool has too many: 3 nodes, limit 1 (hard limit)",
		"default NodeLimitExceeded: 3 nodes, limit 1 (hard limit): removing 1",
	}
	if !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// L-42, X-02, X-09: what takes back a choice for a limit: its pool is gone, another program's or invalid, its claim is
// gone or no longer marked, or the limit has room. Each is reported.
func TestWhatTakesATrimmingBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*testing.T, *rig)
		says   string
	}{
		"still too many": {func(*testing.T, *rig) {}, "DisruptionTerminating: The node is removed: NodeLimitExceeded"},
		"pool gone": {func(t *testing.T, r *rig) {
			t.Helper()
			if err := r.server.Delete(t.Context(), newPool("")); err != nil {
				t.Fatal(err)
			}
		}, "The node stays: its NodePool is gone, or another program's"},
		"another program's": {func(t *testing.T, r *rig) {
			t.Helper()
			r.over(r.server, func(c *disruption.Config) { c.Fleet = nobody{} })
		}, "The node stays: its NodePool is gone, or another program's"},
		"nonsense": {func(t *testing.T, r *rig) {
			t.Helper()
			var pool karpenterv1.NodePool
			if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &pool); err != nil {
				t.Fatal(err)
			}
			pool.Spec.HardLimits["cpu"] = pool.Spec.HardLimits["nodes"]
			if err := r.server.Update(t.Context(), &pool); err != nil {
				t.Fatal(err)
			}
		}, "The node stays: the limits of its NodePool cannot be understood"},
		"room again": {func(t *testing.T, r *rig) { t.Helper(); r.setLimit(t, "2") },
			"The node stays: its NodePool does not have too many any more"},
		"pool gone everywhere": {func(t *testing.T, r *rig) {
			t.Helper()
			if err := r.server.Delete(t.Context(), newPool("")); err != nil {
				t.Fatal(err)
			}
			r.store.Remove(newPool(""))
		}, "The node stays: its NodePool is gone, or another program's"},
		"gone meanwhile": {func(t *testing.T, r *rig) {
			t.Helper()
			live := newRig(t, limitedFleet("1", "b")...).server
			r.over(r.server, func(c *disruption.Config) { c.Live = live })
		}, ""},
		"deleted meanwhile": {func(t *testing.T, r *rig) {
			t.Helper()
			if err := r.server.Delete(t.Context(),
				&karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a"}}); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"no taint yet": {func(t *testing.T, r *rig) { t.Helper(); r.untaint(t, "a") }, ""},
		"taken back": {func(t *testing.T, r *rig) { t.Helper(); r.spare(t, "a") },
			"The node stays: the intent was taken back, which the watch has not shown yet"},
	} {
		r := newRig(t, limitedFleet("1", "a", "b")...)
		r.choose(t, "NodeLimitExceeded", "a")
		cached := r.server
		if name == "taken back" {
			old := newRig(t, limitedFleet("1", "a", "b")...)
			old.choose(t, "NodeLimitExceeded", "a")
			cached = old.server
		}
		c.change(t, r)
		if name == "taken back" {
			r.over(r.server, func(c *disruption.Config) { c.Client = cached })
		}
		r.reconcile(t)
		if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, c.says) || c.says == "" && said != "" {
			t.Errorf("%s: said %s, want %q", name, said, c.says)
		}
		if marked, _ := r.state(t); name == "no taint yet" && (len(marked) != 1 || !r.tainted(t, "a")) {
			t.Errorf("%s: marked %v, tainted %t: want the taint before anything goes", name, marked, r.tainted(t, "a"))
		}
	}
}

// nobody owns nothing.
type nobody struct{ controllertest.Everything }

func (nobody) OwnsPool(*karpenterv1.NodePool) bool { return false }

// D-10, D-08: a marked node is removed once it has its taint; another taint does not count. It uses up the budget
// once, even if it is not ready too. A condition that is not true is no intent. A claim whose pool is gone may go too.
func TestWhatIsSettled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string
		change func(*testing.T, *rig)
		fate   string
	}{
		"empty":            {"Empty", func(*testing.T, *rig) {}, "removed"},
		"not ready, empty": {"Empty", func(t *testing.T, r *rig) { t.Helper(); r.breaks(t, "a") }, "removed"},
		"another taint": {"Empty", func(t *testing.T, r *rig) { t.Helper(); r.taints(t, "a", "example.com/own") },
			"marked"},
		"no node": {"Empty", func(t *testing.T, r *rig) {
			t.Helper()
			n, _ := machine("a")
			if err := r.server.Delete(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}, "marked"},
		"not true": {"Empty", func(t *testing.T, r *rig) {
			t.Helper()
			var claim karpenterv1.NodeClaim
			if err := r.server.Get(t.Context(), types.NamespacedName{Name: "a"}, &claim); err != nil {
				t.Fatal(err)
			}
			condition.Set(&claim.Status.Conditions, 0, condition.False(karpenterv1.ConditionTypeDisruptionReason,
				"Empty", ""), r.clock.Now())
			if err := r.server.Status().Update(t.Context(), &claim); err != nil {
				t.Fatal(err)
			}
			r.change(t, func(pool *karpenterv1.NodePool) { pool.Spec.Disruption.ConsolidateAfter.Duration = nil })
		}, "stays"},
		"pool gone": {"ReplacementAbandoned", func(t *testing.T, r *rig) {
			t.Helper()
			if err := r.server.Delete(t.Context(), newPool("")); err != nil {
				t.Fatal(err)
			}
			r.store.Remove(newPool(""))
		}, "removed"},
	} {
		r := newRig(t, fleet("1", "a")...)
		r.choose(t, c.reason, "a")
		c.change(t, r)
		_, _ = r.step.Reconcile(t.Context(), reconcile.Request{})
		fate := "stays"
		if all, marked := r.claims(t); all == 0 {
			fate = "removed"
		} else if marked > 0 {
			fate = "marked"
		}
		if fate != c.fate {
			t.Errorf("%s: it is %s, want %s; said %q", name, fate, c.fate, r.tape.Said())
		}
	}
}

// taints gives a node that taint alone.
func (r *rig) taints(t *testing.T, name, key string) {
	t.Helper()
	var n corev1.Node
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &n); err != nil {
		t.Fatal(err)
	}
	n.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}
	if err := r.server.Update(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
}

// L-42: if all chosen claims are gone already, nothing is reported and the round goes on, even if the pool is gone
// too.
func TestWhatIsTooManyAndGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, limitedFleet("1", "a", "b")...)
	store := r.store
	r.store = world.New(world.Config{Now: r.clock.Now}) // the watch is late
	r.lose(t, "a")
	r.store = store
	if got := r.reconcile(t).RequeueAfter; got != time.Minute || len(r.tape.Said()) != 0 {
		t.Errorf("the next round comes after %s, said %q", got, r.tape.Said())
	}
	r = newRig(t, limitedFleet("1", "a", "b")...)
	if err := r.server.Delete(t.Context(), newPool("")); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t)
	for range 2 {
		r.sync(t)
		r.reconcile(t)
	}
	if _, deleting := r.state(t); len(deleting) != 0 {
		t.Errorf("the pool is gone: deleting %v", deleting)
	}
}
