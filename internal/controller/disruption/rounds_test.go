package disruption_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// D-10: a round that has written something, or waits for its writes, is followed by another after a second; one with
// nothing to do after a minute. Nothing is done while the snapshot is incomplete.
func TestWhenTheNextRoundComes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scene func(*testing.T) *rig
		want  time.Duration
	}{
		"nothing to do": {func(t *testing.T) *rig {
			t.Helper()
			return newRig(t, append(fleet("0", "a"),
				podOn("a"))...)
		}, time.Minute},
		"no nodes":        {func(t *testing.T) *rig { t.Helper(); return newRig(t, fleet("100%")...) }, time.Minute},
		"has marked":      {scenes()["marks an empty node"], time.Second},
		"has removed":     {scenes()["removes an empty node"], time.Second},
		"has begun":       {scenes()["begins a command"], time.Second},
		"waits":           {func(t *testing.T) *rig { t.Helper(); return replacing(t, false) }, time.Second},
		"lets one go":     {scenes()["lets a replacement go"], time.Second},
		"has trimmed":     {scenes()["trims"], time.Second},
		"notes an excess": {scenes()["notes an excess"], time.Second},
		"is paused":       {scenes()["is paused"], time.Minute},
	} {
		r := c.scene(t)
		if got := r.reconcile(t).RequeueAfter; got != c.want {
			t.Errorf("%s: the next round comes after %s, want %s", name, got, c.want)
		}
	}
	r := newRig(t, fleet("100%", "a")...)
	r.over(r.server, func(c *disruption.Config) { c.Ready = func() bool { return false } })
	if got := r.reconcile(t).RequeueAfter; got != time.Second {
		t.Errorf("while the picture is not complete the next round comes after %s, want 1s", got)
	}
	if _, marked := r.claims(t); marked != 0 {
		t.Errorf("%d marked on a picture that is not complete", marked)
	}
}

// D-10: one method acts at a time, so that each sees what the others have written: trimming first, then releasing
// replacements and emptiness, then commands.
func TestOneMethodActsAtATime(t *testing.T) {
	t.Parallel()
	both := func(t *testing.T) *rig { // an empty node, and one in use that something cheaper could replace
		t.Helper()
		r := clusterOf(t, "100%", map[string]string{"a": "large"}, "1500m")
		n, claim := sized("e", "large")
		n.Spec.Taints = []corev1.Taint{{Key: "example.com/own",
			Effect: corev1.TaintEffectNoSchedule}} // no place for the pod
		claim.Finalizers = []string{karpenterv1.TerminationFinalizer}
		r.create(t, n)
		r.create(t, claim)
		r.sync(t)
		return r
	}
	r := both(t)
	r.reconcile(t)
	if marked, _ := r.state(t); !slices.Equal(marked, []string{"e"}) {
		t.Errorf("marked %v, want the empty node alone", marked)
	}
	r = both(t)
	r.setLimit(t, "1")
	r.reconcile(t)
	if marked, _ := r.state(t); len(marked) != 1 || len(r.replacements(t)) != 0 {
		t.Errorf("above the limit: marked %v, replacements %v: want one trimmed", marked, r.replacements(t))
	}
	r = lost(t, true)
	r.create(t, podAsking("other", "b", "1500m"))
	n, claim := sized("b", "large")
	r.create(t, n)
	r.create(t, claim)
	r.sync(t)
	r.change(t, func(pool *karpenterv1.NodePool) { pool.Annotations = nil })
	r.over(r.server) // no pool pauses
	r.reconcile(t)
	if marked, _ := r.state(t); !slices.Equal(marked, r.replacements(t)) {
		t.Errorf("marked %v, want the replacement that nobody needs alone: %v", marked, r.replacements(t))
	}
}

// D-14: while disruption is paused no replacement is released, and nodes that stay for another cause are not reported.
func TestAPauseLetsNothingGo(t *testing.T) {
	t.Parallel()
	r := lost(t, true)
	r.create(t, pauseSwitch("true"))
	r.reconcile(t)
	if marked, deleting := r.state(t); len(marked)+len(deleting) != 0 {
		t.Errorf("marked %v, deleting %v while disruption is paused", marked, deleting)
	}
	r = newRig(t, append(fleet("100%", "a"), pauseSwitch("true"))...)
	r.reconcile(t)
	if said := strings.Join(r.tape.Said(), "\n"); strings.Contains(said, "DisruptionBlocked") {
		t.Errorf("said %s", said)
	}
}

