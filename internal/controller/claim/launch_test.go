package claim_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// P-30: the machine's labels go onto the claim, unless the claim has its own values.
func TestTheLabelsOfTheMachineGoOntoTheClaim(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, want map[string]string }{
		"none yet": {nil, map[string]string{corev1.LabelTopologyZone: "a", corev1.LabelInstanceTypeStable: "m"}},
		"said it": {map[string]string{corev1.LabelTopologyZone: "own"},
			map[string]string{corev1.LabelTopologyZone: "own",
				corev1.LabelInstanceTypeStable: "m"}},
		"said both": {map[string]string{corev1.LabelTopologyZone: "own", corev1.LabelInstanceTypeStable: "n"},
			map[string]string{corev1.LabelTopologyZone: "own", corev1.LabelInstanceTypeStable: "n"}},
	} {
		one := newClaim()
		one.Labels = c.before
		r := newRig(t, one)
		r.reconcile(t)
		for label, want := range c.want {
			if got := r.claim(t).Labels[label]; got != want {
				t.Errorf("%s: %s is %q, want %q", name, label, got, want)
			}
		}
		if patches := map[string]int{"none yet": 2, "said it": 2, "said both": 1}[name]; r.writes != patches {
			t.Errorf("%s: %d patches, want %d: labels that do not change are not written", name, r.writes, patches)
		}
	}
}

// E-38: of two processes that each have launched a machine for a claim, the first one labels it.
func TestAClaimKeepsTheLabelsOfItsFirstMachine(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	first := true
	r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
		Patch: func(ctx context.Context, s client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			if _, is := o.(*karpenterv1.NodeClaim); is && first {
				first = false
				other := r.claim(t)
				other.Labels[corev1.LabelTopologyZone] = "b"
				if err := s.Update(ctx, other); err != nil {
					return err
				}
			}
			return s.Patch(ctx, o, p, options...)
		},
	})
	r.step = claim.New(r.config)
	_, err := r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
	if zone := r.claim(t).Labels[corev1.LabelTopologyZone]; err == nil || zone != "b" || r.claim(t).Status.ProviderID != "" {
		t.Errorf("error %v, zone %q, machine %q: want an error, and the claim as the other process left it", err, zone,
			r.claim(t).Status.ProviderID)
	}
}

// P-32: a claim that goes during its launch takes its machine with it, whether its labels or its status can no longer
// be written. One that has run longer is drained, and the collector ends its machine.
func TestAClaimThatGoesDuringItsLaunchTakesItsMachine(t *testing.T) {
	t.Parallel()
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "nodeclaims"}, "c1")
	for name, c := range map[string]struct {
		labels, status bool // cannot be written
		launched       bool // before
		answer         error
		ended, failed  bool
	}{
		"labels":               {labels: true, answer: gone, ended: true},
		"status":               {status: true, answer: gone, ended: true},
		"status, long ago":     {status: true, launched: true, answer: gone},
		"labels, no answer":    {labels: true, answer: controllertest.ErrRefused, failed: true},
		"status, no answer":    {status: true, answer: controllertest.ErrRefused, failed: true},
		"status, not answered": {status: true, launched: true, answer: controllertest.ErrRefused, failed: true},
	} {
		r := newRig(t, newClaim())
		if c.launched {
			r.reconcile(t)
			r.create(t, joined())
		}
		r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
			Patch: func(ctx context.Context, s client.WithWatch, o client.Object, p client.Patch,
				options ...client.PatchOption) error {
				if _, node := o.(*corev1.Node); !node && c.labels {
					return c.answer
				}
				return s.Patch(ctx, o, p, options...)
			},
			SubResourcePatch: func(ctx context.Context, s client.Client, sub string, o client.Object, p client.Patch,
				options ...client.SubResourcePatchOption) error {
				if c.status {
					return c.answer
				}
				return s.SubResource(sub).Patch(ctx, o, p, options...)
			},
		})
		r.step = claim.New(r.config)
		_, err := r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
		if (err != nil) != c.failed {
			t.Errorf("%s: error %v, want one: %t", name, err, c.failed)
		}
		if ended := len(r.cloud.machines) == 0; ended != c.ended || ended && len(r.cloud.ended) != 1 {
			t.Errorf("%s: the machine is ended: %t, want %t, once: %v", name, ended, c.ended, r.cloud.ended)
		}
		if id := r.claim(t).Status.ProviderID; c.ended && id != "" {
			t.Errorf("%s: the machine %s is ended and written down", name, id)
		}
	}
}

