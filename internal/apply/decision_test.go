package apply_test

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

func (r *rig) told(t *testing.T, want ...apply.Decision) {
	t.Helper()
	if !slices.Equal(r.decided, want) {
		t.Errorf("%v was told, want %v", r.decided, want)
	}
	r.decided = nil
}

// U-10: a launch is reported once with its purpose; so is one that the limits no longer allow.
func TestU10_LaunchesAreTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
	replicas := launch(plan.NoSlot)
	replicas.For = []string{plan.AskReplicas}
	p := planOf(launch(plan.NoSlot, "a"), replicas)
	r.apply(t, p)
	r.told(t, apply.Decision{Verb: apply.Launch, Cause: "Pending", Outcome: apply.Done},
		apply.Decision{Verb: apply.Launch, Cause: "Replicas", Outcome: apply.Done})
	r.apply(t, p) // the claims are there
	r.told(t)
	p.Launches = p.Launches[:1]
	p.Launches[0].Pool = "gone"
	r.apply(t, p)
	r.told(t, apply.Decision{Verb: apply.Launch, Cause: "Pending", Outcome: apply.NotHeld})
}

// U-10: a removal is reported when its intent is written, and when it is carried out or taken back, with the reason on
// the claim. A reason that somebody else wrote there is no label value.
func TestU10_RemovalsAreTold(t *testing.T) {
	t.Parallel()
	claim, node, remove := markable()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{}, claim, node)
	replacement := launch(plan.NoSlot)
	replacement.Replaces = []string{"c1"}
	p := planOf(replacement)
	p.Removes = []plan.Remove{remove}
	r.apply(t, p)
	r.told(t, apply.Decision{Verb: apply.Remove, Cause: "Empty", Outcome: apply.Planned},
		apply.Decision{Verb: apply.Replace, Cause: "Empty", Outcome: apply.Done})
	if removed, made := r.about[0], r.about[1]; removed.Claim != "c1" || made.Claim == "" ||
		made.BasedOn != p.BasedOn || !slices.Equal(made.Replaces, replacement.Replaces) {
		t.Errorf("it was told of %+v and %+v", removed, made) // U-32
	}
	r.mark(t, remove)
	r.told(t)
	remove.Reason = "" // the disruption controller knows the claim only
	for range 2 {
		if err := r.applier.Undo(t.Context(), remove); err != nil {
			t.Fatal(err)
		}
	}
	r.told(t, apply.Decision{Verb: apply.Remove, Cause: "Empty", Outcome: apply.TakenBack})
	remove.Reason = "Whim"
	r.mark(t, remove)
	if deleted, err := r.applier.Delete(t.Context(), remove); !deleted || err != nil {
		t.Fatalf("deleted %t, error %v", deleted, err)
	}
	r.told(t, apply.Decision{Verb: apply.Remove, Cause: "Other", Outcome: apply.Planned},
		apply.Decision{Verb: apply.Remove, Cause: "Other", Outcome: apply.Done})
	if err := r.server.Get(t.Context(), client.ObjectKey{Name: "c1"}, &karpenterv1.NodeClaim{}); err == nil {
		t.Error("the claim is still there")
	}
}