// D-14, D-06: a command that a pause takes back is no failure of the pool: it begins again after the pause.
func TestAPauseIsNoFailureOfAPool(t *testing.T) {
	t.Parallel()
	r := replacing(t, false)
	r.create(t, pauseSwitch("true"))
	r.reconcile(t)
	if marked, _ := r.state(t); len(marked) != 0 || r.noted(t) != "" {
		t.Fatalf("marked %v, noted %q: want it taken back, and nothing noted", marked, r.noted(t))
	}
}

// noted is what stands on the pool about its last command.
func (r *rig) noted(t *testing.T) string {
	t.Helper()
	var pool karpenterv1.NodePool
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &pool); err != nil {
		t.Fatal(err)
	}
	return pool.Annotations[karpenterv1.DisruptionBackoffAnnotationKey]
}

// D-06: after a command was taken back its pool pauses for 10 s, or for a minute if a replacement failed. That stays
// recorded on the pool until a command succeeds. The next round comes when the pause ends.
func TestHowLongAPoolPauses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scene func(*testing.T) *rig
		want  time.Duration
	}{
		"a replacement failed": {func(t *testing.T) *rig { t.Helper(); return lost(t, false) }, time.Minute},
		"the cluster changed": {func(t *testing.T) *rig {
			t.Helper()
			r := replacing(t, false)
			r.change(t, func(pool *karpenterv1.NodePool) {
				pool.Spec.Disruption.ConsolidationPolicy = karpenterv1.ConsolidationPolicyWhenEmpty
			})
			return r
		}, 10 * time.Second},
	} {
		r := c.scene(t)
		r.reconcile(t)
		if want := r.clock.Now().Add(c.want).UTC().Format(time.RFC3339) + " " + c.want.String(); r.noted(t) != want {
			t.Errorf("%s: noted %q, want %q", name, r.noted(t), want)
		}
	}
	r := replacing(t, true)
	r.reconcile(t)
	r.sync(t)
	if _, deleting := r.state(t); len(deleting) != 1 || r.noted(t) != "" {
		t.Errorf("deleting %v, noted %q: want the note off with the first success", deleting, r.noted(t))
	}
	r = newRig(t, append(fleet("0", "a"), podOn("a"))...)
	r.change(t, func(pool *karpenterv1.NodePool) {
		until := r.clock.Now().Add(40 * time.Second).UTC().Format(time.RFC3339)
		pool.Annotations = map[string]string{karpenterv1.DisruptionBackoffAnnotationKey: until + " 1m0s"}
	})
	if got := r.reconcile(t).RequeueAfter; got != 40*time.Second {
		t.Errorf("the next round comes after %s, want it at the end of the pause", got)
	}
}

// someOwner owns all pools but one.
type someOwner struct{ controllertest.Everything }

func (someOwner) OwnsPool(pool *karpenterv1.NodePool) bool { return pool.Name != "another" }

// nothing is said about another program's pool, and it holds up no pool of ours; its nodes stay.
func TestAPoolOfAnotherProgramIsNoneOfOurs(t *testing.T) {
	t.Parallel()
	objects := fleet("100%", "a")
	foreign := newPool("100%")
	foreign.Name, foreign.UID = "another", "another" // before ours in each list
	schedule := "whenever"
	foreign.Spec.Disruption.Budgets[0].Schedule = &schedule
	n, claim := machine("f")
	n.Labels[karpenterv1.NodePoolLabelKey], claim.Labels[karpenterv1.NodePoolLabelKey] = "another", "another"
	r := newRig(t, append(objects, foreign, n, claim)...)
	r.store = world.New(world.Config{Now: r.clock.Now, Fleet: someOwner{}})
	r.over(r.server, func(c *disruption.Config) { c.Fleet = someOwner{} })
	r.sync(t)
	r.reconcile(t)
	marked, _ := r.state(t)
	if said := strings.Join(r.tape.Said(), "\n"); !slices.Equal(marked, []string{"a"}) || strings.Contains(said,
		"another Disruption") {
		t.Errorf("marked %v, said %s", marked, said)
	}
}

