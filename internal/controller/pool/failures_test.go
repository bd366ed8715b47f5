package pool_test

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/pool"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// Whatever of the status, of the hash or of a claim's hash cannot be read or written is tried again.
func TestNoFailureAboutAPoolIsSwallowed(t *testing.T) {
	t.Parallel()
	failed := controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		p := newPool()
		p.Annotations = map[string]string{karpenterv1.NodePoolHashAnnotationKey: "old",
			karpenterv1.NodePoolHashVersionAnnotationKey: "v1"}
		claim := &karpenterv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: map[string]string{karpenterv1.NodePoolLabelKey: p.Name}},
			Spec:       karpenterv1.NodeClaimSpec{NodeClassRef: p.Spec.Template.Spec.NodeClassRef},
		}
		r := newRig(t, p, claim)
		r.step = pool.New(pool.Config{
			Client: f.Wrap(r.server), Live: f.Wrap(r.server), Fleet: fleet.New(r.cloud), Catalogs: r.catalogs,
			Picture: world.New(world.Config{}),
			InVain:  func(string) string { return "" }, Paused: func() string { return "" }, Events: r.tape,
			Metrics: metrics.New(prometheus.NewRegistry()).Pools, Now: controllertest.Start, Log: logr.Discard(),
		})
		return func() error {
			_, err := r.step.Reconcile(t.Context(),
				reconcile.Request{NamespacedName: types.NamespacedName{Name: p.Name}})
			return err
		}
	})
	if len(failed) < 5 {
		t.Errorf("only %v failed: want get, list, and the patches of claim, pool and status", failed)
	}
}