// P-32: the machine of a vanished claim is ended, or the failure is returned; that ending takes a while is no failure.
// This holds whether the labels or the status can no longer be written.
func TestAFailureToEndTheMachineOfAVanishedClaimIsTold(t *testing.T) {
	t.Parallel()
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "nodeclaims"}, "c1")
	for _, status := range []bool{false, true} {
		for _, endless := range []error{controllertest.ErrRefused, nil} {
			r := newRig(t, newClaim())
			r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
				Patch: func(ctx context.Context, s client.WithWatch, o client.Object, p client.Patch,
					options ...client.PatchOption) error {
					if !status {
						return gone
					}
					return s.Patch(ctx, o, p, options...)
				},
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch,
					...client.SubResourcePatchOption) error {
					return gone
				},
			})
			r.step = claim.New(r.config)
			r.cloud.endless, r.cloud.slow = endless, true
			_, err := r.step.Reconcile(t.Context(),
				reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
			if !errors.Is(err, endless) || err != nil && !strings.Contains(err.Error(),
				"ending the instance of vanished NodeClaim c1") {
				t.Errorf("status %t: error %v, want %v", status, err, endless)
			}
		}
	}
}

// P-31: a refusal that could not be written is written by the next step, which reports only that. No failure on the
// way to the claim's deletion is swallowed, whichever process finishes it.
func TestARefusedClaimIsGivenUpInTheEnd(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T) *rig {
		t.Helper()
		r := newRig(t, newClaim())
		fails := true
		r.server = interceptor.NewClient(r.server, interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
				options ...client.SubResourcePatchOption) error {
				if fails {
					fails = false
					return controllertest.ErrRefused
				}
				return c.SubResource(sub).Patch(ctx, o, p, options...)
			},
		})
		r.cloud.failure = &provider.InsufficientCapacityError{}
		return r
	}
	begin := func(t *testing.T, r *rig) {
		t.Helper()
		if err := r.play(t, nil)(); err == nil {
			t.Fatal("the refusal was written")
		}
	}
	r := refused(t)
	r.config.Client, r.config.Live = r.server, r.server
	r.step = claim.New(r.config)
	begin(t, r)
	r.reconcile(t)
	ready, _ := condition.Get(r.claim(t).Status.Conditions, karpenterv1.ConditionTypeReady)
	if r.claim(t).DeletionTimestamp == nil || ready.Reason != "InsufficientCapacity" || r.cloud.launches != 1 {
		t.Errorf("deleted %v, Ready since %s, %d launches", r.claim(t).DeletionTimestamp, ready.Reason,
			r.cloud.launches)
	}
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		r := refused(t)
		r.fail(f)
		begin(t, r)
		return r.play(t, nil)
	})
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		one := newClaim()
		condition.Set(&one.Status.Conditions, 0,
			condition.False(karpenterv1.ConditionTypeLaunched, "InsufficientCapacity", "none"), controllertest.Start())
		r := newRig(t, one)
		r.fail(f)
		return r.play(t, nil)
	})
}

// P-30: a launch that came too late is requested again soon, without a report. One that failed for a reason that may
// pass is requested again in 10 s, with the reason on the claim.
func TestWhenALaunchIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure error
		again   time.Duration
		says    string
	}{
		"too late": {provider.ErrExpired, 50 * time.Millisecond, ""},
		"refused": {&provider.LaunchError{ConditionReason: "Quota", Message: "no quota"}, 10 * time.Second,
			"no quota"},
	} {
		r := newRig(t, newClaim())
		r.cloud.failure = c.failure
		result := r.reconcile(t)
		launched, _ := condition.Get(r.claim(t).Status.Conditions, karpenterv1.ConditionTypeLaunched)
		if result.RequeueAfter != c.again || launched.Message != c.says {
			t.Errorf("%s: asks again after %s, says %q; want %s, %q", name, result.RequeueAfter, launched.Message,
				c.again, c.says)
		}
		if said := strings.Join(r.tape.Said(), "\n"); strings.Contains(said, "LaunchFailed") != (c.says != "") ||
			!strings.Contains(said, c.says) {
			t.Errorf("%s: events %q", name, said)
		}
	}
}

// P-31: a claim with a recorded refusal is deleted and never launched again, whichever process reads it. Other reasons
// of the condition Launched are no refusal.
func TestARefusalOnTheClaimIsFinal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value    condition.Value
		launches int
	}{
		"no capacity":     {condition.False(karpenterv1.ConditionTypeLaunched, "InsufficientCapacity", "none"), 0},
		"class not ready": {condition.False(karpenterv1.ConditionTypeLaunched, "NodeClassNotReady", "not ready"), 0},
		"quota":           {condition.False(karpenterv1.ConditionTypeLaunched, "Quota", "no quota"), 1},
		"waits": {condition.Unknown(karpenterv1.ConditionTypeLaunched, "InsufficientCapacity", "perhaps"),
			1},
	} {
		one := newClaim()
		condition.Set(&one.Status.Conditions, 0, c.value, controllertest.Start())
		r := newRig(t, one)
		r.reconcile(t)
		if gone := r.claim(t).DeletionTimestamp != nil; r.cloud.launches != c.launches || gone != (c.launches == 0) {
			t.Errorf("%s: %d launches, deleted %t; want %d launches", name, r.cloud.launches, gone, c.launches)
		}
	}
}

