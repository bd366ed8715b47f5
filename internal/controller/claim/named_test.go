package claim_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// overtaken is a cloud that two processes use at once: while it creates a machine, the other process records its own.
type overtaken struct {
	*cloud
	server client.Client
}

func (o *overtaken) Launch(ctx context.Context, of *karpenterv1.NodeClaim,
	notAfter time.Time) (provider.Instance, error) {
	var stored karpenterv1.NodeClaim
	if err := o.server.Get(ctx, client.ObjectKeyFromObject(of), &stored); err != nil {
		return provider.Instance{}, err
	}
	stored.Status.ProviderID = "fake://other"
	if err := o.server.Status().Update(ctx, &stored); err != nil {
		return provider.Instance{}, err
	}
	return o.cloud.Launch(ctx, of, notAfter)
}

// P-32, E-38: a claim keeps the machine that it names. What another process has launched for it meanwhile is
// collected.
func TestAClaimKeepsTheMachineThatItNames(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.config.Fleet = fleet.New(&overtaken{r.cloud, r.server})
	r.step = claim.New(r.config)
	for range 3 { // finalizer, launch, again
		_, err := r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
		t.Log(err)
	}
	if r.cloud.launches == 0 {
		t.Fatal("nothing was launched")
	}
	if named := r.claim(t).Status.ProviderID; named != "fake://other" {
		t.Errorf("the claim names %q, want the machine that it named first", named)
	}
}
