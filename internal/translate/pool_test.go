package translate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

func readyPool() *karpenterv1.NodePool {
	pool := kwokPool()
	pool.Status.Conditions = []karpenterv1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
	return pool
}

func TestPoolValues(t *testing.T) { // P-02, P-08, P-10, L-01, L-02
	t.Parallel()
	pool := readyPool()
	pool.Spec.Weight = new(int32(7))
	pool.Spec.Template.ObjectMeta.Labels = map[string]string{"team": "a"}
	pool.Spec.Template.Spec.Requirements = []entry{{Key: "zone", Operator: "Exists"}}
	pool.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "t", Effect: corev1.TaintEffectNoSchedule}}
	pool.Spec.Template.Spec.StartupTaints = []corev1.Taint{{Key: "boot", Effect: corev1.TaintEffectNoSchedule}}
	pool.Spec.Limits = karpenterv1.Limits{"cpu": resource.MustParse("2500m"), "nodes": resource.MustParse("4"),
		"nvidia.com/gpu": resource.MustParse("0")}
	pool.Spec.HardLimits = karpenterv1.Limits{"nodes": resource.MustParse("6")}
	space := resources.NewSpace()
	got, err := Pool(space, pool)
	if err != nil || got.Blocked != "" {
		t.Fatalf("%v, blocked: %s", err, got.Blocked)
	}
	want := "karpenter.kwok.sh/kwoknodeclass=default karpenter.sh/nodepool=default team=a zone"
	if got.Requirements.String() != want {
		t.Errorf("requirements %s; want %s", got.Requirements, want)
	}
	if got.Weight != 7 || got.UID != "pool-uid" || fmt.Sprint(got.Taints) != "[t:NoSchedule]" {
		t.Errorf("pool %+v", got)
	}
	gpu := space.Index("nvidia.com/gpu")
	l := got.Limits
	if l.SoftNodes != 4 || l.HardNodes != 6 || l.Resources.At(resources.CPU) != 2500 || !l.Limited[resources.CPU] ||
		!l.Limited[gpu] || l.Limited[resources.Memory] {
		t.Errorf("limits %+v", l)
	}
	if e, ok := l.Check(limit.Usage{}, resources.Vector{}.With(gpu, 1)); ok || e.Component != gpu {
		t.Errorf("a limit of 0 lets one through: %+v", e)
	}
}

func TestWhyAPoolLaunchesNothing(t *testing.T) { // V-12
	t.Parallel()
	gone := metav1.NewTime(time.Unix(1, 0))
	for want, change := range map[string]func(*karpenterv1.NodePool){
		"":                                 func(*karpenterv1.NodePool) {},
		"it is not Ready: not checked yet": func(p *karpenterv1.NodePool) { p.Status.Conditions = nil },
		"it is not Ready: no subnet": func(p *karpenterv1.NodePool) {
			p.Status.Conditions[0] = karpenterv1.Condition{Type: "Ready", Status: metav1.ConditionFalse,
				Reason: "NodeClassNotReady", Message: "no subnet"}
		},
		"it is not Ready: no reason given": func(p *karpenterv1.NodePool) {
			p.Status.Conditions[0].Status = metav1.ConditionUnknown
		},
		"it is being deleted": func(p *karpenterv1.NodePool) {
			p.DeletionTimestamp,
				p.Spec.Replicas = &gone, new(int64(1))
		},
		`requirement "x": operator "Like"`: func(p *karpenterv1.NodePool) {
			p.Spec.Template.Spec.Requirements = []entry{{Key: "x", Operator: "Like"}}
		},
		"nodeClassRef is missing": func(p *karpenterv1.NodePool) { p.Spec.Template.Spec.NodeClassRef = nil },
		`hardLimits has the key "cpu"`: func(p *karpenterv1.NodePool) {
			p.Spec.HardLimits = karpenterv1.Limits{"cpu": resource.MustParse("1")}
		},
	} {
		pool := readyPool()
		change(pool)
		got, _ := Pool(resources.NewSpace(), pool)
		if !strings.Contains(got.Blocked, want) || (want == "") != (got.Blocked == "") {
			t.Errorf("blocked %q; want %q", got.Blocked, want)
		}
	}
}