// P-31: planning learns at once what the launch found out about a class, under the class's name. A missing class
// offers nothing.
func TestPlanningLearnsWhatALaunchFoundOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure, catalog error
		told             int
	}{
		"no capacity":       {&provider.InsufficientCapacityError{}, nil, 1},
		"class not ready":   {&provider.NodeClassNotReadyError{}, nil, 1},
		"class is gone":     {provider.ErrNodeClassNotFound, provider.ErrNodeClassNotFound, 1},
		"no catalogue read": {&provider.InsufficientCapacityError{}, controllertest.ErrRefused, 0},
	} {
		r := newRig(t, newClaim())
		r.cloud.failure, r.cloud.catalog = c.failure, c.catalog
		r.reconcile(t)
		if r.catalogs.told != c.told || r.claim(t).DeletionTimestamp == nil {
			t.Errorf("%s: told %d times, want %d; the claim %v", name, r.catalogs.told, c.told,
				r.claim(t).DeletionTimestamp)
		}
		if ref := r.catalogs.about; c.told > 0 && (ref.Group != "karpenter.kwok.sh" || ref.Kind != "KWOKNodeClass" ||
			ref.Name != "default") {
			t.Errorf("%s: told about %+v", name, ref)
		}
	}
}

// P-31: what is deleted is the claim that was refused, by its UID: a slot's name is used again.
func TestTheClaimThatWasRefusedIsDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.cloud.failure = &provider.InsufficientCapacityError{}
	var asked client.DeleteOptions
	r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			asked.ApplyOptions(options)
			return c.Delete(ctx, o, options...)
		},
	})
	r.step = claim.New(r.config)
	r.reconcile(t)
	if asked.Preconditions == nil || asked.Preconditions.UID == nil || *asked.Preconditions.UID != "u1" {
		t.Errorf("preconditions %+v, want the UID", asked.Preconditions)
	}
	ready, _ := condition.Get(r.claim(t).Status.Conditions, karpenterv1.ConditionTypeReady)
	if ready.Status != "False" || ready.Reason != "InsufficientCapacity" {
		t.Errorf("Ready is %+v, want what went wrong", ready)
	}
}

// P-30: each taint that a new node has for a while keeps it from being initialized, and the claim says which.
func TestAPassingTaintKeepsANodeFromBeingInitialized(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute",
		"node.kubernetes.io/unreachable:NoSchedule",
		"node.kubernetes.io/network-unavailable:NoSchedule",
		"node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
		"karpenter.sh/unregistered:NoExecute", "boot:NoSchedule", "example.com/else:NoSchedule",
	} {
		r := newRig(t, newClaim())
		r.reconcile(t)
		r.create(t, joined())
		r.reconcile(t)
		r.makeReady(t)
		n := r.node(t)
		key, effect, _ := strings.Cut(text, ":")
		key, value, _ := strings.Cut(key, "=")
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		r.put(t, n)
		r.clock.Advance(time.Minute)
		r.reconcile(t)
		got, _ := condition.Get(r.claim(t).Status.Conditions, karpenterv1.ConditionTypeInitialized)
		if lasts := key == "example.com/else"; lasts != (got.Status == "True") ||
			!lasts && !strings.Contains(got.Message,
				text) {
			t.Errorf("with %s the claim says %+v", text, got)
		}
	}
}

// P-40: a claim vanishes while a second leader launches it, with an old picture. Its machine has joined already, so
// pods may run there: the collector drains the node, and nobody ends the machine at once.
func TestTheMachineOfAVanishedClaimThatHasJoinedIsNotEndedAtOnce(t *testing.T) {
	t.Parallel()
	node := joined()
	node.Labels = map[string]string{karpenterv1.NodeRegisteredLabelKey: "true",
		karpenterv1.NodePoolLabelKey: "default"}
	r := newRig(t, newClaim(), node)
	r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "nodeclaims"}, "c1")
		},
	})
	r.step = claim.New(r.config)
	r.reconcile(t)
	if len(r.cloud.machines) != 1 || len(r.cloud.ended) > 0 {
		t.Errorf("%d machines are there, ended are %v; want one there, none ended", len(r.cloud.machines),
			r.cloud.ended)
	}
}
