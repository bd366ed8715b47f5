package node_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/node"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// failing is a cloud whose calls fail as those of the API server do.
type failing struct {
	*cloud
	failures *controllertest.Failures
}

func (f failing) Terminate(ctx context.Context, id string, inUse func() bool) (fleet.Fate, error) {
	if err := f.failures.Call("terminate"); err != nil {
		return fleet.Unproved, err
	}
	return f.cloud.Terminate(ctx, id, inUse)
}

func (f failing) Find(ctx context.Context, id string) (fleet.Fate, error) {
	if err := f.failures.Call("find"); err != nil {
		return fleet.Unproved, err
	}
	return f.cloud.Find(ctx, id)
}

// fail puts failures between the controller and all that it talks to.
func (r *rig) fail(f *controllertest.Failures) {
	server := f.Wrap(r.server)
	r.step = node.New(node.Config{
		Client: server, Live: server, Fleet: failing{r.cloud, f}, Events: r.tape,
		Metrics: metrics.New(prometheus.NewRegistry()), Now: r.clock.Now, Log: logr.Discard(),
	})
}

// play returns a step that takes the node further, with what happens in the world in between.
func (r *rig) play(t *testing.T, world ...func()) func() error {
	return func() error {
		for _, happens := range world {
			if happens != nil {
				happens()
			}
			if _, err := r.step.Reconcile(t.Context(),
				reconcile.Request{NamespacedName: types.NamespacedName{Name: "n1"}}); err != nil {
				return err
			}
		}
		if !r.gone(t) {
			t.Error("the node is still there")
		}
		return nil
	}
}

func volume(name string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.VolumeAttachmentSpec{NodeName: "n1", Source: storagev1.VolumeAttachmentSource{
			PersistentVolumeName: &name,
		}},
	}
}

// P-40: a node is let go only after each step before has been done. What fails is returned, so that it is done again.
func TestNoFailureOfADrainIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		n, claim := dying()
		claim.DeletionTimestamp = nil
		keeper := pod("keeper")
		keeper.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		keeper.Spec.Volumes = []corev1.Volume{
			{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "kept"},
			}},
		}
		pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-2"}}
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-pdb"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			},
		}
		r := newRig(t, n, claim, pod("a"), keeper, pvc, budget, volume("pv-1"), volume("pv-2"))
		r.fail(f)
		r.cloud.left = 1
		return r.play(t,
			nil, // the claim is deleted
			func() { r.refuse["a"] = true },
			func() { delete(r.refuse, "a") },
			nil, // the volume is still attached
			func() { remove(t, r, volume("pv-1")); r.clock.Advance(5 * time.Second) },
			nil, // the machine ends
			nil)
	})
}

func remove(t *testing.T, r *rig, o client.Object) {
	t.Helper()
	if err := r.server.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// P-41: the same for pods that the deadline removes.
func TestNoFailureAtTheDeadlineIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		n, claim := dying()
		claim.Spec.TerminationGracePeriod = &karpenterv1.Duration{Duration: time.Minute}
		r := newRig(t, n, claim, pod("a"))
		r.fail(f)
		return r.play(t, func() { r.clock.Advance(45 * time.Second) }, nil, nil)
	})
}

// A machine that may still run is not given up because the cloud could not be asked.
func TestNoFailureToFindTheMachineIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		n, _ := dying()
		n.Status.Conditions[0].Status = corev1.ConditionUnknown
		n.OwnerReferences = []metav1.OwnerReference{{Kind: "Machine", Name: "m"},
			{Kind: "NodeClaim", Name: "c1", UID: "c1"}}
		n.Labels = map[string]string{karpenterv1.NodePoolLabelKey: "default"}
		r := newRig(t, n)
		r.fail(f)
		r.cloud.left = -1
		return r.play(t, nil)
	})
}
