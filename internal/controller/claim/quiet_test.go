package claim_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// settled is a rig with an initialized claim of a pool with that quiet time; nil for never.
func settled(t *testing.T, quiet *time.Duration, change func(*karpenterv1.NodeClaim)) *rig {
	t.Helper()
	pool := aPool()
	pool.Spec.Disruption.ConsolidateAfter = karpenterv1.NillableDuration{Duration: quiet}
	one := newClaim()
	change(one)
	r := newRig(t, pool, one)
	r.reconcile(t)
	r.create(t, joined())
	r.reconcile(t)
	r.makeReady(t)
	r.reconcile(t)
	return r
}

func (r *rig) podComes(name string) {
	r.events.Apply(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(name)},
		Spec: corev1.PodSpec{NodeName: "n1"}},
		r.clock.Now())
}

// D-03, B-12: pod events are stamped every 10 s at most. With a quiet time of no more than that they are stamped at
// once, without a quiet time each minute. No event is lost.
func TestHowOftenPodEventsAreStamped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		quiet *time.Duration
		wait  time.Duration
	}{
		"10s":     {new(10 * time.Second), 0},
		"5s":      {new(5 * time.Second), 0},
		"11s":     {new(11 * time.Second), 7 * time.Second},
		"10m":     {new(10 * time.Minute), 7 * time.Second},
		"none":    {new(time.Duration(0)), 57 * time.Second},
		"never":   {nil, 57 * time.Second},
		"no pool": {nil, 57 * time.Second},
	} {
		r := settled(t, c.quiet, func(one *karpenterv1.NodeClaim) {
			if name == "no pool" {
				delete(one.Labels, karpenterv1.NodePoolLabelKey)
			}
		})
		r.clock.Advance(time.Hour)
		r.podComes("a")
		r.reconcile(t)
		first := r.claim(t).Status.LastPodEventTime.Time
		if !first.Equal(r.clock.Now()) {
			t.Errorf("%s: the first stamp is %s, want it at once", name, first)
		}
		r.clock.Advance(3 * time.Second)
		r.podComes("b")
		result := r.reconcile(t)
		stamped := r.claim(t).Status.LastPodEventTime.Time
		if at := stamped.Equal(r.clock.Now()); at != (c.wait == 0) || c.wait > 0 && result.RequeueAfter != c.wait {
			t.Errorf("%s: stamped at once %t, asks again after %s; want it after %s", name, at, result.RequeueAfter,
				c.wait)
		}
	}
}

// D-03: a stamp has whole seconds. An event of the second that is stamped already writes nothing.
func TestAnEventOfTheSameSecondIsNotWritten(t *testing.T) {
	t.Parallel()
	r := settled(t, new(5*time.Second), func(*karpenterv1.NodeClaim) {})
	r.clock.Advance(time.Hour)
	r.podComes("a")
	r.reconcile(t)
	writes := r.writes
	r.clock.Advance(700 * time.Millisecond)
	r.podComes("b")
	if r.reconcile(t); r.writes != writes {
		t.Errorf("%d writes for an event of the same second", r.writes-writes)
	}
}

