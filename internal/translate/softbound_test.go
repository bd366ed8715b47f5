package translate_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// L-40, D-12: which pools shrink to their soft limit within budgets: those bounded by it, not by the hard limit or the
// replicas, and without a mark for this limit.
func TestWhichPoolsAreGentle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		soft, hard, mark string
		replicas         int64
		want             bool
	}{
		{soft: "3", want: true}, {soft: "3", mark: "Inherited", want: true}, {soft: "3", mark: "AtOnce 4", want: true},
		{soft: "3", mark: "AtOnce 3"}, {}, {hard: "3"}, {soft: "3", hard: "4"},
		{soft: "3", replicas: 4, want: true}, {soft: "3", replicas: 3}, {soft: "3", replicas: 2},
	} {
		pool := &karpenterv1.NodePool{
			ObjectMeta: metav1.ObjectMeta{
				Name: "p", Annotations: map[string]string{karpenterv1.AboveLimitAnnotationKey: c.mark},
			},
		}
		if c.soft != "" {
			pool.Spec.Limits = karpenterv1.Limits{"nodes": resource.MustParse(c.soft)}
		}
		if c.hard != "" {
			pool.Spec.HardLimits = karpenterv1.Limits{"nodes": resource.MustParse(c.hard)}
		}
		if c.replicas > 0 {
			pool.Spec.Replicas = &c.replicas
		}
		if value, _ := translate.Pool(resources.NewSpace(), pool); value.Gentle != c.want {
			t.Errorf("%+v: gentle %v", c, value.Gentle)
		}
	}
}
