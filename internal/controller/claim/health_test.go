package claim_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

const healthKind = karpenterv1.ConditionTypeNodeRegistrationHealthy

func (r *rig) healthy(t *testing.T) karpenterv1.Condition {
	t.Helper()
	var p karpenterv1.NodePool
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &p); err != nil {
		t.Fatal(err)
	}
	found, _ := condition.Get(p.Status.Conditions, karpenterv1.ConditionTypeNodeRegistrationHealthy)
	return found
}

// setHealth writes what is known of the pool's registration.
func (r *rig) setHealth(t *testing.T, value condition.Value) {
	t.Helper()
	var p karpenterv1.NodePool
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &p); err != nil {
		t.Fatal(err)
	}
	condition.Set(&p.Status.Conditions, 0, value, controllertest.Start())
	if err := r.server.Status().Update(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}

// pass takes a new claim of the pool to its result: j joins, r is not registered and l is not launched in time. h is
// one that joins and was made by hand. Then claim and node are gone.
func (r *rig) pass(t *testing.T, number int, result rune) {
	t.Helper()
	c, n := newClaim(), joined()
	c.UID, c.CreationTimestamp.Time = types.UID(fmt.Sprint("u", number)), r.clock.Now()
	n.Spec.ProviderID = "fake://" + string(c.UID)
	if result != 'h' {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "default",
			UID: "p"}}
	}
	if r.cloud.failure = nil; result == 'l' {
		r.cloud.failure = &provider.LaunchError{ConditionReason: "Quota", Message: "no quota"}
	}
	if err := r.server.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t)
	switch result {
	case 'l':
		r.clock.Advance(5 * time.Minute)
	case 'r':
		r.clock.Advance(15 * time.Minute)
	default:
		r.create(t, n)
		defer r.dropNode(t)
	}
	r.reconcile(t)
	last := r.claim(t)
	if joins := result == 'j' || result == 'h'; (last.DeletionTimestamp == nil) != joins {
		t.Fatalf("claim %d: deleted at %v, want that it joins: %t", number, last.DeletionTimestamp, joins)
	}
	last.Finalizers = nil
	if err := r.server.Update(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if err := client.IgnoreNotFound(r.server.Delete(t.Context(), last)); err != nil {
		t.Fatal(err)
	}
}

// V-13: a pool's registration is healthy while at most one of its last four claims was too late to launch or to
// register, as in Karpenter. A claim made by hand does not count. The state from before counts like one claim that
// joined, or two that did not. A known state is not written again.
func TestTheHealthOfRegistrationFollowsTheLastFourClaims(t *testing.T) {
	t.Parallel()
	for before, value := range map[string]condition.Value{
		"unknown":   condition.Unknown(healthKind, "AwaitingNodes", ""),
		"unhealthy": condition.False(healthKind, "RegistrationTimeout", "another one"),
		"healthy":   condition.True(healthKind, "AsBefore", ""),
	} {
		for results, wants := range map[string][3]string{ // after unknown, healthy, and unhealthy
			"j":       {"True", "True", "False"},
			"r":       {"Unknown", "True", "False"},
			"h":       {"Unknown", "True", "False"},
			"rl":      {"False", "False", "False"},
			"rj":      {"True", "True", "False"},
			"rjr":     {"False", "False", "False"},
			"jjj":     {"True", "True", "True"},
			"rrjj":    {"False", "False", "False"},
			"rrjjj":   {"True", "True", "True"},
			"rjjjr":   {"True", "True", "True"},
			"rjjjjrr": {"False", "False", "False"},
		} {
			want := wants[map[string]int{"healthy": 1, "unhealthy": 2}[before]]
			r := newRig(t, aPool())
			r.setHealth(t, value)
			for i, result := range results {
				r.pass(t, i, result)
			}
			got := r.healthy(t)
			if string(got.Status) != want {
				t.Errorf("%s, then %s: %q, want %q", before, results, got.Status, want)
			}
			if len(results) == 1 && string(value.Status) == want && got.Reason != value.Reason {
				t.Errorf("%s, then %s: it was %s already and was written again: %+v", before, results, want, got)
			}
		}
	}
}

// V-13: the condition names the claim that was too late, with the provider's words for a launch.
func TestAnUnhealthyPoolSaysWhichClaimWasLate(t *testing.T) {
	t.Parallel()
	for results, want := range map[string]string{
		"jrr": "RegistrationTimeout NodeClaim c1: not Registered after 15m0s",
		"rl":  "Quota NodeClaim c1: not Launched after 5m0s; look at the events of the NodeClaim",
	} {
		r := newRig(t, aPool())
		for i, result := range results {
			r.pass(t, i, result)
		}
		got := r.healthy(t)
		if text := got.Reason + " " + got.Message; got.Status != "False" || !strings.HasPrefix(text, want) ||
			strings.HasSuffix(text, ": no quota") != strings.HasPrefix(want, "Quota") {
			t.Errorf("%s: %s %q, want %q", results, got.Status, text, want)
		}
	}
}

// V-13: a report that could not be written is written by a later step of any claim of the pool.
func TestAReportOnHealthThatFailsIsMadeLater(t *testing.T) {
	t.Parallel()
	r := newRig(t, aPool())
	fails, tries := true, 0
	r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption) error {
			if _, pool := o.(*karpenterv1.NodePool); pool {
				if tries++; fails {
					return controllertest.ErrRefused
				}
			}
			return c.SubResource(sub).Patch(ctx, o, p, options...)
		},
	})
	r.step = claim.New(r.config)
	r.pass(t, 0, 'r')
	r.pass(t, 1, 'r')
	if got := r.healthy(t); got.Status != "" || tries == 0 {
		t.Fatalf("%+v after %d tries, want the report to fail", got, tries)
	}
	fails = false
	r.pass(t, 2, 'h') // made by hand: it is of no pool, and reports nothing
	if got := r.healthy(t); got.Status != "" {
		t.Errorf("%+v, want it to be written by a claim of the pool", got)
	}
	r.pass(t, 3, 'j')
	if got := r.healthy(t); got.Status != "False" || !strings.Contains(got.Message, "not Registered after 15m0s") {
		t.Errorf("%+v, want the report that failed", got)
	}
}

// V-13: an initialization that takes too long says nothing about registration.
func TestALateInitializationDoesNotTouchTheHealthOfRegistration(t *testing.T) {
	t.Parallel()
	c := newClaim()
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "default",
		UID: "p"}}
	r := newRig(t, c, aPool(), joined())
	r.reconcile(t)
	r.setHealth(t, condition.Unknown(healthKind, "AwaitingNodes", ""))
	r.clock.Advance(time.Hour)
	if r.reconcile(t); r.claim(t).DeletionTimestamp == nil || r.healthy(t).Status != "Unknown" {
		t.Errorf("after an initialization that timed out: %+v", r.healthy(t))
	}
}
