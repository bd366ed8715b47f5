package claim_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// P-40, D-08: after we have let a node go, somebody else's finalizer on it does not hold its claim, once the instance
// is proved gone. Otherwise the claim would use up its pool's budget as long as the node hangs.
func TestANodeHeldBySomebodyElseDoesNotHoldItsClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.reconcile(t)
	n := joined()
	n.Finalizers = []string{karpenterv1.TerminationFinalizer, "example.com/hold"}
	if err := errors.Join(r.server.Create(t.Context(), n), r.server.Delete(t.Context(), r.claim(t))); err != nil {
		t.Fatal(err)
	}
	r.cloud.slow = true
	r.reconcile(t)
	held := r.node(t)
	held.Finalizers = []string{"example.com/hold"} // drained; but the instance is still ending
	if err := r.server.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if result := r.reconcile(t); result.RequeueAfter == 0 || r.claim(t) == nil || len(r.cloud.machines) != 1 {
		t.Fatalf("again after %s, %d machines: the claim stays until its instance is proved gone", result.RequeueAfter,
			len(r.cloud.machines))
	}
	clear(r.cloud.machines)
	if r.reconcile(t); r.claim(t) != nil || r.node(t).DeletionTimestamp == nil {
		t.Fatal("the instance is gone: the claim must go, whatever holds the node")
	}
}

// P-40: a node that joined and was not registered lacks our finalizer. If somebody else's holds it, the instance of
// its deleted claim is ended all the same.
func TestAnUnregisteredNodeHeldBySomebodyElseDoesNotKeepTheInstance(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.reconcile(t)
	n := joined()
	n.Finalizers = []string{"example.com/hold"}
	r.create(t, n)
	r.delete(t)
	r.cloud.slow = true
	if r.reconcile(t); r.node(t).DeletionTimestamp == nil || len(r.cloud.ended) != 0 {
		t.Fatalf("ended %v, node %+v: want the node to be deleted first", r.cloud.ended, r.node(t).ObjectMeta)
	}
	if r.reconcile(t); len(r.cloud.ended) != 1 || r.is(t, karpenterv1.ConditionTypeInstanceTerminating) != "True" {
		t.Fatalf("ended %v, conditions %+v: want the instance to end", r.cloud.ended, r.claim(t).Status.Conditions)
	}
	clear(r.cloud.machines)
	if r.reconcile(t); r.claim(t) != nil {
		t.Error("the instance is gone: the claim must go")
	}
}

// P-40: a deleted claim stays while the cloud refuses to end its instance or does not say whether it is gone. After a
// minute an event says why; a cloud that is busy is not worth one.
func TestADeletedClaimSaysWhatKeepsIt(t *testing.T) {
	t.Parallel()
	other := errors.New("instance i-1 runs with the tag of cluster other")
	for name, c := range map[string]struct {
		get, end error
		after    time.Duration
		told     bool
	}{
		"no proof":         {get: other, after: time.Minute, told: true},
		"refused":          {end: other, after: time.Minute, told: true},
		"it has just gone": {get: other, after: 59 * time.Second},
		"throttled":        {get: fmt.Errorf("%w: slow down", provider.ErrThrottled), after: time.Hour},
	} {
		r := newRig(t, newClaim())
		r.reconcile(t)
		r.delete(t)
		r.clock.Advance(r.claim(t).DeletionTimestamp.Add(c.after).Sub(r.clock.Now()))
		r.cloud.unread, r.cloud.endless = c.get, c.end
		_, err := r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
		told := strings.Contains(strings.Join(r.tape.Said(), "\n"), "c1 InstanceNotEnded: NodeClaim stays: ")
		if err == nil || r.claim(t) == nil || len(r.cloud.machines) != 1 || told != c.told {
			t.Errorf("%s: error %v, %d machines, said %q; want an error, the claim and its machine, told: %t", name,
				err, len(r.cloud.machines), r.tape.Said(), c.told)
		}
	}
}

// P-30: a claim whose node is gone and about whose instance the cloud says nothing ages like any other, and is given
// up.
func TestAClaimWithoutANodeIsGivenUpWithoutTheCloudsAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.reconcile(t)
	r.create(t, joined())
	r.reconcile(t)
	r.dropNode(t)
	r.cloud.unread = errors.New("instance i-1 runs with the tag of cluster other")
	step := func() error {
		_, err := r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
		return err
	}
	if err := step(); !errors.Is(err, r.cloud.unread) || r.is(t, karpenterv1.ConditionTypeReady) != "Unknown" {
		t.Errorf("error %v, Ready=%s; want the cloud's error, and that the node is gone", err,
			r.is(t, karpenterv1.ConditionTypeReady))
	}
	r.clock.Advance(15 * time.Minute)
	if err := step(); !errors.Is(err, r.cloud.unread) || r.claim(t).DeletionTimestamp == nil {
		t.Errorf("error %v, claim %+v; want it to be given up", err, r.claim(t).ObjectMeta)
	}
}

// P-40: a deleted claim of a pool without a hard limit has no record of its launch. It stays until an unanswered
// launch, of this process or the previous one, can neither land nor be missing from the list.
func TestADeletedClaimWithoutARecordWaitsForItsLaunch(t *testing.T) {
	t.Parallel()
	const longest = provider.LaunchFor + provider.ClockSkew + provider.ListLag
	for name, test := range map[string]struct {
		answer error // of a launch of this process before; nil for none
		older  bool  // the claim was made before this process began
		waits  time.Duration
	}{
		"no answer":                         {answer: errors.New("no answer"), waits: longest},
		"throttled":                         {answer: provider.ErrThrottled, waits: provider.ListLag},
		"the process before may have asked": {older: true, waits: longest},
		"nobody has asked":                  {waits: provider.ListLag},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now() // the fake server has the time of day
			c := newClaim()
			if c.CreationTimestamp.Time = began.Add(-time.Minute); !test.older {
				c.CreationTimestamp.Time = began.Add(time.Minute)
			}
			r := newRig(t, c)
			r.clock.Advance(began.Sub(r.clock.Now()))
			name := "another"
			if r.cloud.failure = test.answer; test.answer != nil {
				name = "c1"
			}
			_, _ = r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
			r.delete(t)
			from := began
			if test.waits == provider.ListLag {
				from = r.claim(t).DeletionTimestamp.Time
			}
			r.clock.Advance(from.Add(test.waits - time.Second).Sub(r.clock.Now()))
			if r.reconcile(t); r.claim(t) == nil {
				t.Fatal("gone before the list must show what was launched")
			}
			r.clock.Advance(2 * time.Second)
			if r.reconcile(t); r.claim(t) != nil {
				t.Fatal("still there although nothing can land any more")
			}
		})
	}
}

// P-40: a cloud may be an API server. If that cannot list machines because their kind does not exist, nothing is known
// of the claim's machine. The failure is returned and the list is read again. A missing claim is another matter.
func TestAListThatIsNotFoundIsNoAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.delete(t)
	r.cloud.unlisted = apierrors.NewNotFound(schema.GroupResource{Resource: "machines"}, "")
	_, err := r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
	if !errors.Is(err, r.cloud.unlisted) || r.claim(t) == nil {
		t.Errorf("error %v, claim %v: want the error, and the claim to stay", err, r.claim(t))
	}
}