// D-03: which claims may be consolidated. Without a quiet time, a new node may be at once, in the write that marks it
// as initialized. Otherwise the condition comes after the quiet time, or never if the pool says so. A claim that is
// chosen for removal, or not initialized, keeps its condition.
func TestWhenAClaimMayBeConsolidated(t *testing.T) {
	t.Parallel()
	may := func(r *rig) bool { return r.is(t, karpenterv1.ConditionTypeConsolidatable) == "True" }
	r := settled(t, new(time.Duration(0)), func(*karpenterv1.NodeClaim) {})
	if !may(r) {
		t.Error("without a quiet time a new node may be consolidated at once")
	}
	r = settled(t, new(30*time.Second), func(*karpenterv1.NodeClaim) {})
	if may(r) {
		t.Error("before its quiet time is over")
	}
	r.clock.Advance(time.Minute)
	if r.reconcile(t); !may(r) {
		t.Error("after its quiet time")
	}
	r.podComes("a")
	if r.reconcile(t); may(r) {
		t.Error("a pod has come, the quiet time begins again")
	}
	for name, chosen := range map[string]bool{"chosen to go": true, "never": false} {
		r.clock.Advance(time.Minute)
		r.reconcile(t)
		one := r.claim(t)
		if chosen {
			reason := condition.True(karpenterv1.ConditionTypeDisruptionReason, "Empty", "")
			condition.Set(&one.Status.Conditions, 0, reason, controllertest.Start())
			if err := r.server.Status().Update(t.Context(), one); err != nil {
				t.Fatal(err)
			}
		}
		r.edit(t, func(p *karpenterv1.NodePool) { p.Spec.Disruption.ConsolidateAfter.Duration = nil })
		if r.reconcile(t); may(r) != chosen {
			t.Errorf("%s: may be consolidated %t, want %t", name, may(r), chosen)
		}
		r = settled(t, new(30*time.Second), func(*karpenterv1.NodeClaim) {})
	}
}

// D-07: a claim that has expired says so once, in the words of what will happen, and a graceful one is looked at again
// each minute.
func TestWhatAnExpiredClaimSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		graceful, ready bool
		says            string
	}{
		"forceful": {false, true, "NodeClaim is removed: expireAfter 1h has passed"},
		"graceful": {true, true,
			"NodeClaim is replaced as soon as the disruption budgets allow: expireAfter 1h has passed"},
		"graceful, not a node":  {true, false, "NodeClaim is removed: expireAfter 1h has passed"},
		"forceful, not a node ": {false, false, "NodeClaim is removed: expireAfter 1h has passed"},
	} {
		pool := aPool()
		if c.graceful {
			pool.Annotations = map[string]string{karpenterv1.GracefulExpirationAnnotationKey: "true"}
		}
		one := newClaim()
		one.Spec.ExpireAfter = karpenterv1.NillableDuration{Duration: new(time.Hour)}
		r := newRig(t, pool, one)
		r.config.Timeouts.Registration, r.config.Timeouts.Initialization = 0, 0
		r.holder("a")
		r.reconcile(t)
		if c.ready {
			r.create(t, joined())
			r.reconcile(t)
			r.makeReady(t)
			r.reconcile(t)
		}
		r.clock.Advance(time.Hour)
		stays := c.graceful && c.ready
		for range 2 {
			if result := r.reconcile(t); stays && result.RequeueAfter != time.Minute {
				t.Errorf("%s: asks again after %s, want 1m", name, result.RequeueAfter)
			}
			if !stays {
				break
			}
		}
		if gone := r.claim(t).DeletionTimestamp != nil; gone == stays {
			t.Errorf("%s: deleted %t", name, gone)
		}
		var said []string
		for _, s := range r.tape.Said() {
			if strings.Contains(s, " Expired: ") {
				said = append(said, strings.TrimPrefix(s, "c1 Expired: "))
			}
		}
		if len(said) != 1 || said[0] != c.says {
			t.Errorf("%s: said %q, want once %q", name, said, c.says)
		}
	}
}

// L-13: a claim that has lost all its labels gets that of its pool back, and the failure to write it is told.
func TestAClaimWithoutLabelsGetsItsPoolBack(t *testing.T) {
	t.Parallel()
	one := made("c1", "pool-uid")
	one.Labels = nil
	r := newRig(t, hardPool(1), one)
	r.reconcile(t)
	if got := r.claim(t).Labels[karpenterv1.NodePoolLabelKey]; got != "default" {
		t.Errorf("label %q", got)
	}
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		one := made("c1", "pool-uid")
		one.Labels = map[string]string{karpenterv1.NodePoolLabelKey: "elsewhere"}
		one.DeletionTimestamp = &metav1.Time{Time: controllertest.Start()}
		r := newRig(t, hardPool(1), one)
		r.clock.Advance(time.Hour)
		r.fail(f)
		return r.play(t, func() {})
	})
}