// A pool that the API server lacks, or that was recreated, while the snapshot still has it is not marked and harms
// nothing.
func TestAPoolThatIsGoneIsNotMarked(t *testing.T) {
	t.Parallel()
	for name, anew := range map[string]bool{"gone": false, "made anew": true} {
		objects := softFleet("1", "1", "a", "b", "c")
		r := newRig(t, objects...)
		pool := objects[0].(*karpenterv1.NodePool).DeepCopy()
		if err := r.server.Delete(t.Context(), pool.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if anew {
			pool.UID, pool.ResourceVersion = "anew", ""
			r.create(t, pool)
		}
		r.reconcile(t)
		var now karpenterv1.NodePoolList
		if err := r.server.List(t.Context(), &now); err != nil {
			t.Fatal(err)
		}
		for _, p := range now.Items {
			if p.Annotations[karpenterv1.AboveLimitAnnotationKey] != "" {
				t.Errorf("%s: the pool has the mark %v", name, p.Annotations)
			}
		}
	}
}

// D-04: a search that found nothing is not repeated at once; after a change it is, but not within 10 s.
func TestAVainSearchIsNotRepeated(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "100%", map[string]string{"a": "small"}, "1500m")
	// node and claim
	searches := func() int { return strings.Count(strings.Join(r.tape.Said(), "\n"), "a Unconsolidatable") / 2 }
	r.reconcile(t)
	if again := r.reconcile(t).RequeueAfter; searches() != 1 || again != time.Minute {
		t.Fatalf("%d searches, the next round comes after %s; want one, 1m", searches(), again)
	}
	r.clock.Advance(11 * time.Second)
	if r.reconcile(t); searches() != 1 {
		t.Errorf("%d searches although nothing has changed", searches())
	}
	r.create(t, podAsking("small", "a", "10m"))
	r.sync(t)
	if r.reconcile(t); searches() != 2 {
		t.Errorf("%d searches, want another one for what has changed", searches())
	}
}

// D-04, B-22: while nothing changes, a search tries only the nodes whose turn it is, and each ten minutes one is
// complete. So is the first one after a change.
func TestAnUnchangedQuestionIsNotAskedInFull(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "100%", map[string]string{"a": "small"}, "1500m")
	var last engine.Terms
	r.over(r.server, func(c *disruption.Config) {
		c.Planned = func(question string, _ *cluster.Snapshot, terms engine.Terms, _ plan.Plan) {
			if question == "consolidate" {
				last = terms
			}
		}
	})
	for minute := range 13 {
		if r.reconcile(t); last.Turn != minute || last.Again == (minute%10 == 0) {
			t.Errorf("minute %d: search %d is complete: %t", minute, last.Turn, !last.Again)
		}
		r.clock.Advance(time.Minute)
	}
	r.create(t, podAsking("small", "a", "10m"))
	r.sync(t)
	if r.reconcile(t); last.Turn != 13 || last.Again {
		t.Errorf("after a change search %d is complete: %t", last.Turn, !last.Again)
	}
}

// D-03, D-10: a round that has begun a command is followed by another after a second, even if a quiet time ends
// earlier. If it has begun none because its node is gone, only the end of the quiet time counts.
func TestTheRoundAfterACommand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gone bool
		want time.Duration
	}{"begun": {false, time.Second}, "not begun": {true, 400 * time.Millisecond}} {
		r := clusterOf(t, "100%", map[string]string{"a": "large", "b": "small"}, "1500m")
		var young karpenterv1.NodeClaim
		if err := r.server.Get(t.Context(), types.NamespacedName{Name: "b"}, &young); err != nil {
			t.Fatal(err)
		}
		young.Status.LastPodEventTime.Time = r.clock.Now().Add(-29 * time.Second)
		if err := r.server.Status().Update(t.Context(), &young); err != nil {
			t.Fatal(err)
		}
		r.clock.Advance(600 * time.Millisecond)
		r.sync(t)
		if c.gone {
			store := r.store
			r.store = world.New(world.Config{Now: r.clock.Now}) // the watch is late
			r.lose(t, "a")
			r.store = store
		}
		again := r.reconcile(t).RequeueAfter
		if marked, _ := r.state(t); again != c.want || (len(marked) == 0) != c.gone {
			t.Errorf("%s: marked %v, the next round comes after %s, want %s", name, marked, again, c.want)
		}
	}
}
