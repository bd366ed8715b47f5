package pool_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/pool"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// stocked is a cloud that lists machines.
type stocked struct {
	*cloud
	machines []provider.Instance
}

func (s *stocked) List(context.Context) ([]provider.Instance, error) { return s.machines, nil }

// L-14: a pool reports when its hard limit is enforced for machines, and otherwise why not yet. It takes as long as
// earlier launches may land. A raised limit stays enforced; a lowered one starts again.
func TestFromWhenAHardLimitIsInForce(t *testing.T) {
	t.Parallel()
	object := newPool()
	object.Generation = 1
	object.Spec.HardLimits = karpenterv1.Limits{"nodes": *resource.NewQuantity(1, resource.DecimalSI)}
	claim := func(name string) *karpenterv1.NodeClaim {
		return &karpenterv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{karpenterv1.NodePoolLabelKey: "default"},
			},
		}
	}
	r := newRig(t, object, claim("c1"), claim("c2"))
	clock, machines := controllertest.NewClock(), &stocked{cloud: r.cloud}
	config := r.config()
	config.Now, config.Fleet = clock.Now, fleet.New(machines)
	r.step = pool.New(config)
	want := func(status, reason, text string) {
		t.Helper()
		got, _ := condition.Get(r.reconcile(t).Status.Conditions, karpenterv1.ConditionTypeHardLimitEnforced)
		if string(got.Status) != status || got.Reason != reason || !strings.Contains(got.Message, text) {
			t.Fatalf("condition %+v; want %s, %s, %q", got, status, reason, text)
		}
	}
	limitTo := func(n, generation int64) {
		t.Helper()
		p := r.reconcile(t)
		p.Generation = generation
		p.Spec.HardLimits = karpenterv1.Limits{"nodes": *resource.NewQuantity(n, resource.DecimalSI)}
		if err := r.server.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	want("False", "TooMany", "2 NodeClaims, limit 1 (hard limit)")
	if err := r.server.Delete(t.Context(), claim("c2")); err != nil {
		t.Fatal(err)
	}
	want("Unknown", "Settling", "launches from before the limit was 1 may land until")
	clock.Advance(provider.LaunchFor + 2*provider.ClockSkew)
	want("Unknown", "Settling", "may land until")
	clock.Advance(provider.ListLag)
	machines.machines = []provider.Instance{
		{ProviderID: "stray", ClaimUID: "gone", Labels: map[string]string{karpenterv1.NodePoolLabelKey: "default"}},
	}
	want("False", "StrayInstances", "none of its NodeClaims has: 1")
	machines.machines = nil
	want("True", "Enforced", "never more than 1 instances")
	limitTo(3, 2)
	want("True", "Enforced", "never more than 3 instances")
	limitTo(2, 3)
	want("Unknown", "Settling", "before the limit was 2")
	clock.Advance(5 * time.Minute)
	want("True", "Enforced", "never more than 2 instances")
	p := r.reconcile(t)
	p.Spec.HardLimits, p.Generation = nil, 4
	if err := r.server.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if got, found := condition.Get(r.reconcile(t).Status.Conditions,
		karpenterv1.ConditionTypeHardLimitEnforced); found {
		t.Errorf("condition %+v of a pool without a hard limit", got)
	}
}
