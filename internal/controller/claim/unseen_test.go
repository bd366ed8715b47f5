package claim_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/kube/unseen"
)

// B-12: no step starts while the cache lacks what this process wrote to a claim or its node: its writes would be
// refused. A pool that was just written does not get another report that nodes join.
func TestNoStepBeginsFromWhatWasOvertaken(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]client.Object{
		"the claim": &karpenterv1.NodeClaim{}, "its node": &corev1.Node{}, "its pool": &karpenterv1.NodePool{},
	} {
		r := newRig(t, newClaim(), joined(), aPool())
		r.config.Unseen = unseen.New(r.clock.Now)
		r.step = claim.New(r.config)
		key := map[string]string{"the claim": "c1", "its node": "n1", "its pool": "default"}[name]
		if name == "its node" {
			r.reconcile(t)
			r.makeReady(t)
		}
		if err := r.server.Get(t.Context(), client.ObjectKey{Name: key}, object); err != nil {
			t.Fatal(err)
		}
		controllertest.Write(t, r.config.Unseen, object)
		r.writes = 0
		result := r.reconcile(t)
		if name == "its pool" {
			var pool karpenterv1.NodePool
			if err := r.server.Get(t.Context(), client.ObjectKey{Name: key}, &pool); err != nil ||
				len(pool.Status.Conditions) > 0 {
				t.Errorf("%s was written, and says %v (%v)", name, pool.Status.Conditions, err)
			}
			continue
		}
		if r.writes > 0 || result.RequeueAfter == 0 {
			t.Errorf("%s was written: %d writes, again after %s", name, r.writes, result.RequeueAfter)
		}
		r.clock.Advance(5 * time.Second)
		if r.reconcile(t); r.writes == 0 {
			t.Errorf("%s was written 5 s ago, and is waited for", name)
		}
	}
}
